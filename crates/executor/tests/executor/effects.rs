//! Pointers, prints, assertions and what a CPU cannot do.

use super::*;

#[test]
fn pointers_are_numbers_that_come_back() {
    let kernel = kernel(
        "p: ptr<f32>, list: ptr<ptr<f32>>",
        "%n = ptr_to_int %p : i64
         %four = constant {bits=0x4} : i64
         %m = add %n, %four : i64
         %q = int_to_ptr %m : ptr<f32>
         %v = load %q LOAD : f32
         %first = load %list LOAD : ptr<f32>
         store %first, %v STORE",
    );
    let mut buffers = Buffers::new();
    let p = buffers.add("p", Scalar::F32, &bytes(&[1f32, 2.0]));
    let out = buffers.add("out", Scalar::F32, &[0; 4]);
    let list = buffers.add("list", Scalar::I64, &buffers.address(out).to_ne_bytes());
    let args = [p, list].map(|id| Arg::Pointer(buffers.address(id)));
    let report = launch(&kernel, &mut buffers, &args, 1, &Options::default());
    assert_eq!(report.findings, []);
    assert_eq!(read::<f32>(&buffers, out), [2.0]);
}

#[test]
fn wild_addresses_are_explained() {
    let kernel = kernel(
        "p: ptr<f32>, n: i64",
        "%a = ptr_to_int %p : i64
         %b = add %a, %n : i64
         %q = int_to_ptr %b : ptr<f32>
         %v = load %q LOAD : f32
         store %p, %v STORE",
    );
    let message = |n: i128| {
        let mut buffers = Buffers::new();
        let p = buffers.add("p", Scalar::F32, &bytes(&[5f32, 6.0]));
        let args = [Arg::Pointer(buffers.address(p)), Arg::Int(n)];
        let report = launch(&kernel, &mut buffers, &args, 1, &Options::default());
        report.findings.first().map(|found| found.message.clone()).unwrap_or_default()
    };
    assert_eq!(message(4), "");
    assert_eq!(message(-4), "load from element -1 of `p`, which has 2 elements");
    assert_eq!(message(2), "load from byte 2 of `p`, which is not a multiple of 4 bytes");
    assert_eq!(message(8), "load from element 2 of `p`, which has 2 elements");
    assert_eq!(
        message(i128::from(i64::MAX / 2)),
        "load from address 0x4000017fffffffff, which is in no buffer"
    );
}

#[test]
fn prints_come_in_program_order() {
    let kernel = kernel(
        "",
        r#"%pid = program_id {axis=0} : i32
           %h = constant {bits=0x3e00} : tile<2xf16>
           device_print %pid, %h {text=" x: ", hex=false}"#,
    );
    let report = launch(&kernel, &mut Buffers::new(), &[], 2, &Options::default());
    expect![[r#"
        [
            "pid (0, 0, 0) idx () x: (operand 0) 0",
            "pid (0, 0, 0) idx (0) x: (operand 1) 1.500000",
            "pid (0, 0, 0) idx (1) x: (operand 1) 1.500000",
            "pid (1, 0, 0) idx () x: (operand 0) 1",
            "pid (1, 0, 0) idx (0) x: (operand 1) 1.500000",
            "pid (1, 0, 0) idx (1) x: (operand 1) 1.500000",
        ]
    "#]]
    .assert_debug_eq(&report.prints);
}

#[test]
fn a_failed_assertion_ends_its_program() {
    let kernel = kernel(
        "p: ptr<i32>",
        r#"%pid = program_id {axis=0} : i32
           %one = constant {bits=0x1} : i32
           %ok = cmp %pid, %one {predicate=ne} : i1
           device_assert %ok {text="not the second", hex=false}
           %q = ptr_add %p, %pid : ptr<i32>
           store %q, %one STORE"#,
    );
    let mut buffers = Buffers::new();
    let p = buffers.add("p", Scalar::I32, &[0; 12]);
    let args = [Arg::Pointer(buffers.address(p))];
    let report = launch(&kernel, &mut buffers, &args, 3, &Options::default());
    let found: Vec<_> =
        report.findings.iter().map(|found| (found.message.as_str(), found.program)).collect();
    assert_eq!(found, [("assertion failed: not the second", [1, 0, 0])]);
    assert_eq!(read::<i32>(&buffers, p), [1, 0, 1]);
}

#[test]
fn what_a_cpu_cannot_do_is_a_typed_error() {
    let func = parse(
        "",
        r#"%one = constant {bits=0x1} : i32
           %v = inline_asm %one {asm="mov.u32 $0, $1;", constraints="=r,r", pack=1, pure=true} : i32"#,
    );
    let error = Kernel::compile(&func).unwrap_err().to_string();
    assert_eq!(
        error,
        "line 2: inline PTX cannot run on the CPU; run the kernel with `--device cuda:0`"
    );
    let kernel = kernel("n: i32", "%m = add %n, %n : i32");
    let mut buffers = Buffers::new();
    let run = |args: &[Arg]| {
        kernel
            .launch(&mut Buffers::new(), args, [1, 1, 1], &Options::default())
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    assert_eq!(run(&[]), Err("k: takes 1 arguments, got 0".to_owned()));
    assert_eq!(run(&[Arg::Float(1.0)]), Err("k: argument `n` is 1.0, which is no i32".to_owned()));
    assert_eq!(
        run(&[Arg::Int(1 << 40)]),
        Err("k: argument `n` is 1099511627776, which is no i32".to_owned())
    );
    assert!(kernel.launch(&mut buffers, &[Arg::Int(-1)], [0, 1, 1], &Options::default()).is_ok());
}
