//! The table of operations: everything that is known of an operation is one row here.
//!
//! A row reads
//! `Opcode = mnemonic(operand, optional[?], rest[*]) : AttrKind => ResultRule, Effects, regions;`
//! and its doc comment is the operation's semantics. Optional operands keep their position: an
//! absent one is held as `None` in the operand list.

use super::AttrKind;

/// How many values an operand slot takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    /// Exactly one.
    One,
    /// One or none; keeps its position.
    Optional,
    /// Any number; only as the last slot.
    Rest,
}

/// What an operation does beyond its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effects {
    /// Nothing: it may be removed, duplicated and moved.
    Pure,
    /// Reads memory.
    Read,
    /// Writes memory, or is seen from outside.
    Write,
    /// Structured control flow: as its regions do.
    Regions,
    /// Ends a region.
    Terminator,
}

/// How result types follow from operand types. The verifier and the builder read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultRule {
    /// No result.
    None,
    /// All operands and the result have one integer type.
    SameInt,
    /// All operands and the result have one float type.
    SameFloat,
    /// All operands and the result have one type of any element.
    Same,
    /// Operands of one type; `i1` at their shape.
    Bool,
    /// `i32` scalar.
    Index,
    /// First operand `i1` at the shape (or scalar), the other two and the result of one type.
    Select,
    /// The operand's shape and layout with another element type, given explicitly.
    Cast,
    /// First operand pointers, second integers of the same shape; the type of the first.
    Pointer,
    /// Given explicitly; the verifier has a rule for the opcode.
    Explicit,
}

/// One operand slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperandSlot {
    /// Its name, which the text form shows for optional slots.
    pub name: &'static str,
    /// How many values it takes.
    pub arity: Arity,
}

/// A row of the table.
#[derive(Debug)]
pub struct OpInfo {
    /// Spelling in the text form.
    pub mnemonic: &'static str,
    /// Operand slots, in order.
    pub operands: &'static [OperandSlot],
    /// Which attributes it takes.
    pub attrs: AttrKind,
    /// How result types follow.
    pub result: ResultRule,
    /// What it does beyond its results.
    pub effects: Effects,
    /// Number of regions.
    pub regions: usize,
    /// Semantics, in Markdown.
    pub doc: &'static str,
}

macro_rules! arity {
    () => {
        Arity::One
    };
    (?) => {
        Arity::Optional
    };
    (*) => {
        Arity::Rest
    };
}

