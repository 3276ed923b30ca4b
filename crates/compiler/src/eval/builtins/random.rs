//! Random numbers: the Philox generator (Salmon et al., "Parallel random numbers: as easy as 1,
//! 2, 3", 2011), bit for bit as in Triton.

use super::super::call::Call;
use super::super::dtype::{DType, Elem};
use super::super::value::{Const, Shape, Tensor, Value};
use super::super::{Eval, Evaluator, Stop};
use crate::builtins::Rule;
use crate::diagnostic::{Code, Diagnostic};
use crate::hir::{BinaryOp, CompareOp};
use crate::ir::{Attrs, Opcode};
use crate::source::FileRange;

/// Multipliers and key increments of one width.
struct Constants {
    key: [i128; 2],
    round: [i128; 2],
}

const PHILOX_32: Constants =
    Constants { key: [0x9E37_79B9, 0xBB67_AE85], round: [0xD251_1F53, 0xCD9E_8D57] };
const PHILOX_64: Constants = Constants {
    key: [0x9E37_79B9_7F4A_7C15, 0xBB67_AE85_84CA_A73B],
    round: [0xD2E7_470E_E14C_6C93, 0xCA5A_8263_9512_1157],
};

/// Rounds at most; Triton's default is 10.
const MAX_ROUNDS: i128 = 64;

