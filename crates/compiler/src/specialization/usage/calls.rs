//! What is passed to functions: addresses, extents, dtypes, arguments of other jit functions.

use rustc_hash::FxHashMap;

use super::expressions::{argument, called_name, choices, is_keyword, leaves};
use super::{BodyUses, Callees, Finder, MAX_TRACE, Origin, Use};
use crate::builtins::{LANGUAGE, member};
use crate::hir::{Arg, ArgKind, BinaryOp, Expr, ExprId, Literal};
use crate::project::{ItemRef, Scope, Sources, function};

/// Options of builtins that are strings, with a value that works everywhere.
pub(in crate::specialization) const OPTIONS: &[(&str, &str)] = &[
    ("cache_modifier", ""),
    ("eviction_policy", ""),
    ("fp_downcast_rounding", "rtne"),
    ("input_precision", "tf32"),
    ("padding_option", ""),
    ("scope", "gpu"),
    ("sem", "acq_rel"),
];

/// Options of `tl.range` that say how the loop is pipelined.
const PACING: &[&str] = &["loop_unroll_factor", "num_stages"];

/// Whether an argument is an option of a builtin that is on or off.
pub(super) fn is_flag(builtin: &str, arg: &Arg) -> bool {
    let ArgKind::Keyword(option) = &arg.kind else { return false };
    let Some(builtin) = member(LANGUAGE, builtin) else { return false };
    builtin.signature.split(", ").filter_map(|param| param.split_once('=')).any(
        |(param, default)| {
            let name = param.split(':').next().unwrap_or(param).trim();
            *name == **option && matches!(default.trim(), "False" | "True")
        },
    )
}

impl<'a> BodyUses<'a> {
    /// Notes the parameters that only say how loops are pipelined.
    pub(super) fn scan_pacing(&mut self) {
        let body = self.body;
        let is_pacing = |arg: &&Arg| PACING.iter().any(|option| is_keyword(arg, option));
        let of_loops = body.exprs.values().filter_map(|expr| match expr {
            Expr::Call { callee, args } if called_name(body, *callee) == Some("range") => {
                Some(args)
            }
            _ => None,
        });
        let pacing: Vec<ExprId> =
            of_loops.flatten().filter(is_pacing).map(|arg| arg.value).collect();
        let mentions = |(id, expr): (ExprId, &'a Expr)| match expr {
            Expr::Name(name) => Some((*self.params.get(&**name)?, pacing.contains(&id))),
            _ => None,
        };
        let mut seen: Vec<Option<bool>> = vec![None; self.uses.len()];
        for (at, paces) in body.exprs.iter().filter_map(mentions) {
            seen[at] = Some(paces && seen[at] != Some(false));
        }
        for (uses, seen) in self.uses.iter_mut().zip(seen) {
            uses.paces = seen == Some(true);
        }
    }

    pub(super) fn scan_calls(&mut self, finder: &mut Finder<'_>, scope: Scope<'_>) {
        let body = self.body;
        let mut callees =
            Callees { sources: finder.sources, scope, body, names: FxHashMap::default() };
        for expr in body.exprs.values() {
            let Expr::Call { callee, args } = expr else { continue };
            if let Some(at) = self.direct(*callee) {
                self.uses[at].called = true;
            }
            if let Some(name) = called_name(body, *callee) {
                self.builtin_call(name, *callee, args);
            }
            if let Some((at, uses)) = finder.callee_uses(callees.jit_function(*callee)) {
                self.helper_call(finder.sources, at, &uses, args);
            }
        }
    }

