//! Every feature that returns places returns the right ones in every position encoding, whatever
//! line ends, tabs and characters stand around them.

use std::fmt::Write as _;

use expect_test::expect;
use serde_json::{Value, json};

use crate::client::Client;

const URI: &str = "file:///nowhere/places.tile";

/// A byte order mark, all three line ends, tabs, a form feed, and characters of every width, in
/// front of whatever has a place.
const TEXT: &str = "\u{feff}# né 日本 😀\r\n\
@triton.jit\r\n\
def größe(v):\r\n\
\treturn v * 2 ; \"\"\"😀\"\"\"; missing\n\
\n\u{c}\
@triton.jit\r\
def k(x_ptr, 長さ, BLOCK: tl.constexpr):  # 日本\r\n\
\tat = tl.arange(0, BLOCK) ; \"😀\u{2028}\"; y = at + BLOCK\r\n\
\t\"日本😀\" ; tl.store(x_ptr + at, größe(at) + größ(at), mask=at < 長さ)\n\
\n\
# tile: x = load(\"日本😀.npy\")\r\n\
# tile: k[(1,)](x, 64, BLOCK=64)\r\n";

/// Text at a range of the protocol.
fn slice(lines: &[&str], range: &Value, encoding: &str) -> String {
    let at = |end: &str| {
        let line = range[end]["line"].as_u64().expect("a line") as usize;
        let character = range[end]["character"].as_u64().expect("a character") as usize;
        (line, character)
    };
    let offset = |line: &str, character: usize| {
        let mut units = 0;
        for (byte, c) in line.char_indices() {
            if units == character {
                return byte;
            }
            assert!(units < character, "inside a character: {range} of {line:?}");
            units += match encoding {
                "utf-8" => c.len_utf8(),
                "utf-16" => c.len_utf16(),
                _ => 1,
            };
        }
        assert_eq!(units, character, "beyond the line: {range} of {line:?}");
        line.len()
    };
    let (start, end) = (at("start"), at("end"));
    let mut out = String::new();
    for (number, line) in lines.iter().enumerate().skip(start.0).take(end.0 + 1 - start.0) {
        let from = if number == start.0 { offset(line, start.1) } else { 0 };
        let to = if number == end.0 { offset(line, end.1) } else { line.len() };
        out.push_str(line.get(from..to).expect("on characters"));
        if number < end.0 {
            out.push('⏎');
        }
    }
    out
}

/// Lines as the protocol has them: ended by a line feed, a carriage return, or both.
fn lines(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = text;
    loop {
        let Some(end) = rest.find(['\r', '\n']) else {
            out.push(rest);
            return out;
        };
        out.push(&rest[..end]);
        let length = if rest[end..].starts_with("\r\n") { 2 } else { 1 };
        rest = &rest[end + length..];
    }
}

/// The position of the `nth` place (from 0) of `wanted`.
fn position(wanted: &str, nth: usize, encoding: &str) -> Value {
    let byte = TEXT.match_indices(wanted).nth(nth).expect("it is there").0;
    let before = lines(&TEXT[..byte]);
    let last = before.last().expect("a line");
    let character = match encoding {
        "utf-8" => last.len(),
        "utf-16" => last.encode_utf16().count(),
        _ => last.chars().count(),
    };
    json!({ "line": before.len() - 1, "character": character })
}

/// Every range below `value`, by the members that hold one.
fn ranges(value: &Value, out: &mut Vec<Value>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let is_range =
                    name.to_lowercase().ends_with("range") && member["start"].is_object();
                if is_range || name == "fromRanges" {
                    let all = member.as_array().cloned().unwrap_or_else(|| vec![member.clone()]);
                    out.extend(all);
                } else {
                    ranges(member, out);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| ranges(item, out)),
        _ => {}
    }
}

