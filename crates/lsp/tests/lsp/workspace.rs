//! Several files and folders: symbols, calls, references and diagnostics across them, and files
//! that come, change and go.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use expect_test::expect;
use serde_json::{Value, json};
use tile_lsp::{FileSystem, Options};

use crate::client::{Client, diagnostic_line, range_text, without_workers};

const HELPER: &str = "\
import triton
import triton.language as tl

@triton.jit
def half(v):
    return v * 0.5
";

const KERNEL: &str = "\
import triton
import triton.language as tl
from helper import half

@triton.jit
def halve_kernel(x_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + at, half(tl.load(x_ptr + at)))

def run(x):
    halve_kernel[(1,)](x, BLOCK=64)

# tile: x = randn(64)
# tile: halve_kernel[(1,)](x, BLOCK=64)
";

const BROKEN: &str = "\
import triton

@triton.jit
def broken_kernel(x_ptr):
    return missing
";

/// A workspace in a temporary folder.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new(files: &[(&str, &str)]) -> Folder {
        let folder = Folder(tempfile::tempdir().expect("a folder can be made"));
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).expect("a file can be written");
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn uri(&self, name: &str) -> String {
        format!("file://{}", self.path().join(name).display())
    }

    pub async fn start(&self, capabilities: Value) -> Client {
        let mut client = Client::connect(without_workers());
        let folders = json!([{ "uri": self.uri(""), "name": "w" }]);
        client
            .initialize(json!({ "capabilities": capabilities, "workspaceFolders": folders }))
            .await;
        client
    }

    /// File names in place of addresses.
    pub fn short(&self, uri: &Value) -> String {
        let uri = uri.as_str().unwrap_or_default();
        uri.rsplit('/').next().unwrap_or_default().to_owned()
    }
}

fn three() -> Folder {
    Folder::new(&[("helper.py", HELPER), ("kernel.py", KERNEL), ("broken.py", BROKEN)])
}

fn place(uri: &str, line: u32, character: u32) -> Value {
    let position = json!({ "line": line, "character": character });
    json!({ "textDocument": { "uri": uri }, "position": position })
}

