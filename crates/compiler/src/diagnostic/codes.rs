//! The table of diagnostic codes. `tile explain`, the documentation and the editor read it.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::Severity;

/// What the table says of one code.
#[derive(Debug)]
pub struct CodeInfo {
    /// `family/name`, as users write it.
    pub name: &'static str,
    /// Default severity.
    pub level: Severity,
    /// One line: what the code means.
    pub summary: &'static str,
    /// The explanation page in Markdown: why it matters, a wrong example, a right one.
    pub explanation: &'static str,
}

macro_rules! codes {
    ($( $variant:ident = $name:literal, $level:ident, $summary:literal, $explanation:expr; )*) => {
        /// A diagnostic code: one row of the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $( #[doc = $summary] $variant, )*
        }

        impl Code {
            /// Every code, in the table's order.
            pub const ALL: &'static [Code] = &[ $( Code::$variant, )* ];

            /// The code's row.
            pub fn info(self) -> &'static CodeInfo {
                match self {
                    $( Code::$variant => &CodeInfo {
                        name: $name,
                        level: Severity::$level,
                        summary: $summary,
                        explanation: $explanation,
                    }, )*
                }
            }
        }
    };
}

impl Code {
    /// The code called `name` (`family/name`), if there is one.
    pub fn from_name(name: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.info().name == name)
    }

    /// The part of its name before the `/`.
    pub fn family(self) -> &'static str {
        self.name().split('/').next().unwrap_or_default()
    }

    /// Whether users call a code, or a family of codes, by this name.
    pub fn is_any_called(name: &str) -> bool {
        Code::ALL.iter().any(|code| code.name() == name || code.family() == name)
    }

    /// True when the message is one example of many that prove the same.
    pub(crate) fn is_counter_example(self) -> bool {
        matches!(self.family(), "bounds" | "race" | "perf")
    }

    /// True for the family `constexpr`.
    pub(crate) fn is_constexpr(self) -> bool {
        self.family() == "constexpr"
    }

    /// True for the family `resource`.
    pub fn is_resource(self) -> bool {
        self.family() == "resource"
    }

    /// True for what masks may be found to be whatever the extents of tiles are: it is told where these
    /// are not known, too.
    pub fn is_tried(self) -> bool {
        matches!(self, Code::UndefinedLanes | Code::MaskAxis)
    }

    /// True for what follows from where the accesses of a launch are.
    pub fn is_of_accesses(self) -> bool {
        matches!(
            self,
            Code::GridShape
                | Code::IndexOverflow
                | Code::OutOfBounds
                | Code::Race
                | Code::ReadRace
                | Code::RepeatedUpdate
                | Code::Uncovered
                | Code::Unwritten
        )
    }

    /// `family/name`.
    pub fn name(self) -> &'static str {
        self.info().name
    }
}

