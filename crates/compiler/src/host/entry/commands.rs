//! Functions that Click makes commands: called without arguments they read the command line, which gives
//! nothing, so that each option has its default.

use std::sync::Arc;

use crate::hir::{ArgKind, Expr, Function, Name};
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::value::Value;
use crate::project::{ItemRef, Resolution, item_scope};

impl Host<'_> {
    /// The arguments that a command's decorators give the function; `None` for what is no command.
    pub(crate) fn command_arguments(
        &mut self,
        at: ItemRef,
        function: &Arc<Function>,
    ) -> Option<Vec<(Option<Name>, Value)>> {
        let scope = item_scope(self.sources, at);
        let decorators = self.decorators(at.file, &scope, function);
        if !decorators.iter().any(|found| is_of_click(found, &["command"])) {
            return None;
        }
        let mut given = Vec::new();
        for (decorator, found) in function.decorators.iter().zip(&decorators) {
            let Expr::Call { args, .. } = &function.body.exprs[*decorator] else { continue };
            if !is_of_click(found, &["argument", "option"]) {
                continue;
            }
            let values: Vec<_> = args
                .iter()
                .map(|arg| {
                    let value = self.head_expr(at.file, &scope, function, arg.value);
                    let name = match &arg.kind {
                        ArgKind::Keyword(name) => Some(name.clone()),
                        _ => None,
                    };
                    (name, value)
                })
                .collect();
            let (name, value) = option(&Args(&values))?;
            given.push((Some(name), value));
        }
        Some(given)
    }
}

fn is_of_click(found: &Resolution, names: &[&str]) -> bool {
    match found {
        Resolution::External(path) => {
            let path: Vec<&str> = path.iter().map(|part| &**part).collect();
            matches!(path[..], ["click", name] if names.contains(&name))
        }
        _ => false,
    }
}

/// The parameter that `click.option(*names, **settings)` sets, and its default. Source: Click's
/// `Parameter`: the name without dashes, else the longest.
fn option(args: &Args<'_>) -> Option<(Name, Value)> {
    let names = args.positional().into_iter().map(|name| match name {
        Value::Str(name) => Some(name.clone()),
        _ => None,
    });
    let names = names.collect::<Option<Vec<Name>>>()?;
    let dashes = |name: &str| name.len() - name.trim_start_matches('-').len();
    let plain = names.iter().find(|name| dashes(name) == 0);
    let is_option = names.iter().any(|name| dashes(name) > 0);
    let long = || names.iter().rev().max_by_key(|name| dashes(name).min(2));
    // `--on/--off` is named after the first.
    let name = plain.or_else(long)?.split('/').next()?.trim_start_matches('-');
    let is_flag = args.keyword("is_flag").is_some() || names.iter().any(|name| name.contains('/'));
    let value = match args.keyword("default") {
        // A text is read as a number where its type says so.
        Some(Value::Str(_)) if args.keyword("type").is_some() => Value::Unknown,
        Some(default) => default.clone(),
        None if is_flag => Value::Bool(Some(false)),
        None if is_option && args.keyword("required").is_none() => Value::None,
        None => Value::Unknown,
    };
    Some((name.replace('-', "_").to_lowercase().into(), value))
}
