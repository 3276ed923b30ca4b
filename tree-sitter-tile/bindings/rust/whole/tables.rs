//! The generated tables, as `src/tree_sitter/parser.h` lays them out for ABI 15.

use std::ffi::{c_char, c_void};
use std::sync::{LazyLock, OnceLock};

use super::lexer::Lexer;

/// A state of the parser.
pub(super) type State = u16;
/// The grammar's number of a token or rule.
pub(super) type Symbol = u16;

/// The end of the text; where a rule that may stand anywhere ends, also "whatever follows".
pub(super) const END: Symbol = 0;
/// The state in which a text begins.
pub(super) const START: State = 1;

/// `TSLanguage`.
#[repr(C)]
struct Language {
    abi_version: u32,
    symbol_count: u32,
    alias_count: u32,
    token_count: u32,
    external_token_count: u32,
    state_count: u32,
    large_state_count: u32,
    production_id_count: u32,
    field_count: u32,
    max_alias_sequence_length: u16,
    parse_table: *const u16,
    small_parse_table: *const u16,
    small_parse_table_map: *const u32,
    parse_actions: *const Entry,
    symbol_names: *const *const c_char,
    field_names: *const *const c_char,
    field_map_slices: *const Slice,
    field_map_entries: *const FieldEntry,
    symbol_metadata: *const Metadata,
    public_symbol_map: *const Symbol,
    alias_map: *const u16,
    alias_sequences: *const Symbol,
    lex_modes: *const LexMode,
    lex: LexFunction,
    keyword_lex: LexFunction,
    keyword_capture_token: Symbol,
    scanner: ScannerFunctions,
    primary_state_ids: *const State,
    name: *const c_char,
    reserved_words: *const Symbol,
    max_reserved_word_set_size: u16,
}

type LexFunction = unsafe extern "C" fn(*mut Lexer<'_>, State) -> bool;

#[repr(C)]
struct ScannerFunctions {
    states: *const bool,
    symbol_map: *const Symbol,
    create: unsafe extern "C" fn() -> *mut c_void,
    destroy: unsafe extern "C" fn(*mut c_void),
    scan: unsafe extern "C" fn(*mut c_void, *mut Lexer<'_>, *const bool) -> bool,
    serialize: unsafe extern "C" fn(*mut c_void, *mut u8) -> u32,
    deserialize: unsafe extern "C" fn(*mut c_void, *const u8, u32),
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Slice {
    index: u16,
    length: u16,
}

#[repr(C)]
struct FieldEntry {
    field: u16,
    child: u8,
    inherited: bool,
}

/// What kind of node a symbol makes.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Metadata {
    pub(super) visible: bool,
    pub(super) named: bool,
    supertype: bool,
}

/// What tokens a state reads.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LexMode {
    lex_state: u16,
    external_lex_state: u16,
    reserved_word_set_id: u16,
}

/// `TSParseActionEntry`: an action, or before actions their count.
#[repr(C, align(2))]
struct Entry([u8; 8]);

/// What to do at a token.
#[derive(Debug, Clone, Copy)]
pub(super) enum Action {
    Shift { state: State, extra: bool },
    Reduce { children: usize, symbol: Symbol, production: u16 },
    Accept,
    Recover,
}

impl Entry {
    fn half(&self, at: usize) -> u16 {
        u16::from_ne_bytes([self.0[at], self.0[at + 1]])
    }

    /// The action; `None` for a shift that stands in only for tools that read the tables.
    fn action(&self) -> Option<Action> {
        let [kind, children, _, _, extra, repetition, ..] = self.0;
        match kind {
            0 if repetition != 0 => None,
            0 => Some(Action::Shift { state: self.half(2), extra: extra != 0 }),
            1 => Some(Action::Reduce {
                children: children.into(),
                symbol: self.half(2),
                production: self.half(6),
            }),
            2 => Some(Action::Accept),
            _ => Some(Action::Recover),
        }
    }
}

/// The tables of the generated parser.
fn language() -> &'static Language {
    // SAFETY: it is a function of the generated parser, whose tables live as long as the program and
    // are laid out as `Language` is.
    let language = unsafe { &*crate::LANGUAGE.into_raw()().cast::<Language>() };
    assert_eq!(language.abi_version, 15, "invariant: the tables are laid out as `Language` is");
    language
}

