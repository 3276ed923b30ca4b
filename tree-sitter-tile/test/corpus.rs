//! Runs the cases of `test/corpus`, in the format of tree-sitter's own test runner.
//!
//! `UPDATE_EXPECT=1` rewrites the expected trees.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{parse, shape::shape};

const TITLE_RULE: &str = "==================";
const TREE_RULE: &str = "---";

/// One source text with the tree it must have.
pub struct Case {
    /// The file, relative to the corpus directory.
    pub file: String,
    pub title: String,
    pub source: String,
    pub expected: String,
}

impl Case {
    /// Whether the case is about recovery from errors.
    pub fn is_broken(&self) -> bool {
        self.file == "errors.txt"
    }
}

/// All cases, in the order of their files.
pub fn cases() -> Vec<Case> {
    corpus_files().iter().flat_map(|path| read_cases(path)).collect()
}

#[test]
fn corpus() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut failures = Vec::new();
    for path in corpus_files() {
        let mut cases = read_cases(&path);
        for case in &mut cases {
            let tree = parse(&case.source);
            assert_eq!(
                tree.root_node().has_error(),
                case.is_broken(),
                "{}: {}: only errors.txt may have errors:\n{}",
                case.file,
                case.title,
                shape(tree.root_node()),
            );
            let actual = shape(tree.root_node());
            if actual != case.expected {
                failures.push(format!("{}: {}:\n{actual}", case.file, case.title));
                case.expected = actual;
            }
        }
        if update {
            fs::write(&path, write_cases(&cases)).expect("the corpus is writable");
        }
    }
    assert!(
        update || failures.is_empty(),
        "{} cases differ; UPDATE_EXPECT=1 accepts these trees:\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}

#[test]
fn line_endings_do_not_change_the_tree() {
    for case in cases() {
        let windows = parse(case.source.replace('\n', "\r\n"));
        let expected = shape(parse(&case.source).root_node());
        assert_eq!(shape(windows.root_node()), expected, "{}: {}", case.file, case.title);
    }
}

#[test]
fn a_missing_last_line_break_does_not_change_the_tree() {
    for case in cases() {
        let trimmed = parse(case.source.trim_end());
        let expected = shape(parse(&case.source).root_node());
        assert_eq!(shape(trimmed.root_node()), expected, "{}: {}", case.file, case.title);
    }
}

fn corpus_files() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("test/corpus");
    let mut files: Vec<_> = fs::read_dir(dir)
        .expect("the corpus exists")
        .map(|entry| entry.expect("a readable entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    files
}

fn read_cases(path: &Path) -> Vec<Case> {
    let file = path.file_name().expect("a file").to_string_lossy().into_owned();
    let text = fs::read_to_string(path).expect("a readable corpus file");
    let parts: Vec<&str> = text.split(&format!("{TITLE_RULE}\n")).collect();
    parts[1..]
        .chunks(2)
        .map(|chunk| {
            let body = chunk[1].trim_start_matches('\n');
            let (source, expected) =
                body.rsplit_once(&format!("\n{TREE_RULE}\n")).unwrap_or((body.trim_end(), ""));
            Case {
                file: file.clone(),
                title: chunk[0].trim().to_owned(),
                source: format!("{}\n", source.trim_end()),
                expected: expected.trim().to_owned(),
            }
        })
        .collect()
}

fn write_cases(cases: &[Case]) -> String {
    let texts: Vec<_> = cases
        .iter()
        .map(|Case { title, source, expected, .. }| {
            format!("{TITLE_RULE}\n{title}\n{TITLE_RULE}\n\n{source}\n{TREE_RULE}\n\n{expected}\n")
        })
        .collect();
    texts.join("\n")
}
