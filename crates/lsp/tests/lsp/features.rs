//! Editor features on one small file; `$0` marks the cursor.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::client::{Client, range_text, without_workers};

const URI: &str = "file:///nowhere/kernels.tile";

const TEXT: &str = "\
SCALE = tl.constexpr(2)

@triton.jit
def double(v):
    return v * SCALE

@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    y = double(x)
    tl.store(out_ptr + offsets, y, mask=offsets < n)

# tile: x, out = randn(1000), empty(1000)
# tile: copy_kernel[(cdiv(1000, 128),)](x, out, 1000, BLOCK=128)
# tile: assert allclose(out, 2 * x)
";

/// Opens the text with `marked` (which holds `$0`) in place of `plain`; the cursor's position.
async fn at(plain: &str, marked: &str) -> (Client, Value) {
    let text = TEXT.replacen(plain, marked, 1);
    let cursor = text.find("$0").expect("a cursor");
    let text = text.replacen("$0", "", 1);
    let line = text[..cursor].matches('\n').count();
    let character = cursor - text[..cursor].rfind('\n').map_or(0, |newline| newline + 1);
    let mut client = Client::start(json!({})).await;
    client.open(URI, &text).await;
    let position = json!({ "line": line, "character": character });
    (client, json!({ "textDocument": { "uri": URI }, "position": position }))
}

async fn ask(method: &str, plain: &str, marked: &str) -> Value {
    let (mut client, params) = at(plain, marked).await;
    let answer = client.request(method, params).await.expect("the request succeeds");
    client.stop().await;
    answer
}

async fn check_hover(plain: &str, marked: &str, expected: Expect) {
    let hover = ask("textDocument/hover", plain, marked).await;
    let text = hover["contents"]["value"].as_str().unwrap_or("nothing");
    let mut out = String::new();
    for line in text.lines() {
        let _ = writeln!(out, "{}", line.trim_end());
    }
    expected.assert_eq(&out);
}