#[tokio::test(flavor = "multi_thread")]
async fn symbols_are_found_in_files_that_are_not_open() {
    let folder = three();
    let mut client = folder.start(json!({})).await;
    let found = client.request("workspace/symbol", json!({ "query": "HAL" })).await.unwrap();
    let mut out = String::new();
    for symbol in found.as_array().unwrap() {
        let file = folder.short(&symbol["location"]["uri"]);
        let range = range_text(&symbol["location"]["range"]);
        let _ = writeln!(out, "{} {file} {range}", symbol["name"].as_str().unwrap());
    }
    expect![[r#"
        halve_kernel kernel.py 5:4-5:16
        half helper.py 4:4-4:8
    "#]]
    .assert_eq(&out);
    client.stop().await;
}

/// Calls `half` by another name, which a further file imports.
const ALIASED: &str = "\
import triton
from helper import half as halved

@triton.jit
def twice(x):
    return halved(halved(v=x))
";

const REEXPORTED: &str = "\
import triton
from aliased import halved

@triton.jit
def thrice(v):
    return halved(v=halved(v=v))

def half(v):
    return dict(v=v)
";

/// Has the same words for other things.
const UNRELATED: &str = "\
import triton

@triton.jit
def half(v):
    return v

@triton.jit
def other(v):
    return half(v=v)
";

#[tokio::test(flavor = "multi_thread")]
async fn parameters_are_renamed_in_calls_by_other_names() {
    let files = [
        ("helper.py", HELPER),
        ("aliased.py", ALIASED),
        ("reexported.py", REEXPORTED),
        ("unrelated.py", UNRELATED),
    ];
    let folder = Folder::new(&files);
    let mut client = folder.start(json!({})).await;
    let uri = folder.uri("helper.py");
    client.open(&uri, HELPER).await;
    let mut params = place(&uri, 4, 9);
    params["newName"] = json!("value");
    let edit = client.request("textDocument/rename", params).await.unwrap();
    let mut lines: Vec<String> = Vec::new();
    for (uri, edits) in edit["changes"].as_object().unwrap() {
        let file = uri.rsplit('/').next().unwrap();
        let edits = edits.as_array().unwrap().iter();
        lines.extend(edits.map(|edit| format!("{file} {}", range_text(&edit["range"]))));
    }
    lines.sort();
    expect![[r#"
        aliased.py 5:25-5:26
        helper.py 4:9-4:10
        helper.py 5:11-5:12
        reexported.py 5:18-5:19
        reexported.py 5:27-5:28"#]]
    .assert_eq(&lines.join("\n"));
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_lead_across_files_and_launches() {
    let folder = three();
    let mut client = folder.start(json!({})).await;
    let uri = folder.uri("kernel.py");
    client.open(&uri, KERNEL).await;
    let mut out = String::new();
    for (line, character) in [(7, 26), (5, 6)] {
        let at = place(&uri, line, character);
        let items = client.request("textDocument/prepareCallHierarchy", at).await.unwrap();
        let item = &items[0];
        let _ = writeln!(out, "{} ({})", item["name"], item["detail"].as_str().unwrap());
        for (method, end) in [("incomingCalls", "from"), ("outgoingCalls", "to")] {
            let method = format!("callHierarchy/{method}");
            let calls = client.request(&method, json!({ "item": item })).await.unwrap();
            for call in calls.as_array().unwrap() {
                let ranges: Vec<String> =
                    call["fromRanges"].as_array().unwrap().iter().map(range_text).collect();
                let other = &call[end];
                let _ = writeln!(
                    out,
                    "  {end} {} ({}) {} {}",
                    other["name"].as_str().unwrap(),
                    other["detail"].as_str().unwrap(),
                    folder.short(&other["uri"]),
                    ranges.join(" ")
                );
            }
        }
    }
    expect![[r#"
        "half" (jit function)
          from halve_kernel (kernel) kernel.py 7:25-7:29
        "halve_kernel" (kernel)
          from run (host code) kernel.py 10:4-10:16
          from scenario 1 (scenario) kernel.py 13:8-13:20
          to half (jit function) helper.py 7:25-7:29
    "#]]
    .assert_eq(&out);
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_change_in_files_that_are_not_open() {
    let folder = three();
    let mut client = folder.start(json!({})).await;
    let uri = folder.uri("helper.py");
    client.open(&uri, HELPER).await;
    let mut params = place(&uri, 4, 5);
    params["newName"] = json!("halved");
    let edit = client.request("textDocument/rename", params).await.unwrap();
    let changes = edit["changes"].as_object().unwrap();
    let mut out: Vec<String> = changes
        .iter()
        .map(|(uri, edits)| {
            let ranges: Vec<String> =
                edits.as_array().unwrap().iter().map(|e| range_text(&e["range"])).collect();
            format!("{} {}", uri.rsplit('/').next().unwrap(), ranges.join(" "))
        })
        .collect();
    out.sort();
    expect![[r#"
        helper.py 4:4-4:8
        kernel.py 2:19-2:23 7:25-7:29"#]]
    .assert_eq(&out.join("\n"));
    client.stop().await;
}

/// What `workspace/diagnostic` says, a line each, and the result ids for the next time.
async fn check(folder: &Folder, client: &mut Client, known: &Value) -> (String, Value) {
    let params = json!({ "previousResultIds": known });
    let report = client.request("workspace/diagnostic", params).await.expect("a report");
    let mut out = String::new();
    let mut ids = Vec::new();
    for item in report["items"].as_array().into_iter().flatten() {
        let kind = item["kind"].as_str().unwrap_or_default();
        let _ = writeln!(out, "{} {kind}", folder.short(&item["uri"]));
        for found in item["items"].as_array().into_iter().flatten() {
            let _ = writeln!(out, "  {}", diagnostic_line(found));
        }
        ids.push(json!({ "uri": item["uri"], "value": item["resultId"] }));
    }
    (out, json!(ids))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_workspace_is_checked_when_asked_for() {
    let folder = three();
    let mut client = folder.start(json!({ "textDocument": { "diagnostic": {} } })).await;
    let (first, ids) = check(&folder, &mut client, &json!([])).await;
    expect![[r#"
        broken.py full
          4:11-4:18 1 name/undefined: `missing` is not defined
    "#]]
    .assert_eq(&first);
    let (second, _) = check(&folder, &mut client, &ids).await;
    expect![[r#"
        broken.py unchanged
    "#]]
    .assert_eq(&second);
    folder.write("broken.py", &BROKEN.replace("missing", "1"));
    let changes = json!({ "changes": [{ "uri": folder.uri("broken.py"), "type": 2 }] });
    client.notify("workspace/didChangeWatchedFiles", changes).await;
    let (third, _) = check(&folder, &mut client, &ids).await;
    expect![[r#"
        broken.py full
    "#]]
    .assert_eq(&third);
    std::fs::remove_file(folder.path().join("broken.py")).unwrap();
    let changes = json!({ "changes": [{ "uri": folder.uri("broken.py"), "type": 3 }] });
    client.notify("workspace/didChangeWatchedFiles", changes).await;
    let (gone, _) = check(&folder, &mut client, &ids).await;
    assert_eq!(gone, "broken.py full\n", "nothing is said of a file that is gone");
    let settings = json!({ "settings": { "tile": { "diagnostics": { "workspace": false } } } });
    folder.write("broken.py", BROKEN);
    client.notify("workspace/didChangeConfiguration", settings).await;
    let (fourth, _) = check(&folder, &mut client, &json!([])).await;
    assert_eq!(fourth, "", "nothing is open");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_helper_that_is_renamed_on_disk_is_missed_and_found_again() {
    let folder = three();
    let mut client = folder.start(json!({})).await;
    let uri = folder.uri("kernel.py");
    client.open(&uri, &KERNEL.replace("half(", "half(1, ")).await;
    let before = client.diagnostics(&uri, 1).await;
    assert!(before.contains("half"), "{before}");
    let (old, new) = (folder.path().join("helper.py"), folder.path().join("away.py"));
    let tell = json!({ "changes": [
        { "uri": folder.uri("helper.py"), "type": 3 },
        { "uri": folder.uri("away.py"), "type": 1 },
    ] });
    std::fs::rename(&old, &new).unwrap();
    client.notify("workspace/didChangeWatchedFiles", tell.clone()).await;
    // Nothing is known of what is imported, and no argument of it is too many.
    while client.diagnostics(&uri, 1).await.contains("type/extra-argument") {}
    std::fs::rename(&new, &old).unwrap();
    client.notify("workspace/didChangeWatchedFiles", tell).await;
    while client.diagnostics(&uri, 1).await != before {}
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_deleted_takes_its_files_along() {
    let folder = Folder::new(&[]);
    let parts = folder.path().join("parts");
    let make = || {
        std::fs::create_dir(&parts).unwrap();
        std::fs::write(parts.join("helper.py"), HELPER).unwrap();
    };
    make();
    let mut client = folder.start(json!({})).await;
    let uri = folder.uri("kernel.py");
    let text = KERNEL.replace("half(", "half(1, ").replace("from helper", "from parts.helper");
    client.open(&uri, &text).await;
    let before = client.diagnostics(&uri, 1).await;
    assert!(before.contains("type/extra-argument"), "{before}");
    std::fs::remove_dir_all(&parts).unwrap();
    // Editors tell of the folder alone.
    let deleted = json!({ "changes": [{ "uri": folder.uri("parts"), "type": 3 }] });
    client.notify("workspace/didChangeWatchedFiles", deleted).await;
    while client.diagnostics(&uri, 1).await.contains("type/extra-argument") {}
    make();
    let created = json!({ "changes": [{ "uri": folder.uri("parts/helper.py"), "type": 1 }] });
    client.notify("workspace/didChangeWatchedFiles", created).await;
    while client.diagnostics(&uri, 1).await != before {}
    client.stop().await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn what_never_ends_is_no_module() {
    let folder = Folder::new(&[]);
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe.py")).status();
    assert!(made.expect("mkfifo is there").success());
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero.py")).unwrap();
    std::os::unix::fs::symlink("loop.py", folder.path().join("loop.py")).unwrap();
    let mut client = folder.start(json!({})).await;
    let uri = folder.uri("kernel.py");
    let import = "from pipe import half\nfrom zero import a\nfrom loop import b";
    client.open(&uri, &KERNEL.replace("from helper import half", import)).await;
    assert_eq!(client.diagnostics(&uri, 1).await, "");
    client.stop().await;
}

const LOADED: &str = "\
import triton
import triton.language as tl

@triton.jit
def clear_kernel(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 0.0)

# tile: x = load(\"x.npy\")
# tile: clear_kernel[(1,)](x, BLOCK=64)
";

/// A file of NumPy's with zeros of 32 bits.
fn zeros(size: usize) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({size},), }}\n");
    let length = (header.len() as u16).to_le_bytes();
    let data = vec![0; 4 * size];
    [&b"\x93NUMPY\x01\x00"[..], &length, header.as_bytes(), &data].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn arrays_that_scenarios_load_are_followed() {
    let folder = Folder::new(&[("clear.py", LOADED)]);
    let array = folder.path().join("x.npy");
    std::fs::write(&array, zeros(32)).unwrap();
    let mut client = folder.start(json!({})).await;
    let uri = folder.uri("clear.py");
    client.open(&uri, LOADED).await;
    let found = loop {
        let found = client.diagnostics(&uri, 1).await;
        if found.contains("bounds/") {
            break found;
        }
    };
    assert!(found.contains("32"), "{found}");
    std::fs::write(&array, zeros(64)).unwrap();
    let changes = json!({ "changes": [{ "uri": folder.uri("x.npy"), "type": 2 }] });
    client.notify("workspace/didChangeWatchedFiles", changes).await;
    while client.diagnostics(&uri, 1).await.contains("bounds/") {}
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn untitled_texts_are_documents_too() {
    let folder = three();
    let mut client = folder.start(json!({})).await;
    client.open("untitled:Untitled-1", BROKEN).await;
    let found = client.diagnostics("untitled:Untitled-1", 1).await;
    assert!(found.contains("name/undefined"), "{found}");
    // One of the language `tile` needs no imports.
    let text = "@triton.jit\ndef k(x_ptr):\n    tl.lod(x_ptr)\n";
    client.open_as("untitled:Untitled-2", "tile", text).await;
    let found = client.diagnostics("untitled:Untitled-2", 1).await;
    assert!(found.contains("name/unknown-builtin"), "{found}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn launches_in_other_files_specialize() {
    let host =
        "from kernel import halve_kernel\n\ndef go(x):\n    halve_kernel[(1,)](x, BLOCK=32)\n";
    let folder = Folder::new(&[("helper.py", HELPER), ("kernel.py", KERNEL), ("host.py", host)]);
    let mut client = folder.start(json!({})).await;
    let uri = folder.uri("kernel.py");
    client.open(&uri, KERNEL).await;
    let params = json!({ "textDocument": { "uri": uri } });
    let mut found = String::new();
    for _ in 0..100 {
        let kernels = client.request("tile/kernels", params.clone()).await.unwrap();
        found = kernels[0]["specializations"].to_string();
        if found.contains("BLOCK=32") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(found.contains("BLOCK=32") && found.contains("BLOCK=64"), "{found}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tests_in_other_files_show_sizes() {
    let kernel = "\
import torch
import triton
import triton.language as tl

@triton.jit
def double_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at) * 2)

def double(x):
    y = torch.empty_like(x)
    double_kernel[(2,)](x, y, BLOCK=64)
    return y
";
    let test = "\
import torch
from kernel import double

def test_double():
    double(torch.randn(100))
";
    let folder = Folder::new(&[("kernel.py", kernel), ("test_kernel.py", test)]);
    let mut client = folder.start(json!({})).await;
    let uri = folder.uri("kernel.py");
    client.open(&uri, kernel).await;
    let told = |message: &Value| {
        let params = &message["params"];
        let diagnostics = params["diagnostics"].as_array();
        message["method"] == "textDocument/publishDiagnostics"
            && params["uri"] == json!(uri)
            && diagnostics.is_some_and(|found| !found.is_empty())
    };
    let published = client.take(told).await;
    let found = &published["params"]["diagnostics"];
    let related = |item: &Value| {
        let related = item["relatedInformation"].as_array().into_iter().flatten();
        let line =
            |at: &Value| format!("\n  {}: {}", folder.short(&at["location"]["uri"]), at["message"]);
        related.map(line).collect::<String>()
    };
    let found = found.as_array().into_iter().flatten();
    let lines: Vec<String> =
        found.map(|item| format!("{}{}", diagnostic_line(item), related(item))).collect();
    expect![[r#"
        7:4-7:49 1 bounds/out-of-bounds: program 1 writes element 100 of `y_ptr`, past its end: the buffer has 100 elements | with x_ptr=*fp32:16 y_ptr=*fp32:16 BLOCK=64 num_warps=4 num_stages=3 | this is element [36] of the tile
          kernel.py: "in this launch"
          test_kernel.py: "`test_double` runs it with these arguments"
        7:25-7:44 1 bounds/out-of-bounds: program 1 reads element 100 of `x_ptr`, past its end: the buffer has 100 elements | with x_ptr=*fp32:16 y_ptr=*fp32:16 BLOCK=64 num_warps=4 num_stages=3 | this is element [36] of the tile
          kernel.py: "in this launch"
          test_kernel.py: "`test_double` runs it with these arguments""#]].assert_eq(&lines.join("\n"));
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hovers_are_answered_while_the_workspace_is_checked_and_text_is_typed() {
    let folder = three();
    for number in 0..100 {
        folder
            .write(&format!("kernel_{number}.py"), &KERNEL.replace("halve", &format!("k{number}")));
    }
    let mut client = folder.start(json!({ "textDocument": { "diagnostic": {} } })).await;
    let uri = folder.uri("kernel.py");
    client.open(&uri, KERNEL).await;
    let params = json!({ "previousResultIds": [] });
    let whole = client.send_request("workspace/diagnostic", params).await;
    let mut hovers = 0;
    for version in 2..12 {
        client.edit(&uri, version, [6, 0, 6, 0], "    # more\n").await;
        let line = 4 + version as u32;
        let id = client.send_request("textDocument/hover", place(&uri, line, 5)).await;
        let first = client.take(|message| message["id"] == whole || message["id"] == id).await;
        if first["id"] == whole {
            client.put_back(first);
            break;
        }
        hovers += 1;
    }
    assert!(hovers > 0, "hovers do not wait for the workspace");
    let report = client.answer(whole).await.expect("a report");
    assert_eq!(report["items"].as_array().map(Vec::len), Some(1), "{report}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_not_text_are_told_of() {
    let folder = Folder::new(&[("kernel.py", KERNEL), ("helper.py", HELPER)]);
    let latin = |text: &str| [text.as_bytes(), b"# caf\xe9\n"].concat();
    std::fs::write(folder.path().join("latin.py"), latin(KERNEL)).unwrap();
    std::fs::write(folder.path().join("host.py"), latin("import os\n")).unwrap();
    let mut client = folder.start(json!({ "textDocument": { "diagnostic": {} } })).await;
    let (found, ids) = check(&folder, &mut client, &json!([])).await;
    expect![[r#"
        latin.py full
          0:0-0:0 1 syntax/unreadable: not UTF-8: byte 0xe9 on line 15; save the file as UTF-8
    "#]]
    .assert_eq(&found);
    folder.write("latin.py", KERNEL);
    let changes = json!({ "changes": [{ "uri": folder.uri("latin.py"), "type": 2 }] });
    client.notify("workspace/didChangeWatchedFiles", changes).await;
    let (mended, _) = check(&folder, &mut client, &ids).await;
    assert_eq!(mended, "latin.py full\n");
    client.stop().await;
}

/// Files on a disk that takes its time.
#[derive(Debug)]
struct Slow(BTreeMap<PathBuf, String>);

impl FileSystem for Slow {
    fn read(&self, path: &Path) -> Option<String> {
        std::thread::sleep(Duration::from_millis(2));
        self.0.get(path).cloned()
    }

    fn walk(&self, folder: &Path, limit: usize) -> Vec<PathBuf> {
        self.0.keys().filter(|path| path.starts_with(folder)).take(limit).cloned().collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_of_the_workspace_ends_however_much_is_typed() {
    let numbered = (0..150).map(|number| {
        let text = if number % 10 == 0 { BROKEN } else { "import os\n" };
        (PathBuf::from(format!("/slow/file_{number}.py")), text.to_owned())
    });
    let files = Arc::new(Slow(numbered.collect()));
    let mut client = Client::connect(Options { files, ..without_workers() });
    let folders = json!([{ "uri": "file:///slow", "name": "slow" }]);
    client.initialize(json!({ "capabilities": {}, "workspaceFolders": folders })).await;
    let uri = "file:///slow/typed.py";
    client.open(uri, KERNEL).await;
    let check =
        client.send_request("workspace/diagnostic", json!({ "previousResultIds": [] })).await;
    for version in 2..200 {
        client.edit(uri, version, [0, 0, 0, 0], "#\n").await;
        tokio::time::sleep(Duration::from_millis(4)).await;
    }
    let report = client.answer(check).await.unwrap();
    let found = report["items"].as_array().unwrap().iter();
    let broken = found.filter(|item| item["uri"].as_str().unwrap().contains("/slow/file_"));
    assert_eq!(broken.count(), 15, "{report}");
    client.stop().await;
}

/// `file: range new text` of every edit of a workspace edit, sorted.
fn edit_lines(edit: &Value) -> String {
    let changes = edit["changes"].as_object().into_iter().flatten();
    let mut lines: Vec<String> = changes
        .flat_map(|(uri, edits)| {
            let name = uri.rsplit('/').next().unwrap_or_default().to_owned();
            edits.as_array().into_iter().flatten().map(move |edit| {
                format!(
                    "{name} {} {}",
                    range_text(&edit["range"]),
                    edit["newText"].as_str().expect("a text")
                )
            })
        })
        .collect();
    lines.sort();
    lines.join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn imports_follow_files_that_move() {
    let folder = Folder::new(&[
        ("half.tile", "@triton.jit\ndef half(v):\n    return v * 0.5\n"),
        ("user.tile", "from half import half\nimport half as h\nfrom halfway import other\n"),
        ("user.py", "from half import half\n"),
        ("tools.py", "x = 1\n"),
        ("host.py", "import tools\n"),
    ]);
    std::fs::create_dir(folder.path().join("inner")).unwrap();
    folder.write("inner/near.tile", "from .deep import f\nfrom ..half import half\n");
    folder.write("inner/deep.tile", "@triton.jit\ndef f(v):\n    return v\n");
    let mut client = folder.start(json!({})).await;
    let rename = |old: &str, new: &str| json!({ "files": [{ "oldUri": folder.uri(old), "newUri": folder.uri(new) }] });
    let method = "workspace/willRenameFiles";
    let edit = client.request(method, rename("half.tile", "inner/third.tile")).await.unwrap();
    expect![[r#"
        near.tile 1:5-1:11 .third
        user.py 0:5-0:9 inner.third
        user.tile 0:5-0:9 inner.third
        user.tile 1:7-1:11 inner.third"#]]
    .assert_eq(&edit_lines(&edit));
    let edit = client.request(method, rename("inner/near.tile", "far.tile")).await.unwrap();
    expect![[r#"
        near.tile 0:5-0:10 inner.deep
        near.tile 1:5-1:11 half"#]]
    .assert_eq(&edit_lines(&edit));
    let edit = client.request(method, rename("tools.py", "gear.py")).await.unwrap();
    assert_eq!(edit, Value::Null, "Python servers look after Python files");
    let settings = json!({ "settings": { "tile": { "imports": { "onMove": "all" } } } });
    client.notify("workspace/didChangeConfiguration", settings).await;
    let edit = client.request(method, rename("tools.py", "gear.py")).await.unwrap();
    assert_eq!(edit_lines(&edit), "host.py 0:7-0:12 gear");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_modules_follow_files_that_move() {
    let host = "import kernels\nimport ops.half, kernels as k\nfrom ops import half\n\n\n\
        def go(x):\n    kernels.f[(1,)](x)\n    k.f[(1,)](x)\n    ops.half.g[(1,)](x)\n    \
        half.g[(1,)](x)\n\n\ndef other(kernels, x):\n    kernels.f[(1,)](x)\n";
    let folder = Folder::new(&[
        ("kernels.tile", "@triton.jit\ndef f(x):\n    tl.store(x, 1)\n"),
        ("host.py", host),
    ]);
    std::fs::create_dir(folder.path().join("ops")).unwrap();
    folder.write("ops/half.tile", "@triton.jit\ndef g(x):\n    tl.store(x, 1)\n");
    folder.write("ops/near.tile", "from . import half as h\nv = h.g\n");
    let mut client = folder.start(json!({})).await;
    let rename = |old: &str, new: &str| json!({ "files": [{ "oldUri": folder.uri(old), "newUri": folder.uri(new) }] });
    let method = "workspace/willRenameFiles";
    let edit = client.request(method, rename("kernels.tile", "ops/fast.tile")).await.unwrap();
    expect![[r#"
        host.py 0:7-0:14 ops.fast
        host.py 1:17-1:24 ops.fast
        host.py 6:4-6:11 ops.fast"#]]
    .assert_eq(&edit_lines(&edit));
    let edit = client.request(method, rename("ops/half.tile", "ops/double.tile")).await.unwrap();
    expect![[r#"
        host.py 1:7-1:15 ops.double
        host.py 2:16-2:20 double
        host.py 8:4-8:12 ops.double
        host.py 9:4-9:8 double
        near.tile 0:14-0:18 double"#]]
    .assert_eq(&edit_lines(&edit));
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn modules_that_leave_a_package_are_imported_from_their_new_one() {
    let folder = Folder::new(&[
        ("alone.py", "from ops import half\n\nhalf.g[(1,)](x)\n"),
        ("first.py", "def f():\n    from ops import half as h, third\n"),
        ("last.py", "from ops import (\n    third,\n    half,\n)\n\nhalf.g[(1,)](x)\n"),
        ("member.py", "from ops.half import g\n"),
    ]);
    std::fs::create_dir(folder.path().join("ops")).unwrap();
    folder.write("ops/half.tile", "@triton.jit\ndef g(x):\n    tl.store(x, 1)\n");
    folder.write("ops/third.tile", "@triton.jit\ndef h(x):\n    tl.store(x, 1)\n");
    folder.write("ops/near.tile", "from . import half, third\n");
    let mut client = folder.start(json!({})).await;
    let rename = |old: &str, new: &str| json!({ "files": [{ "oldUri": folder.uri(old), "newUri": folder.uri(new) }] });
    let method = "workspace/willRenameFiles";
    let edit = client.request(method, rename("ops/half.tile", "fast/half.tile")).await.unwrap();
    expect![[r#"
        alone.py 0:5-0:8 fast
        first.py 1:20-1:31 
        first.py 1:36-1:36 
            from fast import half as h
        last.py 1:9-2:8 
        last.py 3:1-3:1 
        from fast import half
        member.py 0:5-0:13 fast.half
        near.tile 0:14-0:20 
        near.tile 0:25-0:25 
        from fast import half"#]]
    .assert_eq(&edit_lines(&edit));
    let edit = client.request(method, rename("ops/half.tile", "fast/double.tile")).await.unwrap();
    expect![[r#"
        alone.py 0:16-0:20 double
        alone.py 0:5-0:8 fast
        alone.py 2:0-2:4 double
        first.py 1:20-1:31 
        first.py 1:36-1:36 
            from fast import double as h
        last.py 1:9-2:8 
        last.py 3:1-3:1 
        from fast import double
        last.py 5:0-5:4 double
        member.py 0:5-0:13 fast.double
        near.tile 0:14-0:20 
        near.tile 0:25-0:25 
        from fast import double"#]]
    .assert_eq(&edit_lines(&edit));
    let edit = client.request(method, rename("ops/half.tile", "half.tile")).await.unwrap();
    expect![[r#"
        alone.py 0:0-0:20 import half
        first.py 1:20-1:31 
        first.py 1:36-1:36 
            import half as h
        last.py 1:9-2:8 
        last.py 3:1-3:1 
        import half
        member.py 0:5-0:13 half
        near.tile 0:14-0:20 
        near.tile 0:25-0:25 
        import half"#]]
    .assert_eq(&edit_lines(&edit));
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_leaves_all_packages_imports_by_whole_names() {
    let folder = Folder::new(&[("plain.py", "")]);
    std::fs::create_dir_all(folder.path().join("lib/ops/fast")).unwrap();
    folder.write("lib/ops/__init__.py", "");
    folder.write("lib/ops/fast/__init__.py", "");
    folder.write("lib/ops/half.tile", "@triton.jit\ndef half(v):\n    return v * 0.5\n");
    folder.write("lib/ops/fast/near.tile", "@triton.jit\ndef near(v):\n    return v\n");
    folder.write("lib/ops/fast/user.tile", "from ..half import half\nfrom .near import near\n");
    let mut client = folder.start(json!({})).await;
    let method = "workspace/willRenameFiles";
    for (to, expected) in [
        ("lib/user.tile", "user.tile 0:5-0:11 ops.half\nuser.tile 1:5-1:10 ops.fast.near"),
        ("lib/tools/user.tile", "user.tile 0:5-0:11 ops.half\nuser.tile 1:5-1:10 ops.fast.near"),
        ("user.tile", "user.tile 0:5-0:11 lib.ops.half\nuser.tile 1:5-1:10 lib.ops.fast.near"),
        ("lib/ops/user.tile", "user.tile 0:5-0:11 .half\nuser.tile 1:5-1:10 .fast.near"),
    ] {
        let (old, new) = (folder.uri("lib/ops/fast/user.tile"), folder.uri(to));
        let moved = json!({ "files": [{ "oldUri": old, "newUri": new }] });
        let edit = client.request(method, moved).await.unwrap();
        assert_eq!(edit_lines(&edit).trim(), expected, "{to}");
    }
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_moves_takes_its_imports_along() {
    let folder = Folder::new(&[
        (
            "user.tile",
            "from ops.half import half\nimport ops.inner.deep as d\nfrom ops import half\n",
        ),
        ("host.py", "from ops.half import half\nfrom ops import host\nfrom opsis import x\n"),
    ]);
    std::fs::create_dir_all(folder.path().join("ops/inner")).unwrap();
    folder.write("ops/half.tile", "@triton.jit\ndef half(v):\n    return v * 0.5\n");
    folder.write("ops/host.py", "from .half import half\nfrom . import inner\n");
    folder.write("ops/inner/deep.tile", "from ..half import half\nfrom ...user import d\n");
    let mut client = folder.start(json!({})).await;
    let rename = |old: &str, new: &str| json!({ "files": [{ "oldUri": folder.uri(old), "newUri": folder.uri(new) }] });
    let method = "workspace/willRenameFiles";
    let edit = client.request(method, rename("ops", "parts")).await.unwrap();
    expect![[r#"
        host.py 0:5-0:13 parts.half
        host.py 1:5-1:8 parts
        user.tile 0:5-0:13 parts.half
        user.tile 1:7-1:21 parts.inner.deep
        user.tile 2:5-2:8 parts"#]]
    .assert_eq(&edit_lines(&edit));
    let edit = client.request(method, rename("ops", "lib/parts")).await.unwrap();
    expect![[r#"
        deep.tile 1:5-1:12 user
        host.py 0:5-0:13 lib.parts.half
        host.py 1:5-1:8 lib.parts
        user.tile 0:5-0:13 lib.parts.half
        user.tile 1:7-1:21 lib.parts.inner.deep
        user.tile 2:5-2:8 lib.parts"#]]
    .assert_eq(&edit_lines(&edit));
    let edit = client.request(method, rename("ops/inner", "inner")).await.unwrap();
    expect![[r#"
        deep.tile 0:5-0:11 ops.half
        deep.tile 1:5-1:12 user
        user.tile 1:7-1:21 inner.deep"#]]
    .assert_eq(&edit_lines(&edit));
    client.stop().await;
}
