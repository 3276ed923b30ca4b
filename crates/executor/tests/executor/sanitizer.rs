//! What the sanitizer finds.

use super::*;

#[test]
fn two_programs_that_store_to_one_element_race() {
    let kernel = kernel(
        "p: ptr<i32>",
        "%pid = program_id {axis=0} : i32
         %one = constant {bits=0x1} : i32
         %half = shr_u %pid, %one : i32
         %q = ptr_add %p, %half : ptr<i32>
         store %q, %pid STORE",
    );
    let mut buffers = Buffers::new();
    let p = buffers.add("p", Scalar::I32, &[0; 16]);
    let args = [Arg::Pointer(buffers.address(p))];
    let options = Options { sanitize: true, ..Options::default() };
    let report = launch(&kernel, &mut buffers, &args, 8, &options);
    let [found] = report.findings.as_slice() else { panic!("{:?}", report.findings) };
    assert_eq!((found.kind, found.place.line, found.count), (FindingKind::Race, 5, 4));
    assert!(found.message.contains("both store to element"), "{}", found.message);
}

/// What sanitizing finds when each of `grid` programs loads element `from` and stores element `to`
/// of a buffer of 8; both are `PID` and an offset of the program's number.
fn shift(from: &str, to: &str, grid: u32) -> RunReport {
    let kernel = kernel(
        "p: ptr<i32>",
        &format!(
            "%pid = program_id {{axis=0}} : i32
             %zero = constant {{bits=0x0}} : i32
             %one = constant {{bits=0x1}} : i32
             %from = add %pid, %{from} : i32
             %to = add %pid, %{to} : i32
             %q = ptr_add %p, %from : ptr<i32>
             %v = load %q LOAD : i32
             %r = ptr_add %p, %to : ptr<i32>
             store %r, %v STORE"
        ),
    );
    let mut buffers = Buffers::new();
    let p = buffers.add("p", Scalar::I32, &[0; 32]);
    let args = [Arg::Pointer(buffers.address(p))];
    let options = Options { sanitize: true, ..Options::default() };
    launch(&kernel, &mut buffers, &args, grid, &options)
}

#[test]
fn a_program_that_loads_what_another_stores_races() {
    let report = shift("one", "zero", 7);
    let [found, ..] = report.findings.as_slice() else { panic!("nothing is found") };
    assert!(report.findings.iter().all(|found| found.kind == FindingKind::Race));
    // The program that comes second finds it, at its load or at its store.
    assert!([7, 9].contains(&found.place.line), "{found:?}");
    assert_eq!(report.findings.iter().map(|found| found.count).sum::<u64>(), 6);
    assert!(found.message.contains("stores to element"), "{}", found.message);
    assert_eq!(shift("zero", "zero", 7).findings, [], "each program keeps to its own element");
    assert_eq!(shift("one", "zero", 1).findings, [], "one program has its own order");
}

#[test]
fn memory_that_nothing_wrote_is_not_to_be_read() {
    let kernel = kernel(
        "p: ptr<i32>, out: ptr<i32>, n: i32",
        "%i = arange {start=0, end=4} : tile<4xi32>
         %end = splat %n : tile<4xi32>
         %m = cmp %i, %end {predicate=slt} : tile<4xi1>
         %s = splat %p : tile<4xptr<i32>>
         %q = ptr_add %s, %i : tile<4xptr<i32>>
         store %q, %i, mask=%m STORE
         %v = load %q LOAD : tile<4xi32>
         %t = splat %out : tile<4xptr<i32>>
         %r = ptr_add %t, %i : tile<4xptr<i32>>
         store %r, %v STORE",
    );
    let run = |n: i128| {
        let mut buffers = Buffers::new();
        let [p, out] =
            ["p", "out"].map(|name| buffers.add_uninitialized(name, Scalar::I32, &[0xcc; 16]));
        let [p, out] = [p, out].map(|id| Arg::Pointer(buffers.address(id)));
        let options = Options { sanitize: true, ..Options::default() };
        launch(&kernel, &mut buffers, &[p, out, Arg::Int(n)], 1, &options).findings
    };
    assert_eq!(run(4), [], "what the program wrote itself may be read");
    let findings = run(3);
    let [found] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!((found.kind, found.place.line), (FindingKind::Uninitialized, 7));
    assert_eq!((found.index.as_slice(), found.count), (&[3][..], 1));
    let access = found.access.as_ref().expect("the address is known");
    assert_eq!((access.buffer.as_deref(), access.element), (Some("p"), 3));
}

