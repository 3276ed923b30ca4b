//! A mask for a load or store that has none.

use tile_compiler::diagnostic::Fix;
use tile_compiler::eval::dtype::Elem;
use tile_compiler::eval::value::{Tensor, Value};
use tile_compiler::eval::{BodyTypes, ValueClass};
use tile_compiler::hir::{Arg, ArgKind, BinaryOp, Expr, ExprId, Function, Stmt};
use tile_compiler::source::TextRange;

use super::insert;
use crate::db::{Db, SourceFile};
use crate::ide::symbol::Semantics;
use crate::ide::tree::range;
use crate::ide::trial::adds_no_error;

/// Masks that are tried, those assigned last first.
const MAX_TRIED: usize = 3;

/// A load or store of a tile of pointers.
struct Access<'a> {
    function: &'a Function,
    types: &'a BodyTypes,
    /// Where the call stands.
    at: TextRange,
    loads: bool,
    pointer: ExprId,
    /// Whether it says what lanes get that are not read.
    has_other: bool,
}

/// `mask=..., other=...` for the load or store around `offset` that has none.
pub(super) fn mask(
    db: &dyn Db,
    file: SourceFile,
    function: &Function,
    types: &BodyTypes,
    offset: usize,
) -> Option<Fix> {
    let access = Access::around(function, types, offset)?;
    let end = end_of_arguments(db, file, access.at)?;
    let title = if access.loads && !access.has_other { "Add mask and other" } else { "Add mask" };
    let other = if access.loads && !access.has_other { ", other=0.0" } else { "" };
    let fix = |condition: String| {
        let text = format!(", mask={condition}{other}");
        Fix { title: title.to_owned(), edits: vec![insert(db, file, end, text)] }
    };
    let conditions = access.masks().into_iter().take(MAX_TRIED).chain(access.comparison());
    conditions.map(fix).find(|fix| adds_no_error(db, file, fix))
}

/// Where the last argument of the call at `call` ends: a comma or a comment may follow.
fn end_of_arguments(db: &dyn Db, file: SourceFile, call: TextRange) -> Option<u32> {
    let semantics = Semantics::new(db, file)?;
    let at = call.as_usize();
    let node = semantics.root().descendant_for_byte_range(at.start, at.end)?;
    let arguments = node.child_by_field_name("arguments").filter(|_| range(node) == call)?;
    let mut cursor = arguments.walk();
    let given = arguments.named_children(&mut cursor).filter(|child| child.kind() != "comment");
    Some(range(given.last()?).end)
}

impl<'a> Access<'a> {
    /// The innermost call around `offset`, if it is a load or store through a tile of pointers that
    /// has no mask.
    fn around(function: &'a Function, types: &'a BodyTypes, offset: usize) -> Option<Access<'a>> {
        let calls = function.body.exprs.iter().filter_map(|(expr, data)| match data {
            Expr::Call { callee, args } if function.map.exprs[expr].touches(offset) => {
                Some((function.map.exprs[expr], *callee, args))
            }
            _ => None,
        });
        let (at, callee, args) = calls.min_by_key(|(at, ..)| at.len())?;
        let Some(Value::Builtin(builtin)) = types.value(callee) else { return None };
        // The mask of a load comes second, that of a store third.
        let before_mask = match builtin.name {
            "load" => 1,
            "store" => 2,
            _ => return None,
        };
        let is_named =
            |arg: &&Arg, name: &str| matches!(&arg.kind, ArgKind::Keyword(key) if &**key == name);
        let named = |name: &str| args.iter().find(|arg| is_named(arg, name));
        let by_position = args.iter().filter(|arg| arg.kind == ArgKind::Positional);
        let is_plain =
            args.iter().all(|arg| matches!(arg.kind, ArgKind::Positional | ArgKind::Keyword(_)));
        if !is_plain || named("mask").is_some() || by_position.clone().count() > before_mask {
            return None;
        }
        let pointer = named("pointer").or_else(|| by_position.clone().next())?.value;
        let has_other = named("other").is_some();
        let loads = builtin.name == "load";
        let access = Access { function, types, at, loads, pointer, has_other };
        let is_tile = access.tile(pointer).is_some_and(|_| {
            // What is added to an argument need not show that it is a pointer.
            types.class(pointer) == Some(ValueClass::Pointer)
        });
        is_tile.then_some(access)
    }

    /// The tile that an expression is.
    fn tile(&self, expr: ExprId) -> Option<&'a Tensor> {
        self.types.value(expr)?.as_tensor().filter(|tensor| tensor.is_block())
    }

    /// Names of masks that were assigned before, the last first.
    fn masks(&self) -> Vec<String> {
        let stmts = self.function.body.stmts.values();
        let assigned = stmts.filter_map(|stmt| match stmt {
            Stmt::Assign { targets, value } => Some((*targets.first()?, *value)),
            _ => None,
        });
        let mut found: Vec<(TextRange, String)> = assigned
            .filter_map(|(target, value)| {
                let at = self.function.map.exprs[target];
                let Expr::Name(name) = &self.function.body.exprs[target] else { return None };
                let is_mask = name.to_lowercase().contains("mask")
                    && self.tile(value).is_some_and(|tile| tile.elem == Elem::BOOL);
                (is_mask && at.end < self.at.start).then(|| (at, name.to_string()))
            })
            .collect();
        found.sort();
        let mut names: Vec<String> = Vec::new();
        for (_, name) in found.into_iter().rev() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// A comparison of the offsets along the one axis with a length.
    fn comparison(&self) -> Option<String> {
        let has_one_axis = self.tile(self.pointer)?.shape.rank() == Some(1);
        let offsets = self.offsets(self.pointer).filter(|_| has_one_axis)?;
        let mut lengths = self.function.params.iter().filter(|param| {
            let name = param.name.to_lowercase();
            let is_length = name.starts_with('n') || name.contains("size") || name.contains("len");
            is_length && self.types.param_class(&param.name) == Some(ValueClass::Scalar)
        });
        Some(format!("{offsets} < {}", lengths.next()?.name))
    }

    /// The name of the offsets that are added to a pointer.
    fn offsets(&self, pointer: ExprId) -> Option<String> {
        match &self.function.body.exprs[pointer] {
            Expr::Binary { op: BinaryOp::Add, lhs, rhs } => {
                self.offsets(*rhs).or_else(|| self.offsets(*lhs))
            }
            Expr::Name(name) if self.types.class(pointer) == Some(ValueClass::Tile) => {
                Some(name.to_string())
            }
            _ => None,
        }
    }
}
