//! The database after edits answers as a fresh one does.

use std::path::Path;
use std::sync::Arc;

use ropey::Rope;
use tile_compiler::source::TextRange;
use tile_compiler::syntax::{Edit, Parse};

use super::{Database, SourceFile, SourceText, diagnostics, exact_diagnostics, kernels};
use crate::files::Disk;

const TEXT: &str = include_str!("../../../../examples/softmax.py");

/// What is put in place of what was there.
const PIECES: [&str; 8] = ["", " ", "\n", "(", "x", "tl.sum(x)", "    y = 1\n", "# tile: n = 1\n"];

fn set(db: &mut Database, parse: &Parse) -> SourceFile {
    let text = SourceText::parsed(parse.clone(), Rope::from_str(parse.text()));
    db.set_open(Path::new("/nowhere/softmax.py"), text)
}

fn answers(db: &Database, file: SourceFile) -> String {
    let exact = exact_diagnostics(db, file);
    let labels: Vec<&str> = kernels(db, file)
        .iter()
        .flat_map(|kernel| kernel.specializations.iter().map(|labelled| &*labelled.label))
        .collect();
    format!("{labels:?}\n{:#?}", diagnostics(db, file, exact))
}

#[test]
fn edits_lead_to_what_a_fresh_database_knows() {
    let mut db = Database::new(Arc::new(Disk));
    let mut parse = Parse::new(TEXT);
    let mut seed = 1u64;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for _ in 0..60 {
        let old = parse.text().clone();
        let start = next(old.len());
        let end = (start + next(12)).min(old.len());
        let piece = PIECES[next(PIECES.len())];
        let text = [&old[..start], piece, &old[end..]].concat();
        let edit = Edit { old: TextRange::new(start, end), new_len: piece.len() };
        parse = parse.edit(&edit, text.as_str());
        let file = set(&mut db, &parse);
        let mut fresh = Database::new(Arc::new(Disk));
        let fresh_file = set(&mut fresh, &Parse::new(text.as_str()));
        assert_eq!(answers(&db, file), answers(&fresh, fresh_file), "after {edit:?}\n{text}");
    }
}
