//! Findings as SARIF 2.1.0, which code review systems read.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tile_compiler::diagnostic::{Code, Severity};

use crate::render::{JsonDiagnostic, JsonRange, severity_name};

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
        self.results.push(json!({
            "ruleId": finding.code,
            "level": level(finding.severity),
            "message": { "text": finding.message },
            "locations": [{ "physicalLocation": place(finding.file, finding.range) }],
        }));
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

fn place(file: &str, range: JsonRange) -> Value {
    json!({
        "artifactLocation": { "uri": file },
        "region": {
            "startLine": range.start.line,
            "startColumn": range.start.col,
            "endLine": range.end.line,
            "endColumn": range.end.col,
        },
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
