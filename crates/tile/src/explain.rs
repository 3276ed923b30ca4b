//! `tile explain`.

use tile_compiler::diagnostic::Code;

use crate::cli::ExplainArgs;
use crate::{CommandError, Exit, output};

/// Prints the long explanation of a code, or lists codes.
pub(crate) fn run(arguments: &ExplainArgs) -> Result<Exit, CommandError> {
    let Some(name) = &arguments.code else { return list(|_| true) };
    if let Some(code) = Code::from_name(name) {
        let info = code.info();
        output::text_line(&format!("{} ({})\n", info.name, level(code)))?;
        output::text_line(info.explanation.trim_end())?;
        return Ok(Exit::Success);
    }
    let family = format!("{}/", name.trim_end_matches('/'));
    if Code::ALL.iter().any(|code| code.name().starts_with(&family)) {
        return list(|code| code.name().starts_with(&family));
    }
    Err(CommandError::usage(format!(
        "there is no diagnostic `{name}`; {}",
        match closest(name) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`tile explain` lists them all".to_owned(),
        }
    )))
}

fn list(wanted: impl Fn(Code) -> bool) -> Result<Exit, CommandError> {
    let codes = || Code::ALL.iter().copied().filter(|&code| wanted(code));
    let width = codes().map(|code| code.name().len()).max().unwrap_or(0);
    for code in codes() {
        let line = format!("{:width$}  {:7}  {}", code.name(), level(code), code.info().summary);
        output::text_line(&line)?;
    }
    Ok(Exit::Success)
}

fn level(code: Code) -> &'static str {
    crate::render::severity_name(code.info().level)
}

/// The code whose name looks most like `name`, if one does.
fn closest(name: &str) -> Option<&'static str> {
    let near = |code: &Code| strsim::damerau_levenshtein(code.name(), name);
    let best = Code::ALL.iter().min_by_key(|code| near(code))?;
    (near(best) <= 3).then(|| best.name())
}
