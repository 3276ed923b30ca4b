//! Names that configurations may set which cannot all be computed: a name is the key of a
//! dictionary or a keyword, and what makes the configurations spells it, however it chooses.

use rustc_hash::FxHashSet;

use crate::builtins::TORCH;
use crate::hir::{
    ArgKind, Body, Expr, ExprId, Function, Item, ItemKind, Literal, MainBlock, Name, Param, Stmt,
};
use crate::project::{ItemRef, Resolution, Scope, Sources, item, resolve_expr};

/// Items looked at for one question; beyond, any name may be set.
const MAX_ITEMS: usize = 200;

/// Modules whose functions bring no names of arguments.
const NAMELESS: &[&str] =
    &["collections", "copy", "functools", "itertools", "math", "operator", "typing", TORCH];

/// Functions and classes of Python that bring no names of arguments.
const BUILTINS: &[&str] = &[
    "abs",
    "all",
    "any",
    "bool",
    "dict",
    "divmod",
    "enumerate",
    "filter",
    "float",
    "frozenset",
    "hasattr",
    "int",
    "isinstance",
    "len",
    "list",
    "map",
    "max",
    "min",
    "next",
    "pow",
    "print",
    "range",
    "reversed",
    "round",
    "set",
    "sorted",
    "str",
    "sum",
    "tuple",
    "zip",
];

/// Strings and keywords in all that the expression `id` may run; `None` where something else may
/// bring names: what is read from files, made of parts, or not followed.
pub(super) fn spelled(
    sources: &dyn Sources,
    scope: Scope<'_>,
    body: &Body,
    id: ExprId,
) -> Option<FxHashSet<Name>> {
    let (seen, names, unbound) = Default::default();
    let mut reader = Reader { sources, seen, names, unbound, open: false };
    reader.expr(scope, body, id);
    reader.close(&body.bound_names().collect());
    (!reader.open).then_some(reader.names)
}

struct Reader<'a> {
    sources: &'a dyn Sources,
    seen: FxHashSet<ItemRef>,
    names: FxHashSet<Name>,
    /// Names in the body being read that no item binds.
    unbound: FxHashSet<Name>,
    /// Whether other names may come from somewhere.
    open: bool,
}

impl Reader<'_> {
    /// An expression with those inside.
    fn expr(&mut self, scope: Scope<'_>, body: &Body, id: ExprId) {
        self.one(scope, body, id);
        body.exprs[id].for_each_child(|child| self.expr(scope, body, child));
    }

    /// Every expression and statement of a body that binds `params` as well.
    fn all(&mut self, scope: Scope<'_>, body: &Body, params: &[Param]) {
        let around = std::mem::take(&mut self.unbound);
        body.exprs.iter().for_each(|(id, _)| self.one(scope, body, id));
        let params = params.iter().map(|param| &param.name);
        self.close(&body.bound_names().chain(params).collect());
        self.unbound = around;
        self.open |= body.stmts.values().any(|stmt| match stmt {
            Stmt::Unsupported(node) => {
                matches!(*node, "ClassDef" | "Global" | "Nonlocal" | "Match")
            }
            Stmt::Error => true,
            _ => false,
        });
    }

    fn one(&mut self, scope: Scope<'_>, body: &Body, id: ExprId) {
        match &body.exprs[id] {
            Expr::Literal(Literal::Str(text)) => {
                self.names.insert(text.clone());
            }
            Expr::Call { args, .. } => {
                self.names.extend(args.iter().filter_map(|arg| match &arg.kind {
                    ArgKind::Keyword(name) => Some(name.clone()),
                    _ => None,
                }));
            }
            Expr::Name(_) | Expr::Attribute { .. } => self.named(scope, body, id),
            Expr::FString(_) | Expr::Missing | Expr::Yield { .. } | Expr::Unsupported(_) => {
                self.open = true
            }
            _ => {}
        }
    }

    /// Follows what a name or a dotted path means.
    fn named(&mut self, scope: Scope<'_>, body: &Body, id: ExprId) {
        match resolve_expr(self.sources, scope, body, id) {
            Resolution::Function(at)
            | Resolution::ConstexprFunction(at)
            | Resolution::Constant(at)
            | Resolution::Constexpr(at) => self.definitions(at),
            // Others may set its attributes.
            Resolution::Class(_) => self.open = true,
            Resolution::External(path) => {
                self.open |= path.first().is_none_or(|module| !NAMELESS.contains(&&**module));
            }
            Resolution::Unknown => {
                self.open |= matches!(&body.exprs[id], Expr::Name(_));
            }
            Resolution::Undefined => {
                if let Expr::Name(name) = &body.exprs[id] {
                    self.unbound.insert(name.clone());
                }
            }
            _ => {}
        }
    }

    /// Ends a body that binds `known`: other names are those of Python, or may mean anything.
    fn close(&mut self, known: &FxHashSet<&Name>) {
        let names = std::mem::take(&mut self.unbound);
        self.open |= names.iter().any(|name| !known.contains(name) && !BUILTINS.contains(&&**name));
    }

    /// Everything that the name of `at` may be bound to.
    fn definitions(&mut self, at: ItemRef) {
        let (Some(first), Some(module)) = (item(self.sources, at), self.sources.module(at.file))
        else {
            self.open = true;
            return;
        };
        for index in module.items_named(&first.name) {
            let (item, at) = (&module.items[index as usize], ItemRef { index, ..at });
            if item.scope == first.scope && self.seen.insert(at) {
                self.definition(at, item, &module.mains);
            }
        }
    }

    fn definition(&mut self, at: ItemRef, item: &Item, mains: &[MainBlock]) {
        if self.open || self.seen.len() > MAX_ITEMS {
            self.open = true;
            return;
        }
        let file = at.file;
        match &item.kind {
            ItemKind::Function(function) => self.function(at, item, function),
            ItemKind::Assign { body, value, .. } => {
                let around = std::mem::take(&mut self.unbound);
                self.expr(Scope { file, path: &item.scope }, body, *value);
                self.close(&body.bound_names().collect());
                self.unbound = around;
                // What it holds may be added to.
                let adds = |main: &&MainBlock| {
                    let mut names = main.body.exprs.values();
                    let named = names.any(|expr| *expr == Expr::Name(item.name.clone()));
                    named && !main.range.contains_range(item.range)
                };
                let changes = !matches!(body.exprs[*value], Expr::Name(_) | Expr::Attribute { .. });
                for main in mains.iter().filter(|_| changes).filter(adds) {
                    self.all(Scope { file, path: &[] }, &main.body, &[]);
                }
            }
            ItemKind::Import { .. } | ItemKind::ImportFrom { .. } => {}
            _ => self.open = true,
        }
    }

    fn function(&mut self, at: ItemRef, item: &Item, function: &Function) {
        self.sources.look_inside(at);
        let path = item.body_scope();
        self.all(Scope { file: at.file, path: &path }, &function.body, &function.params);
    }
}
