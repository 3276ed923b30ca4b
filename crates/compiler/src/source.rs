//! Source text positions: byte ranges, files, lines.
//!
//! Everything below the server speaks of byte offsets; [`LineIndex`] turns them into lines and
//! columns at the rim.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A source file, as numbered by whoever owns the files (a database, a command).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub struct FileId(pub u32);

/// A half-open range of bytes in one file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct TextRange {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl TextRange {
    /// The range `start..end`; an inverted pair collapses to the empty range at `start`.
    pub fn new(start: usize, end: usize) -> TextRange {
        let clamp = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        TextRange { start: clamp(start), end: clamp(end.max(start)) }
    }

    /// The empty range at `offset`.
    pub fn empty(offset: usize) -> TextRange {
        TextRange::new(offset, offset)
    }

    /// Number of bytes.
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// True when no byte is covered.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// True when `offset` lies inside, or at the end, which is where a cursor rests after a word.
    pub fn touches(self, offset: usize) -> bool {
        self.start as usize <= offset && offset <= self.end as usize
    }

    /// True when `other` lies wholly inside.
    pub fn contains_range(self, other: TextRange) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The smallest range that covers both.
    pub fn cover(self, other: TextRange) -> TextRange {
        TextRange { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The range as indices for slicing text.
    pub fn as_usize(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl fmt::Debug for TextRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// A range in a known file.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub struct FileRange {
    /// The file.
    pub file: FileId,
    /// The bytes in it.
    pub range: TextRange,
}

/// Line starts of one text, to turn byte offsets into lines and columns and back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineIndex {
    starts: Vec<u32>,
    len: u32,
}

/// A position in lines and characters, both counted from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LineCol {
    /// Line, from zero.
    pub line: u32,
    /// Column in characters (Unicode scalar values), from zero.
    pub col: u32,
}

impl Default for LineIndex {
    /// The lines of an empty text.
    fn default() -> LineIndex {
        LineIndex::new("")
    }
}

impl LineIndex {
    /// Indexes `text`. A line ends after `\n`, `\r\n` or a lone `\r`.
    pub fn new(text: &str) -> LineIndex {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for at in memchr::memchr2_iter(b'\n', b'\r', bytes) {
            let in_pair = bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n');
            if !in_pair {
                starts.push(at as u32 + 1);
            }
        }
        LineIndex { starts, len: bytes.len() as u32 }
    }

    /// Number of lines; the text after the last line end counts as one.
    pub(crate) fn line_count(&self) -> u32 {
        self.starts.len() as u32
    }

    /// The line (from zero) that holds byte `offset`.
    pub fn line(&self, offset: u32) -> u32 {
        self.starts.partition_point(|&start| start <= offset) as u32 - 1
    }

    /// Byte offset of the first byte of `line`, or the text's end past the last line.
    pub fn line_start(&self, line: u32) -> u32 {
        self.starts.get(line as usize).copied().unwrap_or(self.len)
    }

    /// Line and character column of byte `offset` in `text`, the text that was indexed.
    pub fn line_col(&self, text: &str, offset: u32) -> LineCol {
        let offset = offset.min(self.len);
        let line = self.line(offset);
        let start = self.line_start(line) as usize;
        let prefix = text.get(start..offset as usize).unwrap_or_default();
        LineCol { line, col: prefix.chars().count() as u32 }
    }
}
