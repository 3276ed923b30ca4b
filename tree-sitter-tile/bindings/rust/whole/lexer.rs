//! Characters of a text, as generated lexers and scanners ask for them.

use std::ffi::c_char;

use super::tables::Symbol;

/// `TSLexer`, and behind it what its functions need.
#[repr(C)]
pub(super) struct Lexer<'t> {
    lookahead: i32,
    result_symbol: Symbol,
    advance: unsafe extern "C" fn(*mut Lexer<'t>, bool),
    mark_end: unsafe extern "C" fn(*mut Lexer<'t>),
    get_column: unsafe extern "C" fn(*mut Lexer<'t>) -> u32,
    is_at_included_range_start: unsafe extern "C" fn(*const Lexer<'t>) -> bool,
    eof: unsafe extern "C" fn(*const Lexer<'t>) -> bool,
    log: unsafe extern "C" fn(*const Lexer<'t>, *const c_char),
    text: &'t str,
    /// Where the character in `lookahead` begins.
    position: usize,
    /// How many bytes it takes; 0 at the end of the text.
    width: usize,
    token_start: usize,
    /// `None` until the token's end is marked.
    token_end: Option<usize>,
}

const BYTE_ORDER_MARK: char = '\u{feff}';

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Lexer<'t> {
        Lexer {
            lookahead: 0,
            result_symbol: 0,
            advance,
            mark_end,
            get_column,
            is_at_included_range_start,
            eof,
            log,
            text,
            position: 0,
            width: 0,
            token_start: 0,
            token_end: None,
        }
    }

    /// Begins a token, or the white space in front of it, at a byte.
    pub(super) fn start(&mut self, position: usize) {
        self.go_to(position);
        self.token_start = position;
        self.token_end = None;
        self.result_symbol = 0;
        if position == 0 && self.text.starts_with(BYTE_ORDER_MARK) {
            self.advance(true);
        }
    }

    /// Where the token that was read stands.
    pub(super) fn token(&self) -> (usize, usize) {
        let end = self.token_end.unwrap_or(self.position);
        (self.token_start.min(end), end)
    }

    /// The token that was read: of the grammar's own scanner, its number among those.
    pub(super) fn result(&self) -> Symbol {
        self.result_symbol
    }

    fn go_to(&mut self, position: usize) {
        self.position = position;
        let bytes = self.text.as_bytes();
        (self.lookahead, self.width) = match bytes.get(position) {
            None => (0, 0),
            Some(byte) if byte.is_ascii() => ((*byte).into(), 1),
            Some(_) => {
                let next = self.text[position..].chars().next().unwrap_or_default();
                (next as i32, next.len_utf8())
            }
        };
    }

    fn advance(&mut self, skip: bool) {
        if self.width == 0 {
            return;
        }
        self.go_to(self.position + self.width);
        if skip {
            self.token_start = self.position;
        }
    }

    /// Characters between the start of the line and here.
    fn column(&self) -> u32 {
        let before = &self.text[..self.position];
        let line = before.rfind('\n').map_or(0, |end| end + 1);
        let text = &before[line..];
        let mark = line == 0 && text.starts_with(BYTE_ORDER_MARK);
        text.chars().count() as u32 - u32::from(mark)
    }
}

// SAFETY of these: lexers and scanners call them with the lexer they were given.

unsafe extern "C" fn advance(lexer: *mut Lexer<'_>, skip: bool) {
    unsafe { (*lexer).advance(skip) }
}

unsafe extern "C" fn mark_end(lexer: *mut Lexer<'_>) {
    unsafe { (*lexer).token_end = Some((*lexer).position) }
}

unsafe extern "C" fn get_column(lexer: *mut Lexer<'_>) -> u32 {
    unsafe { (*lexer).column() }
}

unsafe extern "C" fn is_at_included_range_start(_: *const Lexer<'_>) -> bool {
    false
}

unsafe extern "C" fn eof(lexer: *const Lexer<'_>) -> bool {
    unsafe { (*lexer).width == 0 }
}

unsafe extern "C" fn log(_: *const Lexer<'_>, _: *const c_char) {}
