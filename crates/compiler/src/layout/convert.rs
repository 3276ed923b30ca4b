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
//! | warps | shared memory, swizzled for the two layouts |

mod buffer;
mod shuffle;

pub(crate) use buffer::plan_shared_conversion;
pub(super) use buffer::register_groups;
pub use buffer::{RoundBits, SharedConversion, VectorAccess};
pub use shuffle::{Choice, ShufflePlan, ShuffleStep, ThreadIndex};
use smallvec::SmallVec;

use super::LayoutError;
use super::f2::{self, Span};
use super::linear::{Dim, LinearLayout};

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

/// The cheapest conversion of a tensor of elements of `element_bits` bits from `source` to
/// `destination`. Elements narrower than a byte are moved as bytes.
///
/// # Errors
/// When the layouts are of different shapes, `source` lacks an element of `destination`, elements
/// would move between CTAs, or `element_bits` is not a power of two up to 64.
pub(crate) fn plan_conversion(
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

/// The conversion by selects and shuffles, whatever its cost. `None` when elements move between
/// warps or a lane would have to send more than one register per step.
#[cfg(test)]
pub(super) fn plan_shuffle_conversion(
    source: &LinearLayout,
    destination: &LinearLayout,
) -> Result<Option<ShufflePlan>, LayoutError> {
    let routing = Routing::closest(&Sides::new(source, destination)?)?;
    let stays = routing.distance < Distance::Program;
    Ok(if stays { routing.shuffle_plan() } else { None })
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
struct SideColumns {
    register: Columns,
    lane: Columns,
    warp: Columns,
    cta: Columns,
}

struct Sides {
    source: SideColumns,
    destination: SideColumns,
    /// log2 of the number of elements.
    index_bits: u32,
}

impl Sides {
    fn new(source: &LinearLayout, destination: &LinearLayout) -> Result<Self, LayoutError> {
        if source.outputs() != destination.outputs() {
            return Err(LayoutError::ShapeMismatch {
                expected: source.shape().to_vec(),
                actual: destination.shape().to_vec(),
            });
        }
        let columns = |layout: &LinearLayout| {
            let padded = |dim| {
                let bits = source.input_bits(dim).max(destination.input_bits(dim));
                let mut columns: Columns = layout.bases(dim).into();
                columns.resize(bits as usize, 0);
                columns
            };
            SideColumns {
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
}

fn add(a: Place, b: Place) -> Place {
    Place { register: a.register ^ b.register, lane: a.lane ^ b.lane }
}

fn sum(places: &[Place], selector: u64) -> Place {
    f2::bits(selector).fold(Place::default(), |total, bit| add(total, places[bit as usize]))
}
