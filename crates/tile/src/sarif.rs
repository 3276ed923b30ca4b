//! Findings as SARIF 2.1.0, which code review systems read.

use std::collections::BTreeSet;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};
use tile_compiler::diagnostic::{Code, Severity};

use crate::render::{JsonDiagnostic, JsonEdit, JsonFix, JsonRange, severity_name};

/// Collects results of one run.
#[derive(Debug, Default)]
pub(crate) struct Sarif {
    results: Vec<Value>,
    codes: BTreeSet<String>,
}

impl Sarif {
    /// Adds a finding.
    pub(crate) fn add(&mut self, finding: &JsonDiagnostic<'_>) {
        self.codes.insert(finding.code.to_owned());
        let mut result = json!({
            "ruleId": finding.code,
            "level": level(finding.severity),
            "message": { "text": text(finding) },
            "locations": [{ "physicalLocation": place(finding.file, finding.range) }],
        });
        if !finding.related.is_empty() {
            let related = finding.related.iter().map(|related| {
                json!({
                    "message": { "text": related.message },
                    "physicalLocation": place(related.file, related.range),
                })
            });
            result["relatedLocations"] = related.collect();
        }
        if !finding.fixes.is_empty() {
            result["fixes"] = finding.fixes.iter().map(fix).collect();
        }
        let properties =
            [("kernel", finding.kernel), ("specialization", finding.specialization)].into_iter();
        let properties: Map<String, Value> =
            properties.filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect();
        if !properties.is_empty() {
            result["properties"] = properties.into();
        }
        self.results.push(result);
    }

    /// The whole log.
    pub(crate) fn log(self) -> Value {
        let rules: Vec<Value> = self.codes.iter().map(|code| rule(code)).collect();
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": {
                    "name": "tile",
                    "version": env!("CARGO_PKG_VERSION"),
                    "informationUri": env!("CARGO_PKG_REPOSITORY"),
                    "rules": rules,
                }},
                "columnKind": "unicodeCodePoints",
                "results": self.results,
            }],
        })
    }
}

fn rule(code: &str) -> Value {
    let Some(info) = Code::from_name(code).map(Code::info) else { return json!({ "id": code }) };
    json!({
        "id": code,
        "shortDescription": { "text": info.summary },
        "fullDescription": { "text": info.explanation },
        "defaultConfiguration": { "level": level(severity_name(info.level)) },
    })
}

/// The message with its notes, each on a line of its own.
fn text(finding: &JsonDiagnostic<'_>) -> String {
    let notes = finding.notes.iter().map(String::as_str);
    let lines: Vec<&str> = std::iter::once(finding.message).chain(notes).collect();
    lines.join("\n")
}

/// A fix, its edits by file.
fn fix(fix: &JsonFix<'_>) -> Value {
    let mut files: Vec<(&str, Vec<Value>)> = Vec::new();
    for edit in &fix.edits {
        match files.iter_mut().find(|(file, _)| *file == edit.file) {
            Some((_, edits)) => edits.push(replacement(edit)),
            None => files.push((edit.file, vec![replacement(edit)])),
        }
    }
    let changes: Vec<Value> = files
        .into_iter()
        .map(|(file, edits)| json!({ "artifactLocation": location(file), "replacements": edits }))
        .collect();
    json!({ "description": { "text": fix.title }, "artifactChanges": changes })
}

fn replacement(edit: &JsonEdit<'_>) -> Value {
    json!({ "deletedRegion": region(edit.range), "insertedContent": { "text": edit.text } })
}

fn place(file: &str, range: JsonRange) -> Value {
    json!({ "artifactLocation": location(file), "region": region(range) })
}

/// A path as a URI: relative where the path is.
fn location(file: &str) -> Value {
    let path = file.replace('\\', "/");
    let encoded = utf8_percent_encode(&path, ESCAPED);
    let uri = match path.starts_with('/') {
        true => format!("file://{encoded}"),
        // What stands before a colon in the first part would be a scheme.
        false if path.split('/').next().is_some_and(|first| first.contains(':')) => {
            format!("./{encoded}")
        }
        false => encoded.to_string(),
    };
    json!({ "uri": uri })
}

/// What a path of a URI cannot hold, RFC 3986 section 3.3.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

fn region(range: JsonRange) -> Value {
    json!({
        "startLine": range.start.line,
        "startColumn": range.start.col,
        "endLine": range.end.line,
        "endColumn": range.end.col,
    })
}

/// SARIF knows neither info nor hint.
fn level(severity: &str) -> &'static str {
    if severity == severity_name(Severity::Error) {
        "error"
    } else if severity == severity_name(Severity::Warning) {
        "warning"
    } else {
        "note"
    }
}
