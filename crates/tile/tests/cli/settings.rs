//! Settings of project files, of the environment and of flags: each that is wrong is told of at its
//! place, with what to do.

use expect_test::expect;

use crate::{ADD, Folder};

const BROKEN: &str = "\
import triton

@triton.jit
def broken_kernel(x_ptr):
    return missing
";

/// What `check` says of each text of `name`, beside findings.
fn told(name: &str, texts: &[&[u8]]) -> String {
    let folder = Folder::new(&[("add.py", ADD)]);
    let mut shown = String::new();
    for text in texts {
        std::fs::write(folder.path().join(name), text).unwrap();
        let done = folder.run("check add.py");
        shown.push_str(&format!("exit {}\n{}", done.code.unwrap(), done.stderr));
    }
    shown
}

#[test]
fn what_is_wrong_in_tile_toml_is_told_with_its_place() {
    expect![[r#"
        exit 0
        warning: tile.toml:1:8: the setting tile.arch is "sm_1", which is not an architecture that is supported (sm_75 and later), such as "sm_90a", or ""; the default is used
        warning: tile.toml:2:1: there is no setting tile.lint; did you mean tile.lints?
        warning: tile.toml:5:1: the setting tile.lints has `perf/uncoalessed`, which is no code or family; did you mean `perf/uncoalesced`?
        warning: tile.toml:6:8: the setting tile.lints has 3 for `mask`, which is not one of error, warning, info, hint, off
        exit 0
        warning: tile.toml:1:8: the setting tile.arch is "sm_80a", which is not an architecture that is supported (sm_75 and later), such as "sm_90a", or ""; the default is used
        warning: tile.toml:2:10: the setting tile.triton is 3.6, which is not "3.6" or "3.9", in quotes; the default is used
        warning: tile.toml:4:1: there is no setting tile.codeLens.runn; did you mean tile.codeLens.run?
        exit 0
        warning: tile.toml:1:8: no valid TOML: string values must be quoted, expected literal string; none of its settings count
        exit 0
        warning: tile.toml:2:1: no valid TOML: duplicate key; none of its settings count
        exit 0
        warning: tile.toml:1:7: no valid TOML: unclosed table, expected `]`; none of its settings count
        exit 0
        warning: tile.toml:1:2: `tool` is no setting: in tile.toml, settings stand at the top level, without [tool.tile]
        exit 0
        warning: tile.toml:1:10: the setting tile.python is "nowhere", where no packages of Python lie
        warning: tile.toml:2:9: the setting tile.ptxas is "nowhere/ptxas", which is no program
        exit 0
        warning: tile.toml:2:6: not UTF-8: byte 0xe9 on line 2; save the file as UTF-8; none of its settings count
        exit 0
        warning: tile.toml:1:1: not UTF-8: byte 0xff on line 1; save the file as UTF-8; none of its settings count
        exit 0
        exit 0
        exit 0
    "#]].assert_eq(&told(
        "tile.toml",
        &[
            b"arch = \"sm_1\"\nlint = 3\n\n[lints]\n\"perf/uncoalessed\" = \"off\"\nmask = 3\n",
            b"arch = \"sm_80a\"\ntriton = 3.6\n[codeLens]\nrunn = false\n",
            b"arch = sm_80\n",
            b"arch = \"sm_80\"\narch = \"sm_90\"\n",
            b"[lints\n",
            b"[tool.tile]\narch = \"sm_80\"\n",
            b"python = \"nowhere\"\nptxas = \"nowhere/ptxas\"\n",
            b"# tile\n# caf\xe9\n",
            b"\xff\xfea\0",
            b"\xef\xbb\xbfarch = \"sm_80\"\n",
            b"arch = \"sm_80\"\ntriton = \"3.6\"\n\"codeLens.run\" = true\n[lints]\nmask = \"off\"\n",
            b"",
        ],
    ));
}

