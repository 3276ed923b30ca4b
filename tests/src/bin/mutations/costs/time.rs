//! Time that changes of a kernel lose.

use std::collections::BTreeSet;

use tile_compiler::diagnostic::Code;
use tile_compiler::ir::{Attrs, DotPrecision, Function, Inst, InstData, Opcode, Region, Scalar};
use tile_compiler::specialization::KnownLaunch;

use super::offsets::Offsets;
use super::{LARGE, SMALL, launch};

/// The unit in which global memory is read and written, in bytes.
const SECTOR_BYTES: i128 = 32;

/// Times as many sectors from which on an access counts as slow: measured were eight times as many.
const MANY_SECTORS: usize = 2;

/// Lanes with one address from which on atomics were measured to wait.
const LEAST_LANES: usize = 16;

/// Rows, columns and steps of the smallest instruction of tensor cores.
const LEAST_ROWS: u32 = 16;
const LEAST_COLUMNS: u32 = 8;
const LEAST_STEPS: u32 = 16;

/// Whether `func` loses the time that `code` stands for and `before` did not; `None` where that follows
/// from what memory holds.
pub fn is_lost(code: Code, before: &Function, func: &Function) -> Option<bool> {
    match code {
        Code::Uncoalesced => {
            let [old, new] = [before, func].map(|func| touched(func, &launch(func, LARGE)));
            let (old, new) = (old?, new?);
            // Rows that overlap are none that a launch has.
            let is_decided = old.iter().all(|access| access.addresses == access.lanes);
            let sectors = |all: &[Touched]| all.iter().map(|access| access.sectors).sum::<usize>();
            is_decided.then(|| sectors(&new) >= MANY_SECTORS * sectors(&old))
        }
        Code::AtomicLanes => {
            let shared = |func: &Function| {
                let [large, small] = [LARGE, SMALL].map(|numbers| launch(func, numbers));
                Some(shared_addresses(func, &large)?.min(shared_addresses(func, &small)?))
            };
            Some(shared(func)? > shared(before)?)
        }
        Code::TensorCores => Some(products(func, is_ieee) > products(before, is_ieee)),
        Code::SmallProduct => Some(products(func, has_few_rows) > products(before, has_few_rows)),
        _ => Some(false),
    }
}

/// Instructions below a region with the loops around each.
fn depths(func: &Function, region: Region, depth: usize) -> Vec<(Inst, usize)> {
    let mut found = Vec::new();
    for &inst in &func.regions[region].insts {
        let data = &func.insts[inst];
        found.push((inst, depth));
        let is_loop = matches!(data.opcode, Opcode::For | Opcode::While);
        let inner = data.regions.iter();
        found.extend(inner.flat_map(|inner| depths(func, *inner, depth + usize::from(is_loop))));
    }
    found
}

fn insts(func: &Function) -> impl Iterator<Item = &InstData> {
    func.walk().into_iter().map(|inst| &func.insts[inst])
}

fn is_access(data: &InstData) -> bool {
    matches!(data.opcode, Opcode::Load | Opcode::Store | Opcode::AtomicRmw | Opcode::AtomicCas)
}

/// The instructions at the depth of the innermost loops that access memory.
fn innermost(func: &Function) -> Vec<&InstData> {
    let all = depths(func, func.body, 0);
    let accesses = all.iter().filter(|(inst, _)| is_access(&func.insts[*inst]));
    let deepest = accesses.map(|(_, depth)| *depth).max().unwrap_or(0);
    let there = all.iter().filter(|(_, depth)| *depth == deepest);
    there.map(|(inst, _)| &func.insts[*inst]).collect()
}

/// What one access touches in one trip.
struct Touched {
    lanes: usize,
    addresses: usize,
    sectors: usize,
}

/// What accesses in innermost loops touch.
fn touched(func: &Function, launch: &KnownLaunch) -> Option<Vec<Touched>> {
    let offsets = Offsets::of(func, Some(launch));
    let accesses = innermost(func).into_iter().filter(|data| is_access(data));
    let touched = accesses.map(|data| {
        let pointer = data.operand(0);
        let bytes = i128::from(func.ty(pointer).elem()?.pointee()?.bytes());
        let lanes = offsets.get(pointer)?;
        let distinct = |unit: i128| {
            let units = lanes.iter().map(|at| (at * bytes).div_euclid(unit));
            units.collect::<BTreeSet<_>>().len()
        };
        let (addresses, sectors) = (distinct(bytes), distinct(SECTOR_BYTES));
        Some(Touched { lanes: lanes.len(), addresses, sectors })
    });
    touched.collect()
}

/// How many atomic operations there are whose lanes along an axis all meet in one address.
fn shared_addresses(func: &Function, launch: &KnownLaunch) -> Option<usize> {
    let offsets = Offsets::of(func, Some(launch));
    let atomics = insts(func).filter(|data| data.opcode == Opcode::AtomicRmw);
    let is_shared = |data: &InstData| {
        let lanes = offsets.get(data.operand(0))?;
        let shape = func.ty(data.operand(0)).shape();
        Some(usize::from(
            (0..shape.len())
                .any(|axis| shape[axis] as usize >= LEAST_LANES && is_constant(lanes, shape, axis)),
        ))
    };
    atomics.map(is_shared).sum()
}

/// Whether the elements of a tile are equal along an axis.
fn is_constant(elements: &[i128], shape: &[u32], axis: usize) -> bool {
    let inner: usize = shape[axis + 1..].iter().map(|extent| *extent as usize).product();
    let rows = elements.chunks(inner * shape[axis] as usize);
    rows.into_iter().all(|row| row.iter().zip(row.iter().skip(inner)).all(|(a, b)| a == b))
}

/// How many products `wanted` holds of that tensor cores could do: by operands' type, precision, and
/// rows, among products of enough columns and steps.
fn products(func: &Function, wanted: fn(Scalar, DotPrecision, u32) -> bool) -> usize {
    let is_wanted = |data: &&InstData| {
        let Attrs::Dot(dot) = &data.attrs else { return false };
        let (lhs, rhs) = (func.ty(data.operand(0)), func.ty(data.operand(1)));
        let ([.., rows, steps], [.., columns]) = (lhs.shape(), rhs.shape()) else { return false };
        let fits = *columns >= LEAST_COLUMNS && *steps >= LEAST_STEPS;
        fits && lhs.number().is_some_and(|number| wanted(number, dot.precision, *rows))
    };
    insts(func).filter(is_wanted).count()
}

fn is_ieee(number: Scalar, precision: DotPrecision, rows: u32) -> bool {
    number == Scalar::F32 && precision == DotPrecision::Ieee && rows >= LEAST_ROWS
}

fn has_few_rows(number: Scalar, precision: DotPrecision, rows: u32) -> bool {
    let is_narrow = matches!(number, Scalar::F16 | Scalar::BF16);
    let is_cut = number == Scalar::F32 && precision == DotPrecision::Tf32;
    (is_narrow || is_cut) && rows < LEAST_ROWS
}
