//! What a run that computes all numbers says of what launches leave: comparisons that fail by far, whatever
//! rounding and the order of sums do, which are another way on a GPU.

use cranelift_entity::PrimaryMap;

use crate::hir::{Arg, Body, CompareOp, Expr, ExprId, Name, Stmt, UnaryOp};
use crate::host::code::arguments::Args;
use crate::host::code::operators::truth;
use crate::host::torch::data::{self, Data, Difference, LEAST_ERROR, PART, TIMES, Tolerance};
use crate::host::torch::misuse::Misuse;
use crate::host::value::dtype::is_integer;
use crate::host::value::number::as_float;
use crate::host::value::{Tensor, Value};
use crate::host::{Frame, Host};

/// Functions that raise an exception where tensors differ.
const ASSERTING: &[[&str; 3]] = &[
    ["numpy", "testing", "assert_allclose"],
    ["numpy", "testing", "assert_almost_equal"],
    ["numpy", "testing", "assert_array_almost_equal"],
    ["numpy", "testing", "assert_array_equal"],
    ["numpy", "testing", "assert_equal"],
    ["torch", "testing", "assert_allclose"],
    ["torch", "testing", "assert_close"],
    ["triton", "testing", "assert_close"],
];

/// Methods of tensors that give their numbers to Python.
const READING: &[&str] = &["item", "tolist"];

/// Assignments that lead from a name to what was compared.
pub(super) const MAX_STEPS: u32 = 3;

