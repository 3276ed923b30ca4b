//! Conversions between layouts of the same tensor, derived from the two maps.
//!
//! A conversion must bring to each place of the destination the element that belongs there. With
//! the layouts as matrices `S` and `D`, its *routing* is a solution `C` of `S·C = D`: the place in
//! the source from which each destination place reads. Where the source repeats elements there
//! are many solutions, and each column is chosen to stay as close as possible: in the same thread
//! if some register there has the element, else in the same warp. What remains decides the means:
//!
//! | the routing changes | means |
//! |---|---|
//! | nothing | none |
//! | registers, alike in all threads | renaming, no instruction |
//! | registers and lanes | selects and one `shfl.sync.idx` per destination register |
//! | warps | shared memory, swizzled for the two layouts (see [`SharedConversion`]) |
//!
//! The swizzle follows section 5 of arXiv 2505.23819: among the bits of the tensor index that
//! select the row of a 128-byte line, none may be the difference of two lanes that access memory
//! together, on either side.

use smallvec::SmallVec;

use super::LayoutError;
use super::f2::{self, Span};
use super::linear::{Dim, LinearLayout};
use super::report::SharedAccess;

/// How to bring a tensor from one layout to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// Every place has its element already.
    Identity,
    /// Destination register `r` is source register `self.0[r]`, in every thread.
    RegisterPermutation(Vec<u32>),
    /// Elements stay in their warp.
    WarpShuffle(ShufflePlan),
    /// Elements move between warps, or shuffling would need more instructions.
    SharedMemory(Box<SharedConversion>),
}

/// A number that depends on the thread: `constant` XOR the bases at the set bits of lane and warp.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ThreadIndex {
    /// The number in lane 0 of warp 0.
    pub constant: u32,
    /// What each bit of the lane contributes.
    pub lane_bases: SmallVec<[u32; 5]>,
    /// What each bit of the warp contributes.
    pub warp_bases: SmallVec<[u32; 5]>,
}

impl ThreadIndex {
    /// The number in a given thread.
    pub fn at(&self, lane: u32, warp: u32) -> u32 {
        let part = |bases: &[u32], index: u32| {
            f2::bits(index.into())
                .filter_map(|bit| bases.get(bit as usize))
                .fold(0, |sum, basis| sum ^ basis)
        };
        self.constant ^ part(&self.lane_bases, lane) ^ part(&self.warp_bases, warp)
    }

    /// The bits of the number that differ between threads.
    pub fn varying_bits(&self) -> u32 {
        self.lane_bases.iter().chain(&self.warp_bases).fold(0, |mask, basis| mask | basis)
    }

    /// The number of independent bits by which the number differs between threads: `k` means a
    /// choice among `2^k` values.
    pub fn choice_bits(&self) -> usize {
        f2::rank(self.lane_bases.iter().chain(&self.warp_bases).map(|&basis| basis.into()))
    }
}

/// A conversion within warps, in three phases.
///
/// 1. For each step, each lane selects the register `step.source_register` of its source.
/// 2. Each lane receives what lane `step.source_lane` selected (`shfl.sync.idx`; every lane takes
///    part). Without [`moves_lanes`](Self::moves_lanes) it keeps its own.
/// 3. Destination register `r` is what step number `results[r]` received.
///
/// Indices that are the same in all threads cost nothing; others are selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShufflePlan {
    /// The exchanges, one per destination register.
    pub steps: Vec<ShuffleStep>,
    /// For each destination register the step whose value it takes.
    pub results: Vec<ThreadIndex>,
    /// Whether any value changes lanes.
    pub moves_lanes: bool,
}

/// One exchange of one register per thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShuffleStep {
    /// The source register that the *sending* thread offers.
    pub source_register: ThreadIndex,
    /// The lane from which the *receiving* thread takes it.
    pub source_lane: ThreadIndex,
}

