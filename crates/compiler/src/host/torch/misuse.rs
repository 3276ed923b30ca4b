//! What host code raises an exception for: a tensor is asked for what it does not have, or a tuple.

use crate::builtins::{classes, torch};
use crate::hir::{BinaryOp, Name};
use crate::host::code::arguments::Args;
use crate::host::torch::data::Difference;
use crate::host::value::dtype::is_float;
use crate::host::value::number::as_number;
use crate::host::value::{Tensor, Value};

/// A use of a tensor, or of a tuple as its shape is one, that gives no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misuse {
    /// Tensors that are compared differ where they must not.
    Differs(Box<Difference>),
    /// A size or stride along a dimension that the tensor does not have.
    NoDimension {
        /// The dimension asked for.
        at: i128,
        /// How many there are.
        rank: usize,
    },
    /// An element that a tuple does not have.
    NoElement {
        /// The index of it.
        at: i128,
        /// How many there are.
        len: usize,
    },
    /// A tuple that is taken apart into more or fewer names than it has elements.
    Unpacked {
        /// How many elements there are.
        len: usize,
        /// How many names.
        names: usize,
    },
    /// A member that tensors do not have.
    NoMember {
        /// What is asked for.
        name: Name,
        /// The member that is called nearly so.
        meant: &'static str,
    },
    /// A method that is not called.
    NotCalled(&'static str),
    /// A member that is called, and is no method.
    Called(&'static str),
    /// Random numbers of a type for which PyTorch has none.
    NoRandom {
        /// The function that draws them.
        function: Name,
        /// The type, in Triton's spelling.
        dtype: Name,
    },
    /// A number where a function of PyTorch takes sizes.
    NoSizes {
        /// The function.
        function: Name,
        /// The number.
        size: i128,
    },
    /// A member that a number does not have.
    NoMemberOf {
        /// The class of the number.
        class: &'static str,
        /// What is asked for.
        name: Name,
    },
    /// An operator, of which one side is `None` and the other a number.
    NoOperator(&'static str),
    /// An operator between a collection and a number.
    NoOperands {
        /// The operator.
        symbol: &'static str,
        /// The classes of both sides.
        classes: [&'static str; 2],
    },
    /// A collection or a string where a function takes numbers.
    NoNumber {
        /// The function, with its module.
        function: Name,
        /// The class of what it is given.
        class: &'static str,
    },
    /// A function that is given more or fewer arguments than it takes.
    ArgumentCount {
        /// The function.
        function: &'static str,
        /// How many it takes.
        takes: usize,
        /// How many it is given.
        given: usize,
    },
    /// A function of the project that is given what does not suit its parameters.
    Arguments {
        /// The function.
        function: Name,
        /// What does not suit.
        fault: Mismatch,
    },
    /// A keyword that a call gives twice, once of them by a dict.
    Repeated(Name),
    /// An operator on bits, of a tensor of floats.
    NoBits {
        /// The operator.
        symbol: &'static str,
        /// The type, in Triton's spelling.
        dtype: Name,
    },
    /// A tensor of floats, of this type in Triton's spelling, by which a tensor is indexed.
    FloatIndex(Name),
    /// Tensors of two types where a function takes those of one.
    OtherTypes {
        /// The function, with its module.
        function: &'static str,
        /// The types, in Triton's spelling.
        dtypes: [Name; 2],
    },
    /// Sizes that do not fit.
    Sizes(Misfit),
}

/// Why Python refuses to call a function with some arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mismatch {
    /// A keyword that no parameter has.
    NoParameter(Name),
    /// A parameter that is given by its position and by a keyword.
    Twice(Name),
    /// A parameter that needs an argument and gets none.
    Missing(Name),
    /// More arguments by position than there are parameters for them.
    TooMany {
        /// How many there are parameters for.
        takes: usize,
        /// How many there are.
        given: usize,
    },
}

/// Sizes of tensors for which PyTorch refuses what is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit {
    /// Tensors whose sizes do not broadcast.
    Broadcast([Vec<i128>; 2]),
    /// A matrix product of tensors of which one has not as many columns as the other has rows.
    Product([Vec<i128>; 2]),
    /// Other sizes that are asked for, which have not as many elements.
    View {
        /// The sizes.
        of: Vec<i128>,
        /// Those asked for; one may be -1.
        to: Vec<i128>,
    },
    /// Sizes that a tensor cannot be expanded to.
    Expanded {
        /// The sizes.
        of: Vec<i128>,
        /// Those asked for.
        to: Vec<i128>,
    },
    /// Tensors that are joined along a dimension, and differ along another one.
    Joined([Vec<i128>; 2]),
    /// Dimensions that are permuted, more or fewer than there are.
    Permuted {
        /// The sizes.
        of: Vec<i128>,
        /// How many dimensions are listed.
        axes: usize,
    },
    /// An index that is none of a dimension.
    Index {
        /// The index.
        at: i128,
        /// How many elements there are along the dimension.
        size: i128,
    },
    /// The greatest or least of no elements.
    Empty {
        /// What is asked for.
        function: &'static str,
        /// The sizes.
        of: Vec<i128>,
    },
    /// A gradient of other sizes than what it is the gradient of.
    Gradient {
        /// The sizes of the result.
        of: Vec<i128>,
        /// Those of the gradient.
        is: Vec<i128>,
    },
    /// A view of more memory than there is from the first element of a tensor on.
    Strided {
        /// How many elements the memory has.
        elements: i128,
        /// How many the view reaches over.
        span: i128,
    },
    /// A backward pass without a gradient, from what is not one number.
    NoGradient(Vec<i128>),
}

impl From<Misfit> for Value {
    fn from(misfit: Misfit) -> Value {
        Value::Raises(Misuse::Sizes(misfit))
    }
}

impl Misuse {
    /// Whether Python raises an exception where it stands: a method that is not called is a value.
    pub(crate) fn raises(&self) -> bool {
        !matches!(self, Misuse::NotCalled(_))
    }
}

/// Why a tensor cannot be indexed by another one.
pub(crate) fn no_index(rows: &Tensor) -> Option<Misuse> {
    rows.dtype.clone().filter(|dtype| is_float(dtype)).map(Misuse::FloatIndex)
}

/// What an operator on a number and `None` gives: an exception.
pub(crate) fn with_none(symbol: &'static str, left: &Value, right: &Value) -> Option<Value> {
    let is_none = |value: &Value| matches!(value.plain(), Value::None);
    let is_number = |value: &Value| as_number(value).is_some();
    let raises = is_none(left) && is_number(right) || is_number(left) && is_none(right);
    raises.then_some(Value::Raises(Misuse::NoOperator(symbol)))
}

/// What an operator gives between a tuple, list or string and a number, or of a tensor of floats whose bits it
/// asks for: an exception.
pub(crate) fn no_operator(op: BinaryOp, left: &Value, right: &Value) -> Option<Value> {
    let symbol = op.symbol();
    if let (Some(a), Some(b)) = (class(left), class(right)) {
        let repeats = op == BinaryOp::Mul && "int" == if is_number(a) { a } else { b };
        let formats = op == BinaryOp::Mod && a == "str";
        let fits = repeats || formats || is_number(a) == is_number(b);
        return (!fits).then_some(Value::Raises(Misuse::NoOperands { symbol, classes: [a, b] }));
    }
    None
}

/// What an order between a tuple, list or string and a number gives: an exception.
pub(crate) fn no_order(symbol: &'static str, left: &Value, right: &Value) -> Option<Value> {
    let classes = [class(left)?, class(right)?];
    let [a, b] = classes.map(is_number);
    (a != b).then_some(Value::Raises(Misuse::NoOperands { symbol, classes }))
}

/// Functions of `math` that take collections.
const OF_COLLECTIONS: &[&str] = &["dist", "fsum", "prod", "sumprod"];

/// Functions of `torch` that take sizes first.
const SIZED: &[&str] = &["empty", "full", "ones", "rand", "randn", "zeros"];

/// What a function of `math`, or one of `torch` that makes a tensor of some sizes, refuses: what it is given
/// for a number is a collection or a string.
pub(crate) fn no_number(path: &[&str], args: &Args<'_>) -> Option<Misuse> {
    let positional = args.positional();
    let first = *positional.first()?;
    let given: Vec<&Value> = match path {
        ["math", name] if !OF_COLLECTIONS.contains(name) => vec![first],
        ["torch", name] if SIZED.contains(name) => match first {
            _ if positional.len() > 1 && *name != "full" => positional,
            Value::Tuple(sizes) | Value::List(sizes) => sizes.iter().collect(),
            _ => return None,
        },
        _ => return None,
    };
    no_number_among(&path.join("."), given)
}

/// What a function that takes numbers refuses among what it is given: a collection or a string.
pub(crate) fn no_number_among<'v>(
    function: &str,
    given: impl IntoIterator<Item = &'v Value>,
) -> Option<Misuse> {
    let class = given.into_iter().find_map(|value| match value {
        Value::Ints => Some("tuple"),
        value => class(value).filter(|class| !is_number(class)),
    })?;
    Some(Misuse::NoNumber { function: function.into(), class })
}

