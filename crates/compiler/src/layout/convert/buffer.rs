//! Conversions through shared memory, and the choice of the buffer's layout.
//!
//! The swizzle follows section 5 of arXiv 2505.23819: among the bits of the tensor index that
//! select the row of a 128-byte line, none may be the difference of two lanes that access memory
//! together, on either side.

use smallvec::SmallVec;

use super::{Columns, Routing, SideColumns, Sides, between_ctas};
use crate::layout::f2::Span;
use crate::layout::report::SharedAccess;
use crate::layout::{Dim, LayoutError, LinearLayout};

/// The widest access of one thread.
const MAX_VECTOR_BYTES: usize = 16;
/// The bytes that all banks hold side by side.
const BANK_LINE_BYTES: usize = SharedAccess::BANKS * SharedAccess::WORD_BYTES;

/// A conversion through shared memory: every thread stores its elements, a barrier, every thread
/// loads its elements.
///
/// In the buffer, the lowest offset bits are the vector that both sides can access whole, then
/// come the bits that select the bank, then the rest. Elements of four bytes or more never cause
/// bank conflicts, whatever the layouts; for smaller ones the fewest passes over the banks count. Fragments may also be moved by matrix instructions: ask
/// [`MatrixAccess`](crate::layout::MatrixAccess) about the offsets of either side.
///
/// Threads that repeat elements store the same value to the same offset; they may be left out (see
/// [`LinearLayout::duplicates`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedConversion {
    /// From element offset ([`Dim::Offset`]) to tensor index. Offset bits above the buffer's size
    /// count the rounds.
    pub layout: LinearLayout,
    /// How the source is written.
    pub store: VectorAccess,
    /// How the destination is read.
    pub load: VectorAccess,
    /// The size of the buffer.
    pub bytes: usize,
    /// The registers that take turns in the buffer, lowest round bit first. Round `q` stores the
    /// source registers, and loads the destination registers, whose bits at these positions spell
    /// `q`; a barrier separates a round's loads from the next one's stores.
    pub round_bits: SmallVec<[RoundBits; 4]>,
}

impl SharedConversion {
    /// The number of times that the buffer is filled.
    pub fn rounds(&self) -> usize {
        1 << self.round_bits.len()
    }

    /// The passes over the banks per warp on both sides together, then the instructions.
    fn cost(&self) -> (usize, usize) {
        let sides = [&self.store, &self.load];
        let instructions = sides.map(VectorAccess::instruction_count);
        let passes = sides.map(|side| side.cost.wavefronts * side.instruction_count());
        (passes.iter().sum(), instructions.iter().sum())
    }
}

/// A register bit of the source and the one of the destination that carries the same index bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundBits {
    /// The bit of the source's register number.
    pub source: u32,
    /// The bit of the destination's register number.
    pub destination: u32,
}

/// How a distributed tensor's registers are moved to or from a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorAccess {
    /// From (register, lane, warp) to the element offset in the buffer ([`Dim::Offset`]).
    pub offsets: LinearLayout,
    /// The register bits that count through one vector, lowest offset first.
    pub vector_bits: SmallVec<[u32; 4]>,
    /// The cost of one such instruction of one warp.
    pub cost: SharedAccess,
}

impl VectorAccess {
    /// The access with the widest vectors that cause no bank conflicts, or with `2^planned_bits`
    /// elements at most.
    fn widest(
        offsets: LinearLayout,
        element_bytes: usize,
        planned_bits: usize,
    ) -> Result<Self, LayoutError> {
        let flat = offsets.reshape_outputs(&[(Dim::Axis(0), offsets.total_output_bits())])?;
        let mut vector_bits = flat.vector_bits(0);
        vector_bits.truncate((MAX_VECTOR_BYTES / element_bytes).trailing_zeros() as usize);
        loop {
            let cost = SharedAccess::of(&offsets, element_bytes, 1 << vector_bits.len());
            if vector_bits.len() <= planned_bits || cost.conflict_degree() == 1 {
                return Ok(Self { offsets, vector_bits, cost });
            }
            vector_bits.pop();
        }
    }

    fn instruction_count(&self) -> usize {
        self.offsets.elements_per_thread() >> self.vector_bits.len()
    }

    /// The registers of each instruction, in the order of their offsets.
    pub fn instructions(&self) -> Vec<SmallVec<[u32; 16]>> {
        register_groups(self.offsets.input_bits(Dim::Register), &self.vector_bits)
    }
}

