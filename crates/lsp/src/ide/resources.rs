//! Measured resources in words.

use tile_compiler::artifact::Resources;

/// The title of the lens: `34 regs · 0 B shared · 0 spills · occupancy 1.00 (sm_90a)`.
pub(crate) fn lens_title(resources: &Resources, arch: &str) -> String {
    let spilled = match spilled(resources) {
        0 => "0 spills".to_owned(),
        bytes => format!("{bytes} B spills"),
    };
    format!(
        "{} regs · {} B shared · {spilled} · occupancy {:.2} ({arch})",
        resources.registers, resources.shared_bytes, resources.occupancy
    )
}

/// The line in hovers.
pub(crate) fn hover_line(resources: &Resources, arch: &str) -> String {
    format!(
        "{} registers · {} B shared · {} B spilled · occupancy {:.2}, limited by {} · {arch} · {}",
        resources.registers,
        resources.shared_bytes,
        spilled(resources),
        resources.occupancy,
        resources.limited_by.name(),
        resources.source
    )
}

fn spilled(resources: &Resources) -> u32 {
    resources.spill_load_bytes + resources.spill_store_bytes
}
