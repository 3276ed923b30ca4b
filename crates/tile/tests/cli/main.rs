//! The command line as a user meets it: formats, exit codes, bad input.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use expect_test::Expect;
use serde_json::Value;
use tempfile::TempDir;

mod launched;
#[cfg(target_os = "linux")]
mod orphaned;
mod remembered;
mod settings;
mod usage;

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

    /// As [`Folder::run`], with a variable of the environment.
    fn run_with(&self, variable: (&str, &str), arguments: &str) -> Done {
        let mut command = self.command(arguments);
        Done::of(command.env(variable.0, variable.1).stdin(Stdio::null()).output().unwrap())
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

/// `(12 ms)` becomes `(N ms)`, and what follows `: ok, ` in the line of a run `N ms`.
fn without_time(line: &str) -> String {
    for outcome in [": ok, ", ": FAILED, "] {
        if let Some((start, _)) = line.split_once(outcome) {
            return format!("{start}{outcome}N ms");
        }
    }
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
fn launches_beside_a_file_count() {
    let kernel = ADD.split("# tile:").next().unwrap().replace(", mask=mask", "");
    let host = "\
        import torch\nfrom add import add_kernel\n\nx = torch.randn(100, device='cuda')\n\
        add_kernel[(2,)](x, torch.empty_like(x), 100, BLOCK=64)\n";
    let beside = Folder::new(&[("add.py", &kernel), ("main.py", host)]);
    let whole = [("pyproject.toml", ""), ("src/add.py", &*kernel), ("tests/test_add.py", host)];
    let installed = Folder::new(&whole);
    let below = Folder::new(&[("add.py", &kernel), ("other/main.py", host)]);
    for (folder, file, errors) in
        [(beside, "add.py", 2), (installed, "src/add.py", 2), (below, "add.py", 0)]
    {
        let done = folder.run(&format!("check {file} --format json"));
        let last = done.json().pop().unwrap();
        assert_eq!(last["summary"]["errors"], errors, "{}{}", done.stdout, done.stderr);
    }
}

const BROKEN: &str = r#"import triton
import triton.language as tl


@triton.jit
def k(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(x_ptr + offset, 0.0)
"#;

#[test]
fn findings_have_the_contracts_shape_and_exit_code() {
    let folder = Folder::new(&[("k.py", BROKEN)]);
    let done = folder.run("check k.py --format json");
    assert_eq!(done.code, Some(1));
    let lines = done.json();
    assert_eq!(lines.len(), 2, "{}", done.stdout);
    let found = &lines[0];
    assert_eq!(found["code"], "name/undefined");
    assert_eq!(found["file"], "k.py");
    assert_eq!(found["range"]["start"], serde_json::json!({ "line": 8, "col": 22 }));
    assert_eq!(found["range"]["end"], serde_json::json!({ "line": 8, "col": 28 }));
    for key in ["related", "fixes", "kernel", "specialization"] {
        assert!(found.get(key).is_some(), "{key} is missing in {found}");
    }
    assert_eq!(lines[1]["summary"]["errors"], 1);
    let human = folder.run("check k.py");
    assert_eq!(human.code, Some(1));
    assert!(human.stdout.contains("--> k.py:8:22"), "{}", human.stdout);
    let log: Value = serde_json::from_str(&folder.run("check k.py --format sarif").stdout).unwrap();
    assert_eq!(log["version"], "2.1.0");
    assert_eq!(log["runs"][0]["results"][0]["ruleId"], "name/undefined");
    let stdin = folder.run_with_stdin("check - --stdin-name live.py", BROKEN.as_bytes());
    assert_eq!(stdin.code, Some(1));
    assert!(stdin.stdout.contains("--> live.py:8:22"), "{}", stdin.stdout);
}

#[test]
fn of_lines_that_nobody_can_read_the_place_is_shown_alone() {
    let table = format!("{BROKEN}table = [{}missing]\n", "1, ".repeat(2000));
    let folder = Folder::new(&[("k.py", &table)]);
    let human = folder.run("check k.py");
    assert!(human.stdout.contains("`missing` is not defined"), "{}", human.stdout);
    assert!(human.stdout.contains("--> k.py:9:6010"), "{}", human.stdout);
    assert!(human.stdout.lines().all(|line| line.len() < 200), "{}", human.stdout);
}

#[test]
fn a_code_is_switched_off_by_comment_and_by_project_file() {
    let allowed = BROKEN.replace("0.0)", "0.0)  # tile: allow name/undefined");
    let folder = Folder::new(&[("k.py", &allowed)]);
    assert_eq!(folder.run("check k.py").code, Some(0));
    let folder =
        Folder::new(&[("k.py", BROKEN), ("tile.toml", "[lints]\n\"name/undefined\" = \"off\"\n")]);
    assert_eq!(folder.run("check k.py").code, Some(0));
}

#[test]
fn stages_before_machine_code_need_no_assembler() {
    let folder = Folder::new(&[("add.py", ADD), ("k.py", BROKEN)]);
    let tile = folder.run("emit add.py --stage tile");
    assert_eq!(tile.code, Some(0), "{}", tile.stderr);
    assert!(tile.stdout.contains("kernel @add_kernel level=tile"), "{}", tile.stdout);
    let ptx = folder.run("emit add.py::add_kernel --stage ptx -o add.ptx");
    assert_eq!(ptx.code, Some(0), "{}", ptx.stderr);
    let text = std::fs::read_to_string(folder.path().join("add.ptx")).unwrap();
    assert!(text.contains(".entry add_kernel"), "{text}");
    let manifest = std::fs::read_to_string(folder.path().join("add.ptx.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let names: Vec<&Value> =
        manifest["params"].as_array().unwrap().iter().map(|param| &param["name"]).collect();
    assert_eq!(names, ["x_ptr", "out_ptr", "n"]);
    assert_eq!(manifest["block"], serde_json::json!([128, 1, 1]));
    assert_eq!(folder.run("emit k.py --stage ptx").code, Some(3));
    let other = folder.run("emit add.py::other --stage ptx");
    assert_eq!(other.code, Some(2));
    assert!(other.stderr.contains("the kernels are add_kernel"), "{}", other.stderr);
    let flag = folder.run("emit add.py --stage ptx --set WIDTH=4");
    assert_eq!(flag.code, Some(2));
    assert!(flag.stderr.contains("no parameter WIDTH"), "{}", flag.stderr);
    for command in ["check", "run"] {
        let flag = folder.run(&format!("{command} add.py --set BLOK=4"));
        assert_eq!(flag.code, Some(2), "{command}");
        assert!(flag.stderr.contains("did you mean BLOCK?"), "{command}: {}", flag.stderr);
    }
}

#[test]
fn scenarios_run_on_the_cpu() {
    let folder = Folder::new(&[("add.py", ADD)]);
    let done = folder.run("run add.py::add_kernel#1 --device cpu --format json --save out=out.npy");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let result = &done.json()[0];
    assert_eq!((&result["kernel"], &result["device"]), (&"add_kernel".into(), &"cpu".into()));
    assert_eq!(result["asserts"][0]["line"], 15);
    assert_eq!(result["outputs"]["out"]["shape"], serde_json::json!([1000]));
    assert!(folder.path().join("out.npy").exists());
    let wrong = folder.run("run add.py --device cpu --arg n=ten");
    assert!(wrong.stderr.contains("--arg n=ten: "), "{}", wrong.stderr);
    let smaller = folder.run("run add.py --device cpu --format json --arg n=10");
    assert_eq!(smaller.json()[0]["outputs"]["out"]["shape"], serde_json::json!([10]));
    assert_eq!(folder.run("run add.py::add_kernel#2 --device cpu").code, Some(2));
    let absent = folder.run("run add.py --device cuda:77");
    assert_eq!(absent.code, Some(4));
    assert!(absent.stderr.contains("--device cpu"), "{}", absent.stderr);
}

#[test]
fn a_failed_assert_and_a_sanitizer_finding_are_findings() {
    let wrong = ADD.replace("x + 1.0)\n", "x + 2.0)\n");
    let unmasked = ADD.replace(", mask=mask", "");
    let folder = Folder::new(&[("wrong.py", &wrong), ("unmasked.py", &unmasked)]);
    let done = folder.run("run wrong.py --device cpu --format json");
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert_eq!(done.json()[0]["asserts"][0]["ok"], false);
    let done = folder.run("run unmasked.py --device cpu --sanitize --format json");
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert_eq!(done.json()[0]["findings"][0]["line"], 9);
}

#[test]
fn a_kernel_without_a_scenario_runs_with_arguments_or_with_chosen_ones() {
    let (kernel, _) = ADD.split_once("\n\n# tile").unwrap();
    let folder = Folder::new(&[("add.py", kernel)]);
    let silent = folder.run("run add.py::add_kernel --device cpu");
    assert_eq!(silent.code, Some(2));
    assert!(silent.stderr.contains("--arg"), "{}", silent.stderr);
    let given = folder.run(
        "run add.py --device cpu --format json --grid (2,) --arg n=300 --arg x_ptr=ones(300) \
         --arg out_ptr=empty(300) --arg BLOCK=256",
    );
    assert_eq!(given.code, Some(0), "{}", given.stderr);
    assert_eq!(given.json()[0]["outputs"]["out_ptr"]["mean"], 2.0);
    let wrong = folder.run(
        "run add.py --device cpu --grid (2,) --arg n=300 --arg x_ptr=onez(300) \
         --arg out_ptr=empty(300) --arg BLOCK=256",
    );
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("--arg x_ptr=onez(300): "), "{}", wrong.stderr);
    assert!(!wrong.stderr.contains("add.py:"), "the file has no such line: {}", wrong.stderr);
    let grid = folder.run(
        "run add.py --device cpu --grid (m,) --arg n=300 --arg x_ptr=ones(300) \
         --arg out_ptr=empty(300) --arg BLOCK=256",
    );
    assert!(grid.stderr.contains("--grid (m,): "), "{}", grid.stderr);
    let chosen = folder.run("run add.py --device cpu --arg auto --set BLOCK=256");
    assert_eq!(chosen.code, Some(0), "{}", chosen.stderr);
    assert!(chosen.stderr.contains("out_ptr=rand("), "{}", chosen.stderr);
}

#[test]
fn all_arguments_together_are_a_launch_of_their_own() {
    let folder = Folder::new(&[("add.py", ADD)]);
    let given = folder.run(
        "run add.py --device cpu --format json --grid (2,) --arg n=300 --arg x_ptr=ones(300) \
         --arg out_ptr=empty(300) --set BLOCK=256 --save out_ptr=out.npy",
    );
    assert_eq!(given.code, Some(0), "{}", given.stderr);
    let results = given.json();
    assert_eq!(results.len(), 1, "the scenario is not run");
    assert_eq!(results[0]["asserts"], serde_json::json!([]));
    assert_eq!(results[0]["outputs"]["out_ptr"]["mean"], 2.0);
    assert!(folder.path().join("out.npy").exists());
    let absent = folder.run("run add.py --device cpu --save y=y.npy");
    assert_eq!(absent.code, Some(2));
    assert!(absent.stderr.contains("its tensors are out, "), "{}", absent.stderr);
}

#[test]
fn what_a_kernel_prints_does_not_disturb_the_protocol() {
    let printing =
        ADD.replace("    mask =", "    tl.device_print(\"offsets\", offsets)\n    mask =");
    let folder = Folder::new(&[("add.py", &printing)]);
    let done = folder.run("run add.py --device cpu --format json --arg n=4");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(done.json().len(), 1);
}

#[test]
fn kernels_are_lowered_for_the_architecture_that_is_asked_for() {
    let kernel = "import triton
import triton.language as tl
from triton.language.target_info import cuda_capability_geq


@triton.jit
def which_kernel(out_ptr):
    if cuda_capability_geq(9, 0):
        tl.store(out_ptr, 0x90)
    else:
        tl.store(out_ptr, 0x80)
";
    let folder = Folder::new(&[("which.py", kernel)]);
    for (arch, stored) in [("sm_80", "bits=0x80"), ("sm_90a", "bits=0x90")] {
        let done =
            folder.run(&format!("emit which.py --stage tile --type out_ptr=*i32 --arch {arch}"));
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        assert!(done.stdout.contains(stored), "{arch}: {}", done.stdout);
    }
}

#[test]
fn scenarios_pass_functions_of_other_files() {
    let helper = "import triton\n\n\n@triton.jit\ndef twice(x):\n    return 2 * x\n";
    let kernel = "import triton
import triton.language as tl
from helper import twice


@triton.jit
def map_kernel(x_ptr, out_ptr, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, FUNCTION(tl.load(x_ptr + offsets)))


# tile: x, out = randn(64), empty(64)
# tile: map_kernel[1](x, out, FUNCTION=twice, BLOCK=64)
# tile: assert allclose(out, 2 * x)
";
    let folder = Folder::new(&[("map.py", kernel), ("helper.py", helper)]);
    let done = folder.run("run map.py --device cpu --sanitize");
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
}

#[test]
fn scenarios_are_launched_as_decorators_say() {
    let kernel = "import triton
import triton.language as tl


@triton.heuristics({\"WIDE\": lambda args: args[\"n\"] > args[\"x_ptr\"].shape[0] // 2})
@triton.jit
def choose(x_ptr, n, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 1.0 if WIDE else 2.0)


# tile: x = zeros(64)
# tile: choose[1](x, 50, BLOCK=64)
# tile: assert allclose(x, full(64, value=1.0))

# tile: x = zeros(64)
# tile: for n in (50, 20): choose[1](x, n, BLOCK=64, WIDE=True)
# tile: assert allclose(x, full(64, value=2.0))


@triton.autotune(configs=[triton.Config({\"BLOCK\": 64})], key=[])
@triton.jit
def tuned(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)


# tile: x = zeros(64)
# tile: tuned[1](x)
# tile: assert allclose(x, full(64, value=1.0))

# tile: x = zeros(64)
# tile: tuned[1](x, BLOCK=32)
";
    let folder = Folder::new(&[("decorated.py", kernel)]);
    let run = |arguments: &str| folder.run(&format!("run decorated.py::{arguments} --device cpu"));
    let done = run("choose");
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    let done = run("tuned#1");
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    let done = run("tuned#2");
    assert_eq!(done.code, Some(2), "{}{}", done.stdout, done.stderr);
    assert!(done.stderr.contains("`BLOCK` is set by `@triton.autotune`"), "{}", done.stderr);
    let done = run("tuned --arg x_ptr=zeros(64) --arg BLOCK=32 --grid 1");
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
}

#[test]
fn scenarios_pass_named_tuples() {
    let kernel = "from typing import NamedTuple

import triton
import triton.language as tl


class Buffers(NamedTuple):
    x: tl.tensor
    out: tl.tensor
    n: tl.tensor


@triton.jit
def scale(buffers, by: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(buffers.x + i, mask=i < buffers.n)
    tl.store(buffers.out + i, x * by[0] + by[1], mask=i < buffers.n)


# tile: x, out = randn(40), zeros(40)
# tile: buffers = Buffers(x, out=out, n=40)
# tile: scale[1](buffers, (2, 3), BLOCK=64)
# tile: assert allclose(out, x * 2 + 3) and buffers.n == 40

# tile: x, out = randn(1), zeros(1)
# tile: scale[1](Buffers(x, out), (2, 3), BLOCK=64)
";
    let folder = Folder::new(&[("named.py", kernel)]);
    let done = folder.run("run named.py::scale#1 --device cpu --sanitize");
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    let done = folder.run("run named.py::scale#2 --device cpu");
    assert_eq!(done.code, Some(2), "{}{}", done.stdout, done.stderr);
    assert!(done.stderr.contains("`Buffers` needs the field `n`"), "{}", done.stderr);
}

/// A product that asks for 256 KiB of shared memory, and reads a column for each lane.
const DEEP: &str = concat!(
    include_str!("../../../../tests/kernels/deep.tile"),
    r#"
# tile: a, b, c = randn(128, 512, dtype=fp16), randn(512, 128, dtype=fp16), empty(128, 128)
# tile: deep[(1,)](a, b, c, 512, M=128, N=128, BK=128, num_stages=4)

@triton.jit
def far(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    tl.store(y_ptr + rows, tl.load(x_ptr + rows * n))

# tile: x, y = randn(128, 64), empty(128)
# tile: far[(1,)](x, y, 64, BLOCK=128)
"#
);

#[test]
fn kernels_that_do_not_parse_are_not_compiled() {
    let text = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x):\n    \
                y = tl.load(x +)\n    tl.store(x, y)\n";
    let folder = Folder::new(&[("broken.py", text)]);
    for command in ["emit broken.py::k --stage tile", "emit broken.py::k --stage ptx"] {
        let done = folder.run(command);
        assert_ne!(done.code, Some(0), "{command}: {}", done.stdout);
        assert!(done.stderr.contains("unexpected `+`"), "{command}: {}", done.stderr);
    }
}

#[test]
fn costs_are_told_and_configurations_compiled_on_request() {
    let folder = Folder::new(&[("deep.tile", DEEP)]);
    let codes = |done: &Done| -> Vec<String> {
        let found = done.json();
        let codes = found.iter().filter_map(|found| found["code"].as_str());
        codes.map(str::to_owned).collect()
    };
    let plain = folder.run("check deep.tile --format json --arch sm_90a");
    assert_eq!((plain.code, codes(&plain)), (Some(0), vec!["perf/uncoalesced".to_owned()]));
    let done = folder.run("check deep.tile --compile --format json --arch sm_90a");
    assert_eq!(done.code, Some(0), "a warning is no error: {}", done.stderr);
    assert_eq!(codes(&done), ["resource/shared-memory", "perf/uncoalesced"]);
    let found = &done.json()[0];
    assert_eq!(
        (&found["severity"], &found["range"]["start"]["line"]),
        (&"warning".into(), &12.into())
    );
    let message = found["message"].as_str().unwrap();
    assert!(message.contains("num_stages=4 needs 262144 bytes of shared memory"), "{message}");
    let notes = found["notes"].to_string();
    assert!(notes.contains("num_stages=3 needs 196608 bytes, which fit"), "{notes}");
    assert_eq!(folder.run("check deep.tile --compile --arch sm_90a --deny warning").code, Some(1));
    let shown = folder.run("emit deep.tile::deep --stage gpu --arch sm_90a");
    assert_eq!(shown.code, Some(0), "what does not fit is shown: {}", shown.stderr);
    assert!(shown.stdout.starts_with("kernel @deep level=gpu"), "{}", shown.stdout);
    let info = folder.run("info deep.tile::deep --arch sm_90a");
    if info.code == Some(3) {
        assert!(info.stderr.contains("num_stages=3 needs 196608 bytes"), "{}", info.stderr);
    }
    std::fs::write(
        folder.path().join("tile.toml"),
        "[lints]\nperf = \"off\"\nresource = \"off\"\n",
    )
    .unwrap();
    let quiet = folder.run("check deep.tile --compile --format json --arch sm_90a");
    assert_eq!(codes(&quiet), Vec::<String>::new());
}

const IMPORTS: &str = "import triton\nimport triton.language as tl\n";

#[test]
fn a_walk_looks_at_every_file_with_functions_of_kernels() {
    let folder = Folder::new(&[
        ("device.py", &format!("{IMPORTS}@triton.jit\ndef twice(x):\n    return tl.lod(x)\n")),
        ("broken.py", &format!("{IMPORTS}@triton.jit\ndef k(x_ptr:\n    tl.store(x_ptr, 1)\n")),
        ("host.py", "import triton\nprint 'python 2'\n"),
    ]);
    let found = folder.run("check . --format json");
    assert_eq!(found.code, Some(1), "{}", found.stdout);
    let lines: Vec<Value> =
        found.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let codes: Vec<&str> = lines.iter().filter_map(|line| line["code"].as_str()).collect();
    assert_eq!(codes, ["syntax/error", "name/unknown-builtin"]);
    assert_eq!(lines.last().unwrap()["summary"]["files"], 2);
    let emitted = folder.run("emit broken.py --stage ptx");
    assert_eq!(emitted.code, Some(3), "{}", emitted.stderr);
    assert!(emitted.stderr.contains("broken.py:4: `(` is never closed"), "{}", emitted.stderr);
}

#[test]
fn a_walk_looks_at_host_files_that_do_not_speak_of_triton() {
    let kernel = "@triton.jit\ndef k(x_ptr, n, BLOCK: tl.constexpr):\n    \
                  i = tl.arange(0, BLOCK)\n    tl.store(x_ptr + i, 1.0, mask=i < n)\n";
    let folder = Folder::new(&[
        ("kernels.py", &format!("{IMPORTS}{kernel}")),
        (
            "launch.py",
            "import torch\nfrom kernels import k\n\ndef fill(x):\n    \
             assert x.shape[0] % 4 == 0\n    k[(1,)](x, x.numel(), BLOCKS=64)\n",
        ),
        ("script.py", "import torch\nfrom launch import fill\n\nfill(torch.ones(6))\n"),
        ("other.py", "import torch\n\nassert torch.ones(6).shape[0] == 4\n"),
    ]);
    let found = folder.run("check . --format json");
    let lines: Vec<Value> =
        found.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let finding = |line: &Value| {
        let [file, code] = ["file", "code"].map(|key| line[key].as_str().unwrap_or_default());
        format!("{file} {code}")
    };
    let findings: Vec<String> =
        lines.iter().filter(|line| line["code"].is_string()).map(finding).collect();
    assert_eq!(findings, ["launch.py launch/unknown-argument", "script.py python/raises"]);
}

/// The files and codes of the findings of a check, sorted, and how many files it counts.
fn found_in(folder: &Folder) -> (Vec<(String, String)>, Value) {
    let found = folder.run("check . --format json");
    let lines: Vec<Value> =
        found.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let findings =
        lines.iter().filter_map(|line| Some((text(&line["file"])?, text(&line["code"])?)));
    let mut findings: Vec<_> = findings.collect();
    findings.sort_unstable();
    (findings, lines.last().unwrap()["summary"]["files"].clone())
}

fn finding(file: &str, code: &str) -> (String, String) {
    (file.to_owned(), code.to_owned())
}

#[test]
fn a_walk_looks_at_what_files_of_kernels_import() {
    let kernel = "@triton.jit\ndef k(x_ptr):\n    tl.store(x_ptr, 1.0)\n";
    let broken = "import torch\n\ndef size(x):\n    return torch.numel(y)\n";
    let folder = Folder::new(&[
        ("kernels.py", &format!("{IMPORTS}from parts.sizes import size\n\n{kernel}")),
        ("parts/__init__.py", ""),
        ("parts/sizes.py", broken),
        ("parts/known.py", &broken.replace("(y)", "(y)  # noqa: F821")),
        ("parts/others.py", broken),
    ]);
    let (findings, files) = found_in(&folder);
    assert_eq!(findings, [finding("parts/sizes.py", "name/undefined")]);
    assert_eq!(files, 2);
    let known = folder.run("check parts/known.py");
    assert_eq!(known.code, Some(0), "{}", known.stdout);
}

#[test]
fn a_walk_looks_at_what_imported_files_import() {
    let kernel = "@triton.jit\ndef k(x_ptr):\n    tl.store(x_ptr, 1.0)\n";
    let broken = "import torch\n\ndef size(x):\n    return torch.numle(x)\n";
    let folder = Folder::new(&[
        ("kernels.py", &format!("{IMPORTS}from parts import size\n\n{kernel}")),
        ("parts/__init__.py", "from .sizes import size, other\n"),
        ("parts/sizes.py", &format!("from .others import other\n{broken}")),
        ("parts/others.py", &broken.replace("size", "other")),
        ("alone/__init__.py", "from .sizes import size\n"),
        ("alone/others.py", "from parts.others import other\n"),
        ("alone/sizes.py", broken),
    ]);
    let (findings, _) = found_in(&folder);
    let both = ["parts/others.py", "parts/sizes.py"].map(|file| finding(file, "name/no-attribute"));
    assert_eq!(findings, both);
}
