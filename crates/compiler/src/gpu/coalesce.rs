//! Layouts of memory accesses: which thread touches which address.
//!
//! In: a verified tile-level function. Out: one layout per memory access, the
//! *anchors* that other layouts follow. Neighboring threads get neighboring addresses, and
//! each thread as many as one instruction moves: the smallest of 16 bytes, the run of contiguous
//! and aligned addresses, and what leaves work for every thread. Accesses to tiles of one shape
//! that run along the same axis share the widest choice, so that values pass between them without
//! conversions, and so do those that run along none; where one of them strides, the choice is as
//! narrow as it needs. A write, and what is
//! read for it, is as narrow as one instruction, for which its own mask and address decide: what a
//! thread reads in two parts comes from the cache the second time, what it writes in two parts goes
//! to memory twice. On an H200, copies of two-byte elements with eight of them in a thread, of which
//! each had to be written by itself, took 3.5 times as long as with neighbors in neighboring threads.
//! Where loops walk rows by instructions that move a line of the cache for a warp at most, each warp has
//! lines next to each other: rows that may begin within a line need parts of two lines for each, and find
//! one of them in the cache. On an H100, softmax of rows of 50,257 takes 0.77 times as long so; outside of
//! loops, where all of a row is on its way at once and the last warps have nothing beyond its end, 1.01. Nor do
//! they where a number says that the last elements are not read: then registers beyond it need no instructions in
//! any warp, where the last warps would wait for the others. On an H100, a search through windows of 39 by 39 of
//! 2,048 elements takes 0.70 to 0.73 times as long.
//! So has each warp outside of loops where it moves a line at a time of one tensor and more of another:
//! lines next to each other are then on their way together. On an H200, bytes that become float32 take 0.97
//! times as long so, and running sums that begin anew at flags 0.993. And so has each warp whose accesses are all as wide as
//! instructions can be, in loops and out of them: what it reads one after the other lies together, and elements of
//! several sizes change threads within warps. On an H200, of 120 kernels that move rows or elements, rows that fill their tiles
//! and rows that end early, most take 0.99 to 1.00 times as long so, 0.992 in the mean: layer normalization 0.95 to
//! 0.99, its gradients in f16 0.91, a softmax that programs repeat 0.984; others up to 1.04, RMS norms of bf16 by
//! weights of f32 that end early. Where threads wait for what they write, as for additions in memory, those that have nothing
//! beyond the end of a row wait for the others: such gradients took 0.96 to 1.27 times as long. Loops that combine what they
//! read by accesses of several widths took 1.013 times as long. Where threads reduce what they read,
//! rows may end early, as above. Better still, elements that the widest access could read, but for a write of
//! larger ones, are read so and change threads while they are small: on an H100, bytes and 16-bit floats that
//! become larger ones take 0.995 to 1.001 times as long, 0.997 in the mean, such sums 0.996. Cost: linear,
//! after axis information.

use cranelift_entity::SecondaryMap;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::LANES;
use super::flip;
use super::propagate::is_elementwise;
use super::steps::Steps;
use crate::analysis::axis::{AxisInfo, AxisInfos};
use crate::ir::{
    AtomicOp, Attrs, Function, Inst, IntPredicate, Opcode, Region, Shape, Value, ValueDef,
};
use crate::layout::{BlockedLayout, Dim, LayoutError, LinearLayout};

/// The widest access of one thread, in bytes.
const MAX_VECTOR_BYTES: i64 = 16;

/// A line of the cache.
const LINE_BYTES: usize = 128;

/// Layouts that memory accesses ask for.
#[derive(Debug, Default)]
pub struct Anchors {
    /// By instruction; `None` for those that ask for nothing.
    pub layouts: SecondaryMap<Inst, Option<LinearLayout>>,
    /// Loads whose elements [lie anywhere](lies_anywhere): any layout does as well.
    pub anywhere: FxHashSet<Inst>,
}

type Group = (Shape, SmallVec<[usize; 4]>);

