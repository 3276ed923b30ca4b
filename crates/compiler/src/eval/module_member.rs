//! Members of modules: of the language, of the project's own files, of PyTorch and NumPy; and what is
//! said of a member that a module does not have.

use std::sync::Arc;

use super::attribute::last_name;
use super::call::Argument;
use super::dtype::DType;
use super::names::known_member;
use super::value::{ModuleRef, Value};
use super::{Evaluator, Mode, Source};
use crate::builtins;
use crate::diagnostic::{Code, Diagnostic, Severity, misspelled, suggest};
use crate::hir::{Expr, ExprId, ItemKind, Module, Name};
use crate::project::{self, Resolution};
use crate::source::{FileId, FileRange};

/// How the text of a module shows that it may have names that no statement binds.
const MAKES_NAMES: &[&str] = &["__getattr__", "exec(", "globals()", "setattr(", "sys.modules"];

impl Evaluator<'_> {
    /// `module.attr`.
    pub(super) fn module_member(
        &mut self,
        module: &ModuleRef,
        attr: &Name,
        at: FileRange,
    ) -> Value {
        match module {
            ModuleRef::Known(path) => match known_member(path, attr) {
                Some(Value::Builtin(builtin)) if !self.is_exported(path, builtin) => {
                    self.missing_in_version(builtin, at);
                    Value::Unknown
                }
                Some(value) => value,
                None => match self.shared_member(path, attr) {
                    Some(value) => value,
                    None => self.unknown_member(path, attr, at),
                },
            },
            ModuleRef::File(file) => {
                let resolution = Resolution::File(*file);
                let member =
                    project::resolve_member_under(self.project, self.version, &resolution, attr);
                if member == Resolution::Undefined {
                    return self.missing_member(*file, attr, at);
                }
                self.resolved(&member).map_or(Value::Unknown, |global| global.value)
            }
            ModuleRef::Folder(file, path) => {
                let folder = Resolution::Folder(*file, path.to_vec());
                let member =
                    project::resolve_member_under(self.project, self.version, &folder, attr);
                self.resolved(&member).map_or(Value::Unknown, |global| global.value)
            }
        }
    }

    /// Reports a name that nothing in the module `file` binds.
    fn missing_member(&mut self, file: FileId, attr: &Name, at: FileRange) -> Value {
        let binds_by_text = |text: Arc<str>| MAKES_NAMES.iter().any(|way| text.contains(way));
        let frame = self.frame();
        if frame.mode != Mode::Jit
            || attr.starts_with('_')
            || self.project.text(file).is_none_or(binds_by_text)
        {
            return Value::Unknown;
        }
        let name_at = last_name(attr, at);
        let path = self.project.path(file);
        let name = path.rsplit('/').next().unwrap_or(&path);
        let module = self.project.module(file);
        let imports_namesake = module.iter().any(|module| imports_namesake(module, name));
        if imports_namesake || self.is_reported(Code::NoAttribute, name_at) {
            return Value::Unknown;
        }
        let message = format!("nothing in `{name}` is called `{attr}`");
        let mut diagnostic = Diagnostic::new(Code::NoAttribute, name_at, message);
        let items = module.iter().flat_map(|module| &module.items);
        let outer = items.filter(|item| item.scope.is_empty()).map(|item| &*item.name);
        if let Some(best) = suggest(attr, outer) {
            diagnostic = diagnostic.with_suggestion(best);
        }
        self.emit_diagnostic(diagnostic);
        Value::Unknown
    }

    /// A member of the language that another module of the package has too, under the same name.
    /// Modules whose members are all in the table have no others.
    fn shared_member(&mut self, path: &str, attr: &Name) -> Option<Value> {
        if is_listed(path, attr) {
            return None;
        }
        let module = path.strip_prefix(builtins::TRITON)?.strip_prefix('.')?;
        match project::triton::member(module, attr) {
            Resolution::Triton(canonical) if canonical.rsplit_once('.')?.0 != module => {
                let member = self.resolved(&Resolution::Triton(canonical))?.value;
                (!matches!(member, Value::Unknown)).then_some(member)
            }
            _ => None,
        }
    }

    /// Whether the module at `path` has the builtin in the version that is compiled for.
    pub(super) fn is_exported(&self, path: &str, builtin: &builtins::Builtin) -> bool {
        builtin.exists_in(self.version)
            && (path != builtins::LANGUAGE || builtin.exported <= self.version)
    }

    /// Reports a name that a module of the language, or of PyTorch, does not have.
    fn unknown_member(&mut self, path: &str, attr: &Name, at: FileRange) -> Value {
        if matches!(path, builtins::TORCH | builtins::TORCH_FUNCTIONAL) {
            self.host_member(path, attr, at);
            return Value::Unknown;
        }
        let is_in_language = path == builtins::TRITON && is_in_language_alone(attr);
        let meant = nearly_a_member(path, attr);
        let is_missing = is_listed(path, attr) || is_in_language || meant.is_some();
        if !is_missing || self.frame().mode == Mode::Python {
            return Value::Unknown;
        }
        let name_at = last_name(attr, at);
        if self.is_reported(Code::UnknownBuiltin, name_at) {
            return Value::Unknown;
        }
        let module = match path {
            builtins::LIBDEVICE => "libdevice",
            path => path,
        };
        let mut diagnostic = Diagnostic::new(
            Code::UnknownBuiltin,
            name_at,
            format!("`{module}` has no member `{attr}`"),
        );
        let version = self.version;
        let members: Vec<&str> = builtins::members(path)
            .into_iter()
            .filter(|builtin| builtin.exists_in(version))
            .map(|builtin| builtin.name)
            .chain(
                DType::ALL
                    .iter()
                    .filter(|_| path == builtins::LANGUAGE)
                    .map(|dtype| dtype.member()),
            )
            .collect();
        if let Some(meant) = meant {
            diagnostic = diagnostic.with_suggestion(meant);
        } else if path == builtins::CORE || is_in_language {
            diagnostic = diagnostic.with_note(format!("it is `tl.{attr}`"));
        } else if let Some(instead) = builtins::instead(attr) {
            diagnostic = diagnostic.with_note(format!("use {instead}"));
        } else if let Some(best) = suggest(attr, members.iter().copied()) {
            diagnostic = diagnostic.with_suggestion(best);
        } else if builtins::member(builtins::LIBDEVICE, attr).is_some() {
            diagnostic = diagnostic.with_note(format!(
                "`{attr}` is in the device library: `from triton.language.extra import libdevice`, then `libdevice.{attr}`"
            ));
        } else if let Some((_, fork)) =
            builtins::FORK_MEMBERS.iter().find(|(member, _)| *member == &**attr)
        {
            diagnostic.severity = Severity::Warning;
            diagnostic = diagnostic.with_note(format!("only {fork} has it"));
        }
        self.emit_diagnostic(diagnostic);
        Value::Unknown
    }

    /// Reports a function of PyTorch or NumPy that computes with tensors of the host.
    fn host_member(&mut self, path: &str, attr: &Name, at: FileRange) {
        let note = match builtins::instead(attr) {
            Some(instead) => format!("in kernels, use {instead}"),
            None if builtins::is_shared(attr) => format!("in kernels it is `tl.{attr}`"),
            None => return,
        };
        let frame = self.frame();
        if frame.mode != Mode::Jit || frame.in_default || self.is_reported(Code::HostFunction, at) {
            return;
        }
        let message =
            format!("`{path}.{attr}` works on tensors of the host; kernels cannot use it");
        let diagnostic = Diagnostic::new(Code::HostFunction, at, message).with_note(note);
        self.emit_diagnostic(diagnostic);
    }

    /// The name of what is called, if it is a function of NumPy.
    pub(super) fn numpy_function(&mut self, source: Source<'_>, callee: ExprId) -> Option<Name> {
        let Expr::Attribute { value, attr } = &source.body.exprs[callee] else { return None };
        if builtins::instead(attr).is_none() && !builtins::is_shared(attr) {
            return None;
        }
        let module = self.quietly(|this| this.expr(source, *value));
        let Value::Module(ModuleRef::Known(path)) = &module else { return None };
        (&**path == builtins::NUMPY).then(|| attr.clone())
    }

    /// NumPy's functions compute with compile-time values, but not with what exists at run time.
    pub(super) fn check_numpy_call(&mut self, name: &Name, at: FileRange, given: &[Argument]) {
        // Scalars may be arguments that are compile-time values at a launch.
        let at_run_time = |argument: &Argument| match &argument.value {
            Value::Tensor(tensor) => tensor.is_block() || tensor.ir.is_some(),
            _ => false,
        };
        if given.iter().any(at_run_time) {
            self.host_member(builtins::NUMPY, name, at);
        }
    }
}