/// The conversion through a buffer in shared memory of at most `max_bytes`, in as few rounds as
/// that allows. Only registers that both layouts hold alike can take turns; when they do not
/// suffice, the buffer is as small as they allow and larger than `max_bytes`.
///
/// # Errors
/// As [`plan_conversion`](super::plan_conversion).
pub(crate) fn plan_shared_conversion(
    source: &LinearLayout,
    destination: &LinearLayout,
    element_bits: usize,
    max_bytes: usize,
) -> Result<SharedConversion, LayoutError> {
    let sides = Sides::new(source, destination)?;
    Routing::closest(&sides)?;
    let element_bytes = element_bytes(element_bits)?;
    if source.input_bits(Dim::Cta) + destination.input_bits(Dim::Cta) > 0 {
        return Err(between_ctas());
    }
    BufferPlan::candidates(&sides, element_bytes, max_bytes)
        .into_iter()
        .map(|plan| plan.into_conversion(source, destination, element_bytes))
        .reduce(|best, next| {
            let (best, next) = (best?, next?);
            Ok(if next.cost() < best.cost() { next } else { best })
        })
        .unwrap_or(Err(LayoutError::NotCovered))
}

/// The bytes that an element of `element_bits` takes in shared memory.
fn element_bytes(element_bits: usize) -> Result<usize, LayoutError> {
    if element_bits.is_power_of_two() && element_bits <= 64 {
        return Ok(element_bits.div_ceil(8));
    }
    Err(LayoutError::Unsupported {
        what: "the size of an element in bits",
        value: element_bits,
        allowed: "elements have 1 to 64 bits, a power of two",
    })
}

/// All registers in groups whose members differ in the bits `members` only, counted through from
/// the first of these bits.
pub(in crate::layout) fn register_groups(
    register_bits: u32,
    members: &[u32],
) -> Vec<SmallVec<[u32; 16]>> {
    let mask = members.iter().fold(0, |mask, bit| mask | 1u32 << bit);
    let spread = |member: u32| {
        let bits = members.iter().enumerate();
        bits.fold(0, |register, (at, bit)| register | (member >> at & 1) << bit)
    };
    (0..1u32 << register_bits)
        .filter(|register| register & mask == 0)
        .map(|first| (0..1 << members.len()).map(|member| first | spread(member)).collect())
        .collect()
}

/// The buffer's columns, as images of the offset bits from the lowest.
struct BufferPlan {
    columns: Columns,
    vector: Columns,
    rounds: Columns,
}

impl BufferPlan {
    /// Buffers with each prefix of the registers that both sides hold as the vector, and with the
    /// longest extended by registers of one side: the other side's lanes may fill such a vector
    /// together, as those of a matrix fragment do.
    fn candidates(sides: &Sides, element_bytes: usize, max_bytes: usize) -> Vec<Self> {
        let (source, destination) = (&sides.source, &sides.destination);
        let mut span = Span::default();
        let alike =
            |column: &&u64| destination.register.contains(column) && span.insert(**column, 0);
        let shared: Columns = source.register.iter().filter(alike).copied().collect();
        let rounds = Self::rounds(sides, &shared, element_bytes, max_bytes);
        let widest = (MAX_VECTOR_BYTES / element_bytes).trailing_zeros() as usize;
        let at_once = shared.iter().filter(|column| !rounds.contains(column)).take(widest);
        let common: Columns = at_once.copied().collect();
        let extended = |registers: &[u64]| {
            let mut span = Span::of(&common);
            span.extend(&rounds);
            let more = registers.iter().filter(|&&column| span.insert(column, 0));
            common.iter().chain(more).take(widest).copied().collect::<Columns>()
        };
        let mut vectors: Vec<Columns> =
            (0..=common.len()).rev().map(|length| common[..length].into()).collect();
        vectors.push(extended(&destination.register));
        vectors.push(extended(&source.register));
        let plan = |vector| Self::new(sides, element_bytes, vector, rounds.clone());
        vectors.into_iter().map(plan).collect()
    }

