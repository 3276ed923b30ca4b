//! What changes under several names: lists and dicts that are changed in place, and variables that
//! lambdas look up when they are called.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::hir::collections::root;
use crate::hir::{Arg, ArgKind, Body, Expr, ExprId, Function, Name};
use crate::host::code::operators::position;
use crate::host::library::collections;
use crate::host::library::triton::with_attribute;
use crate::host::value::{Callable, Value};
use crate::host::{Frame, Host};
use crate::source::FileId;

/// A collection that a function changed which it was given.
#[derive(Debug, Clone)]
pub(crate) struct Changed {
    /// The parameter that got it, with its position, where that is known.
    pub(crate) param: Option<(Name, usize)>,
    /// What it was.
    pub(crate) before: Value,
    /// What it is.
    pub(crate) now: Value,
}

impl Changed {
    /// Whether an argument that would be for the parameter at `at` by its position gave it.
    fn is_for(&self, arg: &Arg, at: usize) -> bool {
        let Some((name, position)) = &self.param else { return false };
        match &arg.kind {
            ArgKind::Positional => *position == at,
            ArgKind::Keyword(keyword) => keyword == name,
            ArgKind::Star | ArgKind::DoubleStar => false,
        }
    }
}

/// Which variables are changed in place, and which may name one collection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    /// Variables whose collections were changed.
    changed: FxHashSet<Name>,
    /// Sets of variables that may name one collection or parts of it; no two have a name in common.
    shared: Vec<FxHashSet<Name>>,
    /// Whether lambdas were made that see later values of variables.
    lambdas: bool,
    /// By variable, the place from which it has its collection, that is no variable of this function.
    places: FxHashMap<Name, ExprId>,
}

impl Names {
    /// The names of what `name` may name.
    fn of(&self, name: &Name) -> Vec<Name> {
        let set = self.shared.iter().find(|set| set.contains(name));
        set.map_or_else(|| vec![name.clone()], |set| set.iter().cloned().collect())
    }

    fn share(&mut self, names: impl IntoIterator<Item = Name>) {
        let mut all: FxHashSet<Name> = names.into_iter().collect();
        let (touched, apart) = std::mem::take(&mut self.shared)
            .into_iter()
            .partition::<Vec<_>, _>(|set| !set.is_disjoint(&all));
        all.extend(touched.into_iter().flatten());
        self.shared = apart;
        self.shared.push(all);
    }
}

impl Frame {
    /// Binds a variable. Lambdas made in this function see it as well: they look it up when they
    /// are called.
    pub(crate) fn bind(&mut self, name: &Name, value: Value) {
        if self.names.lambdas {
            let here = (self.file, &*self.scope);
            for known in self.variables.values_mut() {
                show_lambdas(known, here, name, &value);
            }
        }
        self.variables.insert(name.clone(), value);
    }

    /// As [`Frame::bind`], to what is no part of what it held.
    pub(crate) fn bind_anew(&mut self, name: &Name, value: Value) {
        self.names.places.remove(name);
        self.bind(name, value);
    }

    /// Notes that a variable has its collection from an attribute or a variable of the module.
    pub(crate) fn note_place(&mut self, target: ExprId, source: ExprId) {
        let code = self.code.clone();
        let exprs = &code.body().exprs;
        let is_elsewhere = match &exprs[source] {
            Expr::Name(name) => !self.variables.contains_key(name),
            Expr::Attribute { value, .. } => is_named(code.body(), *value),
            _ => false,
        };
        if let Expr::Name(name) = &exprs[target]
            && is_elsewhere
        {
            self.names.places.insert(name.clone(), source);
        }
    }

    /// The frame as a lambda that is made in it keeps it.
    pub(crate) fn kept(&mut self) -> Arc<Frame> {
        self.names.lambdas = true;
        Arc::new(self.clone())
    }

    /// Notes that the variable that `target` belongs to may name what names in `value` do.
    pub(crate) fn share(&mut self, target: ExprId, value: ExprId) {
        let code = self.code.clone();
        let mut names = Vec::new();
        sources(code.body(), value, &mut names);
        names.retain(|name| self.variables.get(name).is_some_and(is_collection));
        let mut copied = Vec::new();
        copied_from(code.body(), value, &mut copied);
        copied.retain(|name| self.variables.get(name).is_some_and(holds_collections));
        names.extend(copied);
        let target = root(code.body(), target).filter(|target| !names.contains(target)).cloned();
        if let (Some(target), false) = (target, names.is_empty()) {
            self.names.share(names.into_iter().chain([target]));
        }
    }

