//! Names in host code that nothing defines, and members that Triton does not have.

use crate::builtins::{self, TRITON};
use crate::diagnostic::{Code, Diagnostic, suggest};
use crate::hir::{Body, Expr, ExprId, Item, ItemKind, Module, Name, SourceMap, Unbound};
use crate::project::{
    ItemRef, Resolution, Scope, Sources, item, jit_functions, resolve, resolve_expr,
};
use crate::source::{FileId, FileRange, TextRange};

/// The class of descriptors that host code makes, and what is called on it.
const DESCRIPTOR: &str = "tools.tensor_descriptor.TensorDescriptor";
const DESCRIPTOR_MEMBERS: &[&str] = &["from_tensor"];

/// Members of other versions of Triton may be called anything but nearly what a known one is: so many
/// letters apart, more where names are long.
const NEAR: usize = 2;

/// Shorter names are part of too many others to stand for them.
const LEAST_LETTERS: usize = 4;

/// Names that nothing defines in the code of `file` around its kernels and launches, and members that
/// are misspelled there. What is inside of jit functions evaluation looks at.
pub(super) fn check(sources: &dyn Sources, file: FileId, module: &Module) -> Vec<Diagnostic> {
    let compiled = jit_functions(sources, file);
    if compiled.is_empty() && module.launches.is_empty() {
        return Vec::new();
    }
    let mut found = undefined(sources, file, module, &compiled);
    let host = Host { sources, file, module };
    for (index, item) in module.items.iter().enumerate() {
        let path = item.body_scope();
        match &item.kind {
            ItemKind::Function(function)
                if !compiled.contains(&ItemRef { file, index: index as u32 }) =>
            {
                found.extend(host.members(&path, &function.body, &function.map));
            }
            ItemKind::Class(class) => {
                for method in &class.methods {
                    found.extend(host.members(&path, &method.body, &method.map));
                }
            }
            _ => {}
        }
    }
    for main in &module.mains {
        found.extend(host.members(&[], &main.body, &main.map));
    }
    found
}

fn undefined(
    sources: &dyn Sources,
    file: FileId,
    module: &Module,
    compiled: &[ItemRef],
) -> Vec<Diagnostic> {
    // Decorators are host code.
    let inside = compiled.iter().filter_map(|at| {
        let item = item(sources, *at)?;
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
    let finding = |unbound: &Unbound| {
        let at = FileRange { file, range: unbound.range };
        let message = format!("`{}` is not defined", unbound.name);
        let found = Diagnostic::new(Code::UndefinedName, at, message);
        match suggest(&unbound.name, unbound.visible.iter().map(|name| &**name)) {
            Some(name) => found.with_suggestion(name),
            None => found,
        }
    };
    module.unbound.iter().filter(is_host).map(finding).collect()
}

/// Host code of one file.
struct Host<'a> {
    sources: &'a dyn Sources,
    file: FileId,
    module: &'a Module,
}

impl Host<'_> {
    /// Members of Triton that are misspelled in the code of a function at `path`.
    fn members(&self, path: &[Name], body: &Body, map: &SourceMap) -> Vec<Diagnostic> {
        let attributes = body.exprs.iter().filter_map(|(id, expr)| match expr {
            Expr::Attribute { value, attr } => Some((id, *value, attr)),
            _ => None,
        });
        attributes.filter_map(|attribute| self.member(path, (body, map), attribute)).collect()
    }

    /// Whether an expression is a name that imports bind to the package as a whole.
    fn is_package(&self, value: &Expr) -> bool {
        let Expr::Name(name) = value else { return false };
        let items = self.module.items_named(name);
        let mut bound = items.map(|index| &self.module.items[index as usize]).peekable();
        let is_import = |item: &Item| matches!(&item.kind, ItemKind::Import { path } if path.iter().map(|part| &**part).eq([TRITON]));
        bound.peek().is_some() && bound.all(is_import)
    }

    fn member(
        &self,
        path: &[Name],
        (body, map): (&Body, &SourceMap),
        (id, value, attr): (ExprId, ExprId, &Name),
    ) -> Option<Diagnostic> {
        let scope = Scope { file: self.file, path };
        let (owner, members) = match resolve_expr(self.sources, scope, body, value) {
            // What stands in modules of their own, and members of the package as well, has others.
            Resolution::TritonModule(_) if self.is_package(&body.exprs[value]) => {
                let members = builtins::members(TRITON);
                ("triton", members.into_iter().map(|member| member.name).collect())
            }
            Resolution::Triton(class) if *class == *DESCRIPTOR => {
                ("TensorDescriptor", DESCRIPTOR_MEMBERS.to_vec())
            }
            _ => return None,
        };
        let near = suggest(attr, members.iter().copied())
            .filter(|best| strsim::damerau_levenshtein(attr, best) <= NEAR.max(attr.len() / 5));
        let best = near
            .or_else(|| members.iter().copied().find(|member| abbreviates(attr, member)))
            .filter(|_| !members.contains(&&**attr))?;
        let end = map.exprs[id].end;
        let range = TextRange { start: end.saturating_sub(attr.len() as u32), end };
        let at = FileRange { file: self.file, range };
        let message = format!("`{owner}` has no member `{attr}`");
        let found = Diagnostic::new(Code::UnknownBuiltin, at, message);
        Some(found.with_suggestion(best))
    }
}

/// Whether one of two names is the other with letters left out, and both begin with the same:
/// `ceil_div` for `cdiv`.
fn abbreviates(name: &str, known: &str) -> bool {
    let (short, long) = if name.len() < known.len() { (name, known) } else { (known, name) };
    let mut rest = long.chars();
    let is_part = short.chars().all(|letter| rest.any(|other| other == letter));
    is_part && short.len() >= LEAST_LETTERS && name.chars().next() == known.chars().next()
}