    fn new(sides: &Sides, element_bytes: usize, vector: Columns, rounds: Columns) -> Self {
        let (source, destination) = (&sides.source, &sides.destination);
        let mut low = vector.clone();
        let mut span = Span::of(&low);
        span.extend(&rounds);
        let index_bits = sides.index_bits as usize;
        let stored_bits = index_bits - rounds.len();
        let candidates = source.lane.iter().chain(&destination.lane).chain(&source.register);
        let rest = candidates.chain(&destination.register).chain(&source.warp).copied();
        let units = (0..index_bits).map(|bit| 1u64 << bit);
        let candidates: Columns = rest.chain(units).collect();
        // Elements narrower than a bank's word share one; any of them may.
        while low.len() < stored_bits && element_bytes << low.len() < SharedAccess::WORD_BYTES {
            let next = candidates.iter().find(|&&column| span.insert(column, 0));
            low.extend(next.copied());
        }
        let line = BANK_LINE_BYTES / (element_bytes << low.len());
        let bank_bits = (line.trailing_zeros() as usize).min(stored_bits - low.len());
        let line_rows = stored_bits - low.len() - bank_bits;

        let together = |side: &SideColumns| {
            let own = vector.iter().take_while(|&column| side.register.contains(column)).count();
            let words = ((element_bytes << own) / SharedAccess::WORD_BYTES).max(1);
            let lanes = (SharedAccess::BANKS / words).trailing_zeros() as usize;
            side.lane.iter().take(lanes).copied().collect::<Columns>()
        };
        let mut fixed = low.clone();
        fixed.extend(rounds.iter().copied());
        let lanes = [together(source), together(destination)];
        let rows = apart_from(&lanes, &fixed, &candidates, line_rows);
        span.extend(&rows);
        let banks = candidates.iter().filter(|&&column| span.insert(column, 0)).copied();
        let mut columns = low;
        columns.extend(banks);
        columns.extend(rows);
        columns.extend(rounds.iter().copied());
        Self { columns, vector, rounds }
    }

    /// The registers to take turns: as many of `shared` as `max_bytes` asks for, each an index bit
    /// on which nothing else depends.
    fn rounds(sides: &Sides, shared: &[u64], element_bytes: usize, max_bytes: usize) -> Columns {
        let bytes = (element_bytes as u64) << sides.index_bits;
        let excess = bytes.div_ceil(max_bytes.max(1) as u64);
        let wanted = excess.next_power_of_two().trailing_zeros() as usize;
        let users = |side: &SideColumns, bit: u64| {
            let all = side.register.iter().chain(&side.lane).chain(&side.warp);
            all.filter(|&&column| column & bit != 0).count()
        };
        let alone = |column: &&u64| {
            column.is_power_of_two()
                && users(&sides.source, **column) == 1
                && users(&sides.destination, **column) == 1
        };
        shared.iter().rev().filter(alone).take(wanted).copied().collect()
    }

    fn into_conversion(
        self,
        source: &LinearLayout,
        destination: &LinearLayout,
        element_bytes: usize,
    ) -> Result<SharedConversion, LayoutError> {
        let outputs: SmallVec<[(Dim, u32); 4]> =
            source.outputs().iter().map(|output| (output.dim, output.bits)).collect();
        let index_bits = source.total_output_bits();
        let layout = LinearLayout::new(&[(Dim::Offset, index_bits)], &outputs, self.columns)?;
        let stored_bits = index_bits - self.rounds.len() as u32;
        let access = |side: &LinearLayout| {
            let whole = side.invert_and_compose(&layout)?;
            let offsets = whole.crop_outputs(&[(Dim::Offset, stored_bits)])?;
            VectorAccess::widest(offsets, element_bytes, self.vector.len())
        };
        let round_bits = self.rounds.iter().map(|&column| RoundBits {
            source: register_bit(source, column),
            destination: register_bit(destination, column),
        });
        Ok(SharedConversion {
            store: access(source)?,
            load: access(destination)?,
            bytes: element_bytes << stored_bits,
            round_bits: round_bits.collect(),
            layout,
        })
    }
}

/// The register bit whose column is `column`, which both sides have by construction.
fn register_bit(layout: &LinearLayout, column: u64) -> u32 {
    let registers = layout.bases(Dim::Register);
    registers.iter().position(|&basis| basis == column).map_or(0, |bit| bit as u32)
}

/// Up to `count` directions, independent of each other and of `fixed`, whose span no two lanes that
/// access memory together differ by, on either side.
///
/// With `A` and `B` the spans of the two sides' lanes modulo `fixed`, a common complement of both
/// is: a complement of `A + B`, and the sums `a_i + b_i` of vectors that extend `A ∩ B` to `A` and
/// to `B`. There are `count` of them unless a side has more lanes together than there are banks.
fn apart_from(lanes: &[Columns; 2], fixed: &[u64], candidates: &[u64], count: usize) -> Columns {
    let base = Span::of(fixed);
    let mut both = base.clone();
    both.extend(&lanes[0]);
    let fresh = lanes[1].iter().filter(|&&lane| both.insert(lane, 0)).copied();
    let only_b: Columns = fresh.collect();
    let mut from_b = base;
    from_b.extend(&lanes[1]);
    let fresh = lanes[0].iter().filter(|&&lane| from_b.insert(lane, 0)).copied();
    let only_a: Columns = fresh.collect();

    let outside = candidates.iter().filter(|&&column| both.insert(column, 0)).copied();
    let outside: Columns = outside.collect();
    let paired = only_a.iter().zip(&only_b).map(|(a, b)| a ^ b);
    outside.into_iter().chain(paired).take(count).collect()
}
