//! Findings for people and for programs.

use std::ops::Range;

use annotate_snippets::{
    Annotation, AnnotationKind, Group, Level, Origin, Patch, Renderer, Snippet,
    renderer::DecorStyle,
};
use serde::Serialize;
use tile_compiler::diagnostic::{Code, Diagnostic, Fix, Severity};
use tile_compiler::source::{FileId, FileRange, LineCol, LineIndex, TextRange};

/// Names and texts of the files that findings speak of.
pub(crate) trait Files {
    /// The path as the user wrote or would write it.
    fn name(&self, file: FileId) -> &str;
    /// The text.
    fn text(&self, file: FileId) -> &str;
    /// Its lines.
    fn lines(&self, file: FileId) -> &LineIndex;
}

/// The name of a level in every format.
pub(crate) fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Hint => "hint",
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// A finding with source excerpts.
pub(crate) fn human(files: &dyn Files, diagnostic: &Diagnostic, styled: bool) -> String {
    let level = match diagnostic.severity {
        Severity::Hint => Level::HELP.with_name("hint"),
        Severity::Info => Level::INFO,
        Severity::Warning => Level::WARNING,
        Severity::Error => Level::ERROR,
    };
    let title = level.primary_title(&diagnostic.message).id(diagnostic.code.name());
    let mut report = vec![
        excerpts(files, diagnostic)
            .into_iter()
            .fold(Group::with_title(title), |group, excerpt| excerpt.show_in(group, files)),
    ];
    let notes = diagnostic.notes.iter().cloned().chain(specialization_note(diagnostic));
    if let Some(first) = report.pop() {
        report.push(notes.fold(first, |group, note| group.element(Level::NOTE.message(note))));
    }
    report.extend(diagnostic.fixes.iter().filter_map(|fix| fix_group(files, fix)));
    let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
    renderer.decor_style(DecorStyle::Ascii).render(&report)
}

fn specialization_note(diagnostic: &Diagnostic) -> Option<String> {
    let specialization = diagnostic.specialization.as_ref()?;
    let kernel = diagnostic.kernel.as_deref().unwrap_or("the kernel");
    Some(format!("when {kernel} is compiled for {specialization}"))
}

/// What one snippet shows: a stretch of lines of one file with its labels.
struct Excerpt {
    file: FileId,
    labels: Vec<(TextRange, AnnotationKind, Option<String>)>,
}

/// The primary place's file first, then the related ones in order.
fn excerpts(files: &dyn Files, diagnostic: &Diagnostic) -> Vec<Excerpt> {
    let primary = diagnostic.primary;
    let mut excerpts = vec![Excerpt {
        file: primary.file,
        labels: vec![(primary.range, AnnotationKind::Primary, None)],
    }];
    for related in &diagnostic.related {
        let label = (related.at.range, AnnotationKind::Context, Some(related.message.clone()));
        // Places far apart in one file are shown apart.
        let near = |excerpt: &&mut Excerpt| {
            let line = |range: TextRange| files.lines(related.at.file).line(range.start);
            excerpt.file == related.at.file
                && excerpt
                    .labels
                    .iter()
                    .any(|(range, ..)| line(*range).abs_diff(line(related.at.range)) < 100)
        };
        match excerpts.iter_mut().find(near) {
            Some(excerpt) => excerpt.labels.push(label),
            None => excerpts.push(Excerpt { file: related.at.file, labels: vec![label] }),
        }
    }
    excerpts
}

/// A line of more bytes is not shown: nobody reads it, and laying it out takes as long as all the rest.
const LONGEST_LINE: usize = 2000;

impl Excerpt {
    /// Adds the excerpt to what is said of a finding: of lines that are too long, the place alone.
    fn show_in<'f>(&self, group: Group<'f>, files: &'f dyn Files) -> Group<'f> {
        let ranges = self.labels.iter().map(|(range, ..)| *range);
        let stretch = Stretch::around(files, self.file, ranges);
        if stretch.is_readable() {
            return group.element(self.snippet(files, &stretch));
        }
        self.labels.iter().fold(group, |group, (range, _, label)| {
            let at = position(files, self.file, range.start);
            let place = Origin::path(files.name(self.file)).line(at.line as usize);
            let group = group.element(place.char_column(at.col as usize));
            match label {
                Some(label) => group.element(Level::NOTE.message(label.clone())),
                None => group,
            }
        })
    }

    fn snippet<'f>(
        &self,
        files: &'f dyn Files,
        stretch: &Stretch<'f>,
    ) -> Snippet<'f, Annotation<'f>> {
        let annotations = self
            .labels
            .iter()
            .map(|(range, kind, label)| kind.span(stretch.within(*range)).label(label.clone()));
        Snippet::source(stretch.text)
            .line_start(stretch.first_line)
            .path(files.name(self.file))
            .fold(true)
            .annotations(annotations)
    }
}

/// The lines that some ranges touch.
struct Stretch<'f> {
    text: &'f str,
    first_line: usize,
    start: usize,
}

