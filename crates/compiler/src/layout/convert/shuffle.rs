//! Conversions within warps: every lane offers one register and takes one, step by step.

use smallvec::SmallVec;

use super::{Columns, Distance, Place, Routing, add, sum};
use crate::layout::f2::{self, Span};

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

    /// Whether the number is the thread's own lane.
    pub fn is_own_lane(&self) -> bool {
        self.constant == 0
            && self.lane_bases.as_slice() == [1, 2, 4, 8, 16]
            && self.warp_bases.iter().all(|&basis| basis == 0)
    }

    /// The independent bits of the number that differ between threads: with `k` of them it has `2^k` values.
    pub fn choices(&self) -> SmallVec<[Choice; 2]> {
        let mut bases: SmallVec<[u32; 2]> = SmallVec::new();
        for &basis in self.lane_bases.iter().chain(&self.warp_bases) {
            let rest = bases.iter().fold(basis, |rest, &other| rest.min(rest ^ other));
            if rest != 0 {
                bases.iter_mut().for_each(|other| *other = (*other).min(*other ^ rest));
                bases.push(rest);
            }
        }
        bases.into_iter().map(|basis| Choice { bit: 1 << basis.ilog2(), basis }).collect()
    }

    /// The number in threads in which some choices' bits are set: in place `p`, those of the choices at the
    /// bits of `p`.
    pub fn numbers(&self) -> Vec<u32> {
        let mut numbers = vec![self.constant];
        for choice in self.choices() {
            let others: Vec<u32> = numbers.iter().map(|number| number ^ choice.basis).collect();
            numbers.extend(others);
        }
        numbers
    }
}

/// A bit by which a number differs between threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The bit, which no other choice has.
    pub bit: u32,
    /// What the number differs by where the bit is set.
    pub basis: u32,
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

/// The selects per register above which shuffling loses against shared memory, in bits of choice
/// on each side of the exchange.
const MAX_CHOICE_BITS: usize = 1;
/// The same when nothing changes lanes, so that selects are all there is.
const MAX_LOCAL_CHOICE_BITS: usize = 2;

impl ShufflePlan {
    /// Whether the selects cost less than a way through shared memory.
    pub(super) fn is_cheap(&self) -> bool {
        let limit = if self.moves_lanes { MAX_CHOICE_BITS } else { MAX_LOCAL_CHOICE_BITS };
        let sends = self.steps.iter().map(|step| step.source_register.choices().len());
        let results = self.results.iter().map(|result| result.choices().len());
        sends.chain(results).all(|bits| bits <= limit)
    }
}

impl Routing {
    /// The exchange in which every lane offers one register and takes one, step by step.
    ///
    /// In step `t` lane `l` receives the element of destination register `t ^ M·l`. It comes from
    /// lane `P·l ^ Lr·t`, with `P = Ll ^ Lr·M`, and from that lane's register
    /// `Q·l ^ Rr·t`, with `Q = Rl ^ Rr·M` (indices: destination bits; R, L: source register, lane).
    /// A sender knows `l` from its own number if `P·l` determines `Q·l`; `M` is chosen for that.
    /// `None` when there is no such `M`.
    pub(super) fn shuffle_plan(&self) -> Option<ShufflePlan> {
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
