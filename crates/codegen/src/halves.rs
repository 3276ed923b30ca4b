//! Products of which both halves are used.
//!
//! LLVM prints the low and the high half of a product as two instructions, and the assembler keeps them
//! apart, although it has one that gives both. Philox, from which random numbers come, is made of such
//! pairs: dropout on an H100 takes 0.86 times as long with whole products.

use std::fmt::Write;

use rustc_hash::FxHashMap;

use crate::address::{Printed, registers};

/// A half that waits for the other one of the same product.
struct Half<'t> {
    line: usize,
    is_high: bool,
    result: &'t str,
}

/// `ptx` with each pair of halves within a block as one product.
pub(crate) fn join(ptx: &str) -> String {
    let lines: Vec<&str> = ptx.lines().collect();
    let mut pending: FxHashMap<[&str; 2], Half<'_>> = FxHashMap::default();
    let mut products: FxHashMap<usize, String> = FxHashMap::default();
    let mut joined = vec![false; lines.len()];
    for (at, line) in lines.iter().enumerate() {
        let Some(Printed { op, operands }) = Printed::of(line) else {
            // Another block begins or this one ends, or what is not LLVM's own writes whatever it names.
            if line.starts_with('$') || line.contains("bra") {
                pending.clear();
            }
            pending.retain(|factors, _| !registers(line).any(|name| factors.contains(&name)));
            continue;
        };
        if op.starts_with("bra") {
            pending.clear();
        }
        if let ("mul.hi.u32" | "mul.lo.s32", &[result, x, y]) = (op, &operands[..]) {
            let is_high = op == "mul.hi.u32";
            match pending.remove(&[x, y]) {
                Some(first)
                    if first.is_high != is_high
                        && !mentions(&lines[first.line + 1..at], result) =>
                {
                    let (low, high) = match is_high {
                        true => (first.result, result),
                        false => (result, first.result),
                    };
                    products.insert(first.line, whole([x, y], low, high));
                    joined[at] = true;
                }
                _ => {
                    pending.insert([x, y], Half { line: at, is_high, result });
                }
            }
        }
        if let Some(to) = operands.first() {
            pending.retain(|factors, _| !factors.contains(to));
        }
    }
    let mut out = String::with_capacity(ptx.len());
    for (at, line) in lines.iter().enumerate().filter(|&(at, _)| !joined[at]) {
        let _ = writeln!(out, "{}", products.get(&at).map_or(*line, String::as_str));
    }
    out
}

/// Whether lines name a register, as those do that still need what it held before.
fn mentions(lines: &[&str], register: &str) -> bool {
    lines.iter().flat_map(|line| registers(line)).any(|name| name == register)
}

/// The instructions that give both halves of a product without signs.
fn whole(factors: [&str; 2], low: &str, high: &str) -> String {
    let [x, y] = factors.map(|factor| {
        factor.parse::<i64>().map_or_else(|_| factor.to_owned(), |it| (it as u32).to_string())
    });
    format!("\t{{ .reg .b64 both; mul.wide.u32 both, {x}, {y}; mov.b64 {{{low}, {high}}}, both; }}")
}

#[cfg(test)]
mod tests {
    use super::join;

    const HIGH: &str = "\tmul.hi.u32 \t%r3, %r1, -2;\n";
    const LOW: &str = "\tmul.lo.s32 \t%r4, %r1, -2;\n";

    #[test]
    fn both_halves_are_one_product() {
        let whole =
            "\t{ .reg .b64 both; mul.wide.u32 both, %r1, 4294967294; mov.b64 {%r4, %r3}, both; }\n";
        let other = "\txor.b32 \t%r5, %r6, %r2;\n";
        assert_eq!(join(&format!("{HIGH}{other}{LOW}")), format!("{whole}{other}"));
        assert_eq!(join(&format!("{LOW}{other}{HIGH}")), format!("{whole}{other}"));
    }

    #[test]
    fn halves_of_other_products_stay() {
        for between in ["$L__BB0_2:\n", "\tmov.u32 \t%r1, %r2;\n", "\tld.global.b32 %r1, [%rd5];\n"]
        {
            let ptx = format!("{HIGH}{between}{LOW}");
            assert_eq!(join(&ptx), ptx);
        }
        let ptx = format!("{HIGH}\tmul.lo.s32 \t%r4, %r1, 3;\n");
        assert_eq!(join(&ptx), ptx);
    }

    #[test]
    fn what_a_register_held_before_is_used_first() {
        for between in ["\txor.b32 \t%r5, %r3, %r4;\n", "\t@%p1 bra \t$L__BB0_2;\n"] {
            let ptx = format!("{HIGH}{between}{LOW}");
            assert_eq!(join(&ptx), ptx);
        }
    }
}
