//! Code with places to fill in, and what scenarios can call.

use super::{Item, ItemKindHint, is_word, item};

/// A snippet.
struct Snippet {
    label: &'static str,
    detail: &'static str,
    body: &'static str,
    /// It stands inside of kernels, not at module level.
    inside: bool,
}

const SNIPPETS: [Snippet; 3] = [
    Snippet {
        label: "kernel",
        detail: "a kernel with a scenario",
        body: "@triton.jit\ndef ${1:name}_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):\n    \
               offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    \
               mask = offsets < n\n    \
               x = tl.load(x_ptr + offsets, mask=mask)\n    \
               tl.store(out_ptr + offsets, ${2:x}, mask=mask)\n\n\n\
               # tile: n = ${3:10_000}\n\
               # tile: x, out = randn(n), empty(n)\n\
               # tile: ${1:name}_kernel[(cdiv(n, 1024),)](x, out, n, BLOCK=1024)\n\
               # tile: assert allclose(out, ${4:x})\n",
        inside: false,
    },
    Snippet {
        label: "masked load",
        detail: "a load that stays inside of its buffer",
        body: "${1:mask} = ${2:offsets} < ${3:n}\n\
               ${4:x} = tl.load(${5:x_ptr} + ${2:offsets}, mask=${1:mask}, other=${6:0.0})",
        inside: true,
    },
    Snippet {
        label: "reduction loop",
        detail: "a sum over an axis that does not fit into one tile",
        body: "${1:acc} = tl.zeros((${2:BLOCK},), dtype=tl.float32)\n\
               for ${3:start} in range(0, ${4:n}, ${2:BLOCK}):\n    \
               ${5:offsets} = ${3:start} + tl.arange(0, ${2:BLOCK})\n    \
               ${1:acc} += tl.load(${6:x_ptr} + ${5:offsets}, mask=${5:offsets} < ${4:n}, other=0.0)\n\
               ${7:total} = tl.sum(${1:acc}, axis=0)",
        inside: true,
    },
];

/// The snippets that fit where a statement begins.
pub(super) fn at(text: &str, offset: usize, inside: bool) -> impl Iterator<Item = Item> {
    let line = text[..offset].rsplit(['\n', '\r']).next().unwrap_or_default();
    let indent = line.trim_end_matches(is_word);
    let begins = indent.chars().all(|c| c == ' ' || c == '\t');
    // A function that is left again begins at the margin.
    let inside = inside && !indent.is_empty();
    let fits = move |snippet: &&Snippet| begins && snippet.inside == inside;
    SNIPPETS.iter().filter(fits).map(|snippet| Item {
        insert: Some(snippet.body.to_owned()),
        detail: Some(snippet.detail.to_owned()),
        snippet: true,
        ..item(snippet.label, ItemKindHint::Snippet)
    })
}

/// A function of the host language of scenarios.
#[derive(Debug)]
pub(crate) struct ScenarioFunction {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its parameters as Python writes them, apart from each other by a comma and a space.
    pub(crate) signature: &'static str,
    /// A line about it.
    pub(crate) doc: &'static str,
}

impl ScenarioFunction {
    /// Its parameters, each with its default.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &'static str> {
        self.signature.split(", ").filter(|parameter| !parameter.is_empty())
    }
}

/// The name of a parameter as it is written in a signature: `seed` of `seed=0`.
pub(crate) fn parameter_name(parameter: &str) -> &str {
    let name = parameter.trim_start_matches('*');
    name.split_once('=').map_or(name, |(name, _)| name)
}

macro_rules! functions {
    ($( $name:literal($signature:literal): $doc:literal; )*) => {
        &[ $( ScenarioFunction { name: $name, signature: $signature, doc: $doc }, )* ]
    };
}

