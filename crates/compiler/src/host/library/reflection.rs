//! Modules and what they hold, named by texts: `globals()["f"]`, `sys.modules[__name__]`,
//! `importlib.import_module("block")`.

use crate::hir::Name;
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::value::Value;
use crate::project::Resolution;
use crate::source::FileId;

/// The name of the running module, and that of its package.
const OWN: &[&str] = &["__name__", "__package__"];

impl Host<'_> {
    /// `importlib.import_module(name)` in a file.
    pub(crate) fn imported_by_name(&self, file: FileId, args: &Args<'_>) -> Value {
        let Some(Value::Str(name)) = args.get(0, "name") else { return Value::Unknown };
        let path = name.trim_start_matches('.');
        let level = (name.len() - path.len()) as u32;
        let is_own = match args.get(1, "package") {
            None => level == 0,
            Some(Value::Global(package)) => OWN.contains(&&**package),
            Some(_) => false,
        };
        let path: Vec<Name> = path.split('.').map(Name::from).collect();
        let found = is_own.then(|| self.sources.import(file, level, &path)).flatten();
        found.map_or(Value::Unknown, |found| Value::Named(Resolution::File(found)))
    }

    /// What a module that is looked into as a dict has by a name, or which module `sys.modules` has by that
    /// of the running one.
    pub(crate) fn of_module(&mut self, file: FileId, value: &Value, key: &Value) -> Option<Value> {
        match (value, key) {
            (Value::Named(module @ Resolution::File(_)), Value::Str(name)) => {
                Some(self.member(module, name))
            }
            (Value::Named(Resolution::External(path)), Value::Global(name)) => {
                let is_table = path.iter().map(|part| &**part).eq(["sys", "modules"]);
                let is_own = is_table && **name == *OWN[0];
                is_own.then_some(Value::Named(Resolution::File(file)))
            }
            _ => None,
        }
    }
}
