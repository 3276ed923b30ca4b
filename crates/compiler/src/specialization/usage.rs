//! How a jit function uses its parameters, read off its body without types.
//!
//! A parameter is a pointer when it flows, through sums, local variables and calls of jit
//! functions, into the address of a load, store or atomic operation. Of several summands the
//! address is the first one that is not used as a number elsewhere.

use rustc_hash::FxHashMap;

use crate::hir::{
    Arg, ArgKind, BinaryOp, Body, CompareOp, Expr, ExprId, Function, Literal, Name, Stmt, StmtId,
    UnaryOp,
};
use crate::project::{ItemRef, Resolution, Scope, Sources, function, item, resolve_expr};

/// Calls of jit functions are followed this far.
const MAX_CALLS: u32 = 6;

/// Local variables are followed this far.
const MAX_TRACE: u32 = 6;

/// How one parameter is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Use {
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
    /// What is loaded through it is added to a variable that starts as an integer literal.
    pub(super) counts: bool,
    /// It takes part in integer arithmetic, a bound or an order comparison.
    pub(super) number: bool,
    /// It takes part in floating-point arithmetic.
    pub(super) float: bool,
    /// It must be an integer: it bounds a loop or indices, or is an operand of `//`, `&`, `<<`.
    pub(super) integral: bool,
    /// It is an extent of a tile.
    pub(super) extent: bool,
    /// It is a condition by itself.
    pub(super) condition: bool,
    /// It is compared with `None`.
    pub(super) none_test: bool,
    /// It is compared with a string.
    pub(super) text: bool,
    /// It is a dtype.
    pub(super) dtype: bool,
    /// It bounds a loop that is unrolled.
    pub(super) unrolled: bool,
    /// It is called.
    pub(super) called: bool,
    /// It is indexed by numbers, so it is a tuple.
    pub(super) items: bool,
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

/// Uses of every parameter, in order.
pub(super) fn uses(sources: &dyn Sources, at: ItemRef) -> Vec<Use> {
    let mut finder = Finder { sources, known: FxHashMap::default(), depth: 0 };
    finder.uses(at)
}

/// Which parameters of a jit function certainly are compile-time values, in order: those that are
/// extents, bounds of unrolled loops, conditions, dtypes or functions.
pub(crate) fn constant_parameters(sources: &dyn Sources, at: ItemRef) -> Vec<bool> {
    let certain = |used: &Use| {
        used.extent || used.unrolled || used.condition || used.text || used.dtype || used.called
    };
    uses(sources, at).iter().map(certain).collect()
}

/// True when the function multiplies matrices.
pub(super) fn has_dot(body: &Body) -> bool {
    body.exprs.values().any(|expr| match expr {
        Expr::Call { callee, .. } => {
            matches!(called_name(body, *callee), Some("dot" | "dot_scaled"))
        }
        _ => false,
    })
}

