//! Inline assembly.

use super::super::call::Call;
use super::super::dtype::Elem;
use super::super::emit::ir_type;
use super::super::value::{Const, Shape, Tensor, Value};
use super::super::{Eval, Evaluator, Stop};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{self, AsmMismatch, Opcode};
use crate::source::FileRange;

impl Evaluator<'_> {
    pub(super) fn inline_asm(&mut self, call: &Call) -> Eval<Value> {
        let asm = self.asm_text(call, "asm")?;
        let constraints = self.asm_text(call, "constraints")?;
        let elems: Vec<Elem> = match call.value("dtype") {
            Value::Const(Const::DType(elem)) => vec![elem],
            Value::Tuple(tuple) => {
                tuple.items.iter().map(|item| self.asm_dtype(item, call)).collect::<Eval<_>>()?
            }
            other => vec![self.asm_dtype(&other, call)?],
        };
        let several = matches!(call.value("dtype"), Value::Tuple(_));
        if elems.is_empty() {
            let message = "inline assembly needs at least one result";
            return Err(self.error(Code::BadOption, call.place("dtype"), message));
        }
        let numbers = !self.is_3_9();
        let pure = self.flag_among(call, "is_pure", true, |value| match value {
            Const::Bool(_) => true,
            Const::None | Const::Int(_) | Const::Float(_) => numbers,
            _ => false,
        })?;
        let args = match call.value("args") {
            Value::Tuple(tuple) => tuple.items.clone(),
            Value::Unknown => return Err(Stop::Unknown),
            Value::Const(Const::Symbol(_)) => return Err(Stop::Unknown),
            Value::Tensor(tensor) if tensor.is_open() => return Err(Stop::Unknown),
            other => {
                let text = super::super::report::a(&other);
                let message = format!("`args` is a list of tensors, but this is {text}");
                let diagnostic = Diagnostic::new(Code::BadOption, call.place("args"), message)
                    .with_note("write `[x]` for one");
                return Err(self.emit_diagnostic(diagnostic));
            }
        };
        let mut tensors = Vec::with_capacity(args.len());
        for arg in &args {
            tensors.push(self.materialize(arg, call.place("args"))?);
        }
        let places: Vec<FileRange> = tensors.iter().map(|_| call.place("args")).collect();
        let tensors = self.broadcast_all(&tensors, call.at, &places)?;
        let shape = match tensors.first() {
            Some(tensor) => tensor.shape.clone(),
            None => Shape::scalar(),
        };
        let pack = self.asm_pack(call, &shape)?;
        let results: Vec<Tensor> =
            elems.iter().map(|elem| Tensor::new(*elem, shape.clone())).collect();
        let results = match (asm, constraints, pack) {
            (Some(asm), Some(constraints), Some(pack)) => {
                let attrs = ir::InlineAsm {
                    asm: ir::Text(asm),
                    constraints: ir::Text(constraints),
                    pack,
                    pure,
                };
                self.check_asm(call, &attrs, &tensors, &elems);
                self.emit_asm(&tensors, attrs, results)
            }
            _ => results,
        };
        if several {
            return Ok(Value::tuple(results.into_iter().map(Value::Tensor).collect()));
        }
        results.into_iter().next().map(Value::Tensor).ok_or(Stop::Unknown)
    }

    /// A text of the call; `None` where it is not known yet.
    fn asm_text(&mut self, call: &Call, name: &str) -> Eval<Option<std::sync::Arc<str>>> {
        match call.value(name) {
            Value::Const(Const::Str(text)) => Ok(Some(text)),
            Value::Const(Const::Symbol(_)) | Value::Unknown => Ok(None),
            Value::Tensor(tensor) if tensor.is_open() => Ok(None),
            other => {
                let text = super::super::report::a(&other);
                let message = format!("`{name}` is a string, but this is {text}");
                Err(self.error(Code::BadOption, call.place(name), message))
            }
        }
    }

    /// Reports operands that do not fit the constraints, which would end Triton's process.
    fn check_asm(
        &mut self,
        call: &Call,
        asm: &ir::InlineAsm,
        arguments: &[Tensor],
        results: &[Elem],
    ) {
        let bits = |elem: Elem| elem.lower().map(ir::Elem::bits);
        let arguments: Vec<Option<u32>> = arguments.iter().map(|input| bits(input.elem)).collect();
        let results: Vec<Option<u32>> = results.iter().map(|elem| bits(*elem)).collect();
        let Err(mismatch) = asm.check(&arguments, &results) else { return };
        let name = match mismatch {
            AsmMismatch::NoSuchOperand { .. } => "asm",
            _ => "constraints",
        };
        let note = "a register holds one element of 32 bits or more, or as many narrower ones of \
                    `pack` as it has room for";
        let message = mismatch.to_string();
        let found = Diagnostic::new(Code::AsmOperands, call.place(name), message).with_note(note);
        self.emit_diagnostic(found);
    }

    /// How many elements each run of the assembly takes, of a tile of `shape`; `None` where it is
    /// not known yet.
    fn asm_pack(&mut self, call: &Call, shape: &Shape) -> Eval<Option<u32>> {
        let pack = match call.value("pack") {
            Value::Const(Const::Int(pack)) => pack,
            Value::Const(Const::Bool(pack)) => i128::from(pack),
            Value::Const(Const::Symbol(_)) | Value::Unknown => return Ok(None),
            Value::Tensor(tensor) if tensor.is_open() => return Ok(None),
            other => {
                let what = "`pack` of inline assembly";
                let at = call.place("pack");
                return Err(self.not_constexpr(Code::NotConstexpr, what, &other, at));
            }
        };
        let count = shape.numel().and_then(|count| count.int()).filter(|_| shape.is_block());
        match u32::try_from(pack) {
            Ok(pack) if pack > 0 && count.is_none_or(|count| count % i128::from(pack) == 0) => {
                Ok(Some(pack))
            }
            _ => {
                let message = match count {
                    Some(count) => format!("`pack` divides the {count} elements, unlike {pack}"),
                    None => format!("`pack` is positive, unlike {pack}"),
                };
                Err(self.error(Code::BadOption, call.place("pack"), message))
            }
        }
    }

    /// The type of one result.
    fn asm_dtype(&mut self, value: &Value, call: &Call) -> Eval<Elem> {
        match value {
            Value::Const(Const::DType(elem)) => Ok(*elem),
            Value::Const(Const::Symbol(_)) | Value::Unknown => Ok(Elem::Unknown),
            Value::Tensor(tensor) if tensor.is_open() => Ok(Elem::Unknown),
            _ => {
                let message = "the type of a result is a type, such as `tl.int32`";
                Err(self.error(Code::BadDType, call.place("dtype"), message))
            }
        }
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
