//! Memory that a known launch leaves as it was allocated, or reads before anything writes to it.
//!
//! Host code shows that nothing has written to a buffer since `torch.empty` or the like made it. What a
//! kernel reads of it, or adds to what is there, is whatever the memory held before.

use std::collections::BTreeSet;

use super::arguments::{buffer, in_one_unit, may_share, passed};
use super::elements::{Access, Elements};
use super::flow::mask_of;
use super::report;
use super::solve::Outcome;
use super::terms::{Cond, Domain, Linear};
use super::unfollowed::Unfollowed;
use crate::diagnostic::{Code, Diagnostic};
use crate::host::Contents;
use crate::ir::{self, AtomicOp, Attrs, Function, Inst, IntPredicate, Opcode};
use crate::specialization::{
    ArgSpec, ConstArg, KnownArg, KnownBuffer, KnownLaunch, Specialization,
};

/// Boxes that may be looked at for one access, or one element.
const FUEL: u32 = 1_000;

/// Seams of an output that are looked at.
const MAX_SLABS: usize = 24;

/// The finding about new memory in `launch` of `spec`. The hooks of a tuner may write what a tuned kernel
/// adds to.
pub(super) fn check(
    func: &Function,
    launch: &KnownLaunch,
    spec: &Specialization,
    (elements, accesses): (&mut Elements<'_>, &[Access]),
) -> Option<Diagnostic> {
    // What is at an address that is not known may be any element.
    let written = Unfollowed::of(func, launch, accesses, |opcode| {
        opcode == Opcode::InlineAsm || opcode.is_global_write()
    });
    let is_tuned = spec.config.is_some();
    let mut fresh = Fresh { func, launch, spec, elements, accesses, written };
    let is_judged = |access: &&Access| !is_tuned || !access.writes(func);
    accesses.iter().filter(is_judged).find_map(|access| fresh.read(access)).or_else(|| {
        let params: BTreeSet<usize> = accesses.iter().map(|access| access.param).collect();
        params.into_iter().find_map(|param| fresh.unwritten(param))
    })
}

/// Distances of neighbors along each dimension of a tensor whose elements are in order.
fn strides(sizes: &[i128]) -> Vec<i128> {
    let mut strides = Vec::with_capacity(sizes.len());
    let mut distance = 1i128;
    for size in sizes.iter().rev() {
        strides.push(distance);
        distance = distance.saturating_mul(*size);
    }
    strides.reverse();
    strides
}

/// Positions along a dimension at which what programs store may end or leave something out: the last one
/// first, and those where blocks of the given `lengths` meet.
fn seams(size: i128, lengths: &BTreeSet<i128>) -> Vec<i128> {
    let ends = [size - 1, size / 2, 0, 1, 2, size - 2];
    let meeting = lengths.iter().flat_map(|length| [length - 1, *length]);
    let mut seams: Vec<i128> = Vec::new();
    for position in ends.into_iter().chain(meeting) {
        if (0..size).contains(&position) && !seams.contains(&position) {
            seams.push(position);
        }
    }
    seams
}

/// Elements at the seams of each dimension, the ends of all dimensions first: where the other positions are
/// the last ones, in the middle, and the first ones.
fn slabs(sizes: &[i128], lengths: &BTreeSet<i128>) -> Vec<[i128; 3]> {
    let strides = strides(sizes);
    let at = |(along, seam): (usize, i128), others: &dyn Fn(i128) -> i128| {
        let positions =
            sizes.iter().enumerate().map(|(dimension, size)| match dimension == along {
                true => seam,
                false => others(*size),
            });
        positions.zip(&strides).map(|(position, stride)| position * stride).sum()
    };
    let long = (0..sizes.len()).filter(|along| sizes[*along] > 1);
    let mut seams: Vec<(usize, usize, i128)> = long
        .flat_map(|along| {
            let seams = seams(sizes[along], lengths).into_iter().enumerate();
            seams.map(move |(rank, seam)| (rank, along, seam))
        })
        .collect();
    seams.sort_unstable();
    let slab = |(_, along, seam)| {
        let seam = (along, seam);
        [at(seam, &|size| size - 1), at(seam, &|size| size / 2), at(seam, &|_| 0)]
    };
    seams.into_iter().take(MAX_SLABS).map(slab).collect()
}

/// Whether two shapes are one, or one of them has two axes and the other one more of the same rows.
fn has_same_rows(a: &[i128], b: &[i128]) -> bool {
    let rows = |sizes: &[i128]| sizes[..sizes.len() - 1].iter().product::<i128>();
    let is_flat = a.len() == 2 && b.len() > 2 || b.len() == 2 && a.len() > 2;
    a == b || is_flat && a.last() == b.last() && rows(a) == rows(b)
}

struct Fresh<'s, 'e> {
    func: &'s Function,
    launch: &'s KnownLaunch,
    spec: &'s Specialization,
    elements: &'s mut Elements<'e>,
    accesses: &'s [Access],
    /// Where something is written at addresses that are not known.
    written: Unfollowed<'s>,
}

impl<'s> Fresh<'s, '_> {
    /// The memory of a parameter, if nothing was written there but to parts of it, and all is known that
    /// the kernel writes there.
    fn new_buffer(&self, param: usize) -> Option<&'s KnownBuffer> {
        let buffer =
            buffer(self.func, self.launch, param).filter(|_| !self.written.may_reach(param))?;
        (buffer.contents.is_new() && buffer.id.is_some()).then_some(buffer)
    }

    /// Whether everything that the kernel stores to held something before, which is not zeros. Who
    /// only measures time allocates inputs without values as well, and outputs.
    fn overwrites_others(&self) -> bool {
        let mut stores = self.accesses.iter().filter(|access| access.writes(self.func));
        stores.all(|store| {
            let buffer = buffer(self.func, self.launch, store.param);
            let holds = buffer.map(|buffer| &buffer.contents);
            let is_other = |holds: &Contents| {
                matches!(
                    holds,
                    Contents::Unknown
                        | Contents::Signed
                        | Contents::Floats(_)
                        | Contents::Except { .. }
                )
            };
            holds.is_some_and(is_other)
        })
    }

    /// The accesses that may write to the memory of a parameter.
    fn writers(&self, param: usize) -> Vec<&'s Access> {
        let all = self.accesses.iter().filter(|access| access.writes(self.func));
        all.filter(|access| may_share(self.func, self.launch, access.param, param)).collect()
    }

    /// An access to what nothing has written: a load where the kernel writes nothing, or an addition
    /// where it only adds.
    fn read(&mut self, access: &Access) -> Option<Diagnostic> {
        let data = &self.func.insts[access.inst];
        let opcode = data.opcode;
        let writers = self.writers(access.param);
        let is_unwritten = match opcode {
            Opcode::Load => writers.is_empty() && self.overwrites_others(),
            Opcode::AtomicRmw => {
                let adds = |access: &Access| match &self.func.insts[access.inst].attrs {
                    Attrs::Atomic(atomic) => atomic.op != AtomicOp::Exchange,
                    _ => false,
                };
                writers.into_iter().all(adds)
            }
            _ => false,
        };
        let buffer = self.new_buffer(access.param).filter(|_| is_unwritten)?;
        if buffer.contents != Contents::Uninitialized {
            return None;
        }
        let name = self.elements.param_name(access.param);
        let verb = report::verb(opcode);
        let message = match self.element(access, buffer) {
            Some(element) => {
                format!("{verb} element {element} of `{name}`, to which nothing has been written")
            }
            // Wherever it is, nothing has been written there.
            None if self.happens_somewhere(access) => {
                format!("{verb} elements of `{name}`, to which nothing has been written")
            }
            None => return None,
        };
        let found = report::finding(self.func, data.loc, Code::Unwritten, message);
        Some(found.with_note(match opcode {
            Opcode::Load => "host code allocates it without values; was another argument meant?",
            _ => "allocate it with `torch.zeros`, or what else the sum begins with",
        }))
    }

    /// An element of its buffer that an access certainly comes to.
    fn element(&mut self, access: &Access, buffer: &KnownBuffer) -> Option<i128> {
        let mut conds = access.happens();
        let start = self.elements.terms.at_most(&Linear::default(), &access.offset);
        let end = self.elements.terms.less(&access.offset, &Linear::constant(buffer.elements));
        conds.extend([start, end]);
        match self.elements.search(&conds, &mut { FUEL }) {
            Outcome::Found(point) => Domain::at(&self.elements.terms, &point).value(&access.offset),
            _ => None,
        }
    }

    fn happens_somewhere(&self, access: &Access) -> bool {
        let outcome = self.elements.search(&access.happens(), &mut { FUEL });
        matches!(outcome, Outcome::Found(_))
    }

    /// An element of an output that nothing writes, where the output is as large as an input, or the
    /// launch tells its sizes: each element of it was to be computed.
    fn unwritten(&mut self, param: usize) -> Option<Diagnostic> {
        let new = self.new_buffer(param)?;
        let func = self.func;
        // Lengths and positions that are read may be meant to leave a part out. Integers of 8 bits are
        // what is computed with.
        let reads_integers = |inst: Inst| {
            let data = &func.insts[inst];
            let read = (data.opcode == Opcode::Load).then(|| func.ty(data.result()).number());
            read.flatten().is_some_and(|number| !number.is_float() && number.bits() > 8)
        };
        let writers = self.writers(param);
        if writers.iter().any(|writer| self.elements.rests_on(writer.inst, &reads_integers)) {
            return None;
        }
        let never = self.masks_all(param, &writers);
        if !never && writers.iter().any(|writer| self.picks(writer.inst)) {
            return None;
        }
        let store = writers.into_iter().find(|access| access.param == param)?;
        let name = self.elements.param_name(param);
        if never {
            let message =
                format!("no program stores any element of `{name}`: the mask is always false");
            let loc = func.insts[store.inst].loc;
            return Some(report::finding(func, loc, Code::Uncovered, message));
        }
        let has = report::count(new.elements, "element");
        let lengths = self.lengths();
        let message = match self.input_like(new) {
            Some(input) => {
                let last = new.elements - 1;
                let sizes = new.shape().unwrap_or_default();
                let seams = slabs(sizes, &lengths).into_iter().flatten();
                let mut elements = [last, last / 2, 0].into_iter().chain(seams);
                let element = elements.find(|element| self.is_left(param, new, *element))?;
                let input = self.elements.param_name(input);
                format!(
                    "no program stores element {element} of `{name}`, which has as many as \
                     `{input}`: {has}"
                )
            }
            None => {
                let sizes = new.shape().filter(|sizes| self.is_told(sizes))?;
                let mut slabs = slabs(sizes, &lengths).into_iter();
                let slab = slabs
                    .find(|slab| slab.iter().all(|element| self.is_left(param, new, *element)))?;
                format!(
                    "no program stores element {} of `{name}`, which has {has}: the launch passes \
                     its sizes {}",
                    slab[0],
                    report::tuple(sizes)
                )
            }
        };
        let loc = func.insts[store.inst].loc;
        let found = report::finding(func, loc, Code::Uncovered, message);
        Some(found.with_note("the grid, the mask or a loop leaves it out"))
    }

    /// Whether a mask picks lanes that equal something, as the last row of a block: the others are not
    /// meant to be stored.
    fn picks(&self, store: Inst) -> bool {
        let func = self.func;
        let picks = |value: &ir::Value| {
            let made = func.def(*value);
            let is_equal = made.is_some_and(|made| match &made.attrs {
                Attrs::IntCompare(compare) => compare.predicate == IntPredicate::Eq,
                _ => false,
            });
            is_equal && !func.ty(*value).shape().is_empty()
        };
        let mask = mask_of(&func.insts[store]);
        mask.is_some_and(|mask| func.computing(mask).iter().any(picks))
    }

    /// Whether programs come to what stores to the memory of a parameter, and masks keep all lanes of all of
    /// them from it.
    fn masks_all(&mut self, param: usize, writers: &[&Access]) -> bool {
        let search = |conds: &[Cond]| self.elements.search(conds, &mut { FUEL });
        let comes_to = |access: &&&Access| {
            access.param == param && mask_of(&self.func.insts[access.inst]).is_some()
        };
        let stores = |access: &&Access| self.func.insts[access.inst].opcode == Opcode::Store;
        let mut reached = writers.iter().filter(comes_to);
        writers.iter().all(stores)
            && reached.any(|access| matches!(search(&access.path), Outcome::Found(_)))
            && writers.iter().all(|access| search(&access.happens()) == Outcome::Never)
    }

    /// An input of the same sizes as new memory, or of all its rows put together.
    fn input_like(&self, new: &KnownBuffer) -> Option<usize> {
        let sizes = new.shape()?;
        self.accesses.iter().find_map(|load| {
            let input = buffer(self.func, self.launch, load.param)?;
            let is_input = self.func.insts[load.inst].opcode == Opcode::Load
                && !input.contents.is_new()
                && input.shape().is_some_and(|input| has_same_rows(input, sizes));
            is_input.then_some(load.param)
        })
    }

    /// Whether the launch passes each of these sizes as a number of its own: one by which masks are made,
    /// or more often than there are strides like it.
    fn is_told(&self, sizes: &[i128]) -> bool {
        let buffers = self.launch.args.iter().filter_map(|(_, arg)| match arg {
            KnownArg::Buffer(buffer) => buffer.shape(),
            _ => None,
        });
        let strides: Vec<i128> = buffers.flat_map(strides).collect();
        let numbers = self.numbers();
        let count = |numbers: &[i128], of: i128| numbers.iter().filter(|it| **it == of).count();
        sizes.iter().all(|size| {
            let alike = count(sizes, *size);
            *size == 1
                || count(&numbers, *size) >= count(&strides, *size) + alike
                || self.bounds(*size) >= alike
        })
    }

    /// The numbers that the launch passes, those that are compile-time values too. How long blocks are says
    /// nothing of the memory.
    fn numbers(&self) -> Vec<i128> {
        let passed = self.launch.args.iter().filter_map(|(_, arg)| match arg {
            KnownArg::Int(value) => Some(*value),
            _ => None,
        });
        let extents = self.extents();
        passed.chain(self.constants().filter(|value| !extents.contains(value))).collect()
    }

    /// The extents of the kernel's tiles.
    fn extents(&self) -> BTreeSet<i128> {
        let values = self.func.values.values();
        values.flat_map(|data| data.ty.shape().iter().map(|extent| i128::from(*extent))).collect()
    }

    /// The integers that are known at compile time.
    fn constants(&self) -> impl Iterator<Item = i128> {
        self.spec.args.values().filter_map(|arg| match arg {
            ArgSpec::Constexpr(ConstArg::Int(value)) => Some(*value),
            _ => None,
        })
    }

    /// How long what a program stores at once may be.
    fn lengths(&self) -> BTreeSet<i128> {
        self.extents().into_iter().chain(self.constants()).collect()
    }

    /// How many arguments of this value are among what masks are computed from.
    fn bounds(&self, value: i128) -> usize {
        let func = self.func;
        let is_bound = |argument: &ir::Value| {
            let mut masks = self.accesses.iter().filter_map(|it| mask_of(&func.insts[it.inst]));
            masks.any(|mask| func.computing(mask).contains(argument))
        };
        passed(func, self.launch, value).filter(is_bound).count()
    }

    /// Whether nothing writes an element of the memory of a parameter.
    fn is_left(&mut self, param: usize, new: &KnownBuffer, element: i128) -> bool {
        !new.contents.is_written_at(element) && !self.may_write(param, element)
    }

    fn may_write(&mut self, param: usize, element: i128) -> bool {
        let func = self.func;
        self.writers(param).into_iter().any(|access| {
            if access.may_be_elsewhere(func) || !in_one_unit(func, access.param, param) {
                return true;
            }
            let mut conds = access.happens();
            conds.push(self.elements.terms.equal(&access.offset, &Linear::constant(element)));
            self.elements.search(&conds, &mut { FUEL }) != Outcome::Never
        })
    }
}