    /// Notes that the collection `object` is `changed` now. Under other names, and within a larger
    /// one, it is not known any more.
    pub(crate) fn change(&mut self, object: ExprId, changed: Value) {
        let code = self.code.clone();
        let Some(root) = root(code.body(), object).cloned() else { return };
        self.forget(&root);
        if matches!(code.body().exprs[object], Expr::Name(_)) && self.variables.contains_key(&root)
        {
            self.bind(&root, changed);
        }
    }

    /// Notes that the collection at a place that ends in `name` is another one now, for variables that
    /// have it from there.
    fn follow_place(&mut self, name: &Name, now: &Value) {
        let code = self.code.clone();
        let exprs = &code.body().exprs;
        let ends_so = |place: ExprId| match &exprs[place] {
            Expr::Name(last) | Expr::Attribute { attr: last, .. } => last == name,
            _ => false,
        };
        let places = self.names.places.iter().filter(|(_, place)| ends_so(**place));
        let names: Vec<Name> = places.map(|(name, _)| name.clone()).collect();
        names.iter().for_each(|name| self.bind(name, now.clone()));
    }

    /// Notes that no collection need be what it was.
    pub(crate) fn change_all(&mut self) {
        let names: Vec<Name> = self.variables.keys().cloned().collect();
        names.iter().for_each(|name| self.forget(name));
    }

    /// Notes that the collection called `name` changed, under each of its names.
    fn forget(&mut self, name: &Name) {
        for name in self.names.of(name) {
            self.names.changed.insert(name.clone());
            if self.variables.get(&name).is_some_and(is_collection) {
                self.bind(&name, Value::Collection);
            }
        }
    }

    /// Of the arguments that a function was called with, the collections that it changed, with what they
    /// are now where its end shows it.
    pub(crate) fn changed_of(
        &self,
        function: &Function,
        arguments: Vec<(Name, Value)>,
        shows: bool,
    ) -> impl Iterator<Item = Changed> {
        let bound: Vec<&Name> = self.code.body().bound_names().collect();
        let changed = arguments.into_iter().filter(|(name, _)| self.names.changed.contains(name));
        changed.flat_map(move |(name, before)| {
            let at = function.params.iter().position(|param| param.name == name);
            // What gathers arguments is made by the call; they are the caller's.
            if at.is_some_and(|at| function.params[at].kind.gathers()) {
                let gathered = before.parts().into_iter().filter(is_collection);
                let unknown = |before| Changed { param: None, before, now: Value::Collection };
                return gathered.map(unknown).collect::<Vec<_>>();
            }
            let is_kept = shows && !self.exits.may_return() && !bound.contains(&&name);
            let now = self.variables.get(&name).filter(|_| is_kept).cloned();
            let param = at.map(|at| (name, at));
            vec![Changed { param, before, now: now.unwrap_or(Value::Collection) }]
        })
    }
}

/// Binds a variable for the lambdas in a value that were made in a function of a file: they look it up when they are
/// called.
pub(crate) fn show_lambdas(known: &mut Value, here: (FileId, &[Name]), name: &Name, value: &Value) {
    match known {
        Value::Callable(Callable::Lambda { frame, .. } | Callable::Closure { frame, .. })
            if (frame.file, &frame.scope[..]) == here =>
        {
            Arc::make_mut(frame).variables.insert(name.clone(), value.clone());
        }
        // What is long takes long to look at: lists of functions begin with one.
        Value::List(items) | Value::Tuple(items)
            if matches!(items.first(), Some(Value::Callable(_))) =>
        {
            items.iter_mut().for_each(|item| show_lambdas(item, here, name, value));
        }
        Value::Dict(entries) if matches!(entries.first(), Some((_, Value::Callable(_)))) => {
            entries.iter_mut().for_each(|(_, item)| show_lambdas(item, here, name, value));
        }
        _ => {}
    }
}

