//! Loops, branches and mapped regions.

use super::*;

#[test]
fn loops_carry_values_in_parallel() {
    // Fibonacci numbers: the carried values change places.
    let body = "
        %zero = constant {bits=0x0} : i32
        %one = constant {bits=0x1} : i32
        %ten = constant {bits=0xa} : i32
        %x0 = constant {bits=0x0} : tile<Nxi32>
        %x1 = constant {bits=0x1} : tile<Nxi32>
        %x, %y, %k = for %zero, %ten, %one, %x0, %x1, %zero LOOP : tile<Nxi32>, tile<Nxi32>, i32 @1 { |%j: i32, %p: tile<Nxi32>, %q: tile<Nxi32>, %l: i32|
        %s = add %p, %q : tile<Nxi32>
        yield %q, %s, %j
        }
        %last = splat %k : tile<Nxi32>
        %xy = mul %x, %y : tile<Nxi32>
        %r = add %xy, %last : tile<Nxi32>";
    assert_eq!(apply::<i32, i32>(("i32", "i32"), &[&[0; 4]], body), [55 * 89 + 9; 4]);
    // Rotation of one value into another, and the same value yielded twice.
    let rotate = "
        %zero = constant {bits=0x0} : i32
        %one = constant {bits=0x1} : i32
        %three = constant {bits=0x3} : i32
        %x, %y, %z = for %zero, %three, %one, %a, %b, %a LOOP : tile<Nxi32>, tile<Nxi32>, tile<Nxi32> @1 { |%j: i32, %p: tile<Nxi32>, %q: tile<Nxi32>, %w: tile<Nxi32>|
        %s = add %p, %w : tile<Nxi32>
        yield %s, %p, %s
        }
        %t = mul %x, %y : tile<Nxi32>
        %r = add %t, %z : tile<Nxi32>";
    assert_eq!(apply::<i32, i32>(("i32", "i32"), &[&[1, 2], &[5, 5]], rotate), [40, 144]);
}

#[test]
fn loops_may_count_down_and_not_at_all() {
    let run = |lower: u32, upper: u32, step: u32| {
        let body = format!(
            "%l = constant {{bits={lower:#x}}} : i32
             %u = constant {{bits={upper:#x}}} : i32
             %s = constant {{bits={step:#x}}} : i32
             %z = constant {{bits=0x0}} : i32
             %v = for %l, %u, %s, %z LOOP : i32 @1 {{ |%j: i32, %p: i32|
             %ten = constant {{bits=0xa}} : i32
             %m = mul %p, %ten : i32
             %n = add %m, %j : i32
             yield %n
             }}
             %r = splat %v : tile<Nxi32>"
        );
        apply::<i32, i32>(("i32", "i32"), &[&[0; 2]], &body)[0]
    };
    assert_eq!(run(1, 5, 1), 1234);
    assert_eq!(run(4, 0, u32::MAX), 4321);
    assert_eq!(run(5, 5, 1), 0);
    assert_eq!(run(0, 5, 2), 24);
}

#[test]
fn whiles_and_branches() {
    // Steps of the Collatz sequence of 27.
    let body = "
        %n0 = constant {bits=0x1b} : i32
        %c0 = constant {bits=0x0} : i32
        %one = constant {bits=0x1} : i32
        %n1, %c1 = while %n0, %c0 : i32, i32 @1 { |%n: i32, %c: i32|
        %go = cmp %n, %one {predicate=ne} : i1
        condition %go, %n, %c
        } { |%m: i32, %d: i32|
        %bit = and %m, %one : i32
        %odd = cmp %bit, %one {predicate=eq} : i1
        %next = if %odd : i32 @1 {
        %three = constant {bits=0x3} : i32
        %t = mul %m, %three : i32
        %u = add %t, %one : i32
        yield %u
        } {
        %h = shr_u %m, %one : i32
        yield %h
        }
        %e = add %d, %one : i32
        yield %next, %e
        }
        %r = splat %c1 : tile<Nxi32>";
    assert_eq!(apply::<i32, i32>(("i32", "i32"), &[&[0; 2]], body), [111; 2]);
}

#[test]
fn elements_are_mapped_in_packs() {
    let body = "
        %r = map_elements %a, %b {pack=2} : tile<Nxi32> @1 { |%x0: i32, %x1: i32, %y0: i32, %y1: i32|
        %c = cmp %x0, %y0 {predicate=slt} : i1
        %d = if %c : i32 @1 {
        yield %x1
        } {
        yield %y1
        }
        %e = sub %x0, %y0 : i32
        yield %d, %e
        }";
    let mapped = apply::<i32, i32>(("i32", "i32"), &[&[1, 2, 3, 4], &[9, 8, 0, 6]], body);
    assert_eq!(mapped, [2, -8, 6, 3]);
}
