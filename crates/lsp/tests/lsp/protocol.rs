//! Clients that break the rules, and ends of sessions.

use serde_json::{Value, json};
use tile_lsp::Options;

use crate::client::Client;

const URI: &str = "file:///nowhere/kernels.tile";

#[tokio::test(flavor = "multi_thread")]
async fn requests_before_initialize_are_refused() {
    let mut client = Client::connect(Options::default());
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
    let error = client.request("textDocument/unknown", json!({})).await.unwrap_err();
    assert_eq!(error["code"], -32601);
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