/// True when the function makes columns of tiles (`x[:, None]`), as those do whose tiles have more
/// than one axis.
pub(super) fn has_columns(body: &Body) -> bool {
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
        body.scan_numbers();
        body.scan_conditions();
        body.scan_calls(self, scope);
        body.scan_steps();
        body.scan_counters();
        body.scan_floats();
        let uses = body.uses;
        self.known.insert(at, uses.clone());
        uses
    }

    fn callee_uses(
        &mut self,
        scope: Scope<'_>,
        body: &Body,
        callee: ExprId,
    ) -> Option<(ItemRef, Vec<Use>)> {
        if self.depth >= MAX_CALLS {
            return None;
        }
        let Resolution::Jit(at) = resolve_expr(self.sources, scope, body, callee) else {
            return None;
        };
        self.depth += 1;
        let uses = self.uses(at);
        self.depth -= 1;
        Some((at, uses))
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

    /// Where the value of an expression comes from, if from a parameter.
    fn origin(&mut self, id: ExprId) -> Option<Origin> {
        let body = self.body;
        match &body.exprs[id] {
            Expr::Name(name) => self.name_origin(name),
            Expr::Binary { op: BinaryOp::Add, lhs, rhs } => {
                let (left, right) = (self.origin(*lhs), self.origin(*rhs));
                self.address(left, right)
            }
            Expr::Binary { op: BinaryOp::Sub, lhs, .. } => self.origin(*lhs),
            Expr::Subscript { value, .. } => self.origin(*value),
            Expr::IfElse { on_true, on_false, .. } => {
                self.origin(*on_true).or_else(|| self.origin(*on_false))
            }
            Expr::Call { callee, args } if called_name(body, *callee) == Some("where") => {
                let chosen = choices(args);
                chosen.into_iter().find_map(|value| self.origin(value))
            }
            Expr::Call { callee, args } => self.call_origin(*callee, args),
            _ => None,
        }
    }

    /// Of two summands the one that is the address.
    fn address(&self, left: Option<Origin>, right: Option<Origin>) -> Option<Origin> {
        let is_number = |origin: Option<Origin>| match origin {
            Some(Origin::Param(at)) => self.uses[at].number && !self.uses[at].pointer,
            Some(Origin::Loaded(_)) => true,
            None => true,
        };
        match (is_number(left), is_number(right)) {
            (false, _) => left,
            (true, false) => right,
            (true, true) => left.filter(|left| matches!(left, Origin::Loaded(_))).or(right),
        }
    }

    fn name_origin(&mut self, name: &'a str) -> Option<Origin> {
        let values = self.locals.get(name).cloned().unwrap_or_default();
        if !self.tracing.contains(&name) {
            self.tracing.push(name);
            let found = values.into_iter().find_map(|value| self.origin(value));
            self.tracing.pop();
            if found.is_some() {
                return found;
            }
        }
        self.params.get(name).map(|at| Origin::Param(*at))
    }

    fn call_origin(&mut self, callee: ExprId, args: &[Arg]) -> Option<Origin> {
        let name = called_name(self.body, callee)?;
        let receiver = match self.body.exprs[callee] {
            Expr::Attribute { value, .. } => Some(value),
            _ => None,
        };
        match name {
            "load" | "atomic_add" | "atomic_cas" | "atomic_xchg" => {
                match self.origin(argument(args, 0, "pointer")?)? {
                    Origin::Param(at) => Some(Origin::Loaded(at)),
                    Origin::Loaded(_) => None,
                }
            }
            "multiple_of" | "max_contiguous" | "max_constancy" | "broadcast_to" | "expand_dims"
            | "cast" | "advance" | "reshape" | "trans" | "sum" | "max" | "min" | "cumsum"
            | "sort" | "flip" => {
                self.origin(argument(args, 0, "input").or_else(|| argument(args, 0, "base"))?)
            }
            "make_block_ptr" => self.origin(argument(args, 0, "base")?),
            "make_tensor_descriptor" => None,
            "to" | "item" => self.origin(receiver?),
            _ => None,
        }
    }

    fn param_at(&mut self, id: ExprId) -> Option<usize> {
        match self.origin(id)? {
            Origin::Param(at) => Some(at),
            Origin::Loaded(_) => None,
        }
    }

    /// The parameter that an expression names directly.
    fn direct(&self, id: ExprId) -> Option<usize> {
        match &self.body.exprs[id] {
            Expr::Name(name) if !self.locals.contains_key(&**name) => {
                self.params.get(&**name).copied()
            }
            _ => None,
        }
    }

    /// Marks operands of arithmetic, and those that are operands whatever the conditions are.
    fn scan_operands(&mut self) {
        let body = self.body;
        for expr in body.exprs.values() {
            if let Expr::Binary { lhs, rhs, .. } = expr {
                [lhs, rhs].into_iter().for_each(|operand| self.operand(*operand));
            }
        }
        for stmt in body.stmts.values() {
            if let Stmt::AugAssign { target, value, .. } = stmt {
                [target, value].into_iter().for_each(|operand| self.operand(*operand));
            }
        }
        for at in Paths(body).operands(&body.root) {
            let named = self.named(at);
            named.into_iter().for_each(|at| self.uses[at].required = true);
        }
    }

    fn operand(&mut self, operand: ExprId) {
        if let Some(at) = self.named(operand) {
            self.uses[at].operand = true;
        }
    }

    /// The parameter of this name, even when it is also assigned: a pointer that is moved is both
    /// a parameter and a variable.
    fn named(&self, id: ExprId) -> Option<usize> {
        match &self.body.exprs[id] {
            Expr::Name(name) => self.params.get(&**name).copied(),
            _ => None,
        }
    }

    /// Marks what is indexed by numbers: tiles are indexed by `None` and `:` only.
    fn scan_items(&mut self) {
        let body = self.body;
        for expr in body.exprs.values() {
            let Expr::Subscript { value, index } = expr else { continue };
            let is_number = match &body.exprs[*index] {
                Expr::Literal(Literal::Int(_)) => true,
                Expr::Name(name) => !self.params.contains_key(&**name),
                _ => false,
            };
            if let (true, Some(at)) = (is_number, self.direct(*value)) {
                self.uses[at].items = true;
            }
        }
    }

    /// Marks what moves a pointer in `pointer += offsets`.
    fn scan_steps(&mut self) {
        let body = self.body;
        for stmt in body.stmts.values() {
            let Stmt::AugAssign { target, value, .. } = stmt else { continue };
            match self.param_at(*target) {
                Some(base) if self.uses[base].pointer => self.offsets(*value, Some(base)),
                _ => {}
            }
        }
    }

    /// Marks data that a loop adds to a variable which starts as an integer literal: the variable
    /// keeps its type.
    fn scan_counters(&mut self) {
        let body = self.body;
        for stmt in body.stmts.values() {
            let (Stmt::For { body: inner, .. } | Stmt::While { body: inner, .. }) = stmt else {
                continue;
            };
            for stmt in inner {
                let Stmt::AugAssign { target, value, .. } = &body.stmts[*stmt] else { continue };
                if !self.starts_as_integer(*target) {
                    continue;
                }
                for leaf in leaves(body, *value) {
                    if let Some(Origin::Loaded(at)) = self.origin(leaf) {
                        self.uses[at].counts = true;
                    }
                }
            }
        }
    }

    fn starts_as_integer(&self, id: ExprId) -> bool {
        let Expr::Name(name) = &self.body.exprs[id] else { return false };
        let values = self.locals.get(&**name).map_or(&[][..], Vec::as_slice);
        let is_integer =
            |id: &ExprId| matches!(self.body.exprs[*id], Expr::Literal(Literal::Int(_)));
        !values.is_empty() && values.iter().all(is_integer)
    }

    /// Marks what takes part in arithmetic that no address can.
    fn scan_numbers(&mut self) {
        let body = self.body;
        for expr in body.exprs.values() {
            match expr {
                Expr::Binary { op, lhs, rhs } if *op != BinaryOp::Add => {
                    for operand in [*lhs, *rhs] {
                        if *op == BinaryOp::Sub && operand == *lhs {
                            continue;
                        }
                        self.number(operand, op_is_integral(*op));
                    }
                }
                Expr::Compare { first, rest } => {
                    let mut left = *first;
                    for (op, right) in rest {
                        if is_order(*op) {
                            self.number(left, false);
                            self.number(*right, false);
                        }
                        left = *right;
                    }
                }
                Expr::Unary { op: UnaryOp::Minus, operand } => self.number(*operand, false),
                _ => {}
            }
        }
    }

    fn number(&mut self, operand: ExprId, integral: bool) {
        if let Some(at) = self.direct(operand) {
            self.uses[at].number = true;
            self.uses[at].integral |= integral;
        }
        if integral && let Some(Origin::Loaded(at)) = self.origin(operand) {
            self.uses[at].integer_elements = true;
        }
    }

    /// Marks parameters that meet floats in arithmetic. Needs the other scans' results.
    fn scan_floats(&mut self) {
        let body = self.body;
        for expr in body.exprs.values() {
            match expr {
                Expr::Binary { op, lhs, rhs } if !op_is_integral(*op) => {
                    for (param, other) in [(*lhs, *rhs), (*rhs, *lhs)] {
                        self.meets(param, other, false);
                    }
                }
                Expr::Compare { first, rest } => {
                    for (op, right) in rest {
                        let ordered = is_order(*op);
                        self.meets(*first, *right, ordered);
                        self.meets(*right, *first, ordered);
                    }
                }
                _ => {}
            }
        }
    }

    /// Marks a parameter by what stands at the other side of an operator. What is ordered against
    /// something that is no float bounds indices.
    fn meets(&mut self, param: ExprId, other: ExprId, ordered: bool) {
        let Some(at) = self.direct(param) else { return };
        if self.is_float(other, 0) {
            self.uses[at].float = true;
        } else if ordered {
            self.uses[at].integral = true;
        }
    }

    /// True when an expression is floating-point whatever the types of the arguments are, or is
    /// data that nothing shows to be integers.
    fn is_float(&mut self, id: ExprId, depth: u32) -> bool {
        if depth > MAX_TRACE {
            return false;
        }
        let body = self.body;
        let any =
            |scan: &mut Self, ids: &[ExprId]| ids.iter().any(|id| scan.is_float(*id, depth + 1));
        match &body.exprs[id] {
            Expr::Literal(Literal::Float(_)) => true,
            Expr::Binary { op: BinaryOp::Div, .. } => true,
            Expr::Binary { lhs, rhs, .. } => any(self, &[*lhs, *rhs]),
            Expr::IfElse { on_true, on_false, .. } => any(self, &[*on_true, *on_false]),
            Expr::Subscript { value, .. } => any(self, &[*value]),
            Expr::Name(name) => {
                let values = self.locals.get(&**name).cloned().unwrap_or_default();
                any(self, &values)
            }
            Expr::Call { callee, args } => {
                let name = called_name(body, *callee).unwrap_or_default();
                if FLOAT_FUNCTIONS.contains(&name) {
                    return true;
                }
                if let Some(Origin::Loaded(at)) = self.origin(id) {
                    return !self.uses[at].integer_elements && !self.uses[at].counts;
                }
                let values: Vec<ExprId> = args.iter().map(|arg| arg.value).collect();
                if matches!(name, "to" | "cast" | "zeros" | "full") {
                    return values.iter().any(|value| is_float_dtype(body, *value));
                }
                ELEMENTWISE_FUNCTIONS.contains(&name) && any(self, &values)
            }
            _ => false,
        }
    }

    fn scan_conditions(&mut self) {
        let body = self.body;
        for stmt in body.stmts.values() {
            match stmt {
                Stmt::If { test, .. } | Stmt::While { test, .. } => self.condition(*test),
                Stmt::For { iter, .. } => self.bounds(*iter),
                _ => {}
            }
        }
        for expr in body.exprs.values() {
            match expr {
                Expr::IfElse { condition, .. } => self.condition(*condition),
                Expr::Bool { values, .. } => values.iter().for_each(|value| self.condition(*value)),
                Expr::Unary { op: UnaryOp::Not, operand } => self.condition(*operand),
                Expr::Compare { first, rest } => {
                    for (op, right) in rest {
                        let equality = matches!(op, CompareOp::Eq | CompareOp::Ne);
                        self.comparison(*first, *right, equality);
                        self.comparison(*right, *first, equality);
                    }
                }
                _ => {}
            }
        }
    }

    fn condition(&mut self, id: ExprId) {
        if let Some(at) = self.direct(id) {
            self.uses[at].condition = true;
        }
    }

    fn is_local(&self, name: &str) -> bool {
        self.locals.contains_key(name) || self.params.contains_key(name)
    }

    fn comparison(&mut self, param: ExprId, other: ExprId, equality: bool) {
        let Some(at) = self.direct(param) else { return };
        let compared = Compared { at: self.at, value: other };
        match &self.body.exprs[other] {
            Expr::Literal(Literal::None) => self.uses[at].none_test = true,
            Expr::Literal(Literal::Str(_)) => {
                self.uses[at].text = true;
                self.uses[at].compared.get_or_insert(compared);
            }
            Expr::Literal(Literal::Int(_)) if equality => {
                self.uses[at].compared.get_or_insert(compared);
            }
            Expr::Name(name) if equality && !self.is_local(name) => {
                self.uses[at].compared.get_or_insert(compared);
            }
            Expr::Attribute { attr, .. } if super::host::named_dtype(attr).is_some() => {
                self.uses[at].dtype = true;
            }
            _ => {}
        }
    }

    /// Marks the bounds of a loop.
    fn bounds(&mut self, iter: ExprId) {
        let Expr::Call { callee, args } = &self.body.exprs[iter] else { return };
        let unrolled = called_name(self.body, *callee) == Some("static_range");
        for arg in args {
            for leaf in leaves(self.body, arg.value) {
                if let Some(at) = self.direct(leaf) {
                    self.uses[at].number = true;
                    self.uses[at].integral = true;
                    self.uses[at].unrolled |= unrolled;
                }
                if let Some(Origin::Loaded(at)) = self.origin(leaf) {
                    self.uses[at].integer_elements = true;
                }
            }
        }
    }

    fn scan_calls(&mut self, finder: &mut Finder<'_>, scope: Scope<'_>) {
        let body = self.body;
        for expr in body.exprs.values() {
            let Expr::Call { callee, args } = expr else { continue };
            if let Some(at) = self.direct(*callee) {
                self.uses[at].called = true;
            }
            if let Some(name) = called_name(body, *callee) {
                self.builtin_call(name, *callee, args);
            }
            if let Some((at, uses)) = finder.callee_uses(scope, body, *callee) {
                self.helper_call(finder.sources, at, &uses, args);
            }
        }
    }

    fn builtin_call(&mut self, name: &str, callee: ExprId, args: &[Arg]) {
        match name {
            "load" | "store" | "prefetch" => {
                match argument(args, 0, "pointer") {
                    // `descriptor.load(offsets)` has offsets first.
                    Some(pointer) if !self.is_descriptor_call(callee, pointer) => {
                        self.pointer(pointer);
                    }
                    _ => self.descriptor(callee, args),
                }
            }
            "gather" | "scatter" => self.descriptor(callee, args),
            "load_tensor_descriptor" | "store_tensor_descriptor" => {
                if let Some(at) = argument(args, 0, "desc").and_then(|id| self.direct(id)) {
                    self.uses[at].descriptor_rank = self.rank(args.get(1));
                }
            }
            "make_block_ptr" | "make_tensor_descriptor" => {
                if let Some(base) = argument(args, 0, "base") {
                    self.pointer(base);
                }
                for extent in args.iter().filter(|arg| is_keyword(arg, "block_shape")) {
                    self.extents(extent.value);
                }
                if let Some(shape) = args.get(if name == "make_block_ptr" { 4 } else { 3 }) {
                    self.extents(shape.value);
                }
            }
            "arange" => args.iter().for_each(|arg| self.extents(arg.value)),
            "zeros" | "full" => {
                if let Some(shape) = argument(args, 0, "shape") {
                    self.extents(shape);
                }
                self.dtype(argument(args, if name == "zeros" { 1 } else { 2 }, "dtype"));
            }
            "to" | "cast" => self.dtype(argument(args, usize::from(name == "cast"), "dtype")),
            "reshape" | "view" | "broadcast_to" => {
                args.iter().for_each(|arg| self.extents(arg.value));
            }
            "cdiv" => {
                for leaf in args.iter().flat_map(|arg| leaves(self.body, arg.value)) {
                    self.number(leaf, true);
                }
            }
            "pointer_type" => self.dtype(argument(args, 0, "element_ty")),
            _ if name.starts_with("atomic_") => {
                if let Some(pointer) = argument(args, 0, "pointer") {
                    self.pointer(pointer);
                }
            }
            _ => {}
        }
    }

    /// True for `parameter.load([...])`.
    fn is_descriptor_call(&self, callee: ExprId, first: ExprId) -> bool {
        let receiver = match self.body.exprs[callee] {
            Expr::Attribute { value, .. } => self.direct(value),
            _ => None,
        };
        receiver.is_some() || matches!(self.body.exprs[first], Expr::List(_))
    }

    fn descriptor(&mut self, callee: ExprId, args: &[Arg]) {
        if let Expr::Attribute { value, .. } = self.body.exprs[callee]
            && let Some(at) = self.direct(value)
        {
            self.uses[at].descriptor_rank = self.rank(args.first());
        }
    }

    /// Number of offsets in a display of them.
    fn rank(&self, offsets: Option<&Arg>) -> usize {
        match offsets.map(|arg| &self.body.exprs[arg.value]) {
            Some(Expr::List(items) | Expr::Tuple(items)) => items.len().max(1),
            _ => 2,
        }
    }

    /// Marks the parameters that an address comes from, and what serves as its offsets.
    fn pointer(&mut self, pointer: ExprId) {
        let base = self.param_at(pointer);
        self.addresses(pointer, 0);
        self.offsets(pointer, base);
    }

    /// Marks every parameter that an address may come from.
    fn addresses(&mut self, id: ExprId, depth: u32) {
        if depth > MAX_TRACE {
            return;
        }
        let body = self.body;
        match &body.exprs[id] {
            Expr::Name(name) => {
                let values = self.locals.get(&**name).cloned().unwrap_or_default();
                values.into_iter().for_each(|value| self.addresses(value, depth + 1));
                if let Some(at) = self.params.get(&**name) {
                    self.uses[*at].pointer = true;
                }
            }
            Expr::Binary { op: BinaryOp::Add, lhs, rhs } => {
                let (left, right) = (self.origin(*lhs), self.origin(*rhs));
                let chosen = self.address(left, right);
                if chosen.is_some() {
                    self.addresses(if chosen == left { *lhs } else { *rhs }, depth);
                }
            }
            Expr::Binary { op: BinaryOp::Sub, lhs, .. } => self.addresses(*lhs, depth),
            Expr::IfElse { on_true, on_false, .. } => {
                self.addresses(*on_true, depth);
                self.addresses(*on_false, depth);
            }
            Expr::Call { callee, args } if called_name(body, *callee) == Some("where") => {
                choices(args).into_iter().for_each(|value| self.addresses(value, depth));
            }
            _ => {
                if let Some(at) = self.param_at(id) {
                    self.uses[at].pointer = true;
                }
            }
        }
    }

    /// Marks data and parameters that are summands of an address, other than its `base`.
    fn offsets(&mut self, id: ExprId, base: Option<usize>) {
        let mut pending = vec![(id, 0)];
        while let Some((id, depth)) = pending.pop() {
            for leaf in leaves(self.body, id) {
                match self.origin(leaf) {
                    Some(Origin::Loaded(at)) if Some(at) != base => {
                        self.uses[at].integer_elements = true;
                    }
                    _ => {}
                }
                match self.direct(leaf) {
                    Some(at) if Some(at) != base => self.uses[at].integral = true,
                    _ => {}
                }
                if let Expr::Name(name) = &self.body.exprs[leaf]
                    && depth < MAX_TRACE
                {
                    let values = self.locals.get(&**name).cloned().unwrap_or_default();
                    pending.extend(values.into_iter().map(|value| (value, depth + 1)));
                }
            }
        }
    }

    fn extents(&mut self, id: ExprId) {
        for leaf in leaves(self.body, id) {
            if let Some(at) = self.direct(leaf) {
                self.uses[at].extent = true;
            }
        }
    }

    fn dtype(&mut self, id: Option<ExprId>) {
        if let Some(at) = id.and_then(|id| self.direct(id)) {
            self.uses[at].dtype = true;
        }
    }

    /// Carries the uses of a jit function's parameters to the arguments.
    fn helper_call(&mut self, sources: &dyn Sources, callee: ItemRef, uses: &[Use], args: &[Arg]) {
        let Some(function) = function(sources, callee) else { return };
        for (index, arg) in args.iter().enumerate() {
            let at = match &arg.kind {
                ArgKind::Positional => Some(index),
                ArgKind::Keyword(name) => {
                    function.params.iter().position(|param| param.name == *name)
                }
                _ => None,
            };
            let Some(inner) = at.and_then(|at| uses.get(at)) else { continue };
            if inner.pointer {
                self.pointer(arg.value);
            }
            if let Some(at) = self.direct(arg.value) {
                let outer = &mut self.uses[at];
                outer.descriptor_rank = outer.descriptor_rank.max(inner.descriptor_rank);
                outer.operand |= inner.operand;
                outer.integer_elements |= inner.pointer && inner.integer_elements;
                outer.counts |= inner.pointer && inner.counts;
                outer.number |= inner.number && !inner.pointer;
                outer.float |= inner.float;
                outer.integral |= inner.integral;
                outer.extent |= inner.extent;
                outer.condition |= inner.condition;
                outer.none_test |= inner.none_test;
                outer.text |= inner.text;
                outer.dtype |= inner.dtype;
                outer.unrolled |= inner.unrolled;
                outer.called |= inner.called;
                outer.items |= inner.items;
                outer.compared = outer.compared.or(inner.compared);
            }
        }
    }
}

