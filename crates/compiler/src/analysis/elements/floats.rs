//! Comparisons of integers that are floats, as of positions with a rate that stands for a count.

use super::{Elements, Index};
use crate::analysis::flow::held::Holds;
use crate::analysis::terms::{Cond, Interval, Linear, Terms};
use crate::ir::{Attrs, FloatPredicate, InstData, Opcode, Scalar, Value, ValueDef};
use crate::specialization::KnownArg;

/// A float of which it is known what it is made of.
enum Float {
    /// An integer that is a float without error.
    Whole(Linear),
    /// A number.
    Number(f64),
}

impl Elements<'_> {
    /// What a comparison of floats gives, one of which is an integer.
    pub(super) fn compared_floats(
        &mut self,
        data: &InstData,
        predicate: FloatPredicate,
        index: &Index,
    ) -> Option<Cond> {
        let (a, b) = (self.float(data.operand(0), index)?, self.float(data.operand(1), index)?);
        match (a, b) {
            (Float::Whole(a), Float::Number(b)) => self.beside(&a, predicate, b),
            (Float::Number(a), Float::Whole(b)) => self.beside(&b, turned(predicate), a),
            _ => None,
        }
    }

    /// Whether an integer compares so with a number.
    fn beside(&mut self, whole: &Linear, predicate: FloatPredicate, number: f64) -> Option<Cond> {
        use FloatPredicate::{Oeq, Oge, Ogt, Ole, Olt, Une};
        if !number.is_finite() || number.abs() > i64::MAX as f64 / 2.0 {
            return None;
        }
        let (floor, ceil) = (number.floor() as i128, number.ceil() as i128);
        let constant = Linear::constant;
        Some(match predicate {
            Olt => self.terms.less(whole, &constant(ceil)),
            Ole => self.terms.at_most(whole, &constant(floor)),
            Ogt => self.terms.less(&constant(floor), whole),
            Oge => self.terms.at_most(&constant(ceil), whole),
            Oeq | Une => {
                let equal = match floor == ceil {
                    true => self.terms.equal(whole, &constant(floor)),
                    false => Terms::FALSE,
                };
                if predicate == Oeq { equal } else { self.terms.not(equal) }
            }
        })
    }

    fn float(&mut self, value: Value, index: &Index) -> Option<Float> {
        let func = self.func;
        let scalar = func.ty(value).number()?;
        if let ValueDef::Argument(region, at) = func.values[value].def {
            let is_param = region == func.body;
            let param = func.params.get(at as usize).filter(|_| is_param)?;
            let KnownArg::Float(bits) = self.passed(&param.name)? else { return None };
            let number = f64::from_bits(*bits);
            return Some(Float::Number(if scalar == Scalar::F32 {
                f64::from(number as f32)
            } else {
                number
            }));
        }
        let data = func.def(value)?;
        match (data.opcode, &data.attrs) {
            (Opcode::Constant, Attrs::Constant(constant)) => {
                match Holds::constant(scalar, constant.bits) {
                    Holds::Number(number) => Some(Float::Number(number)),
                    _ => None,
                }
            }
            (Opcode::SToF | Opcode::UToF, _) => {
                let whole = self.int(data.operand(0), index);
                let range = self.terms.range(&whole);
                let exact = exact_integers(scalar)?;
                let is_same = exact.lo <= range.lo && range.hi <= exact.hi;
                let is_taken_so = data.opcode == Opcode::SToF || range.lo >= 0;
                (is_same && is_taken_so).then_some(Float::Whole(whole))
            }
            _ => {
                let (source, index) = self.moved(data, index)?;
                self.float(source, &index)
            }
        }
    }
}

/// The integers that a type of floats holds without error.
fn exact_integers(scalar: Scalar) -> Option<Interval> {
    let digits = match scalar {
        Scalar::F16 => 11,
        Scalar::BF16 => 8,
        Scalar::F32 => 24,
        Scalar::F64 => 53,
        _ => return None,
    };
    Some(Interval::new(-(1 << digits), 1 << digits))
}

/// The predicate with its operands in each other's places.
fn turned(predicate: FloatPredicate) -> FloatPredicate {
    use FloatPredicate::{Oeq, Oge, Ogt, Ole, Olt, Une};
    match predicate {
        Olt => Ogt,
        Ole => Oge,
        Ogt => Olt,
        Oge => Ole,
        Oeq | Une => predicate,
    }
}