/// A conversion through shared memory: every thread stores its elements, a barrier, every thread
/// loads its elements.
///
/// In the buffer, the lowest offset bits are the vector that both sides can access whole, then
/// come the bits that select the bank, then the rest. The choice is free of bank conflicts on both
/// sides whatever the layouts.
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
    /// The elements that one instruction of one thread moves.
    pub fn vector_elements(&self) -> usize {
        1 << self.vector_bits.len()
    }

    /// Whether all but the vector's own register bits move whole vectors.
    fn is_aligned(&self) -> bool {
        let within = f2::low_mask(self.vector_bits.len() as u32);
        let others = self.offsets.packed_bases().iter().filter(|&offset| offset & within != 0);
        others.count() == self.vector_bits.len()
    }

    /// The registers of each instruction, in the order of their offsets.
    pub fn instructions(&self) -> Vec<SmallVec<[u32; 16]>> {
        register_groups(self.offsets.input_bits(Dim::Register), &self.vector_bits)
    }
}

/// All registers in groups whose members differ in the bits `members` only, counted through from
/// the first of these bits.
pub(super) fn register_groups(register_bits: u32, members: &[u32]) -> Vec<SmallVec<[u32; 16]>> {
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

/// The selects per register above which shuffling loses against shared memory, in bits of choice
/// on each side of the exchange.
const MAX_CHOICE_BITS: usize = 1;
/// The same when nothing changes lanes, so that selects are all there is.
const MAX_LOCAL_CHOICE_BITS: usize = 2;
/// The widest access of one thread.
const MAX_VECTOR_BYTES: usize = 16;
/// The bytes that all banks hold side by side.
const BANK_LINE_BYTES: usize = SharedAccess::BANKS * SharedAccess::WORD_BYTES;

/// The cheapest conversion of a tensor of elements of `element_bits` bits from `source` to
/// `destination`. Elements narrower than a byte are moved as bytes.
///
/// # Errors
/// When the layouts are of different shapes, `source` lacks an element of `destination`, elements
/// would move between CTAs, or `element_bits` is not a power of two up to 64.
pub fn plan_conversion(
    source: &LinearLayout,
    destination: &LinearLayout,
    element_bits: usize,
) -> Result<Conversion, LayoutError> {
    let sides = Sides::new(source, destination)?;
    let routing = Routing::closest(&sides)?;
    if routing.distance < Distance::Program {
        if let Some(permutation) = routing.register_permutation() {
            let unchanged = permutation.iter().enumerate().all(|(to, &from)| to as u32 == from);
            let same_size = permutation.len() == source.elements_per_thread();
            return Ok(if unchanged && same_size {
                Conversion::Identity
            } else {
                Conversion::RegisterPermutation(permutation)
            });
        }
        if let Some(plan) = routing.shuffle_plan().filter(ShufflePlan::is_cheap) {
            return Ok(Conversion::WarpShuffle(plan));
        }
    }
    plan_shared_conversion(source, destination, element_bits, usize::MAX)
        .map(|plan| Conversion::SharedMemory(Box::new(plan)))
}

/// The conversion through a buffer in shared memory of at most `max_bytes`, in as few rounds as
/// that allows. Only registers that both layouts hold alike can take turns; when they do not
/// suffice, the buffer is as small as they allow and larger than `max_bytes`.
///
/// # Errors
/// As [`plan_conversion`].
pub fn plan_shared_conversion(
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
    let mut vector_bits = (MAX_VECTOR_BYTES / element_bytes).trailing_zeros() as usize;
    loop {
        let plan = BufferPlan::new(&sides, element_bytes, max_bytes, vector_bits);
        vector_bits = plan.vector.len();
        let conversion = plan.into_conversion(source, destination, element_bytes)?;
        if conversion.store.is_aligned() && conversion.load.is_aligned() {
            return Ok(conversion);
        }
        // Something else moves within a vector's elements; a single element is always aligned.
        vector_bits = vector_bits.saturating_sub(1);
    }
}

/// The bytes that an element of `element_bits` takes in shared memory.
pub(super) fn element_bytes(element_bits: usize) -> Result<usize, LayoutError> {
    if element_bits.is_power_of_two() && element_bits <= 64 {
        return Ok(element_bits.div_ceil(8));
    }
    Err(LayoutError::Unsupported {
        what: "the size of an element in bits",
        value: element_bits,
        allowed: "elements have 1 to 64 bits, a power of two",
    })
}

fn between_ctas() -> LayoutError {
    LayoutError::Unsupported {
        what: "the number of CTAs that exchange elements",
        value: 2,
        allowed: "a layout conversion stays within one CTA",
    }
}

type Columns = SmallVec<[u64; 8]>;

/// The columns of a layout by input dimension, the tensor index packed alike on both sides and
/// missing lanes and warps made explicit as repetition.
struct Columns4 {
    register: Columns,
    lane: Columns,
    warp: Columns,
    cta: Columns,
}

struct Sides {
    source: Columns4,
    destination: Columns4,
    /// log2 of the number of elements.
    index_bits: u32,
}

impl Sides {
    fn new(source: &LinearLayout, destination: &LinearLayout) -> Result<Self, LayoutError> {
        if source.outputs() != destination.outputs() {
            return Err(LayoutError::SizeMismatch {
                operation: "convert between layouts of different shapes",
                expected: 1 << source.total_output_bits(),
                actual: 1 << destination.total_output_bits(),
            });
        }
        let columns = |layout: &LinearLayout| {
            let padded = |dim| {
                let bits = source.input_bits(dim).max(destination.input_bits(dim));
                let mut columns: Columns = layout.bases(dim).into();
                columns.resize(bits as usize, 0);
                columns
            };
            Columns4 {
                register: layout.bases(Dim::Register).into(),
                lane: padded(Dim::Lane),
                warp: padded(Dim::Warp),
                cta: padded(Dim::Cta),
            }
        };
        Ok(Self {
            source: columns(source),
            destination: columns(destination),
            index_bits: source.total_output_bits(),
        })
    }
}

/// How far elements travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Distance {
    Thread,
    Warp,
    Program,
}

