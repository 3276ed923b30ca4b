//! Accesses to global memory that use little of what they move, or move little at a time.
//!
//! What a launch shows of numbers makes the distance of neighboring lanes a constant. Global memory
//! is read and written in sectors of 32 bytes: where neighbors along every axis are that far apart,
//! each element takes a sector of its own, whatever the layout. Such accesses count when together
//! they make up at least half of the sectors that the innermost loops of the kernel touch; one that
//! moves little at a time counts when it does so alone.

use super::super::elements::{Access, Elements};
use super::super::terms::{Atom, AtomKind, Domain, Linear};
use crate::analysis::axis::AxisInfos;
use crate::analysis::report;
use crate::diagnostic::{Code, Diagnostic};
use crate::gpu::LANES;
use crate::gpu::coalesce::access_bytes;
use crate::ir::{Function, Inst, Opcode};

/// The unit in which global memory is read and written, in bytes.
const SECTOR_BYTES: i128 = 32;

/// The least that one thread should move at a time, in bytes. Elements of 16 bits alone come close:
/// what was gained there by wider accesses is less than a hint is worth.
const LEAST_BYTES: i128 = 4;

/// An access whose addresses are linear in its lanes.
struct Strided {
    inst: Inst,
    param: usize,
    /// The offset in elements.
    offset: Linear,
    /// By axis: its extent, and how far neighbors are apart, in elements.
    axes: Vec<(u32, i128)>,
    /// Bytes of an element.
    bytes: i128,
    /// Loops around it.
    depth: usize,
    /// The variable of each axis; none where there is one element.
    lanes: Vec<Option<Atom>>,
}

impl Strided {
    fn elements(&self) -> i128 {
        self.axes.iter().map(|(extent, _)| i128::from(*extent)).product()
    }

    /// The distance of neighbors along the axis where they are nearest, in elements; 0 where an
    /// axis repeats addresses, `None` for a single element.
    fn nearest(&self) -> Option<i128> {
        self.axes.iter().filter(|(extent, _)| *extent > 1).map(|(_, step)| step.abs()).min()
    }

    /// Sectors that one execution touches.
    fn sectors(&self) -> i128 {
        let distinct: i128 = self
            .axes
            .iter()
            .filter(|(_, step)| *step != 0)
            .map(|(extent, _)| i128::from(*extent))
            .product();
        let spread = (self.nearest().unwrap_or(0) * self.bytes).clamp(self.bytes, SECTOR_BYTES);
        (distinct * spread / SECTOR_BYTES).max(1)
    }
}

/// Hints about the accesses of `func` in one launch.
pub(super) fn check(
    func: &Function,
    elements: &mut Elements<'_>,
    accesses: &[Access],
) -> Vec<Diagnostic> {
    let known: Vec<Option<Strided>> =
        accesses.iter().map(|access| strided(func, elements, access)).collect();
    let deepest = accesses.iter().map(|access| access.loops.len()).max().unwrap_or(0);
    // Nothing is said of a kernel of whose traffic too little is known.
    let inner = accesses.iter().zip(&known).filter(|(access, _)| access.loops.len() == deepest);
    let Some(inner) = inner.map(|(_, known)| known.as_ref()).collect::<Option<Vec<_>>>() else {
        return Vec::new();
    };
    let all: i128 = inner.iter().map(|access| access.sectors()).sum();
    let is_half = |sectors: i128| 2 * sectors >= all;
    let infos = AxisInfos::of(func);
    let large = inner.iter().filter(|access| is_half(access.sectors()));
    let mut found: Vec<Diagnostic> =
        large.filter_map(|access| narrow(func, elements, &infos, access)).collect();
    let apart: Vec<&Strided> =
        inner.iter().copied().filter(|access| is_apart(access, &inner)).collect();
    if is_half(apart.iter().map(|access| access.sectors()).sum()) {
        found.extend(apart.into_iter().filter_map(|access| uncoalesced(func, elements, access)));
    }
    found
}

