//! How the values of a kernel lie in the registers of its threads, in words.

use std::fmt::Write;

use rustc_hash::FxHashMap;
use tile_compiler::gpu::{self, GpuTarget};
use tile_compiler::ir::{self, Opcode};
use tile_compiler::layout::{Dim, LinearLayout};
use tile_compiler::passes;
use tile_compiler::source::FileRange;

use crate::db::FolderRules;

/// The layouts of one kernel by the places of the expressions that they belong to, as the IR keeps
/// places.
#[derive(Debug, Default)]
pub(crate) struct Layouts(FxHashMap<FileRange, String>);

impl Layouts {
    /// The layouts that tile IR gets when it is compiled for `arch`; none when it is not compiled.
    pub(crate) fn of(tile_ir: &str, arch: &str) -> Layouts {
        Layouts::lower(tile_ir, arch).unwrap_or_default()
    }

    fn lower(tile_ir: &str, arch: &str) -> Option<Layouts> {
        let mut tile = ir::parse(tile_ir).ok()?;
        passes::optimize(&mut tile).ok()?;
        let capability = FolderRules::capability_of(arch)?;
        let target =
            GpuTarget { capability, has_warp_groups: capability == 90 && arch.ends_with('a') };
        let lowered = gpu::lower(ir::verify(&tile).ok()?, target).ok()?;
        let mut found = FxHashMap::default();
        for inst in lowered.walk() {
            let data = &lowered.insts[inst];
            let place = &lowered.locs[data.loc];
            // A conversion has the place of what is converted, or of what needs it.
            if data.opcode == Opcode::ConvertLayout || place.line == 0 {
                continue;
            }
            let Some(value) = data.results.first() else { continue };
            let ty = lowered.ty(*value);
            if let (ir::Type::Tile(_), Some(layout)) = (ty, ty.layout()) {
                found.insert(place.at, describe(&lowered.layouts[layout]));
            }
        }
        Some(Layouts(found))
    }

    /// What there is to say of the value at a kept place.
    pub(crate) fn at(&self, place: FileRange) -> Option<&str> {
        self.0.get(&place).map(String::as_str)
    }
}

/// `8 elements per thread, 4 in a row along axis 0`, who holds copies, and the map itself.
fn describe(layout: &LinearLayout) -> String {
    // Bits of registers that only repeat an element are no elements of their own.
    let repeated = layout.free_bits(Dim::Register).count_ones();
    let elements = layout.elements_per_thread() >> repeated;
    let plural = if elements == 1 { "" } else { "s" };
    let mut text = format!("{elements} element{plural} per thread");
    let rows = (0..layout.rank()).map(|axis| (layout.contiguous_per_thread(axis), axis));
    if let Some((count, axis)) = rows.max_by_key(|(count, axis)| (*count, *axis))
        && count > 1
    {
        let _ = write!(text, ", {count} in a row along axis {axis}");
    }
    let copies =
        layout.free_bits(Dim::Lane).count_ones() + layout.free_bits(Dim::Warp).count_ones();
    if copies > 0 {
        let _ = write!(text, ", each in {} threads", 1u64 << copies);
    }
    let _ = write!(text, "\n\n`{}`", ir::layout_text(layout));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use tile_compiler::source::{FileId, TextRange};

    #[test]
    fn layouts_are_found_by_place() {
        let text = "\
kernel @k level=tile num_warps=4 num_stages=3 num_ctas=1 fp_fusion=true {
  param %0 : ptr<f32> {name=\"x_ptr\", signature=\"*fp32\", divisibility=16}
  %1 = arange {start=0, end=1024} : tile<1024xi32> @1
  %2 = splat %0 : tile<1024xptr<f32>> @2
  %3 = ptr_add %2, %1 : tile<1024xptr<f32>> @2
  %4 = load %3 {cache=default, evict=normal, volatile=false} : tile<1024xf32> @3
  store %3, %4 {cache=default, evict=normal} @4
  return @0
}
loc @1 = 0:10..20 2:1 \"k\"
loc @2 = 0:30..40 3:1 \"k\"
loc @3 = 0:50..60 4:1 \"k\"
loc @4 = 0:70..80 5:1 \"k\"
file 0 = \"k.py\"
";
        let layouts = Layouts::of(text, "sm_90a");
        let at = |start, end| FileRange { file: FileId(0), range: TextRange::new(start, end) };
        let load = layouts.at(at(50, 60)).expect("a tile is loaded there");
        assert_eq!(
            load,
            "8 elements per thread, 4 in a row along axis 0\n\n\
             `register[1, 2, 128] lane[4, 8, 16, 32, 64] warp[256, 512] -> axis0:10`"
        );
        assert_eq!(layouts.at(at(50, 61)), None);
        assert!(Layouts::of("nothing", "sm_90a").at(at(50, 60)).is_none());
    }
}
