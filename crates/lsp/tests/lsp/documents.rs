//! What a document shows as a whole: lenses, links, the outline, colors of a part; types that lead
//! to classes; and what chosen actions change.

use std::fmt::Write as _;

use expect_test::expect;
use serde_json::{Value, json};

use crate::client::{Client, range_text, without_workers};
use crate::workspace::Folder;

const URI: &str = "file:///nowhere/documents.tile";

const TEXT: &str = "\
from collections import namedtuple

Tile = namedtuple(\"Tile\", [\"at\", \"mask\"])

@triton.jit
def place(n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    return Tile(at, at < n)

@triton.autotune(configs=[triton.Config({\"BLOCK\": 64}), triton.Config({\"BLOCK\": 128})], key=[])
@triton.jit
def clear_kernel(x_ptr, n, BLOCK: tl.constexpr):
    tile = place(n, BLOCK)
    tl.store(x_ptr + tile.at, 0.0, mask=tile.mask)

# tile: x = load(\"start.npy\")
# tile: clear_kernel[lambda meta: (cdiv(100, meta[\"BLOCK\"]),)](x, 100)
# tile: assert allclose(x, zeros(100))
";

fn document() -> Value {
    json!({ "textDocument": { "uri": URI } })
}

async fn open(text: &str) -> Client {
    let mut client = Client::start(json!({})).await;
    client.open(URI, text).await;
    client
}

/// The position of the `nth` place where `text` has `word`.
fn position(text: &str, word: &str, nth: usize) -> Value {
    let (at, _) = text.match_indices(word).nth(nth).expect("the text has it");
    let line = text[..at].matches('\n').count();
    let column = at - text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    json!({ "line": line, "character": column })
}

#[tokio::test(flavor = "multi_thread")]
async fn lenses_offer_what_a_kernel_and_its_scenarios_can_do() {
    let mut client = open(TEXT).await;
    let lenses = client.request("textDocument/codeLens", document()).await.expect("lenses");
    let mut out = String::new();
    for lens in lenses.as_array().expect("a list") {
        let command = &lens["command"];
        let mut argument = command["arguments"][0].clone();
        argument.as_object_mut().expect("an object").remove("uri");
        let line = &lens["range"]["start"]["line"];
        let (title, name) = (command["title"].as_str(), command["command"].as_str());
        let _ = writeln!(out, "{line} {} = {} {argument}", title.unwrap(), name.unwrap());
    }
    expect![[r#"
        11 ▶ Run = tile.runKernel {"kernel":"clear_kernel"}
        11 Bench = tile.benchKernel {"kernel":"clear_kernel"}
        11 Tune = tile.tuneKernel {"kernel":"clear_kernel"}
        11 PTX = tile.viewIr {"stage":"ptx","kernel":"clear_kernel"}
        11 not measured: no worker process can be started; `tile doctor` says what is missing = tile.selectSpecialization {"kernel":"clear_kernel"}
        11 BLOCK=64 (scenario, 1 of 2) = tile.selectSpecialization {"kernel":"clear_kernel"}
        11 Measure 2 configurations = tile.measureConfigurations {"kernel":"clear_kernel"}
        15 ▶ Run = tile.runKernel {"scenario":1,"kernel":"clear_kernel"}
    "#]]
    .assert_eq(&out);
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kernel_without_scenarios_runs_as_host_code_launches_it() {
    let host = "\ndef host(n):\n    x = torch.empty(SIZE, device=\"cuda\")\n    \
                clear_kernel[lambda meta: (triton.cdiv(100, meta[\"BLOCK\"]),)](x, 100)\n";
    let (kernel, _) = TEXT.split_once("\n# tile").expect("the text has scenarios");
    for (size, runs) in [("100", true), ("n", false)] {
        let text = format!("import torch\n{kernel}\n{}", host.replace("SIZE", size));
        let mut client = open(&text).await;
        let lenses = client.request("textDocument/codeLens", document()).await.expect("lenses");
        let lenses = lenses.as_array().expect("a list");
        for title in ["▶ Run", "Bench", "Tune"] {
            let titled = lenses.iter().filter(|lens| lens["command"]["title"] == title);
            assert_eq!(titled.count(), usize::from(runs), "{title} with {size}");
        }
        client.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_outline_names_kinds_and_places() {
    let mut client = open(TEXT).await;
    let symbols = client.request("textDocument/documentSymbol", document()).await.expect("symbols");
    let mut out = String::new();
    for symbol in symbols.as_array().expect("a list") {
        let (name, detail) = (symbol["name"].as_str(), symbol["detail"].as_str());
        let (range, chosen) = (range_text(&symbol["range"]), range_text(&symbol["selectionRange"]));
        let detail = detail.unwrap_or_default();
        let _ = writeln!(out, "{} {} ({detail}) {range} {chosen}", symbol["kind"], name.unwrap());
    }
    expect![[r#"
        5 Tile () 2:0-2:41 2:0-2:4
        12 place ((n, BLOCK)) 4:0-7:27 5:4-5:9
        12 clear_kernel ((x_ptr, n, BLOCK)) 9:0-13:50 11:4-11:16
        24 clear_kernel#1 (scenario) 15:0-17:38 15:0-17:38
    "#]]
    .assert_eq(&out);
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn values_lead_to_the_class_that_they_are_of() {
    let mut client = open(TEXT).await;
    let mut out = String::new();
    for (word, nth) in [("tile.at", 0), ("tile = place", 0), ("Tile(at", 0), ("n, BLOCK)", 0)] {
        let mut params = document();
        params["position"] = position(TEXT, word, nth);
        let found = client.request("textDocument/typeDefinition", params).await.expect("an answer");
        let place =
            if found.is_null() { "nothing".to_owned() } else { range_text(&found["range"]) };
        let _ = writeln!(out, "{word}: {place}");
    }
    expect![[r#"
        tile.at: 2:0-2:4
        tile = place: 2:0-2:4
        Tile(at: 2:0-2:4
        n, BLOCK): nothing
    "#]]
    .assert_eq(&out);
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn links_lead_to_the_arrays_that_scenarios_load() {
    let folder = Folder::new(&[("documents.tile", TEXT), ("start.npy", "")]);
    let mut client = folder.start(json!({})).await;
    let uri = folder.uri("documents.tile");
    client.open(&uri, TEXT).await;
    let params = json!({ "textDocument": { "uri": uri } });
    let links = client.request("textDocument/documentLink", params).await.expect("links");
    let links: Vec<String> = links
        .as_array()
        .expect("a list")
        .iter()
        .map(|link| format!("{} {}", range_text(&link["range"]), folder.short(&link["target"])))
        .collect();
    expect!["15:17-15:28 start.npy"].assert_eq(&links.join("\n"));
    client.stop().await;
}

/// Tokens as `line:column length type modifiers`.
fn tokens(answer: &Value) -> Vec<String> {
    let data: Vec<u32> = serde_json::from_value(answer["data"].clone()).expect("numbers");
    let (mut line, mut column) = (0, 0);
    let place = |token: &[u32]| {
        column = if token[0] == 0 { column + token[1] } else { token[1] };
        line += token[0];
        format!("{line}:{column} {} {} {}", token[2], token[3], token[4])
    };
    data.chunks(5).map(place).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_a_part_are_those_of_the_whole_in_it() {
    let mut client = open(TEXT).await;
    let whole = client.request("textDocument/semanticTokens/full", document()).await.expect("all");
    let mut params = document();
    params["range"] = json!({
        "start": { "line": 6, "character": 0 }, "end": { "line": 7, "character": 999 },
    });
    let part = client.request("textDocument/semanticTokens/range", params).await.expect("some");
    let within = |token: &String| token.starts_with("6:") || token.starts_with("7:");
    let wanted: Vec<String> = tokens(&whole).into_iter().filter(within).collect();
    assert!(wanted.len() > 8, "{wanted:?}");
    assert_eq!(tokens(&part), wanted);
    client.stop().await;
}

/// The code actions at a place.
async fn actions(client: &mut Client, at: &Value) -> Vec<Value> {
    let mut params = document();
    params["range"] = json!({ "start": at, "end": at });
    params["context"] = json!({ "diagnostics": [] });
    let found = client.request("textDocument/codeAction", params).await.expect("actions");
    serde_json::from_value(found).expect("a list")
}

fn titled<'a>(actions: &'a [Value], start: &str) -> &'a Value {
    let title = |action: &&Value| action["title"].as_str().is_some_and(|it| it.starts_with(start));
    actions.iter().find(title).unwrap_or_else(|| panic!("no {start} among {actions:?}"))
}

/// Makes an action's edits of the document, which are insertions of whole lines.
async fn insert_lines(client: &mut Client, action: &Value, version: i32) {
    for edit in action["edit"]["changes"][URI].as_array().expect("edits") {
        let start = &edit["range"]["start"];
        assert_eq!((start, &start["character"]), (&edit["range"]["end"], &json!(0)));
        let line = start["line"].as_u64().expect("a line") as u32;
        let text = edit["newText"].as_str().expect("a text");
        client.edit(URI, version, [line, 0, line, 0], text).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pinned_specialization_is_what_hovers_speak_of() {
    let mut client = open(TEXT).await;
    let at = position(TEXT, "clear_kernel(x_ptr", 0);
    let found = actions(&mut client, &at).await;
    let pin = titled(&found, "Pin ");
    let command = &pin["command"];
    assert_eq!(command["command"], "tile.selectSpecialization", "{pin}");
    let mut hover = document();
    hover["position"] = position(TEXT, "BLOCK)\n    tl.store", 0);
    let before = client.request("textDocument/hover", hover.clone()).await.expect("a hover");
    assert!(before.to_string().contains("constexpr int = 64"), "{before}");
    let params = json!({ "command": command["command"], "arguments": command["arguments"] });
    client.request("workspace/executeCommand", params).await.expect("it is chosen");
    let after = client.request("textDocument/hover", hover).await.expect("a hover");
    assert!(after.to_string().contains("constexpr int = 128"), "{after}");
    let lenses = client.request("textDocument/codeLens", document()).await.expect("lenses");
    assert!(lenses.to_string().contains("BLOCK=128 (autotune, 2 of 2)"), "{lenses}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_allowed_here_is_not_told_of_again() {
    let text = TEXT.replace("0.0, mask", "missing, mask");
    let mut client = Client::connect(without_workers());
    let settings = json!({ "lints": { "name/undefined": "warning" } });
    client.initialize(json!({ "capabilities": {}, "initializationOptions": settings })).await;
    client.open(URI, &text).await;
    let told = client.diagnostics(URI, 1).await;
    assert!(told.contains("name/undefined"), "{told}");
    let found = actions(&mut client, &position(&text, "missing", 0)).await;
    let allow = titled(&found, "Allow ");
    insert_lines(&mut client, allow, 2).await;
    let told = client.diagnostics(URI, 2).await;
    assert_eq!(told, "");
    client.stop().await;
}