#[test]
fn what_is_wrong_in_pyproject_toml_is_told_where_it_speaks_of_tile() {
    expect![[r#"
        exit 0
        warning: pyproject.toml:2:8: the setting tile.arch is "sm_1", which is not an architecture that is supported (sm_75 and later), such as "sm_90a", or ""; the default is used
        exit 0
        warning: pyproject.toml:2:17: the setting tile.arch is "sm_1", which is not an architecture that is supported (sm_75 and later), such as "sm_90a", or ""; the default is used
        exit 0
        warning: pyproject.toml:2:8: `tool.tile` is a table of settings, [tool.tile]
        exit 0
        warning: pyproject.toml:1:2: nothing reads the table `tile` of pyproject.toml; name it [tool.tile]
        exit 0
        warning: pyproject.toml:1:11: no valid TOML: unclosed table, expected `]`; none of its settings count
        exit 0
        warning: pyproject.toml:1:6: not UTF-8: byte 0xe9 on line 1; save the file as UTF-8; none of its settings count
        exit 0
        exit 0
        exit 0
        exit 0
        exit 0
        exit 0
    "#]].assert_eq(&told(
        "pyproject.toml",
        &[
            b"[tool.tile]\narch = \"sm_1\"\n",
            b"[tool]\ntile = { arch = \"sm_1\" }\n",
            b"[tool]\ntile = 3\n",
            b"[tile]\narch = \"sm_80\"\n",
            b"[tool.tile\narch = \"sm_80\"\n",
            b"# caf\xe9\n[tool.tile]\narch = \"sm_80\"\n",
            b"[tool.tile]\narch = \"sm_80\"\n",
            b"[project]\nname = \"textile\"\n",
            b"[tool.black\nx = 3\n",
            b"[tool.black\nexclude = \"tile\"\n",
            b"# caf\xe9\n[tool.black]\n",
            b"# caf\xe9, a textile\n[tool.black]\n",
        ],
    ));
    let folder = Folder::new(&[
        ("add.py", ADD),
        ("tile.toml", "arch = \"sm_80\"\n"),
        ("pyproject.toml", "[tool.tile]\narch = \"sm_90\"\n"),
    ]);
    expect![[r#"
        warning: pyproject.toml:1:7: the settings of tile.toml beside this file count instead; move these there
    "#]].assert_eq(&folder.run("check add.py").stderr);
}

#[test]
fn the_nearest_project_file_of_each_file_counts() {
    let folder = Folder::new(&[
        ("a.py", BROKEN),
        ("quiet/b.py", BROKEN),
        ("quiet/tile.toml", "[lints]\n\"name/undefined\" = \"off\"\n"),
        ("wrong/c.py", BROKEN),
        ("wrong/d.py", BROKEN),
        ("wrong/tile.toml", "lint = 3\n[lints]\n\"name/undefined\" = \"warning\"\n"),
    ]);
    let done = folder.run("check . --format json --no-cache");
    let found = done.json();
    let levels: Vec<String> = found
        .iter()
        .filter_map(|found| Some(format!("{} {}", found.get("file")?, found.get("severity")?)))
        .collect();
    assert_eq!(
        levels,
        ["\"a.py\" \"error\"", "\"wrong/c.py\" \"warning\"", "\"wrong/d.py\" \"warning\""]
    );
    expect![[r#"
        warning: wrong/tile.toml:1:1: there is no setting tile.lint; did you mean tile.lints?
    "#]]
    .assert_eq(&done.stderr);
    std::fs::write(folder.path().join("quiet/tile.toml"), "arch = \"sm_80\"\n").unwrap();
    let other = folder.run("check a.py quiet/b.py");
    expect![[r#"
        warning: quiet is looked at for the default architecture, not sm_80; check it by itself
    "#]]
    .assert_eq(&other.stderr);
    assert_eq!(folder.run("check quiet/b.py").stderr, "", "by itself it is as its folder says");
}

#[test]
fn what_is_wrong_in_the_environment_is_told() {
    let folder = Folder::new(&[("add.py", ADD), ("b.py", ADD)]);
    let told = |name: &str, value: &str, command: &str| {
        let done = folder.run_with((name, value), command);
        format!("{name}={value}\n{}", done.stderr)
    };
    expect![[r#"
        TILE_LOG=[[
        warning: TILE_LOG is [[, so nothing is logged: invalid filter directive; write it like debug
    "#]]
    .assert_eq(&told("TILE_LOG", "[[", "check add.py"));
    expect![[r#"
        TILE_LOG=off
    "#]]
    .assert_eq(&told("TILE_LOG", "off", "check add.py"));
    expect![[r#"
        TILE_CACHE=add.py
        warning: what was found is not remembered: add.py/checks: Not a directory (os error 20); set TILE_CACHE to a folder that can be written, or to nothing for none
    "#]].assert_eq(&told("TILE_CACHE", "add.py", "check ."));
    expect![[r#"
        TILE_CACHE=
    "#]]
    .assert_eq(&told("TILE_CACHE", "", "check ."));
    let doctor = folder.run_with(("TILE_CACHE", "add.py"), "doctor");
    let cache = doctor.stdout.lines().find(|line| line.starts_with("cache")).unwrap();
    expect!["cache     missing  add.py cannot be made: File exists (os error 17); set TILE_CACHE to a folder that can be written, or to nothing for none"].assert_eq(cache);
    expect![[r#"
        TILE_PTXAS=nowhere
        note: spills and occupancy are not looked at: there is no ptxas, so nothing can be measured or made into machine code: TILE_PTXAS is nowhere, which is no program; correct or unset it
    "#]].assert_eq(&told("TILE_PTXAS", "nowhere", "check add.py --compile"));
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    let folder = Folder::new(&[("add.py", ADD)]);
    let told = |flags: &str| {
        let done = folder.run(&format!("check add.py {flags}"));
        let first = done.stderr.lines().next().unwrap_or_default().to_owned();
        format!("{} {first}\n", done.code.unwrap())
    };
    let flags = [
        "--arch sm_1",
        "--arch sm_80a",
        "--arch sm_90aa",
        "--arch hopper",
        "--triton 3.7",
        "--num-warps 3",
        "--num-stages 33",
        "--deny loud",
        "--set BLOCK",
        "--type x_ptr=*f99",
        "--arch sm_90a --num-warps 8",
    ];
    expect![[r#"
        2 error: invalid value 'sm_1' for '--arch <ARCH>': `sm_1` is not supported; sm_75 and later are
        2 error: invalid value 'sm_80a' for '--arch <ARCH>': `sm_80a` is not an architecture: those before sm_90 have no `a`; write sm_80
        2 error: invalid value 'sm_90aa' for '--arch <ARCH>': `sm_90aa` is not an architecture; write it like sm_90a
        2 error: invalid value 'hopper' for '--arch <ARCH>': `hopper` is not an architecture; write it like sm_90a
        2 error: invalid value '3.7' for '--triton <3.6|3.9>'
        2 error: invalid value '3' for '--num-warps <N>': the number of warps is 1, 2, 4, 8, 16 or 32
        2 error: invalid value '33' for '--num-stages <N>': 33 is not in 0..=32
        2 error: invalid value 'loud' for '--deny <LEVEL>'
        2 error: invalid value 'BLOCK' for '--set <NAME=VALUE>': write NAME=VALUE
        2 error: --type x_ptr=*f99: "*f99" is not a type; types are spelled like *fp16, *i64, fp32, i32 or tensordesc<fp16[64, 64]>, with :16 for divisible by 16 and :1 for equal to one
        0 
    "#]].assert_eq(&flags.map(told).concat());
}
