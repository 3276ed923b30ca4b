//! Writes that the warps of a CTA begin together.
//!
//! Warps drift apart while they wait for memory: one writes while the next still reads. Where a kernel runs straight
//! through, a barrier in front of its first write has what the CTA writes arrive at once. That is worth the wait
//!
//! - where threads write narrowly, since rows begin anywhere: a line of the cache is whole by what several instructions
//!   write, and goes to memory once if they follow each other. On an H200, rows of 7881 elements that are no vectors take 0.988
//!   to 0.997 times as long in a softmax. Records that are written field by field are whole by what one warp writes: gradients
//!   of covariances took 1.06 times as long;
//! - where a read goes where another one says: warps that wait for memory twice drift farther apart, and those that read
//!   the same lines no longer find them in the cache. Columns gathered by an index take 0.956 to 0.99 times as long.
//!
//! Of 54 other kernels on the H200, such a barrier has most take as long as without: normalized rows of f32 0.995 times,
//! those of bf16 1.003 times, copies with strides 1.004 times, a convolution with much to compute 1.018 times.
//!
//! The barrier also keeps all that is written in registers at once, so it is left out where that takes more of them: a
//! softmax that spills for it took 2.1 times as long on an H100, a lookup with two registers more 1.007 times.
//!
//! Loops have no such barrier. With one in each iteration, group norm takes 0.994 times as long and an online softmax
//! 0.993 to 0.998 times on an H100, but of 138 loops that write what they read some take up to 1.07 times as long: those of
//! programs that have a multiprocessor to themselves, which is not known here.

use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};
use tile_compiler::artifact::Manifest;

use crate::address::{Printed, registers};
use crate::depth_first::Statement;
use crate::orders::{self, Candidate};
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
    if takes_no_more(&best.1, &other) { (orders::Printed { ptx, ..best.0 }, other) } else { best }
}

/// `ptx` with a barrier in front of its first write to global memory, where it has reads before that, runs
/// straight through, has warps to wait for, and gains by it.
fn write_together(ptx: &str, num_warps: u32) -> Option<String> {
    let write = ptx.find("st.global")?;
    let (before, rest) = ptx.split_at(ptx[..write].rfind('\n')? + 1);
    let runs_straight = !ptx.contains(".func") && !words(ptx).any(|word| PARTS.contains(&word));
    // On the same line: the map of lines stays true.
    let may_wait = num_warps > 1 && before.contains("ld.global") && runs_straight;
    let gains = (writes_narrowly(ptx) && !writes_fields(ptx)) || follows_reads(before);
    (may_wait && gains).then(|| format!("{before}\tbar.sync 0; {}", rest.trim_start()))
}

/// Whether a thread writes a tile by instructions that move less than the widest ones.
fn writes_narrowly(ptx: &str) -> bool {
    /// The bits that one instruction writes at most.
    const WIDEST: u32 = 128;
    /// Fewer narrow writes are results of reductions.
    const FEWEST: usize = 4;
    let kinds = ptx.split("st.global").skip(1).filter_map(|rest| rest.split_whitespace().next());
    kinds.filter(|kind| written_bits(kind) < WIDEST).count() >= FEWEST
}

/// Whether a thread writes elements next to each other one by one, as the fields of records.
fn writes_fields(ptx: &str) -> bool {
    /// What memory writes as a whole, in bytes.
    const SECTOR: i64 = 32;
    let sums: FxHashMap<&str, (&str, i64)> = ptx.lines().filter_map(sum).collect();
    let places = ptx.split("st.global").skip(1).filter_map(place);
    let mut fields: Vec<(&str, i64)> = places
        .map(|place| {
            let (base, distance) = place.split_once('+').unwrap_or((place, "0"));
            let (from, more) = sums.get(base).copied().unwrap_or((base, 0));
            (from, more + distance.trim().parse().unwrap_or(0))
        })
        .collect();
    fields.sort_unstable();
    let is_near = |pair: &[(&str, i64)]| pair[0].0 == pair[1].0 && pair[1].1 - pair[0].1 < SECTOR;
    fields.windows(2).any(is_near)
}