/// By name, as users write it.
impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Code, D::Error> {
        let name = String::deserialize(deserializer)?;
        Code::from_name(&name).ok_or_else(|| de::Error::custom(format!("no code `{name}`")))
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

codes! {
    SyntaxError = "syntax/error", Error, "the text is not valid Python",
        include_str!("explain/syntax-error.md");
    Unreadable = "syntax/unreadable", Error, "the file cannot be read as source text",
        include_str!("explain/syntax-unreadable.md");
    UndefinedName = "name/undefined", Error, "a name that nothing defines",
        include_str!("explain/name-undefined.md");
    AfterLoop = "name/after-loop", Warning, "a loop variable that is read after its loop, where it has no value",
        include_str!("explain/name-after-loop.md");
    UnknownBuiltin = "name/unknown-builtin", Error, "a member that the language (in this version) does not have",
        include_str!("explain/name-unknown-builtin.md");
    UnknownKeyword = "name/unknown-keyword", Error, "a keyword argument that the function does not have",
        include_str!("explain/name-unknown-keyword.md");
    NoAttribute = "name/no-attribute", Error, "an attribute that a value does not have",
        include_str!("explain/name-no-attribute.md");
    GlobalNotConstexpr = "constexpr/global", Error, "a global variable that is not a `tl.constexpr`",
        include_str!("explain/constexpr-global.md");
    HostFunction = "python/host-function", Error, "a call of a plain Python function",
        include_str!("explain/python-host-function.md");
    DeviceFunction = "python/device-function", Error, "a call of a function of the language in host code",
        include_str!("explain/python-device-function.md");
    Raises = "python/raises", Warning, "host code that raises an exception whenever it runs",
        include_str!("explain/python-raises.md");
    WrongResult = "launch/wrong-result", Warning, "kernels leave something else than the host code expects",
        include_str!("explain/launch-wrong-result.md");
    MissingArgument = "type/missing-argument", Error, "a call lacks an argument",
        include_str!("explain/type-missing-argument.md");
    TooManyArguments = "type/extra-argument", Error, "a call has too many arguments",
        include_str!("explain/type-extra-argument.md");
    NotCallable = "type/not-callable", Error, "a call of something that is no function",
        include_str!("explain/type-not-callable.md");
    NotConstexpr = "constexpr/not-constexpr", Error, "a run-time value where a compile-time one is needed",
        include_str!("explain/constexpr-not-constexpr.md");
    ArangeBound = "constexpr/arange-bound", Error, "a bound of `tl.arange` that is no compile-time integer in range",
        include_str!("explain/constexpr-arange-bound.md");
    ShapeExtent = "constexpr/shape", Error, "an extent of a shape that is no compile-time integer",
        include_str!("explain/constexpr-shape.md");
    ConstexprReassigned = "constexpr/reassigned", Error, "a second assignment of a `tl.constexpr`",
        include_str!("explain/constexpr-reassigned.md");
    StaticAssert = "constexpr/static-assert", Error, "a `tl.static_assert` that fails",
        include_str!("explain/constexpr-static-assert.md");
    StaticAssertType = "constexpr/static-assert-condition", Error, "a condition of `tl.static_assert` that is no compile-time bool",
        include_str!("explain/constexpr-static-assert-condition.md");
    StaticPrint = "constexpr/static-print", Info, "text printed by `tl.static_print`",
        include_str!("explain/constexpr-static-print.md");
    TooMuchCode = "constexpr/too-much-code", Error, "unrolling and inlining make too much code",
        include_str!("explain/constexpr-too-much-code.md");
    Recursion = "constexpr/recursion", Error, "a function that calls itself without end",
        include_str!("explain/constexpr-recursion.md");
    PowerOfTwo = "shape/power-of-two", Error, "an extent that is not a power of two",
        include_str!("explain/shape-power-of-two.md");
    TooManyElements = "shape/too-many-elements", Error, "a tile with more than 1048576 elements",
        include_str!("explain/shape-too-many-elements.md");
    BroadcastMismatch = "shape/broadcast", Error, "shapes that do not broadcast",
        include_str!("explain/shape-broadcast.md");
    ReshapeCount = "shape/reshape", Error, "a shape that does not fit the elements",
        include_str!("explain/shape-reshape.md");
    PermuteAxes = "shape/permute", Error, "axes that are no permutation",
        include_str!("explain/shape-permute.md");
    AxisRange = "shape/axis", Error, "an axis that a value does not have",
        include_str!("explain/shape-axis.md");
    TensorIndex = "shape/index", Error, "an index of a tile other than `None` and `:`",
        include_str!("explain/shape-index.md");
    IndexRange = "shape/index-range", Error, "an index beyond the end of a tuple",
        include_str!("explain/shape-index-range.md");
    GatherShape = "shape/gather", Error, "source and index of `tl.gather` that do not fit",
        include_str!("explain/shape-gather.md");
    StoreShape = "shape/store", Error, "a stored value that does not fit the pointers",
        include_str!("explain/shape-store.md");
    DotShape = "shape/dot", Error, "operands of a matrix product that do not fit",
        include_str!("explain/shape-dot.md");
    HintLength = "shape/hint", Error, "a hint with another number of values than axes",
        include_str!("explain/shape-hint.md");
    HistogramInput = "shape/histogram", Error, "an input that `tl.histogram` does not take",
        include_str!("explain/shape-histogram.md");
    MaskShape = "mask/shape", Error, "a mask that does not fit the pointers",
        include_str!("explain/mask-shape.md");
    MaskType = "mask/type", Error, "a mask that is not `int1`",
        include_str!("explain/mask-type.md");
    OtherWithoutMask = "mask/other-without-mask", Error, "`other` without `mask`",
        include_str!("explain/mask-other-without-mask.md");
    UndefinedLanes = "mask/undefined", Warning, "undefined lanes of a masked load that matter",
        include_str!("explain/mask-undefined.md");
    CountedLanes = "mask/counted", Warning, "a reduction or an addition that counts lanes which a mask leaves out",
        include_str!("explain/mask-counted.md");
    MaskFirstBlock = "mask/first-block", Warning, "a mask that only the first block passes",
        include_str!("explain/mask-first-block.md");
    ReducedAxis = "shape/reduced-axis", Warning, "numbers of rows that meet the columns of their tile",
        include_str!("explain/shape-reduced-axis.md");
    MixedAxes = "shape/mixed-axes", Warning, "tiles that are combined although an axis goes with other places in each",
        include_str!("explain/shape-mixed-axes.md");
    MaskAxis = "mask/axis", Warning, "a mask along another axis than the addresses",
        include_str!("explain/mask-axis.md");
    MaskAlwaysTrue = "mask/always-true", Hint, "a mask that is always true",
        include_str!("explain/mask-always-true.md");
    UnknownArgument = "launch/unknown-argument", Error, "a launch with a keyword that the kernel does not have",
        include_str!("explain/launch-unknown-argument.md");
    MissingLaunchArgument = "launch/missing-argument", Error, "a launch that lacks an argument",
        include_str!("explain/launch-missing-argument.md");
    SurplusArgument = "launch/extra-argument", Error, "a launch with too many arguments",
        include_str!("explain/launch-extra-argument.md");
    RepeatedArgument = "launch/repeated-argument", Error, "a launch that gives a parameter twice",
        include_str!("explain/launch-repeated-argument.md");
    TunedArgument = "launch/tuned-argument", Error, "a launch that gives what autotuning sets",
        include_str!("explain/launch-tuned-argument.md");
    ExchangedArguments = "launch/exchanged-arguments", Warning, "two arguments in each other's places, by their names",
        include_str!("explain/launch-exchanged-arguments.md");
    RepeatedUpdate = "launch/repeated-update", Warning, "memory that each run of autotuning changes again",
        include_str!("explain/launch-repeated-update.md");
    TuningName = "launch/tuning-name", Error, "a decorator that names a parameter which does not exist",
        include_str!("explain/launch-tuning-name.md");
    WarpCount = "launch/num-warps", Error, "a number of warps that is no power of two",
        include_str!("explain/launch-num-warps.md");
    BadLaunchOption = "launch/option", Error, "an option of a launch with a value that it does not have",
        include_str!("explain/launch-option.md");
    GridShape = "launch/grid", Error, "a grid that is no tuple of one to three extents",
        include_str!("explain/launch-grid.md");
    UnusedAxis = "launch/unused-axis", Warning, "an axis of the grid along which all programs do the same",
        include_str!("explain/launch-unused-axis.md");
    ArgumentType = "launch/argument-type", Error, "an argument of a type that the kernel cannot use",
        include_str!("explain/launch-argument-type.md");
    LossyStore = "launch/lossy-store", Warning, "a store to elements that cannot hold the number",
        include_str!("explain/launch-lossy-store.md");
    LossyConversion = "launch/lossy-conversion", Warning, "a conversion to integers that drops fractions of floats",
        include_str!("explain/launch-lossy-conversion.md");
    LostResult = "launch/lost-result", Warning, "a result that is stored to a copy which nothing holds",
        include_str!("explain/launch-lost-result.md");
    OutOfBounds = "bounds/out-of-bounds", Error, "an access outside of its buffer",
        include_str!("explain/bounds-out-of-bounds.md");
    IndexOverflow = "bounds/overflow", Error, "an offset that overflows its integer type",
        include_str!("explain/bounds-overflow.md");
    Uncovered = "bounds/uncovered", Warning, "a grid that leaves elements of an output untouched",
        include_str!("explain/bounds-uncovered.md");
    Unread = "bounds/unread", Warning, "a tensor of which programs, or rows of a tile, read partly the same and leave much unread",
        include_str!("explain/bounds-unread.md");
    LoopStep = "bounds/loop-step", Warning, "a loop that does not go on by as much as it reads",
        include_str!("explain/bounds-loop-step.md");
    Unwritten = "bounds/unwritten", Warning, "elements that are read, or added to, before anything writes them",
        include_str!("explain/bounds-unwritten.md");
    Race = "race/stores", Warning, "two programs that store to one element",
        include_str!("explain/race-stores.md");
    ReadRace = "race/read-write", Warning, "a program that reads what another one stores",
        include_str!("explain/race-read-write.md");
    SharedMemory = "resource/shared-memory", Warning, "more shared memory than a block can have",
        include_str!("explain/resource-shared-memory.md");
    Spills = "resource/spills", Info, "registers that spill to memory",
        include_str!("explain/resource-spills.md");
    Occupancy = "resource/occupancy", Info, "registers that keep most warps from running",
        include_str!("explain/resource-occupancy.md");
    Uncoalesced = "perf/uncoalesced", Hint, "lanes that are a sector of memory or more apart",
        include_str!("explain/perf-uncoalesced.md");
    Narrow = "perf/narrow-access", Hint, "threads that move less than four bytes at a time",
        include_str!("explain/perf-narrow-access.md");
    TensorCores = "perf/tensor-cores", Hint, "a matrix product without tensor cores",
        include_str!("explain/perf-tensor-cores.md");
    Float64 = "perf/float64", Hint, "a float64 scalar that makes a tile float64",
        include_str!("explain/perf-float64.md");
    SmallProduct = "perf/small-product", Hint, "a matrix product that fills no tensor core",
        include_str!("explain/perf-small-product.md");
    AtomicLanes = "perf/atomic-lanes", Hint, "lanes that update one address by atomic operations",
        include_str!("explain/perf-atomic-lanes.md");
    OperandOrder = "perf/operand-order", Hint, "an operand that is transposed for tensor cores",
        include_str!("explain/perf-operand-order.md");
    SumInLoop = "perf/sum-in-loop", Hint, "a tile summed to a number in each trip of a loop",
        include_str!("explain/perf-sum-in-loop.md");
    WhereCondition = "type/where-condition", Warning, "a condition of `tl.where` that is not `int1`",
        include_str!("explain/type-where-condition.md");
    NotATensor = "type/not-a-tensor", Error, "a value that cannot become a tensor",
        include_str!("explain/type-not-a-tensor.md");
    NotAPointer = "type/not-a-pointer", Error, "memory accessed through something that is no pointer",
        include_str!("explain/type-not-a-pointer.md");
    ConstPointer = "type/const-pointer", Error, "a store through a `tl.const` pointer",
        include_str!("explain/type-const-pointer.md");
    PointerArithmetic = "type/pointer-arithmetic", Error, "arithmetic that pointers do not have",
        include_str!("explain/type-pointer-arithmetic.md");
    BadOperand = "type/operand", Error, "an operator that is not defined for its operands",
        include_str!("explain/type-operand.md");
    BadCast = "type/cast", Error, "a conversion that does not exist",
        include_str!("explain/type-cast.md");
    BadDType = "type/dtype", Error, "something else where an element type is needed",
        include_str!("explain/type-dtype.md");
    UnsupportedDType = "type/unsupported-dtype", Error, "an element type that the target does not have",
        include_str!("explain/type-unsupported-dtype.md");
    FloatRequired = "type/float-required", Error, "a function of floats on another type",
        include_str!("explain/type-float-required.md");
    IntegerRange = "type/integer-range", Error, "a number out of the range of its type",
        include_str!("explain/type-integer-range.md");
    DotType = "type/dot", Error, "operand types that a matrix product does not take",
        include_str!("explain/type-dot.md");
    AtomicType = "type/atomic", Error, "an element type that an atomic operation does not take",
        include_str!("explain/type-atomic.md");
    CombineFunction = "type/combine-function", Error, "a combining function whose results do not fit its inputs",
        include_str!("explain/type-combine-function.md");
    BadOption = "type/option", Error, "an option with a value that it does not have",
        include_str!("explain/type-option.md");
    AsmOperands = "type/inline-assembly", Error, "inline assembly whose operands do not fit its constraints",
        include_str!("explain/type-inline-assembly.md");
    ExclusiveOptions = "type/exclusive-options", Warning, "options of a load or store that PTX does not have together",
        include_str!("explain/type-exclusive-options.md");
    BadCondition = "type/condition", Error, "a condition that is no single truth value",
        include_str!("explain/type-condition.md");
    BadUnpack = "type/unpack", Error, "an unpacking that does not fit",
        include_str!("explain/type-unpack.md");
    LoopBound = "type/loop-bound", Error, "a loop bound that is no scalar integer",
        include_str!("explain/type-loop-bound.md");
    LoopCarried = "type/loop-carried", Error, "a variable whose type changes in a loop",
        include_str!("explain/type-loop-carried.md");
    BranchMismatch = "type/branch-mismatch", Error, "a variable with different types in the branches of an `if`",
        include_str!("explain/type-branch-mismatch.md");
    ReturnMismatch = "type/return-mismatch", Error, "a function that returns different types",
        include_str!("explain/type-return-mismatch.md");
    BlockPointer = "type/block-pointer", Error, "a block pointer that is made or used wrongly",
        include_str!("explain/type-block-pointer.md");
    Descriptor = "type/descriptor", Error, "a tensor descriptor that is made or used wrongly",
        include_str!("explain/type-descriptor.md");
    NoInline = "type/noinline", Error, "a tile passed to a `noinline` function",
        include_str!("explain/type-noinline.md");
    RandomSeed = "type/random-seed", Error, "a seed or offset of random numbers that is no integer",
        include_str!("explain/type-random-seed.md");
    PrintPrefix = "type/print-prefix", Error, "a print whose first argument is no string",
        include_str!("explain/type-print-prefix.md");
    UnusedResult = "type/unused-result", Error, "a result that must be used",
        include_str!("explain/type-unused-result.md");
    UnsupportedPython = "python/unsupported", Error, "Python that kernels may not use",
        include_str!("explain/python-unsupported.md");
    IgnoredKeyword = "python/ignored-keyword", Warning, "a step of `range` that Triton does not read",
        include_str!("explain/python-ignored-keyword.md");
    Precedence = "python/precedence", Warning, "an operator that is applied before a comparison beside it",
        include_str!("explain/python-precedence.md");
    NotUnderstood = "python/not-understood", Error, "something that this compiler cannot compile yet",
        include_str!("explain/python-not-understood.md");
    Inactive = "constexpr/inactive", Hint, "code that the active specialization leaves out (in editors)",
        include_str!("explain/constexpr-inactive.md");
    Unused = "name/unused", Hint, "a variable or parameter that nothing reads (in editors)",
        include_str!("explain/name-unused.md");
    Deprecated = "name/deprecated", Hint, "a member of the language that should not be used any more (in editors)",
        include_str!("explain/name-deprecated.md");
    UnknownCode = "name/unknown-code", Warning, "an `allow` comment that names no code",
        include_str!("explain/name-unknown-code.md");
    NoKernel = "name/no-kernel", Error, "a kernel that the file does not define",
        include_str!("explain/name-no-kernel.md");
}
