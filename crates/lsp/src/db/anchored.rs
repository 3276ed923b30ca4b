//! Places that count from the start of the item that they lie in, so that they stay right when
//! the item moves.

use std::sync::Arc;

use tile_compiler::diagnostic::Diagnostic;
use tile_compiler::hir::{Module, Name};
use tile_compiler::ir::{self, Opcode};
use tile_compiler::source::{FileId, FileRange, LineIndex, TextRange};

use super::parts::heads;
use super::{Db, line_index, module};

/// What places count from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Anchor {
    /// The file.
    file: FileId,
    /// The item, by its index and name; `None` stands for the start of the file.
    item: Option<(u32, Name)>,
}

/// Anchors in use. Where a place is kept, the number of its anchor stands for the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Anchors(Vec<Anchor>);

impl Anchors {
    /// The place as it is kept.
    fn keep(&mut self, db: &dyn Db, place: FileRange) -> FileRange {
        let (anchor, start) = anchor_of(db, place);
        let place_from = |offset: u32| offset - start;
        FileRange {
            file: self.number(anchor),
            range: TextRange {
                start: place_from(place.range.start),
                end: place_from(place.range.end),
            },
        }
    }

    fn number(&mut self, anchor: Anchor) -> FileId {
        let known = self.0.iter().position(|known| *known == anchor);
        let number = known.unwrap_or_else(|| {
            self.0.push(anchor);
            self.0.len() - 1
        });
        FileId(number as u32)
    }

    /// The place as it is kept, if anything near it is.
    pub(crate) fn kept(&self, db: &dyn Db, place: FileRange) -> Option<FileRange> {
        let (anchor, start) = anchor_of(db, place);
        let number = self.0.iter().position(|known| *known == anchor)?;
        let range = TextRange { start: place.range.start - start, end: place.range.end - start };
        Some(FileRange { file: FileId(number as u32), range })
    }

    /// Where a kept place is now; `None` when its item is gone.
    fn find(&self, db: &dyn Db, kept: FileRange) -> Option<FileRange> {
        let anchor = self.0.get(kept.file.0 as usize)?;
        let start = anchor.start(db)?;
        let place_at = |offset: u32| offset.saturating_add(start);
        let range = TextRange { start: place_at(kept.range.start), end: place_at(kept.range.end) };
        Some(FileRange { file: anchor.file, range })
    }

    /// Findings with kept places where they are now; without those whose item is gone.
    pub(crate) fn place_all(&self, db: &dyn Db, found: &[Diagnostic]) -> Vec<Diagnostic> {
        let place = |found: &Diagnostic| {
            let mut found = found.clone();
            let mut gone = false;
            found.map_places(|kept| {
                let now = self.find(db, kept);
                gone |= now.is_none();
                now.unwrap_or_default()
            });
            (!gone).then_some(found)
        };
        found.iter().filter_map(place).collect()
    }

    /// The file and the line (from 1) where a kept line is now.
    pub(crate) fn find_line(&self, db: &dyn Db, kept: FileId, line: u32) -> Option<(FileId, u32)> {
        let anchor = self.0.get(kept.0 as usize)?;
        let file = db.file_of(anchor.file)?;
        Some((anchor.file, line_index(db, file).line(anchor.start(db)?) + line))
    }
}

impl Anchor {
    fn start(&self, db: &dyn Db) -> Option<u32> {
        let Some((index, name)) = &self.item else { return Some(0) };
        let module = module(db, db.file_of(self.file)?);
        let same = module.items.get(*index as usize).filter(|item| item.name == *name);
        let named = || module.items_named(name).next();
        let item = same.or_else(|| module.items.get(named()? as usize))?;
        Some(item.range.start)
    }
}

/// The innermost item around a place, and where it starts.
fn anchor_of(db: &dyn Db, place: FileRange) -> (Anchor, u32) {
    let module = db.file_of(place.file).and_then(|file| heads(db, file).as_ref());
    let module = module.map(|heads| &heads.module);
    let around = module.and_then(|module| Some((module, item_around(module, place.range)?)));
    let Some((module, index)) = around else { return whole_file(db, place) };
    let item = &module.items[index];
    let anchor = Anchor { file: place.file, item: Some((index as u32, item.name.clone())) };
    (anchor, item.range.start)
}

/// The start of the file. Nothing says how the place moves, so it is found anew after every edit.
fn whole_file(db: &dyn Db, place: FileRange) -> (Anchor, u32) {
    if let Some(file) = db.file_of(place.file) {
        file.text(db);
    }
    (Anchor { file: place.file, item: None }, 0)
}

fn item_around(module: &Module, range: TextRange) -> Option<usize> {
    module.items.iter().rposition(|item| item.range.contains_range(range))
}

/// Findings with kept places.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Anchored {
    found: Vec<Diagnostic>,
    anchors: Anchors,
}

impl Anchored {
    /// Keeps what was found just now.
    pub(crate) fn new(db: &dyn Db, mut found: Vec<Diagnostic>) -> Anchored {
        let mut anchors = Anchors::default();
        for diagnostic in &mut found {
            diagnostic.map_places(|place| anchors.keep(db, place));
        }
        Anchored { found, anchors }
    }

    /// The findings where they are now.
    pub(crate) fn place(&self, db: &dyn Db) -> Vec<Diagnostic> {
        let mut found = self.found.clone();
        for diagnostic in &mut found {
            diagnostic.map_places(|place| self.anchors.find(db, place).unwrap_or_default());
        }
        found
    }

    /// The findings for those who do not ask where they are.
    pub(crate) fn unplaced(&self) -> &[Diagnostic] {
        &self.found
    }
}

/// Lets the locations of `function` count from items, lines from 1 as well, so that its text is
/// the same wherever the items stand.
/// Where an assertion of the device prints its line, lines are part of the code and stay; without them
/// files are not named, since such lines are not theirs.
pub(crate) fn anchor_locations(db: &dyn Db, function: &mut ir::Function) -> Anchors {
    let prints_lines = function.insts.values().any(|inst| inst.opcode == Opcode::DeviceAssert);
    let mut anchors = Anchors::default();
    let mut lines: Vec<(FileId, Arc<LineIndex>)> = Vec::new();
    let paths = std::mem::take(&mut function.files);
    for data in function.locs.values_mut().filter(|data| data.line > 0) {
        let (anchor, start) =
            if prints_lines { whole_file(db, data.at) } else { anchor_of(db, data.at) };
        if !lines.iter().any(|(file, _)| *file == data.at.file) {
            let heads = db.file_of(data.at.file).and_then(|file| heads(db, file).as_ref());
            lines.push((data.at.file, heads.map(|heads| heads.lines.clone()).unwrap_or_default()));
        }
        let index = lines.iter().find(|(file, _)| *file == data.at.file);
        let first = index.map_or(0, |(_, lines)| lines.line(start));
        data.line = data.line.saturating_sub(first).max(1);
        let range = data.at.range;
        let file = anchors.number(anchor);
        if let Some(path) = paths.get(&data.at.file).filter(|_| prints_lines) {
            function.files.insert(file, path.clone());
        }
        let range = TextRange { start: range.start - start, end: range.end - start };
        data.at = FileRange { file, range };
    }
    anchors
}