/// Whether one of two values is a number and the other a collection or a string: they are never equal.
pub(crate) fn are_unlike(left: &Value, right: &Value) -> bool {
    no_order("==", left, right).is_some()
}

fn is_number(class: &str) -> bool {
    matches!(class, "int" | "float")
}

/// What an operator on bits gives for a tensor of this type: of floats, an exception.
pub(crate) fn no_bits(op: BinaryOp, dtype: Option<&Name>) -> Option<Value> {
    let of_bits =
        matches!(op, BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr);
    let dtype = dtype.filter(|dtype| of_bits && is_float(dtype))?.clone();
    Some(Value::Raises(Misuse::NoBits { symbol: op.symbol(), dtype }))
}

/// The class of a number, or of a collection that has operators of Python's alone, where it is known whole.
fn class(value: &Value) -> Option<&'static str> {
    Some(match value {
        Value::Int(Some(_)) => "int",
        Value::Float(Some(_)) => "float",
        Value::Str(_) => "str",
        Value::Tuple(_) => "tuple",
        Value::List(items) if is_whole(items) => "list",
        _ => return None,
    })
}

/// What `number.name` is where numbers have no such member.
pub(crate) fn of_number(value: &Value, name: &str) -> Option<Value> {
    let class = class(value).filter(|class| matches!(*class, "int" | "float"))?;
    let is_known =
        ["int", "float"].iter().any(|class| classes::exists(class, name)) || name.starts_with('_');
    (!is_known).then(|| Value::Raises(Misuse::NoMemberOf { class, name: name.into() }))
}

