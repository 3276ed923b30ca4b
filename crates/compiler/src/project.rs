//! The view across files: what a name means, what is a kernel. No file is read here; whoever owns
//! the files answers through [`Sources`].
//!
//! Nothing is executed. A name is followed through imports, re-exports, aliases and star imports
//! to the item that binds it. Where a binding depends on run time (`try`/`except` imports, `if` at
//! module level), one that leads to Triton counts before what stands in for it, the body of `try`
//! before `except`, and of several branches the last one that can be followed.

use std::sync::Arc;

use crate::hir::{Body, Class, Expr, ExprId, Function, Item, ItemKind, Module, Name, SourceMap};
use crate::source::{FileId, LineIndex};
use crate::specialization::{Facts, Usage};

mod annotations;
mod arrays;
mod conditions;
mod constants;
mod decorators;
mod enumeration;
pub(crate) mod environment;
mod failing;
pub(crate) mod installation;
mod kernels;
pub(crate) mod launchers;
mod memory;
mod named_tuple;
pub mod paths;
mod resolve;
pub(crate) mod routes;
#[cfg(test)]
mod tests;
pub(crate) mod triton;
pub(crate) mod ways;

pub use annotations::constexpr_params;
pub(crate) use annotations::{is_constexpr, may_be_of_torch};
pub use arrays::{ArrayHead, MAX_ARRAY_HEADER};
pub(crate) use conditions::compare_python;
pub(crate) use constants::{given_ones, is_given_constants};
pub use decorators::{Decorator, callee, calls_plainly, decorators, is_jit};
pub(crate) use decorators::{is_marked_builtin, takes_what_it_is_given};
pub use enumeration::{Also, Enumeration};
pub(crate) use enumeration::{enumeration, is_member_name};
pub(crate) use failing::{is_expected_to_fail, takes_exceptions};
pub use kernels::{
    Kernel, called_from_jit, callees, concerns_kernels, is_broken, jit_functions, kernel,
    kernel_head, kernels, launched_by, used_files, with_callees,
};
pub(crate) use kernels::{
    in_class, is_entry, is_helper_of_others, is_method, launch_scope, launching_item, may_be_helper,
};
pub(crate) use kernels::{
    is_template, is_wrapped_by_call, is_wrapped_by_known_calls, wrapping_calls,
};
pub use launchers::launching_names;
pub use memory::MemorySources;
pub use named_tuple::{Field, named_tuple_fields};
pub(crate) use resolve::{GIVES_KERNEL, fact, is_external, resolve_before, resolve_expr_before};
pub(crate) use resolve::{never_runs, resolve_member_under, resolve_under};
pub use resolve::{resolve, resolve_expr, resolve_item, resolve_member};
pub use routes::calling_names;
pub use ways::{Imports, Ways, find_imports, imported_files};

/// The files that analysis may look at.
pub trait Sources {
    /// The lowered module of `file`; `None` when the file is gone or is not text.
    fn module(&self, file: FileId) -> Option<Arc<Module>>;

    /// The text of `file`.
    fn text(&self, file: FileId) -> Option<Arc<str>>;

    /// Where the lines of [`Sources::text`] begin. An owner of files keeps them.
    fn lines(&self, file: FileId) -> Option<Arc<LineIndex>> {
        Some(Arc::new(LineIndex::new(&self.text(file)?)))
    }

    /// The path of `file` as users see it.
    fn path(&self, file: FileId) -> String;

    /// The file that `from` means by the module `path` after `level` leading dots. A package is
    /// its `__init__.py`. `None` when no such file is known; [`paths::candidates`] lists where to
    /// look.
    fn import(&self, from: FileId, level: u32, path: &[Name]) -> Option<FileId>;

    /// Called before the inside of a function or class is looked at: the statements of the one,
    /// the methods of the other. An owner of files may keep answers that depend on the heads of
    /// items, and on the insides that were looked at; see [`crate::hir::apart`].
    fn look_inside(&self, _at: ItemRef) {}

    /// Whether each parameter of the jit function `at` may be written to, where the owner of files
    /// keeps that; see [`may_write`](crate::specialization::may_write).
    fn written(&self, _at: ItemRef) -> Option<Arc<[bool]>> {
        None
    }

    /// How the jit function `at` uses its parameters, where the owner of files keeps that; see
    /// [`usage`](crate::specialization::usage).
    fn usage(&self, _at: ItemRef) -> Option<Usage> {
        None
    }

    /// The jit functions that the jit function `at` names, where the owner of files keeps that; see
    /// [`callees`](kernels::callees).
    fn callees(&self, _at: ItemRef) -> Option<Arc<[ItemRef]>> {
        None
    }

    /// What the imports of `file` bind, where the owner of files keeps that; see [`find_imports`].
    fn imports(&self, _file: FileId) -> Option<Imports> {
        None
    }

    /// What `file` has to do with others, where the owner of files keeps that; see [`Ways::of`].
    fn ways(&self, _file: FileId) -> Option<Arc<Ways>> {
        None
    }

