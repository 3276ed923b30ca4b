//! Settings of folders, project files and the editor, and when they take effect.

use serde_json::{Value, json};

use crate::client::{Client, diagnostic_line, without_workers};
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

/// What is said of a project file, once it is said.
async fn said_of(client: &mut Client, uri: &str) -> String {
    let told = client
        .take(|message| {
            message["method"] == "textDocument/publishDiagnostics"
                && message["params"]["uri"] == uri
        })
        .await;
    let found = told["params"]["diagnostics"].as_array().expect("a list").iter();
    found.map(|found| diagnostic_line(found) + "\n").collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_in_a_project_file_is_a_finding_there_until_it_is_mended() {
    let folder = Folder::new(&[("tile.toml", "arch = \"sm_80\"\n"), ("broken.py", BROKEN)]);
    let mut client = start_in(&[&folder], json!({})).await;
    let uri = folder.uri("tile.toml");
    let mut shown = String::new();
    for text in [
        "triton = \"3.9\"\narch = \"sm_1\"\nlint = 3\n",
        "[lints]\n\"perf/uncoalessed\" = \"off\"\nmask = \"loud\"\nname = \"é\"\n",
        "codeLens = true\ndevice = nan\npython = \"missing\"\n",
        "arch = sm_80\n",
        "arch = \"sm_80\"\narch = \"sm_90\"\n",
        "[tool.tile]\narch = \"sm_80\"\n",
        "# é 😀\n[lints\n",
        "arch = \"sm_80\"\n",
    ] {
        folder.write("tile.toml", text);
        changed(&mut client, &uri).await;
        shown.push_str(&format!("{text}{}\n", said_of(&mut client, &uri).await));
    }
    expect_test::expect![[r#"
        triton = "3.9"
        arch = "sm_1"
        lint = 3
        1:7-1:13 2 : the setting tile.arch is "sm_1", which is not an architecture that is supported (sm_75 and later), such as "sm_90a", or ""; the default is used
        2:0-2:4 2 : there is no setting tile.lint; did you mean tile.lints?

        [lints]
        "perf/uncoalessed" = "off"
        mask = "loud"
        name = "é"
        1:0-1:18 2 : the setting tile.lints has `perf/uncoalessed`, which is no code or family; did you mean `perf/uncoalesced`?
        2:7-2:13 2 : the setting tile.lints has "loud" for `mask`, which is not one of error, warning, info, hint, off
        3:7-3:10 2 : the setting tile.lints has "é" for `name`, which is not one of error, warning, info, hint, off

        codeLens = true
        device = nan
        python = "missing"
        0:11-0:15 2 : tile.codeLens is true, which sets nothing; there are codeLens.run, codeLens.ir, codeLens.resources, codeLens.specialization
        1:9-1:12 2 : the setting tile.device is "nan", which is not "auto", "cpu" or "cuda:N"; the default is used
        2:9-2:18 2 : the setting tile.python is "missing", where no packages of Python lie

        arch = sm_80
        0:7-0:12 1 : no valid TOML: string values must be quoted, expected literal string; none of its settings count

        arch = "sm_80"
        arch = "sm_90"
        1:0-1:4 1 : no valid TOML: duplicate key; none of its settings count

        [tool.tile]
        arch = "sm_80"
        0:1-0:5 2 : `tool` is no setting: in tile.toml, settings stand at the top level, without [tool.tile]

        # é 😀
        [lints
        1:6-1:6 1 : no valid TOML: unclosed table, expected `]`; none of its settings count

        arch = "sm_80"

    "#]].assert_eq(&shown);
    // Each is told once as well, with its place, for those who do not look at the file.
    let told = client.notification("window/showMessage").await;
    let told = told["message"].as_str().unwrap();
    assert!(told.contains("/tile.toml:2:8: the setting tile.arch is \"sm_1\""), "{told}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_file_that_is_no_text_is_told_of() {
    let folder = Folder::new(&[("broken.py", BROKEN)]);
    std::fs::write(folder.path().join("tile.toml"), b"# tile\n# caf\xe9\n").unwrap();
    std::fs::write(folder.path().join("pyproject.toml"), b"[tool.tile]\nlint = 1\n").unwrap();
    let mut client = start_in(&[&folder], json!({})).await;
    let (own, shared) = (folder.uri("tile.toml"), folder.uri("pyproject.toml"));
    let both =
        format!("{}{}", said_of(&mut client, &own).await, said_of(&mut client, &shared).await);
    expect_test::expect![[r#"
        1:5-1:5 1 : not UTF-8: byte 0xe9 on line 2; save the file as UTF-8; none of its settings count
        0:6-0:10 2 : the settings of tile.toml beside this file count instead; move these there
    "#]].assert_eq(&both);
    std::fs::remove_file(folder.path().join("tile.toml")).unwrap();
    changed(&mut client, &own).await;
    assert_eq!(said_of(&mut client, &own).await, "", "it is gone");
    expect_test::expect![[r#"
        1:0-1:4 2 : there is no setting tile.lint; did you mean tile.lints?
    "#]]
    .assert_eq(&said_of(&mut client, &shared).await);
    // What is not about Tile is not judged.
    folder.write("pyproject.toml", "[project]\nname = \"textile\"\n[tool.black]\nq = \"tile\"\n");
    changed(&mut client, &shared).await;
    assert_eq!(said_of(&mut client, &shared).await, "");
    folder.write("pyproject.toml", "[project\nname = 3");
    changed(&mut client, &shared).await;
    folder.write("tile.toml", "arch = 3\n");
    changed(&mut client, &own).await;
    assert!(said_of(&mut client, &own).await.starts_with("0:7-0:8 2 : the setting tile.arch is 3"));
    client.expect_no_more("textDocument/publishDiagnostics").await;
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_settings_of_the_editor_is_told_once() {
    let mut client = start_in(&[], json!({})).await;
    let mut shown = String::new();
    // An empty list is what some editors send for an empty table.
    for (settings, problems) in [
        (json!({ "arch": "sm_1" }), 1),
        (json!([]), 0),
        (json!("fast"), 1),
        (json!({}), 0),
        (json!({ "codeLenses": { "run": false }, "codeLens": { "runn": false } }), 2),
        (json!({ "server": { "path": "tile", "env": {} }, "trace": { "server": "off" } }), 0),
        (json!({ "lints": { "mask": 3 }, "inlayHints": "off" }), 2),
        (json!({ "arch": "", "device": "auto", "lints": {}, "codeLens": { "run": true } }), 0),
        (json!({ "python": "/nowhere/python" }), 1),
    ] {
        for _ in 0..2 {
            let params = json!({ "settings": { "tile": settings } });
            client.notify("workspace/didChangeConfiguration", params).await;
        }
        shown.push_str(&format!("{settings}\n"));
        for _ in 0..problems {
            let told = client.notification("window/showMessage").await;
            shown.push_str(&format!("    {}\n", told["message"].as_str().unwrap()));
        }
    }
    client.expect_no_more("window/showMessage").await;
    expect_test::expect![[r#"
        {"arch":"sm_1"}
            the setting tile.arch is "sm_1", which is not an architecture that is supported (sm_75 and later), such as "sm_90a", or ""; the default is used
        []
        "fast"
            the settings of tile are "fast", which is no object with members such as "arch"; the defaults are used
        {}
        {"codeLenses":{"run":false},"codeLens":{"runn":false}}
            there is no setting tile.codeLenses; did you mean tile.codeLens.resources?
            there is no setting tile.codeLens.runn; did you mean tile.codeLens.run?
        {"server":{"path":"tile","env":{}},"trace":{"server":"off"}}
        {"lints":{"mask":3},"inlayHints":"off"}
            tile.inlayHints is "off", which sets nothing; there are inlayHints.types, inlayHints.constexprs, inlayHints.parameterNames
            the setting tile.lints has 3 for `mask`, which is not one of error, warning, info, hint, off
        {"arch":"","device":"auto","lints":{},"codeLens":{"run":true}}
        {"python":"/nowhere/python"}
            the setting tile.python is "/nowhere/python", where no packages of Python lie
    "#]].assert_eq(&shown);
    client.stop().await;
}