/// The access with the distances of its lanes, where they are known.
fn strided(func: &Function, elements: &mut Elements<'_>, access: &Access) -> Option<Strided> {
    let data = &func.insts[access.inst];
    let ty = func.ty(data.operand(0));
    let bytes = i128::from(ty.elem()?.pointee()?.bits().div_ceil(8));
    let ranges = elements.terms.var_ranges().to_vec();
    let offset = Domain::new(&elements.terms, ranges).resolve(&access.offset);
    let lanes: Vec<Option<Atom>> =
        access.lanes.iter().map(|&var| elements.terms.var_atom(var)).collect();
    let hidden = offset
        .terms
        .iter()
        .any(|&(atom, _)| !lanes.contains(&Some(atom)) && depends_on_lane(elements, atom, &lanes));
    if hidden {
        return None;
    }
    let axes = ty.shape().iter().zip(&lanes);
    let axes =
        axes.map(|(&extent, &lane)| (extent, lane.map_or(0, |lane| offset.factor(lane)))).collect();
    let (inst, param, depth) = (access.inst, access.param, access.loops.len());
    Some(Strided { inst, param, offset, axes, bytes, depth, lanes })
}

/// Whether `atom` may differ between the lanes of one access.
fn depends_on_lane(elements: &Elements<'_>, atom: Atom, lanes: &[Option<Atom>]) -> bool {
    let mut depends = false;
    elements.terms.visit(&Linear::atom(atom), &mut |inner, kind| {
        depends |= lanes.contains(&Some(inner));
        depends |= matches!(kind, AtomKind::Unknown(_)) && elements.varies_by_lane(inner);
    });
    depends
}

/// Whether each element that `access` touches takes a sector of its own, of which none of `others` uses
/// the rest.
fn is_apart(access: &Strided, others: &[&Strided]) -> bool {
    let apart = access.nearest().map_or(0, |step| step * access.bytes);
    apart >= SECTOR_BYTES
        && access.elements() >= LANES as i128
        && !others.iter().any(|other| completes(access, other))
}

fn uncoalesced(func: &Function, elements: &Elements<'_>, access: &Strided) -> Option<Diagnostic> {
    let step = access.nearest()?;
    let data = &func.insts[access.inst];
    let verb = if data.opcode == Opcode::Load { "reads" } else { "writes" };
    let name = elements.param_name(access.param);
    let message = format!(
        "neighboring lanes are {step} elements of `{name}` apart: each {verb} {} bytes of a \
         {SECTOR_BYTES}-byte sector of its own",
        access.bytes
    );
    let found = report::finding(func, data.loc, Code::Uncoalesced, message).with_note(
        "let the last axis of the tile run along the axis of memory whose stride is 1, with a \
         tile of more axes where there are more",
    );
    Some(found)
}

/// Whether `other` uses another part of the sectors that `access` touches: a further field of the
/// same records.
fn completes(access: &Strided, other: &Strided) -> bool {
    let same = other.param == access.param && other.depth == access.depth;
    let distance = other.offset.minus(&access.offset).and_then(|distance| distance.as_constant());
    let near = |distance: i128| distance != 0 && (distance * access.bytes).abs() < SECTOR_BYTES;
    same && distance.is_some_and(near)
}

fn narrow(
    func: &Function,
    elements: &Elements<'_>,
    infos: &AxisInfos,
    access: &Strided,
) -> Option<Diagnostic> {
    if access.axes.is_empty() {
        return None;
    }
    let data = &func.insts[access.inst];
    let (axis, bytes) = access_bytes(func, infos, data.operand(0))?;
    let threads = i128::from(func.options.num_warps) * LANES as i128;
    let (extent, step) = *access.axes.get(axis)?;
    let contiguous = step == 1
        && i128::from(extent) >= LEAST_BYTES
        && access.elements() >= LEAST_BYTES * threads;
    if access.bytes > 1 || !contiguous || i128::from(bytes) >= LEAST_BYTES {
        return None;
    }
    let lane = access.lanes[axis];
    let others = access.offset.terms.iter().filter(|(atom, _)| Some(*atom) != lane);
    let uneven = others.map(|(_, factor)| *factor).find(|factor| factor % LEAST_BYTES != 0)?;
    let message = format!(
        "each thread moves {} of `{}` at a time: rows are {} elements apart, so that not all start \
         at a multiple of {LEAST_BYTES} bytes",
        report::count(i128::from(bytes), "byte"),
        elements.param_name(access.param),
        uneven.abs(),
    );
    let found = report::finding(func, data.loc, Code::Narrow, message)
        .with_note("allocate rows of a multiple of 16 elements and pass that as the stride");
    Some(found)
}