    /// Where to keep what is found out about items, if files never change.
    fn facts(&self) -> Option<&Facts> {
        None
    }

    /// Called now and then by what takes long. An owner of files that changed unwinds from here.
    fn checkpoint(&self) {}

    /// Compute capability that kernels are lowered for, such as 80 for sm_80.
    fn capability(&self) -> u32 {
        90
    }

    /// What the header of the array at `path`, which counts from the folder of `from`, says; `None`
    /// when that is not known.
    fn array(&self, _from: FileId, _path: &str) -> Option<ArrayHead> {
        None
    }

    /// Other files whose host code launches kernels of `file`: those with `file` among their
    /// [`used_files`], as far as the owner of the files knows them.
    fn importers(&self, _file: FileId) -> Vec<FileId> {
        Vec::new()
    }
}

/// An item of a file: the file and the index into [`Module::items`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemRef {
    /// The file.
    pub file: FileId,
    /// Index into the items of the file's module.
    pub index: u32,
}

/// A place from which names are looked up.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The file.
    pub file: FileId,
    /// Names of the functions and classes around the place, outermost first; empty at module
    /// level. The body of a function lies in [`Item::body_scope`].
    pub path: &'a [Name],
}

/// What a name or a dotted path means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// A module of the `triton` package by its canonical path inside it: empty for `triton`
    /// itself, `language`, `language.math`, `language.extra.libdevice`.
    TritonModule(Arc<str>),
    /// A member of such a module: `jit`, `cdiv`, `language.load`,
    /// `language.extra.libdevice.rsqrt`. The table of builtins says whether it exists.
    Triton(Arc<str>),
    /// A function marked `@triton.jit`.
    Jit(ItemRef),
    /// A function marked `@triton.constexpr_function`.
    ConstexprFunction(ItemRef),
    /// A plain Python function.
    Function(ItemRef),
    /// A class.
    Class(ItemRef),
    /// `X = tl.constexpr(value)` at module level. Read it with [`constant`].
    Constexpr(ItemRef),
    /// Another module-level binding. Read it with [`constant`], which also tells whether it is
    /// annotated.
    Constant(ItemRef),
    /// A file of the project.
    File(FileId),
    /// A folder of the project that is a package without a file of its own, by its path as this file
    /// imports modules of it.
    Folder(FileId, Vec<Name>),
    /// A module, or member of a module, that is outside of what can be read, by dotted path:
    /// `["torch", "float16"]`.
    External(Vec<Name>),
    /// Bound, in a way that is not followed.
    Unknown,
    /// Nothing binds it. Python's builtins (`len`, `range`) are not bound by anything here.
    Undefined,
}

/// The value of a module-level binding.
#[derive(Debug, Clone)]
pub struct Constant {
    /// Holds the value.
    pub body: Arc<Body>,
    /// Where its parts stand.
    pub map: Arc<SourceMap>,
    /// The value; for `X = tl.constexpr(value)` the argument.
    pub value: ExprId,
    /// The annotation, such as `tl.constexpr`.
    pub annotation: Option<ExprId>,
}

/// The item behind `at`.
pub fn item(sources: &dyn Sources, at: ItemRef) -> Option<Item> {
    sources.module(at.file)?.items.get(at.index as usize).cloned()
}

/// The function behind `at`, if it is one.
pub fn function(sources: &dyn Sources, at: ItemRef) -> Option<Arc<Function>> {
    sources.look_inside(at);
    head(sources, at)
}

/// The function behind `at`, if it is one, for whoever looks at its head alone: parameters,
/// decorators and annotations.
pub fn head(sources: &dyn Sources, at: ItemRef) -> Option<Arc<Function>> {
    match item(sources, at)?.kind {
        ItemKind::Function(function) => Some(function),
        _ => None,
    }
}

/// The class behind `at`, if it is one; also one that `namedtuple(...)` makes.
pub fn class(sources: &dyn Sources, at: ItemRef) -> Option<Arc<Class>> {
    sources.look_inside(at);
    match item(sources, at)?.kind {
        ItemKind::Class(class) => Some(class),
        ItemKind::Assign { body, map, value, .. } => {
            named_tuple::class(&body, &map, value).map(Arc::new)
        }
        _ => None,
    }
}

/// The value bound by `at`, if it is an assignment; see [`Resolution::Constexpr`].
pub fn constant(sources: &dyn Sources, at: ItemRef) -> Option<Constant> {
    let ItemKind::Assign { body, map, value, annotation } = item(sources, at)?.kind else {
        return None;
    };
    let value = match &body.exprs[value] {
        Expr::Call { args, .. }
            if resolve_item(sources, at) == Resolution::Constexpr(at) && args.len() == 1 =>
        {
            args[0].value
        }
        _ => value,
    };
    Some(Constant { body, map, value, annotation })
}

/// Where an item's own statement looks names up, as [`Scope::path`].
pub(crate) fn item_scope(sources: &dyn Sources, at: ItemRef) -> Vec<Name> {
    item(sources, at).map(|item| item.scope).unwrap_or_default()
}
