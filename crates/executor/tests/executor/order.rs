//! Sorting, histograms, atomics and locks.

use super::*;

#[test]
fn sorting_follows_the_network() {
    let sort = |a: &[f32], keep: usize, descending: bool| {
        let attrs = format!("{{runs=1, descending={descending}, keep={keep}}}");
        apply::<f32, f32>(("f32", "f32"), &[a], &format!("%r = sort %a {attrs} : tile<Nxf32>"))
    };
    let numbers = [2.0, f32::INFINITY, -1.0, -0.0, 4.0, f32::NEG_INFINITY, -3.0, 1.0];
    let ascending = [f32::NEG_INFINITY, -3.0, -1.0, -0.0, 1.0, 2.0, 4.0, f32::INFINITY];
    let bits = |row: &[f32]| row.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&sort(&numbers, 8, false)), bits(&ascending));
    // Of a pair that does not compare, the first comes twice; downward the second.
    let zeros = [0.0, -0.0];
    assert_eq!(bits(&sort(&zeros, 2, false)), bits(&[0.0, 0.0]));
    assert_eq!(bits(&sort(&zeros, 2, true)), bits(&[-0.0, -0.0]));
    let ints = apply::<i32, i32>(
        ("i32", "i32"),
        &[&[3, -1, 2, 0]],
        "%r = sort %a {runs=1, descending=false, keep=4} : tile<Nxi32>",
    );
    assert_eq!(ints, [-1, 0, 2, 3]);
}

#[test]
fn histograms_count_what_is_inside() {
    let counted = apply::<i32, i32>(
        ("i32", "i32"),
        &[&[0, 1, 1, 3, 3, 3, 9, -1]],
        "%h = histogram %a {bins=8} : tile<8xi32>
         %r = add %h, %a : tile<Nxi32>",
    );
    assert_eq!(counted, [1, 3, 1, 6, 3, 3, 9, -1]);
}

#[test]
fn atomics_of_all_programs_add_up() {
    let kernel = kernel(
        "p: ptr<f32>, c: ptr<i32>",
        "%one = constant {bits=0x3f800000} : f32
         %old = atomic_rmw %p, %one {op=fadd, order=acq_rel, scope=gpu} : f32
         %pid = program_id {axis=0} : i32
         %max = atomic_rmw %c, %pid {op=smax, order=relaxed, scope=gpu} : i32",
    );
    let mut buffers = Buffers::new();
    let p = buffers.add("p", Scalar::F32, &[0; 4]);
    let c = buffers.add("c", Scalar::I32, &[0; 4]);
    let args = [p, c].map(|id| Arg::Pointer(buffers.address(id)));
    let options = Options { sanitize: true, ..Options::default() };
    let report = launch(&kernel, &mut buffers, &args, 1000, &options);
    assert_eq!(report.findings, []);
    assert_eq!(read::<f32>(&buffers, p), [1000.0]);
    assert_eq!(read::<i32>(&buffers, c), [999]);
}

/// Each program adds 1 to a number under a lock.
const LOCKED: &str = "
    %zero = constant {bits=0x0} : i32
    %one = constant {bits=0x1} : i32
    %w = while %zero : i32 @1 { |%k: i32|
    %old = atomic_cas %lock, %zero, %one {order=acquire, scope=gpu} : i32
    %busy = cmp %old, %zero {predicate=ne} : i1
    condition %busy, %k
    } { |%l: i32|
    yield %l
    }
    %v = load %p LOAD : i32
    %s = add %v, %one : i32
    store %p, %s STORE
    %free = atomic_rmw %lock, %zero {op=xchg, order=release, scope=gpu} : i32
";

#[test]
fn locks_hold_programs_apart() {
    let kernel = kernel("p: ptr<i32>, lock: ptr<i32>", LOCKED);
    let mut buffers = Buffers::new();
    let p = buffers.add("p", Scalar::I32, &[0; 4]);
    let lock = buffers.add("lock", Scalar::I32, &[0; 4]);
    let args = [p, lock].map(|id| Arg::Pointer(buffers.address(id)));
    let options = Options { sanitize: true, ..Options::default() };
    let report = launch(&kernel, &mut buffers, &args, 500, &options);
    assert_eq!(report.findings, []);
    assert_eq!(read::<i32>(&buffers, p), [500]);
}

#[test]
fn a_launch_that_never_ends_is_ended() {
    let kernel = kernel("p: ptr<i32>, lock: ptr<i32>", LOCKED);
    let mut buffers = Buffers::new();
    let p = buffers.add("p", Scalar::I32, &[0; 4]);
    let lock = buffers.add("lock", Scalar::I32, &[1, 0, 0, 0]);
    let args = [p, lock].map(|id| Arg::Pointer(buffers.address(id)));
    let deadline = Some(std::time::Duration::from_millis(50));
    let options = Options { deadline, ..Options::default() };
    let error = kernel.launch(&mut buffers, &args, [4, 1, 1], &options).unwrap_err();
    assert_eq!(error, RunError::TimedOut("k".to_owned()));
}
