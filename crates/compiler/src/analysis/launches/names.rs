//! Names in host code that nothing defines, and members that Triton does not have.

use std::cell::LazyCell;

use super::pieces::{Host, Piece, abbreviates, pieces};
use super::{device, keyword_args, own, torch};
use crate::builtins::{self, LANGUAGE, TRITON, TritonVersion};
use crate::diagnostic::{Code, Diagnostic, misspelled, suggest};
use crate::eval::dtype::DType;
use crate::hir::{
    Expr, ExprId, Item, ItemKind, MATH, Module, Name, Occasion, PYTHON_NAMES, Unbound,
};
use crate::project::{
    self, ItemRef, Resolution, Scope, Sources, is_expected_to_fail, is_jit, is_template, item,
    jit_functions, resolve,
};
use crate::source::{FileId, FileRange, TextRange};

/// The class of descriptors that host code makes, and what is called on it.
const DESCRIPTOR: &str = "tools.tensor_descriptor.TensorDescriptor";
const DESCRIPTOR_MEMBERS: &[&str] = &["from_tensor"];

/// The class of configurations of kernels.
const CONFIG: &str = "Config";

/// Modules of Triton that are imported by their paths.
const TRITON_MODULES: &[&str] = &[
    "backends",
    "compiler",
    "errors",
    "experimental",
    "instrumentation",
    "knobs",
    "language",
    "profiler",
    "runtime",
    "testing",
    "tools",
];

/// Members of the package as a whole that kernels and their callers do not use. Source: `dir(triton)` of 3.6 and 3.9.
const TRITON_OTHERS: &[&str] = &[
    "AsyncCompileMode",
    "CompilationError",
    "FutureKernel",
    "InterpreterError",
    "JITFunction",
    "KernelInterface",
    "MockTensor",
    "OutOfResources",
    "TensorWrapper",
    "TritonError",
    "__version__",
    "compile",
    "set_allocator",
];

/// What the package as a whole has beside what kernels and their callers use.
const PACKAGE: [&[&str]; 2] = [TRITON_MODULES, TRITON_OTHERS];

/// A module that Triton had before version 3.0.
const REMOVED: &str = "ops";

/// Through so many files the import of the package is followed.
const MAX_IMPORTS: u32 = 4;

/// What linters call a name that nothing defines.
const UNDEFINED_RULE: &str = "F821";

/// Members of other versions of Triton may be called anything but nearly what a known one is: so many
/// letters apart, more where names are long.
const NEAR: usize = 2;

/// Names that nothing defines in the code of `file` around its kernels and launches, and members and
/// keywords that are misspelled there. What is inside of jit functions evaluation looks at. Where a file has
/// neither, members of modules are told, which are the same for all who read it.
pub(super) fn check(sources: &dyn Sources, file: FileId, module: &Module) -> Vec<Diagnostic> {
    let compiled = jit_functions(sources, file);
    let mut found = undefined(sources, file, module, &compiled);
    let pieces = pieces(file, module, &compiled);
    let host = Host::new(sources, file, module, &pieces);
    let is_around = compiled.is_empty() && module.launches.is_empty();
    for piece in &pieces {
        found.extend(host.members(piece));
        if is_around {
            found.extend(torch::members(&host, piece));
            continue;
        }
        found.extend(host.keywords(piece));
        found.extend(torch::check(&host, piece));
        found.extend(own::check(&host, piece));
        found.extend(device::check(&host, piece));
    }
    found.extend(module.items.iter().filter_map(|item| host.import(item)));
    found.retain(|found| !is_expected_to_fail(sources, file, found.primary.range));
    found
}

/// Whether all names are known that stars import in `file`: they are of files at hand that do nothing with names
/// that is not followed. `seen` are files that were looked at.
fn are_stars_known(sources: &dyn Sources, file: FileId, seen: &mut Vec<FileId>) -> bool {
    const MADE_ON_DEMAND: &str = "__getattr__";
    if seen.contains(&file) {
        return true;
    }
    seen.push(file);
    let Some(module) = sources.module(file) else { return false };
    let stars = module.items_named("*").map(|index| &module.items[index as usize].kind);
    let mut targets = stars.map(|kind| match kind {
        ItemKind::ImportFrom { level, path, .. } => sources.import(file, *level, path),
        _ => None,
    });
    !module.is_open
        && module.items_named(MADE_ON_DEMAND).next().is_none()
        && targets.all(|target| target.is_some_and(|it| are_stars_known(sources, it, seen)))
}

