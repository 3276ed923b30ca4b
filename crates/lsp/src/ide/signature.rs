//! The signature of the call around the cursor.

use tile_compiler::builtins::{ParameterKind, ScenarioFunction};
use tile_compiler::hir::{Function, Param, ParamKind, pretty};

use crate::db::{self, Db, SourceFile};
use crate::ide::completion::{Callee, Context, open_call};
use crate::ide::symbol::{ANY_TENSOR, Semantics};

/// A signature and the parameter that is being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signature {
    /// The whole as text.
    pub(crate) label: String,
    /// Its parameters, as they stand in the text.
    pub(crate) parameters: Vec<String>,
    /// Index of the one that is being written.
    pub(crate) active: Option<usize>,
    /// Documentation in Markdown.
    pub(crate) doc: Option<String>,
}

/// The signature of the innermost call that is open at `offset`.
pub(crate) fn signature(db: &dyn Db, file: SourceFile, offset: usize) -> Option<Signature> {
    let semantics = Semantics::new(db, file)?;
    let call = open_call(semantics.text, offset.min(semantics.text.len()))?;
    let context = Context::new(&semantics, offset);
    let version = db::version(db, file);
    let (name, parameters, doc) = match context.callee(&call.callee)? {
        found @ (Callee::Builtin(builtin) | Callee::Method(builtin)) => {
            let all = builtin.parameters(version).iter();
            let is_method = matches!(found, Callee::Method(_));
            let parameters = all.skip(usize::from(is_method)).map(|parameter| {
                let star = if parameter.kind == ParameterKind::VarArgs { "*" } else { "" };
                let default = parameter.default.map(|text| format!("={text}")).unwrap_or_default();
                (parameter.name.to_owned(), format!("{star}{}{default}", parameter.name))
            });
            let doc = Some(builtin.doc.to_owned());
            let name = match is_method {
                true => format!("{ANY_TENSOR}.{}", builtin.name),
                false => builtin.display_name(),
            };
            (name, parameters.collect::<Vec<_>>(), doc)
        }
        Callee::Function(function) => {
            let parameters = function.params.iter().map(|parameter| {
                (parameter.name.to_string(), parameter_text(&function, parameter))
            });
            let doc = function.doc.as_deref().map(str::to_owned);
            (function.name.to_string(), parameters.collect(), doc)
        }
        Callee::Scenario(function) => {
            let parameters = function.parameters();
            let parameters = parameters
                .map(|text| (ScenarioFunction::parameter_name(text).to_owned(), text.into()));
            (function.name.to_owned(), parameters.collect(), Some(function.doc.to_owned()))
        }
    };
    let active = match &call.keyword {
        Some(keyword) => parameters.iter().position(|(name, _)| name == keyword),
        // What follows a `*` parameter belongs to it.
        None if !call.given.is_empty() => {
            // Only keywords can follow keywords: the first that is not given yet.
            let mut open = parameters.iter().enumerate().skip(call.position);
            open.find(|(_, (name, _))| !call.given.contains(name)).map(|(index, _)| index)
        }
        None => {
            let rest = parameters.iter().position(|(_, text)| text.starts_with('*'));
            let position = rest.map_or(call.position, |rest| rest.min(call.position));
            Some(position).filter(|position| *position < parameters.len())
        }
    };
    let parameters: Vec<String> = parameters.into_iter().map(|(_, text)| text).collect();
    let label = format!("{name}({})", parameters.join(", "));
    Some(Signature { label, parameters, active, doc })
}

/// A parameter with its annotation and its default.
pub(crate) fn parameter_text(function: &Function, parameter: &Param) -> String {
    let star = match parameter.kind {
        ParamKind::VarArgs => "*",
        ParamKind::KwArgs => "**",
        ParamKind::Normal | ParamKind::PositionalOnly | ParamKind::KeywordOnly => "",
    };
    let mut text = format!("{star}{}", parameter.name);
    if let Some(annotation) = parameter.annotation {
        text.push_str(&format!(": {}", pretty::expr(&function.body, annotation)));
    }
    if let Some(default) = parameter.default {
        let equals = if parameter.annotation.is_some() { " = " } else { "=" };
        text.push_str(equals);
        text.push_str(&pretty::expr(&function.body, default));
    }
    text
}