/// For each bit of a destination place, the registers and lanes (as XOR) in which its source
/// differs. Meaningless beyond the warp.
struct Routing {
    distance: Distance,
    /// Source register and source lane, by destination register bit.
    register: SmallVec<[Place; 8]>,
    /// The same by lane bit; each contains its own lane bit when it stays in the thread.
    lane: SmallVec<[Place; 8]>,
    /// The same by warp bit, relative to the same warp.
    warp: SmallVec<[Place; 8]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    register: u64,
    lane: u64,
}

impl Routing {
    fn closest(sides: &Sides) -> Result<Self, LayoutError> {
        let (source, destination) = (&sides.source, &sides.destination);
        let registers = source.register.len() as u32;
        let mut span = Span::of(&source.register);
        let thread = span.clone();
        for (bit, &column) in source.lane.iter().enumerate() {
            span.insert(column, 1 << (registers as usize + bit));
        }
        let warp = span.clone();
        span.extend(&source.warp);
        let program = span;

        let mut distance = Distance::Thread;
        let mut route = |target: u64, own: u64, own_lane: u64| {
            if let Some(register) = thread.solve(target ^ own) {
                return Ok(Place { register, lane: own_lane });
            }
            // Within the warp the lane is free, so only a warp's own contribution is subtracted.
            let beyond = if own_lane == 0 { own } else { 0 };
            if let Some(members) = warp.solve(target ^ beyond) {
                distance = distance.max(Distance::Warp);
                let register = members & f2::low_mask(registers);
                return Ok(Place { register, lane: members >> registers });
            }
            distance = Distance::Program;
            program.solve(target).map(|_| Place::default()).ok_or(LayoutError::NotCovered)
        };

        let register = destination
            .register
            .iter()
            .map(|&target| route(target, 0, 0))
            .collect::<Result<_, _>>()?;
        let lane = destination
            .lane
            .iter()
            .zip(&source.lane)
            .enumerate()
            .map(|(bit, (&target, &own))| route(target, own, 1 << bit))
            .collect::<Result<_, _>>()?;
        let warp = destination
            .warp
            .iter()
            .zip(&source.warp)
            .map(|(&target, &own)| route(target, own, 0))
            .collect::<Result<_, _>>()?;
        if destination.cta.iter().zip(&source.cta).any(|(target, own)| target != own) {
            return Err(between_ctas());
        }
        Ok(Self { distance, register, lane, warp })
    }

    /// The source register of each destination register, if nothing else changes.
    fn register_permutation(&self) -> Option<Vec<u32>> {
        let same_everywhere = self.distance == Distance::Thread
            && self.lane.iter().chain(&self.warp).all(|place| place.register == 0);
        same_everywhere.then(|| {
            (0..1u64 << self.register.len())
                .map(|register| self.of_register(register).register as u32)
                .collect()
        })
    }

