//! Whether gradients of tensors are wanted, as far as host code says so: it makes tensors with
//! `requires_grad=True`. Once it takes any out of that, nothing is known of the others, which may share
//! their memory.

use super::Host;
use super::arguments::Args;
use super::value::Value;

/// The keyword, and the attribute, by which gradients are wanted, and the method that says so.
const WANTS: &str = "requires_grad";
const WANTS_IN_PLACE: &str = "requires_grad_";

impl Host<'_> {
    /// Notes that a function of PyTorch made a tensor whose gradient is wanted, if it was told so.
    pub(super) fn note_wanted(&mut self, args: &Args<'_>, made: &Value) {
        if let Some(Value::Bool(Some(true))) = args.keyword(WANTS) {
            self.wanted.extend(made.allocations());
        }
    }

    /// Notes what a method says of whether gradients are wanted.
    pub(super) fn note_gradients(
        &mut self,
        method: &str,
        receiver: Option<&Value>,
        args: &Args<'_>,
    ) {
        match (method, receiver) {
            (WANTS_IN_PLACE, Some(tensor @ Value::Tensor(_))) if args.0.is_empty() => {
                self.wanted.extend(tensor.allocations());
            }
            (WANTS_IN_PLACE | "detach" | "detach_", _) => self.may_be_unwanted = true,
            _ => {}
        }
    }

    /// Notes that an attribute is read or set that takes tensors out of what gradients are wanted of.
    pub(super) fn note_taken_out(&mut self, attr: &str) {
        self.may_be_unwanted |= matches!(attr, WANTS | "data");
    }

    /// What an attribute of a tensor says that tells whether its gradient is wanted; `None` for others.
    pub(super) fn says_whether_wanted(&self, owner: &Value, attr: &str) -> Option<Value> {
        let says = attr == WANTS && matches!(owner, Value::Tensor(_));
        says.then(|| self.wants_gradient(owner))
    }

    /// Whether the gradient of an argument of an `autograd.Function` is wanted.
    pub(super) fn wants_gradient(&self, given: &Value) -> Value {
        Value::Bool(match given {
            Value::Tensor(tensor) => {
                let is_wanted = tensor.allocation().is_some_and(|id| self.wanted.contains(&id));
                (is_wanted && !self.may_be_unwanted).then_some(true)
            }
            given => given.to_const().map(|_| false),
        })
    }
}
