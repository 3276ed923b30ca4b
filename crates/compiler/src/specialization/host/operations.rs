//! Operations that a file registers with PyTorch, `@torch.library.custom_op("library::name")`, and calls
//! by that name: `torch.ops.library.name(...)`.

use std::sync::Arc;

use super::Host;
use super::value::Value;
use crate::hir::{Expr, Function, Item, ItemKind, Name};
use crate::project::launchers::REGISTERS;
use crate::project::{ItemRef, Resolution};
use crate::source::FileId;

impl Host<'_> {
    /// The function of `file` that the operation at a dotted path is: `torch.ops.library.name`, with an
    /// overload or without.
    pub(super) fn operation(&mut self, file: FileId, path: &[Name]) -> Option<ItemRef> {
        let (library, name) = match path {
            [torch, ops, library, name] | [torch, ops, library, name, _]
                if &**torch == "torch" && &**ops == "ops" =>
            {
                (library, name)
            }
            _ => return None,
        };
        let registered = Value::Str(format!("{library}::{name}").into());
        let module = self.sources.module(file)?;
        let found = module.items.iter().position(|item| match &item.kind {
            ItemKind::Function(function) => {
                self.registers(file, item, function) == Some(registered.clone())
            }
            _ => false,
        });
        Some(ItemRef { file, index: found? as u32 })
    }

    /// The name under which a function is registered.
    fn registers(&mut self, file: FileId, item: &Item, function: &Arc<Function>) -> Option<Value> {
        let decorators = self.decorators(file, &item.scope, function);
        let registers = |found: &Resolution| match found {
            Resolution::External(path) => REGISTERS
                .iter()
                .any(|known| path.iter().map(|part| &**part).eq(known.iter().copied())),
            _ => false,
        };
        let decorator = function.decorators[decorators.iter().position(registers)?];
        let Expr::Call { args, .. } = &function.body.exprs[decorator] else { return None };
        let name = args.first()?.value;
        Some(self.head_expr(file, &item.scope, function, name))
    }
}
