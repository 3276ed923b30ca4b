//! What is guessed of a kernel that nothing launches, and guesses that cannot work.

use expect_test::expect;
use serde_json::{Value, json};

use crate::client::{Client, without_workers};

const URI: &str = "file:///nowhere/guessed.tile";

/// No launch shows `WIDTH`, and the first guess of it cannot work.
const TEXT: &str = "\
@triton.jit
def k(x_ptr, WIDTH: tl.constexpr):
    tl.static_assert(WIDTH >= 2048)
    tl.store(x_ptr + tl.arange(0, WIDTH), 1.0)
";

/// A client of a server that compiles nothing.
async fn start() -> Client {
    let mut client = Client::connect(without_workers());
    client.initialize(json!({ "capabilities": {} })).await;
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guess_that_was_repaired_says_so_everywhere() {
    let mut client = start().await;
    client.open(URI, TEXT).await;
    let document = json!({ "textDocument": { "uri": URI } });
    let mut out = String::new();
    let kernels = client.request("tile/kernels", document.clone()).await.unwrap();
    out.push_str(&format!("kernels: {}\n", kernels[0]["specializations"]));
    let lenses = client.request("textDocument/codeLens", document.clone()).await.unwrap();
    let titles = lenses.as_array().unwrap().iter().map(|lens| &lens["command"]["title"]);
    out.push_str(&format!("lenses: {:?}\n", titles.collect::<Vec<_>>()));
    let position = json!({ "line": 1, "character": 4 });
    let params = json!({ "textDocument": { "uri": URI }, "position": position });
    let hover = client.request("textDocument/hover", params).await.unwrap();
    out.push_str(&format!("hover: {}\n", hover["contents"]["value"].as_str().unwrap()));
    let end = json!({ "line": 9, "character": 0 });
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": end });
    let params = json!({ "textDocument": { "uri": URI }, "range": range });
    let hints = client.request("textDocument/inlayHint", params).await.unwrap();
    let labels: Vec<&Value> = hints.as_array().unwrap().iter().map(|h| &h["label"]).collect();
    out.push_str(&format!("hints: {labels:?}\n"));
    expect![[r#"
        kernels: [{"label":"*fp32, WIDTH=2048","origin":"guess","active":true,"repaired":["WIDTH: 1024 → 2048"]}]
        lenses: [String("PTX"), String("not measured: no worker process can be started; `tile doctor` says what is missing"), String("WIDTH=2048 (guess, repaired)")]
        hover: **k** — `x_ptr: *fp32, WIDTH=2048` (guess)

        The first guess does not compile, so it was repaired: `WIDTH: 1024 → 2048`.

        Compiled for:

        - `x_ptr`: pointer to float32, address divisible by 16 (assumed)
        - `WIDTH`: constexpr `2048` (assumed)

        Other arguments compile it anew: `x_ptr` (another element type, or an address that is not divisible by 16); `WIDTH` (another value).
        hints: [String(" = 2048"), String("start:"), String("value:")]
    "#]].assert_eq(&out);
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_several_guesses_is_repaired() {
    let text = "\
@triton.jit
def k(x_ptr, WIDTH: tl.constexpr, ROWS: tl.constexpr):
    tl.static_assert(WIDTH >= 2048)
    tl.static_assert(ROWS >= 128)
    tl.store(x_ptr + tl.arange(0, WIDTH), ROWS)

def go(x, size):
    k[(1,)](x, WIDTH=4096, ROWS=size)
    k[(1,)](x, WIDTH=size, ROWS=4096)
";
    let mut client = start().await;
    client.open(URI, text).await;
    let document = json!({ "textDocument": { "uri": URI } });
    let kernels = client.request("tile/kernels", document).await.unwrap();
    let all = kernels[0]["specializations"].as_array().unwrap().iter();
    let all: Vec<String> = all.map(|one| format!("{} {}", one["label"], one["repaired"])).collect();
    expect![[r#"
        "*fp32, WIDTH=4096, ROWS=128" ["ROWS: 64 → 128"]
        "*fp32, WIDTH=2048, ROWS=4096" ["WIDTH: 1024 → 2048"]"#]]
    .assert_eq(&all.join("\n"));
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guess_that_works_is_left_alone() {
    let text = TEXT.replace("    tl.static_assert(WIDTH >= 2048)\n", "");
    let mut client = start().await;
    client.open(URI, &text).await;
    let document = json!({ "textDocument": { "uri": URI } });
    let kernels = client.request("tile/kernels", document).await.unwrap();
    let only = &kernels[0]["specializations"][0];
    assert_eq!((&only["origin"], &only["repaired"]), (&json!("guess"), &Value::Null), "{only}");
    client.stop().await;
}
