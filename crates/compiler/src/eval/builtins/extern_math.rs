//! The device library.

use super::super::call::Call;
use super::super::dtype::{DType, Elem};
use super::super::value::{Tensor, Value};
use super::super::{Eval, Evaluator, Stop};
use crate::builtins::{LIBDEVICE_FUNCTIONS, LibdeviceFunction, LibdeviceType};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{self, Opcode};
use crate::source::FileRange;

impl Evaluator<'_> {
    pub(super) fn libdevice(&mut self, call: &Call) -> Eval<Value> {
        let name = call.builtin.name;
        let function = LIBDEVICE_FUNCTIONS.iter().find(|function| function.name == name);
        let function = function.ok_or(Stop::Unknown)?;
        let mut args = Vec::with_capacity(function.arity);
        for index in 0..function.arity {
            args.push(self.tensor_arg(call, index)?);
        }
        let places: Vec<FileRange> = (0..args.len()).map(|index| call.place_nth(index)).collect();
        let args = self.broadcast_all(&args, call.at, &places)?;
        if args.iter().any(|arg| arg.elem.is_ptr()) {
            return Err(self.no_overload(function, &args, call));
        }
        if args.iter().any(|arg| arg.elem.num().is_none()) {
            return Ok(Value::Tensor(self.unknown_extern(function, &args)));
        }
        let Some((result, symbol)) = overload(function, &args) else {
            return Err(self.no_overload(function, &args, call));
        };
        let shape = args[0].shape.clone();
        let operands: Vec<Option<&Tensor>> = args.iter().map(Some).collect();
        let attrs = ir::Extern { symbol: symbol.into() };
        let value = self.op_optional(Opcode::Extern, &operands, attrs, Elem::Num(result), shape);
        if function.is_predicate() {
            return Ok(Value::Tensor(self.cast(&value, Elem::BOOL, call.at)?));
        }
        Ok(Value::Tensor(value))
    }

    /// The result for arguments of unknown type, as far as all overloads agree.
    fn unknown_extern(&self, function: &LibdeviceFunction, args: &[Tensor]) -> Tensor {
        let mut results = function.overloads().map(|(_, result, _)| result);
        let first = results.next();
        let elem = match first {
            Some(_) if function.is_predicate() => Elem::BOOL,
            Some(first) if results.all(|next| next == first) => Elem::Num(dtype_of(first)),
            _ => Elem::Unknown,
        };
        Tensor { elem, ir: None, ..args[0].clone() }
    }

    fn no_overload(&mut self, function: &LibdeviceFunction, args: &[Tensor], call: &Call) -> Stop {
        let types = |types: &[String]| types.join(", ");
        let given: Vec<String> = args.iter().map(|arg| format!("`{}`", arg.elem)).collect();
        let known: Vec<String> = function
            .overloads()
            .map(|(args, ..)| {
                let args: Vec<&str> = args.iter().map(|&arg| dtype_of(arg).name()).collect();
                format!("({})", args.join(", "))
            })
            .collect();
        let message = format!("`libdevice.{}` is not defined for {}", function.name, types(&given));
        let diagnostic = Diagnostic::new(Code::FloatRequired, call.at, message)
            .with_note(format!("it takes {}", known.join(" or ")));
        self.emit_diagnostic(diagnostic)
    }
}

fn dtype_of(ty: LibdeviceType) -> DType {
    match ty {
        LibdeviceType::I32 => DType::Int32,
        LibdeviceType::U32 => DType::UInt32,
        LibdeviceType::I64 => DType::Int64,
        LibdeviceType::U64 => DType::UInt64,
        LibdeviceType::F32 => DType::Float32,
        LibdeviceType::F64 => DType::Float64,
    }
}

/// Result type and symbol of the overload for the arguments' types.
fn overload(function: &LibdeviceFunction, args: &[Tensor]) -> Option<(DType, &'static str)> {
    let (_, result, symbol) = function.overloads().find(|(types, ..)| {
        types.len() == args.len()
            && types.iter().zip(args).all(|(ty, arg)| arg.elem == Elem::Num(dtype_of(*ty)))
    })?;
    Some((dtype_of(result), symbol))
}