/// What a group of accesses has in common.
struct Common {
    /// The most neighbors that one instruction of a thread can move, of any access.
    widest: usize,
    /// The fewest that a thread is limited to by one of them.
    narrowest: usize,
    /// The bytes of the largest elements.
    bytes: usize,
    /// Those of the smallest.
    least_bytes: usize,
    /// Those of the largest that are read.
    read_bytes: usize,
    /// The fewest neighbors that a thread holds for any access.
    width: usize,
    /// Whether one of them is in a loop.
    in_loop: bool,
    /// The leading elements that masks let pass at most, as numbers say.
    end: u64,
    /// Whether one of them is [read apart](reads_apart).
    apart: bool,
    /// The fewest bytes of a run of memory that a thread holds of one access.
    least_run: usize,
    /// The most bytes that a thread holds so, whether they are a run or not.
    longest_run: usize,
}

impl Common {
    /// Whether a loop moves a line for a warp at a time, at most.
    fn walks_lines(&self) -> bool {
        self.in_loop && self.width * self.bytes * LANES <= LINE_BYTES
    }

    /// Whether nothing is in the last `part` of `length` elements.
    fn ends_before(&self, length: usize, part: usize) -> bool {
        self.end.saturating_add(part as u64) <= length as u64
    }

    /// Whether some access moves a line for a warp at a time, at most, and others more.
    fn mixes_lines(&self) -> bool {
        !self.apart
            && self.least_bytes < self.bytes
            && self.width * self.least_bytes * LANES <= LINE_BYTES
    }

    /// Whether all accesses are as wide as instructions can be, and none takes several of them unless loops combine
    /// nothing.
    fn moves_whole_vectors(&self, loops_map: bool) -> bool {
        let widest = MAX_VECTOR_BYTES as usize;
        self.least_run >= widest && (loops_map || self.longest_run == widest)
    }
}

/// Whether an operation makes fewer elements of those along an axis.
fn combines(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Reduce | Opcode::Dot)
}

/// Whether threads wait for others in it: for memory that they write, or as they sort.
fn waits_for_others(func: &Function, inst: Inst) -> bool {
    let data = &func.insts[inst];
    match data.opcode {
        Opcode::AtomicRmw | Opcode::AtomicCas => func.ty(data.operand(0)).is_tile(),
        opcode => opcode == Opcode::Sort,
    }
}