/// What scenarios can call.
const SCENARIO_FUNCTIONS: &[ScenarioFunction] = functions! {
    "randn"("*shape, dtype=float32, seed=0"): "A tensor of normal random numbers, the same on every machine.";
    "rand"("*shape, dtype=float32, seed=0"): "A tensor of random numbers from 0 to 1, the same on every machine.";
    "randint"("lo, hi, *shape, dtype=float32, seed=0"): "A tensor of random integers from `lo` to below `hi`, the same on every machine.";
    "arange"("n, dtype=None"): "The integers from 0 to below `n`.";
    "zeros"("*shape, dtype=float32"): "A tensor of zeros.";
    "ones"("*shape, dtype=float32"): "A tensor of ones.";
    "full"("*shape, value, dtype=float32"): "A tensor of one value, which follows the shape.";
    "empty"("*shape, dtype=float32"): "A tensor that nobody wrote yet: it holds NaN, or a pattern for integers.";
    "load"("path"): "A tensor from a `.npy` file; its path counts from the folder of the source.";
    "allclose"("a, b, rtol=None, atol=None, equal_nan=False"): "True when two tensors agree: `|a - b| <= atol + rtol * |b|` everywhere. Without tolerances, those of the looser element type hold.";
    "cdiv"("a, b"): "The quotient rounded up.";
    "next_power_of_2"("n"): "The next power of two.";
    "sum"("x, axis=None, keepdims=False, dtype=None"): "The sum, of all elements or along an axis.";
    "max"("x, axis=None, keepdims=False, dtype=None"): "The maximum, of all elements or along an axis.";
    "min"("x, axis=None, keepdims=False, dtype=None"): "The minimum, of all elements or along an axis.";
    "mean"("x, axis=None, keepdims=False, dtype=None"): "The mean, of all elements or along an axis.";
    "argmax"("x, axis=None, keepdims=False, dtype=None"): "The place of the maximum.";
    "argmin"("x, axis=None, keepdims=False, dtype=None"): "The place of the minimum.";
    "prod"("x, axis=None, keepdims=False, dtype=None"): "The product, of all elements or along an axis.";
    "var"("x, axis=None, keepdims=False, dtype=None"): "The variance, of all elements or along an axis.";
    "std"("x, axis=None, keepdims=False, dtype=None"): "The standard deviation, of all elements or along an axis.";
    "any"("x, axis=None, keepdims=False"): "True where any element is, of all or along an axis.";
    "all"("x, axis=None, keepdims=False"): "True where all elements are, of all or along an axis.";
    "cumprod"("x, axis=-1"): "Running products along an axis.";
    "cumsum"("x, axis=-1"): "Running sums along an axis.";
    "softmax"("x, axis=-1"): "Softmax along an axis.";
    "exp"("x"): "The exponential, element by element.";
    "log"("x"): "The natural logarithm, element by element.";
    "exp2"("x"): "Two to the power of `x`, element by element.";
    "log2"("x"): "The logarithm to base two, element by element.";
    "sin"("x"): "The sine, element by element.";
    "cos"("x"): "The cosine, element by element.";
    "tanh"("x"): "The hyperbolic tangent, element by element.";
    "floor"("x"): "Rounded down, element by element.";
    "ceil"("x"): "Rounded up, element by element.";
    "round"("x"): "Rounded to the nearest integer, ties to even, element by element.";
    "relu"("x"): "`x` where positive, else 0, element by element.";
    "silu"("x"): "`x * sigmoid(x)`, element by element.";
    "gelu"("x"): "`x` times the normal distribution function of `x`, element by element.";
    "square"("x"): "`x * x`, element by element.";
    "sqrt"("x"): "The square root, element by element.";
    "rsqrt"("x"): "One over the square root, element by element.";
    "abs"("x"): "The absolute value, element by element.";
    "maximum"("a, b"): "The larger of two, element by element.";
    "minimum"("a, b"): "The smaller of two, element by element.";
    "where"("condition, a, b"): "`a` where the condition is true, else `b`, element by element.";
    "clamp"("x, min, max"): "Kept between two bounds, element by element.";
    "sigmoid"("x"): "The logistic function, element by element.";
    "erf"("x"): "The error function, element by element.";
    "sort"("x, axis=-1, descending=False"): "Sorted along an axis.";
    "range"("n"): "Numbers to loop over: `for i in range(k):`.";
};

/// The function of scenarios that is called `name`.
pub(crate) fn scenario_function(name: &str) -> Option<&'static ScenarioFunction> {
    SCENARIO_FUNCTIONS.iter().find(|function| function.name == name)
}

/// The functions of scenarios as completions.
pub(super) fn scenario_functions() -> impl Iterator<Item = Item> {
    SCENARIO_FUNCTIONS.iter().map(|function| Item {
        detail: Some(format!("{}({})", function.name, function.signature)),
        doc: Some(function.doc),
        ..item(function.name, ItemKindHint::Builtin)
    })
}
