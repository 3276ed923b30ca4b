//! Scenario lines and `allow` comments.

use std::sync::Arc;

use super::{Lowering, field_parts};
use crate::hir::{Allow, Expr, ExprId, Launch, Module, Scenario, Stmt, StmtId};
use crate::source::TextRange;
use crate::syntax::Parse;
use crate::syntax::kind::{Field, Kind};
use crate::syntax::node::Node;
use crate::syntax::statement::Statement;

/// Adds the scenarios, their launches, and the `allow` comments to `module`.
pub(super) fn lower(parse: &Parse, module: &mut Module) {
    let mut lines = Statement::marked_lines(parse);
    lines.retain(|line| {
        let codeless = codeless_allow(parse, line.range());
        let is_statement = codeless.is_none() && !line.is_remark(parse.text());
        module.allows.extend(codeless);
        is_statement
    });
    let mut run: Vec<Node<'_>> = Vec::new();
    let (mut next_row, mut row, mut at) = (0, 0, 0);
    for line in lines.iter().map(Statement::top) {
        let between = &parse.text().as_bytes()[at..line.start_byte()];
        row += memchr::memchr_iter(b'\n', between).count();
        at = line.start_byte();
        let statement = line.field(Field::Statement);
        let allow = statement.filter(|node| node.kind() == Kind::Allow);
        if allow.is_none() && row != next_row {
            finish(parse, &mut run, module);
        }
        match allow {
            Some(allow) => add_allow(parse, line, allow, module),
            None => run.push(line),
        }
        // A comment between the lines of a scenario that says what is allowed does not end it.
        if allow.is_none() || row == next_row {
            next_row = row + 1;
        }
    }
    finish(parse, &mut run, module);
    module.launches.sort_by_key(|launch| launch.range);
}

fn add_allow(parse: &Parse, line: Node<'_>, allow: Node<'_>, module: &mut Module) {
    let text = parse.text();
    let line_start = text[..line.start_byte()].rfind('\n').map_or(0, |at| at + 1);
    let trailing = !text[line_start..line.start_byte()].trim().is_empty();
    for code in field_parts(allow, Field::Code) {
        let code_range = code.range();
        let code = Arc::from(text.get(code_range.as_usize()).unwrap_or_default());
        module.allows.push(Allow { range: line.range(), code, code_range, trailing });
    }
}

/// `allow` without a code that could be read: alone, or followed by what other linters have there.
fn codeless_allow(parse: &Parse, range: TextRange) -> Option<Allow> {
    let text = parse.text().get(range.as_usize())?;
    let after = text.split_once("tile:")?.1.trim().strip_prefix("allow")?.trim_start();
    let is_meant = after.is_empty() || after.starts_with(['(', '[', ':', '=']);
    let code = Arc::from("");
    is_meant.then_some(Allow { range, code, code_range: range, trailing: true })
}

/// Turns a run of lines into a scenario.
fn finish(parse: &Parse, run: &mut Vec<Node<'_>>, module: &mut Module) {
    let (Some(first), Some(last)) = (run.first(), run.last()) else { return };
    let at = first.range().cover(last.range());
    let mut lowering = Lowering::new(parse.text());
    for line in run.iter() {
        let stmts = match line.has_error() {
            true => vec![lowering.add_stmt(line.range(), Stmt::Error)],
            false => lowering.field_stmts(*line, Field::Statement),
        };
        lowering.body.root.extend(stmts);
    }
    run.clear();
    let (body, map) = lowering.finish();
    let scenario = Scenario { range: at, body, map: Arc::new(map) };
    add_launches(&scenario, &scenario.body.root, module);
    module.scenarios.push(scenario);
}

/// Adds the launches that statements of a scenario are, or repeat.
fn add_launches(scenario: &Scenario, stmts: &[StmtId], module: &mut Module) {
    for &stmt in stmts {
        match &scenario.body.stmts[stmt] {
            Stmt::For { body, .. } => add_launches(scenario, body, module),
            Stmt::Expr(call) => module.launches.extend(launch(scenario, stmt, *call)),
            _ => {}
        }
    }
}

fn launch(scenario: &Scenario, stmt: StmtId, call: ExprId) -> Option<Launch> {
    let body = &scenario.body;
    let Expr::Call { callee, args } = &body.exprs[call] else { return None };
    let Expr::Subscript { value, index } = body.exprs[*callee] else { return None };
    Some(Launch {
        range: launch_range(scenario, stmt),
        body: scenario.body.clone(),
        map: scenario.map.clone(),
        kernel: value,
        grid: index,
        args: args.clone(),
        host: None,
    })
}

fn launch_range(scenario: &Scenario, stmt: StmtId) -> TextRange {
    scenario.map.stmts[stmt]
}