/// What every feature that returns places says, as the texts that stand there.
async fn answers(encoding: &str) -> String {
    let mut client = Client::start(json!({ "general": { "positionEncodings": [encoding] } })).await;
    client.open(URI, TEXT).await;
    let all = lines(TEXT);
    let document = json!({ "uri": URI });
    let whole = json!({
        "start": { "line": 0, "character": 0 },
        "end": { "line": all.len(), "character": 0 },
    });
    let here = |wanted: &str, nth| position(wanted, nth, encoding);
    let misspelled = here("größ(", 0);
    let call = json!({ "start": misspelled, "end": misspelled });
    let requests = [
        ("textDocument/diagnostic", json!({})),
        ("textDocument/hover", json!({ "position": here("größe", 1) })),
        ("textDocument/definition", json!({ "position": here("größe", 1) })),
        (
            "textDocument/references",
            json!({ "position": here("長さ", 1), "context": { "includeDeclaration": true } }),
        ),
        ("textDocument/documentHighlight", json!({ "position": here("at", 3) })),
        ("textDocument/prepareRename", json!({ "position": here("長さ", 0) })),
        ("textDocument/rename", json!({ "position": here("größe", 0), "newName": "size" })),
        ("textDocument/prepareCallHierarchy", json!({ "position": here("größe", 0) })),
        ("textDocument/documentSymbol", json!({})),
        ("textDocument/foldingRange", json!({})),
        ("textDocument/selectionRange", json!({ "positions": [here("長さ", 1)] })),
        ("textDocument/documentLink", json!({})),
        ("textDocument/codeLens", json!({})),
        ("textDocument/inlayHint", json!({ "range": whole })),
        (
            "textDocument/codeAction",
            json!({ "range": call, "context": { "diagnostics": [], "only": ["quickfix"] } }),
        ),
        ("textDocument/completion", json!({ "position": here("re(x_ptr", 0) })),
        ("textDocument/semanticTokens/full", json!({})),
        ("tile/kernels", json!({})),
    ];
    let mut out = String::new();
    for (method, mut params) in requests {
        params["textDocument"] = document.clone();
        let answer = client.request(method, params).await.expect(method);
        let mut found = Vec::new();
        match method {
            "textDocument/inlayHint" => {
                for hint in answer.as_array().expect("a list") {
                    let at = &hint["position"];
                    found.push(
                        json!({ "start": { "line": at["line"], "character": 0 }, "end": at }),
                    );
                }
            }
            "textDocument/foldingRange" => {
                for fold in answer.as_array().expect("a list") {
                    let _ = writeln!(out, "fold {} {}", fold["startLine"], fold["endLine"]);
                }
            }
            "textDocument/prepareRename" => found.push(answer.clone()),
            "textDocument/rename" => ranges(&answer["changes"][URI], &mut found),
            "textDocument/semanticTokens/full" => {
                let data: Vec<u64> =
                    serde_json::from_value(answer["data"].clone()).expect("numbers");
                let (mut line, mut character) = (0, 0);
                for token in data.chunks(5) {
                    character = if token[0] == 0 { character + token[1] } else { token[1] };
                    line += token[0];
                    found.push(json!({
                        "start": { "line": line, "character": character },
                        "end": { "line": line, "character": character + token[2] },
                    }));
                }
            }
            _ => ranges(&answer, &mut found),
        }
        let mut texts: Vec<String> =
            found.iter().map(|range| slice(&all, range, encoding)).collect();
        texts.dedup();
        let _ = writeln!(out, "{method}: {}", texts.join(" | "));
    }
    client.stop().await;
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn places_are_the_same_in_every_encoding() {
    let bytes = answers("utf-8").await;
    assert_eq!(bytes, answers("utf-16").await);
    assert_eq!(bytes, answers("utf-32").await);
    expect![[r#"
        textDocument/diagnostic: größ
        textDocument/hover: größe
        textDocument/definition: größe
        textDocument/references: 長さ
        textDocument/documentHighlight: at
        textDocument/prepareRename: 長さ
        textDocument/rename: größe
        textDocument/prepareCallHierarchy: @triton.jit⏎def größe(v):⏎	return v * 2 ; """😀"""; missing | größe
        textDocument/documentSymbol: @triton.jit⏎def größe(v):⏎	return v * 2 ; """😀"""; missing | größe | @triton.jit⏎def k(x_ptr, 長さ, BLOCK: tl.constexpr):  # 日本⏎	at = tl.arange(0, BLOCK) ; "😀 "; y = at + BLOCK⏎	"日本😀" ; tl.store(x_ptr + at, größe(at) + größ(at), mask=at < 長さ) | k | # tile: x = load("日本😀.npy")⏎# tile: k[(1,)](x, 64, BLOCK=64)
        fold 2 3
        fold 6 8
        fold 10 11
        textDocument/foldingRange: 
        textDocument/selectionRange: 長さ | at < 長さ | mask=at < 長さ | (x_ptr + at, größe(at) + größ(at), mask=at < 長さ) | tl.store(x_ptr + at, größe(at) + größ(at), mask=at < 長さ) | at = tl.arange(0, BLOCK) ; "😀 "; y = at + BLOCK⏎	"日本😀" ; tl.store(x_ptr + at, größe(at) + größ(at), mask=at < 長さ) | def k(x_ptr, 長さ, BLOCK: tl.constexpr):  # 日本⏎	at = tl.arange(0, BLOCK) ; "😀 "; y = at + BLOCK⏎	"日本😀" ; tl.store(x_ptr + at, größe(at) + größ(at), mask=at < 長さ) | @triton.jit⏎def k(x_ptr, 長さ, BLOCK: tl.constexpr):  # 日本⏎	at = tl.arange(0, BLOCK) ; "😀 "; y = at + BLOCK⏎	"日本😀" ; tl.store(x_ptr + at, größe(at) + größ(at), mask=at < 長さ) | # né 日本 😀⏎@triton.jit⏎def größe(v):⏎	return v * 2 ; """😀"""; missing⏎⏎@triton.jit⏎def k(x_ptr, 長さ, BLOCK: tl.constexpr):  # 日本⏎	at = tl.arange(0, BLOCK) ; "😀 "; y = at + BLOCK⏎	"日本😀" ; tl.store(x_ptr + at, größe(at) + größ(at), mask=at < 長さ)⏎⏎# tile: x = load("日本😀.npy")⏎# tile: k[(1,)](x, 64, BLOCK=64)⏎
        textDocument/documentLink: "日本😀.npy"
        textDocument/codeLens: k | # tile: x = load("日本😀.npy")⏎# tile: k[(1,)](x, 64, BLOCK=64)
        textDocument/inlayHint: def k(x_ptr, 長さ, BLOCK: tl.constexpr | 	at | 	at = tl.arange( | 	at = tl.arange(0, BLOCK) ; "😀 "; y
        textDocument/codeAction: größ
        textDocument/completion: sto
        textDocument/semanticTokens/full: triton | jit | größe | v | triton | jit | k | x_ptr | 長さ | BLOCK | tl | constexpr | at | tl | arange | BLOCK | y | at | BLOCK | tl | store | x_ptr | at | größe | at | mask | at | 長さ | x | k | x | BLOCK
        tile/kernels: @triton.jit⏎def k(x_ptr, 長さ, BLOCK: tl.constexpr):  # 日本⏎	at = tl.arange(0, BLOCK) ; "😀 "; y = at + BLOCK⏎	"日本😀" ; tl.store(x_ptr + at, größe(at) + größ(at), mask=at < 長さ) | k
    "#]].assert_eq(&bytes);
}
