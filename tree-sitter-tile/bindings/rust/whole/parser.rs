//! Shifts and reductions.
//!
//! Where the tables name several actions, each is followed with a stack of its own until all but one
//! have met a token that they cannot go on with. Nothing is recovered, merged or compared: a text
//! that needs it is left to tree-sitter.

use std::mem;
use std::ops::Range;

use super::lexer::Lexer;
use super::tables::{Action, END, LexMode, START, Scanner, State, Symbol, TABLES, Tables};

/// What the parser made of a token or rule.
#[derive(Debug, Clone, Copy)]
pub(super) struct Made {
    pub(super) symbol: Symbol,
    /// The rule, of what is no token.
    pub(super) production: u16,
    /// Whether it may stand anywhere and is no part of the rule that it stands in.
    pub(super) extra: bool,
    pub(super) start: u32,
    pub(super) end: u32,
    /// Where its parts begin in [`Forest::parts`].
    pub(super) first_part: u32,
    pub(super) parts: u32,
}

impl Made {
    /// A rule that holds nothing yet and stands nowhere.
    fn rule(symbol: Symbol, production: u16, extra: bool) -> Made {
        Made { symbol, production, extra, start: 0, end: 0, first_part: 0, parts: 0 }
    }
}

/// All that was made for a text, also by stacks that were given up.
#[derive(Debug, Default)]
pub(super) struct Forest {
    pub(super) made: Vec<Made>,
    /// Parts of rules, as indices of `made`.
    pub(super) parts: Vec<u32>,
}

impl Forest {
    fn add(&mut self, made: Made) -> u32 {
        self.made.push(made);
        (self.made.len() - 1) as u32
    }

    pub(super) fn parts(&self, of: &Made) -> &[u32] {
        &self.parts[of.first_part as usize..][..of.parts as usize]
    }
}

/// What was made of a part of the text, and the state after it.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// In [`Forest::made`].
    made: u32,
    state: State,
    /// As in [`Made`].
    extra: bool,
}

/// One way to read the text so far.
#[derive(Debug, Clone)]
struct Version {
    stack: Vec<Entry>,
    /// The end of what was read.
    position: usize,
    /// The state of the scanner there.
    scanner: ScannerState,
}

/// A state of the scanner: where it stands in [`Run::scanner_states`].
#[derive(Debug, Clone, Copy)]
struct ScannerState {
    start: u32,
    end: u32,
}

impl ScannerState {
    fn bytes(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

#[derive(Debug, Clone, Copy)]
struct Token {
    symbol: Symbol,
    start: usize,
    end: usize,
    /// Whether the word is a keyword somewhere.
    is_keyword: bool,
    /// What tokens the state read in which it was read.
    mode: LexMode,
    /// That state.
    state: State,
    /// The state of the scanner behind it, when the scanner read it.
    scanner: Option<ScannerState>,
}

enum Step {
    Shifted,
    /// The token cannot follow.
    Stuck,
    /// The whole text was read: the outermost rule, and what stands around it.
    Accepted(Vec<u32>),
}

/// Texts have a few readings for some tokens; where there are more of them at once, there are many.
const MOST_VERSIONS: usize = 8;

/// A text that has to be left to tree-sitter.
struct GaveUp;

/// What follows begins no token that could stand there.
struct NoToken;

/// Reads a whole text: all that was made, and what of it is outermost.
pub(super) fn parse(text: &str) -> Option<(Forest, Vec<u32>)> {
    let mut run = Run {
        tables: &TABLES,
        scanner: Scanner::new(),
        lexer: Lexer::new(text),
        forest: Forest::default(),
        scanner_states: Vec::new(),
        others: Vec::new(),
        last: None,
    };
    let outermost = run.run().ok()?;
    Some((run.forest, outermost))
}

struct Run<'t> {
    tables: &'static Tables,
    scanner: Scanner,
    lexer: Lexer<'t>,
    forest: Forest,
    /// One behind the other.
    scanner_states: Vec<u8>,
    /// Versions beside the one that goes on.
    others: Vec<Version>,
    /// The last token that was read, where, and after which state of the scanner, while there are
    /// several versions.
    last: Option<(usize, ScannerState, Token)>,
}

impl Run<'_> {
    fn run(&mut self) -> Result<Vec<u32>, GaveUp> {
        let scanner = ScannerState { start: 0, end: 0 };
        let mut version = Version { stack: Vec::new(), position: 0, scanner };
        let mut accepted = None;
        loop {
            let goes_on = match self.advance(&mut version)? {
                Step::Shifted => true,
                Step::Stuck => false,
                Step::Accepted(_) if accepted.is_some() => return Err(GaveUp),
                Step::Accepted(outermost) => {
                    accepted = Some(outermost);
                    false
                }
            };
            if !goes_on {
                match self.others.pop() {
                    Some(other) => version = other,
                    None => return accepted.ok_or(GaveUp),
                }
            }
            self.choose(&mut version)?;
        }
    }