impl Host<'_> {
    /// Whether numbers are computed that say something of a launch.
    pub(crate) fn judges(&self) -> bool {
        self.launcher.is_some() && self.executed
    }

    /// Notes a comparison of floats that may come out another way where they are rounded otherwise.
    pub(crate) fn note_close_call(&mut self, left: &Value, right: &Value) {
        let is_float = |value: &Value| match value {
            Value::Float(_) => true,
            Value::Tensor(tensor) => !tensor.dtype.as_deref().is_some_and(is_integer),
            _ => false,
        };
        if is_float(left) || is_float(right) {
            self.close_calls += 1;
        }
    }

    /// What a function or method that compares tensors gives, where a run computes what they hold.
    pub(crate) fn agreement(&mut self, path: &[Name], args: &Args<'_>) -> Option<Value> {
        if !self.judges() {
            return None;
        }
        let path: Vec<&str> = path.iter().map(|part| &**part).collect();
        if let [package, module, function] = path[..]
            && ASSERTING.contains(&[package, module, function])
        {
            let difference = self.difference_of(function, args)?;
            return Some(Value::Raises(Misuse::Differs(Box::new(difference))));
        }
        match path[..] {
            ["torch" | "numpy", name @ ("allclose" | "equal" | "array_equal")] => {
                self.agrees(name, args)
            }
            _ => None,
        }
    }

    /// The same of a method of a tensor.
    pub(crate) fn agreement_of(
        &mut self,
        tensor: &Value,
        name: &str,
        args: &Args<'_>,
    ) -> Option<Value> {
        if !self.judges() || !matches!(name, "allclose" | "equal") {
            return None;
        }
        let given: Vec<_> =
            [(None, tensor.clone())].into_iter().chain(args.0.iter().cloned()).collect();
        self.agrees(name, &Args(&given))
    }

    /// Whether tensors are equal, or near each other.
    fn agrees(&mut self, name: &str, args: &Args<'_>) -> Option<Value> {
        let [left, right] = sides(args)?.map(of_side);
        let (left, right) = (left?, right?);
        let difference = data::difference(&left, &right, tolerance(name, args));
        // What differs by little may do so for the function as well.
        let agree = match difference.is_none() {
            true => data::is_same(&left, &right, name == "allclose").then_some(true),
            false => Some(false),
        };
        self.differing = difference.or(self.differing.take());
        Some(Value::Bool(agree))
    }

    fn difference_of(&mut self, function: &str, args: &Args<'_>) -> Option<Difference> {
        let pair = sides(args)?;
        let several = pair.map(|side| match side {
            Value::Tuple(items) | Value::List(items) => Some(items.clone()),
            _ => None,
        });
        let [left, right] = match several {
            [Some(left), Some(right)] if left.len() == right.len() => [left, right],
            [None, None] => pair.map(|side| vec![side.clone()]),
            _ => return None,
        };
        left.iter().zip(&right).find_map(|(left, right)| {
            let (left, right) = (of_side(left)?, of_side(right)?);
            data::difference(&left, &right, tolerance(function, args))
        })
    }

    /// Whether a condition is true or false by far.
    pub(crate) fn by_far(&mut self, frame: &mut Frame, test: ExprId, steps: u32) -> Option<bool> {
        let code = frame.code.clone();
        let body = code.body();
        match &body.exprs[test] {
            Expr::Bool { and, values } => {
                let parts = values.iter().map(|part| self.by_far(frame, *part, steps));
                let parts: Vec<Option<bool>> = parts.collect();
                match parts.contains(&Some(!*and)) {
                    true => Some(!*and),
                    false => parts.iter().all(|part| *part == Some(*and)).then_some(*and),
                }
            }
            Expr::Unary { op: UnaryOp::Not, operand } => {
                self.by_far(frame, *operand, steps).map(|holds| !holds)
            }
            Expr::Compare { first, rest } => match &rest[..] {
                [(op, right)] => self.compares_by_far(frame, *op, *first, *right),
                _ => None,
            },
            Expr::Call { callee, args } => {
                if let Some(sides) = equal_throughout(&body.exprs, *callee, args) {
                    let sides = sides.map(|side| (None, self.expr(frame, side)));
                    return self.agrees("equal", &Args(&sides)).and_then(|all| truth(&all));
                }
                if let Some(holds) = self.holds_throughout(frame, (*callee, args)) {
                    return holds;
                }
                let before = self.close_calls;
                let value = self.expr(frame, test);
                truth(&value).filter(|_| self.close_calls == before)
            }
            Expr::Name(name) if steps < MAX_STEPS => {
                self.by_far(frame, assigned(body, name)?, steps + 1)
            }
            _ => None,
        }
    }

    pub(super) fn compares_by_far(
        &mut self,
        frame: &mut Frame,
        op: CompareOp,
        left: ExprId,
        right: ExprId,
    ) -> Option<bool> {
        if let Some(holds) = self.counts_compare(frame, op, [left, right]) {
            return holds;
        }
        if matches!(op, CompareOp::Eq | CompareOp::Ne) {
            let differ = self.numbers_differ(frame, [left, right]);
            return differ.then_some(op == CompareOp::Ne);
        }
        let [left, right] = [left, right].map(|side| self.expr(frame, side));
        let (left, right) = (as_float(&left)?, as_float(&right)?);
        let falls_short =
            |value: f64, bound: f64| value.is_nan() || bound > 0.0 && value < bound * (1.0 - PART);
        match op {
            CompareOp::Lt | CompareOp::Le if exceeds(left, right) => Some(false),
            CompareOp::Lt | CompareOp::Le if falls_short(left, right) => Some(true),
            CompareOp::Gt | CompareOp::Ge if exceeds(left, right) => Some(true),
            CompareOp::Gt | CompareOp::Ge if falls_short(left, right) => Some(false),
            _ => None,
        }
    }
}

impl Host<'_> {
    /// Whether two sides of a comparison are numbers, at least one of which a tensor holds, that differ by more than
    /// rounding explains.
    fn numbers_differ(&mut self, frame: &mut Frame, sides: [ExprId; 2]) -> bool {
        let code = frame.code.clone();
        let [left, right] = sides.map(|side| self.expr(frame, side));
        let is_held = [&left, &right].iter().any(|side| matches!(side, Value::Tensor(_)))
            || sides.iter().any(|side| is_read(code.body(), *side, 0));
        is_held && far_apart(&left, &right) == Some(true)
    }
}

/// Whether numbers, or lists of them, differ by more than rounding explains; `None` where they are not known.
fn far_apart(left: &Value, right: &Value) -> Option<bool> {
    if let (Value::List(left), Value::List(right)) = (left, right) {
        let mut pairs = left.iter().zip(right).map(|(left, right)| far_apart(left, right));
        return match left.len() == right.len() {
            true => pairs.try_fold(false, |any, apart| Some(any || apart?)),
            false => Some(true),
        };
    }
    let (left, right) = (of_side(left)?, of_side(right)?);
    // Of several elements nobody asks whether they are one number.
    let is_one = |side: &Data| side.shape().iter().all(|size| *size == Value::Int(Some(1)));
    let are_one = is_one(&left) && is_one(&right);
    are_one.then(|| data::difference(&left, &right, Tolerance::NONE).is_some())
}

