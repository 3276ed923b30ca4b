//! Items compared apart from where they stand, so that whoever keeps answers knows which of them
//! an edit leaves alone.
//!
//! Ranges inside of an item count from its start: an item that moves as one stays the same, and a
//! range in it is found again by the distance between the two starts.

use super::{Body, ExprId, Function, Item, ItemKind, Launch, MainBlock, Module, SourceMap};
use crate::source::TextRange;

/// True when both modules bind the same names in the same order to what looks the same from
/// outside, everything but statements of functions and methods of classes, and run the same
/// statements when they are imported.
pub fn same_heads(old: &Module, new: &Module) -> bool {
    old.items.len() == new.items.len()
        && old.items.iter().zip(&new.items).all(|(old, new)| same_head(old, new))
        && same_statements(old, new, |main| !main.is_program)
}

/// True when the outermost statements that `counts` chooses are the same.
fn same_statements(old: &Module, new: &Module, counts: fn(&MainBlock) -> bool) -> bool {
    let of = |module: &Module| {
        let statements = module.mains.iter().filter(|main| counts(main));
        statements.map(|main| main.body.clone()).collect::<Vec<_>>()
    };
    of(old) == of(new)
}

/// True when host code, launches and scenarios are the same: everything but the statements of
/// the functions at the indices that `is_kernel` names.
pub fn same_host(old: &Module, new: &Module, is_kernel: impl Fn(u32) -> bool) -> bool {
    let same_items = || {
        let items = old.items.iter().zip(&new.items).enumerate();
        let mut hosts = items.filter(|(index, _)| !is_kernel(*index as u32));
        hosts.all(|(_, (old, new))| same_inside(old, new))
    };
    let same_launches = || {
        old.launches.len() == new.launches.len()
            && old.launches.iter().zip(&new.launches).all(|(old, new)| same_launch(old, new))
            && places(old) == places(new)
    };
    let same_scenarios = || {
        old.scenarios.len() == new.scenarios.len()
            && old.scenarios.iter().zip(&new.scenarios).all(|(old, new)| old.body == new.body)
    };
    let same_program = || same_statements(old, new, |main| main.is_program);
    same_heads(old, new) && same_items() && same_launches() && same_scenarios() && same_program()
}

/// True when the items are the same from outside; see [`same_heads`].
fn same_head(old: &Item, new: &Item) -> bool {
    let moved = Moved::between(old.range, new.range);
    let named = old.name == new.name
        && old.scope == new.scope
        && old.occasion == new.occasion
        && old.guard == new.guard
        && moved.range(old.name_range) == new.name_range;
    named
        && match (&old.kind, &new.kind) {
            (ItemKind::Function(old), ItemKind::Function(new)) => moved.function_head(old, new),
            (ItemKind::Class(old), ItemKind::Class(new)) => {
                let heads = old.methods.iter().zip(&new.methods);
                old.name == new.name
                    && old.body == new.body
                    && old.decorators == new.decorators
                    && old.bases == new.bases
                    && old.metaclass == new.metaclass
                    && old.fields == new.fields
                    && moved.map(&old.body, &old.map, &new.map)
                    && old.methods.len() == new.methods.len()
                    && heads.into_iter().all(|(old, new)| old.name == new.name)
            }
            (
                ItemKind::Assign { body, map, value, annotation },
                ItemKind::Assign {
                    body: new_body,
                    map: new_map,
                    value: new_value,
                    annotation: new_annotation,
                },
            ) => {
                body == new_body
                    && value == new_value
                    && annotation == new_annotation
                    && moved.map(body, map, new_map)
            }
            (
                ItemKind::Element { body, map, call, index },
                ItemKind::Element {
                    body: new_body,
                    map: new_map,
                    call: new_call,
                    index: new_index,
                },
            ) => {
                body == new_body
                    && call == new_call
                    && index == new_index
                    && moved.map(body, map, new_map)
            }
            (old, new) => old == new,
        }
}

/// True when what the items hold inside is the same: statements of functions, and methods of
/// classes. Their heads are not looked at.
pub fn same_inside(old: &Item, new: &Item) -> bool {
    let moved = Moved::between(old.range, new.range);
    match (&old.kind, &new.kind) {
        (ItemKind::Function(old), ItemKind::Function(new)) => moved.function(old, new),
        (ItemKind::Class(old), ItemKind::Class(new)) => {
            let mut methods = old.methods.iter().zip(&new.methods);
            old.methods.len() == new.methods.len()
                && methods.all(|(old, new)| moved.function(old, new))
        }
        _ => true,
    }
}

fn same_launch(old: &Launch, new: &Launch) -> bool {
    old.body == new.body
        && old.kernel == new.kernel
        && old.grid == new.grid
        && old.args == new.args
        && old.host == new.host
}

