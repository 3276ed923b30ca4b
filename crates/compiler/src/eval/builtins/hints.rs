//! Hints to the compiler, assertions and prints at run time.

use smallvec::SmallVec;

use super::super::attribute::extents_of;
use super::super::call::Call;
use super::super::display::shape_text;
use super::super::dtype::{DType, Elem};
use super::super::value::{Const, Shape, Tensor, Value};
use super::super::{Eval, Evaluator, Mode, Stop};
use crate::builtins::Rule;
use crate::diagnostic::Code;
use crate::ir::{self, Attrs, Longs, Opcode};

impl Evaluator<'_> {
    pub(super) fn debug_barrier(&mut self) -> Eval<Value> {
        self.effect(Opcode::Barrier, &[], Attrs::None);
        Ok(Value::void())
    }

    pub(super) fn facts(&mut self, call: &Call) -> Eval<Value> {
        let input = self.strict_tensor(call, 0)?;
        let name = call.builtin.display_name();
        let at = call.place("values");
        let Some(values) = extents_of(&call.value("values")) else {
            let value = call.value("values");
            if value.is_unknown() {
                return Ok(Value::Tensor(input));
            }
            return Err(self.not_constexpr(
                Code::NotConstexpr,
                &format!("`values` of `{name}`"),
                &value,
                at,
            ));
        };
        let rule = call.builtin.rule;
        let expected = match (input.shape.rank(), rule) {
            (None, _) => values.len(),
            (Some(rank), Rule::MultipleOf) => rank.max(1),
            (Some(rank), _) => rank,
        };
        let open = input.elem.is_unknown();
        if !open && values.len() != expected {
            let message = format!(
                "`{name}` needs {expected} values, one per axis, but {} are given",
                values.len()
            );
            return Err(self.error(Code::HintLength, at, message));
        }
        let longs: Option<SmallVec<[i64; 4]>> =
            values.iter().map(|value| i64::try_from(value.int()?).ok()).collect();
        let Some(longs) = longs else { return Ok(Value::Tensor(input)) };
        let mut facts = ir::Facts {
            divisibility: Longs::default(),
            contiguity: Longs::default(),
            constancy: Longs::default(),
        };
        match rule {
            Rule::MultipleOf => facts.divisibility = Longs(longs),
            Rule::MaxContiguous => facts.contiguity = Longs(longs),
            _ => facts.constancy = Longs(longs),
        }
        let shape = input.shape.clone();
        Ok(Value::Tensor(self.op(Opcode::AssertFacts, &[&input], facts, input.elem, shape)))
    }

    pub(super) fn assume(&mut self, call: &Call) -> Eval<Value> {
        match call.nth(0) {
            Value::Tensor(tensor)
                if !matches!(tensor.elem, Elem::Unknown | Elem::Num(DType::Int1)) =>
            {
                let message = format!("`tl.assume` needs bits, but this is `{}`", tensor.elem);
                return Err(self.error(Code::BadCondition, call.place_nth(0), message));
            }
            Value::Tensor(tensor) if tensor.is_block() && !tensor.is_open() => {
                let text = shape_text(&tensor.shape);
                let message =
                    format!("`tl.assume` needs one condition, but this tile has shape {text}");
                return Err(self.error(Code::BadCondition, call.place_nth(0), message));
            }
            Value::Tensor(tensor) => {
                let condition = self.truth_bit(&tensor, call.place_nth(0))?;
                if condition.is_scalar() {
                    self.effect(Opcode::Assume, &[Some(&condition)], Attrs::None);
                }
            }
            Value::Const(Const::Bool(_) | Const::Symbol(_)) | Value::Unknown => {}
            other => {
                let message = format!(
                    "`tl.assume` needs a condition, but this is {}",
                    super::super::report::a(&other)
                );
                return Err(self.error(Code::BadCondition, call.at, message));
            }
        }
        Ok(Value::void())
    }

    pub(super) fn device_print(&mut self, call: &Call) -> Eval<Value> {
        if self.frame().mode == Mode::Python {
            return Ok(Value::NONE);
        }
        let at = call.place_nth(0);
        let prefix = match call.nth(0) {
            Value::Const(Const::Str(text)) => text,
            Value::Unknown | Value::Const(Const::Symbol(_)) => return Ok(Value::NONE),
            // What a helper is given may be a string; what a kernel is launched with may not.
            Value::Tensor(tensor) if tensor.elem.is_unknown() && tensor.shape.dims().is_none() => {
                return Ok(Value::NONE);
            }
            _ => {
                let message = "the first argument of a print is a string; the values follow";
                return Err(self.error(Code::PrintPrefix, at, message));
            }
        };
        if !prefix.is_ascii() {
            let message = "the prefix of a print may contain only ASCII characters";
            return Err(self.error(Code::PrintPrefix, at, message));
        }
        let hex = match self.builder_flag(call, "hex", false) {
            Err(Stop::Reported) => return Err(Stop::Reported),
            hex => hex.unwrap_or(false),
        };
        let mut tensors: Vec<Tensor> = Vec::new();
        for (value, place) in &call.rest {
            match value {
                Value::Unknown => return Ok(Value::NONE),
                value => tensors.push(self.materialize(value, *place)?),
            }
        }
        let operands: Vec<Option<&Tensor>> = tensors.iter().map(Some).collect();
        let text = print_prefix(&prefix, !operands.is_empty());
        let attrs = ir::Message { text: ir::Text(text.into()), hex };
        self.effect(Opcode::DevicePrint, &operands, attrs);
        Ok(Value::void())
    }

    /// Compiled only in debug mode; arguments are checked all the same.
    pub(super) fn device_assert(&mut self, call: &Call) -> Eval<Value> {
        let condition = call.nth(0);
        match &condition {
            Value::Unknown => return Err(Stop::Unknown),
            Value::Tensor(_) => {}
            Value::Const(Const::Bool(_) | Const::Int(_) | Const::Float(_) | Const::Symbol(_)) => {}
            other => {
                let text = super::super::report::a(other);
                let message = format!("the condition of an assertion is {text}");
                return Err(self.error(Code::BadCondition, call.place_nth(0), message));
            }
        }
        if call.has("mask") {
            self.materialize(&call.value("mask"), call.place("mask"))?;
        }
        Ok(Value::NONE)
    }

    pub(super) fn special(&mut self, call: &Call) -> Eval<Value> {
        let asm = volatile_asm;
        let (dtype, attrs) = match call.builtin.name {
            "num_warps" => return Ok(Value::int(i128::from(self.options.num_warps))),
            "num_threads" => return Ok(Value::int(i128::from(self.options.num_warps) * 32)),
            "globaltimer" => return Ok(Value::Tensor(self.global_timer(DType::Int64))),
            "smid" => (DType::Int32, asm("mov.u32 $0, %smid;", "=r")),
            name => {
                let text = match name {
                    "gdc_wait" => "griddepcontrol.wait;",
                    _ => "griddepcontrol.launch_dependents;",
                };
                self.gdc(asm(text, "~{memory}"));
                return Ok(Value::NONE);
            }
        };
        let elem = Elem::Num(dtype);
        Ok(Value::Tensor(self.op(Opcode::InlineAsm, &[], attrs, elem, Shape::scalar())))
    }

    /// The device's clock, in nanoseconds.
    pub(super) fn global_timer(&mut self, dtype: DType) -> Tensor {
        let attrs = volatile_asm("mov.u64 $0, %globaltimer;", "=l");
        let elem = Elem::Num(dtype);
        self.op(Opcode::InlineAsm, &[], attrs, elem, Shape::scalar())
    }

    fn gdc(&mut self, attrs: ir::InlineAsm) {
        if let Some(emitter) = self.emitter.as_mut() {
            emitter.inst(Opcode::InlineAsm, [], attrs, [], []);
        }
    }
}

/// An instruction that is not moved or left out.
fn volatile_asm(text: &str, constraints: &str) -> ir::InlineAsm {
    ir::InlineAsm { asm: text.into(), constraints: constraints.into(), pack: 1, pure: false }
}

/// The prefix as Triton prints it: a blank before, and a colon when values follow.
fn print_prefix(prefix: &str, values: bool) -> String {
    let mut text = prefix.to_owned();
    if values {
        if !text.ends_with(' ') {
            text.push(' ');
        }
        if !text.ends_with(": ") {
            text.pop();
            text.push_str(": ");
        }
    }
    if text.len() > 2 && !text.starts_with(' ') {
        text.insert(0, ' ');
    }
    text
}