/// Chooses the layouts of all accesses of `func`.
///
/// # Errors
/// When a shape or the number of warps is not a power of two.
pub fn choose(func: &Function) -> Result<Anchors, LayoutError> {
    let infos = AxisInfos::of(func);
    let tiles: Vec<Inst> = func.walk().into_iter().filter(|at| accesses_tile(func, *at)).collect();
    let mut orders: FxHashMap<&[u32], SmallVec<[usize; 4]>> = FxHashMap::default();
    for inst in &tiles {
        let ptr = func.insts[*inst].operand(0);
        if runs(func, &infos, ptr) {
            let order = || fastest_first(func, &infos, ptr);
            orders.entry(func.ty(ptr).shape()).or_insert_with(order);
        }
    }
    let in_loops = within_loops(func);
    let mut groups: FxHashMap<Group, Common> = FxHashMap::default();
    let mut accesses = Vec::new();
    for inst in tiles {
        let ptr = func.insts[inst].operand(0);
        let shape = func.ty(ptr).shape();
        let shared = orders.get(shape);
        let shared = shared.filter(|_| !runs(func, &infos, ptr) && !is_near_in_product(func, ptr));
        let order = shared.cloned().unwrap_or_else(|| fastest_first(func, &infos, ptr));
        let width = vector_elements(func, &infos, ptr, order[0]);
        let limit = stride_limit(func, &infos, ptr, order[0]);
        let group = (Shape::from(shape), order);
        let common = groups.entry(group.clone()).or_insert(Common {
            widest: 1,
            narrowest: usize::MAX,
            bytes: 1,
            least_bytes: usize::MAX,
            read_bytes: 0,
            width: usize::MAX,
            in_loop: false,
            end: 0,
            apart: false,
            least_run: usize::MAX,
            longest_run: 0,
        });
        common.widest = common.widest.max(width);
        common.narrowest = common.narrowest.min(limit);
        let bytes = element_bytes(func, ptr) as usize;
        common.bytes = common.bytes.max(bytes);
        common.least_bytes = common.least_bytes.min(bytes);
        if func.insts[inst].opcode == Opcode::Load {
            common.read_bytes = common.read_bytes.max(bytes);
        }
        common.in_loop |= in_loops.contains(&inst);
        let mask = if func.insts[inst].opcode == Opcode::Load { 1 } else { 2 };
        let mask = func.insts[inst].operand_opt(mask);
        common.end = common.end.max(mask.map_or(u64::MAX, |mask| known_end(func, mask)));
        accesses.push((inst, group));
    }
    let combining = |at: &Inst| combines(func.insts[*at].opcode);
    let maps = !func.walk().iter().any(combining);
    let loops_map = !in_loops.iter().any(combining);
    let waits = func.walk().iter().any(|&at| waits_for_others(func, at));
    let limits = write_limits(func, &infos, &accesses, !maps);
    let width_of = |inst: Inst, common: &Common| {
        common.widest.min(common.narrowest).min(limits[inst].unwrap_or(usize::MAX))
    };
    let apart = |inst: Inst, group: &Group, common: &Common| {
        maps && reads_apart(func, &infos, inst, group, common, width_of(inst, common))
    };
    for (inst, group) in &accesses {
        let common = groups.get_mut(group).expect("invariant: each access has entered its group");
        common.width = common.width.min(width_of(*inst, common));
        common.apart |= apart(*inst, group, common);
        let ptr = func.insts[*inst].operand(0);
        let (held, bytes) = (width_of(*inst, common), element_bytes(func, ptr) as usize);
        let run = held.min(vector_elements(func, &infos, ptr, group.1[0])) * bytes;
        common.least_run = common.least_run.min(run);
        common.longest_run = common.longest_run.max(held * bytes);
    }
    let threads = func.options.num_warps as usize * LANES;
    let mut anchors = Anchors::default();
    for (inst, group) in accesses {
        if func.insts[inst].opcode == Opcode::Load && lies_anywhere(func, &infos, inst) {
            anchors.anywhere.insert(inst);
        }
        let common = &groups[&group];
        let width = if apart(inst, &group, common) {
            widest_vector(func, func.insts[inst].operand(0))
        } else {
            width_of(inst, common)
        };
        let (shape, order) = group;
        let by_lines = common.walks_lines()
            || (maps && common.mixes_lines())
            || (!waits && common.moves_whole_vectors(loops_map));
        anchors.layouts[inst] = Some(match shape.as_slice() {
            &[length] if by_lines && !common.ends_before(length as usize, width * threads) => {
                by_warps(func, length as usize, width)?
            }
            _ => blocked(func, &shape, &order, width)?,
        });
    }
    Ok(anchors)
}

/// The layout for element-wise work without any anchor.
///
/// # Errors
/// When a shape or the number of warps is not a power of two.
pub(crate) fn default_layout(func: &Function, shape: &[u32]) -> Result<LinearLayout, LayoutError> {
    let order: SmallVec<[usize; 4]> = (0..shape.len()).rev().collect();
    blocked(func, shape, &order, 1)
}

/// The layout in which every thread holds all `length` elements of a short vector.
///
/// # Errors
/// When the length or the number of warps is not a power of two.
pub(super) fn held_by_all(func: &Function, length: usize) -> Result<LinearLayout, LayoutError> {
    let axis = Dim::Axis(0);
    let warps = func.options.num_warps as usize;
    LinearLayout::identity1d(length, Dim::Register, axis)?
        .product(&LinearLayout::zeros1d(LANES, Dim::Lane, axis)?)?
        .product(&LinearLayout::zeros1d(warps, Dim::Warp, axis)?)
}

