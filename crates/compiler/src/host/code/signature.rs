//! What `inspect.signature` tells of a function of the project.

use crate::hir::{Name, Param};
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::value::Value;
use crate::project::{ItemRef, Resolution, function, item_scope};
use crate::source::FileId;

/// What stands for what a function does not say.
const EMPTY: [&str; 3] = ["inspect", "Parameter", "empty"];

/// Whether one of two values is that and the other is as well, where that is known.
pub(crate) fn same_empty(left: &Value, right: &Value) -> Option<bool> {
    let is_external = |value: &Value| matches!(value, Value::Named(Resolution::External(_)));
    let is_empty = |value: &Value| match value {
        Value::Named(Resolution::External(path)) => path.iter().map(|part| &**part).eq(EMPTY),
        _ => false,
    };
    match (is_empty(left), is_empty(right)) {
        (true, true) => Some(true),
        (true, false) if !is_external(right) => Some(false),
        (false, true) if !is_external(left) => Some(false),
        _ => None,
    }
}

impl Host<'_> {
    /// `inspect.signature(function)`.
    pub(crate) fn signature(&mut self, args: &Args<'_>) -> Value {
        match args.get(0, "obj") {
            Some(Value::Named(Resolution::Function(at))) => {
                self.signature_of(*at).unwrap_or(Value::Unknown)
            }
            _ => Value::Unknown,
        }
    }

    fn signature_of(&mut self, at: ItemRef) -> Option<Value> {
        let found = function(self.sources, at)?;
        if !found.decorators.is_empty() || self.postpones_annotations(at.file) {
            return None;
        }
        let scope = item_scope(self.sources, at);
        let mut told = |param: Option<_>| match param {
            Some(id) => self.head_expr(at.file, &scope, &found, id),
            None => Value::Named(Resolution::External(EMPTY.map(Name::from).to_vec())),
        };
        let of = |param: &Param| {
            let known = [("annotation", told(param.annotation)), ("default", told(param.default))];
            (param.name.clone(), known)
        };
        let told_of: Vec<_> = found.params.iter().map(of).collect();
        let returned = told(found.returns);
        let parameters = told_of.into_iter().map(|(name, known)| {
            let named = ("name", Value::Str(name.clone()));
            (Value::Str(name), self.object_with(known.into_iter().chain([named])))
        });
        let parameters = Value::Dict(parameters.collect());
        Some(self.object_with([("parameters", parameters), ("return_annotation", returned)]))
    }

    fn object_with(
        &mut self,
        attributes: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Value {
        let made = self.object();
        if let Value::Object(object) = made {
            for (name, value) in attributes {
                self.replace_attribute(object, &name.into(), value);
            }
        }
        made
    }

    /// Whether the annotations of a file are texts.
    fn postpones_annotations(&self, file: FileId) -> bool {
        let text = self.sources.text(file);
        text.is_none_or(|text| text.lines().any(|line| line.starts_with("from __future__")))
    }
}
