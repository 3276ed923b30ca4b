//! Addresses in PTX as the assembler keeps them shortest.
//!
//! LLVM prints the address of an element as a widening product and a sum. The assembler makes one
//! instruction of them, but only after it has chosen which of the two live in registers that a warp
//! has once; written as one `mad.wide`, addresses take up to four registers fewer.

use std::fmt::Write;

use rustc_hash::FxHashMap;

/// A product that one sum may take in.
struct Product<'t> {
    line: usize,
    /// `u32` or `s32`.
    kind: &'t str,
    factors: [&'t str; 2],
}

/// `ptx` with each widening product that one sum of the same block alone uses as part of that sum.
pub(crate) fn fuse_products(ptx: &str) -> String {
    let lines: Vec<&str> = ptx.lines().collect();
    let mentions = mentions(&lines);
    let mut pending: FxHashMap<&str, Product<'_>> = FxHashMap::default();
    let mut sums: FxHashMap<usize, String> = FxHashMap::default();
    let mut fused = vec![false; lines.len()];
    for (at, line) in lines.iter().enumerate() {
        let Some(Printed { op, operands }) = Printed::of(line) else {
            if line.starts_with('$') {
                pending.clear();
            }
            // What is not LLVM's own may write whatever it names.
            pending.retain(|_, product| {
                !product.factors.iter().any(|factor| registers(line).any(|name| name == *factor))
            });
            continue;
        };
        if let ("add.s64", &[to, a, b]) = (op, &operands[..]) {
            let taken = [(a, b), (b, a)].into_iter().find_map(|(product, rest)| {
                (product != rest).then(|| pending.remove(product).zip(Some(rest))).flatten()
            });
            if let Some((Product { line, kind, factors: [x, y] }, rest)) = taken {
                fused[line] = true;
                sums.insert(at, format!("\tmad.wide.{kind} \t{to}, {x}, {y}, {rest};"));
            }
        }
        let Some(&to) = operands.first() else { continue };
        pending.retain(|_, product| !product.factors.contains(&to));
        if let (Some(kind), &[_, x, y]) = (op.strip_prefix("mul.wide."), &operands[..])
            && matches!(kind, "u32" | "s32")
            && mentions.get(to) == Some(&2)
        {
            pending.insert(to, Product { line: at, kind, factors: [x, y] });
        }
    }
    let mut out = String::with_capacity(ptx.len());
    for (at, line) in lines.iter().enumerate().filter(|&(at, _)| !fused[at]) {
        let _ = writeln!(out, "{}", sums.get(&at).map_or(*line, String::as_str));
    }
    out
}

/// An instruction as LLVM prints it, which text of inline assembly differs from.
pub(crate) struct Printed<'t> {
    pub(crate) op: &'t str,
    pub(crate) operands: Vec<&'t str>,
}

impl<'t> Printed<'t> {
    pub(crate) fn of(line: &'t str) -> Option<Printed<'t>> {
        let (op, operands) = line.strip_prefix('\t')?.split_once(" \t")?;
        let operands = operands.strip_suffix(';')?;
        let is_plain = !op.starts_with(['@', '{', '.']) && !operands.contains(';');
        is_plain.then(|| Printed { op: op.trim_end(), operands: operands.split(", ").collect() })
    }
}

/// How often each 64-bit register is named.
fn mentions<'t>(lines: &[&'t str]) -> FxHashMap<&'t str, usize> {
    let mut found = FxHashMap::default();
    for name in lines.iter().flat_map(|line| registers(line)).filter(|name| name.starts_with("%rd"))
    {
        *found.entry(name).or_insert(0) += 1;
    }
    found
}

/// The registers that a line names.
pub(crate) fn registers(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '%';
    line.split(move |c| !is_part(c)).filter(|word| word.starts_with('%'))
}

#[cfg(test)]
mod tests {
    use super::fuse_products;

    #[test]
    fn a_product_becomes_part_of_the_only_sum_that_uses_it() {
        let ptx = "\tmul.wide.u32 \t%rd9, %r19, 4;\n\t.loc 1 2 3\n\tadd.s64 \t%rd10, %rd5, %rd9;\n";
        assert_eq!(fuse_products(ptx), "\t.loc 1 2 3\n\tmad.wide.u32 \t%rd10, %r19, 4, %rd5;\n");
        let both = "\tmul.wide.s32 \t%rd1, %r1, 4;\n\tmul.wide.s32 \t%rd2, %r2, %r3;\n\tadd.s64 \t%rd3, %rd1, %rd2;\n";
        let one = "\tmul.wide.s32 \t%rd2, %r2, %r3;\n\tmad.wide.s32 \t%rd3, %r1, 4, %rd2;\n";
        assert_eq!(fuse_products(both), one);
    }

    #[test]
    fn what_is_used_or_changed_in_between_stays() {
        let product = "\tmul.wide.u32 \t%rd9, %r19, 4;\n";
        let sum = "\tadd.s64 \t%rd10, %rd5, %rd9;\n";
        for (between, after) in [
            ("", "\tadd.s64 \t%rd11, %rd6, %rd9;\n"),
            ("$L__BB0_2:\n", ""),
            ("\tmov.u32 \t%r19, %r20;\n", ""),
            ("\tld.global.b32 %r19, [%rd5];\n", ""),
        ] {
            let ptx = format!("{product}{between}{sum}{after}");
            assert_eq!(fuse_products(&ptx), ptx);
        }
        let doubled = format!("{product}\tadd.s64 \t%rd10, %rd9, %rd9;\n");
        assert_eq!(fuse_products(&doubled), doubled);
    }
}