    /// Lets the version go on that has read least.
    fn choose(&mut self, version: &mut Version) -> Result<(), GaveUp> {
        if self.others.is_empty() {
            self.last = None;
            return Ok(());
        }
        self.refuse_ambiguity(version)?;
        for other in &mut self.others {
            if other.position < version.position {
                mem::swap(other, version);
            }
        }
        Ok(())
    }

    /// Two versions that agree in all states will agree in all that follows, and somebody had to
    /// choose.
    fn refuse_ambiguity(&self, version: &Version) -> Result<(), GaveUp> {
        let agrees = |other: &Version| {
            let mut states = other.stack.iter().rev().zip(version.stack.iter().rev());
            other.position == version.position
                && other.stack.len() == version.stack.len()
                && states.all(|(other, this)| other.state == this.state)
        };
        match self.others.len() >= MOST_VERSIONS || self.others.iter().any(agrees) {
            true => Err(GaveUp),
            false => Ok(()),
        }
    }

    /// Reads the next token and does what the tables say until it is shifted.
    fn advance(&mut self, version: &mut Version) -> Result<Step, GaveUp> {
        let Ok(mut token) = self.next_token(version) else { return Ok(Step::Stuck) };
        loop {
            let state = state(version);
            let symbol = token.as_ref().map_or(END, |token| token.symbol);
            let mut actions = self.tables.actions(state, symbol).0;
            let Some(last) = actions.next_back() else {
                if !self.retry_as_word(state, token.as_mut()) {
                    return Ok(Step::Stuck);
                }
                continue;
            };
            for action in actions {
                let Action::Reduce { .. } = action else { return Err(GaveUp) };
                let mut other = version.clone();
                self.reduce(&mut other, action, token.is_none())?;
                self.refuse_ambiguity(&other)?;
                self.others.push(other);
                self.last = Some((version.position, version.scanner, token.ok_or(GaveUp)?));
            }
            match (last, token) {
                (Action::Shift { state: next, extra }, Some(token)) => {
                    let next = if extra { state } else { next };
                    self.shift(version, token, next, extra);
                    return Ok(Step::Shifted);
                }
                (Action::Reduce { .. }, read) => {
                    self.reduce(version, last, read.is_none())?;
                    if !self.others.is_empty() {
                        self.refuse_ambiguity(version)?;
                    }
                    token = match read {
                        Some(token) => Some(token),
                        None => match self.next_token(version) {
                            Ok(token) => token,
                            Err(NoToken) => return Ok(Step::Stuck),
                        },
                    };
                }
                (Action::Accept, Some(_)) => {
                    let outermost = version.stack.iter().map(|entry| entry.made);
                    return Ok(Step::Accepted(outermost.collect()));
                }
                _ => return Err(GaveUp),
            }
        }
    }

    /// A keyword that cannot stand here may be a name.
    fn retry_as_word(&mut self, state: State, token: Option<&mut Token>) -> bool {
        let word = self.tables.word();
        let Some(token) = token.filter(|token| token.is_keyword && token.symbol != word) else {
            return false;
        };
        if self.tables.is_reserved(state, token.symbol) || !self.tables.has_actions(state, word) {
            return false;
        }
        token.symbol = word;
        true
    }

    fn shift(&mut self, version: &mut Version, token: Token, next: State, extra: bool) {
        let Token { symbol, start, end, scanner, .. } = token;
        let leaf = Made { start: start as u32, end: end as u32, ..Made::rule(symbol, 0, extra) };
        version.stack.push(Entry { made: self.forest.add(leaf), state: next, extra });
        version.position = end;
        if let Some(scanner) = scanner {
            version.scanner = scanner;
        }
    }

    /// Makes a rule of what is on top of the stack.
    fn reduce(
        &mut self,
        version: &mut Version,
        action: Action,
        ends_extra: bool,
    ) -> Result<(), GaveUp> {
        let Action::Reduce { children, symbol, production } = action else { return Err(GaveUp) };
        let taken = parts(&version.stack, children).ok_or(GaveUp)?;
        let below = taken.start.checked_sub(1).map_or(START, |at| version.stack[at].state);
        let next = self.tables.next_state(below, symbol);
        let extra = ends_extra && next == below;
        let whole = self.rule(version, taken.clone(), Made::rule(symbol, production, extra));
        let whole = Entry { made: self.forest.add(whole), state: next, extra };
        // What may stand anywhere and stood last stays outside.
        let behind = taken.end..version.stack.len();
        let extras = behind.len();
        version.stack.resize(version.stack.len().max(taken.start + 1), whole);
        version.stack[taken.start] = whole;
        version.stack.copy_within(behind, taken.start + 1);
        version.stack.truncate(taken.start + 1 + extras);
        for entry in &mut version.stack[taken.start + 1..] {
            entry.state = next;
        }
        Ok(())
    }