/// An address that is another one and a distance.
fn sum(line: &str) -> Option<(&str, (&str, i64))> {
    let Printed { op: "add.s64", operands } = Printed::of(line)? else { return None };
    let &[to, from, distance] = &operands[..] else { return None };
    Some((to, (from, distance.parse().ok()?)))
}

/// The bits that a write of this kind moves, `.v4.b32` for one.
fn written_bits(kind: &str) -> u32 {
    let number =
        |part: &str| part.trim_start_matches(|it: char| it.is_ascii_alphabetic()).parse::<u32>();
    kind.split('.').filter_map(|part| number(part).ok()).product()
}

/// Whether a read goes where another one says.
fn follows_reads(ptx: &str) -> bool {
    let mut from_memory: FxHashSet<&str> = FxHashSet::default();
    for line in ptx.lines() {
        let mut places = line.split("ld.global").skip(1).filter_map(place);
        if places.any(|place| registers(place).any(|it| from_memory.contains(it))) {
            return true;
        }
        let statement = Statement::of(line, "");
        let reads = line.contains("ld.global") || line.contains("ld.shared");
        if reads || statement.reads.iter().any(|it| from_memory.contains(it)) {
            from_memory.extend(statement.writes);
        }
    }
    false
}

/// The address of an access whose operands follow.
fn place(operands: &str) -> Option<&str> {
    operands.split_once('[')?.1.split(']').next()
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

    /// A word is read, and words are written.
    fn copy(words: usize) -> String {
        let write = |at| format!("\t@%p1 st.global.b32 \t[%rd{at}], %r1;\n");
        let writes: String = (0..words).map(write).collect();
        format!("\tld.global.b32 %r1, [%rd9];\n{writes}\tret;\n")
    }

    #[test]
    fn the_first_of_narrow_writes_waits_for_all_warps() {
        let together = copy(4).replacen("\t@%p1", "\tbar.sync 0; @%p1", 1);
        assert_eq!(write_together(&copy(4), 4), Some(together));
        assert_eq!(write_together(&copy(3), 4), None, "results of reductions");
        let vectors = copy(4).replace(".b32", ".v4.b32");
        assert_eq!(write_together(&vectors, 4), None, "whole vectors");
        let fields = (1..4).fold(copy(4), |ptx, at| {
            ptx.replace(&format!("[%rd{at}]"), &format!("[%rd0+{}]", 4 * at))
        });
        assert_eq!(write_together(&fields, 4), None, "fields of records");
    }

    #[test]
    fn writes_behind_a_read_that_follows_another_wait() {
        let read = "\tmul.wide.s32 \t%rd8, %r1, 4;\n\tld.global.b32 %r2, [%rd8];\n";
        let gather = copy(1).replace("\t@%p1", &format!("{read}\t@%p1"));
        let together = gather.replace("\t@%p1", "\tbar.sync 0; @%p1");
        assert_eq!(write_together(&gather, 4), Some(together));
        let apart = gather.replace("[%rd8]", "[%rd7]");
        assert_eq!(write_together(&apart, 4), None);
    }

    #[test]
    fn threads_that_may_part_or_have_nobody_to_wait_for_write_at_once() {
        let copy = copy(4);
        assert_eq!(write_together(&copy, 1), None);
        assert_eq!(write_together(&format!("\t@%p2 bra \t$L__BB0_2;\n{copy}"), 4), None);
        assert_eq!(write_together(&format!("{copy}\t{{ @p exit; }}\n"), 4), None);
        let write = &copy[copy.find("\t@%p1").expect("it writes")..];
        assert_eq!(write_together(write, 4), None, "nothing is read");
    }
}