// SAFETY: nothing writes to the tables.
unsafe impl Send for Language {}
unsafe impl Sync for Language {}

/// The tables, with rows of the parse table as wide as there are symbols: most of them are
/// generated as lists of pairs, which have to be searched.
pub(super) struct Tables {
    language: &'static Language,
    /// By state, once it was entered.
    rows: Box<[OnceLock<Box<[u16]>>]>,
}

/// One for all threads.
pub(super) static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let language = language();
    Tables { language, rows: (0..language.state_count).map(|_| OnceLock::new()).collect() }
});

// SAFETY of all that follows: pointers of `Language` are to arrays of the generated parser, which
// live as long as the program, and indices come from the tables themselves or from the counts
// beside them.
impl Tables {
    /// What the parse table says of a state and symbol.
    fn cell(&self, state: State, symbol: Symbol) -> u16 {
        let row = self.rows[usize::from(state)].get_or_init(|| self.row(state));
        row[usize::from(symbol)]
    }

    fn row(&self, state: State) -> Box<[u16]> {
        let language = self.language;
        let width = language.symbol_count as usize;
        let Some(small) = u32::from(state).checked_sub(language.large_state_count) else {
            let start = usize::from(state) * width;
            let row = unsafe { std::slice::from_raw_parts(language.parse_table.add(start), width) };
            return row.into();
        };
        let mut at = unsafe {
            let start = *language.small_parse_table_map.add(small as usize);
            language.small_parse_table.add(start as usize)
        };
        let mut next = || unsafe {
            let value = *at;
            at = at.add(1);
            value
        };
        let mut row = vec![0; width].into_boxed_slice();
        for _ in 0..next() {
            let value = next();
            for _ in 0..next() {
                row[usize::from(next())] = value;
            }
        }
        row
    }

