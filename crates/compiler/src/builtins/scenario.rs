//! The functions of scenarios: the host language of `# tile:` lines.
//!
//! The runner computes them, editors complete them, and `docs/scenarios.md` lists them.

/// A function of scenarios.
#[derive(Debug, Clone, Copy)]
pub struct ScenarioFunction {
    /// Its name.
    pub name: &'static str,
    /// Its parameters as Python writes them, apart from each other by a comma and a space.
    pub signature: &'static str,
    /// A line about it.
    pub doc: &'static str,
}

impl ScenarioFunction {
    /// The name of a parameter as it is written in a signature: `seed` of `seed=0`.
    #[must_use]
    pub fn parameter_name(parameter: &str) -> &str {
        let name = parameter.trim_start_matches('*');
        name.split_once('=').map_or(name, |(name, _)| name)
    }

    /// Its parameters, each with its default.
    pub fn parameters(&self) -> impl Iterator<Item = &'static str> {
        self.signature.split(", ").filter(|parameter| !parameter.is_empty())
    }
}

macro_rules! functions {
    ($( $name:literal($signature:literal): $doc:literal; )*) => {
        &[ $( ScenarioFunction { name: $name, signature: $signature, doc: $doc }, )* ]
    };
}

/// What scenarios can call: what makes tensors first, then what computes with them.
pub const SCENARIO_FUNCTIONS: &[ScenarioFunction] = functions! {
    "randn"("*shape, dtype=float32, seed=0"): "A tensor of normal random numbers, the same on every machine.";
    "rand"("*shape, dtype=float32, seed=0"): "A tensor of random numbers from 0 to 1, the same on every machine.";
    "randint"("lo, hi, *shape, dtype=float32, seed=0"): "A tensor of random integers from `lo` to below `hi`, the same on every machine.";
    "arange"("start, end, step, dtype=float32"): "The integers from `start` (0 if left out) to below `end`.";
    "zeros"("*shape, dtype=float32"): "A tensor of zeros.";
    "ones"("*shape, dtype=float32"): "A tensor of ones.";
    "full"("*shape, value, dtype=float32"): "A tensor of one value, which follows the shape.";
    "empty"("*shape, dtype=float32"): "A tensor that nobody wrote yet: it holds NaN, or a pattern for integers.";
    "zeros_like"("x, dtype=None"): "A tensor of zeros with the shape and element type of another.";
    "ones_like"("x, dtype=None"): "A tensor of ones with the shape and element type of another.";
    "empty_like"("x, dtype=None"): "An unwritten tensor with the shape and element type of another.";
    "rand_like"("x, dtype=None, seed=0"): "Random numbers from 0 to 1 with the shape and element type of another tensor.";
    "randn_like"("x, dtype=None, seed=0"): "Normal random numbers with the shape and element type of another tensor.";
    "tensor"("values, dtype=None"): "A tensor of the numbers in a nested list.";
    "load"("path, dtype=None"): "A tensor from a `.npy` file; its path counts from the folder of the source.";
    "allclose"("a, b, rtol=None, atol=None, equal_nan=False"): "True when two tensors agree: `|a - b| <= atol + rtol * |b|` everywhere. Without tolerances, those of the looser element type hold.";
    "cdiv"("a, b"): "The quotient rounded up.";
    "next_power_of_2"("n"): "The next power of two.";
    "sum"("x, axis=None, keepdims=False, dtype=None"): "The sum, of all elements or along an axis.";
    "max"("x, axis=None, keepdims=False, dtype=None"): "The maximum, of all elements or along an axis; of several numbers, the largest.";
    "min"("x, axis=None, keepdims=False, dtype=None"): "The minimum, of all elements or along an axis; of several numbers, the smallest.";
    "amax"("x, axis=None, keepdims=False"): "As `max` of a tensor.";
    "amin"("x, axis=None, keepdims=False"): "As `min` of a tensor.";
    "mean"("x, axis=None, keepdims=False, dtype=None"): "The mean, of all elements or along an axis.";
    "argmax"("x, axis=None, keepdims=False, dtype=None"): "The place of the maximum.";
    "argmin"("x, axis=None, keepdims=False, dtype=None"): "The place of the minimum.";
    "prod"("x, axis=None, keepdims=False, dtype=None"): "The product, of all elements or along an axis.";
    "var"("x, axis=None, keepdims=False, dtype=None"): "The variance, of all elements or along an axis.";
    "std"("x, axis=None, keepdims=False, dtype=None"): "The standard deviation, of all elements or along an axis.";
    "any"("x, axis=None, keepdims=False"): "True where any element is, of all or along an axis.";
    "all"("x, axis=None, keepdims=False"): "True where all elements are, of all or along an axis.";
    "cumsum"("x, axis=-1, dtype=None"): "Running sums along an axis.";
    "cumprod"("x, axis=-1, dtype=None"): "Running products along an axis.";
    "softmax"("x, axis=-1, dtype=None"): "Softmax along an axis.";
    "log_softmax"("x, axis=-1, dtype=None"): "The logarithm of softmax along an axis.";
    "sort"("x, axis=-1, descending=False"): "Sorted along an axis.";
    "matmul"("a, b"): "The matrix product, as `a @ b`; also called `mm`, `bmm` and `dot`.";
    "mm"("a, b"): "As `matmul`.";
    "bmm"("a, b"): "As `matmul`.";
    "dot"("a, b"): "As `matmul`.";
    "cat"("tensors, axis=0"): "Tensors one after the other along an axis; also called `concatenate`.";
    "concatenate"("tensors, axis=0"): "As `cat`.";
    "stack"("tensors, axis=0"): "Tensors side by side along a new axis.";
    "transpose"("x, dim0, dim1"): "A view with two axes exchanged.";
    "permute"("x, *axes"): "A view with its axes in another order.";
    "reshape"("x, *shape"): "The same elements in another shape.";
    "where"("condition, a, b"): "`a` where the condition is true, else `b`, element by element.";
    "clamp"("x, min, max"): "Kept between two bounds, element by element; also called `clip`.";
    "clip"("x, min, max"): "As `clamp`.";
    "maximum"("a, b"): "The larger of two, element by element.";
    "minimum"("a, b"): "The smaller of two, element by element.";
    "pow"("a, b"): "A power, element by element.";
    "fmod"("a, b"): "The remainder with the sign of `a`, element by element.";
    "atan2"("a, b"): "The angle of the point `(b, a)`, element by element.";
    "abs"("x"): "The absolute value, element by element.";
    "exp"("x"): "The exponential, element by element.";
    "exp2"("x"): "Two to the power of `x`, element by element.";
    "expm1"("x"): "The exponential less one, element by element.";
    "log"("x"): "The natural logarithm, element by element.";
    "log2"("x"): "The logarithm to base two, element by element.";
    "log10"("x"): "The logarithm to base ten, element by element.";
    "log1p"("x"): "The logarithm of one more than `x`, element by element.";
    "sqrt"("x"): "The square root, element by element.";
    "rsqrt"("x"): "One over the square root, element by element.";
    "square"("x"): "`x * x`, element by element.";
    "sin"("x"): "The sine, element by element.";
    "cos"("x"): "The cosine, element by element.";
    "tan"("x"): "The tangent, element by element.";
    "asin"("x"): "The angle of a sine, element by element.";
    "acos"("x"): "The angle of a cosine, element by element.";
    "atan"("x"): "The angle of a tangent, element by element.";
    "tanh"("x"): "The hyperbolic tangent, element by element.";
    "erf"("x"): "The error function, element by element.";
    "sigmoid"("x"): "The logistic function, element by element.";
    "relu"("x"): "`x` where positive, else 0, element by element.";
    "silu"("x"): "`x * sigmoid(x)`, element by element.";
    "gelu"("x"): "`x` times the normal distribution function of `x`, element by element.";
    "floor"("x"): "Rounded down, element by element.";
    "ceil"("x"): "Rounded up, element by element.";
    "trunc"("x"): "Rounded towards zero, element by element.";
    "round"("x"): "Rounded to the nearest integer, ties to even, element by element.";
    "isnan"("x"): "True where NaN, element by element.";
    "range"("start, end, step"): "Numbers to loop over: `for i in range(k):`.";
    "len"("x"): "How many items a tuple has, or the first extent of a tensor.";
    "int"("x"): "A number as an integer, rounded towards zero.";
    "float"("x"): "A number as a float.";
    "tuple"("x"): "A tuple of the items.";
    "list"("x"): "As `tuple`.";
};

/// The function of scenarios that is called `name`.
#[must_use]
pub fn scenario_function(name: &str) -> Option<&'static ScenarioFunction> {
    SCENARIO_FUNCTIONS.iter().find(|function| function.name == name)
}
