//! Floats that are drawn at random, and integers that are made of them.

use crate::builtins::TORCH;
use crate::hir::{BinaryOp, Name};
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::torch::tensor::given_dtype;
use crate::host::value::contents::Contents;
use crate::host::value::dtype::{is_float, is_integer};
use crate::host::value::number::as_number;
use crate::host::value::{Tensor, Value};

/// Integers that floats stand for without error.
const MAX_WHOLE: f64 = 1e6;

/// Floats of which each is any in a range, whatever the others are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Drawn {
    /// The least.
    lo: f64,
    /// The greatest, which is one of them only where all are whole.
    hi: f64,
    /// Whether they are whole numbers.
    whole: bool,
}

impl Drawn {
    /// The same numbers scaled or moved; `None` for other operators.
    fn combined(self, op: BinaryOp, number: f64) -> Option<Drawn> {
        let Drawn { lo, hi, whole } = self;
        let (lo, hi) = match op {
            BinaryOp::Add => (lo + number, hi + number),
            BinaryOp::Sub => (lo - number, hi - number),
            BinaryOp::Mul if number > 0.0 && !whole => (lo * number, hi * number),
            BinaryOp::Div if number > 0.0 && !whole => (lo / number, hi / number),
            _ => return None,
        };
        let stays = !whole || number.fract() == 0.0;
        (stays && lo.abs().max(hi.abs()) <= MAX_WHOLE).then_some(Drawn { lo, hi, whole })
    }

    /// The least and the greatest.
    pub(crate) fn bounds(self) -> (f64, f64) {
        (self.lo, self.hi)
    }

    /// The whole numbers below them.
    fn floored(self) -> Drawn {
        match self.whole {
            true => self,
            false => Drawn { lo: self.lo.floor(), hi: self.hi.ceil() - 1.0, whole: true },
        }
    }

    /// The integers that they become, without what is behind the point.
    fn integers(self) -> Option<Contents> {
        let Drawn { lo, hi, .. } =
            if self.lo >= 0.0 || self.whole { self.floored() } else { return None };
        (lo <= hi).then_some(Contents::Random { lo: lo as i128, hi: hi as i128 })
    }
}

/// What `torch.NAME(...)` draws.
pub(crate) fn by_torch(path: &[Name], made: Value) -> Value {
    let is_uniform = match path {
        [torch, name] => &**torch == TORCH && matches!(&**name, "rand" | "rand_like"),
        _ => false,
    };
    let drawn = Drawn { lo: 0.0, hi: 1.0, whole: false };
    if is_uniform { noted(made, Some(drawn)) } else { made }
}

impl Host<'_> {
    /// `torch.normal(mean, std, size)`: numbers of the standard normal distribution, scaled and moved; `None`
    /// where tensors say how.
    pub(crate) fn normal(&mut self, args: &Args<'_>) -> Option<Value> {
        let mean = args.get(0, "mean").filter(|mean| !matches!(mean, Value::Tensor(_)))?;
        let std = args.get(1, "std").filter(|std| !matches!(std, Value::Tensor(_)))?;
        let size = args.get(2, "size")?;
        let named = |(name, _): &&(Option<Name>, Value)| {
            name.as_ref().is_some_and(|name| !matches!(&**name, "mean" | "std" | "size"))
        };
        let rest = args.0.iter().filter(named).cloned();
        let given: Vec<_> = std::iter::once((None, size.clone())).chain(rest).collect();
        let path = [TORCH, "randn"].map(Name::from).to_vec();
        let drawn = self.call_outside(path, &given, true);
        let scaled = self.operated(BinaryOp::Mul, &drawn, std);
        Some(self.operated(BinaryOp::Add, &scaled, mean))
    }
}

/// A tensor of numbers that are drawn so.
pub(crate) fn noted(made: Value, drawn: Option<Drawn>) -> Value {
    match made {
        Value::Tensor(mut tensor) => {
            if let Some(storage) = &mut tensor.storage {
                storage.drawn = drawn;
            }
            Value::Tensor(tensor)
        }
        made => made,
    }
}

/// How the floats of a tensor are drawn.
fn of(tensor: &Tensor) -> Option<Drawn> {
    let is_of_floats = tensor.dtype.as_deref().is_some_and(is_float);
    tensor.storage.as_ref().filter(|_| is_of_floats)?.drawn
}

/// How the numbers of `tensor op number` are drawn.
pub(crate) fn combined(op: BinaryOp, tensor: &Tensor, number: &Value) -> Option<Drawn> {
    of(tensor)?.combined(op, as_number(number)?.float()?)
}

/// How the numbers are drawn that a method makes of a tensor's.
pub(crate) fn mapped(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Drawn> {
    let drawn = of(tensor)?;
    match name {
        "floor" => Some(drawn.floored()),
        "trunc" if drawn.lo >= 0.0 => Some(drawn.floored()),
        "contiguous" | "cuda" | "cpu" | "detach" if args.0.is_empty() => Some(drawn),
        _ => None,
    }
}

/// The integers that a method makes of a tensor's numbers, where those are drawn at random.
pub(crate) fn integers(name: &str, tensor: &Tensor, args: &Args<'_>) -> Option<Contents> {
    if matches!(name, "clamp" | "clip") {
        return clamped(tensor, args);
    }
    let becomes = match name {
        "int" => "i32".into(),
        "long" => "i64".into(),
        "to" | "type" => args.get(0, "dtype").and_then(given_dtype)?,
        _ => return None,
    };
    of(tensor).filter(|_| is_integer(&becomes))?.integers()
}

/// Integers of which each is any in a range, cut off at bounds.
fn clamped(tensor: &Tensor, args: &Args<'_>) -> Option<Contents> {
    let bound = |at: usize, name: &str, open: i128| match args.get(at, name) {
        None | Some(Value::None) => Some(open),
        Some(Value::Int(bound)) => *bound,
        Some(_) => None,
    };
    let (least, most) = (bound(0, "min", i128::MIN)?, bound(1, "max", i128::MAX)?);
    match tensor.storage.as_ref()?.contents {
        Contents::Random { lo, hi } if least <= most => {
            Some(Contents::Random { lo: lo.clamp(least, most), hi: hi.clamp(least, most) })
        }
        ref known @ Contents::Distinct { lo, hi } if least <= lo && hi <= most => {
            Some(known.clone())
        }
        _ => None,
    }
}