impl Host<'_> {
    /// Notes that the collection `object` is `changed` now, which may be an attribute of an object.
    pub(crate) fn change_collection(&mut self, frame: &mut Frame, object: ExprId, changed: Value) {
        let code = frame.code.clone();
        let body = code.body();
        if let Some((owner, attr)) = held(body, object)
            && let Value::Config(config) = self.expr(frame, owner)
        {
            let changed = with_attribute(&config, attr, &changed);
            return self.change_collection(frame, owner, changed);
        }
        if let Expr::Subscript { value, index } = body.exprs[object]
            && is_named(body, index)
            && let Some(around) = self.with_item(frame, (value, index), &changed)
        {
            return self.change_collection(frame, value, around);
        }
        if let Some((value, key)) = set_by_default(body, object)
            && is_named(body, key)
            && let Some(around) = self.with_item(frame, (value, key), &changed)
        {
            return self.change_collection(frame, value, around);
        }
        let is_part = matches!(body.exprs[object], Expr::Subscript { .. });
        let now = match !is_part && self.doubt.is_straight() {
            true => changed.clone(),
            false => Value::Collection,
        };
        if let Some((owner, attr)) = held(body, object) {
            let owner = self.expr(frame, owner);
            self.change_attribute(&owner, attr, now.clone());
            frame.follow_place(attr, &now);
        } else if let Some(name) = root(body, object)
            && let Some((owner, held)) = self.static_named(frame, name)
        {
            self.replace_static(owner, &held, now.clone());
            frame.follow_place(name, &now);
        }
        if let Some(name) = root(body, object) {
            let own = self.static_named(frame, name);
            for other in frame.names.of(name).iter().filter(|other| *other != name) {
                let other =
                    self.static_named(frame, other).filter(|other| Some(other) != own.as_ref());
                if let Some((owner, held)) = other {
                    self.replace_static(owner, &held, Value::Collection);
                }
            }
        }
        frame.change(object, changed.clone());
        if let Expr::Name(name) = &body.exprs[object]
            && let Some(place) = frame.names.places.get(name).copied()
        {
            self.change_collection(frame, place, changed);
        }
    }

    /// A list or dict with another item.
    fn with_item(
        &mut self,
        frame: &mut Frame,
        (collection, index): (ExprId, ExprId),
        item: &Value,
    ) -> Option<Value> {
        let around = self.expr(frame, collection);
        let key = self.expr(frame, index);
        match around {
            Value::Dict(mut entries) => {
                collections::set(&mut entries, key, item.clone())?;
                Some(Value::Dict(entries))
            }
            Value::List(mut items) => {
                let Value::Int(Some(at)) = key else { return None };
                let at = position(items.len(), at)?;
                items[at] = item.clone();
                Some(Value::List(items))
            }
            _ => None,
        }
    }

    /// Notes that the collection that is an attribute of a value is this one now.
    fn change_attribute(&mut self, owner: &Value, attr: &Name, now: Value) {
        let owner = match owner {
            Value::Object(object) => match self.class_with(*object, attr) {
                Some(class) => class,
                None => return self.replace_attribute(*object, attr, now),
            },
            owner => match self.static_owner(owner) {
                Some(owner) => self.holder(owner, attr),
                None => return,
            },
        };
        self.replace_static(owner, attr, now);
    }

    /// Notes that the function that was just called changed collections which `args` name, the first of
    /// which is for the parameter at `first`.
    pub(crate) fn change_arguments(&mut self, frame: &mut Frame, args: &[Arg], first: usize) {
        let changed = std::mem::take(&mut self.changed);
        if changed.is_empty() {
            return;
        }
        let code = frame.code.clone();
        let named = args.iter().enumerate().filter(|(_, arg)| is_named(code.body(), arg.value));
        let given: Vec<(usize, Value)> =
            named.map(|(at, arg)| (at, self.expr(frame, arg.value))).collect();
        let is_of = |(at, value): &(usize, Value), changed: &Changed| {
            changed.before == *value && changed.is_for(&args[*at], at + first)
        };
        // Equal collections are told apart by the parameters, where the text shows these.
        let spreads = |arg: &Arg| matches!(arg.kind, ArgKind::Star | ArgKind::DoubleStar);
        let are_told = !args.iter().any(spreads)
            && changed.iter().all(|changed| given.iter().any(|given| is_of(given, changed)));
        for (at, arg) in args.iter().enumerate() {
            if let Some(given) = given.iter().find(|(known, _)| *known == at) {
                let same = changed.iter().filter(|changed| match are_told {
                    true => is_of(given, changed),
                    false => changed.before == given.1,
                });
                let now: Vec<&Value> = same.map(|changed| &changed.now).collect();
                let holds = |changed: &Changed| given.1.parts().contains(&changed.before);
                match now[..] {
                    [] if spreads(arg) && changed.iter().any(holds) => {
                        self.change_collection(frame, arg.value, Value::Collection);
                    }
                    [] => {}
                    [now] => self.change_collection(frame, arg.value, now.clone()),
                    _ => self.change_collection(frame, arg.value, Value::Collection),
                }
                continue;
            }
            let mut names = Vec::new();
            sources(code.body(), arg.value, &mut names);
            for name in names {
                let is_changed =
                    |value: &Value| changed.iter().any(|changed| changed.before == *value);
                if frame.variables.get(&name).is_some_and(is_changed) {
                    frame.forget(&name);
                }
            }
        }
    }
}

