//! Special methods of the project's own classes, which operators and statements of Python call, and the
//! values of methods.

use crate::builtins::{TORCH, torch};
use crate::hir::{BinaryOp, Body, CompareOp, Expr, ExprId, Item, ItemKind, Name, Stmt, StmtId};
use crate::host::code::operators;
use crate::host::code::statics::Owner;
use crate::host::library::MODULE;
use crate::host::library::applied::is_executor;
use crate::host::value::{Callable, Value};
use crate::host::{Frame, Host};
use crate::project::{self, ItemRef, Resolution, function, item_scope};

/// What makes an attribute of a method that is computed once.
const CACHED: &[&str] = &["functools", "cached_property"];

/// An object that gives more one by one is not followed.
const MAX_TAKEN: usize = 256;

/// Methods of classes that see what PyTorch is asked for.
const SEEING: &[&str] = &["__torch_dispatch__", "__torch_function__"];

impl Host<'_> {
    /// What the special method `name` of an object gives; `None` where its class has none.
    pub(crate) fn special(&mut self, object: &Value, name: &str, args: &[Value]) -> Option<Value> {
        let Value::Object(number) = object else { return None };
        let class = *self.classes.get(number)?;
        let method = self.class_method(class, name)?;
        let given = std::iter::once(object).chain(args).map(|value| (None, value.clone()));
        Some(self.call_function(method, &given.collect::<Vec<_>>()))
    }

    /// What a loop goes over: what an object gives one by one, the modules of a sequence, or the letters of a text.
    pub(crate) fn gone_over(&mut self, iterable: Value) -> Value {
        if let Some(letters) = iterable.letters() {
            return Value::List(letters);
        }
        match self.special(&iterable, "__iter__", &[]) {
            Some(given @ (Value::List(_) | Value::Tuple(_))) => given,
            Some(iterator) => self.taken(&iterator).map_or(Value::Unknown, Value::List),
            None => match self.items_of(&iterable) {
                Some(items) => Value::Dict(items),
                None => self.iterated(iterable),
            },
        }
    }

    /// What the `__next__` of an object gives until it raises `StopIteration`.
    fn taken(&mut self, iterator: &Value) -> Option<Vec<Value>> {
        let mut items = Vec::new();
        while items.len() < MAX_TAKEN {
            let item = self.special(iterator, "__next__", &[])?;
            match std::mem::take(&mut self.doubt.raised) {
                true => return Some(items),
                false => items.push(item),
            }
        }
        None
    }

    /// What `with manager as target` gives its target. A context manager that is made of a generator
    /// gives what that yields.
    pub(crate) fn entered(&mut self, manager: &Value) -> Value {
        match manager {
            Value::List(yielded) => match &yielded[..] {
                [value] => value.clone(),
                _ => Value::Unknown,
            },
            Value::Named(Resolution::External(path)) if is_executor(path) => manager.clone(),
            manager => self.special(manager, "__enter__", &[]).unwrap_or(Value::Unknown),
        }
    }

    /// What happens when a `with` ends that entered this.
    pub(crate) fn exited(&mut self, manager: &Value) {
        if matches!(manager, Value::Object(_)) {
            self.special(manager, "__exit__", &[Value::None, Value::None, Value::None]);
        }
    }

    /// Whether a context manager does something in its region or at its end that is not done there: what a generator
    /// does after it has given its value is done before, and what is closed or called back is not; classes may see
    /// all that PyTorch is asked for, and a graph runs again what it is made of.
    pub(crate) fn ends_unfollowed(&mut self, frame: &mut Frame, manager: ExprId) -> bool {
        let code = frame.code.clone();
        let Expr::Call { callee, .. } = &code.body().exprs[manager] else { return false };
        match self.expr(frame, *callee) {
            Value::Named(Resolution::External(path)) => {
                let path: Vec<&str> = path.iter().map(|part| &**part).collect();
                matches!(
                    path[..],
                    ["contextlib", "closing" | "ExitStack"] | [TORCH, "cuda", "graph"]
                )
            }
            Value::Named(Resolution::Class(at)) => {
                SEEING.iter().any(|method| self.method_of_class(at, method).is_some())
            }
            Value::Named(Resolution::Function(at))
            | Value::Callable(Callable::Closure { at, .. } | Callable::Undecorated(at)) => {
                function(self.sources, at).is_some_and(|function| goes_on(&function.body))
            }
            Value::Callable(Callable::Local { .. }) => true,
            _ => false,
        }
    }

    /// Whether a method is computed once for an object, which has the result as an attribute.
    pub(crate) fn is_cached(&self, method: ItemRef) -> bool {
        let Some(found) = function(self.sources, method) else { return false };
        let scope = item_scope(self.sources, method);
        match &self.decorators(method.file, &scope, &found)[..] {
            [Resolution::External(path)] => {
                path.iter().map(|part| &**part).eq(CACHED.iter().copied())
            }
            _ => false,
        }
    }

    /// What runs when an attribute of an object is set that its class computes.
    pub(crate) fn setter(&self, object: usize, name: &str) -> Option<ItemRef> {
        let class = *self.classes.get(&object)?;
        self.lineage(class).into_iter().find_map(|at| {
            let scope = project::item(self.sources, at)?.body_scope();
            let module = self.sources.module(at.file)?;
            let mut named = module.items_named(name);
            let index = named.find(|index| {
                let item = &module.items[*index as usize];
                item.scope == scope && is_setter(item)
            })?;
            Some(ItemRef { file: at.file, index })
        })
    }

    /// Sets an attribute of an object that its class computes.
    pub(crate) fn call_setter(&mut self, setter: ItemRef, object: &Value, value: &Value) {
        let Some(function) = function(self.sources, setter) else { return };
        let given = [(None, object.clone()), (None, value.clone())];
        if let Some((frame, _)) = self.frame_with(setter, &function, &given) {
            self.body_with(frame, &function, true);
        }
    }

    /// `setattr(object, attr, value)`: where the name is not known, any attribute may be set.
    pub(crate) fn set_by_name(&mut self, object: usize, attr: &Value, value: &Value) {
        match attr {
            Value::Str(name) if let Some(setter) = self.setter(object, name) => {
                self.call_setter(setter, &Value::Object(object), value);
            }
            Value::Str(name) if self.set_by_descriptor(object, name, value) => {}
            Value::Str(name) => self.set_attribute(object, name, value.clone()),
            _ => {
                let attributes = self.objects.get_mut(&object);
                let known = attributes.into_iter().flat_map(|attributes| attributes.values_mut());
                known.for_each(|known| *known = Value::Unknown);
                self.open_objects.insert(object);
            }
        }
    }

    /// `left op right` of an object whose class says what that is.
    pub(crate) fn special_binary(
        &mut self,
        op: BinaryOp,
        left: &Value,
        right: &Value,
    ) -> Option<Value> {
        let name = op.method();
        let of_left = self.special(left, &format!("__{name}__"), std::slice::from_ref(right));
        of_left.or_else(|| self.special(right, &format!("__r{name}__"), std::slice::from_ref(left)))
    }

    /// `left op= right` of an object whose class says what that is.
    pub(crate) fn special_update(
        &mut self,
        op: BinaryOp,
        left: &Value,
        right: &Value,
    ) -> Option<Value> {
        let in_place = format!("__i{}__", op.method());
        let made = self.special(left, &in_place, std::slice::from_ref(right));
        made.or_else(|| self.special_binary(op, left, right))
    }

    /// `left op right` of a comparison of which a class says what it is.
    pub(crate) fn special_comparison(
        &mut self,
        op: CompareOp,
        left: &Value,
        right: &Value,
    ) -> Option<Value> {
        let (object, name, with) = match op {
            CompareOp::Eq => (left, "__eq__", right),
            CompareOp::Ne => (left, "__ne__", right),
            CompareOp::Lt => (left, "__lt__", right),
            CompareOp::Le => (left, "__le__", right),
            CompareOp::Gt => (left, "__gt__", right),
            CompareOp::Ge => (left, "__ge__", right),
            CompareOp::In | CompareOp::NotIn => (right, "__contains__", left),
            CompareOp::Is | CompareOp::IsNot => return None,
        };
        let found = self.special(object, name, std::slice::from_ref(with));
        // What is not said to be different is so where it is not equal.
        let found = match (op, found) {
            (CompareOp::Ne, None) => {
                let equal = self.special_comparison(CompareOp::Eq, left, right)?;
                return Some(Value::Bool(self.holds(&equal).map(|holds| !holds)));
            }
            (_, found) => found,
        };
        let found = found.or_else(|| {
            let items = Value::Dict(self.items_of(object).filter(|_| name == "__contains__")?);
            Some(Value::Bool(operators::compare(CompareOp::In, with, &items)))
        })?;
        match op {
            CompareOp::NotIn => Some(Value::Bool(self.holds(&found).map(|holds| !holds))),
            _ => Some(found),
        }
    }

    /// Whether a value counts as true: an object whose class does not say otherwise does.
    pub(crate) fn holds(&mut self, value: &Value) -> Option<bool> {
        let Value::Object(object) = value else { return operators::truth(value) };
        let said =
            self.special(value, "__bool__", &[]).or_else(|| self.special(value, "__len__", &[]));
        if let Some(said) = said {
            return operators::truth(&said);
        }
        if let Some(items) = self.items_of(value) {
            return Some(!items.is_empty());
        }
        let lineage = self.lineage(*self.classes.get(object)?);
        let is_plain = self.derives_plainly(&lineage) && !self.derives_from_python(&lineage);
        (is_plain && self.torch_base(lineage[0]).is_none()).then_some(true)
    }

    /// `int(object)`, `float(object)`, `bool(object)` or `str(object)`.
    pub(crate) fn as_number(&mut self, class: &str, object: &Value) -> Value {
        let method = format!("__{class}__");
        match class {
            "bool" => Value::Bool(self.holds(object)),
            "int" => {
                let made = self.special(object, &method, &[]);
                made.or_else(|| self.special(object, "__index__", &[])).unwrap_or(Value::Int(None))
            }
            _ => self.special(object, &method, &[]).unwrap_or(Value::Unknown),
        }
    }

    /// Calls the `__setattr__` of a class outside of itself; false where it has none.
    pub(crate) fn set_specially(&mut self, object: &Value, name: &Name, value: &Value) -> bool {
        let given = [Value::Str(name.clone()), value.clone()];
        self.special(object, "__setattr__", &given).is_some()
    }

    /// What the `__getattr__` of its class gives for an attribute that an object has not.
    pub(crate) fn made_attribute(&mut self, object: usize, name: &str) -> Value {
        if let Some(held) = self.mapped_attribute(object, name) {
            return held;
        }
        match self.lacks(object, name) {
            true => {
                let name = Value::Str(name.into());
                let made = self.special(&Value::Object(object), "__getattr__", &[name]);
                made.unwrap_or(Value::Unknown)
            }
            false => Value::Unknown,
        }
    }

    /// Whether neither an object nor its class has an attribute, for objects of classes of the project that
    /// derive from none but each other and modules.
    pub(crate) fn lacks(&mut self, object: usize, name: &str) -> bool {
        let Some(class) = self.classes.get(&object).copied() else { return false };
        let lineage = self.lineage(class);
        // Where no program runs, it is not followed what classes are given.
        let is_followed = self.entry.is_some() && self.fuel > 0 && !self.cut_short;
        let is_known = is_followed && !self.open_objects.contains(&object);
        let is_of_torch =
            || torch::instance_members(MODULE).is_none_or(|members| members.contains(name));
        let may_have = self.has_own(object, name)
            || self.derives_from_python(&lineage)
            || lineage.iter().any(|at| self.has_member(*at, name))
            || self.is_torch_object(object) && is_of_torch();
        is_known && self.derives_plainly(&lineage) && !may_have
    }

    /// Whether one of these classes derives from one of Python's own other than `object`, as from `list`.
    fn derives_from_python(&self, lineage: &[ItemRef]) -> bool {
        lineage.iter().any(|at| {
            let Some(class) = project::class(self.sources, *at) else { return true };
            let mut bases = class.bases.iter().zip(self.bases(*at));
            bases.any(|(base, found)| {
                found == Resolution::Undefined && !class.body.exprs[*base].is_name("object")
            })
        })
    }

    /// Whether a class itself has a member.
    fn has_member(&self, at: ItemRef, name: &str) -> bool {
        let Some(scope) = project::item(self.sources, at).map(|item| item.body_scope()) else {
            return true;
        };
        let fields = project::class(self.sources, at);
        self.held(Owner::Class(at), name).is_some()
            || self.method(at.file, &scope, name).is_some()
            || fields.is_none_or(|class| class.fields.iter().any(|(field, ..)| **field == *name))
    }

    /// Whether an object has an attribute of its own, whatever that is.
    pub(crate) fn has_own(&self, object: usize, name: &str) -> bool {
        self.objects.get(&object).is_some_and(|attributes| attributes.contains_key(name))
    }

    /// `object.method` of a method that nothing decorates but Python's own marks.
    pub(crate) fn bound_method(&self, object: usize, class: ItemRef, method: ItemRef) -> Value {
        let Some(found) = function(self.sources, method) else { return Value::Unknown };
        let of = |first: Value| {
            let callee = Box::new(Value::Named(Resolution::Function(method)));
            Value::Callable(Callable::Partial { callee, args: vec![(None::<Name>, first)] })
        };
        match found.decorators.len() {
            0 => of(Value::Object(object)),
            1 if self.is_marked(method, "classmethod") => {
                of(Value::Named(Resolution::Class(class)))
            }
            1 if self.is_marked(method, "staticmethod") => {
                Value::Named(Resolution::Function(method))
            }
            _ => Value::Unknown,
        }
    }
}

/// Whether a method is one under `@name.setter`.
fn is_setter(item: &Item) -> bool {
    let ItemKind::Function(function) = &item.kind else { return false };
    function.decorators.iter().any(|decorator| {
        matches!(&function.body.exprs[*decorator], Expr::Attribute { attr, .. } if &**attr == "setter")
    })
}

/// Whether a generator does something after what it gives.
fn goes_on(body: &Body) -> bool {
    let is_yield = |expr: &ExprId| matches!(body.exprs[*expr], Expr::Yield { .. });
    let stmt = |stmts: &[StmtId]| stmts.last().map(|last| &body.stmts[*last]);
    let mut last = stmt(&body.root);
    while let Some(Stmt::With { body: inner, .. }) = last {
        last = stmt(inner);
    }
    let ends = matches!(last, Some(Stmt::Expr(value)) if is_yield(value));
    match body.exprs.keys().filter(is_yield).count() {
        0 => false,
        1 => !ends,
        _ => true,
    }
}
