//! Exceptions that host code raises whenever it runs: what its asserts say of tensors and does not
//! hold, and what PyTorch refuses.

use crate::hir::{Body, CompareOp, Expr, ExprId, Function, Name, Param, Stmt, StmtId};
use crate::host::code::claims::Claim;
use crate::host::code::doubt::Doubt;
use crate::host::code::operators::truth;
use crate::host::torch::data::{self, Difference};
use crate::host::torch::misuse::Misuse;
use crate::host::value::Value;
use crate::host::value::dtype::torch_name;
use crate::host::{Frame, Host, Variables};
use crate::source::FileRange;

/// An exception that is raised whenever the code is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What raises it.
    pub at: FileRange,
    /// The calls that lead there, the outermost first.
    pub calls: Vec<FileRange>,
    /// Why.
    pub exception: Exception,
    /// What the parameters are in the run of a test that raises it, as far as that can be written.
    pub case: Vec<(Name, String)>,
}

impl Failure {
    /// Whether a run computes other numbers than it expects.
    pub(crate) fn is_disagreement(&self) -> bool {
        matches!(self.exception, Exception::Disagreement(..))
    }
}

/// Why an exception is raised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exception {
    /// An assertion does not hold; what it compares.
    Assertion(Vec<Compared>),
    /// A condition holds under which there is a `raise`; what it compares.
    Condition(Vec<Compared>),
    /// What a run computes is another than what it is compared with: what the comparison compares, and in what
    /// tensors differ.
    Disagreement(Vec<Compared>, Option<Box<Difference>>),
    /// A tensor, or a tuple, is asked for what it does not have.
    Misuse(Misuse),
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// Where it stands.
    pub at: FileRange,
    /// What it is, as Python writes it.
    pub value: String,
}

/// What tells of a tensor without a call.
const ATTRIBUTES: &[&str] = &["dtype", "ndim", "shape"];

/// Methods that tell of a tensor.
const METHODS: &[&str] =
    &["dim", "element_size", "is_contiguous", "nelement", "numel", "size", "stride"];

/// Modules whose functions compute with sizes what is a size again.
const OF_SIZES: &[&str] = &["math", "np", "numpy", "triton"];

/// Assignments that lead from a name to what tells of a tensor.
const MAX_STEPS: u32 = 3;

