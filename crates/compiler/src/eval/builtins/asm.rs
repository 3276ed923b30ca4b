//! Inline assembly.

use super::super::call::Call;
use super::super::dtype::Elem;
use super::super::emit::ir_type;
use super::super::value::{Const, Tensor, Value};
use super::super::{Eval, Evaluator, Stop};
use crate::diagnostic::Code;
use crate::ir::{self, Opcode};
use crate::source::FileRange;

impl Evaluator<'_> {
    pub(super) fn inline_asm(&mut self, call: &Call) -> Eval<Value> {
        let text = |name: &str| match call.value(name) {
            Value::Const(Const::Str(text)) => Some(text),
            _ => None,
        };
        let elems: Vec<Elem> = match call.value("dtype") {
            Value::Const(Const::DType(elem)) => vec![elem],
            Value::Tuple(tuple) => tuple
                .items
                .iter()
                .map(|item| match item {
                    Value::Const(Const::DType(elem)) => *elem,
                    _ => Elem::Unknown,
                })
                .collect(),
            Value::Const(Const::Str(_) | Const::Int(_) | Const::Float(_)) => {
                let message = "the type of a result is a type, such as `tl.int32`";
                return Err(self.error(Code::BadDType, call.place("dtype"), message));
            }
            _ => vec![Elem::Unknown],
        };
        let several = matches!(call.value("dtype"), Value::Tuple(_));
        if elems.is_empty() {
            let message = "inline assembly needs at least one result";
            return Err(self.error(Code::BadOption, call.place("dtype"), message));
        }
        let pack = match call.value("pack") {
            Value::Const(Const::Int(pack)) => u32::try_from(pack).unwrap_or(1),
            value @ Value::Tensor(_) => {
                let what = "`pack` of inline assembly";
                return Err(self.not_constexpr(
                    Code::NotConstexpr,
                    what,
                    &value,
                    call.place("pack"),
                ));
            }
            _ => 1,
        };
        let pure = self.flag(call, "is_pure", true)?;
        let args = match call.value("args") {
            Value::Tuple(tuple) => tuple.items.clone(),
            Value::Unknown => return Err(Stop::Unknown),
            other => vec![other],
        };
        let mut tensors = Vec::with_capacity(args.len());
        for arg in &args {
            tensors.push(self.materialize(arg, call.place("args"))?);
        }
        let places: Vec<FileRange> = tensors.iter().map(|_| call.place("args")).collect();
        let tensors = self.broadcast_all(&tensors, call.at, &places)?;
        let shape = match tensors.first() {
            Some(tensor) => tensor.shape.clone(),
            None => super::super::value::Shape::scalar(),
        };
        let results: Vec<Tensor> =
            elems.iter().map(|elem| Tensor::new(*elem, shape.clone())).collect();
        let results = match (text("asm"), text("constraints")) {
            (Some(asm), Some(constraints)) => {
                let attrs = ir::InlineAsm {
                    asm: ir::Text(asm),
                    constraints: ir::Text(constraints),
                    pack,
                    pure,
                };
                self.emit_asm(&tensors, attrs, results)
            }
            _ => results,
        };
        if several {
            return Ok(Value::tuple(results.into_iter().map(Value::Tensor).collect()));
        }
        results.into_iter().next().map(Value::Tensor).ok_or(Stop::Unknown)
    }

    fn emit_asm(
        &mut self,
        inputs: &[Tensor],
        attrs: ir::InlineAsm,
        results: Vec<Tensor>,
    ) -> Vec<Tensor> {
        let types: Option<Vec<ir::Type>> =
            results.iter().map(|result| ir_type(result.elem, &result.shape)).collect();
        let operands: Option<Vec<ir::Value>> = inputs.iter().map(|input| input.ir).collect();
        let (Some(types), Some(operands), Some(emitter)) = (types, operands, self.emitter.as_mut())
        else {
            return results;
        };
        let operands = operands.into_iter().map(Some);
        let values = emitter.inst(Opcode::InlineAsm, operands, attrs, types, []);
        Self::with_handles(&results, &values)
    }
}
