//! Lowering after an edit: what the edit left alone is taken over from the module before it.

use std::sync::Arc;

use super::module::Collector;
use crate::hir::{Class, Function, Item, ItemKind, Launch, MainBlock, Module, SourceMap};
use crate::source::TextRange;
use crate::syntax::{Kept, Parse, range};

/// Collects the items and the launches in host code; see [`super::module::lower`].
pub(super) fn lower(parse: &Parse, old: &Module, kept: &Kept) -> Module {
    let mut collector = Collector::new(parse.text());
    let root = parse.root();
    let mut cursor = root.walk();
    for statement in root.named_children(&mut cursor) {
        let now = range(statement);
        match kept.place_before(now) {
            Some(then) => take_over(&mut collector.module, old, then, Shift::between(then, now)),
            None => collector.outermost(statement),
        }
    }
    collector.module
}

/// Adds what `old` has of the outermost statement that stood at `then`.
fn take_over(module: &mut Module, old: &Module, then: TextRange, shift: Shift) {
    // What belongs to one statement lies together.
    let starts_before = |at: u32| move |item: &Item| item.range.start < at;
    let first = old.items.partition_point(starts_before(then.start));
    let end = old.items.partition_point(starts_before(then.end));
    let mut items: Vec<Item> = old.items[first..end].iter().map(|item| shift.item(item)).collect();
    share_methods(&mut items);
    module.items.extend(items);
    let inside = |range: TextRange| then.contains_range(range);
    // Launches of scenarios are found with the scenarios, which may stand inside of functions.
    let of_scenario = |launch: &Launch| {
        old.scenarios.iter().any(|scenario| scenario.range.contains_range(launch.range))
    };
    let launches = old.launches.iter();
    let launches = launches.filter(|launch| inside(launch.range) && !of_scenario(launch));
    module.launches.extend(launches.map(|launch| shift.launch(launch)));
    let mains = old.mains.iter().filter(|main| inside(main.range));
    module.mains.extend(mains.map(|main| shift.main(main)));
}

/// Lets classes hold the very methods that are items, as a fresh module has them.
fn share_methods(items: &mut [Item]) {
    let functions: Vec<Arc<Function>> = items
        .iter()
        .filter_map(|item| match &item.kind {
            ItemKind::Function(function) => Some(function.clone()),
            _ => None,
        })
        .collect();
    for item in items {
        let ItemKind::Class(class) = &mut item.kind else { continue };
        let is_own =
            |method: &Arc<Function>| functions.iter().any(|function| Arc::ptr_eq(function, method));
        if class.methods.iter().all(is_own) {
            continue;
        }
        for method in &mut Arc::make_mut(class).methods {
            let same = functions.iter().find(|function| Arc::ptr_eq(&function.body, &method.body));
            if let Some(function) = same {
                *method = function.clone();
            }
        }
    }
}

/// How far a statement moved, in bytes.
#[derive(Debug, Clone, Copy)]
struct Shift(i64);

impl Shift {
    fn between(then: TextRange, now: TextRange) -> Shift {
        Shift(i64::from(now.start) - i64::from(then.start))
    }

    fn range(self, range: TextRange) -> TextRange {
        let place = |offset: u32| (i64::from(offset) + self.0) as u32;
        TextRange { start: place(range.start), end: place(range.end) }
    }

    fn map(self, map: &SourceMap) -> SourceMap {
        let mut map = map.clone();
        let ranges = map.exprs.values_mut().chain(map.stmts.values_mut());
        ranges.for_each(|range| *range = self.range(*range));
        map
    }

    fn shared_map(self, map: &Arc<SourceMap>) -> Arc<SourceMap> {
        if self.0 == 0 { map.clone() } else { Arc::new(self.map(map)) }
    }

    fn item(self, item: &Item) -> Item {
        let kind = match &item.kind {
            ItemKind::Function(function) => ItemKind::Function(self.function(function)),
            ItemKind::Class(class) => ItemKind::Class(self.class(class)),
            ItemKind::Assign { body, map, value, annotation } => ItemKind::Assign {
                body: body.clone(),
                map: self.shared_map(map),
                value: *value,
                annotation: *annotation,
            },
            kind => kind.clone(),
        };
        Item {
            name: item.name.clone(),
            name_range: self.range(item.name_range),
            range: self.range(item.range),
            scope: item.scope.clone(),
            occasion: item.occasion,
            guard: item.guard.clone(),
            kind,
        }
    }

    fn function(self, function: &Arc<Function>) -> Arc<Function> {
        if self.0 == 0 {
            return function.clone();
        }
        let mut params = function.params.clone();
        params.iter_mut().for_each(|param| param.range = self.range(param.range));
        Arc::new(Function {
            name: function.name.clone(),
            decorators: function.decorators.clone(),
            params,
            returns: function.returns,
            doc: function.doc.clone(),
            body: function.body.clone(),
            map: self.map(&function.map),
            changes: function.changes.clone(),
        })
    }

    fn class(self, class: &Arc<Class>) -> Arc<Class> {
        if self.0 == 0 {
            return class.clone();
        }
        Arc::new(Class {
            name: class.name.clone(),
            body: class.body.clone(),
            map: self.map(&class.map),
            decorators: class.decorators.clone(),
            bases: class.bases.clone(),
            fields: class.fields.clone(),
            methods: class.methods.iter().map(|method| self.function(method)).collect(),
        })
    }

    fn launch(self, launch: &Launch) -> Launch {
        let map = self.shared_map(&launch.map);
        Launch { range: self.range(launch.range), map, ..launch.clone() }
    }

    fn main(self, main: &MainBlock) -> MainBlock {
        let map = self.shared_map(&main.map);
        MainBlock { range: self.range(main.range), body: main.body.clone(), map }
    }
}
