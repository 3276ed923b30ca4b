//! What host code misspells of the project's own: attributes of its classes, and keywords of its
//! functions.

use rustc_hash::FxHashSet;

use super::keyword_args;
use super::pieces::{Host, Piece, abbreviates};
use crate::builtins::torch;
use crate::diagnostic::{Code, Diagnostic, misspelled};
use crate::hir::collections::root;
use crate::hir::{Class, Expr, ExprId, Item, ItemKind, Name, ParamKind, Stmt};
use crate::project::{
    ItemRef, Resolution, Scope, function, item, resolve_expr, takes_what_it_is_given,
};
use crate::source::{FileRange, TextRange};

/// The class whose methods get a context.
const FUNCTION: &str = "torch.autograd.Function";
/// The same one by the module that defines it.
const DEFINED_FUNCTION: &str = "torch.autograd.function.Function";
/// The method that gets the context of a `forward` without one.
const SETS_UP: &str = "setup_context";
/// The class of modules.
const MODULE: &str = "torch.nn.Module";

/// Methods by which a class has attributes that its text does not show.
const OPENING: &[&str] = &["__getattr__", "__getattribute__", "__dir__"];

/// What a piece of host code asks of the project that it does not have.
pub(super) fn check(host: &Host<'_>, piece: &Piece<'_>) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = piece
        .attributes()
        .filter_map(|attribute| attribute_of_own(host, piece, attribute))
        .collect();
    for (callee, args) in piece.calls() {
        let named = keyword_args(args);
        found.extend(named.filter_map(|argument| keyword_of_own(host, piece, callee, argument)));
    }
    found
}

/// A keyword that a function of the project does not have.
fn keyword_of_own(
    host: &Host<'_>,
    piece: &Piece<'_>,
    callee: ExprId,
    argument: (&Name, ExprId),
) -> Option<Diagnostic> {
    let Resolution::Function(at) = host.meaning(piece, callee) else { return None };
    // Of several that branches bind, any may be there.
    let name = root(piece.body, callee)?;
    if host.module.binds_again(name) {
        return None;
    }
    let called = item(host.sources, at)?;
    let function = function(host.sources, at)?;
    let is_one = host.sources.module(at.file)?.items_named(&called.name).count() == 1;
    let is_plain = is_one && called.scope.is_empty() && takes_what_it_is_given(host.sources, at);
    let takes_all = function.params.iter().any(|param| param.kind == ParamKind::KwArgs);
    if !is_plain || takes_all || function.params.iter().any(|param| param.name == *argument.0) {
        return None;
    }
    let known = function.params.iter().map(|param| &*param.name);
    let found = host.keyword(piece, argument, &function.name, known)?;
    let at = FileRange { file: at.file, range: called.name_range };
    Some(found.with_related(at, "the function is defined here"))
}

/// An attribute of an object of a class of the file, or of a context, that nothing sets.
fn attribute_of_own(
    host: &Host<'_>,
    piece: &Piece<'_>,
    (value, attr, range): (ExprId, &Name, TextRange),
) -> Option<Diagnostic> {
    let name = piece.body.exprs[value].as_name()?;
    if attr.starts_with("__") || host.sets(attr) {
        return None;
    }
    let (class, is_context) = match host.class_around(piece, name) {
        Some(found) => found,
        None => (host.class_of(piece, name)?, false),
    };
    let of_contexts = torch::instance_members(FUNCTION)?;
    if is_context && of_contexts.contains(&**attr) {
        return None;
    }
    let mut known = if is_context { host.names_set() } else { host.attributes(class)? };
    if is_context {
        known.extend(names(of_contexts));
    }
    if known.contains(attr) || !(is_context || host.is_whole(class, attr, &known)) {
        return None;
    }
    let candidates = || known.iter().map(|name| &**name);
    let best = misspelled(attr, candidates())
        .or_else(|| candidates().filter(|known| abbreviates(attr, known)).min())?;
    let message = match is_context {
        true => format!("the context has no attribute `{attr}`"),
        false => format!("`{}` has no attribute `{attr}`", class.name),
    };
    Some(host.misspelled(Code::NoAttribute, range, message, best))
}

fn names(of: &torch::Names) -> impl Iterator<Item = Name> {
    of.iter().map(|name| Name::from(*name))
}