    /// The actions of `state` at a token, and whether a token that was read in another state would
    /// be read alike in this one.
    pub(super) fn actions(
        &self,
        state: State,
        token: Symbol,
    ) -> (impl DoubleEndedIterator<Item = Action> + Clone + use<>, bool) {
        let cell = usize::from(self.cell(state, token));
        let (head, list) = unsafe {
            let head = &*self.language.parse_actions.add(cell);
            let first = self.language.parse_actions.add(cell + 1);
            (head, std::slice::from_raw_parts::<'static>(first, head.0[0].into()))
        };
        (list.iter().filter_map(Entry::action), head.0[1] != 0)
    }

    /// The state after a whole rule, or a token, in `state`.
    pub(super) fn next_state(&self, state: State, symbol: Symbol) -> State {
        if u32::from(symbol) >= self.language.token_count {
            return self.cell(state, symbol);
        }
        match self.actions(state, symbol).0.next_back() {
            Some(Action::Shift { extra: true, .. }) => state,
            Some(Action::Shift { state, .. }) => state,
            _ => 0,
        }
    }

    pub(super) fn has_actions(&self, state: State, token: Symbol) -> bool {
        self.cell(state, token) != 0
    }

    pub(super) fn is_reserved(&self, state: State, word: Symbol) -> bool {
        let set = usize::from(self.lex_mode(state).reserved_word_set_id);
        let size = usize::from(self.language.max_reserved_word_set_size);
        if set == 0 {
            return false;
        }
        let words = unsafe {
            std::slice::from_raw_parts(self.language.reserved_words.add(set * size), size)
        };
        words.iter().take_while(|known| **known != 0).any(|known| *known == word)
    }

    pub(super) fn lex_mode(&self, state: State) -> LexMode {
        unsafe { *self.language.lex_modes.add(state.into()) }
    }

    /// The token of words that are no keywords.
    pub(super) fn word(&self) -> Symbol {
        self.language.keyword_capture_token
    }

    /// Reads a token of the grammar; false where there is none.
    pub(super) fn lex(&self, lexer: &mut Lexer<'_>, mode: LexMode) -> bool {
        unsafe { (self.language.lex)(lexer, mode.lex_state) }
    }

    /// Reads a keyword; false where there is none.
    pub(super) fn lex_keyword(&self, lexer: &mut Lexer<'_>) -> bool {
        unsafe { (self.language.keyword_lex)(lexer, 0) }
    }

    /// What kind of node a symbol makes.
    pub(super) fn metadata(&self, symbol: Symbol) -> Metadata {
        unsafe { *self.language.symbol_metadata.add(symbol.into()) }
    }

    /// The number under which users know a symbol: several may make nodes of one kind.
    pub(super) fn kind(&self, symbol: Symbol) -> u16 {
        unsafe { *self.language.public_symbol_map.add(symbol.into()) }
    }

    /// The symbol that the `child`th part of a rule goes by, where it is not its own.
    pub(super) fn alias(&self, production: u16, child: usize) -> Option<Symbol> {
        if production == 0 {
            return None;
        }
        let row = usize::from(production) * usize::from(self.language.max_alias_sequence_length);
        let alias = unsafe { *self.language.alias_sequences.add(row + child) };
        (alias != 0).then_some(alias)
    }

    /// The field that the `child`th part of a rule is in.
    pub(super) fn field(&self, production: u16, child: usize) -> Option<u16> {
        let entries = unsafe {
            let slice = *self.language.field_map_slices.add(production.into());
            let first = self.language.field_map_entries.add(slice.index.into());
            std::slice::from_raw_parts(first, slice.length.into())
        };
        let own = |entry: &&FieldEntry| !entry.inherited && usize::from(entry.child) == child;
        entries.iter().find(own).map(|entry| entry.field)
    }
}

impl LexMode {
    /// Whether no token is read: the state is the end of a rule that may stand anywhere.
    pub(super) fn is_none(self) -> bool {
        self.lex_state == u16::MAX
    }

    /// Whether the scanner is asked for a token first.
    pub(super) fn has_external(self) -> bool {
        self.external_lex_state != 0
    }
}

/// `TREE_SITTER_SERIALIZATION_BUFFER_SIZE`.
const SCANNER_STATE_LEN: usize = 1024;

/// The grammar's own scanner.
pub(super) struct Scanner {
    language: &'static Language,
    payload: *mut c_void,
    buffer: Box<[u8; SCANNER_STATE_LEN]>,
}

impl Scanner {
    pub(super) fn new() -> Scanner {
        let language = language();
        let payload = unsafe { (language.scanner.create)() };
        Scanner { language, payload, buffer: Box::new([0; SCANNER_STATE_LEN]) }
    }

    /// Puts it into a state that [`Scanner::state`] told.
    pub(super) fn restore(&mut self, state: &[u8]) {
        let functions = &self.language.scanner;
        unsafe { (functions.deserialize)(self.payload, state.as_ptr(), state.len() as u32) }
    }

    /// Its state.
    pub(super) fn state(&mut self) -> &[u8] {
        let functions = &self.language.scanner;
        let len = unsafe { (functions.serialize)(self.payload, self.buffer.as_mut_ptr()) };
        &self.buffer[..len as usize]
    }

    /// Reads a token of those that `mode` allows; its symbol, where there is one.
    pub(super) fn scan(&mut self, lexer: &mut Lexer<'_>, mode: LexMode) -> Option<Symbol> {
        let functions = &self.language.scanner;
        let row =
            usize::from(mode.external_lex_state) * self.language.external_token_count as usize;
        unsafe {
            let valid = functions.states.add(row);
            let found = (functions.scan)(self.payload, lexer, valid);
            found.then(|| *functions.symbol_map.add(lexer.result().into()))
        }
    }
}

impl Drop for Scanner {
    fn drop(&mut self) {
        unsafe { (self.language.scanner.destroy)(self.payload) }
    }
}