impl Evaluator<'_> {
    pub(super) fn random(&mut self, call: &Call) -> Eval<Value> {
        let at = call.at;
        let many =
            |tensors: Vec<Tensor>| Value::tuple(tensors.into_iter().map(Value::Tensor).collect());
        match call.builtin.rule {
            Rule::UniformFloat => {
                let x = self.strict_tensor(call, 0)?;
                Ok(Value::Tensor(self.uniform(&x, at)?))
            }
            Rule::PairNormal => {
                let (a, b) = (self.tensor_arg(call, 0)?, self.tensor_arg(call, 1)?);
                Ok(many(self.normal_pair(&a, &b, at)?))
            }
            Rule::PhiloxImpl | Rule::Philox => self.philox_call(call),
            rule => {
                let bits = self.random_bits(call)?;
                match rule {
                    Rule::RandInt => Ok(Value::Tensor(bits[0].clone())),
                    Rule::RandInt4x => Ok(many(bits)),
                    Rule::Rand => Ok(Value::Tensor(self.uniform(&bits[0], at)?)),
                    Rule::Rand4x => {
                        let mut out = Vec::with_capacity(4);
                        for bits in &bits {
                            out.push(self.uniform(bits, at)?);
                        }
                        Ok(many(out))
                    }
                    _ => self.normals(call, &bits),
                }
            }
        }
    }

    fn normals(&mut self, call: &Call, bits: &[Tensor]) -> Eval<Value> {
        let at = call.at;
        let pairs = if call.builtin.rule == Rule::Randn { 1 } else { 2 };
        let mut out = Vec::new();
        for pair in 0..pairs {
            let a = self.uniform(&bits[2 * pair], at)?;
            let b = self.uniform(&bits[2 * pair + 1], at)?;
            out.extend(self.normal_pair(&a, &b, at)?);
        }
        if call.builtin.rule == Rule::Randn {
            return Ok(Value::Tensor(out.remove(0)));
        }
        Ok(Value::tuple(out.into_iter().map(Value::Tensor).collect()))
    }

    fn rounds(&mut self, call: &Call) -> Eval<i128> {
        match call.given("n_rounds") {
            None => Ok(10),
            Some(Value::Const(Const::Int(rounds))) => Ok((*rounds).clamp(0, MAX_ROUNDS)),
            Some(Value::Const(Const::Bool(rounds))) => Ok(i128::from(*rounds)),
            Some(Value::Const(Const::Symbol(_)) | Value::Unknown) => Ok(10),
            Some(other) => {
                let value = other.clone();
                Err(self.not_constexpr(
                    Code::NotConstexpr,
                    "`n_rounds`",
                    &value,
                    call.place("n_rounds"),
                ))
            }
        }
    }

    /// The seed as a 64-bit key.
    fn seed(&mut self, call: &Call) -> Eval<Tensor> {
        let at = call.place("seed");
        let seed = self.materialize(&call.value("seed"), at)?;
        if seed.elem.is_ptr() || seed.elem.num().is_some_and(DType::is_float) {
            let message = format!("a seed must be an integer, not `{}`", seed.elem);
            return Err(self.emit_diagnostic(Diagnostic::new(Code::RandomSeed, at, message)));
        }
        self.cast(&seed, Elem::Num(DType::UInt64), at)
    }

    /// Four random tiles for the offsets of a call.
    fn random_bits(&mut self, call: &Call) -> Eval<Vec<Tensor>> {
        let rounds = self.rounds(call)?;
        let seed = self.seed(call)?;
        let at = call.at;
        let offset = self.strict_tensor(call, 1)?;
        let int32 = Elem::Num(DType::UInt32);
        if offset.elem == Elem::Num(DType::Float64) {
            let message = "offsets of random numbers are integers, not `fp64`";
            return Err(self.error(Code::RandomSeed, call.place_nth(1), message));
        }
        let low = self.cast(&offset, int32, at)?;
        let zero = self.int_constant(0, DType::UInt32);
        let zero = self.expand_to(&zero, &offset.shape);
        self.refuse_many_seeds(&seed, &offset.shape, call)?;
        let high = match offset.elem {
            Elem::Num(dtype) if dtype.bits() > 32 => {
                let amount = Value::int(32);
                let value = Value::Tensor(offset.clone());
                let shifted = self.tensor_binary(BinaryOp::Shr, &value, &amount, at, (at, at))?;
                self.cast(&shifted, int32, at)?
            }
            _ => zero.clone(),
        };
        let (key_low, key_high) = self.split_seed(&seed, at)?;
        self.philox_rounds([low, high, zero.clone(), zero], [key_low, key_high], rounds)
    }

    /// Seeds fit the tile of the numbers that are made.
    fn refuse_many_seeds(&mut self, seed: &Tensor, shape: &Shape, call: &Call) -> Eval<()> {
        let places = (call.place("seed"), call.at);
        self.broadcast_shapes(&seed.shape, shape, call.at, places).map(|_| ())
    }

    /// Both halves of a 64-bit seed.
    fn split_seed(&mut self, seed: &Tensor, at: FileRange) -> Eval<(Tensor, Tensor)> {
        let int32 = Elem::Num(DType::UInt32);
        let value = Value::Tensor(seed.clone());
        let shifted = self.tensor_binary(BinaryOp::Shr, &value, &Value::int(32), at, (at, at))?;
        Ok((self.cast(seed, int32, at)?, self.cast(&shifted, int32, at)?))
    }

    fn philox_call(&mut self, call: &Call) -> Eval<Value> {
        let rounds = self.rounds(call)?;
        let at = call.at;
        let explicit_key = call.builtin.rule == Rule::PhiloxImpl;
        let names = ["c0", "c1", "c2", "c3"];
        let mut counters = Vec::with_capacity(4);
        for name in names {
            counters.push(self.materialize(&call.value(name), call.place(name))?);
        }
        let places: Vec<FileRange> = names.iter().map(|name| call.place(name)).collect();
        let bits = counters[0].elem.bits().unwrap_or(32);
        for (counter, name) in counters.iter().zip(names) {
            let known = counter.elem.num();
            let fits = |dtype: DType| {
                matches!(bits, 32 | 64)
                    && dtype.bits() == bits
                    && (!explicit_key || dtype.is_unsigned())
            };
            if let Some(dtype) = known.filter(|dtype| !fits(*dtype)) {
                let message = format!(
                    "counters are {} of one width, 32 or 64 bits, but `{name}` is `{dtype}`",
                    if explicit_key { "unsigned integers" } else { "numbers" }
                );
                return Err(self.error(Code::RandomSeed, call.place(name), message));
            }
        }
        let dtype = if bits == 64 { DType::UInt64 } else { DType::UInt32 };
        let elem = Elem::Num(dtype);
        let mut widened = Vec::with_capacity(4);
        for counter in &counters {
            widened.push(match counter.elem {
                Elem::Num(_) => self.bitcast(counter, elem, at)?,
                _ => self.cast(counter, elem, at)?,
            });
        }
        let counters = self.broadcast_all(&widened, at, &places)?;
        let (k0, k1) = if explicit_key {
            let k0 = self.materialize(&call.value("k0"), call.place("k0"))?;
            let k1 = self.materialize(&call.value("k1"), call.place("k1"))?;
            (self.cast(&k0, elem, at)?, self.cast(&k1, elem, at)?)
        } else {
            let seed = self.seed(call)?;
            self.refuse_many_seeds(&seed, &counters[0].shape, call)?;
            if dtype == DType::UInt64 {
                (seed, self.int_constant(0, dtype))
            } else {
                self.split_seed(&seed, at)?
            }
        };
        let counters: [Tensor; 4] = counters.try_into().map_err(|_| Stop::Unknown)?;
        let out = self.philox_rounds(counters, [k0, k1], rounds)?;
        Ok(Value::tuple(out.into_iter().map(Value::Tensor).collect()))
    }

    fn philox_rounds(
        &mut self,
        counters: [Tensor; 4],
        keys: [Tensor; 2],
        rounds: i128,
    ) -> Eval<Vec<Tensor>> {
        let dtype = counters[0].elem.num().ok_or(Stop::Unknown)?;
        let constants = if dtype.bits() == 64 { PHILOX_64 } else { PHILOX_32 };
        let shape = counters[0].shape.clone();
        let elem = Elem::Num(dtype);
        let [mut c0, mut c1, mut c2, mut c3] = counters;
        let [mut k0, mut k1] = keys;
        let splat = |this: &mut Self, value: i128| {
            let scalar = this.int_constant(value, dtype);
            this.expand_to(&scalar, &shape)
        };
        let a = splat(self, constants.round[0]);
        let b = splat(self, constants.round[1]);
        let increments = [
            self.int_constant(constants.key[0], dtype),
            self.int_constant(constants.key[1], dtype),
        ];
        for _ in 0..rounds {
            let (old0, old2) = (c0, c2);
            let op = |this: &mut Self, opcode, x: &Tensor, y: &Tensor| {
                this.op(opcode, &[x, y], Attrs::None, elem, shape.clone())
            };
            let high_b = op(self, Opcode::MulHighU, &b, &old2);
            let mixed = op(self, Opcode::Xor, &high_b, &c1);
            let key = self.expand_to(&k0, &shape);
            c0 = op(self, Opcode::Xor, &mixed, &key);
            let high_a = op(self, Opcode::MulHighU, &a, &old0);
            let mixed = op(self, Opcode::Xor, &high_a, &c3);
            let key = self.expand_to(&k1, &shape);
            c2 = op(self, Opcode::Xor, &mixed, &key);
            c1 = op(self, Opcode::Mul, &b, &old2);
            c3 = op(self, Opcode::Mul, &a, &old0);
            let mut next_key = |key: &Tensor, increment: &Tensor| {
                let increment = self.expand_to(increment, &key.shape);
                self.op(Opcode::Add, &[key, &increment], Attrs::None, elem, key.shape.clone())
            };
            k0 = next_key(&k0, &increments[0]);
            k1 = next_key(&k1, &increments[1]);
        }
        Ok(vec![c0, c1, c2, c3])
    }

    /// Random integers as floats in `[0, 1)`.
    fn uniform(&mut self, bits: &Tensor, at: FileRange) -> Eval<Tensor> {
        let (signed, scale) = match bits.elem.bits() {
            _ if bits.elem.is_ptr() || bits.elem.num().is_some_and(|dtype| !dtype.is_int()) => {
                let message = format!("random bits are integers, not `{}`", bits.elem);
                return Err(self.error(Code::BadOperand, at, message));
            }
            Some(64) => (DType::Int64, 1.084_202_172_485_504_4e-19),
            Some(32) => (DType::Int32, 4.656_612_734_2e-10),
            None => {
                return Ok(Tensor { elem: Elem::Num(DType::Float32), ir: None, ..bits.clone() });
            }
            Some(_) => {
                let message = format!("random integers have 32 or 64 bits, not `{}`", bits.elem);
                return Err(self.error(Code::BadOperand, at, message));
            }
        };
        let x = self.bitcast(bits, Elem::Num(signed), at)?;
        let shape = x.shape.clone();
        let zero = self.int_constant(0, signed);
        let zero = self.expand_to(&zero, &shape);
        let ones = self.int_constant(-1, signed);
        let ones = self.expand_to(&ones, &shape);
        let negative = self.compare_numbers(CompareOp::Lt, &x, &zero, signed);
        // `-x - 1` is the complement.
        let flipped = self.op(Opcode::Xor, &[&x, &ones], Attrs::None, x.elem, shape.clone());
        let positive =
            self.op(Opcode::Select, &[&negative, &flipped, &x], Attrs::None, x.elem, shape);
        let positive = Value::Tensor(positive);
        let float = Value::Tensor(self.scalar_constant(&Const::Float(scale), DType::Float32));
        self.tensor_binary(BinaryOp::Mul, &positive, &float, at, (at, at))
    }

    /// The Box-Muller transform.
    fn normal_pair(&mut self, u1: &Tensor, u2: &Tensor, at: FileRange) -> Eval<Vec<Tensor>> {
        let tiny = Value::Const(Const::Float(1.0e-7));
        let (low, u1) =
            self.promote_pair(&tiny, &Value::Tensor(u1.clone()), false, at, (at, at))?;
        let u1 = self.extremum_op(&low, &u1, true, false);
        let log = Value::Tensor(self.unary_op(Opcode::Log, &u1));
        let minus_two = Value::Const(Const::Float(-2.0));
        let scaled = self.tensor_binary(BinaryOp::Mul, &minus_two, &log, at, (at, at))?;
        let radius = Value::Tensor(self.unary_op(Opcode::Sqrt, &scaled));
        let turn = Value::Const(Const::Float(std::f64::consts::TAU));
        let angle =
            self.tensor_binary(BinaryOp::Mul, &turn, &Value::Tensor(u2.clone()), at, (at, at))?;
        let mut out = Vec::with_capacity(2);
        for opcode in [Opcode::Cos, Opcode::Sin] {
            let factor = Value::Tensor(self.unary_op(opcode, &angle));
            out.push(self.tensor_binary(BinaryOp::Mul, &radius, &factor, at, (at, at))?);
        }
        Ok(out)
    }
}
