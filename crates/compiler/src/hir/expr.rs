//! Expressions: what they are made of, and their children.

use std::sync::Arc;

use super::{ExprId, LambdaParam, Name};

/// An expression. Those of all open files are kept, so it is small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// Nothing usable stands there; absorbs silently.
    Missing,
    /// A name.
    Name(Name),
    /// A literal.
    Literal(Literal),
    /// `(a, b)`.
    Tuple(Box<[ExprId]>),
    /// `[a, b]`.
    List(Box<[ExprId]>),
    /// `[element for target in iterable if condition]`. With several `for`s, the element of all
    /// but the innermost is a [`Expr::Starred`] comprehension, which no source can spell:
    /// `[e for a in A for b in B]` is `[*[e for b in B] for a in A]`.
    ListComp {
        /// The element.
        element: ExprId,
        /// The loop target.
        target: ExprId,
        /// What is iterated.
        iterable: ExprId,
        /// Conditions.
        conditions: Box<[ExprId]>,
    },
    /// `(element for target in iterable)`, by the comprehension of the same clauses.
    Generator(ExprId),
    /// `{key: value for ...}`; the elements are those of a list comprehension, pairs.
    DictComp(ExprId),
    /// `{element for ...}`.
    SetComp(ExprId),
    /// Binary operator.
    Binary {
        /// The operator.
        op: BinaryOp,
        /// Left operand.
        lhs: ExprId,
        /// Right operand.
        rhs: ExprId,
    },
    /// Unary operator.
    Unary {
        /// The operator.
        op: UnaryOp,
        /// The operand.
        operand: ExprId,
    },
    /// `a and b and c`, `a or b`.
    Bool {
        /// True for `and`.
        and: bool,
        /// Operands, at least two.
        values: Box<[ExprId]>,
    },
    /// `first op second op third ...`.
    Compare {
        /// Leftmost operand.
        first: ExprId,
        /// Operators with their right operands; at least one.
        rest: Box<[(CompareOp, ExprId)]>,
    },
    /// A call.
    Call {
        /// What is called.
        callee: ExprId,
        /// Arguments in order.
        args: Box<[Arg]>,
    },
    /// `value.attr`.
    Attribute {
        /// The object.
        value: ExprId,
        /// The attribute.
        attr: Name,
    },
    /// `value[index]`; several indices are a tuple.
    Subscript {
        /// The object.
        value: ExprId,
        /// The index.
        index: ExprId,
    },
    /// `lower:upper:step` inside a subscript.
    Slice {
        /// Lower bound.
        lower: Option<ExprId>,
        /// Upper bound.
        upper: Option<ExprId>,
        /// Step.
        step: Option<ExprId>,
    },
    /// `on_true if condition else on_false`.
    IfElse {
        /// The condition.
        condition: ExprId,
        /// Value when true.
        on_true: ExprId,
        /// Value when false.
        on_false: ExprId,
    },
    /// An f-string.
    FString(Box<[FStringPart]>),
    /// `lambda params: body`.
    Lambda {
        /// Parameters.
        params: Box<[LambdaParam]>,
        /// The body.
        body: ExprId,
    },
    /// `(target := value)`.
    Walrus {
        /// The name bound.
        target: Name,
        /// The value.
        value: ExprId,
    },
    /// `{key: value}`; `None` keys are `**value`.
    Dict(Box<[(Option<ExprId>, ExprId)]>),
    /// `{a, b}`.
    Set(Box<[ExprId]>),
    /// `*value`.
    Starred(ExprId),
    /// `yield value`, or `yield from value`.
    Yield {
        /// What is given, if anything.
        value: Option<ExprId>,
        /// Whether it is given one by one.
        of_each: bool,
    },
    /// Python that kernels may not use, by the name of its syntax tree node in Python's `ast`
    /// (`Await`, ...).
    Unsupported(&'static str),
}

const _: () = assert!(size_of::<Expr>() == 32);

impl Expr {
    /// Whether it is this name.
    pub fn is_name(&self, name: &str) -> bool {
        matches!(self, Expr::Name(found) if &**found == name)
    }

    /// The name that it is, if it is one.
    pub(crate) fn as_name(&self) -> Option<&Name> {
        match self {
            Expr::Name(name) => Some(name),
            _ => None,
        }
    }