    fn of_register(&self, register: u64) -> Place {
        sum(&self.register, register)
    }

    /// The exchange in which every lane offers one register and takes one, step by step.
    ///
    /// In step `t` lane `l` receives the element of destination register `t ^ M·l`. It comes from
    /// lane `P·l ^ Lr·t`, with `P = Ll ^ Lr·M`, and from that lane's register
    /// `Q·l ^ Rr·t`, with `Q = Rl ^ Rr·M` (indices: destination bits; R, L: source register, lane).
    /// A sender knows `l` from its own number if `P·l` determines `Q·l`; `M` is chosen for that.
    /// `None` when there is no such `M`.
    fn shuffle_plan(&self) -> Option<ShufflePlan> {
        let turn = self.turns()?;
        let received: SmallVec<[Place; 8]> = (0..self.lane.len())
            .map(|bit| add(self.lane[bit], self.of_register(turn[bit])))
            .collect();
        // The receiver of each sending lane, up to receivers that take the same register.
        let mut senders = Span::default();
        for (bit, place) in received.iter().enumerate() {
            senders.insert(place.lane, 1 << bit);
        }
        for bit in 0..self.lane.len() {
            senders.insert(1 << bit, 0);
        }
        let offered = |lane: u64| {
            let receiver = senders.solve(lane).unwrap_or(0);
            sum(&received, receiver).register
        };

        let lanes = 0..self.lane.len();
        let step = |t: u64| {
            let base = self.of_register(t);
            let register_of = |place: Place| (place.register ^ offered(place.lane)) as u32;
            ShuffleStep {
                source_register: ThreadIndex {
                    constant: register_of(base),
                    lane_bases: lanes.clone().map(|bit| offered(1 << bit) as u32).collect(),
                    warp_bases: self.warp.iter().map(|&place| register_of(place)).collect(),
                },
                source_lane: ThreadIndex {
                    constant: base.lane as u32,
                    lane_bases: received.iter().map(|place| place.lane as u32).collect(),
                    warp_bases: self.warp.iter().map(|place| place.lane as u32).collect(),
                },
            }
        };
        let registers = 0..1u64 << self.register.len();
        let steps = registers.clone().map(step).collect::<Vec<_>>();
        let results = registers
            .map(|register| ThreadIndex {
                constant: register as u32,
                lane_bases: turn.iter().map(|&basis| basis as u32).collect(),
                warp_bases: SmallVec::new(),
            })
            .collect();
        Some(ShufflePlan { steps, results, moves_lanes: self.distance > Distance::Thread })
    }

    /// The matrix `M` of [`shuffle_plan`](Self::shuffle_plan), by lane bit: how lanes take turns.
    ///
    /// Lane differences that `Ll` erases but `Rl` does not would ask one sender for two registers;
    /// `M` sends each of them to a destination register whose source is in yet another lane.
    fn turns(&self) -> Option<Columns> {
        let lanes = self.lane.len() as u32;
        let mut reached = Span::default();
        let mut frame = Span::default();
        let mut kernel = Columns::new();
        for (bit, place) in self.lane.iter().enumerate() {
            if let Some(others) = reached.solve(place.lane) {
                kernel.push(1 << bit | others);
            } else {
                reached.insert(place.lane, 1 << bit);
                frame.insert(1 << bit, 0);
            }
        }
        // Of the kernel, what is alike in register too needs no turn.
        let mut asked = Span::default();
        let mut free_registers = 0..self.register.len();
        let mut assignments = SmallVec::<[(u64, u64); 8]>::new();
        for &difference in &kernel {
            let register = sum(&self.lane, difference).register;
            if let Some(others) = asked.solve(register) {
                let alike = difference ^ combine_differences(&assignments, others);
                frame.insert(alike, 0);
                continue;
            }
            asked.insert(register, 1 << assignments.len());
            let turn = free_registers
                .find(|&bit| reached.insert(self.register[bit].lane, 0))
                .map(|bit| 1u64 << bit)?;
            assignments.push((difference, turn));
        }
        // In the frame (directions with M = 0, then the assigned ones) read off M on each lane bit.
        for (at, &(difference, _)) in assignments.iter().enumerate() {
            frame.insert(difference, 1 << at);
        }
        let turn_of = |bit: u32| {
            let members = frame.solve(1 << bit)?;
            Some(f2::bits(members).fold(0, |turn, at| turn ^ assignments[at as usize].1))
        };
        (0..lanes).map(turn_of).collect()
    }
}

