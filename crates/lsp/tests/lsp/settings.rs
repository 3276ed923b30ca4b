//! Settings of folders, project files and the editor, and when they take effect.

use serde_json::{Value, json};

use crate::client::{Client, without_workers};
use crate::workspace::Folder;

const BROKEN: &str = "\
import triton

@triton.jit
def broken_kernel(x_ptr):
    return missing
";

/// A kernel whose text says what it is compiled for.
const TARGETED: &str = "\
import triton
import triton.language as tl
from triton.language.target_info import cuda_capability_geq

@triton.jit
def targeted_kernel(x_ptr, BLOCK: tl.constexpr):
    tl.static_print(\"hopper\", cuda_capability_geq(9, 0))
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + at, 1.0)

# tile: x = empty(64)
# tile: targeted_kernel[(1,)](x, BLOCK=64)
";

fn off() -> &'static str {
    "[lints]\n\"name/undefined\" = \"off\"\n"
}

fn warning() -> &'static str {
    "[lints]\n\"name/undefined\" = \"warning\"\n"
}

async fn changed(client: &mut Client, uri: &str) {
    let changes = json!({ "changes": [{ "uri": uri, "type": 2 }] });
    client.notify("workspace/didChangeWatchedFiles", changes).await;
}

/// Starts a session in several folders of the workspace.
async fn start_in(folders: &[&Folder], capabilities: Value) -> Client {
    let mut client = Client::connect(without_workers());
    let names: Vec<Value> =
        folders.iter().map(|folder| json!({ "uri": folder.uri(""), "name": "w" })).collect();
    client.initialize(json!({ "capabilities": capabilities, "workspaceFolders": names })).await;
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn each_folder_has_its_own_project_file() {
    let strict = Folder::new(&[("broken.py", BROKEN)]);
    let lenient = Folder::new(&[("broken.py", BROKEN), ("tile.toml", off())]);
    let mut client = start_in(&[&strict], json!({})).await;
    let (first, second) = (strict.uri("broken.py"), lenient.uri("broken.py"));
    client.open(&first, BROKEN).await;
    assert!(client.diagnostics(&first, 1).await.starts_with("4:11-4:18 1 name/undefined"));
    let added = json!({ "added": [{ "uri": lenient.uri(""), "name": "o" }], "removed": [] });
    client.notify("workspace/didChangeWorkspaceFolders", json!({ "event": added })).await;
    client.open(&second, BROKEN).await;
    assert_eq!(client.diagnostics(&second, 1).await, "", "its own folder's file holds");
    lenient.write("tile.toml", warning());
    changed(&mut client, &lenient.uri("tile.toml")).await;
    assert!(client.diagnostics(&second, 1).await.starts_with("4:11-4:18 2 name/undefined"));
    client.expect_no_more("textDocument/publishDiagnostics").await;
    strict.write("pyproject.toml", "[tool.tile.lints]\n\"name/undefined\" = \"hint\"\n");
    changed(&mut client, &strict.uri("pyproject.toml")).await;
    assert!(client.diagnostics(&first, 1).await.starts_with("4:11-4:18 4 name/undefined"));
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_nearest_project_file_counts() {
    let folder = Folder::new(&[("tile.toml", warning()), ("outer.py", BROKEN)]);
    std::fs::create_dir(folder.path().join("inner")).unwrap();
    folder.write("inner/tile.toml", off());
    folder.write("inner/inner.py", BROKEN);
    // The workspace's folder lies below the outer file, and above the inner one.
    let mut client = start_in(&[&folder], json!({})).await;
    let (outer, inner) = (folder.uri("outer.py"), folder.uri("inner/inner.py"));
    client.open(&outer, BROKEN).await;
    assert!(client.diagnostics(&outer, 1).await.starts_with("4:11-4:18 2 name/undefined"));
    client.open(&inner, BROKEN).await;
    assert_eq!(client.diagnostics(&inner, 1).await, "");
    client.stop().await;

    // Where no folder is named, files are looked for beside the document and above.
    let mut client = start_in(&[], json!({})).await;
    client.open(&inner, BROKEN).await;
    assert_eq!(client.diagnostics(&inner, 1).await, "");
    folder.write("inner/tile.toml", "lints = 3\n");
    changed(&mut client, &folder.uri("inner/tile.toml")).await;
    let told = client.notification("window/showMessage").await;
    assert!(told["message"].as_str().unwrap().contains("tile.lints is 3"), "{told}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_editor_is_asked_about_each_folder() {
    let one = Folder::new(&[("broken.py", BROKEN)]);
    let two = Folder::new(&[("broken.py", BROKEN)]);
    let capabilities = json!({ "workspace": { "configuration": true } });
    let mut client = start_in(&[&one, &two], capabilities).await;
    let (id, params) = client.asked("workspace/configuration").await;
    let scopes: Vec<&Value> =
        params["items"].as_array().unwrap().iter().map(|item| &item["scopeUri"]).collect();
    assert_eq!(scopes, [&Value::Null, &json!(one.uri("")), &json!(two.uri(""))]);
    let lints = |level: &str| json!({ "lints": { "name/undefined": level } });
    client.respond(id, json!([lints("info"), lints("warning"), null])).await;
    for (folder, severity) in [(&one, 2), (&two, 3)] {
        let uri = folder.uri("broken.py");
        client.open(&uri, BROKEN).await;
        let wanted = format!("4:11-4:18 {severity} name/undefined");
        // The answer may arrive after the document.
        while !client.diagnostics(&uri, 1).await.starts_with(&wanted) {}
    }
    client.notify("workspace/didChangeConfiguration", json!({ "settings": null })).await;
    let (id, _) = client.asked("workspace/configuration").await;
    client.respond(id, json!([lints("off"), null, lints("error")])).await;
    assert_eq!(client.diagnostics(&one.uri("broken.py"), 1).await, "");
    let found = client.diagnostics(&two.uri("broken.py"), 1).await;
    assert!(found.starts_with("4:11-4:18 1 name/undefined"), "{found}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kernels_are_analysed_for_the_architecture_of_their_folder() {
    let folder = Folder::new(&[("targeted.py", TARGETED), ("tile.toml", "arch = \"sm_80\"\n")]);
    let mut client = start_in(&[&folder], json!({})).await;
    let uri = folder.uri("targeted.py");
    client.open(&uri, TARGETED).await;
    while !client.diagnostics(&uri, 1).await.contains("constexpr/static-print: hopper False") {}
    folder.write("tile.toml", "arch = \"sm_100a\"\n");
    changed(&mut client, &folder.uri("tile.toml")).await;
    while !client.diagnostics(&uri, 1).await.contains("constexpr/static-print: hopper True") {}
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_hint_and_lens_has_a_switch() {
    let folder = Folder::new(&[("targeted.py", TARGETED)]);
    let mut client = start_in(&[&folder], json!({})).await;
    let uri = folder.uri("targeted.py");
    client.open(&uri, TARGETED).await;
    let start = json!({ "line": 0, "character": 0 });
    let end = json!({ "line": 99, "character": 0 });
    let hints = json!({ "textDocument": { "uri": uri }, "range": { "start": start, "end": end } });
    let lenses = json!({ "textDocument": { "uri": uri } });
    let mut shown = String::new();
    for off in [
        "",
        "inlayHints.types",
        "inlayHints.constexprs",
        "inlayHints.parameterNames",
        "codeLens.run",
        "codeLens.ir",
        "codeLens.resources",
        "codeLens.specialization",
    ] {
        let settings = if off.is_empty() { json!({}) } else { json!({ off: false }) };
        let params = json!({ "settings": { "tile": settings } });
        client.notify("workspace/didChangeConfiguration", params).await;
        let hints = client.request("textDocument/inlayHint", hints.clone()).await.unwrap();
        let lenses = client.request("textDocument/codeLens", lenses.clone()).await.unwrap();
        let hints = hints.as_array().unwrap().iter().map(|hint| hint["label"].as_str().unwrap());
        let lenses = lenses.as_array().unwrap().iter();
        let lenses = lenses.map(|lens| lens["command"]["title"].as_str().unwrap());
        let all: Vec<&str> = hints.chain(lenses).collect();
        shown.push_str(&format!("without {off:?}: {}\n", all.join(" | ")));
    }
    expect_test::expect![[r#"
        without "":  = 64 | major: | minor: | : tile<64 x int32> | start: | value: | ▶ Run | Bench | PTX | not measured: no worker process can be started; `tile doctor` says what is missing | BLOCK=64 (scenario) | ▶ Run
        without "inlayHints.types":  = 64 | major: | minor: | start: | value: | ▶ Run | Bench | PTX | not measured: no worker process can be started; `tile doctor` says what is missing | BLOCK=64 (scenario) | ▶ Run
        without "inlayHints.constexprs": major: | minor: | : tile<64 x int32> | start: | value: | ▶ Run | Bench | PTX | not measured: no worker process can be started; `tile doctor` says what is missing | BLOCK=64 (scenario) | ▶ Run
        without "inlayHints.parameterNames":  = 64 | : tile<64 x int32> | ▶ Run | Bench | PTX | not measured: no worker process can be started; `tile doctor` says what is missing | BLOCK=64 (scenario) | ▶ Run
        without "codeLens.run":  = 64 | major: | minor: | : tile<64 x int32> | start: | value: | PTX | not measured: no worker process can be started; `tile doctor` says what is missing | BLOCK=64 (scenario)
        without "codeLens.ir":  = 64 | major: | minor: | : tile<64 x int32> | start: | value: | ▶ Run | Bench | not measured: no worker process can be started; `tile doctor` says what is missing | BLOCK=64 (scenario) | ▶ Run
        without "codeLens.resources":  = 64 | major: | minor: | : tile<64 x int32> | start: | value: | ▶ Run | Bench | PTX | BLOCK=64 (scenario) | ▶ Run
        without "codeLens.specialization":  = 64 | major: | minor: | : tile<64 x int32> | start: | value: | ▶ Run | Bench | PTX | not measured: no worker process can be started; `tile doctor` says what is missing | ▶ Run
    "#]].assert_eq(&shown);
    client.stop().await;
}
