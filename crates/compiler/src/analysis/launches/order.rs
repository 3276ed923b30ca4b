//! Arguments of a launch that stand in each other's places, by their names.
//!
//! Positional arguments whose names are those of two parameters, crosswise, are exchanged: values of one type pass
//! for each other without a word. It is said of one pair of a launch. A launch that crosses several, as of a product's
//! operands and their sizes, means it, and so does code that launches the kernel both ways.

use super::Site;
use crate::diagnostic::{Code, Diagnostic, TextEdit};
use crate::hir::{Arg, ArgKind, Body, Expr, ExprId, Literal};
use crate::project::{Resolution, launched_by};
use crate::source::{FileRange, TextRange};

/// Endings of parameters' names that say that they are pointers.
const POINTER_ENDINGS: &[&str] = &["_ptrs", "_ptr"];

impl Site<'_> {
    /// Two positional arguments that bear each other's parameters' names.
    pub(super) fn exchanged(&self) -> Option<Diagnostic> {
        let params = &self.kernel.function.params;
        let given: Vec<&Arg> = self.positional().take(params.len()).collect();
        let params: Vec<String> = params.iter().map(|param| plain(&param.name)).collect();
        let is_unique =
            |at: usize| params.iter().filter(|other| **other == params[at]).count() == 1;
        let names = named(&self.launch.body, &given);
        let pairs =
            (0..names.len()).flat_map(|at| (at + 1..names.len()).map(move |other| (at, other)));
        let is_crossed = |(at, other): &(usize, usize)| {
            let meant = (params.get(*other), params.get(*at));
            (names[*at].as_ref(), names[*other].as_ref()) == meant
                && meant.0 != meant.1
                && is_unique(*at)
                && is_unique(*other)
        };
        let mut crossed = pairs.filter(is_crossed);
        let (first, second) = crossed.next()?;
        if crossed.next().is_some() || self.is_straight_elsewhere((first, second), &params) {
            return None;
        }
        let (one, other) = (self.range(given[first].value), self.range(given[second].value));
        let text = self.sources.text(self.file)?;
        let written = |range: TextRange| text.get(range.start as usize..range.end as usize);
        let (to_first, to_second) = (written(other)?, written(one)?);
        let kernel_params = &self.kernel.function.params;
        let (first_name, second_name) = (&kernel_params[first].name, &kernel_params[second].name);
        let message = format!(
            "`{to_second}` is passed as `{first_name}` and `{to_first}` as `{second_name}`"
        );
        // A grid over what is passed first, and not over the other, means it so.
        if self.grid_mentions(to_second) && !self.grid_mentions(to_first) {
            return None;
        }
        let at = |range| FileRange { file: self.file, range };
        let found = self.finding(Code::ExchangedArguments, one, message);
        let found = found.with_related(at(other), format!("this goes to `{second_name}`"));
        let edit = |range, text: &str| TextEdit { at: at(range), text: text.to_owned() };
        let title = format!("Exchange `{to_second}` and `{to_first}`");
        Some(found.with_fix(title, vec![edit(one, to_first), edit(other, to_second)]))
    }

    /// Whether another launch of the kernel passes at two positions what their parameters are called.
    fn is_straight_elsewhere(&self, (first, second): (usize, usize), params: &[String]) -> bool {
        self.module.launches.iter().filter(|other| other.range != self.launch.range).any(|other| {
            let given = other.args.iter().filter(|arg| arg.kind == ArgKind::Positional);
            let names = named(&other.body, &given.collect::<Vec<_>>());
            let is_straight = [first, second]
                .iter()
                .all(|at| names.get(*at).and_then(Option::as_ref) == Some(&params[*at]));
            is_straight
                && launched_by(self.sources, self.file, self.module, other)
                    == Resolution::Jit(self.kernel.at)
        })
    }
}

/// What the arguments of a launch are called; `None` for those that have no name.
fn named(body: &Body, given: &[&Arg]) -> Vec<Option<String>> {
    given.iter().map(|arg| name_of(body, arg.value).map(plain)).collect()
}

/// The name of a variable, a field of one, or what a text picks of one.
fn name_of(body: &Body, id: ExprId) -> Option<&str> {
    match &body.exprs[id] {
        Expr::Name(name) => Some(name),
        Expr::Attribute { value, attr } => {
            matches!(body.exprs[*value], Expr::Name(_)).then_some(&**attr)
        }
        Expr::Subscript { value, index } => match (&body.exprs[*value], &body.exprs[*index]) {
            (Expr::Name(_), Expr::Literal(Literal::Str(text))) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// A name without what says that it is a pointer, in small letters.
fn plain(name: &str) -> String {
    let name = name.to_lowercase();
    let ending = POINTER_ENDINGS.iter().find_map(|ending| name.strip_suffix(ending));
    ending.filter(|rest| !rest.is_empty()).unwrap_or(&name).to_owned()
}
