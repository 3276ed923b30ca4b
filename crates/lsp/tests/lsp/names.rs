//! Names under which parameters and variables go: renames, and where they are defined.

use std::fmt::Write as _;

use expect_test::expect;
use serde_json::{Value, json};

use crate::client::{Client, range_text};

const URI: &str = "file:///nowhere/kernels.tile";

/// A file whose kernels are named, tuned and launched in many ways.
const TUNED: &str = r#"import triton
import triton.language as tl


def configs():
    return [triton.Config({"BLOCK": size}) for size in (64, 128)]


@triton.autotune(configs=configs(), key=["n"], reset_to_zero=["out_ptr"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit(do_not_specialize=["n"])
def copy(x_ptr, out_ptr, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets), mask=offsets < n)


@triton.autotune(configs=[triton.Config(dict(SIZE=64, KIND="n"))], key=["n"])
@triton.jit
def fill(out_ptr, n, SIZE: tl.constexpr, KIND: tl.constexpr):
    offsets = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(out_ptr + offsets, 0.0, mask=offsets < n)


class Copier:
    def run(self, x, out):
        width = [1, 1]

        def grid(META):
            return (triton.cdiv(x.numel(), META["BLOCK"]),)

        copy[grid](x, out, x.numel() * width[0])
        fill[lambda META: (triton.cdiv(out.numel(), META["SIZE"]),)](out, out.numel())
        with open("log") as log:
            log.write(str([part for part in width]))


# tile: count = 1000
# tile: x, out = randn(count), empty(count)
# tile: copy[lambda meta: (cdiv(count, meta["BLOCK"]),)](x, out, n=count)
"#;

/// Asks about the place in `TUNED` where `pattern`, which holds `$0`, stands.
async fn in_tuned(method: &str, pattern: &str, more: Value) -> Result<Value, Value> {
    let before = pattern.find("$0").expect("a cursor");
    let at = TUNED.find(&pattern.replacen("$0", "", 1)).expect("a place") + before;
    let line = TUNED[..at].matches('\n').count();
    let character = at - TUNED[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let mut client = Client::start(json!({})).await;
    client.open(URI, TUNED).await;
    let mut params = more;
    params["textDocument"] = json!({ "uri": URI });
    params["position"] = json!({ "line": line, "character": character });
    let answer = client.request(method, params).await;
    client.stop().await;
    answer
}

/// The lines of `TUNED` that a rename changes, or why it does not.
async fn renamed(pattern: &str, name: &str) -> String {
    match in_tuned("textDocument/rename", pattern, json!({ "newName": name })).await {
        Ok(edit) => {
            let edits = edit["changes"][URI].as_array().expect("edits").iter();
            let lines = edits.map(|edit| {
                (edit["range"]["start"]["line"].as_u64().expect("a line") + 1).to_string()
            });
            lines.collect::<Vec<_>>().join(" ")
        }
        Err(error) => error["message"].as_str().unwrap_or_default().to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn strings_that_name_a_parameter_change_with_it() {
    let lines = |found: Vec<&str>| {
        let mut lines: Vec<usize> = Vec::new();
        for (at, line) in TUNED.lines().enumerate() {
            lines.extend(found.iter().flat_map(|word| line.match_indices(word).map(|_| at + 1)));
        }
        lines.sort_unstable();
        lines.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(renamed("EVEN: tl.constexpr, BL$0OCK", "TILE").await, lines(vec!["BLOCK"]));
    assert_eq!(renamed("META[\"BLO$0CK", "TILE").await, lines(vec!["BLOCK"]));
    assert_eq!(renamed("out_ptr, n, EV$0EN", "WHOLE").await, lines(vec!["EVEN"]));
    assert_eq!(renamed("fill(out_ptr, n, S$0IZE", "TILE").await, lines(vec!["SIZE"]));
    assert_eq!(renamed("copy(x_ptr, out_ptr, $0n", "count").await, "9 10 11 12 14 39");
    // Not the value of a configuration.
    assert_eq!(renamed("fill(out_ptr, $0n", "count").await, "17 19 21");
    assert_eq!(renamed("copy(x_ptr, out$0_ptr", "y_ptr").await, "9 12 14");
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_of_scenarios_and_host_code_change_their_names() {
    assert_eq!(renamed("# tile: c$0ount", "size").await, "37 38 38 39 39");
    assert_eq!(renamed("# tile: $0x, out", "values").await, "38 39");
    assert_eq!(renamed("# tile: c$0ount", "x").await, "the scenario has a `x` already");
    assert_eq!(renamed("wi$0dth = [", "shape").await, "26 31 34");
    assert_eq!(renamed("(x, out, x.numel() * wi$0dth", "shape").await, "26 31 34");
    let refused = "members of classes keep their names: not all of their uses are known";
    assert_eq!(renamed("def r$0un", "launch").await, refused);
}

#[tokio::test(flavor = "multi_thread")]
async fn decorators_run_outside_of_their_functions() {
    // `configs` of the kernel is another than the function that its decorator calls.
    let text = TUNED.replace(
        "    offsets = tl.program_id(0) * SIZE",
        "    configs = 0\n    offsets = configs * SIZE",
    );
    let mut client = Client::start(json!({})).await;
    client.open(URI, &text.replace("dict(SIZE=64, KIND=\"n\")", "configs()")).await;
    let params = json!({
        "textDocument": { "uri": URI }, "position": { "line": 19, "character": 4 }, "newName": "zero",
    });
    let edit = client.request("textDocument/rename", params).await.unwrap();
    let edits = edit["changes"][URI].as_array().expect("edits");
    let lines: Vec<_> = edits.iter().map(|edit| &edit["range"]["start"]["line"]).collect();
    assert_eq!(lines, [19, 20]);
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_would_hide_others_are_refused() {
    assert_eq!(
        renamed("off$0sets = tl.program_id(0) * BLOCK", "tl").await,
        "`copy` uses a `tl` that it would not find any more"
    );
    assert_eq!(
        renamed("wi$0dth = [", "copy").await,
        "`run` uses a `copy` that it would not find any more"
    );
    assert_eq!(
        renamed("def co$0py", "grid").await,
        "`run` uses a `grid` that it would not find any more"
    );
    assert_eq!(
        renamed("def co$0py", "str").await,
        "`run` uses a `str` that it would not find any more"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_variable_has_a_definition() {
    let at = async |pattern: &str| {
        let found = in_tuned("textDocument/definition", pattern, json!({})).await.unwrap();
        range_text(&found["range"])
    };
    assert_eq!(at("for p$0art in").await, "33:36-33:40");
    assert_eq!(at("[$0part for").await, "33:36-33:40");
    assert_eq!(at("l$0og.write").await, "32:28-32:31");
    assert_eq!(at("META[\"BLO$0CK").await, "11:48-11:53");
    assert_eq!(at("lambda args: ar$0gs").await, "9:35-9:39");
    assert_eq!(at("cdiv(co$0unt").await, "36:8-36:13");
}

/// Names that a module binds more than once.
const REBOUND: &str = "\
import triton
import triton.language as tl
try:
    import nowhere
except ImportError:
    nowhere = None
try:
    from nowhere import fast as quick
except ImportError:
    quick = None
if nowhere is None:
    WIDTH = 64
else:
    WIDTH: tl.constexpr = 128
for FACTOR in (2, 4):
    pass
if WIDTH == 64:
    @triton.jit
    def scale(v):
        return v * WIDTH
else:
    @triton.jit
    def scale(v):
        return v

@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, scale(tl.load(x_ptr)))

def run(x, WIDTHS):
    if quick:
        return quick(x, FACTOR)
    kernel[(WIDTH,)](x)
";

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_bound_twice_is_one_variable() {
    let mut client = Client::start(json!({})).await;
    client.open(URI, REBOUND).await;
    let mut said = String::new();
    for (line, character) in
        [(11, 4), (13, 4), (32, 12), (18, 8), (27, 22), (9, 4), (31, 15), (14, 4)]
    {
        let at = json!({
            "textDocument": { "uri": URI }, "position": { "line": line, "character": character },
            "newName": "other",
        });
        let lines = match client.request("textDocument/rename", at).await {
            Ok(edit) => {
                let edits = edit["changes"][URI].as_array().expect("edits").iter();
                let lines = edits.map(|edit| edit["range"]["start"]["line"].to_string());
                lines.collect::<Vec<_>>().join(" ")
            }
            Err(error) => error["message"].to_string(),
        };
        let _ = writeln!(said, "{line}: {lines}");
    }
    let at = json!({ "textDocument": { "uri": URI }, "position": { "line": 5, "character": 6 } });
    let mut params = at.clone();
    params["newName"] = json!("other");
    let error = client.request("textDocument/rename", params).await.expect_err("it is imported");
    let _ = writeln!(said, "{}", error["message"]);
    let found = client.request("textDocument/documentHighlight", at).await.expect("an answer");
    let found = found.as_array().expect("highlights").iter();
    let _ =
        write!(said, "{}", found.map(|it| range_text(&it["range"])).collect::<Vec<_>>().join(" "));
    expect![[r#"
        11: 11 13 16 19 32
        13: 11 13 16 19 32
        32: 11 13 16 19 32
        18: 18 22 27
        27: 18 22 27
        9: 7 9 30 31
        31: 7 9 30 31
        14: 14 31
        "`nowhere` is also what an import calls it; write `as` another name there first"
        3:11-3:18 5:4-5:11 10:3-10:10"#]]
    .assert_eq(&said);
    client.stop().await;
}
