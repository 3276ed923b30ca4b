//! Documents that are made from tables hold what the tables say. `UPDATE_EXPECT=1` brings them up to
//! date.

use serde_json::Value;
use tile_compiler::diagnostic::{Code, Severity};

use super::settings::SETTINGS;
use super::to_proto;

/// The text that a file should hold; asked to, the file is brought up to date.
fn assert_holds(file: &str, have: &str, want: &str) {
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(file, want).unwrap();
    } else {
        assert!(have == want, "{file} is not up to date; run the tests with UPDATE_EXPECT=1");
    }
}

/// `text` with the rows below the table's `head` replaced.
fn with_rows(text: &str, head: &str, rows: &str) -> String {
    let start = text.find(head).unwrap() + head.len();
    let end = start + text[start..].find("\n\n").unwrap() + 1;
    [&text[..start], rows, &text[end..]].concat()
}

#[test]
fn the_protocol_lists_the_settings() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocol.md");
    let have = std::fs::read_to_string(file).unwrap();
    let head = "| setting | default | meaning |\n|---|---|---|\n";
    let rows: String = SETTINGS.iter().map(|setting| setting.row() + "\n").collect();
    assert_holds(file, &have, &with_rows(&have, head, &rows));
}

/// Settings of the extension alone.
const OWN: [&str; 2] = ["tile.server.", "tile.trace."];

fn package() -> (&'static str, String, Value) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../editors/vscode/package.json");
    let text = std::fs::read_to_string(file).unwrap();
    let package = serde_json::from_str(&text).unwrap();
    (file, text, package)
}

#[test]
fn the_extension_has_the_settings() {
    let (file, have, mut package) = package();
    let properties = &mut package["contributes"]["configuration"]["properties"];
    let mut all = serde_json::Map::new();
    let old = properties.as_object().unwrap().clone();
    let is_own = |name: &String| OWN.iter().any(|prefix| name.starts_with(prefix));
    let (kept, _): (Vec<_>, Vec<_>) = old.into_iter().partition(|(name, _)| is_own(name));
    all.extend(kept);
    all.extend(SETTINGS.iter().map(|s| (format!("tile.{}", s.name), s.property())));
    *properties = Value::Object(all);
    let want = serde_json::to_string_pretty(&package).unwrap() + "\n";
    assert_holds(file, &have, &want);
}

#[test]
fn the_extensions_description_lists_the_settings() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../editors/vscode/README.md");
    let have = std::fs::read_to_string(file).unwrap();
    let (_, _, package) = package();
    let properties = package["contributes"]["configuration"]["properties"].as_object().unwrap();
    let own = properties.iter().filter(|(name, _)| OWN.iter().any(|own| name.starts_with(own)));
    let mut rows: String =
        SETTINGS.iter().map(|s| format!("| `tile.{}` | {} |\n", s.name, s.doc)).collect();
    for (name, property) in own {
        let doc = property["markdownDescription"].as_str().or(property["description"].as_str());
        rows.push_str(&format!("| `{name}` | {} |\n", doc.unwrap()));
    }
    let head = "| setting | meaning |\n|---|---|\n";
    assert_holds(file, &have, &with_rows(&have, head, &rows));
}

/// The page that diagnostics link to, a section for each code.
#[test]
fn every_code_is_explained_where_diagnostics_link_to() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/diagnostics.md");
    let have = std::fs::read_to_string(file).unwrap_or_default();
    let mut codes: Vec<Code> = Code::ALL.to_vec();
    codes.sort_by_key(|code| code.name());
    let mut want = String::from(
        "# Diagnostics\n\n\
         Every code with its default level. `tile explain CODE` prints its section. Levels are set by code or family in\n\
         `tile.toml`, in `[tool.tile]` of `pyproject.toml` and in the editor's settings (`lints`); a comment\n\
         `# tile: allow CODE` on or above a line, or at the end of a statement, switches a code off there.\n",
    );
    let mut family = "";
    for code in codes {
        let info = code.info();
        if code.family() != family {
            family = code.family();
            want.push_str(&format!("\n## {family}\n"));
        }
        let level = match info.level {
            Severity::Error => "Error",
            Severity::Warning => "Warning",
            Severity::Info => "Information",
            Severity::Hint => "Hint",
        };
        let text = info.explanation.trim_end();
        want.push_str(&format!("\n### {}\n\n{level}: {}.\n\n{text}\n", info.name, info.summary));
        // Where the page is published, a heading's anchor is its text without punctuation.
        let anchor: String =
            info.name.chars().filter(|c| c.is_alphanumeric() || *c == '-').collect();
        assert_eq!(to_proto::anchor(code), anchor);
    }
    assert_holds(file, &have, &want);
}
