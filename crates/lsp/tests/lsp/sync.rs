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

/// Every line end, tabs, a byte order mark, and characters of every width before a name.
const MIXED: &str = "\u{feff}@triton.jit\r\ndef k(x):\r\n\ttl.store(x, 1)  # né 日本 😀\r\n\t\
                     y = '日本😀' + undefined  # 😀\n";

#[tokio::test(flavor = "multi_thread")]
async fn places_are_right_in_every_encoding_and_line_end() {
    for (encoding, column) in [("utf-8", 20), ("utf-16", 14), ("utf-32", 13)] {
        let capabilities = json!({ "general": { "positionEncodings": [encoding] } });
        let mut client = Client::start(capabilities).await;
        client.open(URI, MIXED).await;
        let found = client.diagnostics(URI, 1).await;
        let place = format!("3:{column}-3:{} 1 name/undefined", column + 9);
        assert!(found.contains(&place), "{encoding}: {found}");
        client.edit(URI, 2, [3, column, 3, column + 9], "x").await;
        let found = client.diagnostics(URI, 2).await;
        assert!(!found.contains("name/undefined"), "{encoding}: {found}");
        let position = json!({ "line": 3, "character": column });
        let params = json!({ "textDocument": { "uri": URI }, "position": position });
        let hover = client.request("textDocument/hover", params).await.unwrap();
        assert_eq!(hover["range"]["start"]["character"], column, "{encoding}: {hover}");
        client.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_python_in_cells_of_notebooks_is_no_error() {
    let mut client = Client::start(json!({})).await;
    let uri = "vscode-notebook-cell:/work/notebook.ipynb#W0sZmlsZQ";
    let cell = "\
%%time
!pip install triton
import triton

@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, 1.0)
    %who
    tl.store(x_ptr, )x
";
    client.open(uri, cell).await;
    let found = client.diagnostics(uri, 1).await;
    assert!(found.starts_with("8:") && found.contains("syntax/"), "{found}");
    assert_eq!(found.lines().count(), 1, "{found}");
    client.edit(uri, 2, [8, 0, 9, 0], "").await;
    assert_eq!(client.diagnostics(uri, 2).await, "");
    // The line is Python's again.
    client.edit(uri, 3, [1, 0, 1, 1], "").await;
    assert!(client.diagnostics(uri, 3).await.starts_with("1:"), "`pip install` is no statement");
    client.stop().await;
}