/// Functions whose result is floating-point.
const FLOAT_FUNCTIONS: &[&str] = &[
    "cos", "dot", "erf", "exp", "exp2", "log", "log2", "rand", "randn", "rsqrt", "sigmoid", "sin",
    "softmax", "sqrt", "tanh",
];

/// Functions whose result has the type of their arguments.
const ELEMENTWISE_FUNCTIONS: &[&str] =
    &["abs", "cumsum", "fma", "max", "maximum", "min", "minimum", "sum", "where"];

fn is_float_dtype(body: &Body, id: ExprId) -> bool {
    match &body.exprs[id] {
        Expr::Attribute { attr, .. } => attr.contains("float"),
        _ => false,
    }
}

fn is_order(op: CompareOp) -> bool {
    matches!(op, CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge)
}

/// Operators whose operands are integers.
fn op_is_integral(op: BinaryOp) -> bool {
    matches!(
        op,
        BinaryOp::FloorDiv
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
    )
}

fn is_keyword(arg: &Arg, name: &str) -> bool {
    matches!(&arg.kind, ArgKind::Keyword(known) if &**known == name)
}

/// The argument at `index`, or the one called `name`.
fn argument(args: &[Arg], index: usize, name: &str) -> Option<ExprId> {
    let positional = args.get(index).filter(|arg| arg.kind == ArgKind::Positional);
    positional.or_else(|| args.iter().find(|arg| is_keyword(arg, name))).map(|arg| arg.value)
}

