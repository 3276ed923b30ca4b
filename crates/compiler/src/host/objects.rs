//! Objects whose attributes host code sets: the context of an `autograd.Function`, parsers of command lines
//! and what they parse, and namespaces.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::hir::{Expr, ExprId, ItemKind, Name};
use crate::host::code::arguments::{Args, REST};
use crate::host::value::Value;
use crate::host::{Frame, Host, Variables};
use crate::project::{ItemRef, Resolution, Scope, resolve_expr};
use crate::source::FileId;

pub(crate) mod classes;
pub(crate) mod copies;
pub(crate) mod descriptors;
pub(crate) mod enumeration;
pub(crate) mod instances;
pub(crate) mod kept;
pub(crate) mod mappings;
pub(crate) mod records;
pub(crate) mod special;

/// The number of the next object. None is used twice: values outlive the interpreter that made
/// them, and another one knows nothing of their attributes.
static NEXT: AtomicUsize = AtomicUsize::new(0);

impl Host<'_> {
    /// An object without attributes.
    pub(crate) fn object(&mut self) -> Value {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.objects.insert(number, Variables::default());
        Value::Object(number)
    }

    /// An object whose attributes are keyword arguments; unknown where they are not all known.
    pub(crate) fn namespace(&mut self, args: &Args<'_>) -> Value {
        let named: Option<Vec<(Name, Value)>> = args
            .0
            .iter()
            .map(|(name, value)| {
                Some((name.clone().filter(|name| **name != *REST)?, value.clone()))
            })
            .collect();
        let (Some(named), instance) = (named, self.object()) else { return Value::Unknown };
        if let Value::Object(object) = instance {
            for (name, value) in named {
                self.set_attribute(object, &name, value);
            }
        }
        instance
    }

    /// Sets an attribute. What it may have been counts as well where the code may not come here.
    pub(crate) fn set_attribute(&mut self, object: usize, name: &Name, value: Value) {
        let Some(attributes) = self.objects.get(&object) else { return };
        let value = match attributes.get(name).cloned() {
            Some(known) if !self.doubt.has_run() => self.one_of(value, &known),
            _ => value,
        };
        if let Some(attributes) = self.objects.get_mut(&object) {
            attributes.insert(name.clone(), value);
        }
    }

    /// Gives an attribute another value, whatever it was.
    pub(crate) fn replace_attribute(&mut self, object: usize, name: &Name, value: Value) {
        if let Some(attributes) = self.objects.get_mut(&object) {
            attributes.insert(name.clone(), value);
        }
    }

    /// What is known of an attribute.
    pub(crate) fn object_attribute(&self, object: usize, name: &str) -> Value {
        let name = if name == "saved_variables" { "saved_tensors" } else { name };
        let known = self.objects.get(&object).and_then(|known| known.get(name));
        let known = known.filter(|_| !self.is_of_mode(name));
        self.current(known.cloned().unwrap_or(Value::Unknown))
    }

    /// The object whose attributes `object.__dict__` are.
    pub(crate) fn owner_of_dict(&mut self, frame: &mut Frame, dict: ExprId) -> Option<usize> {
        let code = frame.code.clone();
        match &code.body().exprs[dict] {
            Expr::Attribute { value, attr } if &**attr == "__dict__" => {
                match self.expr(frame, *value) {
                    Value::Object(object) => Some(object),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// `object.__dict__.update(...)`.
    pub(crate) fn update_attributes(&mut self, object: usize, args: &Args<'_>) {
        let mut all: Vec<(Value, Value)> = match args.positional()[..] {
            [] => Vec::new(),
            [Value::Dict(entries)] => entries.to_vec(),
            _ => vec![(Value::Unknown, Value::Unknown)],
        };
        let named = args.keywords().into_iter();
        all.extend(named.map(|(name, value)| (name.map_or(Value::Unknown, Value::Str), value)));
        for (name, value) in all {
            self.set_by_name(object, &name, &value);
        }
    }

    /// Calls a method of an object.
    pub(crate) fn object_method(&mut self, object: usize, name: &str, args: &Args<'_>) -> Value {
        match name {
            "save_for_backward" => {
                let saved = args.positional().into_iter().cloned().collect();
                self.set_attribute(object, &"saved_tensors".into(), Value::Tuple(saved));
                Value::None
            }
            "add_argument" | "addoption" => {
                self.add_argument(object, args);
                Value::Unknown
            }
            "set_defaults" => {
                for (name, value) in args.0 {
                    name.iter().for_each(|name| self.set_attribute(object, name, value.clone()));
                }
                Value::None
            }
            // Groups of arguments and parsers of commands are parts of the parser.
            "add_argument_group"
            | "add_mutually_exclusive_group"
            | "add_subparsers"
            | "add_parser"
            | "getgroup" => Value::Object(object),
            "getoption" => self.option_by_default(object, args),
            "parse_args" => self.parsed(object, args),
            "parse_known_args" => {
                Value::Tuple(vec![self.parsed(object, args), Value::List(Vec::new())])
            }
            _ if self.generators.contains_key(&object) => self.generator_method(object, name, args),
            _ if self.sparse.contains(&object) => self.sparse_method(object, name, args),
            _ => self.instance_method(object, name, args.0),
        }
    }

    /// The method `name` of the class whose body has the scope `class`, or the function that stands for it:
    /// `name = staticmethod(function)`.
    pub(crate) fn method(&self, file: FileId, class: &[Name], name: &str) -> Option<ItemRef> {
        let module = self.sources.module(file)?;
        let mut named = module.items_named(name);
        let index = named.find(|index| module.items[*index as usize].scope == class)?;
        if let ItemKind::Assign { body, value, .. } = &module.items[index as usize].kind
            && let Expr::Call { callee, args } = &body.exprs[*value]
            && body.exprs[*callee].is_name("staticmethod")
            && let [function] = &args[..]
        {
            let scope = Scope { file, path: class };
            return match resolve_expr(self.sources, scope, body, function.value) {
                Resolution::Function(at) => Some(at),
                _ => None,
            };
        }
        Some(ItemRef { file, index })
    }
}
