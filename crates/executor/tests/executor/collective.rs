//! Shapes, reductions and scans.

use super::*;

#[test]
fn shapes_keep_row_major_order() {
    let a: Vec<i32> = (0..8).collect();
    let run = |body: &str| apply::<i32, i32>(("i32", "i32"), &[&a], body);
    let transposed = "
        %m = reshape %a {reorder=false} : tile<2x4xi32>
        %t = permute %m {order=[1, 0]} : tile<4x2xi32>
        %r = reshape %t {reorder=false} : tile<8xi32>";
    assert_eq!(run(transposed), [0, 4, 1, 5, 2, 6, 3, 7]);
    let broadcast = "
        %h = reshape %a {reorder=false} : tile<2x2x2xi32>
        %x, %y = split %h : tile<2x2xi32>, tile<2x2xi32>
        %s = reduce %x {axis=1} : tile<2xi32> @1 { |%p: i32, %q: i32|
        %u = add %p, %q : i32
        yield %u
        }
        %e = expand_dims %s {axis=1} : tile<2x1xi32>
        %w = broadcast %e : tile<2x4xi32>
        %r = reshape %w {reorder=false} : tile<8xi32>";
    assert_eq!(run(broadcast), [2, 2, 2, 2, 10, 10, 10, 10]);
    let joined = "
        %h = reshape %a {reorder=false} : tile<4x2xi32>
        %x, %y = split %h : tile<4xi32>, tile<4xi32>
        %j = join %y, %x : tile<4x2xi32>
        %r = reshape %j {reorder=false} : tile<8xi32>";
    assert_eq!(run(joined), [1, 0, 3, 2, 5, 4, 7, 6]);
    let concatenated = "
        %h = reshape %a {reorder=false} : tile<4x2xi32>
        %x, %y = split %h : tile<4xi32>, tile<4xi32>
        %r = cat %x, %y : tile<8xi32>";
    assert_eq!(run(concatenated), [0, 2, 4, 6, 1, 3, 5, 7]);
    let gathered = "
        %m = reshape %a {reorder=false} : tile<2x4xi32>
        %one = constant {bits=0x1} : tile<2x4xi32>
        %f = xor %m, %one : tile<2x4xi32>
        %three = constant {bits=0x3} : tile<2x4xi32>
        %g = and %f, %three : tile<2x4xi32>
        %o = gather %m, %g {axis=1} : tile<2x4xi32>
        %r = reshape %o {reorder=false} : tile<8xi32>";
    assert_eq!(run(gathered), [1, 0, 3, 2, 5, 4, 7, 6]);
}

#[test]
fn reductions_take_any_region() {
    let a = [3.0f32, 9.0, -2.0, 9.0, 4.0, 0.5, 1.0, 7.0];
    // The index of the largest element, the first of equals.
    let argmax = "
        %v, %w = reduce %a, %i {axis=0} : f32, i32 @1 { |%va: f32, %ia: i32, %vb: f32, %ib: i32|
        %gt = fcmp %va, %vb {predicate=ogt} : i1
        %eq = fcmp %va, %vb {predicate=oeq} : i1
        %lo = cmp %ia, %ib {predicate=slt} : i1
        %tie = and %eq, %lo : i1
        %left = or %gt, %tie : i1
        %vr = select %left, %va, %vb : f32
        %ir = select %left, %ia, %ib : i32
        yield %vr, %ir
        }
        %f = s_to_f %w : f32
        %r = splat %f : tile<Nxf32>";
    assert_eq!(apply::<f32, f32>(("f32", "f32"), &[&a], argmax)[0], 1.0);
    // The last element: the region yields its right argument as it is.
    let last = "
        %v = reduce %a {axis=0} : f32 @1 { |%p: f32, %q: f32|
        yield %q
        }
        %r = splat %v : tile<Nxf32>";
    assert_eq!(apply::<f32, f32>(("f32", "f32"), &[&a], last)[0], 7.0);
    // A value from outside, and a branch.
    let outside = "
        %two = constant {bits=0x40000000} : f32
        %v = reduce %a {axis=0} : f32 @1 { |%p: f32, %q: f32|
        %c = fcmp %p, %q {predicate=olt} : i1
        %u = if %c : f32 @1 {
        %s = fadd %q, %two : f32
        yield %s
        } {
        yield %p
        }
        yield %u
        }
        %r = splat %v : tile<Nxf32>";
    assert_eq!(apply::<f32, f32>(("f32", "f32"), &[&a], outside)[0], 11.0);
}

#[test]
fn known_reductions_agree_with_the_tree() {
    let a: Vec<f32> = (0..64).map(|i| ((i * 37) % 64) as f32 - 20.0).collect();
    for (op, expected) in [
        ("fadd", a.iter().sum::<f32>()),
        ("fmax {propagate=false}", 43.0),
        ("fmin {propagate=true}", -20.0),
    ] {
        let (name, attrs) = op.split_once(' ').unwrap_or((op, ""));
        let body = format!(
            "%m = reshape %a {{reorder=false}} : tile<4x16xf32>
             %c = reduce %m {{axis=0}} : tile<16xf32> @1 {{ |%p: f32, %q: f32|
             %u = {name} %p, %q {attrs} : f32
             yield %u
             }}
             %v = reduce %c {{axis=0}} : f32 @1 {{ |%s: f32, %t: f32|
             %w = {name} %s, %t {attrs} : f32
             yield %w
             }}
             %r = splat %v : tile<Nxf32>"
        );
        assert_eq!(apply::<f32, f32>(("f32", "f32"), &[&a], &body)[0], expected, "{op}");
    }
}

#[test]
fn scans_run_both_ways() {
    let a = [1, 2, 3, 4, 5, 6, 7, 8];
    let scan = |reverse: bool, op: &str| {
        let body = format!(
            "%m = reshape %a {{reorder=false}} : tile<2x4xi32>
             %s = scan %m {{axis=1, reverse={reverse}}} : tile<2x4xi32> @1 {{ |%p: i32, %q: i32|
             {op}
             yield %u
             }}
             %r = reshape %s {{reorder=false}} : tile<8xi32>"
        );
        apply::<i32, i32>(("i32", "i32"), &[&a], &body)
    };
    let add = "%u = add %p, %q : i32";
    assert_eq!(scan(false, add), [1, 3, 6, 10, 5, 11, 18, 26]);
    assert_eq!(scan(true, add), [10, 9, 7, 4, 26, 21, 15, 8]);
    // Two operations: the general way.
    let twice = "%d = add %p, %p : i32
                 %u = add %d, %q : i32";
    assert_eq!(scan(false, twice), [1, 4, 11, 26, 5, 16, 39, 86]);
}
