//! How a jit function uses its parameters, read off its body without types.
//!
//! A parameter is a pointer when it flows, through sums, local variables and calls of jit
//! functions, into the address of a load, store or atomic operation. Of several summands the
//! address is the first one that is not used as a number elsewhere.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::hir::{Body, Expr, ExprId, Function, Literal, Stmt};
use crate::project::{
    ItemRef, Resolution, Scope, Sources, function, item, resolve_expr, resolve_member, with_callees,
};

mod calls;
mod conditions;
mod expressions;
mod lanes;
mod numbers;
mod origins;
mod paths;
mod writes;

pub(super) use calls::OPTIONS;
use expressions::called_name;

pub(crate) use lanes::leaves_lanes;
pub use writes::may_write;

/// Calls of jit functions are followed this far.
const MAX_CALLS: u32 = 6;

/// Local variables are followed this far.
const MAX_TRACE: u32 = 6;

/// How one parameter is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Use {
    /// Its elements are loaded, stored or updated.
    pub(super) pointer: bool,
    /// Number of offsets that descriptor methods are called with on it; 0 when none are.
    pub(super) descriptor_rank: usize,
    /// It is an operand of arithmetic whatever the conditions are, so it cannot be `None`.
    pub(super) required: bool,
    /// It is an operand of arithmetic.
    pub(super) operand: bool,
    /// What is loaded through it is an index, a bound or a bit field.
    pub(super) integer_elements: bool,
    /// What is loaded through it is added to a variable that starts as an integer literal, or is
    /// compared and exchanged with integer literals.
    pub(super) counts: bool,
    /// It takes part in integer arithmetic, a bound or an order comparison.
    pub(super) number: bool,
    /// It takes part in floating-point arithmetic.
    pub(super) float: bool,
    /// It must be an integer: it bounds a loop or indices, or is an operand of `//`, `&`, `<<`.
    pub(super) integral: bool,
    /// A pointer is made of it.
    pub(super) address: bool,
    /// It is a number of bits that something is shifted by.
    pub(super) shift: bool,
    /// It is an extent of a tile.
    pub(super) extent: bool,
    /// It is a condition by itself.
    pub(super) condition: bool,
    /// It is the mask of a load or store.
    pub(super) mask: bool,
    /// An outermost `if` compares it with a number.
    pub(super) chooses: bool,
    /// It is compared with `None`.
    pub(super) none_test: bool,
    /// It is compared with a string.
    pub(super) text: bool,
    /// It is an option of a builtin that is a string: the string's usual value.
    pub(super) option: Option<&'static str>,
    /// Each mention of it says how a loop is pipelined, on which no value depends.
    pub(super) paces: bool,
    /// It is a dtype.
    pub(super) dtype: bool,
    /// It bounds a loop that is unrolled.
    pub(super) unrolled: bool,
    /// It is called.
    pub(super) called: bool,
    /// It is indexed by numbers or taken apart, so it is a tuple.
    pub(super) items: bool,
    /// Number of variables that it is taken apart into; 0 where it is not.
    pub(super) parts: usize,
    /// The first value that it is compared with for equality: a string or a number.
    pub(super) compared: Option<Compared>,
}

/// A value that a parameter is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Compared {
    /// The function that compares.
    pub(super) at: ItemRef,
    /// The value, in that function's body.
    pub(super) value: ExprId,
}

/// What specializations follow from of a jit function's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// How each parameter is used.
    pub(super) uses: Arc<[Use]>,
    /// Whether it multiplies matrices.
    pub(super) has_dot: bool,
    /// Whether it makes columns of tiles (`x[:, None]`), as those do whose tiles have more than one axis.
    pub(super) has_columns: bool,
    /// Whether a condition in it, or in what it calls, asks for types.
    pub(super) asks_types: bool,
}