#[test]
fn a_stored_nan_is_traced_to_its_birth() {
    let body = "
        %i = arange {start=0, end=4} : tile<4xi32>
        %s = splat %p : tile<4xptr<f32>>
        %q = ptr_add %s, %i : tile<4xptr<f32>>
        %v = load %q LOAD : tile<4xf32>
        %w = fdiv %v, %v : tile<4xf32>
        %x = fadd %w, %v : tile<4xf32>
        %three = constant {bits=0x3} : tile<4xi32>
        %m = cmp %i, %three {predicate=slt} : tile<4xi1>
        store %q, %x, mask=%m STORE";
    let kernel = kernel("p: ptr<f32>", body);
    let run = |values: [f32; 4]| {
        let mut buffers = Buffers::new();
        let p = buffers.add("p", Scalar::F32, &bytes(&values));
        let args = [Arg::Pointer(buffers.address(p))];
        let options = Options { sanitize: true, ..Options::default() };
        let report = launch(&kernel, &mut buffers, &args, 1, &options);
        report
            .findings
            .iter()
            .map(|found| (found.kind, found.place.line, found.index[0]))
            .collect::<Vec<_>>()
    };
    assert_eq!(run([1.0, 0.0, 2.0, 3.0]), [(FindingKind::NanBirth, 5, 1)]);
    assert_eq!(run([1.0, 1.0, 1.0, 0.0]), [], "the NaN is not stored");
    assert_eq!(run([1.0, f32::NAN, 2.0, 3.0]), [], "the NaN was there before");
}

/// What sanitizing finds when each of 8 programs stores `value`, one of what `body` computes, to the
/// first element of a buffer.
fn store_of_all(body: &str, value: &str) -> Vec<Finding> {
    let kernel = kernel(
        "p: ptr<i32>",
        &format!("%pid = program_id {{axis=0}} : i32\n{body}\nstore %p, %{value} STORE"),
    );
    let mut buffers = Buffers::new();
    let p = buffers.add("p", Scalar::I32, &[0; 16]);
    let args = [Arg::Pointer(buffers.address(p))];
    let options = Options { sanitize: true, ..Options::default() };
    launch(&kernel, &mut buffers, &args, 8, &options).findings
}

#[test]
fn programs_may_store_one_value_to_one_element() {
    assert_eq!(store_of_all("%seven = constant {bits=0x7} : i32", "seven"), []);
    let findings = store_of_all("", "pid");
    let [found] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!((found.kind, found.count), (FindingKind::Race, 7));
}

#[test]
fn lanes_of_one_store_do_not_write_different_values_to_one_element() {
    let store = |value: &str| {
        let kernel = kernel(
            "p: ptr<i32>",
            &format!(
                "%i = arange {{start=0, end=4}} : tile<4xi32>
                 %one = constant {{bits=0x1}} : tile<4xi32>
                 %half = shr_u %i, %one : tile<4xi32>
                 %s = splat %p : tile<4xptr<i32>>
                 %q = ptr_add %s, %half : tile<4xptr<i32>>
                 store %q, %{value} STORE"
            ),
        );
        let mut buffers = Buffers::new();
        let p = buffers.add("p", Scalar::I32, &[0; 16]);
        let args = [Arg::Pointer(buffers.address(p))];
        let options = Options { sanitize: true, ..Options::default() };
        launch(&kernel, &mut buffers, &args, 1, &options).findings
    };
    assert_eq!(store("half"), [], "both lanes of an element store the same");
    let findings = store("i");
    let [found] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!((found.kind, found.index.as_slice()), (FindingKind::Race, &[1][..]));
    let wanted = "lanes [0] and [1] of this store write different values to element 0 of `p`";
    assert_eq!(found.message, wanted);
}
