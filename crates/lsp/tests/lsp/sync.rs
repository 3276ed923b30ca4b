//! Documents, positions and diagnostics as they change.

use serde_json::{Value, json};

use crate::client::{Client, example};

const URI: &str = "file:///nowhere/kernels.tile";

#[tokio::test(flavor = "multi_thread")]
async fn an_error_appears_and_goes_with_the_edits() {
    let mut client = Client::start(json!({})).await;
    let (uri, text) = example("vector_add.py");
    client.open(&uri, &text).await;
    let line = text.lines().position(|line| line.contains("tl.program_id")).unwrap() as u32;
    client.edit(&uri, 2, [line, 4, line, 4], "broken = (\n    ").await;
    assert!(client.diagnostics(&uri, 2).await.contains("syntax/"));
    client.edit(&uri, 3, [line, 4, line + 1, 4], "").await;
    assert_eq!(client.diagnostics(&uri, 3).await, "");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_apply_in_order_and_in_the_negotiated_encoding() {
    for encoding in ["utf-8", "utf-16", "utf-32"] {
        let capabilities = json!({ "general": { "positionEncodings": [encoding] } });
        let mut client = Client::start(capabilities).await;
        client.open(URI, "x = '日本😀' \n").await;
        let column = match encoding {
            "utf-8" => 5 + 10,
            "utf-16" => 5 + 4,
            _ => 5 + 3,
        };
        // Each edit stands on the one before it.
        client.edit(URI, 2, [0, column, 0, column + 1], "").await;
        client.edit(URI, 3, [0, column, 0, column], "").await;
        let found = client.diagnostics(URI, 3).await;
        assert!(found.contains("syntax/"), "{encoding}: {found}");
        client.edit(URI, 4, [0, column, 0, column], "'").await;
        assert_eq!(client.diagnostics(URI, 4).await, "");
        client.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_pulls_is_not_pushed_to() {
    let capabilities = json!({ "textDocument": { "diagnostic": {} } });
    let mut client = Client::start(capabilities).await;
    client.open(URI, "x = (\n").await;
    let params = json!({ "textDocument": { "uri": URI } });
    let report = client.request("textDocument/diagnostic", params).await.unwrap();
    assert_eq!(report["kind"], "full");
    assert_eq!(report["items"].as_array().unwrap().len(), 1, "{report}");
    let params = json!({
        "textDocument": { "uri": URI },
        "previousResultId": report["resultId"],
    });
    let report = client.request("textDocument/diagnostic", params).await.unwrap();
    assert_eq!(report["kind"], "unchanged");
    assert_eq!(report["items"], Value::Null);
    client.stop().await;
}