    pub(super) fn builtin_call(&mut self, name: &str, callee: ExprId, args: &[Arg]) {
        for arg in args {
            let usual = OPTIONS.iter().find(|(option, _)| is_keyword(arg, option));
            if let (Some((_, usual)), Some(at)) = (usual, self.direct(arg.value)) {
                self.uses[at].option = Some(usual);
            }
            if is_flag(name, arg) {
                self.condition(arg.value);
            }
        }
        if matches!(name, "load" | "store")
            && let Some(mask) = argument(args, if name == "load" { 1 } else { 2 }, "mask")
            && let Some(at) = self.direct(mask)
        {
            self.uses[at].mask = true;
        }
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
            "to" | "cast" => self.converted(name, callee, args),
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
                    self.exchanged(name, pointer, args);
                }
            }
            _ => {}
        }
    }

    /// What is converted to a pointer is an address: read from memory, it is an integer.
    fn converted(&mut self, name: &str, callee: ExprId, args: &[Arg]) {
        let body = self.body;
        let dtype = argument(args, usize::from(name == "cast"), "dtype");
        self.dtype(dtype);
        let makes_pointer = |id: ExprId| match &body.exprs[id] {
            Expr::Call { callee, .. } => called_name(body, *callee) == Some("pointer_type"),
            _ => false,
        };
        let value = match &body.exprs[callee] {
            _ if name == "cast" => argument(args, 0, "input"),
            Expr::Attribute { value, .. } => Some(*value),
            _ => None,
        };
        if !dtype.is_some_and(makes_pointer) {
            return;
        }
        match value.and_then(|value| self.origin(value)) {
            Some(Origin::Loaded(at)) => self.uses[at].integer_elements = true,
            Some(Origin::Param(at)) => self.uses[at].address = true,
            None => {}
        }
    }

    /// Marks what an atomic operation compares with an integer literal, which has that one's type.
    fn exchanged(&mut self, name: &str, pointer: ExprId, args: &[Arg]) {
        let is_integer = |id: ExprId| matches!(self.body.exprs[id], Expr::Literal(Literal::Int(_)));
        if name == "atomic_cas"
            && argument(args, 1, "cmp").is_some_and(is_integer)
            && let Some(at) = self.param_at(pointer)
        {
            self.uses[at].counts = true;
        }
    }

    /// True for `parameter.load([...])`.
    pub(super) fn is_descriptor_call(&self, callee: ExprId, first: ExprId) -> bool {
        let receiver = match self.body.exprs[callee] {
            Expr::Attribute { value, .. } => self.direct(value),
            _ => None,
        };
        receiver.is_some() || matches!(self.body.exprs[first], Expr::List(_))
    }

    pub(super) fn descriptor(&mut self, callee: ExprId, args: &[Arg]) {
        if let Expr::Attribute { value, .. } = self.body.exprs[callee]
            && let Some(at) = self.direct(value)
        {
            self.uses[at].descriptor_rank = self.rank(args.first());
        }
    }

    /// Number of offsets in a display of them.
    pub(super) fn rank(&self, offsets: Option<&Arg>) -> usize {
        match offsets.map(|arg| &self.body.exprs[arg.value]) {
            Some(Expr::List(items) | Expr::Tuple(items)) => items.len().max(1),
            _ => 2,
        }
    }

    /// Marks the parameters that an address comes from, and what serves as its offsets.
    pub(super) fn pointer(&mut self, pointer: ExprId) {
        let base = self.param_at(pointer);
        self.addresses(pointer, 0);
        self.offsets(pointer, base);
    }

    /// Marks every parameter that an address may come from.
    pub(super) fn addresses(&mut self, id: ExprId, depth: u32) {
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
    pub(super) fn offsets(&mut self, id: ExprId, base: Option<usize>) {
        let mut pending = vec![(id, 0)];
        // Variables that were followed, and how few others lay before them.
        let mut followed: FxHashMap<&str, u32> = FxHashMap::default();
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
                    && depth < followed.get(&**name).copied().unwrap_or(MAX_TRACE)
                {
                    followed.insert(name, depth);
                    let values = self.locals.get(&**name).into_iter().flatten();
                    pending.extend(values.map(|value| (*value, depth + 1)));
                }
            }
        }
    }

    pub(super) fn extents(&mut self, id: ExprId) {
        for leaf in leaves(self.body, id) {
            if let Some(at) = self.direct(leaf) {
                self.uses[at].extent = true;
            }
        }
    }

    pub(super) fn dtype(&mut self, id: Option<ExprId>) {
        if let Some(at) = id.and_then(|id| self.direct(id)) {
            self.uses[at].dtype = true;
        }
    }

    /// Carries the uses of a jit function's parameters to the arguments.
    pub(super) fn helper_call(
        &mut self,
        sources: &dyn Sources,
        callee: ItemRef,
        uses: &[Use],
        args: &[Arg],
    ) {
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
            if inner.integral {
                self.offsets(arg.value, None);
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
                outer.address |= inner.address;
                outer.shift |= inner.shift;
                outer.extent |= inner.extent;
                outer.condition |= inner.condition;
                outer.mask |= inner.mask;
                outer.none_test |= inner.none_test;
                outer.text |= inner.text;
                outer.option = outer.option.or(inner.option);
                outer.dtype |= inner.dtype;
                outer.unrolled |= inner.unrolled;
                outer.called |= inner.called;
                outer.items |= inner.items;
                outer.parts = outer.parts.max(inner.parts);
                outer.compared = outer.compared.or(inner.compared);
            }
        }
    }
}
