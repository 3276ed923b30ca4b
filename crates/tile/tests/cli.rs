//! The command line as a user meets it: formats, exit codes, bad input.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use expect_test::{Expect, expect};
use serde_json::Value;
use tempfile::TempDir;

/// A folder with files in it, where commands run.
struct Folder(TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Folder {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Folder(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tile"));
        command
            .args(arguments.split_whitespace())
            .current_dir(self.path())
            .env("NO_COLOR", "1")
            .env("TILE_CACHE", self.path().join(".cache"))
            .env_remove("VIRTUAL_ENV")
            .env_remove("CLICOLOR_FORCE");
        command
    }

    fn run(&self, arguments: &str) -> Done {
        Done::of(self.command(arguments).stdin(Stdio::null()).output().unwrap())
    }

    fn run_with_stdin(&self, arguments: &str, stdin: &[u8]) -> Done {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(stdin).unwrap();
        Done::of(child.wait_with_output().unwrap())
    }
}

/// How a command ended.
struct Done {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Done {
    fn of(output: Output) -> Done {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Done {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Exit code, standard output and standard error in one text; times are blotted out.
    fn expect(&self, expected: Expect) {
        let mut text = format!("exit {}\n", self.code.unwrap());
        for (name, stream) in [("out", &self.stdout), ("err", &self.stderr)] {
            for line in stream.lines() {
                text.push_str(&format!("{name}: {}\n", without_time(line)));
            }
        }
        expected.assert_eq(&text);
    }

    fn json(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }
}

/// `(12 ms)` becomes `(N ms)`.
fn without_time(line: &str) -> String {
    match line.rsplit_once('(') {
        Some((start, rest)) if rest.ends_with(" ms)") => format!("{start}(N ms)"),
        _ => line.to_owned(),
    }
}

const ADD: &str = r#"import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + 1.0, mask=mask)


# tile: n = 1000
# tile: x, out = randn(n), empty(n)
# tile: add_kernel[(cdiv(n, 256),)](x, out, n, BLOCK=256)
# tile: assert allclose(out, x + 1.0)
"#;

#[test]
fn a_missing_file_and_a_wrong_flag_are_usage_errors() {
    let folder = Folder::new(&[]);
    folder.run("check nothing.py").expect(expect![[r#"
        exit 2
        out: no errors in 0 kernels of 0 files (N ms)
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
        out: no errors in 0 kernels of 0 files (N ms)
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
    let folder = Folder::new(&[("big.py", &"# triton\n".repeat(500_000))]);
    for command in ["check big.py", "check .", "info big.py"] {
        let done = folder.run(command);
        assert_eq!(done.code, Some(2), "{command}");
        assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
        assert!(done.stderr.contains("4 MiB"), "{}", done.stderr);
    }
}

#[test]
fn a_folder_is_walked_without_what_git_ignores() {
    let folder = Folder::new(&[
        ("a/add.py", ADD),
        ("b/host.py", "import torch\n"),
        ("c/ignored.py", ADD),
        (".gitignore", "c/\n"),
    ]);
    let done = folder.run("check . --format json");
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    let last = done.json().pop().unwrap();
    assert_eq!((&last["summary"]["files"], &last["summary"]["kernels"]), (&1.into(), &1.into()));
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