impl Host<'_> {
    /// Notes an assertion that does not hold, if it is about tensors: others may be about what is
    /// installed. Whether the code ends there: one on numbers that a run computes may hold with others.
    pub(crate) fn note_assertion(&mut self, frame: &mut Frame, claim: Claim) -> bool {
        let code = frame.code.clone();
        let sides = claim.sides();
        let tells = sides.iter().any(|side| tells_of_tensors(code.body(), *side, 0));
        if self.judges() && !tells {
            let fails = self.claim_by_far(frame, claim) == Some(false);
            if fails {
                self.note_disagreement(frame, claim);
            }
            return fails;
        }
        if self.is_certain() && tells {
            let (at, compared) = self.failing_in(frame, claim);
            self.note_failure(frame, at, Exception::Assertion(compared));
        }
        true
    }

    /// Notes that what a run computes is not what it is compared with.
    fn note_disagreement(&mut self, frame: &mut Frame, claim: Claim) {
        if self.is_certain() {
            let (at, compared) = self.failing_in(frame, claim);
            let difference = self.differing.take().filter(|_| compared.is_empty()).map(Box::new);
            self.note_failure(frame, at, Exception::Disagreement(compared, difference));
        }
    }

    /// Notes an exception that is raised under a condition which holds, or else does not.
    pub(crate) fn note_condition(
        &mut self,
        frame: &mut Frame,
        (test, holds): (ExprId, bool),
        block: &[StmtId],
    ) {
        let code = frame.code.clone();
        let body = code.body();
        let raises = block.last().is_some_and(|last| is_raise(&body.stmts[*last]));
        if raises && self.judges() && !tells_of_tensors(body, test, 0) {
            if self.by_far(frame, test, 0) == Some(holds) {
                self.note_disagreement(frame, Claim::Holds(test));
            }
            return;
        }
        if raises && self.is_certain() && tells_of_tensors(body, test, 0) {
            let compared = self.compared_in(frame, test);
            self.note_failure(frame, test, Exception::Condition(compared));
        }
    }

    /// Notes that tensors differ where a condition decides no more than what is printed.
    pub(crate) fn note_reported(&mut self, frame: &mut Frame, test: ExprId, ways: [&[StmtId]; 2]) {
        let code = frame.code.clone();
        let body = code.body();
        let prints = |way: &[StmtId]| way.iter().all(|stmt| is_print(body, *stmt));
        let fails = self.judges()
            && !ways[0].is_empty()
            && ways.into_iter().all(prints)
            && compares_tensors(body, test)
            && self.by_far(frame, test, 0) == Some(false);
        if fails {
            self.note_disagreement(frame, Claim::Holds(test));
        }
    }

    /// Notes that an expression raises an exception, where its value says so and those of its parts
    /// do not.
    pub(crate) fn note_raised(
        &mut self,
        frame: &Frame,
        id: ExprId,
        value: &Value,
        parts: &[&Value],
    ) {
        let raised_before = parts.iter().any(|part| matches!(part, Value::Raises(_)));
        let is_of_types = |misuse: &Misuse| matches!(misuse, Misuse::OtherTypes { .. });
        if let Value::Raises(misuse) = value
            && misuse.raises()
            && !raised_before
            && !(is_of_types(misuse) && self.default_type.is_some())
        {
            let exception = match misuse {
                Misuse::Differs(difference) => {
                    Exception::Disagreement(Vec::new(), Some(difference.clone()))
                }
                misuse => Exception::Misuse(misuse.clone()),
            };
            self.note_failure(frame, id, exception);
            // Newer functions are tried with arguments that older ones do not take.
            self.doubt.raised |= matches!(misuse, Misuse::Arguments { .. } | Misuse::Repeated(_));
        }
    }

    /// What a function that certainly runs gives, or is refused.
    pub(crate) fn outcome(mut self, function: &Value, args: &[(Option<Name>, Value)]) -> Value {
        self.doubt = Doubt::of_whole();
        let value = self.call_value(function, args);
        match self.failure {
            Some(Failure { exception: Exception::Misuse(misuse), .. }) => Value::Raises(misuse),
            _ => value,
        }
    }

    /// Notes the first exception: the code ends there.
    fn note_failure(&mut self, frame: &Frame, id: ExprId, exception: Exception) {
        if let Some(at) = frame.place(id)
            && self.is_certain()
        {
            let (calls, case) = (self.calls.clone(), self.case.clone());
            self.failure = Some(Failure { at, calls, exception, case });
        }
    }

    /// Notes what is given for the parameters of a function that is run by itself.
    pub(crate) fn note_case(&mut self, function: &Function, given: &Variables) {
        let text = |param: &Param| match given.get(&param.name)? {
            Value::Str(text) => Some(format!("\"{text}\"")),
            value => written(value),
        };
        let part = |param: &Param| Some((param.name.clone(), text(param)?));
        self.case = function.params.iter().filter_map(part).collect();
    }

    /// Whether the running code runs for certain, and nothing has ended it before.
    fn is_certain(&self) -> bool {
        self.failure.is_none() && self.doubt.is_none() && !self.unfollowed
    }

    /// What of a claim does not hold, and what that compares.
    fn failing_in(&mut self, frame: &mut Frame, claim: Claim) -> (ExprId, Vec<Compared>) {
        match claim {
            Claim::Holds(test) => {
                let failing = self.failing_part(frame, test);
                (failing, self.compared_in(frame, failing))
            }
            Claim::Fails(test) => (test, self.compared_in(frame, test)),
            Claim::Compares { sides, at, .. } | Claim::Near { sides, at, .. } => {
                (at, self.written_sides(frame, &sides))
            }
        }
    }

    /// The first part of a conjunction that does not hold.
    fn failing_part(&mut self, frame: &mut Frame, test: ExprId) -> ExprId {
        let code = frame.code.clone();
        let Expr::Bool { and: true, values } = &code.body().exprs[test] else { return test };
        let mut parts = values.iter();
        let failing = parts.find(|part| truth(&self.expr(frame, **part)) == Some(false));
        failing.map_or(test, |part| self.failing_part(frame, *part))
    }

    /// What a comparison compares, of which the values can be written.
    fn compared_in(&mut self, frame: &mut Frame, test: ExprId) -> Vec<Compared> {
        let code = frame.code.clone();
        let body = code.body();
        let Expr::Compare { first, rest } = &body.exprs[test] else { return Vec::new() };
        let is_member =
            |(op, _): &(CompareOp, ExprId)| matches!(op, CompareOp::In | CompareOp::NotIn);
        let sides = [*first].into_iter().chain(rest.iter().map(|(_, side)| *side));
        let sides = sides.take(if rest.iter().any(is_member) { 1 } else { usize::MAX });
        self.written_sides(frame, &sides.collect::<Vec<_>>())
    }

    /// Those of the sides of a comparison whose values are not in the text, and can be written.
    fn written_sides(&mut self, frame: &mut Frame, sides: &[ExprId]) -> Vec<Compared> {
        let code = frame.code.clone();
        let body = code.body();
        let sides = sides.iter().filter(|side| !matches!(body.exprs[**side], Expr::Literal(_)));
        let compared = sides.map(|side| {
            let value = written(&self.expr(frame, *side))?;
            Some(Compared { at: frame.place(*side)?, value })
        });
        compared.flatten().collect()
    }
}