/// The layout of `length` elements in which those of a warp lie next to each other, and a thread holds
/// `contiguous` neighbors at a time.
fn by_warps(
    func: &Function,
    length: usize,
    contiguous: usize,
) -> Result<LinearLayout, LayoutError> {
    let (axis, warps) = (Dim::Axis(0), func.options.num_warps as usize);
    let repeats = length / (contiguous * LANES * warps);
    if repeats < 2 {
        return blocked(func, &[length as u32], &[0], contiguous);
    }
    LinearLayout::identity1d(contiguous, Dim::Register, axis)?
        .product(&LinearLayout::identity1d(LANES, Dim::Lane, axis)?)?
        .product(&LinearLayout::identity1d(repeats, Dim::Register, axis)?)?
        .product(&LinearLayout::identity1d(warps, Dim::Warp, axis)?)
}

fn blocked(
    func: &Function,
    shape: &[u32],
    order: &[usize],
    contiguous: usize,
) -> Result<LinearLayout, LayoutError> {
    let shape: SmallVec<[usize; 4]> = shape.iter().map(|&extent| extent as usize).collect();
    let warps = func.options.num_warps as usize;
    BlockedLayout::default_for(&shape, warps, LANES, order, contiguous)?.to_linear(&shape)
}

/// The number of leading elements that a mask along one axis lets pass at most, as comparisons of positions with
/// numbers say.
fn known_end(func: &Function, mask: Value) -> u64 {
    let Some(data) = func.def(mask) else { return u64::MAX };
    match (data.opcode, &data.attrs) {
        (Opcode::And, _) => data.uses().map(|part| known_end(func, part)).min().unwrap_or(u64::MAX),
        (Opcode::Cmp, Attrs::IntCompare(compared)) => {
            let positions = func.def(data.operand(0)).map(|data| &data.attrs);
            let from_zero = matches!(positions, Some(Attrs::Range(range)) if range.start == 0);
            let end = func.constant_bits(data.operand(1)).filter(|_| from_zero);
            match (end, compared.predicate) {
                (Some(end), IntPredicate::Slt | IntPredicate::Ult) => end,
                (Some(last), IntPredicate::Sle | IntPredicate::Ule) => last.saturating_add(1),
                _ => u64::MAX,
            }
        }
        _ => u64::MAX,
    }
}

/// The instructions within loops.
fn within_loops(func: &Function) -> FxHashSet<Inst> {
    let walked = func.walk().into_iter();
    let loops = walked.filter(|&at| matches!(func.insts[at].opcode, Opcode::For | Opcode::While));
    loops.flat_map(|at| func.walk_inst(at)).collect()
}

/// Whether an instruction accesses memory by a tile of pointers.
fn accesses_tile(func: &Function, inst: Inst) -> bool {
    let data = &func.insts[inst];
    let is_access =
        matches!(data.opcode, Opcode::Load | Opcode::Store | Opcode::AtomicRmw | Opcode::AtomicCas);
    is_access && func.ty(data.operand(0)).is_tile()
}

/// Whether a read of elements along one axis gets a layout of its own: they are smaller than what is written
/// of their group, and the widest access could read what `width` neighbors, as the group has them, cannot
/// fill. Where threads scan, they wait for each other anyway; else what they read besides must be as small,
/// for it waits with them: on an H100, bytes that are added to float32 take 1.012 times as long apart. In
/// loops threads would wait in every iteration.
fn reads_apart(
    func: &Function,
    infos: &AxisInfos,
    inst: Inst,
    (shape, order): &Group,
    common: &Common,
    width: usize,
) -> bool {
    let data = &func.insts[inst];
    let (ptr, axis) = (data.operand(0), order[0]);
    let widest = widest_vector(func, ptr);
    let mask = data.operand_opt(1);
    let alike = mask.map_or(i64::MAX, |mask| infos.get(func, mask).constancy[axis]);
    let scans = || func.walk().iter().any(|&at| func.insts[at].opcode == Opcode::Scan);
    data.opcode == Opcode::Load
        && shape.len() == 1
        && !common.in_loop
        && (element_bytes(func, ptr) as usize) < common.bytes
        && width < widest
        && vector_elements(func, infos, ptr, axis).min(alike as usize) == widest
        && (common.read_bytes < common.bytes || scans())
}

/// Whether neighbors along some axis are neighbors in memory.
fn runs(func: &Function, infos: &AxisInfos, ptr: Value) -> bool {
    infos.get(func, ptr).contiguity.iter().any(|&contiguity| contiguity > 1)
}