macro_rules! ops {
    ($(
        $(#[doc = $doc:literal])*
        $opcode:ident = $mnemonic:ident ( $( $operand:ident $([$arity:tt])? ),* ) : $attrs:ident
            => $result:ident, $effects:ident, $regions:literal;
    )*) => {
        /// An operation; see the table for what each one means.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Opcode {
            $( $(#[doc = $doc])* $opcode, )*
        }

        impl Opcode {
            /// Every operation, in the table's order.
            pub const ALL: &'static [Opcode] = &[ $( Opcode::$opcode, )* ];

            /// The operation's row.
            pub fn info(self) -> &'static OpInfo {
                match self {
                    $( Opcode::$opcode => &OpInfo {
                        mnemonic: stringify!($mnemonic),
                        operands: &[ $( OperandSlot {
                            name: stringify!($operand),
                            arity: arity!($($arity)?),
                        } ),* ],
                        attrs: AttrKind::$attrs,
                        result: ResultRule::$result,
                        effects: Effects::$effects,
                        regions: $regions,
                        doc: concat!($( $doc, "\n" ),*),
                    }, )*
                }
            }
        }
    };
}

ops! {
    // Constants and positions.
    /// Every element has the given bits.
    Constant = constant() : Constant => Explicit, Pure, 0;
    /// Position of this program in the grid along `axis`.
    ProgramId = program_id() : Axis => Index, Pure, 0;
    /// Extent of the grid along `axis`.
    NumPrograms = num_programs() : Axis => Index, Pure, 0;
    /// The integers `start..end` as a one-dimensional `i32` tile.
    Arange = arange() : Range => Explicit, Pure, 0;
    /// A value that nothing may depend on.
    Poison = poison() : None => Explicit, Pure, 0;

    // Shape. Element order is row-major throughout.
    /// A tile whose elements all equal the scalar.
    Splat = splat(value) : None => Explicit, Pure, 0;
    /// The one element of a one-element tile, as a scalar.
    Unsplat = unsplat(value) : None => Explicit, Pure, 0;
    /// Repeats axes of extent 1 up to the result's extents; ranks are equal.
    Broadcast = broadcast(value) : None => Explicit, Pure, 0;
    /// Inserts an axis of extent 1 at `axis` of the result.
    ExpandDims = expand_dims(value) : Axis => Explicit, Pure, 0;
    /// The same elements in row-major order at another shape.
    Reshape = reshape(value) : Reshape => Explicit, Pure, 0;
    /// Permutes axes.
    Permute = permute(value) : Order => Explicit, Pure, 0;
    /// Two tiles (or scalars) along a new last axis of extent 2.
    Join = join(lhs, rhs) : None => Explicit, Pure, 0;
    /// The two halves along a last axis of extent 2; two results.
    Split = split(value) : None => Explicit, Pure, 0;
    /// One tile after another along axis 0.
    Cat = cat(lhs, rhs) : None => Explicit, Pure, 0;
    /// `result[i, j] = value[index[i, j], j]` for axis 0, and likewise for other axes.
    Gather = gather(value, index) : Axis => Explicit, Pure, 0;

    // Integers, wrapping.
    /// Sum.
    Add = add(lhs, rhs) : None => SameInt, Pure, 0;
    /// Difference.
    Sub = sub(lhs, rhs) : None => SameInt, Pure, 0;
    /// Product.
    Mul = mul(lhs, rhs) : None => SameInt, Pure, 0;
    /// Signed quotient, toward zero; undefined for a zero divisor.
    DivS = div_s(lhs, rhs) : None => SameInt, Pure, 0;
    /// Unsigned quotient; undefined for a zero divisor.
    DivU = div_u(lhs, rhs) : None => SameInt, Pure, 0;
    /// Signed remainder with the sign of the dividend.
    RemS = rem_s(lhs, rhs) : None => SameInt, Pure, 0;
    /// Unsigned remainder.
    RemU = rem_u(lhs, rhs) : None => SameInt, Pure, 0;
    /// Upper half of the double-width unsigned product.
    MulHighU = mul_high_u(lhs, rhs) : None => SameInt, Pure, 0;
    /// Bitwise and.
    And = and(lhs, rhs) : None => SameInt, Pure, 0;
    /// Bitwise or.
    Or = or(lhs, rhs) : None => SameInt, Pure, 0;
    /// Bitwise exclusive or.
    Xor = xor(lhs, rhs) : None => SameInt, Pure, 0;
    /// Shift left; undefined when the amount is not below the width.
    Shl = shl(lhs, rhs) : None => SameInt, Pure, 0;
    /// Arithmetic shift right.
    ShrS = shr_s(lhs, rhs) : None => SameInt, Pure, 0;
    /// Logical shift right.
    ShrU = shr_u(lhs, rhs) : None => SameInt, Pure, 0;
    /// Signed minimum.
    MinS = min_s(lhs, rhs) : None => SameInt, Pure, 0;
    /// Signed maximum.
    MaxS = max_s(lhs, rhs) : None => SameInt, Pure, 0;
    /// Unsigned minimum.
    MinU = min_u(lhs, rhs) : None => SameInt, Pure, 0;
    /// Unsigned maximum.
    MaxU = max_u(lhs, rhs) : None => SameInt, Pure, 0;
    /// Signed absolute value; the minimum stays itself.
    AbsS = abs_s(value) : None => SameInt, Pure, 0;

    // Floats. f32 division is the fast one (about 2 ulp); `_rn` forms round to nearest.
    /// Sum.
    FAdd = fadd(lhs, rhs) : None => SameFloat, Pure, 0;
    /// Difference.
    FSub = fsub(lhs, rhs) : None => SameFloat, Pure, 0;
    /// Product.
    FMul = fmul(lhs, rhs) : None => SameFloat, Pure, 0;
    /// Quotient, fast for f32.
    FDiv = fdiv(lhs, rhs) : None => SameFloat, Pure, 0;
    /// Quotient, rounded to nearest.
    FDivRn = fdiv_rn(lhs, rhs) : None => SameFloat, Pure, 0;
    /// Remainder with the sign of the dividend (C `fmod`).
    FRem = frem(lhs, rhs) : None => SameFloat, Pure, 0;
    /// Sign change.
    FNeg = fneg(value) : None => SameFloat, Pure, 0;
    /// Absolute value.
    FAbs = fabs(value) : None => SameFloat, Pure, 0;
    /// Minimum; NaN as the attribute says.
    FMin = fmin(lhs, rhs) : NanRule => SameFloat, Pure, 0;
    /// Maximum; NaN as the attribute says.
    FMax = fmax(lhs, rhs) : NanRule => SameFloat, Pure, 0;
    /// `a * b + c`, rounded once.
    Fma = fma(a, b, c) : None => SameFloat, Pure, 0;
    /// Natural exponential.
    Exp = exp(value) : None => SameFloat, Pure, 0;
    /// Base-2 exponential.
    Exp2 = exp2(value) : None => SameFloat, Pure, 0;
    /// Natural logarithm.
    Log = log(value) : None => SameFloat, Pure, 0;
    /// Base-2 logarithm.
    Log2 = log2(value) : None => SameFloat, Pure, 0;
    /// Sine.
    Sin = sin(value) : None => SameFloat, Pure, 0;
    /// Cosine.
    Cos = cos(value) : None => SameFloat, Pure, 0;
    /// Square root, fast for f32.
    Sqrt = sqrt(value) : None => SameFloat, Pure, 0;
    /// Square root, rounded to nearest.
    SqrtRn = sqrt_rn(value) : None => SameFloat, Pure, 0;
    /// Reciprocal square root, fast.
    Rsqrt = rsqrt(value) : None => SameFloat, Pure, 0;
    /// Error function.
    Erf = erf(value) : None => SameFloat, Pure, 0;
    /// Largest integer not above.
    Floor = floor(value) : None => SameFloat, Pure, 0;
    /// Smallest integer not below.
    Ceil = ceil(value) : None => SameFloat, Pure, 0;
    /// A libdevice function.
    Extern = extern_math(args[*]) : Extern => Explicit, Pure, 0;

    // Comparison and choice.
    /// Integer or pointer comparison.
    Cmp = cmp(lhs, rhs) : IntCompare => Bool, Pure, 0;
    /// Float comparison.
    FCmp = fcmp(lhs, rhs) : FloatCompare => Bool, Pure, 0;
    /// The second operand where the first is true, else the third.
    Select = select(condition, on_true, on_false) : None => Select, Pure, 0;

    // Conversions.
    /// Sign-extends an integer.
    ExtS = ext_s(value) : None => Cast, Pure, 0;
    /// Zero-extends an integer.
    ExtU = ext_u(value) : None => Cast, Pure, 0;
    /// Drops high bits of an integer.
    Trunc = trunc(value) : None => Cast, Pure, 0;
    /// Float to wider float (8-bit formats included), exact.
    FExt = fext(value) : None => Cast, Pure, 0;
    /// Float to narrower float (8-bit formats included).
    FTrunc = ftrunc(value) : Round => Cast, Pure, 0;
    /// Signed integer to float.
    SToF = s_to_f(value) : None => Cast, Pure, 0;
    /// Unsigned integer to float.
    UToF = u_to_f(value) : None => Cast, Pure, 0;
    /// Float to signed integer, toward zero, saturating; NaN gives 0.
    FToS = f_to_s(value) : None => Cast, Pure, 0;
    /// Float to unsigned integer, toward zero, saturating; NaN gives 0.
    FToU = f_to_u(value) : None => Cast, Pure, 0;
    /// The same bits as another type of the same width; pointers among themselves.
    Bitcast = bitcast(value) : None => Cast, Pure, 0;
    /// A 64-bit integer as a pointer.
    IntToPtr = int_to_ptr(value) : None => Cast, Pure, 0;
    /// A pointer as a 64-bit integer.
    PtrToInt = ptr_to_int(value) : None => Cast, Pure, 0;

    // Memory.
    /// Moves pointers by signed counts of elements, computed in 64 bits.
    PtrAdd = ptr_add(ptr, offset) : None => Pointer, Pure, 0;
    /// Reads through each pointer where the mask is true; elsewhere `other`, or zero without it. What a
    /// descriptor reads names its tensor too, of which the pointers are a box, and the mask what of it is
    /// inside: base, then per axis extents, strides in elements, and where the box begins. The base and
    /// the strides, but for the last, which is 1, are then multiples of 16 bytes.
    Load = load(ptr, mask[?], other[?], tensor[*]) : LoadHints => Explicit, Read, 0;
    /// Writes through each pointer where the mask is true.
    Store = store(ptr, value, mask[?]) : StoreHints => None, Write, 0;
    /// Atomic read-modify-write; the result is the old value.
    AtomicRmw = atomic_rmw(ptr, value, mask[?]) : Atomic => Explicit, Write, 0;
    /// Atomic compare-and-swap; the result is the old value.
    AtomicCas = atomic_cas(ptr, compare, value) : AtomicCas => Explicit, Write, 0;

    // Across elements.
    /// Combines along `axis`. The region takes two elements per input and yields one per input;
    /// it is associative. Results lack the axis (scalars when none is left).
    Reduce = reduce(inputs[*]) : Axis => Explicit, Regions, 1;
    /// Inclusive prefix combination along `axis`; region as for `reduce`.
    Scan = scan(inputs[*]) : Scan => Explicit, Regions, 1;
    /// Applies the region to each element (or `pack` of them): arguments are the elements.
    MapElements = map_elements(inputs[*]) : Pack => Explicit, Regions, 1;
    /// `lhs @ rhs + acc` over the last two axes; a leading axis is a batch.
    Dot = dot(lhs, rhs, acc) : Dot => Explicit, Pure, 0;
    /// As `dot`, each group of 32 (or 16) values along K first multiplied by its scale.
    DotScaled = dot_scaled(lhs, lhs_scale[?], rhs, rhs_scale[?], acc) : DotScaled => Explicit, Pure, 0;
    /// Counts of the values `0..bins` among the elements where the mask is true.
    Histogram = histogram(value, mask[?]) : Bins => Explicit, Pure, 0;
    /// Sorts along the last axis and keeps the first `keep` elements. Between equal elements and
    /// NaN what the bitonic network leaves at a place counts: of a pair that compares as neither
    /// larger, the element that the order puts first comes twice.
    Sort = sort(value) : Sort => Explicit, Pure, 0;

    // Control. Regions have one block; its arguments are listed here.
    /// Counted loop over `lower..upper` by a non-zero `step`; region arguments are the index and
    /// one per init, it yields the next values, results are the last ones.
    For = for(lower, upper, step, inits[*]) : Loop => Explicit, Regions, 1;
    /// The first region takes the carried values and ends in `condition`; the second takes what
    /// it passes on and yields the next carried values; results are what `condition` last passed.
    While = while(inits[*]) : None => Explicit, Regions, 2;
    /// The first region when the scalar is true, else the second; both yield the results.
    If = if(condition) : None => Explicit, Regions, 2;
    /// Ends a region with its values.
    Yield = yield(values[*]) : None => None, Terminator, 0;
    /// Ends the first region of `while`: go on, and with what.
    Condition = condition(condition, values[*]) : None => None, Terminator, 0;
    /// Ends the kernel's body.
    Return = return() : None => None, Terminator, 0;

    // Facts and debugging.
    /// The value, about which the author asserts facts.
    AssertFacts = facts(value) : Facts => Same, Pure, 0;
    /// The author asserts that the scalar is true.
    Assume = assume(condition) : None => None, Write, 0;
    /// Stops the program with the message where the mask is true and the condition is not.
    DeviceAssert = device_assert(condition, mask[?]) : Message => None, Write, 0;
    /// Prints the prefix and each element.
    DevicePrint = device_print(args[*]) : Message => None, Write, 0;
    /// All threads of the program wait for each other.
    Barrier = barrier() : None => None, Write, 0;
    /// Inline PTX applied to each element (or `pack` of them).
    InlineAsm = inline_asm(args[*]) : InlineAsm => Explicit, Write, 0;

    // GPU level.
    /// The same elements in another layout.
    ConvertLayout = convert_layout(value) : None => Explicit, Pure, 0;
    /// A fresh shared-memory buffer.
    LocalAlloc = local_alloc() : None => Explicit, Write, 0;
    /// One stage of a multi-stage buffer.
    LocalStage = local_stage(buffer, stage) : None => Explicit, Pure, 0;
    /// The same buffer with its axes permuted.
    LocalPermute = local_permute(buffer) : Order => Explicit, Pure, 0;
    /// Writes a tile into a buffer.
    LocalStore = local_store(buffer, value) : None => None, Write, 0;
    /// Reads a tile from a buffer.
    LocalLoad = local_load(buffer) : None => Explicit, Read, 0;
    /// Starts copying from global memory into a buffer; zeros where the mask is false.
    AsyncCopy = async_copy(ptr, buffer, mask[?]) : LoadHints => Explicit, Write, 0;
    /// Closes a group of asynchronous copies.
    AsyncCommit = async_commit(tokens[*]) : None => Explicit, Write, 0;
    /// Waits until at most `pending` groups are unfinished.
    AsyncWait = async_wait(tokens[*]) : Wait => Explicit, Write, 0;
    /// What the bulk copy engine knows of a tensor: its base, per axis extents and strides in elements
    /// without the last, which is 1, and the box that one instruction copies. The launcher makes it: all
    /// are parameters or products of them.
    TensorMap = tensor_map(base, sizes[*]) : Boxes => Explicit, Pure, 0;
    /// One thread makes each stage of a buffer an mbarrier that one arrival ends a phase of, once the
    /// bytes are there that it was told of.
    MbarrierInit = mbarrier_init(barriers) : None => None, Write, 0;
    /// One thread ends mbarriers, so that their memory can be used for something else.
    MbarrierInvalidate = mbarrier_invalidate(barriers) : None => None, Write, 0;
    /// Where `exists` is true, one thread arrives at an mbarrier and tells it of so many bytes.
    MbarrierExpect = mbarrier_expect(barrier, exists) : Bytes => None, Write, 0;
    /// Where `exists` is true, one thread starts copying a tile from where `begins` says, per axis, into a
    /// buffer: zeros outside of the tensor. Each byte that is there counts at the mbarrier.
    BulkCopy = bulk_copy(map, buffer, barrier, exists, begins[*]) : None => None, Write, 0;
    /// Writes a tile of consecutive elements, as `store` does: where the mask is true of all of them, one
    /// thread has the bulk copy engine write the whole tile out of shared memory, else each thread its part.
    /// It is written when the kernel has ended.
    BulkStore = bulk_store(ptr, value, mask[?]) : None => None, Write, 0;
    /// Waits until the phase of an mbarrier is over whose number, from 0, has this parity.
    MbarrierWait = mbarrier_wait(barrier, parity) : None => None, Write, 0;
    /// `lhs @ rhs + acc` by warps on the matrix units (`mma.sync`). The accumulator's layout fixes
    /// what each thread needs of the operands: each is a tile that holds just that, or a buffer
    /// from which it is read as the product proceeds.
    Mma = mma(lhs, rhs, acc) : Dot => Explicit, Read, 0;
    /// Starts `lhs @ rhs + acc` by groups of four warps (`wgmma`), which read `rhs`, and `lhs` where
    /// it is a buffer, from shared memory by themselves. The result must be waited for.
    WarpGroupMma = warp_group_mma(lhs, rhs, acc) : Dot => Explicit, Read, 0;
    /// Waits until at most `pending` products of warp groups are unfinished; the value is one that
    /// is finished then.
    WarpGroupWait = warp_group_wait(value) : Wait => Same, Write, 0;
    /// As `mma`, by one multiply-add per result element and step along K.
    MultiplyAdd = multiply_add(lhs, rhs, acc) : Dot => Explicit, Read, 0;
}

impl Opcode {
    /// Whether it is a matrix product at GPU level.
    pub fn is_gpu_product(self) -> bool {
        matches!(self, Opcode::Mma | Opcode::WarpGroupMma | Opcode::MultiplyAdd)
    }

    /// The operation spelled `mnemonic`.
    pub(crate) fn from_mnemonic(mnemonic: &str) -> Option<Opcode> {
        Opcode::ALL.iter().copied().find(|opcode| opcode.info().mnemonic == mnemonic)
    }

    /// True when it may be removed if its results are unused, whatever its regions do apart.
    pub fn is_pure(self) -> bool {
        self.info().effects == Effects::Pure
    }

    /// Whether each element that it gives is made of the elements in the same place.
    pub(crate) fn is_elementwise(self) -> bool {
        use ResultRule::{Bool, Cast, Pointer, Same, SameFloat, SameInt, Select};
        matches!(self.info().result, Bool | Cast | Pointer | Same | SameFloat | SameInt | Select)
    }

    /// Whether it changes more than its results.
    pub(crate) fn writes(self) -> bool {
        self.info().effects == Effects::Write
    }

    /// Whether it may change global memory, or let others do so.
    pub(crate) fn may_write_global(self) -> bool {
        let is_local = matches!(
            self,
            Opcode::LocalAlloc
                | Opcode::LocalStore
                | Opcode::AsyncCopy
                | Opcode::AsyncCommit
                | Opcode::AsyncWait
                | Opcode::MbarrierInit
                | Opcode::MbarrierInvalidate
                | Opcode::MbarrierExpect
                | Opcode::BulkCopy
                | Opcode::MbarrierWait
                | Opcode::WarpGroupWait
                | Opcode::Assume
                | Opcode::DevicePrint
                | Opcode::DeviceAssert
        );
        self.writes() && !is_local
    }

    /// Whether it writes to addresses in global memory.
    pub fn is_global_write(self) -> bool {
        matches!(self, Opcode::Store | Opcode::BulkStore) || self.is_atomic()
    }

    /// Whether it reads or writes global memory, or may.
    pub fn is_global_access(self) -> bool {
        matches!(self, Opcode::Load | Opcode::InlineAsm) || self.is_global_write()
    }

    /// Whether it reads and writes an address at once.
    pub fn is_atomic(self) -> bool {
        matches!(self, Opcode::AtomicRmw | Opcode::AtomicCas)
    }

    /// True when it ends a region.
    pub fn is_terminator(self) -> bool {
        self.info().effects == Effects::Terminator
    }
}

impl std::fmt::Display for Opcode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.info().mnemonic)
    }
}
