//! Clients that break the rules, and ends of sessions.

use expect_test::expect;
use serde_json::{Value, json};

use crate::client::{Client, without_workers};

const URI: &str = "file:///nowhere/kernels.tile";

#[tokio::test(flavor = "multi_thread")]
async fn requests_before_initialize_are_refused() {
    let mut client = Client::connect(without_workers());
    let params = json!({ "textDocument": { "uri": URI } });
    let error = client.request("textDocument/diagnostic", params).await.unwrap_err();
    assert_eq!(error["code"], -32002);
    client.open(URI, "x = (").await;
    client.initialize(json!({ "capabilities": {} })).await;
    let params = json!({ "textDocument": { "uri": URI } });
    let report = client.request("textDocument/diagnostic", params).await.unwrap();
    assert_eq!(report["items"], json!([]), "what came before initialize does not count");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_after_shutdown_are_refused() {
    let mut client = Client::start(json!({})).await;
    client.request("shutdown", Value::Null).await.unwrap();
    let params = json!({ "textDocument": { "uri": URI } });
    let error = client.request("textDocument/diagnostic", params).await.unwrap_err();
    assert_eq!(error["code"], -32600);
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_messages_leave_the_server_up() {
    let mut client = Client::start(json!({})).await;
    client.send_body("{\"jsonrpc\": \"2.0\", \"method\":").await;
    let error = client.take(|message| message["id"].is_null() && message["error"].is_object());
    assert_eq!(error.await["error"]["code"], -32700);
    client.send_body("[1, 2]").await;
    client.send_body("{\"jsonrpc\": \"2.0\", \"id\": 900, \"method\": 7}").await;
    client.notify("textDocument/didOpen", json!({ "textDocument": 7 })).await;
    client.notify("textDocument/didChange", json!({})).await;
    client.notify("textDocument/didChange", Value::Null).await;
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": URI } })).await;
    client.notify("$/unknown", json!({})).await;
    for unknown in ["textDocument/unknown", "$/unknown"] {
        let error = client.request(unknown, json!({})).await.unwrap_err();
        assert_eq!(error["code"], -32601, "{unknown}");
    }
    let error = client.request("textDocument/diagnostic", json!([])).await.unwrap_err();
    assert_eq!(error["code"], -32602);
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_far_out_of_range_are_taken_at_the_end() {
    let mut client = Client::start(json!({})).await;
    client.open(URI, "x = 1\n").await;
    client.edit(URI, 2, [4_000_000_000, 7, 4_000_000_000, 9], "y = (\n").await;
    assert!(client.diagnostics(URI, 2).await.contains("1:"));
    client.edit(URI, 3, [9, 9, 0, 0], "").await;
    client.edit(URI, 4, [1, 0, 99, 0], "").await;
    assert_eq!(client.diagnostics(URI, 4).await, "");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_that_are_too_large_get_one_clear_error() {
    let mut client = Client::start(json!({})).await;
    let text = "x = 1\n".repeat(10 << 20 >> 3) + "def f(:\n";
    assert!(text.len() > 7 << 20);
    client.open(URI, &text).await;
    let found = client.diagnostics(URI, 1).await;
    assert!(found.starts_with("0:0-0:0 1 syntax/unreadable: "), "{found}");
    assert!(found.contains("limit of 4 MiB"), "{found}");
    assert_eq!(found.lines().count(), 1);
    client.edit(URI, 2, [0, 0, 0, 1], "y").await;
    assert_eq!(client.diagnostics(URI, 2).await, found, "the size is the same");
    client.edit(URI, 3, [0, 0, 4_000_000, 0], "x = (\n").await;
    assert!(client.diagnostics(URI, 3).await.contains("syntax/error"));
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_edits_in_a_row_are_answered_for() {
    let mut client = Client::start(json!({})).await;
    client.open(URI, "x = 1\n").await;
    for version in 2..10_002 {
        let text = if version % 2 == 0 { "(" } else { "" };
        client.edit(URI, version, [0, 0, 0, u32::from(version % 2 == 1)], text).await;
    }
    assert_eq!(client.diagnostics(URI, 10_001).await, "");
    client.stop().await;
}

/// Messages that the suite sends; `TILE_MESSAGES` asks for more.
const MESSAGES: usize = 600;

/// Everything that a client may send, and something it may not.
const METHODS: &[&str] = &[
    "$/unknown",
    "callHierarchy/incomingCalls",
    "callHierarchy/outgoingCalls",
    "completionItem/resolve",
    "textDocument/codeAction",
    "textDocument/codeLens",
    "textDocument/completion",
    "textDocument/definition",
    "textDocument/diagnostic",
    "textDocument/didChange",
    "textDocument/didClose",
    "textDocument/didOpen",
    "textDocument/documentHighlight",
    "textDocument/documentLink",
    "textDocument/documentSymbol",
    "textDocument/foldingRange",
    "textDocument/hover",
    "textDocument/inlayHint",
    "textDocument/prepareCallHierarchy",
    "textDocument/prepareRename",
    "textDocument/references",
    "textDocument/rename",
    "textDocument/selectionRange",
    "textDocument/semanticTokens/full",
    "textDocument/semanticTokens/full/delta",
    "textDocument/semanticTokens/range",
    "textDocument/signatureHelp",
    "textDocument/typeDefinition",
    "textDocument/unknown",
    "tile/kernels",
    "tile/viewIr",
    "window/workDoneProgress/cancel",
    "workspace/diagnostic",
    "workspace/didChangeConfiguration",
    "workspace/didChangeWatchedFiles",
    "workspace/didChangeWorkspaceFolders",
    "workspace/executeCommand",
    "workspace/symbol",
    "workspace/willRenameFiles",
];

/// Random numbers, the same ones every time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    fn position(&mut self) -> Value {
        let mut number = || match self.below(4) {
            0 => json!(self.below(5)),
            1 => json!(self.below(60)),
            2 => json!(u32::MAX),
            _ => json!(-1),
        };
        json!({ "line": number(), "character": number() })
    }

    fn range(&mut self) -> Value {
        json!({ "start": self.position(), "end": self.position() })
    }

    fn document(&mut self) -> Value {
        let uri = self.one(&[URI, "file:///nowhere/else.py", "untitled:x", "not an address", ""]);
        json!({
            "uri": uri, "languageId": "tile", "version": self.below(9),
            "text": self.one(&["", "x = (", "@triton.jit\ndef k(x):\n    tl.load(x)\n", "\u{feff}日本😀\r\n\t"]),
        })
    }

    fn params(&mut self) -> Value {
        if self.below(8) == 0 {
            return [json!([]), json!(7), json!("x"), json!({})][self.below(4)].clone();
        }
        let change = match self.below(3) {
            0 => json!({ "text": "y = )\n" }),
            1 => json!({ "range": 3, "text": "" }),
            _ => {
                json!({ "range": self.range(), "text": self.one(&["", "(", "tl.sum(", "\n\n", "😀"]) })
            }
        };
        json!({
            "textDocument": self.document(), "position": self.position(), "range": self.range(),
            "positions": [self.position()], "contentChanges": [change], "newName": "y",
            "context": { "diagnostics": [], "includeDeclaration": true }, "query": "k",
            "previousResultId": "1", "previousResultIds": [], "settings": { "tile": { "arch": 3 } },
            "changes": [{ "uri": URI, "type": self.below(5) }], "stage": "ptx", "kernel": "k",
            "event": { "added": [], "removed": [] }, "token": 1, "label": "load",
            "command": self.one(&["tile.selectSpecialization", "tile.viewIr", "tile.none"]),
            "arguments": [{ "uri": URI, "kernel": "k", "specialization": self.below(3) }],
            "item": {
                "name": "k", "kind": 12, "uri": URI, "range": self.range(),
                "selectionRange": self.range(),
            },
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_message_ends_the_session() {
    let mut client = Client::connect(without_workers());
    client.initialize(json!({ "capabilities": {} })).await;
    client.open(URI, "@triton.jit\ndef k(x):\n    tl.store(x, 1)\n").await;
    let count = std::env::var("TILE_MESSAGES").ok().and_then(|text| text.parse().ok());
    let mut random = Random(1);
    for _ in 0..count.unwrap_or(MESSAGES) {
        let method = random.one(METHODS);
        let params = random.params();
        if random.below(3) == 0 {
            client.notify(method, params).await;
            continue;
        }
        let id = client.send_request(method, params.clone()).await;
        if let Err(error) = client.answer(id).await {
            assert_ne!(error["code"], -32603, "{method} {params}: {error}");
        }
    }
    client.open("file:///nowhere/last.tile", "x = (\n").await;
    assert!(client.diagnostics("file:///nowhere/last.tile", 1).await.contains("syntax/error"));
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_says_what_it_takes() {
    let mut client = Client::start(json!({})).await;
    let uri = "file:///nowhere/kernels.tile";
    let mut said = String::new();
    for (command, arguments) in [
        ("tile.measureConfigurations", json!([])),
        ("tile.runKernel", json!(["add"])),
        ("tile.tuneKernel", json!([{ "uri": uri }])),
        ("tile.runKernel", json!([{ "uri": uri, "kernel": "add", "scenario": 0 }])),
        ("tile.viewIr", json!([{ "uri": uri, "kernel": "add", "stage": "asm" }])),
        ("tile.selectSpecialization", json!([{ "uri": uri, "kernel": 1 }])),
    ] {
        let params = json!({ "command": command, "arguments": arguments });
        let error = client.request("workspace/executeCommand", params).await.expect_err("wrong");
        assert_eq!(error["code"], -32602, "{error}");
        said.push_str(error["message"].as_str().expect("a message"));
        said.push('\n');
    }
    expect![[r#"
        `tile.measureConfigurations` takes one argument, an object with `uri` (the address of an open document), `kernel` (the name of a kernel): there is none
        `tile.runKernel` takes one argument, an object with `uri` (the address of an open document), `kernel` (the name of a kernel), `scenario` (the number of a scenario, from 1, optional), `device` ("auto", "cpu" or "cuda:N", optional): it is "add"
        `tile.tuneKernel` takes one argument, an object with `uri` (the address of an open document), `kernel` (the name of a kernel), `scenario` (the number of a scenario, from 1, optional): `kernel` is missing
        `tile.runKernel` takes one argument, an object with `uri` (the address of an open document), `kernel` (the name of a kernel), `scenario` (the number of a scenario, from 1, optional), `device` ("auto", "cpu" or "cuda:N", optional): `scenario` is 0, which is not the number of a scenario, from 1
        `tile.viewIr` takes one argument, an object with `uri` (the address of an open document), `kernel` (the name of a kernel), `stage` ("ast", "tile", "gpu", "llvm", "ptx" or "sass", optional), `specialization` (a specialization's index or label, optional): `stage` is "asm", which is not "ast", "tile", "gpu", "llvm", "ptx" or "sass"
        `tile.selectSpecialization` takes one argument, an object with `uri` (the address of an open document), `kernel` (the name of a kernel), `specialization` (a specialization's index or label, optional): `kernel` is 1, which is not the name of a kernel
    "#]]
    .assert_eq(&said);
    client.stop().await;
}