/// Which item and which scenario holds each launch, and the order of it all.
fn places(module: &Module) -> Vec<(Option<usize>, Option<usize>)> {
    let place = |launch: &Launch| {
        let items = module.items.iter();
        let scenarios = module.scenarios.iter();
        (
            items.rev().position(|item| item.range.contains_range(launch.range)),
            scenarios.rev().position(|scenario| scenario.range.contains_range(launch.range)),
        )
    };
    module.launches.iter().map(place).collect()
}

/// A move of everything in an item.
#[derive(Debug, Clone, Copy)]
struct Moved {
    by: i64,
}

impl Moved {
    fn between(old: TextRange, new: TextRange) -> Moved {
        Moved { by: i64::from(new.start) - i64::from(old.start) }
    }

    fn range(self, range: TextRange) -> TextRange {
        let place = |offset: u32| (i64::from(offset) + self.by) as u32;
        TextRange { start: place(range.start), end: place(range.end) }
    }

    fn map(self, body: &Body, old: &SourceMap, new: &SourceMap) -> bool {
        body.exprs.keys().all(|expr| self.range(old.exprs[expr]) == new.exprs[expr])
            && body.stmts.keys().all(|stmt| self.range(old.stmts[stmt]) == new.stmts[stmt])
    }

    /// Everything of a function up to its statements, and what these do to variables around it.
    /// Its expressions come first in the arena.
    fn function_head(self, old: &Function, new: &Function) -> bool {
        let mut params = old.params.iter().zip(&new.params);
        old.name == new.name
            && old.changes == new.changes
            && old.globals == new.globals
            && old.decorators == new.decorators
            && old.returns == new.returns
            && old.params.len() == new.params.len()
            && params.all(|(old, new)| {
                old.name == new.name
                    && old.annotation == new.annotation
                    && old.default == new.default
                    && old.kind == new.kind
                    && self.range(old.range) == new.range
            })
            && self.roots(old, new)
    }

    /// The expressions of decorators, parameters and the return annotation.
    fn roots(self, old: &Function, new: &Function) -> bool {
        let parts = old.params.iter().flat_map(|param| [param.annotation, param.default]);
        let roots = parts.chain([old.returns]).flatten().chain(old.decorators.iter().copied());
        roots.into_iter().all(|root| self.tree(old, new, root))
    }

    fn tree(self, old: &Function, new: &Function, root: ExprId) -> bool {
        let (before, after) = (&old.body.exprs[root], new.body.exprs.get(root));
        let mut same =
            after == Some(before) && self.range(old.map.exprs[root]) == new.map.exprs[root];
        before.for_each_child(|child| same = same && self.tree(old, new, child));
        same
    }

    fn function(self, old: &Function, new: &Function) -> bool {
        old.body == new.body && old.doc == new.doc && self.map(&old.body, &old.map, &new.map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hir::lower;
    use crate::syntax::Parse;

    const TEXT: &str = "X = 1\n\ndef f(a=X):\n    return a\n\ndef g():\n    return f(2)\n";

    fn module(text: &str) -> Module {
        lower(&Parse::new(text))
    }

    #[test]
    fn items_that_only_move_stay_the_same() {
        let old = module(TEXT);
        let new = module(&TEXT.replacen("X = 1\n", "# first\n\nX = 1\n# second\n", 1));
        assert!(same_heads(&old, &new));
        assert!(same_host(&old, &new, |_| false));
        assert!(old.items.iter().zip(&new.items).all(|(old, new)| same_inside(old, new)));
    }

    #[test]
    fn an_edit_inside_a_function_is_seen_there_alone() {
        let old = module(TEXT);
        let new = module(&TEXT.replacen("return a", "return a + 1", 1));
        assert!(same_heads(&old, &new));
        let changed: Vec<bool> =
            old.items.iter().zip(&new.items).map(|(old, new)| !same_inside(old, new)).collect();
        assert_eq!(changed, [false, true, false]);
        assert!(!same_host(&old, &new, |_| false));
        assert!(same_host(&old, &new, |index| index == 1));
    }

    #[test]
    fn an_edit_of_what_runs_as_a_program_is_one_of_host_code() {
        let with_main = |call: &str| format!("{TEXT}\nif __name__ == '__main__':\n    {call}\n");
        let old = module(&with_main("f(1)"));
        assert!(!same_host(&old, &module(&with_main("f(2)")), |_| true));
        assert!(same_host(&old, &module(&format!("# first\n{}", with_main("f(1)"))), |_| true));
    }

    #[test]
    fn defaults_and_constants_are_seen_from_outside() {
        let old = module(TEXT);
        for (from, to) in [("X = 1", "X = 2"), ("a=X", "a=3"), ("def g", "def h"), ("f(a", "f(b")] {
            assert!(!same_heads(&old, &module(&TEXT.replacen(from, to, 1))), "{to}");
        }
    }
}