/// Methods that tell numbers about a tensor.
const METHODS: &[&str] = &["stride", "size", "numel", "dim", "nelement", "element_size"];

/// What tells about a tensor without a call.
const PLAIN: &[&str] = &["shape", "ndim", "dtype", "device"];

/// What arrays of NumPy and CuPy, which pass for tensors in much of host code, have in the place of
/// the method `stride`.
const STRIDES_OF_ARRAYS: &str = "strides";

/// Whether a tuple has the elements that are known of it, no more and no fewer: one that takes
/// something unknown apart has as many as that.
pub(crate) fn is_whole(tuple: &[Value]) -> bool {
    tuple.iter().all(|item| matches!(item, Value::Int(Some(_))))
}

/// What `tensor.name` is where it is no value that is known: a method of its own, or nothing.
pub(crate) fn attribute(tensor: &Tensor, name: &str) -> Option<Value> {
    let method = METHODS.iter().find(|method| **method == name).copied();
    // Whose element type is known is PyTorch's.
    let is_of_arrays = name == STRIDES_OF_ARRAYS && tensor.dtype.is_none();
    let missing = || no_member(tensor, name).filter(|_| !is_of_arrays);
    method.map(Misuse::NotCalled).or_else(missing).map(Value::Raises)
}

/// What `tensor.name(…)` is where it is no method that is known.
pub(crate) fn call(tensor: &Tensor, name: &str) -> Option<Value> {
    let plain = PLAIN.iter().find(|plain| **plain == name).copied();
    plain.map(Misuse::Called).or_else(|| no_member(tensor, name)).map(Value::Raises)
}

/// The plural of a member, which no class of tensors has: subclasses may have others. Of what
/// certainly is PyTorch's, what is nearly called like a member.
fn no_member(tensor: &Tensor, name: &str) -> Option<Misuse> {
    let singular = name.strip_suffix('s');
    let known = METHODS.iter().chain(PLAIN).find(|known| Some(**known) == singular);
    // What `.half()` is called on may as well be a module.
    let is_made = tensor.shape.is_some() || tensor.storage.is_some();
    let near =
        || tensor.dtype.as_ref().filter(|_| is_made).and_then(|_| torch::tensor_member_near(name));
    let meant = known.copied().or_else(near)?;
    Some(Misuse::NoMember { name: name.into(), meant })
}
