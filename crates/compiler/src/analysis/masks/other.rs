//! The edit that gives the lanes of a load that its mask leaves out a value.

use crate::diagnostic::{Code, Diagnostic, TextEdit};
use crate::hir::{ArgKind, Expr, lower_expression};
use crate::project::Sources;
use crate::source::{FileRange, TextRange};

/// Positional arguments of a load, of which the last is `other`.
const POSITIONAL: usize = 3;

/// `finding` about the load at its primary place with a fix by `value`, which [`settle`] puts where
/// it belongs in the text.
pub(super) fn give(finding: Diagnostic, value: &str) -> Diagnostic {
    let edit = TextEdit { at: finding.primary, text: value.to_owned() };
    finding.with_fix(format!("give these lanes a value: `other={value}`"), vec![edit])
}

/// `finding` with its fix as the text of the call asks for: behind the last argument, or in place of
/// an `other` that is `None`. Without it where the call cannot be read.
pub(in crate::analysis) fn settle(sources: &dyn Sources, mut finding: Diagnostic) -> Diagnostic {
    if finding.code == Code::UndefinedLanes {
        let call = finding.primary;
        let settled = |edit: &TextEdit| edit_of(sources, call, &edit.text);
        finding.fixes.retain_mut(|fix| {
            let edits: Option<Vec<TextEdit>> = fix.edits.iter().map(settled).collect();
            fix.edits = edits.unwrap_or_default();
            !fix.edits.is_empty()
        });
    }
    finding
}

fn edit_of(sources: &dyn Sources, call: FileRange, value: &str) -> Option<TextEdit> {
    let text = sources.text(call.file)?;
    let text = text.get(call.range.as_usize())?;
    let (body, map, root) = lower_expression(text)?;
    let Expr::Call { args, .. } = &body.exprs[root] else { return None };
    let is_plain = |kind: &ArgKind| matches!(kind, ArgKind::Positional | ArgKind::Keyword(_));
    if !args.iter().all(|arg| is_plain(&arg.kind)) {
        return None;
    }
    let named =
        args.iter().find(|arg| matches!(&arg.kind, ArgKind::Keyword(name) if &**name == "other"));
    let given = named
        .or_else(|| args.get(POSITIONAL - 1).filter(|arg| matches!(arg.kind, ArgKind::Positional)));
    let (range, text) = match given {
        Some(arg) => (map.exprs[arg.value], value.to_owned()),
        None => {
            let end = map.exprs[args.last()?.value].end as usize;
            (
                TextRange::empty(end + closed(text.get(end..text.len() - 1)?)),
                format!(", other={value}"),
            )
        }
    };
    let start = call.range.start + range.start;
    let at =
        FileRange { file: call.file, range: TextRange { start, end: start + range.len() as u32 } };
    Some(TextEdit { at, text })
}

/// How far the brackets around an argument go on behind it; `rest` is what stands there.
fn closed(rest: &str) -> usize {
    let end = rest.find([',', '#']).unwrap_or(rest.len());
    rest[..end].rfind(')').map_or(0, |at| at + 1)
}