/// Whether nothing is known of where the elements of an access lie beside each other, as where each follows from
/// what was read for it.
fn lies_anywhere(func: &Function, infos: &AxisInfos, access: Inst) -> bool {
    let ptr = func.insts[access].operand(0);
    let info = infos.get(func, ptr);
    !(0..info.rank()).any(|axis| is_known_along(&info, axis)) && follows_from_tiles(func, ptr)
}

/// Whether it is known of some neighbors along `axis` how they lie beside each other.
fn is_known_along(info: &AxisInfo, axis: usize) -> bool {
    info.contiguity[axis] > 1 || info.constancy[axis] > 1
}

/// Whether `value` follows, element by element, from a tile that was read, from iteration to iteration too.
fn follows_from_tiles(func: &Function, value: Value) -> bool {
    let (mut seen, mut open) = (FxHashSet::default(), vec![value]);
    let next = |body: Region, at: u32| func.terminator(body)?.operand_opt(at as usize);
    while let Some(value) = open.pop() {
        if !func.ty(value).is_tile() || !seen.insert(value) {
            continue;
        }
        match func.values[value].def {
            ValueDef::Argument(body, at) => {
                open.extend(at.checked_sub(1).and_then(|at| next(body, at)))
            }
            ValueDef::Result(inst, at) => match func.insts[inst].opcode {
                Opcode::Load => return true,
                Opcode::For => open.extend(next(func.insts[inst].regions[0], at)),
                opcode if is_elementwise(opcode) => open.extend(func.insts[inst].uses()),
                _ => {}
            },
        }
    }
    false
}

/// Axes by falling contiguity; among equals the later axis is faster. Where neighbors lie apart along
/// all of them the first is: rows then lie within threads, whose reductions exchange little
/// (`getOrderFromContiguity` in Triton's `Coalesce.cpp` comes to the same). Operands of products are
/// better off by rows, unless neighbors along another axis [usually](Steps) lie next to each other, or nearer: on an
/// H200, convolutions whose pixels are counted by quotients and remainders take 0.49 to 0.60 times as long so.
fn fastest_first(func: &Function, infos: &AxisInfos, ptr: Value) -> SmallVec<[usize; 4]> {
    let axes = 0..func.ty(ptr).shape().len();
    if !runs(func, infos, ptr) {
        if !multiplies(func) {
            return axes.collect();
        }
        return nearest_first(func, ptr).unwrap_or_else(|| axes.rev().collect());
    }
    let info = infos.get(func, ptr);
    let mut order: SmallVec<[usize; 4]> = axes.rev().collect();
    order.sort_by_key(|&axis| std::cmp::Reverse(info.contiguity[axis]));
    order
}

fn multiplies(func: &Function) -> bool {
    func.walk().into_iter().any(|at| func.insts[at].opcode == Opcode::Dot)
}

/// Whether elements of what is read for a product usually lie near along some axis: it goes along that, whatever
/// other tiles of the same shape do, since threads exchange operands anyway. On an H200, products of jagged
/// matrices that lie turned take 0.57 times as long so.
fn is_near_in_product(func: &Function, ptr: Value) -> bool {
    multiplies(func) && nearest_first(func, ptr).is_some()
}

/// Axes in order, but the one along which neighbors usually lie nearest in front of the others; nothing where it
/// is not known of any.
fn nearest_first(func: &Function, ptr: Value) -> Option<SmallVec<[usize; 4]>> {
    /// Elements beyond which it does not matter.
    const NEAR: u64 = 4;
    let mut steps = Steps::of(func);
    let axes = 0..func.ty(ptr).shape().len();
    let step = |axis: usize| steps.along(ptr, axis).map(i64::unsigned_abs);
    let known = axes.clone().map(step).collect::<SmallVec<[_; 4]>>();
    let near = |axis: usize| known[axis].filter(|step| (1..=NEAR).contains(step));
    let nearest =
        axes.clone().filter(|&axis| near(axis).is_some()).min_by_key(|&axis| near(axis))?;
    Some(std::iter::once(nearest).chain(axes.filter(|&axis| axis != nearest)).collect())
}

