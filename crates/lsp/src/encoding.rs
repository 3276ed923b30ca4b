//! Positions as the protocol counts them, in the encoding that was negotiated.
//!
//! Below the rim everything is a byte offset. A position past the end of its line means the end of
//! the line, and a line past the end of the text means the end of the text, as the protocol says.

use ropey::{Rope, RopeSlice};
use tile_compiler::source::TextRange;
use tower_lsp::ls_types::{ClientCapabilities, Position, PositionEncodingKind, Range};

/// What a character of a line counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// UTF-16 code units: the protocol's default.
    #[default]
    Utf16,
    /// Unicode scalar values.
    Utf32,
}

impl Encoding {
    /// The best encoding that the client offers. Bytes cost nothing to convert.
    pub fn negotiate(capabilities: &ClientCapabilities) -> Encoding {
        let offered = capabilities
            .general
            .as_ref()
            .and_then(|general| general.position_encodings.as_deref())
            .unwrap_or_default();
        let offers = |kind: &PositionEncodingKind| offered.contains(kind);
        if offers(&PositionEncodingKind::UTF8) {
            Encoding::Utf8
        } else if offers(&PositionEncodingKind::UTF32) && !offers(&PositionEncodingKind::UTF16) {
            Encoding::Utf32
        } else {
            Encoding::Utf16
        }
    }

    /// The protocol's name.
    pub fn kind(self) -> PositionEncodingKind {
        match self {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
            Encoding::Utf32 => PositionEncodingKind::UTF32,
        }
    }

    fn width(self, c: char) -> u32 {
        match self {
            Encoding::Utf8 => c.len_utf8() as u32,
            Encoding::Utf16 => c.len_utf16() as u32,
            Encoding::Utf32 => 1,
        }
    }

    /// The byte offset of a position.
    pub fn offset(self, text: &Rope, position: Position) -> usize {
        let line = position.line as usize;
        if line >= text.len_lines() {
            return text.len_bytes();
        }
        let mut units = 0;
        let mut offset = text.line_to_byte(line);
        for c in line_content(text, line).chars() {
            if units >= position.character {
                break;
            }
            units += self.width(c);
            offset += c.len_utf8();
        }
        offset
    }

    /// The position of a byte offset; offsets inside a character count as its start.
    pub fn position(self, text: &Rope, offset: usize) -> Position {
        let offset = offset.min(text.len_bytes());
        let line = text.byte_to_line(offset);
        let (start, at) = (text.line_to_char(line), text.byte_to_char(offset));
        // The rope counts each of them for whole pieces of the text.
        let character = match self {
            Encoding::Utf8 => text.char_to_byte(at) - text.char_to_byte(start),
            Encoding::Utf16 => text.char_to_utf16_cu(at) - text.char_to_utf16_cu(start),
            Encoding::Utf32 => at - start,
        };
        Position { line: line as u32, character: character as u32 }
    }

    /// The bytes of a range; an inverted one is empty.
    pub fn text_range(self, text: &Rope, range: Range) -> TextRange {
        TextRange::new(self.offset(text, range.start), self.offset(text, range.end))
    }

    /// The range of some bytes.
    pub fn range(self, text: &Rope, range: TextRange) -> Range {
        Range {
            start: self.position(text, range.start as usize),
            end: self.position(text, range.end as usize),
        }
    }
}

/// A line without its line end.
fn line_content(text: &Rope, line: usize) -> RopeSlice<'_> {
    let slice = text.line(line);
    let mut len = slice.len_chars();
    while len > 0 && matches!(slice.char(len - 1), '\n' | '\r') {
        len -= 1;
    }
    slice.slice(..len)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a = 1\r\n# né 日本 😀 end\n\tx\rlast";

    fn every_encoding(check: impl Fn(Encoding, &Rope)) {
        let text = Rope::from_str(TEXT);
        for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
            check(encoding, &text);
        }
    }

    #[test]
    fn positions_of_character_starts_round_trip() {
        every_encoding(|encoding, text| {
            for (offset, c) in TEXT.char_indices() {
                // Between the two characters of a line end there is no position.
                if c == '\n' && TEXT[..offset].ends_with('\r') {
                    continue;
                }
                let position = encoding.position(text, offset);
                assert_eq!(encoding.offset(text, position), offset, "{encoding:?} {offset}");
            }
        });
    }

    #[test]
    fn units_differ_by_encoding() {
        let text = Rope::from_str(TEXT);
        let end = TEXT.find(" end").unwrap();
        let character = |encoding: Encoding| encoding.position(&text, end).character;
        assert_eq!(character(Encoding::Utf8), 17);
        assert_eq!(character(Encoding::Utf16), 10);
        assert_eq!(character(Encoding::Utf32), 9);
    }

    #[test]
    fn positions_beyond_the_text_mean_its_end() {
        every_encoding(|encoding, text| {
            let far = |line, character| encoding.offset(text, Position { line, character });
            assert_eq!(far(0, 99), 5, "the end of the line, before its line end");
            assert_eq!(far(99, 0), TEXT.len());
        });
    }
}
