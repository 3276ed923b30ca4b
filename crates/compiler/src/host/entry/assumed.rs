//! Sizes that are assumed of tensors: of those that a function gets which nothing calls that is known.

use crate::hir::{Body, CompareOp, Expr, ExprId, Function, Literal, Name, Stmt, UnaryOp};
use crate::host::value::{Tensor, Value};

/// How long the axes of all such tensors are taken to be. They are as long as each other, so that functions
/// of several tensors take them together, and powers of two, so that blocks divide them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Extent {
    /// Shorter than most blocks are.
    Short,
    /// Longer than most blocks are.
    Long,
    /// As long, but those of the tensor at this position longer again: nothing need say how many elements of
    /// one tensor belong to one of another.
    LongWithLonger(usize),
}

/// The sizes that are assumed of the tensors that a function gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assumed {
    /// The parameters, and how long each axis of theirs is.
    extents: Vec<(Name, i128)>,
    /// How many axes they have.
    rank: usize,
}

impl Assumed {
    /// What is assumed for `function`; `None` where its code does not say how many axes tensors have, or
    /// says that these have more than can be long. Of tensors of fewer axes than others nothing is assumed:
    /// they may belong to several axes together.
    pub(crate) fn of(function: &Function, extent: Extent) -> Option<Assumed> {
        let params = function.params.iter();
        let asked = |name| Search::new(&function.body, name).run();
        let ranks = params.map(|param| (&param.name, asked(&param.name).rank()));
        let ranks: Vec<(&Name, Rank)> =
            ranks.filter_map(|(name, rank)| Some((name, rank?))).collect();
        let likely = ranks.iter().map(|(_, rank)| match rank {
            Rank::Of(rank) => *rank,
            // Who has only the last one speaks of it so.
            Rank::Some => 2,
        });
        let rank = likely.max()?;
        // Indices of 32 bits reach every element.
        let (long, longer) = match rank {
            1 | 2 => (1024, 8192),
            3 => (128, 1024),
            4 => (64, 128),
            _ => return None,
        };
        let is_alike = |axes: &Rank| match axes {
            Rank::Of(axes) => *axes == rank,
            Rank::Some => true,
        };
        let names =
            ranks.into_iter().filter(|(_, axes)| is_alike(axes)).map(|(name, _)| name.clone());
        let length = |position: usize| match extent {
            Extent::Short => 64,
            Extent::LongWithLonger(of) if of == position => longer,
            Extent::Long | Extent::LongWithLonger(_) => long,
        };
        let extents = names.enumerate().map(|(position, name)| (name, length(position)));
        Some(Assumed { extents: extents.collect(), rank })
    }

    /// The tensor that the parameter `name` is, if it is one of them. Nothing is known of its elements.
    pub(crate) fn tensor(&self, name: &str) -> Option<Value> {
        let (_, extent) = self.extents.iter().find(|(known, _)| **known == *name)?;
        let shape = vec![Value::Int(Some(*extent)); self.rank];
        let Value::Tensor(tensor) = Value::tensor(None) else { return None };
        Some(Value::Tensor(Tensor { shape: Some(shape), on_gpu: true, ..tensor }))
    }

    /// As in "`a` of 64 x 64, `b` of 64 x 64".
    pub(crate) fn text(&self) -> String {
        let sizes = |extent: &i128| vec![extent.to_string(); self.rank].join(" x ");
        let each =
            self.extents.iter().map(|(name, extent)| format!("`{name}` of {}", sizes(extent)));
        each.collect::<Vec<_>>().join(", ")
    }
}

/// A number of axes.
#[derive(Clone, Copy)]
enum Rank {
    /// So many.
    Of(usize),
    /// One at least: code asks for the size of the last one alone.
    Some,
}

/// What code asks of one of the tensors that its function gets.
#[derive(Default)]
struct Asked {
    /// Into how many sizes the shape is unpacked, and with how many it is compared, each time.
    exactly: Vec<usize>,
    /// How many sizes it asks for that it counts from the first one.
    sizes: usize,
    /// The same, counted from the last one.
    last_sizes: usize,
    /// How many distances it asks for.
    strides: usize,
}

impl Asked {
    /// The number of axes that fits all of it: as many as there are sizes, unless it knows of more.
    fn rank(&self) -> Option<Rank> {
        let rank = match (&*self.exactly, self.sizes, self.last_sizes) {
            ([], 0, 1) if self.strides == 0 => return Some(Rank::Some),
            ([], 0, _) => return None,
            ([], sizes, last) => sizes + last,
            ([rank, others @ ..], ..) => {
                others.iter().all(|other| other == rank).then_some(*rank)?
            }
        };
        let least = self.sizes.max(self.last_sizes).max(self.strides);
        (least <= rank).then_some(Rank::Of(rank))
    }
}