/// The neighbors along `axis` that one thread may hold so that neighboring threads still touch
/// neighboring addresses: one where elements lie apart at a fixed distance, such as one field of
/// each record. That they do shows in addresses that are aligned to more than an element.
fn stride_limit(func: &Function, infos: &AxisInfos, ptr: Value, axis: usize) -> usize {
    let info = infos.get(func, ptr);
    let bytes = element_bytes(func, ptr);
    if !is_known_along(&info, axis) && info.alignment(bytes) > bytes { 1 } else { usize::MAX }
}

/// How many neighbors a thread may hold for writes, and for reads of one group with a write whose
/// values come from them element by element, or by scans, which leave elements where they are. Where threads
/// combine elements anyway, writes that share reads, and what else is read for them, hold as few as the
/// narrowest, so that nothing changes threads between them: on an H100, gradients of RMS and layer normalization
/// whose programs add those of the weights up in memory take 0.88 to 1.00 times what they do under Triton so, where
/// it was 0.98 to 1.10. Others are better off with the widest accesses: a step of Adam took 1.004 times as long.
fn write_limits(
    func: &Function,
    infos: &AxisInfos,
    accesses: &[(Inst, Group)],
    shares: bool,
) -> SecondaryMap<Inst, Option<usize>> {
    let groups: FxHashMap<Inst, &Group> = accesses.iter().map(|(at, group)| (*at, group)).collect();
    let makers = makers(func);
    let mut limits: SecondaryMap<Inst, Option<usize>> = SecondaryMap::new();
    let mut sharers = Vec::new();
    for (write, group) in accesses {
        if func.insts[*write].opcode == Opcode::Load {
            continue;
        }
        let whole = whole_limit(func, infos, *write, group.1[0]);
        lower(&mut limits, &[*write], whole);
        let addressed =
            !is_known_along(&infos.get(func, func.insts[*write].operand(0)), group.1[0]);
        let mut sharing = sources(func, &makers, *write, addressed);
        sharing.retain(|inst| groups.get(inst).is_some_and(|other| *other == group));
        if !sharing.is_empty() {
            sharing.push(*write);
            let limit = write_limit(func, infos, *write, group.1[0]);
            lower(&mut limits, &sharing, limit);
            sharers.push(sharing);
        }
    }
    if shares {
        share_least(&mut limits, &sharers);
    }
    limits
}

/// Lowers the limits of those who share to the least among them, until all agree.
fn share_least(limits: &mut SecondaryMap<Inst, Option<usize>>, sharers: &[Vec<Inst>]) {
    let mut changes = true;
    while changes {
        changes = false;
        for sharing in sharers {
            let least = sharing.iter().filter_map(|&inst| limits[inst]).min();
            changes |= least.is_some_and(|least| lower(limits, sharing, least));
        }
    }
}

/// Lowers the limits of `insts` to `limit` where they are above; tells whether any is.
fn lower(limits: &mut SecondaryMap<Inst, Option<usize>>, insts: &[Inst], limit: usize) -> bool {
    let mut changes = false;
    for &inst in insts {
        changes |= limits[inst].is_none_or(|known| limit < known);
        limits[inst] = Some(limits[inst].map_or(limit, |known| known.min(limit)));
    }
    changes
}

/// By value, the instruction that it is a result of.
fn makers(func: &Function) -> SecondaryMap<Value, Option<Inst>> {
    let mut makers = SecondaryMap::new();
    for inst in func.walk() {
        for &result in &func.insts[inst].results {
            makers[result] = Some(inst);
        }
    }
    makers
}