/// Whether a statement prints something.
fn is_print(body: &Body, stmt: StmtId) -> bool {
    let Stmt::Expr(value) = &body.stmts[stmt] else { return false };
    let Expr::Call { callee, .. } = &body.exprs[*value] else { return false };
    body.exprs[*callee].is_name("print")
}

/// Whether a condition asks whether tensors are near each other, or equal.
fn compares_tensors(body: &Body, test: ExprId) -> bool {
    let Expr::Call { callee, .. } = &body.exprs[test] else { return false };
    let Expr::Attribute { attr, .. } = &body.exprs[*callee] else { return false };
    ["allclose", "equal"].contains(&&**attr)
}

fn is_raise(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Unsupported("Raise"))
}

/// Whether an expression is about sizes, strides or dtypes of tensors, perhaps by names that were
/// assigned so.
fn tells_of_tensors(body: &Body, id: ExprId, steps: u32) -> bool {
    let exprs = &body.exprs;
    match &exprs[id] {
        Expr::Attribute { attr, .. } if ATTRIBUTES.contains(&&**attr) => true,
        Expr::Call { callee, .. } if matches!(&exprs[*callee], Expr::Attribute { attr, .. } if METHODS.contains(&&**attr)) => {
            true
        }
        Expr::Name(name) => steps < MAX_STEPS && is_assigned_so(body, name, steps + 1),
        // A method tells of what it is called on, whatever sizes it is given, and a function of PyTorch of numbers.
        Expr::Call { callee, args } if let Expr::Attribute { value, .. } = &exprs[*callee] => {
            let of_sizes = |module: &Name| OF_SIZES.contains(&&**module);
            match exprs[*value].as_name().is_some_and(of_sizes) {
                true => args.iter().any(|arg| tells_of_tensors(body, arg.value, steps)),
                false => tells_of_tensors(body, *value, steps),
            }
        }
        expr => {
            let mut tells = false;
            expr.for_each_child(|child| tells = tells || tells_of_tensors(body, child, steps));
            tells
        }
    }
}

fn is_assigned_so(body: &Body, name: &Name, steps: u32) -> bool {
    body.stmts.values().any(|stmt| match stmt {
        Stmt::Assign { targets, value } => {
            targets.iter().any(|target| body.names_in(*target).contains(&name))
                && tells_of_tensors(body, *value, steps)
        }
        _ => false,
    })
}

/// A value as Python writes it; `None` of others than numbers, dtypes and tuples of them.
fn written(value: &Value) -> Option<String> {
    Some(match value {
        Value::Int(Some(value)) => value.to_string(),
        Value::Bool(Some(true)) => "True".to_owned(),
        Value::Bool(Some(false)) => "False".to_owned(),
        Value::Float(Some(value)) => data::written(*value),
        Value::Tensor(tensor) => written(&data::item(tensor)?)?,
        Value::None | Value::Omitted => "None".to_owned(),
        Value::DType(dtype) => dtype.to_string(),
        Value::TorchDType(dtype) => torch_name(dtype),
        Value::Tuple(items) => match items.as_slice() {
            [one] => format!("({},)", written(one)?),
            items => {
                let items = items.iter().map(written).collect::<Option<Vec<_>>>()?;
                format!("({})", items.join(", "))
            }
        },
        _ => return None,
    })
}