    /// The rule with these parts of the stack.
    fn rule(&mut self, version: &Version, taken: Range<usize>, rule: Made) -> Made {
        let Forest { made, parts } = &mut self.forest;
        let first_part = parts.len();
        parts.extend(version.stack[taken].iter().map(|entry| entry.made));
        let here = version.position as u32;
        let (start, end) = match &parts[first_part..] {
            [] => (here, here),
            [first, .., last] => (made[*first as usize].start, made[*last as usize].end),
            [only] => (made[*only as usize].start, made[*only as usize].end),
        };
        let (first_part, parts) = (first_part as u32, (parts.len() - first_part) as u32);
        Made { start, end, first_part, parts, ..rule }
    }

    /// The token at the version's position; `None` where the state is the end of a rule that may
    /// stand anywhere.
    fn next_token(&mut self, version: &Version) -> Result<Option<Token>, NoToken> {
        let state = state(version);
        let mode = self.tables.lex_mode(state);
        if mode.is_none() {
            return Ok(None);
        }
        if let Some(token) = self.read_before(version, state, mode) {
            return Ok(Some(token));
        }
        let token = match self.external_token(version, state, mode) {
            Some(token) => token,
            None => self.internal_token(version, state, mode).ok_or(NoToken)?,
        };
        if !self.others.is_empty() {
            self.last = Some((version.position, version.scanner, token));
        }
        Ok(Some(token))
    }

    /// The token that another version read here, if this one would read the same.
    fn read_before(&mut self, version: &Version, state: State, mode: LexMode) -> Option<Token> {
        let (position, scanner, token) = self.last?;
        let states = &self.scanner_states;
        let same_scanner = states[scanner.bytes()] == states[version.scanner.bytes()];
        if position != version.position || !same_scanner {
            return None;
        }
        let (mut actions, is_reusable) = self.tables.actions(state, token.symbol);
        let has_actions = actions.next().is_some();
        let is_word = token.symbol == self.tables.word();
        let same_word = !is_word || (!token.is_keyword && token.state == state);
        let same = has_actions && token.mode == mode && same_word;
        let is_empty = token.start == token.end && token.symbol != END;
        (same || (!is_empty && !mode.has_external() && is_reusable)).then_some(token)
    }

    fn external_token(&mut self, version: &Version, state: State, mode: LexMode) -> Option<Token> {
        if !mode.has_external() {
            return None;
        }
        self.lexer.start(version.position);
        let before = version.scanner.bytes();
        self.scanner.restore(&self.scanner_states[before.clone()]);
        let symbol = self.scanner.scan(&mut self.lexer, mode)?;
        let (start, end) = self.lexer.token();
        let after = self.scanner.state();
        let scanner = if *after != self.scanner_states[before] {
            let start = self.scanner_states.len() as u32;
            self.scanner_states.extend_from_slice(after);
            ScannerState { start, end: self.scanner_states.len() as u32 }
        } else if end <= version.position && self.tables.next_state(state, symbol) == state {
            // It would be read again and again.
            return None;
        } else {
            version.scanner
        };
        let scanner = Some(scanner);
        Some(Token { symbol, start, end, is_keyword: false, mode, state, scanner })
    }

    fn internal_token(&mut self, version: &Version, state: State, mode: LexMode) -> Option<Token> {
        self.lexer.start(version.position);
        if !self.tables.lex(&mut self.lexer, mode) {
            return None;
        }
        let mut symbol = self.lexer.result();
        let (start, end) = self.lexer.token();
        let mut is_keyword = false;
        if symbol == self.tables.word() {
            self.lexer.start(start);
            is_keyword = self.tables.lex_keyword(&mut self.lexer);
            let keyword = self.lexer.result();
            let is_whole = is_keyword && self.lexer.token().1 == end;
            if is_whole
                && (self.tables.has_actions(state, keyword)
                    || self.tables.is_reserved(state, keyword))
            {
                symbol = keyword;
            }
        }
        Some(Token { symbol, start, end, is_keyword, mode, state, scanner: None })
    }
}

fn state(version: &Version) -> State {
    version.stack.last().map_or(START, |entry| entry.state)
}

/// Where the last `children` parts of a rule are on the stack, with what stands between them.
fn parts(stack: &[Entry], children: usize) -> Option<Range<usize>> {
    let mut end = stack.len();
    while children > 0 && end > 0 && stack[end - 1].extra {
        end -= 1;
    }
    let (mut start, mut missing) = (end, children);
    while missing > 0 {
        start = start.checked_sub(1)?;
        missing -= usize::from(!stack[start].extra);
    }
    Some(start..end)
}
