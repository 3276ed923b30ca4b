//! What modules and classes hold while host code runs: variables that functions bind by `global`, lists
//! and dicts that they fill, and objects that are made when a module is imported.
//!
//! Before a program or a test there is nothing but imports: it comes to each of these in the state in which
//! importing leaves it, and changes it in order. Of other runs the text does not say what came before them;
//! there no more is known of such a variable than what all its values have in common.

use crate::hir::{Body, Expr, Function, Item, ItemKind, Name};
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::code::frame::{Code, Frame};
use crate::host::value::changes::is_collection;
use crate::host::value::{Callable, Value};
use crate::project::launchers::{is_test, named_in};
use crate::project::routes::imported_files;
use crate::project::ways::ways;
use crate::project::{ItemRef, Resolution, Scope, item, resolve_expr, resolve_item};
use crate::source::FileId;

/// What configures tests of a folder.
const CONFIGURATION: &str = "conftest";

/// What has variables that outlive calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// A module.
    Module(FileId),
    /// A class.
    Class(ItemRef),
}

impl Host<'_> {
    /// Begins a run of `file` before which there is nothing but imports.
    pub(crate) fn begin_with_imports(&mut self, file: FileId) {
        self.entry = Some(file);
        // Objects that an earlier run changed are made anew.
        self.left.retain(|_, left| !holds_object(left));
    }

    /// Whether nothing but imports comes before a function: it is a test, and neither does the file's
    /// program call it after something else nor does anything configure it.
    pub(crate) fn runs_first(&self, file: FileId, function: &Function) -> bool {
        let Some(module) = self.sources.module(file).filter(|_| is_test(function)) else {
            return false;
        };
        let mut mains = module.mains.iter();
        !mains.any(|main| named_in(&main.body).any(|name| *name == function.name))
            && !self.is_configured(file)
    }

    /// The file that configures the tests of another one.
    pub(crate) fn configuration(&self, file: FileId) -> Option<FileId> {
        self.sources.import(file, 0, &[CONFIGURATION.into()])
    }

    /// Whether code beside the tests of a file prepares them, other than by fixtures.
    fn is_configured(&self, file: FileId) -> bool {
        let Some(file) = self.configuration(file) else { return false };
        let Some(module) = self.sources.module(file) else { return false };
        let scope = Scope { file, path: &[] };
        let calls = |body: &Body| {
            body.exprs.values().any(|expr| match expr {
                Expr::Call { callee, .. } => !matches!(
                    resolve_expr(self.sources, scope, body, *callee),
                    Resolution::External(_) | Resolution::Triton(_) | Resolution::Undefined
                ),
                _ => false,
            })
        };
        module.mains.iter().any(|main| calls(&main.body))
            || module.items.iter().any(|item| item.name.starts_with("pytest_"))
    }

    /// The object that has what is known of the variables of `owner` as attributes.
    fn statics_of(&mut self, owner: Owner) -> usize {
        if let Some(known) = self.statics.get(&owner) {
            return *known;
        }
        let Value::Object(object) = self.object() else { return usize::MAX };
        self.statics.insert(owner, object);
        object
    }

    /// What a variable of a module or class holds now, where that is followed and it was looked at before.
    pub(crate) fn held(&self, owner: Owner, name: &str) -> Option<Value> {
        let object = *self.statics.get(&owner)?;
        self.has_own(object, name).then(|| self.object_attribute(object, name))
    }

    /// What a variable of a module holds that importing the module leaves with `value`.
    pub(crate) fn first_held(&mut self, file: FileId, name: &Name, value: Value) -> Value {
        if !self.outlives_calls(file, name, &value) {
            return value;
        }
        let owner = Owner::Module(file);
        if let Some(held) = self.held(owner, name) {
            return held;
        }
        self.begin_static(owner, name, value.clone());
        self.held(owner, name).unwrap_or(value)
    }

    /// The same of a variable of a class.
    pub(crate) fn first_held_by_class(&mut self, at: ItemRef, name: &str, value: Value) -> Value {
        if self.entry.is_none() {
            return value;
        }
        let owner = Owner::Class(at);
        // What classes that derive from it have put there by then is not followed.
        let may_be_filled =
            is_collection(&value) && self.class_method(at, "__init_subclass__").is_some();
        let value = if may_be_filled { Value::Collection } else { value };
        self.begin_static(owner, &name.into(), value.clone());
        self.held(owner, name).unwrap_or(value)
    }

    /// Notes what a statement of a module binds: its functions see the same variable.
    pub(crate) fn note_bound(&mut self, frame: &Frame, name: &Name, value: &Value) {
        let is_outermost = frame.scope.is_empty() && !frame.scenario;
        if !is_outermost {
            return;
        }
        let owner = Owner::Module(frame.file);
        // A variable that held a list holds whatever comes after it.
        match self.held(owner, name) {
            Some(_) => self.set_static(owner, name, value.clone()),
            // What only stands for another variable is in that one.
            None if self.outlives_calls(frame.file, name, value)
                && !self.stands_for_another(frame.file, name) =>
            {
                self.begin_static(owner, name, value.clone());
            }
            None => {}
        }
    }

    /// Whether a variable of a module is bound to another one: `b = a`.
    fn stands_for_another(&mut self, file: FileId, name: &Name) -> bool {
        match self.meaning(Scope { file, path: &[] }, name) {
            Resolution::Constant(at) => {
                item(self.sources, at).is_some_and(|item| item.name != *name)
            }
            _ => false,
        }
    }

    /// Whether what a variable of a module holds may be changed by functions, where that is followed.
    fn outlives_calls(&mut self, file: FileId, name: &Name, value: &Value) -> bool {
        self.entry.is_some()
            && (is_collection(value)
                || matches!(value, Value::Object(_))
                || self.is_rebound(file, &[], name))
    }

    fn begin_static(&mut self, owner: Owner, name: &Name, value: Value) {
        // What registers with a class changes all of its variables at once.
        let is_first = !self.statics.contains_key(&owner);
        let object = self.statics_of(owner);
        let may_register = match (owner, &value) {
            (Owner::Module(_), Value::Object(_)) => true,
            (Owner::Class(_), _) => is_first,
            (Owner::Module(file), _) => ways(self.sources, file).registers,
        };
        self.replace_attribute(object, name, value);
        if may_register {
            self.register_all(owner, name);
        }
    }

    /// Gives a variable of a module or class another value; what it may have been counts as well where
    /// the code may not come here.
    pub(crate) fn set_static(&mut self, owner: Owner, name: &Name, value: Value) {
        if !self.doubt.has_run() && self.held(owner, name).is_none() {
            let at = match owner {
                Owner::Module(file) => Resolution::File(file),
                Owner::Class(class) => Resolution::Class(class),
            };
            self.member(&at, name);
        }
        let object = self.statics_of(owner);
        self.set_attribute(object, name, value);
    }

    /// `setattr(module, name, value)`: where the name is not known, nothing is followed any further.
    pub(crate) fn set_static_by_name(&mut self, owner: Owner, name: &Value, value: &Value) {
        match name {
            Value::Str(name) => self.set_static(owner, name, value.clone()),
            _ => {
                self.entry = None;
                self.statics.clear();
            }
        }
    }

    /// The variable of a module that a name is in the running code, where that is followed.
    pub(crate) fn static_named(&mut self, frame: &Frame, name: &Name) -> Option<(Owner, Name)> {
        let is_local = frame.variables.contains_key(name) && !frame.scope.is_empty();
        if self.entry.is_none() || frame.scenario || is_local {
            return None;
        }
        let found = self.meaning(Scope { file: frame.file, path: &frame.scope }, name);
        let Resolution::Constant(at) = found else { return None };
        let bound = item(self.sources, at).filter(|bound| bound.scope.is_empty())?;
        Some((Owner::Module(at.file), bound.name))
    }

    /// What has an attribute that is set on a value, if that is a module or a class.
    pub(crate) fn static_owner(&self, value: &Value) -> Option<Owner> {
        self.entry?;
        match value {
            Value::Named(Resolution::File(file)) => Some(Owner::Module(*file)),
            Value::Named(Resolution::Class(at)) => Some(Owner::Class(*at)),
            _ => None,
        }
    }

    /// `monkeypatch.setattr(module, name, value)`, of whatever has such a method.
    pub(crate) fn patch(&mut self, file: FileId, args: &Args<'_>) {
        let (owner, name, value) = match args.positional()[..] {
            [owner, Value::Str(name), value] => (self.static_owner(owner), name.clone(), value),
            [Value::Str(path), value] => {
                let parts: Vec<Name> = path.split('.').map(Name::from).collect();
                let Some((name, module)) = parts.split_last() else { return };
                let module = self.sources.import(file, 0, module);
                (module.map(Owner::Module), name.clone(), value)
            }
            _ => return,
        };
        if let Some(owner) = owner {
            self.set_static(owner, &name, value.clone());
        }
    }

    /// Gives a variable another value, whatever it held.
    pub(crate) fn replace_static(&mut self, owner: Owner, name: &Name, value: Value) {
        let object = self.statics_of(owner);
        self.replace_attribute(object, name, value);
    }

    /// What has the variable that `owner` has by this name: a class, or one that it derives from.
    pub(crate) fn holder(&self, owner: Owner, name: &str) -> Owner {
        let Owner::Class(at) = owner else { return owner };
        let mut owners = self.lineage(at).into_iter().map(Owner::Class);
        owners.find(|owner| self.held(*owner, name).is_some()).unwrap_or(owner)
    }

    /// The class whose variable an object has by this name, where it has none of its own.
    pub(crate) fn class_with(&self, object: usize, name: &str) -> Option<Owner> {
        let at = self.classes.get(&object).filter(|_| !self.has_own(object, name))?;
        let owners = self.lineage(*at).into_iter().map(Owner::Class);
        owners.into_iter().find(|owner| self.held(*owner, name).is_some())
    }

    /// Whether the running function binds the variable of its module that has this name.
    pub(crate) fn binds_global(&self, frame: &Frame, name: &Name) -> bool {
        self.entry.is_some()
            && match &frame.code {
                Code::Function(function) => function.globals.contains(name),
                Code::Body(..) => false,
            }
    }

    /// Does to a variable what the decorators do that register functions and classes in it, in every file
    /// that the run imports.
    fn register_all(&mut self, owner: Owner, name: &Name) {
        let Some(registering) = self.registering(owner, name) else { return };
        let Some(entry) = self.entry else { return };
        let around = std::mem::take(&mut self.doubt);
        let launches = self.launches.len();
        for file in imported_files(self.sources, entry).iter().copied() {
            let ways = ways(self.sources, file);
            let decorated = ways.decorated.iter().filter(|(_, with)| registering.contains(with));
            let mut items: Vec<u32> = decorated.map(|(index, _)| *index).collect();
            items.dedup();
            items.into_iter().for_each(|index| self.decorate(ItemRef { file, index }));
        }
        self.launches.truncate(launches);
        self.doubt = around;
    }

    /// What decorators are called by that may change a variable: functions that do, the variable itself,
    /// and its class.
    fn registering(&self, owner: Owner, name: &Name) -> Option<Vec<Resolution>> {
        let file = match owner {
            Owner::Module(file) => file,
            Owner::Class(class) => return Some(vec![Resolution::Class(class)]),
        };
        let module = self.sources.module(file)?;
        let changes = |item: &Item| match &item.kind {
            ItemKind::Function(function) => {
                function.changes.contains(name) || function.globals.contains(name)
            }
            _ => false,
        };
        let changing: Vec<&Name> = module
            .items
            .iter()
            .filter(|item| changes(item))
            .map(|item| item.scope.first().unwrap_or(&item.name))
            .chain([name])
            .collect();
        let outermost = (0..).zip(&module.items).filter(|(_, item)| item.scope.is_empty());
        let meant = outermost.filter(|(_, item)| changing.contains(&&item.name));
        let meant = meant.map(|(index, _)| ItemRef { file, index });
        Some(meant.map(|at| resolve_item(self.sources, at)).collect())
    }
}

/// Whether a value gives access to objects.
fn holds_object(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Tuple(items) | Value::List(items) | Value::Record { items, .. } => {
            items.iter().any(holds_object)
        }
        Value::Dict(entries) => entries.iter().any(|(_, value)| holds_object(value)),
        Value::Callable(Callable::Partial { args, .. }) => {
            args.iter().any(|(_, value)| holds_object(value))
        }
        _ => false,
    }
}
