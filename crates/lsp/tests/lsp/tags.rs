//! What editors show faded or struck out, links to explanations, and related places.

use std::fmt::Write as _;

use expect_test::expect;
use serde_json::{Value, json};

use crate::client::{Client, diagnostic_line};

const URI: &str = "file:///nowhere/tags.tile";

const TEXT: &str = "\
@triton.autotune(configs=[triton.Config({}, num_warps=4)], key=[\"tuned\"])
@triton.jit
def k(x_ptr, tuned, idle, _quiet, CAUSAL: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    spare = at + 1
    if CAUSAL:
        left = at * 2
        tl.store(x_ptr + left, 1.0)
    else:
        tl.store(x_ptr + at, tl.view(tl.zeros((BLOCK,), tl.float32), (BLOCK,)))
    for _ in tl.static_range(0):
        tl.store(x_ptr, 0.0)

# tile: x = empty(64)
# tile: k[(1,)](x, 1, 1, 1, CAUSAL=False, BLOCK=64)
";

fn tag_support() -> Value {
    json!({ "textDocument": { "publishDiagnostics": { "tagSupport": { "valueSet": [1, 2] } } } })
}

/// The diagnostics with their tags once what takes longer is known.
async fn tagged(client: &mut Client, enough: &str) -> String {
    loop {
        let message = client.notification("textDocument/publishDiagnostics").await;
        let mut out = String::new();
        for item in message["diagnostics"].as_array().expect("a list") {
            let tags =
                if item["tags"].is_null() { String::new() } else { item["tags"].to_string() };
            let _ = writeln!(out, "{}{tags}", diagnostic_line(item));
        }
        if out.contains(enough) {
            return out;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_out_unused_and_deprecated_is_tagged() {
    let mut client = Client::start(tag_support()).await;
    client.open(URI, TEXT).await;
    let found = tagged(&mut client, "constexpr/inactive").await;
    expect![[r#"
        2:20-2:24 4 name/unused: `idle` is never read[1]
        4:4-4:9 4 name/unused: `spare` is never read[1]
        6:8-7:35 4 constexpr/inactive: `k` leaves this out with tuned=1, idle=1, _quiet=1, CAUSAL=False, BLOCK=64[1]
        9:29-9:36 4 name/deprecated: `tl.view` is deprecated. Use `reshape` with `can_reorder=True`.[2]
        11:8-11:28 4 constexpr/inactive: `k` leaves this out with tuned=1, idle=1, _quiet=1, CAUSAL=False, BLOCK=64[1]
    "#]].assert_eq(&found);
    let again = TEXT.replace("CAUSAL=False", "CAUSAL=True");
    client.edit(URI, 2, [0, 0, 99, 0], &again).await;
    let found = tagged(&mut client, "CAUSAL=True").await;
    assert!(found.contains("9:8-9:79 4 constexpr/inactive"), "{found}");
    let allowed = TEXT.replace("    spare", "    # tile: allow name/unused\n    spare");
    client.edit(URI, 3, [0, 0, 99, 0], &allowed).await;
    let found = tagged(&mut client, "CAUSAL=False").await;
    assert!(found.contains("`idle`") && !found.contains("`spare`"), "{found}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_show_no_tags_are_not_bothered() {
    let mut client = Client::start(json!({})).await;
    client.open(URI, TEXT).await;
    client.open("file:///nowhere/end.tile", "x = (\n").await;
    let mut all = String::new();
    loop {
        let message = client.notification("textDocument/publishDiagnostics").await;
        all.push_str(&message["diagnostics"].to_string());
        if message["uri"] != URI {
            break;
        }
    }
    for code in ["name/unused", "name/deprecated", "constexpr/inactive"] {
        assert!(!all.contains(code), "{all}");
    }
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_link_to_their_explanation_and_to_related_places() {
    let text = "@triton.jit\ndef f(v):\n    return v + missing\n\n@triton.jit\ndef k(x):\n    \
                tl.store(x, f(1))\n    tl.store(x, f(tl.zeros((4,), tl.float32) + tl.zeros((8,), tl.float32)))\n";
    let mut client = Client::start(json!({})).await;
    client.open(URI, text).await;
    let message = client.notification("textDocument/publishDiagnostics").await;
    let mut out = String::new();
    for item in message["diagnostics"].as_array().unwrap() {
        let _ = writeln!(out, "{}", diagnostic_line(item));
        let _ = writeln!(out, "  {}", item["codeDescription"]["href"].as_str().unwrap());
        for related in item["relatedInformation"].as_array().into_iter().flatten() {
            let range = crate::client::range_text(&related["location"]["range"]);
            let _ = writeln!(out, "  {range} {}", related["message"].as_str().unwrap());
        }
    }
    expect![[r#"
        2:15-2:22 1 name/undefined: `missing` is not defined
          https://github.com/tile-lang/tile/blob/main/docs/diagnostics.md#nameundefined
        7:18-7:73 1 shape/broadcast: shapes [4] and [8] do not broadcast: 4 against 8 at axis 0 | to combine every element of one with every element of the other, index them as `a[:, None]` and `b[None, :]`
          https://github.com/tile-lang/tile/blob/main/docs/diagnostics.md#shapebroadcast
          7:18-7:44 this has shape [4]
          7:47-7:73 this has shape [8]
    "#]].assert_eq(&out);
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deprecated_members_are_struck_out_in_completions() {
    let mut client = Client::start(json!({})).await;
    client.open(URI, "@triton.jit\ndef k(x):\n    tl.vi\n").await;
    let position = json!({ "line": 2, "character": 9 });
    let params = json!({ "textDocument": { "uri": URI }, "position": position });
    let items = client.request("textDocument/completion", params).await.unwrap();
    let view = items.as_array().unwrap().iter().find(|item| item["label"] == "view").unwrap();
    assert_eq!(view["tags"], json!([1]), "{view}");
    client.stop().await;
}