/// What specializations follow from of the body of the jit function `at`. An owner of files that keeps
/// it need not bind launches again when a body changes and this does not.
pub fn usage(sources: &dyn Sources, at: ItemRef) -> Usage {
    sources.usage(at).unwrap_or_else(|| {
        let asks = |at| function(sources, at).is_some_and(|it| asks_types(&it.body));
        let asks_types = with_callees(sources, at).into_iter().any(asks);
        let function = function(sources, at);
        let body_has = |what: fn(&Body) -> bool| {
            function.as_ref().is_some_and(|function| what(&function.body))
        };
        Usage {
            uses: uses(sources, at),
            has_dot: body_has(has_dot),
            has_columns: body_has(has_columns),
            asks_types,
        }
    })
}

/// Uses of every parameter, in order.
pub(crate) fn uses(sources: &dyn Sources, at: ItemRef) -> Arc<[Use]> {
    let find = || {
        let mut finder = Finder { sources, known: FxHashMap::default(), depth: 0 };
        Arc::from(finder.uses(at))
    };
    match sources.facts() {
        Some(facts) => facts.uses.get(at, find),
        None => find(),
    }
}

impl Use {
    /// Certainly a compile-time value: an extent, a bound of an unrolled loop, a condition, a dtype
    /// or a function.
    pub(crate) fn is_constant(&self) -> bool {
        self.extent || self.unrolled || self.condition || self.text || self.dtype || self.called
    }

    /// No number, whatever the name suggests: a dtype, a string or a function.
    pub(crate) fn is_no_number(&self) -> bool {
        self.dtype || self.text || self.called || self.option.is_some()
    }
}

fn asks_types(body: &Body) -> bool {
    let is_type = |id: ExprId| matches!(&body.exprs[id], Expr::Attribute { attr, .. } if TYPES.contains(&&**attr));
    let in_stmts = body.stmts.values().filter_map(|stmt| match stmt {
        Stmt::If { test, .. } | Stmt::While { test, .. } | Stmt::Assert { test, .. } => Some(*test),
        _ => None,
    });
    let in_exprs = body.exprs.iter().filter_map(|(id, expr)| match expr {
        Expr::IfElse { condition, .. } => Some(*condition),
        Expr::Compare { .. } => Some(id),
        // How wide it is, or whether it is a float, may lead anywhere.
        Expr::Attribute { value, .. } if is_type(*value) && !is_type(id) => Some(id),
        _ => None,
    });
    in_stmts.chain(in_exprs).any(|test| names_type(body, test))
}

/// Attributes that are types.
const TYPES: &[&str] = &["dtype", "element_ty", "scalar", "type"];

fn names_type(body: &Body, id: ExprId) -> bool {
    let expr = &body.exprs[id];
    let mut names = matches!(expr, Expr::Attribute { attr, .. } if TYPES.contains(&&**attr));
    expr.for_each_child(|child| names = names || names_type(body, child));
    names
}

fn has_dot(body: &Body) -> bool {
    body.exprs.values().any(|expr| match expr {
        Expr::Call { callee, .. } => {
            matches!(called_name(body, *callee), Some("dot" | "dot_scaled"))
        }
        _ => false,
    })
}

fn has_columns(body: &Body) -> bool {
    let is_none = |expr: ExprId| matches!(body.exprs[expr], Expr::Literal(Literal::None));
    body.exprs.values().any(|expr| match expr {
        Expr::Subscript { index, .. } => match &body.exprs[*index] {
            Expr::Tuple(items) => {
                items.len() > 1 && items.last().is_some_and(|&last| is_none(last))
            }
            _ => false,
        },
        _ => false,
    })
}

struct Finder<'a> {
    sources: &'a dyn Sources,
    known: FxHashMap<ItemRef, Vec<Use>>,
    depth: u32,
}

