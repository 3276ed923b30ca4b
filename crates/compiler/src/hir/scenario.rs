//! What `# tile:` lines say: scenarios, and diagnostics that are switched off.

use std::sync::Arc;

use super::{Body, Expr, ExprId, SourceMap, Stmt};
use crate::source::{LineIndex, TextRange};

/// Consecutive scenario lines: a small host program that launches one kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// Range of all its lines.
    pub range: TextRange,
    /// The statements.
    pub body: Arc<Body>,
    /// Where they stand.
    pub map: Arc<SourceMap>,
}

impl Scenario {
    /// True when one of its statements begins inside of `at`.
    fn states_something(&self, at: TextRange) -> bool {
        let begins = |stmt: &TextRange| at.start <= stmt.start && stmt.start < at.end;
        self.range.start < at.end
            && at.start < self.range.end
            && self.map.stmts.values().any(begins)
    }

    /// What the scenario assigns to `name` first, by itself or as a part of a tuple.
    pub fn assigned(&self, name: &str) -> Option<ExprId> {
        self.body.root.iter().find_map(|statement| {
            let Stmt::Assign { targets, value } = &self.body.stmts[*statement] else {
                return None;
            };
            targets.iter().find_map(|target| self.part(*target, *value, name))
        })
    }

    /// The part of `value` that assigning it to `target` gives to `name`.
    fn part(&self, target: ExprId, value: ExprId, name: &str) -> Option<ExprId> {
        match (&self.body.exprs[target], &self.body.exprs[value]) {
            (Expr::Name(found), _) => (**found == *name).then_some(value),
            (Expr::Tuple(targets), Expr::Tuple(values)) if targets.len() == values.len() => {
                let mut pairs = targets.iter().zip(values);
                pairs.find_map(|(target, value)| self.part(*target, *value, name))
            }
            _ => None,
        }
    }
}

/// `# tile: allow CODE`: switches a diagnostic off for the line it ends, or the next line, and what
/// begins further up and ends on that line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allow {
    /// Where the comment stands.
    pub range: TextRange,
    /// `family/name` or `family`.
    pub code: Arc<str>,
    /// Where the code stands.
    pub code_range: TextRange,
    /// True when code stands before it on its line.
    pub trailing: bool,
}

impl Allow {
    /// The line (from zero) on which the code is switched off: its own when it ends a line of
    /// code, else the next line that is neither blank nor a comment, of which the statements of
    /// scenarios are none.
    pub fn line(&self, lines: &LineIndex, text: &str, scenarios: &[Scenario]) -> u32 {
        let own = lines.line(self.range.start);
        if self.trailing {
            return own;
        }
        let is_code = |line: &u32| {
            let at = TextRange { start: lines.line_start(*line), end: lines.line_start(line + 1) };
            let line = text.get(at.as_usize()).unwrap_or_default().trim();
            let is_stated = || scenarios.iter().any(|scenario| scenario.states_something(at));
            !line.is_empty() && (!line.starts_with('#') || is_stated())
        };
        (own + 1..lines.line_count()).find(is_code).unwrap_or(own)
    }
}
