//! The rules of the table of builtins.

use super::call::{Argument, Call};
use super::value::{Const, Held, ModuleRef, Shape, Tensor, Value};
use super::{Eval, Evaluator, Mode, OriginKind, Stop};
use crate::builtins::{self, Rule};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::source::FileRange;

mod asm;
mod atomic;
mod block_ptr;
mod create;
pub(super) mod descriptor;
mod dot;
mod extern_math;
mod hints;
mod host;
mod math;
mod memory;
mod random;
mod rearrange;
mod reduce;
mod sort;
mod statics;
pub(super) mod text;

use reduce::Combine;

impl Evaluator<'_> {
    /// Applies the rule of a builtin to its arguments.
    pub(super) fn apply_builtin(&mut self, call: &Call) -> Eval<Value> {
        let value = self.dispatch(call)?;
        Ok(self.with_call_origin(call, value))
    }

    /// Results of builtins say that they are one when somebody asks why they are not constexpr.
    fn with_call_origin(&mut self, call: &Call, value: Value) -> Value {
        match value {
            Value::Tensor(tensor) => {
                let kind = OriginKind::Call(call.builtin.name);
                let origin = self.origin(call.at, kind, tensor.origin);
                Value::Tensor(Tensor { origin, ..tensor })
            }
            other => other,
        }
    }

    fn dispatch(&mut self, call: &Call) -> Eval<Value> {
        match call.builtin.rule {
            Rule::ProgramId | Rule::NumPrograms => self.program(call),
            Rule::Arange => self.arange(call),
            Rule::Full => self.full(call),
            Rule::Zeros => self.zeros(call),
            Rule::ZerosLike => self.zeros_like(call),
            Rule::ToTensor => Ok(Value::Tensor(self.materialize(&call.nth(0), call.at)?)),
            Rule::Cast => self.cast_builtin(call),
            Rule::Broadcast => self.broadcast_builtin(call),
            Rule::BroadcastTo => self.broadcast_to(call),
            Rule::ExpandDims => self.expand_dims(call),
            Rule::Squeeze => self.squeeze(call),
            Rule::Unsqueeze => self.unsqueeze(call),
            Rule::Reshape | Rule::View => self.reshape_builtin(call),
            Rule::Ravel => self.ravel(call),
            Rule::Item => self.item_builtin(call),
            Rule::Trans => self.trans(call),
            Rule::Permute => self.permute_builtin(call),
            Rule::Join => self.join_builtin(call),
            Rule::Split => self.split(call),
            Rule::Interleave => self.interleave(call),
            Rule::Cat => self.cat(call),
            Rule::Flip => self.flip(call),
            Rule::Gather => self.gather(call),
            Rule::Where => self.where_builtin(call),
            Rule::Arithmetic(op) => {
                let places = (call.place_nth(0), call.place_nth(1));
                let mut left = call.nth(0);
                if let (Value::Const(_), Value::Const(_)) = (&left, call.nth(1)) {
                    // Unlike an operator, it computes at run time.
                    left = Value::Tensor(self.materialize(&left, places.0)?);
                }
                Ok(self.binary(op, &left, &call.nth(1), call.at, places))
            }
            Rule::CombineOperator(op) => self.combine_elements(call, &Combine::Operator(op)),
            Rule::CombineIndexed { max, tie_left } => {
                self.combine_elements(call, &Combine::Indexed { max, tie_left })
            }
            Rule::Logical { and } => {
                let (a, b) = (self.tensor_arg(call, 0)?, self.tensor_arg(call, 1)?);
                Ok(Value::Tensor(self.logical(and, &a, &b, call.at)?))
            }
            Rule::Extremum { max } | Rule::CombineExtremum { max } => self.extremum(call, max),
            Rule::PythonExtremum { max } => self.python_extremum(call, max),
            Rule::Clamp => self.clamp(call),
            Rule::Abs => self.abs(call),
            Rule::UMulHi => self.umulhi(call),
            Rule::Fma => self.fma(call),
            Rule::Unary(opcode) => self.unary_math(call, opcode),
            Rule::SqrtRn => self.sqrt_rn(call),
            Rule::DivRn => self.div_rn(call),
            Rule::FDiv => self.fdiv(call),
            Rule::CDiv => self.cdiv(call),
            Rule::Sigmoid => self.sigmoid(call),
            Rule::Softmax => self.softmax(call),
            Rule::Swizzle2d => self.swizzle2d(call),
            Rule::Reduce => self.reduce_builtin(call),
            Rule::Sum => self.sum(call),
            Rule::ReduceExtremum { max } => self.reduce_extremum(call, max),
            Rule::ArgExtremum { max } => self.arg_extremum(call, max),
            Rule::XorSum | Rule::ReduceOr => self.reduce_bits(call),
            Rule::AssociativeScan => self.associative_scan(call),
            Rule::CumSum | Rule::CumProd => self.cumulative(call),
            Rule::Sort => self.sort(call),
            Rule::BitonicMerge => self.bitonic_merge(call),
            Rule::TopK => self.topk(call),
            Rule::Histogram => self.histogram(call),
            Rule::MapElementwise => self.map_elementwise(call),
            Rule::InlineAsm => self.inline_asm(call),
            Rule::Dot => self.dot(call),
            Rule::DotScaled => self.dot_scaled(call),
            Rule::Load => self.load(call),
            Rule::Store => self.store(call),
            Rule::MakeBlockPtr => self.make_block_ptr(call),
            Rule::Advance => self.advance(call),
            Rule::MakeDescriptor => self.make_descriptor(call),
            Rule::DescriptorLoad => self.descriptor_load(call),
            Rule::DescriptorStore => self.descriptor_store(call),
            Rule::DescriptorGather => self.descriptor_gather(call),
            Rule::DescriptorScatter => self.descriptor_scatter(call),
            Rule::DescriptorAtomic(op) => self.descriptor_atomic(call, op),
            Rule::AtomicRmw(op) => self.atomic_rmw(call, op),
            Rule::AtomicCas => self.atomic_cas(call),
            Rule::AtomicLoad => self.atomic_load(call),
            Rule::AtomicStore => self.atomic_store(call),
            Rule::AtomicPoll => self.atomic_poll(call),
            Rule::DebugBarrier => self.debug_barrier(),
            Rule::ProfilerMark => Ok(Value::NONE),
            Rule::MultipleOf | Rule::MaxContiguous | Rule::MaxConstancy => self.facts(call),
            Rule::Assume => self.assume(call),
            Rule::StaticAssert => self.static_assert(call),
            Rule::StaticPrint => self.static_print(call),
            Rule::DevicePrint => self.device_print(call),
            Rule::DeviceAssert => self.device_assert(call),
            Rule::Constexpr => self.constexpr(call),
            Rule::Condition => Ok(Value::Condition(std::sync::Arc::new(call.nth(0)))),
            Rule::StaticRange | Rule::Range | Rule::PythonRange => self.range_builtin(call),
            Rule::PhiloxImpl
            | Rule::Philox
            | Rule::RandInt
            | Rule::RandInt4x
            | Rule::Rand
            | Rule::Rand4x
            | Rule::Randn
            | Rule::Randn4x
            | Rule::UniformFloat
            | Rule::PairNormal => self.random(call),
            Rule::Class if call.builtin.name == "tensor" => Ok(tensor_around(call)),
            Rule::Class | Rule::Opaque => Ok(Value::Unknown),
            Rule::IntDType => self.int_dtype(call),
            Rule::PointerType => self.pointer_type(call),
            Rule::BlockTypeClass => self.block_type(call),
            Rule::DTypeClass => self.dtype_class(call),
            Rule::PythonLen => self.python_len(call),
            Rule::PythonInt | Rule::PythonFloat => self.python_number(call),
            // A list of Python, of which kernels make no tensor.
            Rule::PythonList if call.builtin.name == "list" && self.frame().mode == Mode::Jit => {
                Ok(call.nth(0).held(Held::PythonList))
            }
            Rule::PythonList => Ok(call.nth(0)),
            Rule::PythonIsInstance => self.python_isinstance(call),
            Rule::PythonGetAttr | Rule::PythonHasAttr => self.python_getattr(call),
            Rule::TypeLimits => self.type_limits(call),
            Rule::NoValue => Ok(Value::NONE),
            // Python runs them, see `call_text_method`.
            Rule::PythonString => Ok(self.fresh_const()),
            Rule::PythonBitLength => self.python_bit_length(call),
            Rule::ImportModule => Ok(import_module(&call.nth(0))),
            Rule::PythonSum => self.python_sum(call),
            Rule::PythonBool => match call.nth(0).as_const().map(Const::truth) {
                Some(Some(truth)) => Ok(Value::bool(truth)),
                _ => Ok(self.fresh_const()),
            },
            Rule::PythonMath => self.python_math(call),
            Rule::HostCDiv | Rule::HostNextPowerOf2 | Rule::HostLog2 => self.host_function(call),
            Rule::Libdevice => self.libdevice(call),
            Rule::Special => self.special(call),
            Rule::TargetQuery => self.target_query(call),
            Rule::Answer => Ok(call.nth(0)),
            Rule::NamedTupleOf => match (call.nth(0), call.nth(1)) {
                (class @ Value::Class(_), Value::Tuple(tuple)) => {
                    let at = call.at;
                    let items = tuple.items.iter().cloned();
                    let items = items.map(|item| Argument::positional(item, at)).collect();
                    Ok(self.call_value(&class, items, at))
                }
                _ => Err(Stop::Unknown),
            },
        }
    }

    /// A tensor argument; literals become tensors.
    fn tensor_arg(&mut self, call: &Call, index: usize) -> Eval<Tensor> {
        let value = call.nth(index);
        self.materialize(&value, call.place_nth(index))
    }

    /// An argument that must be a tensor already: literals are refused.
    fn strict_tensor(&mut self, call: &Call, index: usize) -> Eval<Tensor> {
        match call.nth(index) {
            Value::Tensor(tensor) => Ok(tensor),
            Value::Unknown => Err(Stop::Unknown),
            Value::Const(constant) if constant.is_symbol() => Err(Stop::Unknown),
            other => {
                let message = format!(
                    "`{}` needs a tensor, but this is {}",
                    call.builtin.display_name(),
                    super::report::a(&other)
                );
                Err(self.error(Code::NotATensor, call.place_nth(index), message))
            }
        }
    }

    /// A compile-time bool; `default` where it was not given.
    fn flag(&mut self, call: &Call, name: &str, default: bool) -> Eval<bool> {
        match call.given(name) {
            None => Ok(default),
            Some(Value::Const(constant)) => constant.truth().ok_or(Stop::Unknown),
            Some(Value::Unknown) => Err(Stop::Unknown),
            Some(Value::Tensor(tensor)) if tensor.is_open() => Err(Stop::Unknown),
            Some(module @ Value::Module(_)) if !self.is_3_9() && call.builtin.is_jit() => {
                let module = module.clone();
                Err(self.not_a_bool(call, name, &module))
            }
            Some(other) => {
                let truth = !matches!(other, Value::Tuple(tuple) if tuple.items.is_empty());
                let message = format!(
                    "`{name}` is a switch, for which this {} counts as `{truth}`",
                    super::display::type_text(other)
                );
                let mut diagnostic = Diagnostic::new(Code::NotConstexpr, call.place(name), message)
                    .with_note("only a value that is known at compile time switches it");
                diagnostic.severity = Severity::Warning;
                self.emit_diagnostic(diagnostic);
                Ok(truth)
            }
        }
    }

    /// As [`Self::flag`], where Triton takes only some constants.
    fn flag_among(
        &mut self,
        call: &Call,
        name: &str,
        default: bool,
        takes: impl Fn(&Const) -> bool,
    ) -> Eval<bool> {
        match call.given(name) {
            Some(Value::Tensor(tensor)) if tensor.is_open() => Err(Stop::Unknown),
            None | Some(Value::Const(Const::Symbol(_)) | Value::Unknown) => {
                self.flag(call, name, default)
            }
            Some(Value::Const(constant)) if takes(constant) => self.flag(call, name, default),
            Some(other) => {
                let other = other.clone();
                Err(self.not_a_bool(call, name, &other))
            }
        }
    }

    fn not_a_bool(&mut self, call: &Call, name: &str, given: &Value) -> Stop {
        let message = format!("`{name}` is a bool, not {}", super::report::a(given));
        self.error(Code::BadOption, call.place(name), message)
    }

    /// As [`Self::flag`], of a switch that Triton's IR has too: a bool, or before Triton 3.9 any
    /// constant or function, which count as Python has it.
    fn builder_flag(&mut self, call: &Call, name: &str, default: bool) -> Eval<bool> {
        let any = !self.is_3_9();
        let counts = match call.given(name) {
            // What calls the builtin inside of Triton passes it on in a constexpr.
            Some(Value::Function(_) | Value::Const(Const::DType(_))) => call.builtin.is_jit(),
            Some(Value::Tuple(tuple)) => tuple.held.is_python() && !tuple.items.is_empty(),
            _ => false,
        };
        if any && counts {
            return Ok(true);
        }
        self.flag_among(call, name, default, |value| match value {
            Const::Bool(_) => true,
            Const::None | Const::Int(_) | Const::Float(_) | Const::Str(_) => any,
            _ => false,
        })
    }

    /// A compile-time axis of a tensor of `rank`, counted from the end when negative; `None` for
    /// `None`.
    fn axis(&mut self, call: &Call, name: &str, rank: Option<usize>) -> Eval<Option<usize>> {
        let at = call.place(name);
        match call.value(name) {
            Value::Const(Const::None) => Ok(None),
            Value::Const(Const::Int(axis)) => match rank {
                None => Err(Stop::Unknown),
                Some(rank) => self.checked_axis(axis, rank, at).map(Some),
            },
            Value::Const(Const::Bool(axis)) => match rank {
                None => Err(Stop::Unknown),
                Some(rank) => self.checked_axis(i128::from(axis), rank, at).map(Some),
            },
            Value::Const(Const::Symbol(_)) | Value::Unknown => Err(Stop::Unknown),
            other => {
                let what = format!("`{name}`");
                Err(self.not_constexpr(Code::NotConstexpr, &what, &other, at))
            }
        }
    }

    fn checked_axis(&mut self, axis: i128, rank: usize, at: FileRange) -> Eval<usize> {
        let count = rank as i128;
        if (-count..count).contains(&axis) {
            return Ok((if axis < 0 { axis + count } else { axis }) as usize);
        }
        let message = format!("axis {axis} is out of range for a value of rank {rank}");
        Err(self.error(Code::AxisRange, at, message))
    }
}

/// The module of a dotted path, or the one found already. A module that no version of Triton has
/// is `None`, as `find_spec` gives.
fn import_module(name: &Value) -> Value {
    match name {
        Value::Module(_) => name.clone(),
        Value::Const(Const::Str(path)) if builtins::is_known_module(path) => {
            Value::Module(ModuleRef::Known(path.clone()))
        }
        Value::Const(Const::Str(path)) if path.split('.').next() == Some(builtins::TRITON) => {
            Value::NONE
        }
        _ => Value::Unknown,
    }
}

/// `tl.tensor(handle, type)`: made around what is no value of MLIR, it has a type, but nothing can
/// compute with it.
fn tensor_around(call: &Call) -> Value {
    match call.value("type") {
        Value::Const(Const::DType(elem)) => Value::Tensor(Tensor::new(elem, Shape::scalar())),
        Value::Const(Const::BlockType(elem, shape)) => Value::Tensor(Tensor::new(elem, shape)),
        _ => Value::Unknown,
    }
}