/// The two values that `where(condition, x, y)` chooses from.
fn choices(args: &[Arg]) -> Vec<ExprId> {
    [argument(args, 1, "x"), argument(args, 2, "y")].into_iter().flatten().collect()
}

/// The last part of the name of what is called.
fn called_name(body: &Body, callee: ExprId) -> Option<&str> {
    match &body.exprs[callee] {
        Expr::Name(name) | Expr::Attribute { attr: name, .. } => Some(name),
        _ => None,
    }
}

/// Functions whose result is made of their arguments.
const LEAF_FUNCTIONS: &[&str] = &[
    "broadcast_to",
    "cast",
    "cdiv",
    "clamp",
    "expand_dims",
    "max",
    "max_contiguous",
    "maximum",
    "min",
    "minimum",
    "multiple_of",
    "where",
];

/// What is evaluated whichever way the conditions of a body go.
struct Paths<'a>(&'a Body);

impl<'a> Paths<'a> {
    /// One operand of arithmetic for each name that is an operand on every path.
    fn operands(&self, stmts: &[StmtId]) -> Vec<ExprId> {
        self.names(stmts).into_values().collect()
    }

    fn names(&self, stmts: &[StmtId]) -> FxHashMap<&'a str, ExprId> {
        let mut names = FxHashMap::default();
        stmts.iter().for_each(|stmt| self.statement(*stmt, &mut names));
        names
    }

    fn statement(&self, stmt: StmtId, names: &mut FxHashMap<&'a str, ExprId>) {
        match &self.0.stmts[stmt] {
            Stmt::Expr(value) | Stmt::Assign { value, .. } => self.expression(*value, names),
            Stmt::AugAssign { target, value, .. } => {
                self.operand(*target, names);
                self.operand(*value, names);
                self.expression(*value, names);
            }
            Stmt::AnnAssign { value, .. } | Stmt::Return(value) => {
                value.iter().for_each(|value| self.expression(*value, names));
            }
            Stmt::If { test, body, orelse } => {
                self.expression(*test, names);
                let other = self.names(orelse);
                names.extend(
                    self.names(body).into_iter().filter(|(name, _)| other.contains_key(name)),
                );
            }
            Stmt::For { iter: head, body, .. } | Stmt::While { test: head, body, .. } => {
                self.expression(*head, names);
                names.extend(self.names(body));
            }
            Stmt::With { body, .. } => names.extend(self.names(body)),
            Stmt::Assert { test, .. } => self.expression(*test, names),
            Stmt::Pass | Stmt::Unsupported(_) | Stmt::Error => {}
        }
    }

    fn expression(&self, id: ExprId, names: &mut FxHashMap<&'a str, ExprId>) {
        match &self.0.exprs[id] {
            Expr::IfElse { condition, on_true, on_false } => {
                self.expression(*condition, names);
                let (mut then, mut other) = (FxHashMap::default(), FxHashMap::default());
                self.expression(*on_true, &mut then);
                self.expression(*on_false, &mut other);
                names.extend(then.into_iter().filter(|(name, _)| other.contains_key(name)));
            }
            expr => {
                if let Expr::Binary { lhs, rhs, .. } = expr {
                    self.operand(*lhs, names);
                    self.operand(*rhs, names);
                }
                expr.for_each_child(|child| self.expression(child, names));
            }
        }
    }

    fn operand(&self, id: ExprId, names: &mut FxHashMap<&'a str, ExprId>) {
        if let Expr::Name(name) = &self.0.exprs[id] {
            names.entry(name).or_insert(id);
        }
    }
}

