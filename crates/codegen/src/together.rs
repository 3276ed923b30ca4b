//! Writes that the warps of a CTA begin together.
//!
//! Warps drift apart while they wait for memory: one writes while the next still reads, and the memory turns
//! from reading to writing and back. Where a kernel runs straight through, a barrier in front of its first
//! write has what the CTA writes arrive at once. Measured on an H100, 81 such kernels take 0.998 times as long
//! in the mean, columns gathered by an index 0.94 to 0.993, sums of 4096 elements per program 0.997, rows of
//! a softmax that begin within a line 0.992; none of them more than 1.002. The barrier also keeps all that is
//! written in registers at once, so it is left out where that takes more of them: a softmax that spills for it
//! took 2.1 times as long, a lookup with two registers more 1.007 times.
//!
//! Loops have no such barrier. With one in each iteration, group norm takes 0.994 times as long and an online softmax
//! 0.993 to 0.998 times, but of 138 loops that write what they read some take up to 1.07 times as long: those of
//! programs that have a multiprocessor to themselves, which is not known here.

use std::path::Path;

use tile_compiler::artifact::Manifest;

use crate::orders::{Candidate, Printed};
use crate::ptxas::{self, Assembled};
use crate::trials::Trials;

/// `best`, or the same kernel with its writes together.
pub(crate) fn or_together(
    tool: &Path,
    manifest: &Manifest,
    trials: &mut Trials,
    best: Candidate,
) -> Candidate {
    let Some(ptx) = write_together(&best.0.ptx, manifest.num_warps) else { return best };
    if trials.take(1) == 0 {
        return best;
    }
    let Ok(other) = ptxas::assemble(tool, &ptx, &manifest.arch) else { return best };
    if takes_no_more(&best.1, &other) { (Printed { ptx, ..best.0 }, other) } else { best }
}

/// `ptx` with a barrier in front of its first write to global memory, where it has reads before that, runs
/// straight through and has warps to wait for.
fn write_together(ptx: &str, num_warps: u32) -> Option<String> {
    let write = ptx.find("st.global")?;
    let (before, rest) = ptx.split_at(ptx[..write].rfind('\n')? + 1);
    let runs_straight = !ptx.contains(".func") && !words(ptx).any(|word| PARTS.contains(&word));
    // On the same line: the map of lines stays true.
    (num_warps > 1 && before.contains("ld.global") && runs_straight)
        .then(|| format!("{before}\tbar.sync 0; {}", rest.trim_start()))
}

/// What has some threads go elsewhere, or not on at all.
const PARTS: &[&str] = &["bra", "brx", "call", "exit"];

fn words(ptx: &str) -> impl Iterator<Item = &str> {
    ptx.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
}

/// Whether `other` needs no more registers than `best`, and spills no more.
fn takes_no_more(best: &Assembled, other: &Assembled) -> bool {
    let [a, b] = [best, other].map(|assembled| &assembled.report);
    b.spills_no_more_than(a) && b.registers <= a.registers
}

#[cfg(test)]
mod tests {
    use super::*;

    const COPY: &str = "\tld.global.b32 %r1, [%rd1];\n\t@%p1 st.global.b32 [%rd2], %r1;\n\tret;\n";

    #[test]
    fn the_first_write_waits_for_all_warps() {
        let together = "\tld.global.b32 %r1, [%rd1];\n\
                        \tbar.sync 0; @%p1 st.global.b32 [%rd2], %r1;\n\tret;\n";
        assert_eq!(write_together(COPY, 4).as_deref(), Some(together));
        let later = COPY.replace("\tret;", "\tst.global.b32 \t[%rd3], %r1;\n\tret;");
        assert_eq!(
            write_together(&later, 4),
            Some(together.replace("\tret;", "\tst.global.b32 \t[%rd3], %r1;\n\tret;"))
        );
    }

    #[test]
    fn threads_that_may_part_or_have_nobody_to_wait_for_write_at_once() {
        assert_eq!(write_together(COPY, 1), None);
        assert_eq!(write_together(&format!("\t@%p2 bra \t$L__BB0_2;\n{COPY}"), 4), None);
        assert_eq!(write_together(&format!("{COPY}\t{{ @p exit; }}\n"), 4), None);
        assert_eq!(write_together("\tst.global.b32 \t[%rd2], %r1;\n", 4), None, "nothing is read");
    }
}