/// Whether code reads a number of a tensor: `tensor.item()`, or what is assigned that.
fn is_read(body: &Body, expr: ExprId, steps: u32) -> bool {
    match &body.exprs[expr] {
        Expr::Call { callee, args } => match &body.exprs[*callee] {
            Expr::Attribute { attr, .. } => READING.contains(&&**attr),
            Expr::Name(name) => {
                matches!(&**name, "bool" | "float" | "int" | "list" | "round")
                    && args.iter().any(|arg| is_read(body, arg.value, steps))
            }
            _ => false,
        },
        Expr::Subscript { value, .. } => is_read(body, *value, steps),
        Expr::Name(name) if steps < MAX_STEPS => {
            assigned(body, name).is_some_and(|value| is_read(body, value, steps + 1))
        }
        _ => false,
    }
}

/// Whether an error is larger than a bound by far.
pub(super) fn exceeds(error: f64, bound: f64) -> bool {
    error.is_nan() || error > TIMES * bound.abs() && error > LEAST_ERROR
}

/// What a name is, where code assigns it once.
pub(super) fn assigned(body: &Body, name: &Name) -> Option<ExprId> {
    let mut assigned = body.stmts.values().filter_map(|stmt| match stmt {
        Stmt::Assign { targets, value } => match targets[..] {
            [target] => (body.exprs[target].as_name() == Some(name)).then_some(*value),
            _ => None,
        },
        _ => None,
    });
    assigned.next().filter(|_| assigned.next().is_none())
}

/// The sides of an equality of which a call asks whether it holds throughout: `(a == b).all()`,
/// `torch.all(a == b)`.
fn equal_throughout(
    exprs: &PrimaryMap<ExprId, Expr>,
    callee: ExprId,
    args: &[Arg],
) -> Option<[ExprId; 2]> {
    let Expr::Attribute { value, attr } = &exprs[callee] else { return None };
    let asked = match args {
        _ if **attr != *"all" => return None,
        [] => *value,
        [one] => one.value,
        _ => return None,
    };
    let Expr::Compare { first, rest } = &exprs[asked] else { return None };
    match rest[..] {
        [(CompareOp::Eq, right)] => Some([*first, right]),
        _ => None,
    }
}

/// What is compared.
pub(super) fn sides<'a>(args: &Args<'a>) -> Option<[&'a Value; 2]> {
    const NAMES: [&[&str]; 2] =
        [&["input", "actual", "a", "x"], &["other", "expected", "desired", "b", "y"]];
    let side = |at: usize| {
        let named = || NAMES[at].iter().find_map(|name| args.keyword(name));
        args.positional().get(at).copied().or_else(named)
    };
    Some([side(0)?, side(1)?])
}

fn of_side(value: &Value) -> Option<Data> {
    match value {
        Value::Array(tensor) => data::of_value(&Value::Tensor(Tensor::clone(tensor))),
        value => data::of_value(value),
    }
}

/// What a function allows.
pub(super) fn tolerance(function: &str, args: &Args<'_>) -> Tolerance {
    if matches!(function, "equal" | "array_equal" | "assert_array_equal" | "assert_equal") {
        return Tolerance::NONE;
    }
    // `allclose(a, b, rtol, atol)`; NumPy's asserting functions have the same order.
    let told = |at: usize, name: &str| {
        let given = args.keyword(name).or_else(|| args.positional().get(at).copied());
        given.and_then(as_float)
    };
    if let "assert_almost_equal" | "assert_array_almost_equal" = function {
        let usual = if function == "assert_almost_equal" { 7.0 } else { 6.0 };
        let digits = told(2, "decimal").unwrap_or(usual);
        return Tolerance { absolute: 1.5 * 10f64.powf(-digits), relative: 0.0 };
    }
    // What `torch.testing.assert_close` allows by default, for half precision.
    let (absolute, relative) = match function {
        "allclose" => (1e-8, 1e-5),
        _ => (1e-5, 1.6e-2),
    };
    Tolerance {
        absolute: told(3, "atol").unwrap_or(absolute),
        relative: told(2, "rtol").unwrap_or(relative),
    }
}