/// What the values that `write` writes come from, element by element or by scans, and, if it is `addressed` by
/// what was read, where it writes them.
fn sources(
    func: &Function,
    makers: &SecondaryMap<Value, Option<Inst>>,
    write: Inst,
    addressed: bool,
) -> Vec<Inst> {
    let mut seen = FxHashSet::default();
    let mut open = vec![write];
    while let Some(inst) = open.pop() {
        let data = &func.insts[inst];
        let slots = match data.opcode {
            Opcode::Gather if flip::axis_of(func, data).is_some() => 0..1,
            Opcode::Gather => 1..2,
            Opcode::Store | Opcode::AtomicRmw | Opcode::AtomicCas => usize::from(!addressed)..3,
            Opcode::Scan => 0..data.operands.len(),
            opcode if is_elementwise(opcode) => 0..3,
            _ => 0..0,
        };
        let values = slots.filter_map(|slot| data.operand_opt(slot));
        open.extend(values.filter_map(|value| makers[value]).filter(|&from| seen.insert(from)));
    }
    let mut found: Vec<Inst> = seen.into_iter().filter(|&inst| inst != write).collect();
    found.sort_unstable();
    found
}

/// The neighbors along `axis` that one thread may hold so that a warp writes whole sectors: those of
/// one instruction. On an H100, gradients of normalized rows of 1,000 that all programs add up in memory take 0.26
/// times as long with neighbors in neighboring threads as with four in each, which are added one by one. Where
/// elements follow from what was read, such as rows by their numbers, neighbors are often neighbors in memory too.
fn write_limit(func: &Function, infos: &AxisInfos, inst: Inst, axis: usize) -> usize {
    let data = &func.insts[inst];
    let ptr = data.operand(0);
    // One instruction writes all of its elements or none.
    let alike = data.operand_opt(2).map_or(i64::MAX, |mask| infos.get(func, mask).constancy[axis]);
    let widest = match (data.opcode, &data.attrs) {
        (Opcode::Store, _) => vector_elements(func, infos, ptr, axis),
        (_, Attrs::Atomic(atomic))
            if atomic.op == AtomicOp::FAdd && is_known_along(&infos.get(func, ptr), axis) =>
        {
            widest_vector(func, ptr)
        }
        _ => 1,
    };
    widest.min(alike as usize)
}

/// The same for what follows from no read of its group, such as products: one instruction writes what
/// its mask lets pass all of, and elements where a row ends are few.
fn whole_limit(func: &Function, infos: &AxisInfos, inst: Inst, axis: usize) -> usize {
    let data = &func.insts[inst];
    match data.operand_opt(2).filter(|_| data.opcode == Opcode::Store) {
        Some(mask) => {
            let leading = infos.get(func, mask).leading(axis);
            vector_elements(func, infos, data.operand(0), axis).min(leading as usize)
        }
        None => write_limit(func, infos, inst, axis),
    }
}

/// The axis along which threads access what `ptr` points to, and the bytes that one instruction of
/// one thread can move there; `None` for what is no tile.
pub fn access_bytes(func: &Function, infos: &AxisInfos, ptr: Value) -> Option<(usize, u32)> {
    let axis = *fastest_first(func, infos, ptr).first()?;
    let pointee = func.ty(ptr).elem().and_then(|elem| elem.pointee());
    let bytes = pointee.map_or(1, |elem| elem.bits().div_ceil(8));
    Some((axis, vector_elements(func, infos, ptr, axis) as u32 * bytes))
}

/// The elements that one instruction of one thread can move along `axis`.
fn vector_elements(func: &Function, infos: &AxisInfos, ptr: Value, axis: usize) -> usize {
    let info = infos.get(func, ptr);
    let bytes = element_bytes(func, ptr);
    let aligned = (info.divisibility[axis] / bytes).max(1);
    let threads = func.options.num_warps as usize * LANES;
    let share = (func.ty(ptr).numel() / threads).max(1);
    (info.contiguity[axis].min(aligned) as usize).min(widest_vector(func, ptr)).min(share)
}

/// The elements of the widest access of one thread.
fn widest_vector(func: &Function, ptr: Value) -> usize {
    let bytes = element_bytes(func, ptr);
    (MAX_VECTOR_BYTES / bytes).max(1) as usize
}

/// The bytes of what `ptr` points to.
fn element_bytes(func: &Function, ptr: Value) -> i64 {
    let pointee = func.ty(ptr).elem().and_then(|elem| elem.pointee());
    pointee.map_or(1, |elem| i64::from(elem.bits().div_ceil(8)))
}
