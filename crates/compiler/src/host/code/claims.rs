//! What code asserts: by a statement, or by a method of Python's own tests.

use crate::hir::{Arg, ArgKind, CompareOp, Expr, ExprId};
use crate::host::code::agreement::exceeds;
use crate::host::code::operators::{compare, truth};
use crate::host::value::Value;
use crate::host::value::number::as_float;
use crate::host::{Frame, Host};

/// What an assertion says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Claim {
    /// An expression is true.
    Holds(ExprId),
    /// It is not.
    Fails(ExprId),
    /// Two compare so, as the call at `at` says.
    Compares {
        /// How.
        op: CompareOp,
        /// What.
        sides: [ExprId; 2],
        /// What says so.
        at: ExprId,
    },
    /// Two numbers are near each other.
    Near {
        /// The numbers.
        sides: [ExprId; 2],
        /// How far they may be apart.
        delta: f64,
        /// What says so.
        at: ExprId,
    },
}

/// The decimal places in which numbers agree that are said to be almost equal.
const PLACES: f64 = 7.0;

impl Claim {
    /// What it is about.
    pub(super) fn sides(self) -> Vec<ExprId> {
        match self {
            Claim::Holds(test) | Claim::Fails(test) => vec![test],
            Claim::Compares { sides, .. } | Claim::Near { sides, .. } => sides.to_vec(),
        }
    }
}

/// The methods of `unittest.TestCase` that compare two values.
const COMPARING: &[(&str, CompareOp)] = &[
    ("assertEqual", CompareOp::Eq),
    ("assertGreater", CompareOp::Gt),
    ("assertGreaterEqual", CompareOp::Ge),
    ("assertIs", CompareOp::Is),
    ("assertIsNot", CompareOp::IsNot),
    ("assertLess", CompareOp::Lt),
    ("assertLessEqual", CompareOp::Le),
    ("assertNotEqual", CompareOp::Ne),
    ("assertSequenceEqual", CompareOp::Eq),
    ("assertTupleEqual", CompareOp::Eq),
];

impl Host<'_> {
    /// What a call asserts that is a method of Python's own tests, unless the class has its own.
    pub(super) fn claim_of_test(&mut self, frame: &mut Frame, call: ExprId) -> Option<Claim> {
        let code = frame.code.clone();
        let exprs = &code.body().exprs;
        let Expr::Call { callee, args } = &exprs[call] else { return None };
        let Expr::Attribute { value, attr } = &exprs[*callee] else { return None };
        let attr: &str = attr;
        if !attr.starts_with("assert") || exprs[*value].as_name().is_none() {
            return None;
        }
        // A message may follow.
        let positional = args.iter().take_while(|arg| arg.kind == ArgKind::Positional);
        let given: Vec<ExprId> = positional.map(|arg| arg.value).collect();
        let compares = COMPARING.iter().find(|(name, _)| *name == attr);
        let claim = match (attr, given.as_slice()) {
            ("assertTrue", [test, ..]) => Claim::Holds(*test),
            ("assertFalse", [test, ..]) => Claim::Fails(*test),
            ("assertAlmostEqual", [left, right]) => {
                let delta = self.delta(frame, args)?;
                Claim::Near { sides: [*left, *right], delta, at: call }
            }
            (_, [left, right, ..]) => {
                Claim::Compares { op: compares?.1, sides: [*left, *right], at: call }
            }
            _ => return None,
        };
        let Value::Object(object) = self.expr(frame, *value) else { return None };
        let class = self.classes.get(&object).copied()?;
        (self.is_test_case(class) && self.class_method(class, attr).is_none()).then_some(claim)
    }

    /// Whether what is asserted is so, if that is known.
    pub(super) fn claim_holds(&mut self, frame: &mut Frame, claim: Claim) -> Option<bool> {
        match claim {
            Claim::Holds(test) => {
                let value = self.expr(frame, test);
                self.holds(&value)
            }
            Claim::Fails(test) => {
                let value = self.expr(frame, test);
                self.holds(&value).map(|holds| !holds)
            }
            Claim::Compares { op, sides, .. } => {
                let [left, right] = sides.map(|side| self.expr(frame, side));
                match self.special_comparison(op, &left, &right) {
                    Some(found) => truth(&found),
                    None => compare(op, &left, &right),
                }
            }
            Claim::Near { sides, delta, .. } => Some(self.distance(frame, sides)? <= delta),
        }
    }

    /// The same of numbers, whatever rounding does.
    pub(super) fn claim_by_far(&mut self, frame: &mut Frame, claim: Claim) -> Option<bool> {
        match claim {
            Claim::Holds(test) => self.by_far(frame, test, 0),
            Claim::Fails(test) => self.by_far(frame, test, 0).map(|holds| !holds),
            Claim::Compares { op, sides: [left, right], .. } => {
                self.compares_by_far(frame, op, left, right)
            }
            Claim::Near { sides, delta, .. } => {
                exceeds(self.distance(frame, sides)?, delta).then_some(false)
            }
        }
    }

    /// How far two numbers are apart: infinite ones that are equal not at all.
    fn distance(&mut self, frame: &mut Frame, sides: [ExprId; 2]) -> Option<f64> {
        let [left, right] = sides.map(|side| as_float(&self.expr(frame, side)));
        let (left, right) = (left?, right?);
        Some(if left == right { 0.0 } else { (left - right).abs() })
    }

    /// How far numbers may be apart that are almost equal.
    fn delta(&mut self, frame: &mut Frame, args: &[Arg]) -> Option<f64> {
        let mut named = |wanted: &str| {
            let is_wanted =
                |arg: &&Arg| matches!(&arg.kind, ArgKind::Keyword(name) if **name == *wanted);
            let arg = args.iter().find(is_wanted);
            arg.map(|arg| as_float(&self.expr(frame, arg.value)))
        };
        match (named("delta"), named("places")) {
            (Some(delta), _) => delta,
            (None, Some(places)) => Some(0.5 * 10f64.powf(-places?)),
            (None, None) => Some(0.5 * 10f64.powf(-PLACES)),
        }
    }
}