impl<'f> Stretch<'f> {
    fn around(
        files: &'f dyn Files,
        file: FileId,
        ranges: impl Iterator<Item = TextRange>,
    ) -> Stretch<'f> {
        let (text, lines) = (files.text(file), files.lines(file));
        let covered = ranges.reduce(TextRange::cover).unwrap_or_default();
        let first = lines.line(covered.start);
        let start = lines.line_start(first) as usize;
        let end = lines.line_start(lines.line(covered.end) + 1) as usize;
        let shown = text.get(start..end).unwrap_or_default();
        let shown = shown.trim_end_matches(['\n', '\r']);
        Stretch { text: shown, first_line: first as usize + 1, start }
    }

    /// Whether all of its lines are short enough to be read.
    fn is_readable(&self) -> bool {
        self.text.lines().all(|line| line.len() <= LONGEST_LINE)
    }

    /// A range as indices into the stretch, on character boundaries.
    fn within(&self, range: TextRange) -> Range<usize> {
        let index = |offset: u32| {
            let offset = (offset as usize).saturating_sub(self.start).min(self.text.len());
            (0..=offset).rev().find(|&at| self.text.is_char_boundary(at)).unwrap_or(0)
        };
        index(range.start)..index(range.end)
    }
}

/// The fix as a patch; `None` when it edits nothing.
fn fix_group<'f>(files: &'f dyn Files, fix: &Fix) -> Option<Group<'f>> {
    let file = fix.edits.first()?.at.file;
    let edits = || fix.edits.iter().filter(|edit| edit.at.file == file);
    let stretch = Stretch::around(files, file, edits().map(|edit| edit.at.range));
    if !stretch.is_readable() {
        return Some(Group::with_title(Level::HELP.secondary_title(fix.title.clone())));
    }
    let patches = edits().map(|edit| Patch::new(stretch.within(edit.at.range), edit.text.clone()));
    let snippet = Snippet::source(stretch.text)
        .line_start(stretch.first_line)
        .path(files.name(file))
        .patches(patches);
    Some(Level::HELP.secondary_title(fix.title.clone()).element(snippet))
}

/// A finding as `--format json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct JsonDiagnostic<'d> {
    pub(crate) file: &'d str,
    pub(crate) code: &'d str,
    pub(crate) severity: &'static str,
    pub(crate) message: &'d str,
    pub(crate) range: JsonRange,
    pub(crate) related: Vec<JsonRelated<'d>>,
    pub(crate) notes: &'d [String],
    pub(crate) fixes: Vec<JsonFix<'d>>,
    pub(crate) kernel: Option<&'d str>,
    pub(crate) specialization: Option<&'d str>,
}

/// Lines and columns from 1, columns in characters; the end is exclusive.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct JsonRange {
    pub(crate) start: JsonPosition,
    pub(crate) end: JsonPosition,
}

/// A place in a text, from 1.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct JsonPosition {
    pub(crate) line: u32,
    pub(crate) col: u32,
}

/// A related place.
#[derive(Debug, Serialize)]
pub(crate) struct JsonRelated<'d> {
    pub(crate) file: &'d str,
    pub(crate) range: JsonRange,
    pub(crate) message: &'d str,
}

/// A fix.
#[derive(Debug, Serialize)]
pub(crate) struct JsonFix<'d> {
    pub(crate) title: &'d str,
    pub(crate) edits: Vec<JsonEdit<'d>>,
}

/// An edit.
#[derive(Debug, Serialize)]
pub(crate) struct JsonEdit<'d> {
    pub(crate) file: &'d str,
    pub(crate) range: JsonRange,
    pub(crate) text: &'d str,
}

/// A finding as data.
pub(crate) fn json<'d>(files: &'d dyn Files, diagnostic: &'d Diagnostic) -> JsonDiagnostic<'d> {
    let related = diagnostic.related.iter().map(|related| JsonRelated {
        file: files.name(related.at.file),
        range: range(files, related.at),
        message: &related.message,
    });
    let fixes = diagnostic.fixes.iter().map(|fix| JsonFix {
        title: &fix.title,
        edits: fix
            .edits
            .iter()
            .map(|edit| JsonEdit {
                file: files.name(edit.at.file),
                range: range(files, edit.at),
                text: &edit.text,
            })
            .collect(),
    });
    JsonDiagnostic {
        file: files.name(diagnostic.primary.file),
        code: diagnostic.code.name(),
        severity: severity_name(diagnostic.severity),
        message: &diagnostic.message,
        range: range(files, diagnostic.primary),
        related: related.collect(),
        notes: &diagnostic.notes,
        fixes: fixes.collect(),
        kernel: diagnostic.kernel.as_deref(),
        specialization: diagnostic.specialization.as_deref(),
    }
}

/// A file that cannot be read, as a finding on its first character.
pub(crate) fn json_read_error<'d>(file: &'d str, message: &'d str) -> JsonDiagnostic<'d> {
    let start = JsonPosition { line: 1, col: 1 };
    JsonDiagnostic {
        file,
        code: Code::Unreadable.name(),
        severity: severity_name(Severity::Error),
        message,
        range: JsonRange { start, end: start },
        related: Vec::new(),
        notes: &[],
        fixes: Vec::new(),
        kernel: None,
        specialization: None,
    }
}

/// A range in lines and columns from 1.
fn range(files: &dyn Files, at: FileRange) -> JsonRange {
    let position = |offset| position(files, at.file, offset);
    JsonRange { start: position(at.range.start), end: position(at.range.end) }
}

/// A place in lines and columns from 1.
fn position(files: &dyn Files, file: FileId, offset: u32) -> JsonPosition {
    let LineCol { line, col } = files.lines(file).line_col(files.text(file), offset);
    JsonPosition { line: line + 1, col: col + 1 }
}
