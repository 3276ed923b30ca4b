//! Lowering after an edit: what the edit left alone is taken over from the module before it.

use std::sync::Arc;

use super::module::Collector;
use super::scopes::StatementNames;
use crate::hir::{Class, Function, Item, ItemKind, Launch, MainBlock, Module, SourceMap};
use crate::source::TextRange;
use crate::syntax::Kept;
use crate::syntax::statement::Statement;

/// Collects the items and the launches in host code; see [`super::module::lower`].
pub(super) fn lower(
    text: &str,
    statements: &[Statement<'_>],
    (old, kept): (&Module, &Kept),
) -> Module {
    let mut collector = Collector::new(text);
    let older = Older::new(old);
    for statement in statements {
        let now = statement.range();
        match kept.place_before(now) {
            Some(then) => older.hand_over(&mut collector.module, then, Shift::between(then, now)),
            None => collector.outermost(statement.top()),
        }
    }
    collector.module
}

/// What a module has, in the order of its outermost statements.
struct Older<'a> {
    items: &'a [Item],
    /// Those of host code. The launches of scenarios are found with the scenarios, which may stand
    /// inside of functions.
    launches: Vec<&'a Launch>,
    mains: &'a [MainBlock],
    names: &'a [(TextRange, Arc<StatementNames>)],
}

impl<'a> Older<'a> {
    fn new(module: &'a Module) -> Older<'a> {
        // Statements may stand between the lines of a scenario, behind a carriage return.
        let of_host = |launch: &&Launch| {
            let mut scenarios = module.scenarios.iter();
            !scenarios.any(|scenario| Arc::ptr_eq(&scenario.body, &launch.body))
        };
        Older {
            items: &module.items,
            launches: module.launches.iter().filter(of_host).collect(),
            mains: &module.mains,
            names: &module.names,
        }
    }

    /// Adds what there is of the outermost statement that stood at `then`.
    fn hand_over(&self, module: &mut Module, then: TextRange, mut shift: Shift) {
        let items = of_statement(self.items, then, |item| item.range);
        let mut items: Vec<Item> = items.iter().map(|item| shift.item(item)).collect();
        share_methods(&mut items);
        module.items.extend(items);
        let launches = of_statement(&self.launches, then, |launch| launch.range);
        module.launches.extend(launches.iter().map(|launch| shift.launch(launch)));
        let mains = of_statement(self.mains, then, |main| main.range);
        module.mains.extend(mains.iter().map(|main| shift.main(main)));
        let names = of_statement(self.names, then, |(range, _)| *range);
        let names = names.iter().map(|(range, names)| (shift.range(*range), names.clone()));
        module.names.extend(names);
    }
}

/// The parts that belong to the outermost statement at `statement`. What belongs to one lies together,
/// in the order of statements.
fn of_statement<T>(parts: &[T], statement: TextRange, range: impl Fn(&T) -> TextRange) -> &[T] {
    let first = parts.partition_point(|part| range(part).start < statement.start);
    let end = parts.partition_point(|part| range(part).start < statement.end);
    &parts[first..end]
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

/// How far a statement moved.
#[derive(Debug)]
struct Shift {
    /// In bytes.
    by: i64,
    /// The last map that several parts may share, and where it lies now: `a = b = c` are two items.
    last: Option<(Arc<SourceMap>, Arc<SourceMap>)>,
}

impl Shift {
    fn between(then: TextRange, now: TextRange) -> Shift {
        Shift { by: i64::from(now.start) - i64::from(then.start), last: None }
    }

    fn range(&self, range: TextRange) -> TextRange {
        let place = |offset: u32| (i64::from(offset) + self.by) as u32;
        TextRange { start: place(range.start), end: place(range.end) }
    }

    fn map(&self, map: &SourceMap) -> SourceMap {
        let mut map = map.clone();
        let ranges = map.exprs.values_mut().chain(map.stmts.values_mut());
        ranges.for_each(|range| *range = self.range(*range));
        map
    }

    fn shared_map(&mut self, map: &Arc<SourceMap>) -> Arc<SourceMap> {
        if self.by == 0 {
            return map.clone();
        }
        if let Some((_, now)) = self.last.as_ref().filter(|(then, _)| Arc::ptr_eq(then, map)) {
            return now.clone();
        }
        let now = Arc::new(self.map(map));
        self.last = Some((map.clone(), now.clone()));
        now
    }

    fn item(&mut self, item: &Item) -> Item {
        let kind = match &item.kind {
            ItemKind::Function(function) => ItemKind::Function(self.function(function)),
            ItemKind::Class(class) => ItemKind::Class(self.class(class)),
            ItemKind::Assign { body, map, value, annotation } => ItemKind::Assign {
                body: body.clone(),
                map: self.shared_map(map),
                value: *value,
                annotation: *annotation,
            },
            ItemKind::Element { body, map, call, index } => ItemKind::Element {
                body: body.clone(),
                map: self.shared_map(map),
                call: *call,
                index: *index,
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

    fn function(&self, function: &Arc<Function>) -> Arc<Function> {
        if self.by == 0 {
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
            globals: function.globals.clone(),
        })
    }

    fn class(&self, class: &Arc<Class>) -> Arc<Class> {
        if self.by == 0 {
            return class.clone();
        }
        Arc::new(Class {
            name: class.name.clone(),
            body: class.body.clone(),
            map: self.map(&class.map),
            decorators: class.decorators.clone(),
            bases: class.bases.clone(),
            metaclass: class.metaclass,
            fields: class.fields.clone(),
            methods: class.methods.iter().map(|method| self.function(method)).collect(),
        })
    }

    fn launch(&mut self, launch: &Launch) -> Launch {
        let map = self.shared_map(&launch.map);
        Launch { range: self.range(launch.range), map, ..launch.clone() }
    }

    fn main(&mut self, main: &MainBlock) -> MainBlock {
        let map = self.shared_map(&main.map);
        MainBlock { range: self.range(main.range), map, ..main.clone() }
    }
}