fn undefined(
    sources: &dyn Sources,
    file: FileId,
    module: &Module,
    compiled: &[ItemRef],
) -> Vec<Diagnostic> {
    // Decorators are host code.
    let all = (0..module.items.len() as u32).map(|index| ItemRef { file, index });
    let templates = all.filter(|at| is_jit(sources, *at) && is_template(module, *at));
    let inside = compiled.iter().copied().chain(templates).filter_map(|at| {
        let item = item(sources, at)?;
        Some(TextRange { start: item.name_range.start, end: item.range.end })
    });
    let inside: Vec<TextRange> = inside.collect();
    // What nothing binds may stand for what a file has without an import.
    let scope = Scope { file, path: &[] };
    let is_host = |unbound: &&Unbound| {
        !inside.iter().any(|function| function.contains_range(unbound.range))
            && !matches!(
                resolve(sources, scope, &unbound.name),
                Resolution::Triton(_) | Resolution::TritonModule(_)
            )
    };
    // What annotations name need not be there, but a misspelled name is a mistake.
    let text = sources.text(file).unwrap_or_default();
    let is_told = |unbound: &&Unbound| {
        let known =
            || unbound.visible.iter().map(|name| &**name).chain(PYTHON_NAMES.iter().copied());
        (!unbound.in_annotation || misspelled(&unbound.name, known()).is_some())
            && !is_known_to_lack(&text, unbound.range)
    };
    let stars_are_known = LazyCell::new(|| are_stars_known(sources, file, &mut Vec::new()));
    let is_starred = |unbound: &&Unbound| {
        unbound.perhaps_starred
            && (unbound.name.starts_with('_')
                || resolve(sources, scope, &unbound.name) != Resolution::Undefined
                || !*stars_are_known)
    };
    let finding = |unbound: &Unbound| {
        let at = FileRange { file, range: unbound.range };
        let message = format!("`{}` is not defined", unbound.name);
        let found = Diagnostic::new(Code::UndefinedName, at, message);
        let visible = unbound.visible.iter().map(|name| &**name);
        let known = visible.chain(PYTHON_NAMES.iter().copied().filter(|_| unbound.in_annotation));
        match suggest(&unbound.name, known) {
            Some(name) => found.with_suggestion(name),
            None => found,
        }
    };
    let told = module.unbound.iter().filter(is_host).filter(is_told);
    told.filter(|unbound| !is_starred(unbound)).map(finding).collect()
}

/// Whether imports bind a name of a file to Triton's package as a whole, directly or from a file that does.
fn is_package(
    sources: &dyn Sources,
    (file, module): (FileId, &Module),
    name: &Name,
    steps: u32,
) -> bool {
    let items = module.items_named(name).map(|index| &module.items[index as usize]);
    // Where the import fails, or what it gives is too old, nothing is compiled.
    let is_stand_in = |item: &&Item| {
        let is_chosen = item.guard.is_some() && matches!(item.kind, ItemKind::Assign { .. });
        is_chosen || item.occasion == Occasion::Fallback
    };
    let mut bound = items.filter(|item| !is_stand_in(item)).peekable();
    let is_import = |item: &Item| match &item.kind {
        ItemKind::Import { path, .. } => path.iter().map(|part| &**part).eq([TRITON]),
        ItemKind::ImportFrom { level, path, member } if steps > 0 => {
            let from = sources.import(file, *level, path);
            from.and_then(|from| Some((from, sources.module(from)?))).is_some_and(
                |(from, module)| is_package(sources, (from, &module), member, steps - 1),
            )
        }
        _ => false,
    };
    bound.peek().is_some() && bound.all(is_import)
}

/// Whether a comment on the line tells other tools to leave names alone that nothing defines.
fn is_known_to_lack(text: &str, at: TextRange) -> bool {
    let rest = text.get(at.start as usize..).and_then(|rest| rest.lines().next());
    rest.is_some_and(|rest| rest.contains("# noqa") && rest.contains(UNDEFINED_RULE))
}

