//! Clients that go too far: bytes that are no messages, requests that make no sense, too much of
//! everything. The server answers with an error or not at all, and goes on.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::client::{Client, without_workers};
use crate::compile::tile;

const URI: &str = "file:///nowhere/kernels.tile";

const KERNEL: &str = "@triton.jit\ndef k(x_ptr, n):\n    at = tl.arange(0, 16)\n    \
                      tl.store(x_ptr + at, tl.load(x_ptr + at) + n)\n";

async fn start() -> Client {
    let mut client = Client::connect(without_workers());
    client.initialize(json!({ "capabilities": {} })).await;
    client
}

fn hover_at(line: u32, character: u32) -> Value {
    let position = json!({ "line": line, "character": character });
    json!({ "textDocument": { "uri": URI }, "position": position })
}

/// The next answer that belongs to no request.
async fn complaint(client: &mut Client) -> Value {
    let message = client.take(|message| message["id"].is_null() && message["error"].is_object());
    message.await["error"].clone()
}

/// Asserts that the server still answers for a text.
async fn still_serves(client: &mut Client) {
    let uri = "file:///nowhere/served.tile";
    client.open(uri, KERNEL).await;
    assert_eq!(client.diagnostics(uri, 1).await, "");
    let at = json!({ "textDocument": { "uri": uri }, "position": { "line": 1, "character": 4 } });
    let hover = client.request("textDocument/hover", at).await.expect("hovers are answered");
    let shown = hover["contents"]["value"].as_str().unwrap_or_default();
    assert!(shown.contains("**k**"), "{hover}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_no_messages_are_complained_of() {
    let mut client = start().await;
    let nested = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let bodies: [(&[u8], i64); 9] = [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff\xfe{}", -32700),
        (b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"\xc3\x28\"}", -32700),
        (nested.as_bytes(), -32700),
        (b"[]", -32600),
        (b"null", -32600),
        (b"{\"jsonrpc\": \"1.0\", \"id\": 5, \"method\": \"shutdown\"}", -32600),
        (b"{\"jsonrpc\": \"2.0\", \"id\": {}, \"method\": \"textDocument/hover\"}", -32600),
    ];
    for (body, code) in bodies {
        let header = format!("Content-Length: {}\r\n\r\n", body.len());
        client.send_raw(&[header.as_bytes(), body].concat()).await;
        let text = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        assert_eq!(complaint(&mut client).await["code"], code, "{text}");
    }
    still_serves(&mut client).await;
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_are_read_leniently_and_skipped_without_a_length() {
    let mut client = start().await;
    let body = json!({ "jsonrpc": "2.0", "id": 77, "method": "tile/unknown" }).to_string();
    let long = format!("X-Padding: {}\r\n", "a".repeat(1 << 20));
    for before in ["", "Content-Length: many\r\n\r\n", "Content-Length: -3\r\n\r\n", "\r\n", &*long]
    {
        let header = format!("{before}content-LENGTH:{}\nContent-Type: x\r\n\r\n", body.len());
        client.send_raw(format!("{header}{body}").as_bytes()).await;
        assert_eq!(client.answer(77).await.unwrap_err()["code"], -32601, "{}", before.len());
    }
    still_serves(&mut client).await;
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_no_sane_length_ends_the_session_with_an_error() {
    let mut client = start().await;
    client.send_raw(b"Content-Length: 18446744073709551615\r\n\r\n{").await;
    assert_eq!(complaint(&mut client).await["code"], -32600);
    assert_eq!(client.receive().await, None, "the rest cannot be told from the next message");
    assert!(!client.hang_up().await, "nobody said shutdown");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_in_a_message_ends_the_session() {
    for bytes in [&b""[..], b"Content-Le", b"Content-Length: 100\r\n\r\n{\"jsonrpc\""] {
        let mut client = start().await;
        client.send_raw(bytes).await;
        assert!(!client.hang_up().await, "nobody said shutdown");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_handshake_is_refused() {
    let mut client = start().await;
    let again = client.request("initialize", json!({ "capabilities": {} })).await;
    assert_eq!(again.unwrap_err()["code"], -32600);
    still_serves(&mut client).await;
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_of_any_kind_are_given_back_and_doubled_ones_answered_once_each() {
    let mut client = start().await;
    client.open(URI, KERNEL).await;
    for id in [json!("a string"), json!(0), json!(-7), json!(9_007_199_254_740_991_i64)] {
        let method = "textDocument/hover";
        let body =
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": hover_at(1, 4) });
        client.send_body(&body.to_string()).await;
        let answer = client.take(|message| message["id"] == id).await;
        assert!(answer["result"]["contents"].is_object(), "{answer}");
    }
    let params = json!({ "query": "" });
    let body =
        json!({ "jsonrpc": "2.0", "id": "twice", "method": "workspace/symbol", "params": params });
    client.send_body(&body.to_string()).await;
    client.send_body(&body.to_string()).await;
    for _ in 0..2 {
        let answer = client.take(|message| message["id"] == "twice").await;
        let refused = answer["error"]["code"] == -32600;
        assert!(refused || answer["result"].is_array(), "{answer}");
    }
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_one_of_many_requests_is_answered_once() {
    let mut client = start().await;
    client.open(URI, KERNEL).await;
    let mut asked = BTreeSet::new();
    for number in 0..2000 {
        let line = number % 5;
        asked.insert(client.send_request("textDocument/hover", hover_at(line, 6)).await);
    }
    while !asked.is_empty() {
        let answer = client.take(|message| message["id"].is_u64()).await;
        assert!(answer["error"].is_null(), "{answer}");
        assert!(asked.remove(&answer["id"].as_u64().unwrap()), "twice: {answer}");
    }
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_requests_end_with_an_answer_each() {
    let mut client = start().await;
    client.open(URI, KERNEL).await;
    for number in 0..200 {
        let id = client.send_request("textDocument/completion", hover_at(3, 8)).await;
        if number % 2 == 0 {
            client.edit(URI, number + 2, [2, 4, 2, 4], "\n    ").await;
        }
        client.notify("$/cancelRequest", json!({ "id": id })).await;
        // It may have been answered before.
        if let Err(error) = client.answer(id).await {
            assert_eq!(error["code"], -32800, "{error}");
        }
    }
    for unknown in [json!({ "id": 123_456 }), json!({ "id": "none" }), json!({}), json!(7)] {
        client.notify("$/cancelRequest", unknown).await;
    }
    still_serves(&mut client).await;
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_that_are_not_open_or_open_twice_confuse_nobody() {
    let mut client = start().await;
    client.edit(URI, 2, [0, 0, 0, 0], "x = (").await;
    for method in ["textDocument/didClose", "textDocument/didSave", "textDocument/willSave"] {
        client.notify(method, json!({ "textDocument": { "uri": URI } })).await;
    }
    assert!(client.request("textDocument/hover", hover_at(0, 0)).await.unwrap().is_null());
    client.open(URI, "x = (\n").await;
    client.open(URI, KERNEL).await;
    let hover = client.request("textDocument/hover", hover_at(1, 4)).await.unwrap();
    assert!(!hover.is_null(), "the text that was opened last counts");
    // Versions tell the client's texts apart; an edit counts whatever its version is.
    client.edit(URI, -5, [0, 0, 0, 0], "y = (\n").await;
    assert!(client.diagnostics(URI, -5).await.contains("syntax/error"));
    for _ in 0..2 {
        client.notify("textDocument/didClose", json!({ "textDocument": { "uri": URI } })).await;
    }
    assert!(client.request("textDocument/hover", hover_at(1, 4)).await.unwrap().is_null());
    still_serves(&mut client).await;
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_ten_megabytes_is_refused_and_one_of_three_is_read() {
    let mut client = start().await;
    client.open(URI, &"x".repeat(10 << 20)).await;
    assert!(client.diagnostics(URI, 1).await.contains("syntax/unreadable"));
    let hover = client.request("textDocument/hover", hover_at(0, 9_000_000)).await.unwrap();
    assert!(hover.is_null(), "{hover}");
    let change = json!({ "text": format!("y = \"{}\"\n{KERNEL}", "é".repeat(3 << 19)) });
    let document = json!({ "uri": URI, "version": 2 });
    let params = json!({ "textDocument": document, "contentChanges": [change] });
    client.notify("textDocument/didChange", params).await;
    assert_eq!(client.diagnostics(URI, 2).await, "");
    let hover = client.request("textDocument/hover", hover_at(2, 4)).await.unwrap();
    assert!(!hover.is_null(), "the kernel below the long line is known");
    client.stop().await;
}

/// What the program says and how it ends when it is told these bytes; `None` where it is not built.
fn told(bytes: &[u8]) -> Option<(String, i32)> {
    let mut child = Command::new(tile()?)
        .arg("lsp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("it has an input");
    // It may end before it has read everything.
    let _ = input.write_all(bytes);
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8(output.stdout).expect("it says text");
    Some((said, output.status.code().expect("no signal ended it")))
}

fn message(body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

#[test]
fn the_program_ends_with_the_status_that_the_protocol_wants() {
    let hello = json!({ "capabilities": {} });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello });
    let shutdown = json!({ "jsonrpc": "2.0", "id": 2, "method": "shutdown" });
    let exit = json!({ "jsonrpc": "2.0", "method": "exit" });
    let polite: Vec<u8> = [&hello, &shutdown, &exit].into_iter().flat_map(message).collect();
    let Some((said, status)) = told(&polite) else { return };
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("\"result\":null"), "{said}");
    let abrupt: Vec<u8> = [&hello, &exit].into_iter().flat_map(message).collect();
    for bytes in [&abrupt[..], &message(&exit), b"", b"\x00\xff\x00", b"GET / HTTP/1.1\r\n\r\n"] {
        let (said, status) = told(bytes).expect("it was there before");
        assert_eq!(status, 1, "{}: {said}", String::from_utf8_lossy(bytes));
    }
}