/// Operands of nested arithmetic, displays, indexing and calls of methods that keep their value.
fn leaves(body: &Body, id: ExprId) -> Vec<ExprId> {
    let mut leaves = Vec::new();
    let mut pending = vec![id];
    while let Some(id) = pending.pop() {
        match &body.exprs[id] {
            Expr::Binary { lhs, rhs, .. } => pending.extend([*lhs, *rhs]),
            Expr::Tuple(items) | Expr::List(items) => pending.extend(items),
            Expr::Unary { operand, .. } => pending.push(*operand),
            Expr::Subscript { value, .. } => pending.push(*value),
            Expr::Call { callee, args } => match (&body.exprs[*callee], called_name(body, *callee))
            {
                (Expr::Attribute { value, .. }, Some("to")) => pending.push(*value),
                (_, Some(name)) if LEAF_FUNCTIONS.contains(&name) => {
                    pending.extend(args.iter().map(|arg| arg.value));
                }
                _ => leaves.push(id),
            },
            _ => leaves.push(id),
        }
    }
    leaves
}

/// The names of the parameters of `function` that are compile-time values by annotation.
pub(super) fn constexpr_params(
    sources: &dyn Sources,
    scope: Scope<'_>,
    function: &Function,
) -> Vec<Name> {
    let is_constexpr = |annotation: ExprId| match &function.body.exprs[annotation] {
        Expr::Literal(Literal::Str(text)) => text.ends_with("constexpr"),
        _ => {
            let meaning = resolve_expr(sources, scope, &function.body, annotation);
            meaning == Resolution::Triton("language.constexpr".into())
        }
    };
    let params = function.params.iter();
    params
        .filter(|param| param.annotation.is_some_and(is_constexpr))
        .map(|param| param.name.clone())
        .collect()
}