/// Whether the table of builtins says everything of a name in the module at `path`: private and
/// experimental members come and go, and some modules are not listed completely.
pub(super) fn is_listed(path: &str, name: &str) -> bool {
    let lists = match path {
        // It has members of its own besides those of the language.
        builtins::CORE => builtins::member(path, name).is_some(),
        builtins::LANGUAGE | builtins::MATH | builtins::LIBDEVICE => true,
        _ => false,
    };
    lists && !name.starts_with('_')
}

/// The member of a module that is not listed completely which `name` is but for one letter.
fn nearly_a_member(path: &str, name: &str) -> Option<&'static str> {
    let is_of_triton =
        path == builtins::TRITON || path.strip_prefix(builtins::LANGUAGE)?.starts_with('.');
    if !is_of_triton || name.starts_with('_') || is_listed(path, name) {
        return None;
    }
    // What the language has is defined in its modules; `extra` has what back ends bring.
    let defines = path != builtins::TRITON && !path.starts_with(builtins::EXTRA);
    let defined = if defines { &[builtins::LANGUAGE][..] } else { &[] };
    let members = [path].into_iter().chain(defined.iter().copied()).flat_map(builtins::members);
    let modules = builtins::submodules(path).iter().map(|(module, _)| *module);
    misspelled(name, members.map(|member| member.name).chain(modules))
        .filter(|near| strsim::damerau_levenshtein(name, near) == 1)
}

