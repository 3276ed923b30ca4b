//! Constants, positions, choices between tiles, assertions and printing.

use std::fmt::Write;

use bytemuck::Pod;
use tile_compiler::ir::{Elem, Scalar};

use super::FindingKind;
use super::collective::element_bits;
use super::finding::unravel;
use super::frame::{Frame, Slot, elements};
use super::lanes::{LaneFn, map2, with_int, with_word};
use super::machine::{Machine, Site, Stop};
use super::shape::{Act, writes};
use crate::number::{Bit, Int, decode};

/// Lines that one worker keeps of what programs print.
const MAX_PRINTS: usize = 10_000;

pub(super) fn constant(scalar: Scalar, bits: u64) -> LaneFn {
    with_word!(scalar, T => {
        Box::new(move |_, out, count| elements::<T>(out, count).fill(bits as T))
    })
}

pub(super) fn program_id(axis: u32) -> LaneFn {
    Box::new(move |frame, out, count| {
        let position = frame.program.get(axis as usize).copied().unwrap_or(0);
        elements::<u32>(out, count).fill(position);
    })
}

pub(super) fn ptr_add(ptr: Slot, offset: Slot, offsets: Scalar, size: u64) -> LaneFn {
    with_int!(offsets, T => map2::<u64, T, u64>(ptr, offset, move |ptr, offset: T| {
        ptr.wrapping_add((offset.signed() as u64).wrapping_mul(size))
    }))
}

pub(super) fn nothing() -> Act {
    Box::new(|_, _| Ok(()))
}

pub(super) fn num_programs(out: Slot, axis: u32, lanes: usize) -> Act {
    Box::new(move |frame, machine| {
        let extent = machine.grid.get(axis as usize).copied().unwrap_or(1);
        let mut words = frame.take(out);
        elements::<u32>(&mut words, lanes).fill(extent);
        frame.put(out, words);
        Ok(())
    })
}

pub(super) fn arange(out: Slot, start: i64, count: usize) -> Act {
    writes(out, move |_, words| {
        for (at, out) in elements::<i32>(words, count).iter_mut().enumerate() {
            *out = (start + at as i64) as i32;
        }
    })
}

/// One of two whole tiles.
pub(super) fn select_tile<T: Pod>(
    condition: Slot,
    [on_true, on_false]: [Slot; 2],
    out: Slot,
    count: usize,
) -> Act {
    writes(out, move |frame, words| {
        let chosen = if frame.scalar::<Bit>(condition).0 != 0 { on_true } else { on_false };
        elements::<T>(words, count).copy_from_slice(frame.get(chosen, count));
    })
}

pub(super) fn assert(
    site: Site,
    text: String,
    condition: Slot,
    mask: Option<Slot>,
    numel: usize,
) -> Act {
    Box::new(move |frame, machine| {
        let count = numel * frame.lanes;
        let holds = frame.get::<Bit>(condition, count);
        let mask = mask.map(|mask| frame.get::<Bit>(mask, count));
        let failed =
            |lane: &usize| holds[*lane].0 == 0 && mask.is_none_or(|mask| mask[*lane].0 != 0);
        let Some(lane) = (0..count).find(failed) else { return Ok(()) };
        let message = match text.as_str() {
            "" => "assertion failed".to_owned(),
            text => format!("assertion failed: {text}"),
        };
        machine.report(frame, &site, FindingKind::Assert, lane, None, message);
        Err(Stop::Program)
    })
}

/// A value to print.
#[derive(Debug)]
pub(super) struct Printed {
    pub slot: Slot,
    pub elem: Elem,
    pub shape: Vec<u32>,
}

/// Prints each element on a line, as Triton does:
/// `pid (x, y, z) idx (i, j)PREFIX(operand n) VALUE`.
pub(super) fn print(prefix: String, args: Vec<Printed>, hex: bool) -> Act {
    Box::new(move |frame, _: &Machine| {
        let [x, y, z] = frame.program;
        let mut lines = Vec::new();
        if args.is_empty() {
            lines.push(format!("pid ({x}, {y}, {z}){prefix}"));
        }
        for (operand, arg) in args.iter().enumerate() {
            let count = arg.shape.iter().map(|&extent| extent as usize).product::<usize>();
            for lane in 0..count {
                let mut line = format!("pid ({x}, {y}, {z}) idx (");
                let index: Vec<String> =
                    unravel(lane, &arg.shape).iter().map(u32::to_string).collect();
                line.push_str(&index.join(", "));
                line.push(')');
                line.push_str(&prefix);
                if args.len() > 1 {
                    let _ = write!(line, "(operand {operand}) ");
                }
                line.push_str(&show(frame, arg, lane, hex));
                lines.push(line);
            }
        }
        let room = MAX_PRINTS.saturating_sub(frame.prints.len());
        let program = frame.linear;
        frame.prints.extend(lines.into_iter().take(room).map(|line| (program, line)));
        Ok(())
    })
}

fn show(frame: &Frame, arg: &Printed, lane: usize, hex: bool) -> String {
    let scalar = arg.elem.scalar().unwrap_or(Scalar::I64);
    let bits = element_bits(frame, arg.slot, scalar, lane);
    let digits = scalar.bytes() as usize * 2;
    match scalar {
        _ if hex || arg.elem.is_ptr() => format!("0x{bits:0digits$x}"),
        Scalar::I64 => (bits as i64).to_string(),
        _ if scalar.is_int() => format!("{}", decode(scalar, bits)),
        _ => format!("{:.6}", decode(scalar, bits)),
    }
}