fn combine_differences(assignments: &[(u64, u64)], members: u64) -> u64 {
    f2::bits(members).fold(0, |sum, at| sum ^ assignments[at as usize].0)
}

fn add(a: Place, b: Place) -> Place {
    Place { register: a.register ^ b.register, lane: a.lane ^ b.lane }
}

fn sum(places: &[Place], selector: u64) -> Place {
    f2::bits(selector).fold(Place::default(), |total, bit| add(total, places[bit as usize]))
}

impl ShufflePlan {
    /// Whether the selects cost less than a way through shared memory.
    fn is_cheap(&self) -> bool {
        let limit = if self.moves_lanes { MAX_CHOICE_BITS } else { MAX_LOCAL_CHOICE_BITS };
        let sends = self.steps.iter().map(|step| step.source_register.choice_bits());
        let results = self.results.iter().map(ThreadIndex::choice_bits);
        sends.chain(results).all(|bits| bits <= limit)
    }
}

/// The buffer's columns, as images of the offset bits from the lowest.
struct BufferPlan {
    columns: Columns,
    vector: Columns,
    rounds: Columns,
}

impl BufferPlan {
    fn new(sides: &Sides, element_bytes: usize, max_bytes: usize, vector_bits: usize) -> Self {
        let (source, destination) = (&sides.source, &sides.destination);
        let mut span = Span::default();
        let alike =
            |column: &&u64| destination.register.contains(column) && span.insert(**column, 0);
        let shared: Columns = source.register.iter().filter(alike).copied().collect();
        let rounds = Self::rounds(sides, &shared, element_bytes, max_bytes);
        let at_once = shared.iter().filter(|column| !rounds.contains(column));
        let vector: Columns = at_once.take(vector_bits).copied().collect();

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

        let together = (bank_bits as u32, &low, &rounds);
        let rows = apart_from(&source.lane, &destination.lane, together, &candidates, line_rows);
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
        let users = |side: &Columns4, bit: u64| {
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
            let vector_bits = self.vector.iter().map(|&column| register_bit(side, column));
            let vector_bits = vector_bits.collect::<SmallVec<[u32; 4]>>();
            let cost = SharedAccess::of(&offsets, element_bytes, 1 << vector_bits.len());
            Ok::<_, LayoutError>(VectorAccess { offsets, vector_bits, cost })
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

/// `count` directions, independent of each other and of `low`, whose span no two lanes that access
/// memory together differ by, on either side.
///
/// Lanes access memory together when they differ in the lowest `bank_bits` bits, for wider vectors
/// take more than one pass. With `A` and `B` the spans of these lanes modulo `low`, a common
/// complement of both is: a complement of `A + B`, and the sums `a_i + b_i` of vectors that extend
/// `A ∩ B` to `A` and to `B`. It has at least `count` dimensions, as neither side has more lanes
/// together than there are banks.
fn apart_from(
    source_lanes: &[u64],
    destination_lanes: &[u64],
    (bank_bits, low, rounds): (u32, &Columns, &Columns),
    candidates: &[u64],
    count: usize,
) -> Columns {
    let mut base = Span::of(low);
    base.extend(rounds);
    let independent = |lanes: &[u64]| {
        let mut span = base.clone();
        let together = lanes.iter().take(bank_bits as usize);
        together.filter(|&&lane| span.insert(lane, 0)).copied().collect::<Columns>()
    };
    let (a, b) = (independent(source_lanes), independent(destination_lanes));
    let mut both = base.clone();
    both.extend(&a);
    let only_b: Columns = b.iter().filter(|&&lane| both.insert(lane, 0)).copied().collect();
    let mut from_b = base;
    from_b.extend(&b);
    let only_a: Columns = a.iter().filter(|&&lane| from_b.insert(lane, 0)).copied().collect();

    let outside = candidates.iter().filter(|&&column| both.insert(column, 0)).copied();
    let outside: Columns = outside.collect();
    let paired = only_a.iter().zip(&only_b).map(|(a, b)| a ^ b);
    outside.into_iter().chain(paired).take(count).collect()
}
