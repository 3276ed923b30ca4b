//! Variables of the environment that the program sets itself. Nobody else sets any.

use rustc_hash::FxHashMap;

use crate::hir::{CompareOp, Name};
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::value::Value;
use crate::project::Resolution;
use crate::project::environment::{Setting, setting};
use crate::source::FileId;

/// `os.environ`, as far as the program changed it.
#[derive(Debug, Default)]
pub(crate) struct Environment {
    /// What was set last. What may be set, or not, is not known.
    set: FxHashMap<Name, Value>,
    /// Whether any variable may be set.
    is_open: bool,
}

impl Environment {
    /// A variable: `None` where it is not set.
    fn variable(&self, key: &Value) -> Option<Value> {
        match key {
            Value::Str(name) if !self.is_open => self.set.get(&**name).cloned(),
            Value::Str(_) => Some(Value::Unknown),
            _ => (self.is_open || !self.set.is_empty()).then_some(Value::Unknown),
        }
    }
}

impl Host<'_> {
    /// Sets a variable of `os.environ`.
    pub(crate) fn set_variable(&mut self, key: &Value, value: &Value) {
        let known = matches!(value, Value::Str(_)) && self.doubt.is_straight();
        let value = if known { value.clone() } else { Value::Unknown };
        match key {
            Value::Str(name) => {
                self.environment.set.insert(Name::from(&**name), value);
            }
            _ => self.environment.is_open = true,
        }
    }

    /// `os.environ[key]` in a file, where the program sets it, or may have set it.
    pub(crate) fn variable(&self, file: FileId, owner: &Value, key: &Value) -> Option<Value> {
        is_environment(owner).then(|| self.variable_of(file, key)).flatten()
    }

    /// A variable in a file: `None` where nobody sets it. What a program sets before it imports the file is known
    /// where the program is run.
    fn variable_of(&self, file: FileId, key: &Value) -> Option<Value> {
        let set_before = || match key {
            Value::Str(name) => match setting(self.sources, file, name) {
                Setting::Never => None,
                Setting::Always(text) => Some(Value::Str(text)),
                Setting::Perhaps => Some(Value::Unknown),
            },
            _ => None,
        };
        self.environment.variable(key).or_else(set_before)
    }

    /// What asking for a variable gives in a file, where the program may have set it; `None` for other functions.
    pub(crate) fn asked_variable(
        &self,
        file: FileId,
        path: &[Name],
        args: &Args<'_>,
    ) -> Option<Value> {
        match is_asking(path) {
            true => self.variable_of(file, args.get(0, "key")?),
            false => None,
        }
    }

    /// `key in os.environ`, where the program sets variables.
    pub(crate) fn compared_variable(
        &self,
        file: FileId,
        op: CompareOp,
        (left, right): (&Value, &Value),
    ) -> Option<Value> {
        let is_member = matches!(op, CompareOp::In | CompareOp::NotIn);
        let known = self.variable(file, right, left).filter(|_| is_member)?;
        let is_set = matches!(known, Value::Str(_)).then_some(op == CompareOp::In);
        Some(Value::Bool(is_set))
    }

    /// What a function or method of the environment gives; `None` where it does what it does to an
    /// environment in which nothing is set.
    pub(crate) fn of_environment(&mut self, path: &[Name], args: &Args<'_>) -> Option<Value> {
        let path: Vec<&str> = path.iter().map(|name| &**name).collect();
        let key = args.get(0, "key");
        match path.as_slice() {
            ["os", "putenv"] => {
                self.set_variable(key?, args.get(1, "value")?);
                Some(Value::None)
            }
            ["os", "environ", "setdefault"] => {
                if let Some(known) = self.environment.variable(key?) {
                    return Some(known);
                }
                let default = args.get(1, "default")?;
                self.set_variable(key?, default);
                Some(default.clone())
            }
            ["os", "environ", "update"] => {
                for (name, value) in args.keywords() {
                    self.set_variable(&name.map_or(Value::Unknown, Value::Str), &value);
                }
                match args.positional().first() {
                    None => {}
                    Some(Value::Dict(entries)) => {
                        entries.iter().for_each(|(key, value)| self.set_variable(key, value));
                    }
                    Some(_) => self.environment.is_open = true,
                }
                Some(Value::None)
            }
            ["os", "environ", "pop"] => {
                let known = self.environment.variable(key?);
                match key? {
                    Value::Str(name) if self.doubt.is_straight() => {
                        self.environment.set.remove(&**name);
                    }
                    key if known.is_some() => self.set_variable(key, &Value::Unknown),
                    _ => {}
                }
                Some(known.or_else(|| args.get(1, "default").cloned()).unwrap_or(Value::Unknown))
            }
            _ => None,
        }
    }
}

/// Whether a function asks for a variable of the environment, which need not be set.
pub(crate) fn is_asking(path: &[Name]) -> bool {
    let path: Vec<&str> = path.iter().map(|name| &**name).collect();
    matches!(path[..], ["os", "getenv"] | ["os", "environ", "get"])
}

/// Whether a value is `sys.argv`.
pub(crate) fn is_command_line(value: &Value) -> bool {
    matches!(value, Value::Named(Resolution::External(path))
        if path.iter().map(|name| &**name).eq(["sys", "argv"]))
}

/// Whether a value is the name of an option of a program.
pub(crate) fn is_option(value: &Value) -> bool {
    matches!(value, Value::Str(text) if text.starts_with('-'))
}

/// Whether a value is `os.environ`.
pub(crate) fn is_environment(value: &Value) -> bool {
    matches!(value, Value::Named(Resolution::External(path))
        if path.iter().map(|name| &**name).eq(["os", "environ"]))
}