impl Host<'_> {
    /// Members of Triton that are misspelled.
    fn members(&self, piece: &Piece<'_>) -> Vec<Diagnostic> {
        piece.attributes().filter_map(|attribute| self.member(piece, attribute)).collect()
    }

    /// Whether an expression is a name that imports bind to the package as a whole.
    fn is_package(&self, value: &Expr) -> bool {
        let Expr::Name(name) = value else { return false };
        is_package(self.sources, (self.file, self.module), name, MAX_IMPORTS)
    }

    fn member(
        &self,
        piece: &Piece<'_>,
        (value, attr, range): (ExprId, &Name, TextRange),
    ) -> Option<Diagnostic> {
        let (owner, members) = match self.meaning(piece, value) {
            // What stands in modules of their own, and members of the package as well, has others.
            Resolution::TritonModule(_) if self.is_package(&piece.body.exprs[value]) => {
                let members = builtins::members(TRITON).into_iter().map(|member| member.name);
                ("triton", members.chain(PACKAGE.into_iter().flatten().copied()).collect())
            }
            Resolution::TritonModule(module) if *module == *"language" => {
                let members = builtins::members(LANGUAGE).into_iter().map(|member| member.name);
                (LANGUAGE, members.chain(DType::ALL.iter().map(|dtype| dtype.member())).collect())
            }
            Resolution::Triton(class) if *class == *DESCRIPTOR => {
                ("TensorDescriptor", DESCRIPTOR_MEMBERS.to_vec())
            }
            Resolution::External(path) if path.iter().map(|part| &**part).eq(["math"]) => {
                ("math", MATH.to_vec())
            }
            _ => return None,
        };
        if members.contains(&&**attr) || self.sets(attr) {
            return None;
        }
        let near = suggest(attr, members.iter().copied())
            .filter(|best| strsim::damerau_levenshtein(attr, best) <= NEAR.max(attr.len() / 5));
        let best = match owner {
            "triton" | "TensorDescriptor" => near
                .or_else(|| members.iter().copied().find(|member| abbreviates(attr, member)))
                .or_else(|| misspelled(attr, members.iter().copied())),
            _ => misspelled(attr, members.iter().copied()),
        };
        let best = best?;
        let message = format!("`{owner}` has no member `{attr}`");
        Some(self.misspelled(Code::UnknownBuiltin, range, message, best))
    }

    /// Keywords of functions of Triton, as decorators are, that are misspelled.
    fn keywords(&self, piece: &Piece<'_>) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (callee, args) in piece.calls() {
            let Resolution::Triton(path) = self.meaning(piece, callee) else { continue };
            let Some(builtin) = builtins::member(TRITON, &path) else { continue };
            let known = builtin.parameters(TritonVersion::V3_9).iter().map(|param| param.name);
            for (name, value) in keyword_args(args) {
                let is_known = known.clone().any(|known| *known == **name);
                if is_known {
                    continue;
                }
                // Versions and forks of Triton have options of their own.
                if misspelled(name, known.clone()).is_some() || self.is_misplaced(&path, name) {
                    found.extend(self.keyword(piece, (name, value), &path, known.clone()));
                }
            }
        }
        found
    }

    /// Whether a keyword of what tunes kernels belongs elsewhere: into the dict of a configuration, which
    /// has parameters of kernels, or to a configuration.
    fn is_misplaced(&self, member: &str, name: &Name) -> bool {
        let is_parameter = || {
            let kernels = jit_functions(self.sources, self.file);
            let heads = kernels.iter().filter_map(|at| project::function(self.sources, *at));
            let mut params = heads.flat_map(|function| function.params.clone());
            params.any(|param| param.name == *name)
        };
        let is_option = || {
            let config =
                builtins::member(TRITON, CONFIG).map(|it| it.parameters(TritonVersion::V3_9));
            config.into_iter().flatten().any(|option| *option.name == **name)
        };
        match member {
            CONFIG => is_parameter(),
            "autotune" => is_option(),
            _ => false,
        }
    }

    /// An import of a module of Triton that is misspelled, or that is always tried and was removed.
    fn import(&self, item: &Item) -> Option<Diagnostic> {
        let path = match &item.kind {
            ItemKind::Import { path, .. } | ItemKind::ImportFrom { level: 0, path, .. } => path,
            _ => return None,
        };
        let [package, module, ..] = path.as_slice() else { return None };
        if &**package != TRITON || TRITON_MODULES.contains(&&**module) {
            return None;
        }
        let text = self.sources.text(self.file)?;
        let within = text.get(item.range.start as usize..item.range.end as usize)?;
        let start = item.range.start as usize + within.find(&**module)?;
        let range = TextRange::new(start, start + module.len());
        let message = format!("`{TRITON}` has no module `{module}`");
        if &**module == REMOVED {
            let always = item.occasion == Occasion::Always && item.guard.is_none();
            let at = FileRange { file: self.file, range };
            let message = format!("{message} since version 3.0, so this import fails");
            return (always && item.scope.is_empty())
                .then(|| Diagnostic::new(Code::UnknownBuiltin, at, message));
        }
        let best = misspelled(module, TRITON_MODULES.iter().copied())?;
        Some(self.misspelled(Code::UnknownBuiltin, range, message, best))
    }
}