/// Where code asks about the tensor called `name`.
struct Search<'b> {
    body: &'b Body,
    name: &'b str,
    /// The variables that are set to its shape.
    shapes: Vec<&'b Name>,
}

impl<'b> Search<'b> {
    fn new(body: &'b Body, name: &'b str) -> Search<'b> {
        let mut search = Search { body, name, shapes: Vec::new() };
        let sets = |stmt: &'b Stmt| match stmt {
            Stmt::Assign { targets, value } if search.is_shape(*value) => match &**targets {
                [target] => body.exprs[*target].as_name(),
                _ => None,
            },
            _ => None,
        };
        search.shapes = body.stmts.values().filter_map(sets).collect();
        search
    }

    fn run(&self) -> Asked {
        let mut asked = Asked::default();
        asked.exactly.extend(self.body.stmts.values().filter_map(|stmt| self.unpacked(stmt)));
        for expr in self.body.exprs.values() {
            self.note(expr, &mut asked);
        }
        asked
    }

    /// Into how many names a statement unpacks the shape.
    fn unpacked(&self, stmt: &Stmt) -> Option<usize> {
        let Stmt::Assign { targets, value } = stmt else { return None };
        let ([target], true) = (&**targets, self.is_shape(*value)) else { return None };
        let (Expr::Tuple(items) | Expr::List(items)) = &self.body.exprs[*target] else {
            return None;
        };
        let is_starred = |item: &ExprId| matches!(self.body.exprs[*item], Expr::Starred(_));
        (!items.iter().any(is_starred)).then_some(items.len())
    }

    fn note(&self, expr: &Expr, asked: &mut Asked) {
        match expr {
            Expr::Subscript { value, index } if self.is_shape(*value) => {
                self.note_size(*index, asked);
            }
            Expr::Call { callee, args } => match (self.method(*callee), &**args) {
                (Some("size"), [axis]) => self.note_size(axis.value, asked),
                (Some("stride"), [axis]) => {
                    asked.strides = asked.strides.max(self.count_up_to(axis.value));
                }
                (Some("numel"), []) => asked.sizes = asked.sizes.max(1),
                _ => {}
            },
            Expr::Compare { first, rest } if self.counts_axes(*first) => {
                if let [(CompareOp::Eq, count)] = **rest
                    && let Some(count) = self.integer(count)
                {
                    asked.exactly.extend(usize::try_from(count));
                }
            }
            _ => {}
        }
    }

    fn note_size(&self, axis: ExprId, asked: &mut Asked) {
        match self.integer(axis) {
            Some(axis @ ..0) => {
                let count = usize::try_from(axis.unsigned_abs()).unwrap_or(usize::MAX);
                asked.last_sizes = asked.last_sizes.max(count);
            }
            _ => asked.sizes = asked.sizes.max(self.count_up_to(axis)),
        }
    }

    /// How many axes there are up to the one of this number, where that counts from the first one.
    fn count_up_to(&self, axis: ExprId) -> usize {
        self.integer(axis).and_then(|axis| usize::try_from(axis).ok()).map_or(0, |axis| axis + 1)
    }

    /// Whether it is `name.shape` or `name.size()`, or is set to that.
    fn is_shape(&self, expr: ExprId) -> bool {
        match &self.body.exprs[expr] {
            Expr::Name(name) => self.shapes.contains(&name),
            Expr::Attribute { value, attr } => {
                &**attr == "shape" && self.body.exprs[*value].is_name(self.name)
            }
            Expr::Call { callee, args } => args.is_empty() && self.method(*callee) == Some("size"),
            _ => false,
        }
    }

    /// Whether it is `name.ndim`, `name.dim()` or `len(name.shape)`.
    fn counts_axes(&self, expr: ExprId) -> bool {
        match &self.body.exprs[expr] {
            Expr::Attribute { value, attr } => {
                &**attr == "ndim" && self.body.exprs[*value].is_name(self.name)
            }
            Expr::Call { callee, args } => match &**args {
                [] => self.method(*callee) == Some("dim"),
                [arg] => self.body.exprs[*callee].is_name("len") && self.is_shape(arg.value),
                _ => false,
            },
            _ => false,
        }
    }

    /// The method of the tensor that an expression is.
    fn method(&self, expr: ExprId) -> Option<&'b str> {
        let Expr::Attribute { value, attr } = &self.body.exprs[expr] else { return None };
        self.body.exprs[*value].is_name(self.name).then_some(&**attr)
    }

    /// The integer that an expression spells.
    fn integer(&self, expr: ExprId) -> Option<i64> {
        match &self.body.exprs[expr] {
            Expr::Literal(Literal::Int(int)) => i64::try_from(int.get()).ok(),
            Expr::Unary { op: UnaryOp::Minus, operand } => self.integer(*operand)?.checked_neg(),
            _ => None,
        }
    }
}