/// Whether the module in the file `name` imports a module of its own name: then those that import it
/// by that name mean the other one as well, which lies outside of the package.
fn imports_namesake(module: &Module, name: &str) -> bool {
    let own = name.split('.').next();
    module.items.iter().any(|item| match &item.kind {
        ItemKind::Import { path, .. } | ItemKind::ImportFrom { level: 0, path, .. } => {
            path.first().map(|first| &**first) == own
        }
        _ => false,
    })
}

/// Whether the language has a member that the package itself has not.
fn is_in_language_alone(attr: &str) -> bool {
    let is_type = DType::from_member(attr).is_some();
    (is_type || builtins::member(builtins::LANGUAGE, attr).is_some())
        && known_member(builtins::TRITON, attr).is_none()
}

#[cfg(test)]
mod tests {
    use super::super::infer_file;
    use crate::builtins::TritonVersion;
    use crate::diagnostic::{Code, Diagnostic};
    use crate::project::MemorySources;

    /// What inference finds where a kernel calls `member` of a module with the text `helpers`.
    fn of_member(helpers: &str, member: &str) -> Vec<Diagnostic> {
        let mut sources = MemorySources::default();
        sources
            .add("helpers.py", &format!("import triton\nimport triton.language as tl\n{helpers}"));
        let text = format!(
            "import triton\nimport triton.language as tl\nimport helpers\n\n\n@triton.jit\ndef kernel(x_ptr):\n    tl.store(x_ptr, helpers.{member}(tl.load(x_ptr)))\n"
        );
        let file = sources.add("kernel.py", &text);
        let kernels = infer_file(&sources, file, TritonVersion::V3_6).kernels;
        kernels.into_iter().flat_map(|kernel| kernel.diagnostics).collect()
    }

    const SILU: &str = "@triton.jit\ndef silu(x):\n    return x * tl.sigmoid(x)\n";

    #[test]
    fn a_module_that_imports_its_own_name_is_another() {
        assert!(of_member(&format!("import helpers\n{SILU}"), "put").is_empty());
        assert_eq!(of_member(&format!("import other\n{SILU}"), "put").len(), 1);
    }

    #[test]
    fn a_module_has_the_names_that_it_binds() {
        assert!(of_member(SILU, "silu").is_empty());
        let found = of_member(SILU, "sillu");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].code, Code::NoAttribute);
        assert_eq!(
            found[0].message,
            "nothing in `helpers.py` is called `sillu`; did you mean `silu`?"
        );
    }

    #[test]
    fn a_module_that_makes_names_may_have_any() {
        let dynamic = format!("{SILU}\nglobals()[\"sillu\"] = silu\n");
        assert!(of_member(&dynamic, "sillu").is_empty());
        let starred = format!("from elsewhere import *\n{SILU}");
        assert!(of_member(&starred, "sillu").is_empty());
    }
}