impl Finder<'_> {
    fn uses(&mut self, at: ItemRef) -> Vec<Use> {
        if let Some(known) = self.known.get(&at) {
            return known.clone();
        }
        let (Some(item), Some(function)) = (item(self.sources, at), function(self.sources, at))
        else {
            return Vec::new();
        };
        // A recursive call sees no use.
        self.known.insert(at, vec![Use::default(); function.params.len()]);
        let path = item.body_scope();
        let scope = Scope { file: at.file, path: &path };
        let mut body = BodyUses::new(at, &function);
        body.scan_operands();
        body.scan_items();
        body.scan_types();
        body.scan_numbers();
        body.scan_conditions();
        body.scan_calls(self, scope);
        body.scan_steps();
        body.scan_counters();
        body.scan_floats();
        body.scan_pacing();
        let uses = body.uses;
        self.known.insert(at, uses.clone());
        uses
    }

    fn callee_uses(&mut self, callee: Resolution) -> Option<(ItemRef, Vec<Use>)> {
        if self.depth >= MAX_CALLS {
            return None;
        }
        let Resolution::Jit(at) = callee else { return None };
        self.depth += 1;
        let uses = self.uses(at);
        self.depth -= 1;
        Some((at, uses))
    }
}

/// What a function calls, resolved once per name: most of it is `tl` and something.
struct Callees<'a> {
    sources: &'a dyn Sources,
    scope: Scope<'a>,
    body: &'a Body,
    names: FxHashMap<&'a str, Resolution>,
}

impl<'a> Callees<'a> {
    /// What the callee is if it is a jit function, or else anything that is none.
    fn jit_function(&mut self, callee: ExprId) -> Resolution {
        match &self.body.exprs[callee] {
            Expr::Name(_) => self.name(callee).clone(),
            Expr::Attribute { value, attr } if matches!(self.body.exprs[*value], Expr::Name(_)) => {
                let sources = self.sources;
                match self.name(*value) {
                    module @ Resolution::File(_) => resolve_member(sources, module, attr),
                    _ => Resolution::Unknown,
                }
            }
            _ => resolve_expr(self.sources, self.scope, self.body, callee),
        }
    }

    fn name(&mut self, id: ExprId) -> &Resolution {
        let Expr::Name(name) = &self.body.exprs[id] else { return &Resolution::Unknown };
        let resolve = || resolve_expr(self.sources, self.scope, self.body, id);
        self.names.entry(name).or_insert_with(resolve)
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The parameter itself, or it plus offsets.
    Param(usize),
    /// An element loaded through the parameter.
    Loaded(usize),
}

struct BodyUses<'a> {
    at: ItemRef,
    body: &'a Body,
    params: FxHashMap<&'a str, usize>,
    /// Values of local variables, in source order.
    locals: FxHashMap<&'a str, Vec<ExprId>>,
    uses: Vec<Use>,
    tracing: Vec<&'a str>,
}

impl<'a> BodyUses<'a> {
    fn new(at: ItemRef, function: &'a Function) -> BodyUses<'a> {
        let body = &function.body;
        let params =
            function.params.iter().enumerate().map(|(at, param)| (&*param.name, at)).collect();
        let uses = vec![Use::default(); function.params.len()];
        let mut scan =
            BodyUses { at, body, params, locals: FxHashMap::default(), uses, tracing: vec![] };
        for stmt in body.stmts.values() {
            match stmt {
                Stmt::Assign { targets, value } => {
                    targets.iter().for_each(|target| scan.bind(*target, *value));
                }
                Stmt::AnnAssign { target, value: Some(value), .. } => scan.bind(*target, *value),
                _ => {}
            }
        }
        for expr in body.exprs.values() {
            if let Expr::ListComp { target, iterable, .. } = expr
                && let Expr::Tuple(items) | Expr::List(items) = &body.exprs[*iterable]
            {
                items.iter().for_each(|item| scan.bind(*target, *item));
            }
        }
        scan
    }

    fn bind(&mut self, target: ExprId, value: ExprId) {
        match (&self.body.exprs[target], &self.body.exprs[value]) {
            (Expr::Name(name), _) => self.locals.entry(name).or_default().push(value),
            (Expr::Tuple(targets), Expr::Tuple(values)) if targets.len() == values.len() => {
                for (target, value) in targets.iter().zip(values) {
                    self.bind(*target, *value);
                }
            }
            _ => {}
        }
    }
}
