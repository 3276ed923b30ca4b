//! Measured resources in words.

use tile_compiler::artifact::Resources;

/// The title of the lens: `34 regs · 0 B shared · 0 spills · occupancy 1.00 (sm_90a)`. What
/// differs from `before`, the state before the last edit, says by how much: `34 regs (+2)`.
pub(crate) fn lens_title(resources: &Resources, arch: &str, before: Option<&Resources>) -> String {
    let change = |of: fn(&Resources) -> u32| {
        let by = before.map_or(0, |old| i64::from(of(resources)) - i64::from(of(old)));
        if by == 0 { String::new() } else { format!(" ({by:+})") }
    };
    let spills = match spilled(resources) {
        0 => "0 spills".to_owned(),
        bytes => format!("{bytes} B spills"),
    };
    let occupied = before.map_or(0.0, |old| resources.occupancy - old.occupancy);
    let occupied =
        if occupied.abs() < 0.005 { String::new() } else { format!(" ({occupied:+.2})") };
    format!(
        "{} regs{} · {} B shared{} · {spills}{} · occupancy {:.2}{occupied} ({arch})",
        resources.registers,
        change(|of| of.registers),
        resources.shared_bytes,
        change(|of| of.shared_bytes),
        change(spilled),
        resources.occupancy
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_tell_what_the_last_edit_changed() {
        let old: Resources = serde_json::from_value(serde_json::json!({
            "registers": 32, "shared_bytes": 0, "spill_load_bytes": 0, "spill_store_bytes": 0,
            "stack_bytes": 0, "occupancy": 1.0, "limited_by": "registers", "source": "ptxas",
        }))
        .unwrap();
        let new = Resources { registers: 34, spill_load_bytes: 8, occupancy: 0.5, ..old.clone() };
        assert_eq!(
            lens_title(&new, "sm_90a", Some(&old)),
            "34 regs (+2) · 0 B shared · 8 B spills (+8) · occupancy 0.50 (-0.50) (sm_90a)"
        );
        assert_eq!(
            lens_title(&old, "sm_90a", None),
            "32 regs · 0 B shared · 0 spills · occupancy 1.00 (sm_90a)"
        );
    }
}
