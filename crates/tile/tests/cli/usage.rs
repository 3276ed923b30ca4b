//! What is no fault of a kernel: files that cannot be read, kernels that are not there, a wrong flag,
//! no assembler. Each message names what is meant and says what to do.

use expect_test::expect;

use crate::{ADD, Done, Folder};

#[test]
fn a_missing_file_and_a_wrong_flag_are_usage_errors() {
    let folder = Folder::new(&[]);
    folder.run("check nothing.py").expect(expect![[r#"
        exit 2
        err: error: nothing.py: no such file or folder
    "#]]);
    let folder = Folder::new(&[("add.py", ADD)]);
    folder.run("check add.py nothing.py").expect(expect![[r#"
        exit 2
        out: no errors in 1 kernel of 1 file; not checked: 1 file (N ms)
        err: error: nothing.py: no such file or folder
    "#]]);
    let done = folder.run("check --frobnicate a.py");
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("--frobnicate"), "{}", done.stderr);
    let done = folder.run("emit a.py --stage ptx --arch sm_20");
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("sm_75 and later"), "{}", done.stderr);
    let done = folder.run("info a.py --num-warps 3");
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("1, 2, 4, 8, 16 or 32"), "{}", done.stderr);
}

#[test]
fn a_file_that_is_not_utf8_gets_one_clear_error() {
    let folder = Folder::new(&[]);
    std::fs::write(folder.path().join("latin1.py"), b"import triton\n# caf\xe9\n").unwrap();
    folder.run("check latin1.py").expect(expect![[r#"
        exit 2
        err: error: latin1.py: not UTF-8: byte 0xe9 on line 2; save the file as UTF-8
    "#]]);
    let done = folder.run("check --format json latin1.py");
    assert_eq!(done.code, Some(2));
    let lines = done.json();
    assert_eq!(lines[0]["code"], "syntax/unreadable");
    assert_eq!(lines[0]["severity"], "error");
    assert!(lines[1]["summary"].is_object());
    let done = folder.run_with_stdin("check -", b"\xff\xfe");
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("not UTF-8"), "{}", done.stderr);
}

#[test]
fn a_file_over_4_mib_gets_one_clear_error() {
    let folder = Folder::new(&[("big.py", &"# triton.jit\n".repeat(400_000))]);
    for command in ["check big.py", "check .", "info big.py"] {
        let done = folder.run(command);
        assert_eq!(done.code, Some(2), "{command}");
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
        assert!(done.stderr.contains("4 MiB"), "{}", done.stderr);
    }
}

#[test]
fn codes_are_explained() {
    let folder = Folder::new(&[]);
    let done = folder.run("explain name/undefined");
    assert_eq!(done.code, Some(0));
    assert!(done.stdout.starts_with("name/undefined (error)\n"), "{}", done.stdout);
    folder.run("explain name/undefine").expect(expect![[r#"
        exit 2
        err: error: there is no diagnostic `name/undefine`; did you mean `name/undefined`?
    "#]]);
}

#[test]
fn without_an_assembler_nothing_is_measured_and_the_message_says_what_to_do() {
    let folder = Folder::new(&[("add.py", ADD)]);
    let mut command = folder.command("info add.py");
    let done = Done::of(command.env("TILE_PTXAS", "/nonexistent/ptxas").output().unwrap());
    assert_eq!(done.code, Some(4));
    assert!(done.stderr.contains("correct or unset it"), "{}", done.stderr);
}

#[test]
#[cfg(unix)]
fn what_the_assembler_rejects_does_not_compile() {
    use std::os::unix::fs::PermissionsExt;

    let script = "#!/bin/sh\necho \"ptxas kernel.ptx, line 9; error : Unknown symbol 'what'\" >&2\nexit 255\n";
    let folder = Folder::new(&[("add.py", ADD), ("ptxas", script)]);
    let assembler = folder.path().join("ptxas");
    std::fs::set_permissions(&assembler, PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = folder.command("emit add.py --stage cubin -o add.cubin");
    let done = Done::of(command.env("TILE_PTXAS", &assembler).output().unwrap());
    assert_eq!(done.code, Some(3), "{}", done.stderr);
    assert!(done.stderr.contains("Unknown symbol 'what'"), "{}", done.stderr);
}

#[test]
fn a_kernel_that_is_not_there_is_told_of_with_the_file() {
    let none = "import triton\n";
    let two = format!("{ADD}\n{}", ADD.replace("add_kernel", "other_kernel"));
    let folder = Folder::new(&[("add.py", ADD), ("none.py", none), ("two.py", &two)]);
    let missing = "error: add.py: there is no kernel `ad_kernel`; the kernels are add_kernel\n";
    for command in ["check", "emit --stage tile", "info", "run", "bench", "tune", "run --arg auto"]
    {
        let done = folder.run(&format!("{command} add.py::ad_kernel"));
        assert_eq!((done.code, &*done.stderr), (Some(2), missing), "{command}");
    }
    for command in ["emit --stage tile", "info", "tune"] {
        let done = folder.run(&format!("{command} none.py"));
        assert_eq!(done.code, Some(2), "{command}");
        assert!(done.stderr.starts_with("error: none.py has no kernels: "), "{}", done.stderr);
    }
    for command in ["emit --stage tile", "tune"] {
        let done = folder.run(&format!("{command} two.py"));
        let several = "error: two.py has several kernels; choose one with FILE::KERNEL: add_kernel, other_kernel\n";
        assert_eq!((done.code, &*done.stderr), (Some(2), several), "{command}");
    }
}

#[test]
fn the_only_kernel_is_tuned_without_being_named() {
    let folder = Folder::new(&[("add.py", ADD)]);
    folder.run("tune add.py").expect(expect![[r#"
        exit 2
        err: error: add_kernel has no autotune configurations; give values to try, such as --set BLOCK_SIZE=512,1024 --set num_warps=4,8
    "#]]);
    let done = folder.run("tune add.py --set BLOCK=256,512 --device cpu --format json");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(done.json().len(), 2, "{}", done.stdout);
}

#[test]
fn flags_that_say_nothing_and_files_that_cannot_be_written_are_named() {
    let folder = Folder::new(&[("add.py", ADD)]);
    for (flag, told) in [
        ("--type n=integer", "error: --type n=integer: \"integer\" is not a type; "),
        ("--set BLOCK=1+", "error: --set BLOCK=1+: "),
    ] {
        let done = folder.run(&format!("emit add.py --stage tile {flag}"));
        assert_eq!(done.code, Some(2), "{}", done.stderr);
        assert!(done.stderr.starts_with(told), "{}", done.stderr);
    }
    for (arguments, told) in [
        ("run add.py --grid lambda", "error: --grid: `lambda` is not an expression\n"),
        ("run add.py::add_kernel#9", "error: add_kernel has no scenario #9; it has 1\n"),
        ("tune add.py --set BLOCK=,", "error: --set BLOCK names no values to try\n"),
    ] {
        let done = folder.run(arguments);
        assert_eq!((done.code, &*done.stderr), (Some(2), told), "{arguments}");
    }
    for (arguments, told) in [
        ("info add.py --num-warps -1", "the number of warps is 1, 2, 4, 8, 16 or 32"),
        ("info add.py --num-stages -1", "-1 is not in 0..=32"),
        ("run add.py --grid -1", "extent -1 is outside 0 to"),
        ("check add.py::add_kernel#1", "only `run`, `bench` and `tune` take the number"),
    ] {
        let done = folder.run(arguments);
        assert_eq!(done.code, Some(2), "{arguments}: {}", done.stderr);
        assert!(done.stderr.contains(told), "{arguments}: {}", done.stderr);
    }
    for stage in ["tile", "ptx"] {
        let done = folder.run(&format!("emit add.py --stage {stage} -o none/out --arch sm_90a"));
        let told = "error: cannot write none/out: its folder does not exist\n";
        assert_eq!((done.code, &*done.stderr), (Some(2), told), "{stage}");
    }
}

#[test]
fn a_path_without_kernel_files_is_told_of() {
    let folder = Folder::new(&[("empty/notes.txt", "")]);
    folder.run("check empty").expect(expect![[r#"
        exit 0
        out: no errors in 0 kernels of 0 files (N ms)
        err: note: empty: no .py or .tile file lies below
    "#]]);
    let mut command = folder.command("check");
    let done = Done::of(command.arg("").output().unwrap());
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("write the path of a file"), "{}", done.stderr);
}

#[test]
fn an_assembler_that_is_none_is_named() {
    let folder = Folder::new(&[("add.py", ADD)]);
    let run = |program: &str, arguments: &str| {
        Done::of(folder.command(arguments).env("TILE_PTXAS", program).output().unwrap())
    };
    for arguments in ["info add.py", "doctor"] {
        let done = run("/nonexistent/ptxas", arguments);
        let told = format!("{}{}", done.stdout, done.stderr);
        assert!(told.contains("TILE_PTXAS is /nonexistent/ptxas, which is no program"), "{told}");
    }
    let unset = run("", "info add.py --arch sm_90a");
    assert!(!unset.stderr.contains("TILE_PTXAS is"), "{}", unset.stderr);
}