/// The object, named without a call, whose attribute is a collection or holds it, and the attribute.
fn held(body: &Body, collection: ExprId) -> Option<(ExprId, &Name)> {
    match &body.exprs[collection] {
        Expr::Attribute { value, attr } => is_named(body, *value).then_some((*value, attr)),
        Expr::Subscript { value, .. } => held(body, *value),
        _ => None,
    }
}

/// The dict and the key of `dict.setdefault(key, ...)`.
fn set_by_default(body: &Body, call: ExprId) -> Option<(ExprId, ExprId)> {
    let Expr::Call { callee, args } = &body.exprs[call] else { return None };
    match &body.exprs[*callee] {
        Expr::Attribute { value, attr } if &**attr == "setdefault" => {
            Some((*value, args.first()?.value))
        }
        _ => None,
    }
}

/// Whether an expression says the same however often it is asked.
fn is_named(body: &Body, value: ExprId) -> bool {
    match &body.exprs[value] {
        Expr::Name(_) | Expr::Literal(_) => true,
        Expr::Attribute { value, .. } => is_named(body, *value),
        _ => false,
    }
}

/// Whether a value may change in place, or hold what does.
pub(crate) fn is_collection(value: &Value) -> bool {
    match value {
        Value::List(_) | Value::Dict(_) | Value::Set(_) => true,
        Value::Tuple(items) | Value::Record { items, .. } => items.iter().any(is_collection),
        _ => false,
    }
}

/// Whether a value is a collection of collections.
fn holds_collections(value: &Value) -> bool {
    match value {
        Value::List(items) | Value::Set(items) => items.iter().any(is_collection),
        Value::Dict(entries) => entries.iter().any(|(_, item)| is_collection(item)),
        _ => false,
    }
}

/// The variables of which a value is a copy that has the same collections in it.
fn copied_from(body: &Body, value: ExprId, names: &mut Vec<Name>) {
    /// Functions that give a list or dict with what another one holds.
    const COPYING: &[&str] = &["dict", "list", "reversed", "sorted", "tuple"];
    let Expr::Call { callee, args } = &body.exprs[value] else { return };
    let original = match (&body.exprs[*callee], args.first()) {
        (Expr::Name(name), Some(first)) if COPYING.contains(&&**name) => first.value,
        (Expr::Attribute { value, attr }, None) if &**attr == "copy" => *value,
        (Expr::Attribute { attr, .. }, Some(first)) if &**attr == "copy" => first.value,
        _ => return,
    };
    sources(body, original, names);
}

/// The variables of which a value may be, or may hold, a part. What calls and operators give is
/// taken for new.
fn sources(body: &Body, value: ExprId, names: &mut Vec<Name>) {
    match &body.exprs[value] {
        Expr::Name(_) | Expr::Subscript { .. } | Expr::Attribute { .. } => {
            names.extend(root(body, value).cloned());
        }
        Expr::Tuple(items) | Expr::List(items) | Expr::Bool { values: items, .. } => {
            items.iter().for_each(|item| sources(body, *item, names));
        }
        Expr::Dict(entries) => entries.iter().for_each(|(_, value)| sources(body, *value, names)),
        Expr::IfElse { on_true, on_false, .. } => {
            [on_true, on_false].into_iter().for_each(|value| sources(body, *value, names));
        }
        Expr::Starred(value) => sources(body, *value, names),
        _ => {}
    }
}