impl Host<'_> {
    fn class_named(&self, path: &[Name]) -> Option<&Class> {
        let (name, scope) = path.split_last()?;
        let mut items = self.module.items_named(name).map(|at| &self.module.items[at as usize]);
        match (items.find(|item| item.scope == scope), items.next()) {
            (Some(Item { kind: ItemKind::Class(class), .. }), None) => Some(class),
            _ => None,
        }
    }

    /// The class of whose methods the piece is one, where `name` is its first parameter; and whether
    /// that is a context instead of an object.
    fn class_around(&self, piece: &Piece<'_>, name: &Name) -> Option<(&Class, bool)> {
        let first = piece.params.first().filter(|first| first.name == *name)?;
        let (method, path) = piece.path.split_last()?;
        if piece.rebinds(&first.name) {
            return None;
        }
        let class = self.class_named(path)?;
        let method = class.methods.iter().find(|known| known.name == *method)?;
        let mut decorators = method.decorators.iter().map(|id| &method.body.exprs[*id]);
        let is_function = |base: &String| [FUNCTION, DEFINED_FUNCTION].contains(&&**base);
        // With `setup_context`, `forward` gets no context.
        let has_setup = class.methods.iter().any(|known| &*known.name == SETS_UP);
        let is_context = self.bases(class)?.iter().any(is_function)
            && !(has_setup && &*method.name == "forward")
            && matches!(&*method.name, "forward" | "backward" | SETS_UP)
            && decorators.all(|decorator| decorator.is_name("staticmethod"));
        (is_context || method.decorators.is_empty()).then_some((class, is_context))
    }

    /// Whether a piece is the static `backward` of a subclass of `torch.autograd.Function`, which gets a
    /// context and gradients.
    pub(super) fn is_backward(&self, piece: &Piece<'_>) -> bool {
        let is_named = piece.path.last().is_some_and(|name| &**name == "backward");
        let context = piece.params.first().filter(|_| is_named);
        context.is_some_and(|context| {
            self.class_around(piece, &context.name).is_some_and(|(_, is_context)| is_context)
        })
    }

    /// The attributes that the methods of a class ask of its objects.
    fn asked_of<'c>(&self, class: &'c Class) -> impl Iterator<Item = &'c Name> {
        class.methods.iter().filter(|method| method.decorators.is_empty()).flat_map(|method| {
            let own = method.params.first().map(|param| &param.name);
            method.body.exprs.values().filter_map(move |expr| match expr {
                Expr::Attribute { value, attr } => {
                    let is_own = own.is_some_and(|own| method.body.exprs[*value].is_name(own));
                    (is_own && !attr.starts_with("__")).then_some(attr)
                }
                _ => None,
            })
        })
    }

    /// Whether all that the objects of a class have seems to be in sight: no other class derives from
    /// it, and its methods ask for nothing but `attr` that is not, and for that once.
    fn is_whole(&self, class: &Class, attr: &Name, known: &FxHashSet<Name>) -> bool {
        let derives = |item: &Item| match &item.kind {
            ItemKind::Class(other) => {
                other.bases.iter().any(|base| other.body.exprs[*base].is_name(&class.name))
            }
            _ => false,
        };
        let unknown = self.asked_of(class).filter(|asked| !known.contains(*asked));
        let (same, others): (Vec<&Name>, Vec<&Name>) = unknown.partition(|asked| *asked == attr);
        same.len() <= 1 && others.is_empty() && !self.module.items.iter().any(derives)
    }

    /// The class of this file of which a name of the piece is an instance.
    fn class_of(&self, piece: &Piece<'_>, name: &Name) -> Option<&Class> {
        let mut bound = piece.body.stmts.values().filter_map(|stmt| match stmt {
            Stmt::Assign { targets, value }
                if matches!(targets.as_slice(), [target] if piece.body.exprs[*target].is_name(name)) =>
            {
                Some(*value)
            }
            _ => None,
        });
        let value = bound.next()?;
        let is_bound_once = || piece.body.bound_names().filter(|bound| *bound == name).count() == 1;
        let is_param = piece.params.iter().any(|param| param.name == *name);
        let Expr::Call { callee, .. } = piece.body.exprs[value] else { return None };
        match self.meaning(piece, callee) {
            Resolution::Class(ItemRef { file, index })
                if file == self.file && !is_param && is_bound_once() =>
            {
                let item = &self.module.items[index as usize];
                let path: Vec<Name> = item.scope.iter().chain([&item.name]).cloned().collect();
                self.class_named(&path)
            }
            _ => None,
        }
    }

    /// The dotted paths of a class's bases; `None` where one is not outside of the project.
    fn bases(&self, class: &Class) -> Option<Vec<String>> {
        let scope = Scope { file: self.file, path: &[] };
        let path = |base: &ExprId| match resolve_expr(self.sources, scope, &class.body, *base) {
            Resolution::External(path) => Some(path.join(".")),
            _ => class.body.exprs[*base].is_name("object").then(String::new),
        };
        class.bases.iter().map(path).collect()
    }

    /// What the objects of a class have, as far as that is all in sight; what is set of any object
    /// of the file counts.
    fn attributes(&self, class: &Class) -> Option<FxHashSet<Name>> {
        let mut known = self.names_set();
        for base in self.bases(class)? {
            match base.as_str() {
                "" => {}
                MODULE => known.extend(names(torch::instance_members(MODULE)?)),
                _ => return None,
            }
        }
        let is_open = class.methods.iter().any(|method| OPENING.contains(&&*method.name));
        if is_open || !class.decorators.is_empty() {
            return None;
        }
        let inside = self.module.items.iter().filter(|item| item.scope.last() == Some(&class.name));
        known.extend(inside.map(|item| item.name.clone()));
        known.extend(class.methods.iter().map(|method| method.name.clone()));
        known.extend(class.fields.iter().map(|(name, ..)| name.clone()));
        Some(known)
    }
}
