//! An open document: its text as a rope, and the edits that an editor sends.

use ropey::Rope;
use tile_compiler::source::TextRange;
use tower_lsp::ls_types::TextDocumentContentChangeEvent;

use crate::encoding::Encoding;

/// A text that an editor has open.
#[derive(Debug, Clone)]
pub struct Document {
    /// The text.
    pub text: Rope,
    /// The editor's version of it.
    pub version: i32,
}

/// A replacement of bytes, in offsets of the text before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edit {
    /// The bytes replaced.
    pub replaced: TextRange,
    /// How many bytes stand there afterwards.
    pub inserted: usize,
}

impl Edit {
    /// Where a range stands after the edit; `None` when the edit touches it.
    pub fn moved(&self, range: TextRange) -> Option<TextRange> {
        if range.end <= self.replaced.start {
            return Some(range);
        }
        if range.start < self.replaced.end {
            return None;
        }
        let place = |offset: u32| offset as usize - self.replaced.len() + self.inserted;
        Some(TextRange::new(place(range.start), place(range.end)))
    }
}

impl Document {
    /// A document as it is opened.
    pub fn new(text: &str, version: i32) -> Document {
        Document { text: Rope::from_str(text), version }
    }

    /// Applies one change. `None` when the whole text was replaced, so that no part of what was
    /// known of the old text can be kept.
    pub fn apply(
        &mut self,
        change: &TextDocumentContentChangeEvent,
        encoding: Encoding,
    ) -> Option<Edit> {
        let Some(range) = change.range else {
            self.text = Rope::from_str(&change.text);
            return None;
        };
        let replaced = encoding.text_range(&self.text, range);
        let start = self.text.byte_to_char(replaced.start as usize);
        let end = self.text.byte_to_char(replaced.end as usize);
        self.text.remove(start..end);
        self.text.insert(start, &change.text);
        Some(Edit { replaced, inserted: change.text.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tower_lsp::ls_types::{Position, Range};

    fn change(start: (u32, u32), end: (u32, u32), text: &str) -> TextDocumentContentChangeEvent {
        TextDocumentContentChangeEvent {
            range: Some(Range {
                start: Position { line: start.0, character: start.1 },
                end: Position { line: end.0, character: end.1 },
            }),
            range_length: None,
            text: text.to_owned(),
        }
    }

    #[test]
    fn edits_replace_what_they_cover() {
        let mut document = Document::new("日本 = 1\nb = 2\n", 1);
        let edit = document.apply(&change((0, 0), (0, 2), "x"), Encoding::Utf16);
        assert_eq!(edit, Some(Edit { replaced: TextRange::new(0, 6), inserted: 1 }));
        document.apply(&change((1, 0), (2, 0), ""), Encoding::Utf16);
        assert_eq!(document.text.to_string(), "x = 1\n");
    }

    #[test]
    fn edits_out_of_range_touch_the_end() {
        let mut document = Document::new("a\n", 1);
        document.apply(&change((9, 9), (12, 0), "b"), Encoding::Utf8);
        assert_eq!(document.text.to_string(), "a\nb");
        document.apply(&change((1, 5), (0, 0), "c"), Encoding::Utf8);
        assert_eq!(document.text.to_string(), "a\nbc", "an inverted range is empty");
    }

    /// What a client does with its own text, in UTF-16.
    fn replace(text: &str, from: usize, to: usize, new: &str) -> String {
        let units: Vec<u16> = text.encode_utf16().collect();
        let part = |units: &[u16]| String::from_utf16(units).unwrap();
        [&part(&units[..from]), new, &part(&units[to..])].concat()
    }

    /// The position after `units` UTF-16 code units.
    fn position(text: &str, units: usize) -> (u32, u32) {
        let (mut line, mut character, mut seen) = (0, 0, 0);
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if seen >= units {
                break;
            }
            seen += c.len_utf16();
            character += c.len_utf16() as u32;
            let ends = c == '\n' || c == '\r' && chars.peek() != Some(&'\n');
            if ends {
                (line, character) = (line + 1, 0);
            }
        }
        (line, character)
    }

    #[test]
    fn random_edits_leave_the_text_that_the_client_has() {
        let pieces = ["", "a", "\n", "\r\n", "\r", "日本", "😀", "\t# x\n", "\u{feff}"];
        let mut text = String::from("a = 1\r\n日本 = '😀'\n\tb\r");
        let mut document = Document::new(&text, 1);
        let mut seed = 7u64;
        let mut below = |bound: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % bound
        };
        for number in 0..3000 {
            let starts: Vec<usize> = text
                .char_indices()
                // Between the two characters of a line end there is no position.
                .filter(|(at, c)| !(*c == '\n' && text[..*at].ends_with('\r')))
                .map(|(at, _)| text[..at].encode_utf16().count())
                .chain([text.encode_utf16().count()])
                .collect();
            let from = below(starts.len());
            let to = (from + below(6)).min(starts.len() - 1);
            let (from, to) = (starts[from], starts[to]);
            let piece = if text.len() > 400 { "" } else { pieces[below(pieces.len())] };
            let edit = change(position(&text, from), position(&text, to), piece);
            document.apply(&edit, Encoding::Utf16);
            text = replace(&text, from, to, piece);
            assert_eq!(document.text.to_string(), text, "after edit {number}, {edit:?}");
        }
    }
}