    /// Calls `visit` with the expressions directly inside this one, in source order.
    pub fn for_each_child(&self, mut visit: impl FnMut(ExprId)) {
        match self {
            Expr::Missing | Expr::Name(_) | Expr::Literal(_) | Expr::Unsupported(_) => {}
            Expr::Tuple(items) | Expr::List(items) | Expr::Set(items) => {
                items.iter().copied().for_each(visit);
            }
            Expr::ListComp { element, target, iterable, conditions } => {
                [*element, *target, *iterable].into_iter().for_each(&mut visit);
                conditions.iter().copied().for_each(visit);
            }
            Expr::Binary { lhs, rhs, .. } => [*lhs, *rhs].into_iter().for_each(visit),
            Expr::Unary { operand: inner, .. }
            | Expr::Attribute { value: inner, .. }
            | Expr::Walrus { value: inner, .. }
            | Expr::Generator(inner)
            | Expr::DictComp(inner)
            | Expr::SetComp(inner)
            | Expr::Starred(inner) => visit(*inner),
            Expr::Lambda { params, body } => {
                params.iter().filter_map(|param| param.default).for_each(&mut visit);
                visit(*body);
            }
            Expr::Yield { value, .. } => value.iter().copied().for_each(visit),
            Expr::Bool { values, .. } => values.iter().copied().for_each(visit),
            Expr::Compare { first, rest } => {
                visit(*first);
                rest.iter().for_each(|(_, right)| visit(*right));
            }
            Expr::Call { callee, args } => {
                visit(*callee);
                args.iter().for_each(|arg| visit(arg.value));
            }
            Expr::Subscript { value, index } => [*value, *index].into_iter().for_each(visit),
            Expr::Slice { lower, upper, step } => {
                [*lower, *upper, *step].into_iter().flatten().for_each(visit);
            }
            Expr::IfElse { condition, on_true, on_false } => {
                [*on_true, *condition, *on_false].into_iter().for_each(visit);
            }
            Expr::FString(parts) => parts.iter().for_each(|part| {
                if let FStringPart::Hole(value) | FStringPart::Formatted { value, .. } = part {
                    visit(*value);
                }
            }),
            Expr::Dict(entries) => entries.iter().for_each(|(key, value)| {
                key.iter().copied().for_each(&mut visit);
                visit(*value);
            }),
        }
    }
}

/// A part of an f-string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FStringPart {
    /// Text between holes.
    Text(Arc<str>),
    /// `{value}`.
    Hole(ExprId),
    /// `{value:format}`, `{value!r}` or `{value=}`, whose label is text before it.
    Formatted {
        /// What is shown.
        value: ExprId,
        /// The letter after `!`; `r` for `{value=}`.
        conversion: Option<char>,
        /// What stands behind the colon.
        format: Arc<str>,
    },
}

/// A literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Literal {
    /// An integer of any size, as decimal digits when it exceeds 128 bits.
    Int(WideInt),
    /// An integer beyond 128 bits.
    BigInt(Arc<str>),
    /// A float, by its bits.
    Float(u64),
    /// `True`, `False`.
    Bool(bool),
    /// `None`.
    None,
    /// A string.
    Str(Arc<str>),
    /// A bytes literal.
    Bytes,
    /// `...`.
    Ellipsis,
    /// A complex number.
    Imaginary,
}

/// An integer of 128 bits, aligned as a pointer is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WideInt {
    high: i64,
    low: u64,
}

impl WideInt {
    /// Its value.
    pub fn get(self) -> i128 {
        i128::from(self.high) << 64 | i128::from(self.low)
    }
}

impl From<i128> for WideInt {
    #[expect(clippy::cast_possible_truncation, reason = "the halves are told apart by it")]
    #[expect(clippy::cast_sign_loss, reason = "bits of the lower half")]
    fn from(value: i128) -> WideInt {
        WideInt { high: (value >> 64) as i64, low: value as u64 }
    }
}

impl std::fmt::Debug for WideInt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

/// An argument of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arg {
    /// How it is passed.
    pub kind: ArgKind,
    /// The value.
    pub value: ExprId,
}

/// How an argument is passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgKind {
    /// By position.
    Positional,
    /// `name=value`.
    Keyword(Name),
    /// `*value`.
    Star,
    /// `**value`.
    DoubleStar,
}

/// Binary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are Python's")]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
    MatMul,
    Shl,
    Shr,
    And,
    Or,
    Xor,
}

impl BinaryOp {
    const ALL: [BinaryOp; 13] = [
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Mul,
        BinaryOp::Div,
        BinaryOp::FloorDiv,
        BinaryOp::Mod,
        BinaryOp::Pow,
        BinaryOp::MatMul,
        BinaryOp::Shl,
        BinaryOp::Shr,
        BinaryOp::And,
        BinaryOp::Or,
        BinaryOp::Xor,
    ];

    /// The operator with this name of a method, as `method` has it.
    pub fn of_method(name: &str) -> Option<BinaryOp> {
        BinaryOp::ALL.into_iter().find(|op| op.method() == name)
    }

    /// The name between the underscores of the method of a class that defines it: `add` of `__add__`.
    pub fn method(self) -> &'static str {
        match self {
            BinaryOp::Add => "add",
            BinaryOp::Sub => "sub",
            BinaryOp::Mul => "mul",
            BinaryOp::Div => "truediv",
            BinaryOp::FloorDiv => "floordiv",
            BinaryOp::Mod => "mod",
            BinaryOp::Pow => "pow",
            BinaryOp::MatMul => "matmul",
            BinaryOp::Shl => "lshift",
            BinaryOp::Shr => "rshift",
            BinaryOp::And => "and",
            BinaryOp::Or => "or",
            BinaryOp::Xor => "xor",
        }
    }
}

/// Unary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are Python's")]
pub enum UnaryOp {
    Plus,
    Minus,
    Invert,
    Not,
}

/// Comparison operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are Python's")]
pub enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Is,
    IsNot,
    In,
    NotIn,
}