fn ranges(list: &Value) -> String {
    let items = list.as_array().expect("a list").iter();
    let mut texts: Vec<String> = items.map(|item| range_text(&item["range"])).collect();
    texts.sort();
    texts.join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn hovers_show_types_values_and_kernels() {
    check_hover(
        "    x = tl.load",
        "    x$0 = tl.load",
        expect![[r#"
            ```python
            x: tile<128 x fp32>
            ```

            For every specialization: `tile<BLOCK x ?>`.
        "#]],
    )
    .await;
    check_hover(
        "def copy_kernel",
        "def copy_$0kernel",
        expect![[r#"
            **copy_kernel** — `x_ptr: *fp32, out_ptr: *fp32, n: i32, BLOCK=128` (scenario)

            Compiled for, from the scenario in line 15:

            - `x_ptr`, `out_ptr`: pointer to float32, address divisible by 16
            - `n`: int32
            - `BLOCK`: constexpr `128`

            Other arguments compile it anew: `x_ptr`, `out_ptr` (another element type, or an address that is not divisible by 16); `n` (a value divisible by 16, equal to 1, or beyond 32 bits); `BLOCK` (another value).
        "#]],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hovers_of_parameters_tell_what_compiles_anew() {
    for (plain, marked) in [
        ("copy_kernel(x_ptr,", "copy_kernel(x_$0ptr,"),
        ("out_ptr, n,", "out_ptr, n$0,"),
        ("BLOCK: tl.constexpr", "BLO$0CK: tl.constexpr"),
    ] {
        let hover = ask("textDocument/hover", plain, marked).await;
        let text = hover["contents"]["value"].as_str().unwrap_or("nothing");
        assert!(text.contains("Compiled for: "), "{text}");
        assert!(text.contains("(from the scenario in line "), "{text}");
        assert!(text.contains(" compiles anew."), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hovers_tell_of_attributes_that_are_not_evaluated() {
    check_hover(
        "y = double(x)",
        "y = double(x) if True or x is tl.float$064 else x",
        expect![[r#"
            ```python
            tl.float64: dtype
            ```

            An element type of 64 bits.
        "#]],
    )
    .await;
    check_hover(
        "y = double(x)",
        "y = double(unknown(x).T$0)",
        expect![[r#"
            ```python
            x.T
            ```

            It is the tile with its two axes exchanged.
        "#]],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hovers_document_the_language() {
    let hover = ask("textDocument/hover", "tl.arange", "tl.ar$0ange").await;
    let text = hover["contents"]["value"].as_str().unwrap();
    assert!(text.starts_with("```python\ntl.arange("), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hovers_tell_where_modules_come_from() {
    let hover = ask("textDocument/hover", "tl.load", "t$0l.load").await;
    let text = hover["contents"]["value"].as_str().unwrap();
    assert!(text.starts_with("```python\nmodule triton.language\n```"), "{text}");
    assert!(text.contains(" members are known, as Triton "), "{text}");
    assert!(text.contains("Triton is not installed in this environment."), "{text}");
    assert!(text.contains("(https://triton-lang.org/"), "{text}");
    assert_eq!(
        hover["range"],
        json!({
            "start": { "line": 9, "character": 8 }, "end": { "line": 9, "character": 10 },
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn hovers_say_what_is_left_out() {
    let excluded = "if BLOCK > 128:\n        y = y$0 + x\n    tl.store(";
    let hover = ask("textDocument/hover", "tl.store(", excluded).await;
    let text = hover["contents"]["value"].as_str().unwrap();
    assert!(text.contains("y: tile<BLOCK x ?>"), "what holds for every specialization: {text}");
    assert!(
        text.ends_with("Not compiled: `copy_kernel` leaves this out with BLOCK=128."),
        "{text}"
    );
    let kept = "if BLOCK > 127:\n        y = y$0 + x\n    tl.store(";
    let hover = ask("textDocument/hover", "tl.store(", kept).await;
    let text = hover["contents"]["value"].as_str().unwrap();
    assert!(text.contains("y: tile<128 x fp32>") && !text.contains("Not compiled"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn modules_of_the_language_keep_their_names() {
    let (mut client, mut params) = at("tl.load", "t$0l.load").await;
    params["newName"] = json!("other");
    let error = client.request("textDocument/rename", params.clone()).await.unwrap_err();
    assert_eq!(error["message"], "this name belongs to the language");
    params["context"] = json!({ "includeDeclaration": true });
    let found = client.request("textDocument/references", params).await.unwrap();
    assert_eq!(found.as_array().unwrap().len(), 6, "{found}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_and_references_follow_meaning() {
    let found = ask("textDocument/definition", "double(x)", "dou$0ble(x)").await;
    assert_eq!(range_text(&found["range"]), "3:4-3:10");
    let found = ask("textDocument/definition", "BLOCK=128", "BLO$0CK=128").await;
    assert_eq!(range_text(&found["range"]), "7:35-7:40");
    let (mut client, mut params) = at("BLOCK: tl", "BLO$0CK: tl").await;
    params["context"] = json!({ "includeDeclaration": true });
    let found = client.request("textDocument/references", params).await.unwrap();
    assert_eq!(ranges(&found), "14:54-14:59 7:35-7:40 8:33-8:38 8:54-8:59");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_change_where_they_mean_the_same() {
    let (mut client, mut params) = at("return v", "return $0v").await;
    params["newName"] = json!("value");
    let edit = client.request("textDocument/rename", params.clone()).await.unwrap();
    assert_eq!(ranges(&edit["changes"][URI]), "3:11-3:12 4:11-4:12");
    params["newName"] = json!("for");
    let error = client.request("textDocument/rename", params).await.unwrap_err();
    assert_eq!(error["code"], -32803);
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_taken_are_refused() {
    let refused = async |plain: &str, marked: &str, name: &str| {
        let (mut client, mut params) = at(plain, marked).await;
        params["newName"] = json!(name);
        let answer = client.request("textDocument/rename", params).await;
        client.stop().await;
        answer.err().map(|error| error["message"].as_str().unwrap_or_default().to_owned())
    };
    let local = refused("y = double", "$0y = double", "offsets").await;
    assert_eq!(local.as_deref(), Some("`copy_kernel` has a `offsets` already"));
    let item = refused("def double", "def $0double", "copy_kernel").await;
    assert_eq!(item.as_deref(), Some("`kernels.tile` defines a `copy_kernel` already"));
    assert_eq!(refused("y = double", "$0y = double", "y").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_come_in_the_order_of_use() {
    let order = async |plain: &str, marked: &str| {
        let answer = ask("textDocument/completion", plain, marked).await;
        let text = |item: &Value, key: &str| item[key].as_str().unwrap().to_owned();
        let items = answer.as_array().unwrap().iter();
        let mut items: Vec<(String, String)> =
            items.map(|item| (text(item, "sortText"), text(item, "label"))).collect();
        items.sort();
        items.into_iter().map(|(_, label)| label).collect::<Vec<_>>()
    };
    let keywords = order("mask=offsets < n)\n    y", "$0)\n    y").await;
    let expected = ["mask=", "other=", "cache_modifier=", "eviction_policy=", "volatile="];
    assert_eq!(keywords[..5], expected, "as parameters do");
    let members = order("y = double(x)", "y = tl.$0").await;
    let place = |wanted: &str| members.iter().position(|name| name == wanted).unwrap();
    assert!(place("load") < place("_sum_combine"), "what is private comes last");
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_know_members_keywords_and_locals() {
    let labels = |answer: &Value| -> Vec<String> {
        let items = answer.as_array().expect("a list").iter();
        items.map(|item| item["label"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let members = ask("textDocument/completion", "y = double(x)", "y = tl.$0").await;
    let found = labels(&members);
    assert!(["load", "float32", "math"].iter().all(|name| found.contains(&(*name).to_owned())));
    let names = ask("textDocument/completion", "mask=offsets < n)\n    y", "$0)\n    y").await;
    let found = labels(&names);
    assert!(["mask=", "other=", "offsets", "double"].iter().all(|n| found.contains(&(*n).into())));
    assert!(!found.contains(&"pointer=".to_owned()), "it is given already");
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_offer_words_of_python() {
    let words = async |plain: &str, marked: &str| {
        let answer = ask("textDocument/completion", plain, marked).await;
        let items = answer.as_array().expect("a list").iter();
        let words = items.filter(|item| item["kind"] == 14);
        words.map(|item| item["label"].as_str().unwrap_or_default()).collect::<Vec<_>>().join(" ")
    };
    let value = words("y = double(x)", "y = $0").await;
    assert_eq!(value, "None True False and or not if else for in is");
    let argument = words("mask=offsets < n)\n    y", "other=$0)\n    y").await;
    assert_eq!(argument, value);
    let statement = words("y = double(x)", "$0").await;
    assert_eq!(statement, "if elif else for while return assert pass");
    let scenario = words("assert allclose(out, 2 * x)", "$0").await;
    assert!(scenario.ends_with(" assert lambda"), "{scenario}");
}

/// Labels of completions in order, and what the first of them writes where.
async fn first_completions(plain: &str, marked: &str, count: usize) -> String {
    let answer = ask("textDocument/completion", plain, marked).await;
    let text = |item: &Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
    let mut items = answer.as_array().expect("a list").clone();
    items.sort_by_key(|item| text(item, "sortText"));
    let edit = items.first().map(|item| {
        let edit = &item["textEdit"];
        format!("{} {}", range_text(&edit["range"]), edit["newText"])
    });
    let shown = items.iter().take(count).map(|item| match text(item, "detail") {
        none if none.is_empty() => format!("{}\n", text(item, "label")),
        detail => format!("{} - {detail}\n", text(item, "label")),
    });
    format!("{}{}\n", shown.collect::<String>(), edit.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_offer_what_options_may_say() {
    let unquoted = "mask=offsets < n, cache_modifier=$0)\n    y";
    expect![[r#"
        ".ca" - Cached at all levels.
        ".cg" - Cached in L2, not in L1.
        ".cv" - Fetched anew: not cached, since others may write it.
        ".cs" - Cached as data that is read once.
        "" - As the hardware does by itself.
        BLOCK - constexpr
        9:66-9:66 "\".ca\""
    "#]]
    .assert_eq(&first_completions("mask=offsets < n)\n    y", unquoted, 6).await);
    let quoted = "mask=offsets < n, eviction_policy='ev$0')\n    y";
    expect![[r#"
        evict_normal - As other data.
        evict_first - Leaves the cache before other data.
        evict_last - Leaves the cache after other data.
        9:68-9:70 "evict_normal"
    "#]]
    .assert_eq(&first_completions("mask=offsets < n)\n    y", quoted, 9).await);
    let after_dot = "mask=offsets < n, cache_modifier=\".c$0\")\n    y";
    expect![[r#"
        .ca - Cached at all levels.
        .cg - Cached in L2, not in L1.
        .cv - Fetched anew: not cached, since others may write it.
        .cs - Cached as data that is read once.
        9:67-9:69 ".ca"
    "#]]
    .assert_eq(&first_completions("mask=offsets < n)\n    y", after_dot, 9).await);
    for (call, first) in [
        ("tl.dot(x, x, input_precision='$0')", "tf32 - "),
        ("tl.atomic_add(out_ptr, 1, sem='$0')", "acq_rel - "),
        ("tl.atomic_add(out_ptr, 1, scope='$0')", "gpu - "),
        ("x.to(tl.float16, fp_downcast_rounding='$0')", "rtne - "),
        ("tl.make_tensor_descriptor(x_ptr, [n], [1], [16], padding_option='$0')", "zero - "),
    ] {
        let found = first_completions("y = double(x)", &format!("y = {call}"), 1).await;
        assert!(found.starts_with(first), "{call}: {found}");
    }
    let comment = ask("textDocument/completion", "y = double(x)", "y = 1  # sem='$0'").await;
    assert_eq!(comment, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_of_element_types_come_first_where_one_is_expected() {
    for call in ["x.to($0)", "tl.zeros((4,), dtype=$0)", "tl.dot(x, x, out_dtype=$0)"] {
        let found = first_completions("y = double(x)", &format!("y = {call}"), 1).await;
        assert!(found.starts_with("tl.bfloat16\n"), "{call}: {found}");
    }
    let members = first_completions("y = double(x)", "y = x.to(tl.$0)", 3).await;
    expect![[r#"
        bfloat16
        float16
        float32
        10:16-10:16 "bfloat16"
    "#]]
    .assert_eq(&members);
    let elsewhere = first_completions("y = double(x)", "y = x.sum(tl.$0)", 1).await;
    assert!(!elsewhere.starts_with("bfloat16"), "{elsewhere}");
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_are_shown_as_methods() {
    let methods = ask("textDocument/completion", "y = double(x)", "y = x.$0").await;
    let to = methods.as_array().unwrap().iter().find(|item| item["label"] == "to").unwrap();
    assert!(to["detail"].as_str().unwrap().starts_with("x.to(dtype: constexpr, "), "{to}");
    let keywords = first_completions("y = double(x)", "y = x.sum($0)", 3).await;
    assert!(keywords.starts_with("axis= - default None\n"), "{keywords}");
    let help = ask("textDocument/signatureHelp", "y = double(x)", "y = x.to($0)").await;
    let label = help["signatures"][0]["label"].as_str().unwrap();
    assert!(label.starts_with("x.to(dtype, "), "{label}");
    let hover = ask("textDocument/hover", "y = double(x)", "y = x.su$0m(0)").await;
    let text = hover["contents"]["value"].as_str().unwrap();
    assert!(text.starts_with("```python\nx.sum(axis: constexpr = None, "), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn signatures_mark_the_argument() {
    let help =
        ask("textDocument/signatureHelp", "mask=offsets < n)\n    y", "mask=$0)\n    y").await;
    let signature = &help["signatures"][0];
    let active = help["activeParameter"].as_u64().unwrap() as usize;
    assert!(signature["label"].as_str().unwrap().starts_with("tl.load("), "{signature}");
    assert_eq!(signature["parameters"][active]["label"], "mask=None");
    // Only keywords can follow keywords.
    let help =
        ask("textDocument/signatureHelp", "mask=offsets < n)", "mask=offsets < n, $0)").await;
    let active = help["activeParameter"].as_u64().unwrap() as usize;
    assert_eq!(help["signatures"][0]["parameters"][active]["label"], "other=None");
}

#[tokio::test(flavor = "multi_thread")]
async fn hints_show_shapes_and_constexprs() {
    let (mut client, mut params) = at("constexpr(2)", "constexpr(2)$0").await;
    params["range"] = json!({
        "start": { "line": 0, "character": 0 }, "end": { "line": 99, "character": 0 },
    });
    let hints = client.request("textDocument/inlayHint", params).await.unwrap();
    let hints = hints.as_array().unwrap().iter();
    let shown: Vec<String> = hints
        .map(|hint| format!("{} {}", hint["position"]["line"], hint["label"].as_str().unwrap()))
        .collect();
    expect![[r#"
        7  = 128
        8 : tile<128 x int32>
        8 start:
        9 : tile<128 x fp32>
        10 : tile<128 x fp32>"#]]
    .assert_eq(&shown.join("\n"));
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hints_say_nothing_of_what_an_error_left_unknown() {
    let text = "@triton.jit\ndef k(x):\n    a = tl.zeros((4, 8), tl.float32)\n    \
                b = a + tl.zeros((4, 16), tl.float32)\n    c = b + 1\n    tl.store(x, c)\n";
    let mut client = Client::start(json!({})).await;
    client.open(URI, text).await;
    assert!(client.diagnostics(URI, 1).await.contains("shape/"));
    let end = json!({ "line": 9, "character": 0 });
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": end });
    let params = json!({ "textDocument": { "uri": URI }, "range": range });
    let hints = client.request("textDocument/inlayHint", params).await.unwrap();
    let labels = hints.as_array().unwrap().iter().map(|hint| hint["label"].as_str().unwrap());
    let vague: Vec<&str> = labels.filter(|label| label.contains('?')).collect();
    assert!(vague.is_empty(), "{vague:?}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fixes_and_run_actions_are_offered() {
    let (mut client, mut params) = at("double(x)", "doubel$0(x)").await;
    let here = params["position"].clone();
    params["range"] = json!({ "start": here, "end": here });
    params["context"] = json!({ "diagnostics": [] });
    let actions = client.request("textDocument/codeAction", params).await.unwrap();
    let titles: Vec<&str> =
        actions.as_array().unwrap().iter().map(|a| a["title"].as_str().unwrap()).collect();
    assert!(titles.iter().any(|title| title.contains("double")), "{titles:?}");
    assert!(titles.contains(&"▶ Run copy_kernel"), "{titles:?}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kernels_lenses_and_outline_agree() {
    let (mut client, params) = at("constexpr(2)", "constexpr(2)$0").await;
    let kernels = client.request("tile/kernels", params.clone()).await.unwrap();
    assert_eq!(kernels.as_array().unwrap().len(), 1);
    let only = &kernels[0]["specializations"][0];
    assert_eq!(only["label"], "*fp32, *fp32, i32, BLOCK=128");
    assert_eq!((&only["origin"], &only["active"]), (&json!("scenario"), &json!(true)));
    let lenses = client.request("textDocument/codeLens", params.clone()).await.unwrap();
    let runs = lenses.as_array().unwrap().iter().filter(|l| l["command"]["title"] == "▶ Run");
    let arguments: Vec<&Value> = runs.map(|lens| &lens["command"]["arguments"][0]).collect();
    assert_eq!(arguments.len(), 2, "the kernel's and the scenario's");
    assert_eq!(arguments[1]["scenario"], 1);
    let symbols = client.request("textDocument/documentSymbol", params.clone()).await.unwrap();
    let names: Vec<&str> =
        symbols.as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["SCALE", "double", "copy_kernel", "copy_kernel#1"]);
    let tokens = client.request("textDocument/semanticTokens/full", params).await.unwrap();
    assert!(tokens["data"].as_array().unwrap().len() > 5 * 20);
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_python_is_left_to_others() {
    let uri = "file:///nowhere/plain.py";
    let mut client = Client::start(json!({})).await;
    client.open(uri, "def f(:\n    return undefined\n").await;
    assert_eq!(client.diagnostics(uri, 1).await, "");
    let params = json!({ "textDocument": { "uri": uri } });
    let symbols = client.request("textDocument/documentSymbol", params.clone()).await.unwrap();
    assert_eq!(symbols, json!([]));
    let lenses = client.request("textDocument/codeLens", params).await.unwrap();
    assert_eq!(lenses, json!([]));
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_of_values_in_host_code_are_left_to_others() {
    let text = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n\
                def copy(x_ptr, y_ptr):\n    tl.store(y_ptr, tl.load(x_ptr).to(tl.float32))\n\n\n\
                def run(x, y):\n    copy[(1,)](x.to(\"cuda\"), y)\n\n\n\
                # tile: x = zeros(1)\n# tile: copy[(1,)](x, x.to(fp16))\n";
    let mut client = Client::start(json!({})).await;
    client.open(URI, text).await;
    let at = |line: u32, character: u32| {
        let position = json!({ "line": line, "character": character });
        let context = json!({ "includeDeclaration": true });
        json!({ "textDocument": { "uri": URI }, "position": position, "context": context })
    };
    let host = client.request("textDocument/hover", at(10, 18)).await.unwrap();
    assert_eq!(host, Value::Null);
    let kernel = client.request("textDocument/hover", at(6, 36)).await.unwrap();
    assert!(kernel["contents"]["value"].as_str().unwrap().contains("dtype"), "{kernel}");
    let scenario = client.request("textDocument/hover", at(14, 24)).await.unwrap();
    assert!(scenario["contents"]["value"].is_string(), "{scenario}");
    let uses = client.request("textDocument/references", at(6, 36)).await.unwrap();
    let lines: Vec<_> =
        uses.as_array().unwrap().iter().map(|at| &at["range"]["start"]["line"]).collect();
    assert_eq!(lines, [6, 14]);
    client.stop().await;
}

/// Tokens as `line:column length type[modifiers]`.
fn token_lines(data: &Value) -> Vec<String> {
    let types = ["namespace", "function", "parameter", "variable", "class"];
    let modifiers = ["readonly", "library", "constexpr", "scalar", "tile", "pointer"];
    let numbers: Vec<usize> = serde_json::from_value(data.clone()).expect("tokens are numbers");
    let (mut line, mut column) = (0, 0);
    let mut out = Vec::new();
    for token in numbers.chunks(5) {
        column = if token[0] == 0 { column + token[1] } else { token[1] };
        line += token[0];
        let set = modifiers.iter().enumerate().filter(|(bit, _)| token[4] >> bit & 1 == 1);
        let set: Vec<&str> = set.map(|(_, name)| *name).collect();
        out.push(format!("{line}:{column} {} {}", types[token[3]], set.join(" ")));
    }
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_tell_values_apart_and_follow_edits() {
    let (mut client, params) = at("constexpr(2)", "constexpr(2)$0").await;
    let full = client.request("textDocument/semanticTokens/full", params.clone()).await.unwrap();
    let lines = token_lines(&full["data"]);
    let of_line: Vec<&String> = lines.iter().filter(|line| line.starts_with("9:")).collect();
    expect![[r#"
        [
            "9:4 variable tile",
            "9:8 namespace ",
            "9:11 function library",
            "9:16 parameter pointer",
            "9:24 variable tile",
            "9:33 parameter ",
            "9:38 variable tile",
            "9:48 parameter scalar",
        ]
    "#]]
    .assert_debug_eq(&of_line);
    client.edit(URI, 2, [0, 0, 0, 0], "\n").await;
    let mut again = params.clone();
    again["previousResultId"] = full["resultId"].clone();
    let method = "textDocument/semanticTokens/full/delta";
    let delta = client.request(method, again.clone()).await.unwrap();
    assert_eq!(delta["edits"].as_array().unwrap().len(), 1, "{delta}");
    let edit = &delta["edits"][0];
    assert_eq!(edit["deleteCount"], 5, "only the first token moved: {edit}");
    let again_full = client.request(method, again).await.unwrap();
    assert!(again_full["data"].is_array(), "an older result is not known any more");
    client.stop().await;
}

/// Titles of the code actions at `$0`, and the texts that the edits of those with `part` in their
/// title make.
async fn actions(plain: &str, marked: &str, only: Value, part: &str) -> (Vec<String>, Vec<String>) {
    let (mut client, mut params) = at(plain, marked).await;
    let here = params["position"].clone();
    params["range"] = json!({ "start": here, "end": here });
    params["context"] = json!({ "diagnostics": [], "only": only });
    let actions = client.request("textDocument/codeAction", params).await.expect("actions");
    let actions: Vec<Value> = serde_json::from_value(actions).expect("a list");
    let title = |action: &Value| action["title"].as_str().unwrap_or_default().to_owned();
    let changed = actions.iter().filter(|action| title(action).contains(part));
    let texts = changed.flat_map(|action| {
        let edits = action["edit"]["changes"][URI].as_array().cloned().unwrap_or_default();
        edits.into_iter().map(|edit| {
            format!(
                "{} {}",
                range_text(&edit["range"]),
                edit["newText"].as_str().unwrap_or_default()
            )
        })
    });
    let found = (actions.iter().map(title).collect(), texts.collect());
    client.stop().await;
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn annotations_masks_and_scenarios_can_be_added() {
    let (titles, edits) =
        actions("def double(v)", "def double(v$0)", json!(null), "Annotate").await;
    assert_eq!(titles, ["Annotate `v` with `tl.constexpr`"]);
    assert_eq!(edits, ["3:12-3:12 : tl.constexpr"]);
    let plain = "tl.load(x_ptr + offsets, mask=offsets < n)";
    let (_, edits) = actions(plain, "tl.load(x_ptr$0 + offsets)", json!(null), "Add mask").await;
    assert_eq!(edits, ["9:31-9:31 , mask=offsets < n, other=0.0"]);
    let scenario = TEXT.find("\n# tile").map(|at| &TEXT[at..]).unwrap();
    let plain = format!("mask=offsets < n)\n{scenario}");
    let (titles, edits) =
        actions(&plain, "mask=offsets$0 < n)\n", json!(["refactor"]), "scenario").await;
    assert_eq!(titles, ["Add a scenario that launches `copy_kernel`"]);
    expect![[r#"
        11:52-11:52 

        # tile: x_ptr = randn(1048576)
        # tile: out_ptr = empty(1048576)
        # tile: n = 1024
        # tile: copy_kernel[(1,)](x_ptr, out_ptr, n, BLOCK=1024)"#]]
    .assert_eq(&edits.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_fixes_are_made_at_once() {
    let (titles, edits) = actions(
        "y = double(x)",
        "y = doubel(x) + doubel(offsetz)$0",
        json!(["source.fixAll"]),
        "Fix all",
    )
    .await;
    assert_eq!(titles, ["Fix all that Tile can fix"]);
    assert_eq!(edits.len(), 3, "{edits:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_know_snippets_scenarios_and_launches() {
    let item = json!({ "snippetSupport": true });
    let capabilities = json!({ "textDocument": { "completion": { "completionItem": item } } });
    let mut client = Client::start(capabilities).await;
    let mut version = 1;
    client.open(URI, TEXT).await;
    let mut ask = async |marked: &str| -> Vec<Value> {
        let text = format!("{TEXT}{marked}");
        let cursor = text.find("$0").unwrap();
        let plain = text.replacen("$0", "", 1);
        version += 1;
        client.edit(URI, version, [0, 0, 999, 0], &plain).await;
        let line = text[..cursor].matches('\n').count();
        let character = cursor - text[..cursor].rfind('\n').unwrap() - 1;
        let position = json!({ "line": line, "character": character });
        let params = json!({ "textDocument": { "uri": URI }, "position": position });
        let items = client.request("textDocument/completion", params).await.unwrap();
        serde_json::from_value(items).unwrap()
    };
    let labels = |items: &[Value]| -> Vec<String> {
        items.iter().map(|item| item["label"].as_str().unwrap().to_owned()).collect()
    };
    let has = |items: &[Value], names: &[&str]| {
        let found = labels(items);
        for name in names {
            assert!(found.contains(&(*name).to_owned()), "{name} is not among {found:?}");
        }
    };
    let items = ask("\nker$0").await;
    has(&items, &["kernel"]);
    let kernel = items.iter().find(|item| item["label"] == "kernel").unwrap();
    assert_eq!(kernel["insertTextFormat"], 2);
    has(&ask("\n@triton.jit\ndef f(x):\n    d$0\n").await, &["masked load", "reduction loop"]);
    let typed = ask("\n@triton.jit\ndef f(x):\n    Red$0\n").await;
    has(&typed, &["reduction loop"]);
    assert!(!labels(&typed).contains(&"masked load".to_owned()), "it has no `r`");
    has(&ask("# tile: y = d$0\n").await, &["randn", "cdiv", "load"]);
    has(&ask("\ndef run(x):\n    copy_kernel[(1,)](x, $0)\n").await, &["num_warps=", "BLOCK="]);
    let grid = "\ndef run(x):\n    copy_kernel[lambda meta: (meta[\"$0\"],)](x)\n";
    assert_eq!(labels(&ask(grid).await), ["BLOCK"]);
    let config = "\n@triton.autotune(configs=[triton.Config({\"$0\": 1})], key=[])\n@triton.jit\n\
                  def g(x, SIZE: tl.constexpr):\n    pass\n";
    assert_eq!(labels(&ask(config).await), ["SIZE"]);
    let items = ask("\n@triton.jit\ndef f(x):\n    tl.loa$0\n").await;
    let load = items.iter().find(|item| item["label"] == "load").unwrap();
    assert!(load["documentation"].is_null(), "it waits");
    let load = client.request("completionItem/resolve", load.clone()).await.unwrap();
    assert!(load["documentation"]["value"].as_str().unwrap().len() > 20, "{load}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_specialization_can_be_made_the_active_one() {
    let configs = (0..12).map(|power| format!("triton.Config({{\"BLOCK\": {}}})", 16 << power));
    let tuned = format!(
        "@triton.autotune(configs=[{}], key=[])\n@triton.jit\n\
         def tuned_kernel(x_ptr, BLOCK: tl.constexpr):\n    \
         tl.store(x_ptr + tl.arange(0, BLOCK), tl.zeros((BLOCK,), tl.float32))\n",
        configs.collect::<Vec<_>>().join(", ")
    );
    let mut client = Client::start(json!({})).await;
    client.open(URI, &tuned).await;
    let of = json!({ "textDocument": { "uri": URI } });
    let kernels = client.request("tile/kernels", of.clone()).await.unwrap();
    let all = kernels[0]["specializations"].as_array().unwrap().len();
    assert_eq!(all, 12, "{kernels}");
    let argument = json!({ "uri": URI, "kernel": "tuned_kernel", "specialization": 11 });
    let params = json!({ "command": "tile.selectSpecialization", "arguments": [argument] });
    let chosen = client.request("workspace/executeCommand", params).await.unwrap();
    assert_eq!(chosen["specializations"][11]["active"], true, "{chosen}");
    let position = json!({ "line": 3, "character": 35 });
    let params = json!({ "textDocument": { "uri": URI }, "position": position });
    let hover = client.request("textDocument/hover", params).await.unwrap();
    assert!(hover.to_string().contains("32768"), "{hover}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signatures_show_annotations_defaults_launches_and_scenarios() {
    let help = async |plain: &str, marked: &str| {
        let help = ask("textDocument/signatureHelp", plain, marked).await;
        let signature = &help["signatures"][0];
        let active = help["activeParameter"].as_u64().map(|active| active as usize);
        let active = active.map(|active| signature["parameters"][active]["label"].to_string());
        format!("{} @ {}\n", signature["label"].as_str().unwrap(), active.unwrap_or_default())
    };
    let mut out = help("double(x)\n", "double($0x)\n").await;
    out += &help("# tile: assert", "# tile: copy_kernel[(8,)](x, out, 10$0)\n# tile: assert").await;
    out += &help("randn(1000)", "randn(1000, 2$0)").await;
    out += &help("randn(1000)", "randn(1000, seed=$0)").await;
    out += &help("tl.arange(0, BLOCK)", "tl.arange(0, $0BLOCK)").await;
    expect![[r#"
        double(v) @ "v"
        copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr) @ "n"
        randn(*shape, dtype=float32, seed=0) @ "*shape"
        randn(*shape, dtype=float32, seed=0) @ "seed=0"
        tl.arange(start, end) @ "end"
    "#]]
    .assert_eq(&out);
}

#[tokio::test(flavor = "multi_thread")]
async fn signatures_of_methods_go_by_what_is_before_the_dot() {
    let text = "\
import triton
import triton.language as tl

@triton.jit
def k(desc, x_ptr, n, B: tl.constexpr):
    d = tl.make_tensor_descriptor(x_ptr, [n, n], [n, 1], [1, B])
    row = d.load([0, 0])
    rows = d.gather(tl.arange(0, 8), 0)
    some = row.gather(tl.zeros([1, B], tl.int32), 1)
    other = desc.load([0, 0])
    either = n.load([0, 0])
    d.store([0, 0], row)
";
    let mut client = Client::start(json!({})).await;
    client.open(URI, text).await;
    let mut shown = String::new();
    for (line, written) in text.lines().enumerate().skip(6) {
        let open = written.find('(').unwrap() + 1;
        let params = json!({
            "textDocument": { "uri": URI }, "position": { "line": line, "character": open },
        });
        let help = client.request("textDocument/signatureHelp", params).await.unwrap();
        let label = help["signatures"][0]["label"].as_str().unwrap_or("none");
        shown.push_str(&format!("{}: {label}\n", written[..open].trim()));
    }
    expect![[r#"
        row = d.load(: x.load(offsets)
        rows = d.gather(: x.gather(x_offsets, y_offset)
        some = row.gather(: x.gather(index, axis)
        other = desc.load(: x.load(offsets)
        either = n.load(: x.load(offsets)
        d.store(: x.store(offsets, value)
    "#]]
    .assert_eq(&shown);
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hovers_tell_of_scenarios_and_reasons() {
    check_hover(
        "randn(1000)",
        "ran$0dn(1000)",
        expect![[r#"
        ```python
        randn(*shape, dtype=float32, seed=0)
        ```

        A tensor of normal random numbers, the same on every machine.
    "#]],
    )
    .await;
    check_hover(
        "mask=offsets < n)\n    y",
        "mask=offsets < $0n)\n    y",
        expect![[r#"
            ```python
            n: int32
            ```

            Known at run time only: `n` is a runtime argument.

            Compiled for: int32 (from the scenario in line 15); a value divisible by 16, equal to 1, or beyond 32 bits compiles anew.
        "#]],
    )
    .await;
    check_hover(
        "BLOCK + tl",
        "BLO$0CK + tl",
        expect![[r#"
            ```python
            BLOCK: constexpr int = 128
            ```

            For every specialization: `constexpr`.

            Compiled for: constexpr `128` (from the scenario in line 15); another value compiles anew.
        "#]],
    )
    .await;
    check_hover(
        "tl.arange(0",
        "tl.arange($00",
        expect![[r#"
        ```python
        constexpr int = 0
        ```
    "#]],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn folds_selections_links_and_highlights() {
    let (mut client, params) = at("constexpr(2)", "constexpr(2)$0").await;
    let document = json!({ "textDocument": { "uri": URI } });
    let folds = client.request("textDocument/foldingRange", document.clone()).await.unwrap();
    let folds = folds.as_array().unwrap().iter();
    let folds: Vec<String> = folds
        .map(|fold| format!("{}-{} {}", fold["startLine"], fold["endLine"], fold["kind"]))
        .collect();
    assert_eq!(folds, ["3-4 \"region\"", "7-11 \"region\"", "13-15 \"comment\""]);
    let mut at = params.clone();
    at["positions"] = json!([{ "line": 9, "character": 12 }]);
    let found = client.request("textDocument/selectionRange", at).await.unwrap();
    let mut next = &found[0];
    let mut ranges = Vec::new();
    while next["range"].is_object() {
        ranges.push(range_text(&next["range"]));
        next = &next["parent"];
    }
    expect!["9:11-9:15 9:8-9:15 9:8-9:50 9:4-9:50 8:4-11:52 7:0-11:52 6:0-11:52 0:0-16:0"]
        .assert_eq(&ranges.join(" "));
    let mut at = params;
    at["position"] = json!({ "line": 8, "character": 5 });
    let found = client.request("textDocument/documentHighlight", at).await.unwrap();
    let found: Vec<String> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|place| format!("{} {}", range_text(&place["range"]), place["kind"]))
        .collect();
    expect!["8:4-8:11 3 | 9:24-9:31 2 | 9:38-9:45 2 | 11:23-11:30 2 | 11:40-11:47 2"]
        .assert_eq(&found.join(" | "));
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_the_language_lead_to_the_installed_triton() {
    let folder = tempfile::tempdir().unwrap();
    let packages = folder.path().join("env/lib/python3.12/site-packages");
    let language = packages.join("triton/language");
    std::fs::create_dir_all(&language).unwrap();
    std::fs::write(packages.join("triton/__init__.py"), "").unwrap();
    std::fs::write(language.join("__init__.py"), "from .core import load\n").unwrap();
    let core = "def builtin(f):\n    return f\n\n@builtin\ndef load(pointer):\n    pass\n";
    std::fs::write(language.join("core.py"), core).unwrap();
    let text = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x):\n    \
                tl.store(x, tl.load(x))\n";
    let mut client = Client::connect(without_workers());
    let settings = json!({ "python": folder.path().join("env") });
    client.initialize(json!({ "capabilities": {}, "initializationOptions": settings })).await;
    client.open(URI, text).await;
    let at = |character: u32| json!({ "textDocument": { "uri": URI }, "position": { "line": 5, "character": character } });
    let found = client.request("textDocument/definition", at(20)).await.unwrap();
    assert!(found["uri"].as_str().unwrap().ends_with("triton/language/core.py"), "{found}");
    assert_eq!(range_text(&found["range"]), "4:4-4:8");
    // This Triton has no `store`, so a page tells of it.
    let found = client.request("textDocument/definition", at(8)).await.unwrap();
    let page = found["uri"].as_str().unwrap().strip_prefix("file://").unwrap().to_owned();
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(page.ends_with("tl.store.md") && text.starts_with("```python\ntl.store("), "{text}");
    client.stop().await;
    assert!(!std::path::Path::new(&page).exists(), "it goes with the session");
}
