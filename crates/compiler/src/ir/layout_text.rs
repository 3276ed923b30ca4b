//! The text form of a layout: `register[1, 2] lane[4, 8] warp[] -> axis1:4 axis0:0`.
//!
//! Each input lists its packed bases; each output gives its number of bits, minor first.

use crate::layout::{Dim, LinearLayout};

/// Writes a layout on one line.
pub fn layout_to_text(layout: &LinearLayout) -> String {
    let inputs = layout.inputs().iter().map(|input| {
        let bases: Vec<String> = layout.bases(input.dim).iter().map(u64::to_string).collect();
        format!("{}[{}]", input.dim, bases.join(", "))
    });
    let outputs = layout.outputs().iter().map(|output| format!("{}:{}", output.dim, output.bits));
    let inputs: Vec<String> = inputs.collect();
    let outputs: Vec<String> = outputs.collect();
    format!("{} -> {}", inputs.join(" "), outputs.join(" "))
}

/// Reads what [`layout_to_text`] writes.
pub(super) fn layout_from_text(text: &str) -> Result<LinearLayout, String> {
    let (inputs, outputs) = text.split_once("->").ok_or("expected `->` in a layout")?;
    let mut dims = Vec::new();
    let mut bases = Vec::new();
    for part in inputs.split(']').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, list) = part.split_once('[').ok_or("expected `[` after an input")?;
        let before = bases.len();
        for basis in list.split(',').map(str::trim).filter(|basis| !basis.is_empty()) {
            bases.push(basis.parse::<u64>().map_err(|_| format!("`{basis}` is no basis"))?);
        }
        dims.push((dim_from_text(name.trim())?, (bases.len() - before) as u32));
    }
    let outputs = outputs.split_whitespace().map(|part| {
        let (name, bits) = part.split_once(':').ok_or("expected `:` after an output")?;
        let bits = bits.parse::<u32>().map_err(|_| format!("`{bits}` is no number of bits"))?;
        Ok((dim_from_text(name)?, bits))
    });
    let outputs = outputs.collect::<Result<Vec<_>, String>>()?;
    LinearLayout::new(&dims, &outputs, bases).map_err(|error| error.to_string())
}

fn dim_from_text(name: &str) -> Result<Dim, String> {
    let axis = |digits: &str| digits.parse().ok().map(Dim::Axis);
    match name {
        "register" => Some(Dim::Register),
        "lane" => Some(Dim::Lane),
        "warp" => Some(Dim::Warp),
        "cta" => Some(Dim::Cta),
        "offset" => Some(Dim::Offset),
        _ => name.strip_prefix("axis").and_then(axis),
    }
    .ok_or_else(|| format!("`{name}` is no layout dimension"))
}
