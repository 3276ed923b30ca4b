//! Assignments in host code: to names, to several targets at once, to elements and attributes.

use crate::hir::{Body, Expr, ExprId, ItemKind, Name};
use crate::host::Host;
use crate::host::code::frame::Frame;
use crate::host::code::operators;
use crate::host::code::statics::Owner;
use crate::host::library::applied::is_own;
use crate::host::library::collections;
use crate::host::library::environment::is_environment;
use crate::host::library::triton::with_attribute;
use crate::host::torch::misuse::{Misuse, is_whole};
use crate::host::torch::tape::By;
use crate::host::torch::{fits, order, views};
use crate::host::value::memory::Stored;
use crate::host::value::{Descriptor, Tensor, Value};
use crate::project::{Resolution, Scope, item};

/// Functions of Python that give variables by their names.
const NAMESPACES: &[&str] = &["globals", "locals", "vars"];

impl Host<'_> {
    /// Gives a target of an assignment its value.
    pub(crate) fn assign(&mut self, frame: &mut Frame, target: ExprId, value: &Value) {
        let code = frame.code.clone();
        match &code.body().exprs[target] {
            Expr::Name(name) if self.binds_global(frame, name) => {
                self.set_static(Owner::Module(frame.file), name, value.clone());
            }
            Expr::Name(name) => {
                let value = self.class_made(frame, name, value).unwrap_or_else(|| value.clone());
                self.note_bound(frame, name, &value);
                frame.bind_anew(name, value);
            }
            Expr::Tuple(targets) | Expr::List(targets) => {
                let starred =
                    |target: &ExprId| matches!(code.body().exprs[*target], Expr::Starred(_));
                let star = targets.iter().position(starred);
                let rows = || match value {
                    Value::Tensor(tensor) => views::rows(tensor),
                    _ => None,
                };
                let items = value.elements().or_else(rows);
                let items = items.and_then(|items| dealt(items, targets.len(), star));
                self.lost += u32::from(items.is_none());
                let raised = match value {
                    Value::Tuple(items)
                        if star.is_none() && items.len() != targets.len() && is_whole(items) =>
                    {
                        let (len, names) = (items.len(), targets.len());
                        Some(Value::Raises(Misuse::Unpacked { len, names }))
                    }
                    _ => None,
                };
                if let Some(raised) = &raised {
                    self.note_raised(frame, target, raised, &[]);
                }
                for (at, target) in targets.iter().enumerate() {
                    let item = items.as_ref().map(|items| items[at].clone());
                    let item = item.or_else(|| raised.clone());
                    self.assign(frame, *target, &item.unwrap_or_else(|| value.any_element()));
                }
            }
            // What it gets is a list where what is unpacked is known.
            Expr::Starred(target) => match value {
                Value::List(_) => self.assign(frame, *target, value),
                _ => self.assign(frame, *target, &Value::Unknown),
            },
            Expr::Subscript { value: object, index } => {
                self.lost += 1;
                self.assign_item(frame, *object, *index, value);
            }
            Expr::Attribute { value: object, attr } => {
                self.lost += u32::from(!code.body().exprs[*object].is_name("self"));
                let owner = self.expr(frame, *object);
                match (&owner, &**attr) {
                    (Value::Object(object), _) if let Some(setter) = self.setter(*object, attr) => {
                        self.call_setter(setter, &owner, value);
                    }
                    (Value::Object(object), _) if self.set_by_descriptor(*object, attr, value) => {}
                    (Value::Object(object), _) if self.set_as_item(*object, attr, value) => {}
                    (owner @ Value::Object(_), _) if self.set_specially(owner, attr, value) => {}
                    (Value::Object(object), _) => self.set_attribute(*object, attr, value.clone()),
                    (Value::Config(config), _) => {
                        let changed = with_attribute(config, attr, value);
                        self.change_collection(frame, *object, changed);
                    }
                    (Value::Descriptor(descriptor), "block_shape") => {
                        self.assign_block(frame, *object, descriptor, value);
                    }
                    (owner, "requires_grad") if !matches!(owner, Value::Object(_)) => {
                        self.set_wanted(owner, value);
                    }
                    // What others call is another function from then on.
                    (Value::Named(Resolution::External(_)), _) if is_own(Some(value)) => {
                        self.unfollowed = true;
                    }
                    (Value::Named(Resolution::External(path)), _) => {
                        self.set_setting(path, attr, value);
                    }
                    (Value::Tensor(tensor), "data") => self.replace_data(tensor, value),
                    (_, "data") => self.note_replaced(frame, *object),
                    (Value::Tensor(tensor), "grad") => self.set_gradient(tensor, value),
                    _ => {
                        if let Some(owner) = self.static_owner(&owner) {
                            self.set_static(owner, attr, value.clone());
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// The class that a module makes by a call and gives this name, as `namedtuple` makes one.
    fn class_made(&mut self, frame: &Frame, name: &Name, value: &Value) -> Option<Value> {
        let is_outermost = frame.scope.is_empty() && !frame.scenario;
        if !is_outermost || !matches!(value, Value::Unknown) {
            return None;
        }
        let found = self.meaning(Scope { file: frame.file, path: &[] }, name);
        let Resolution::Class(at) = found else { return None };
        let is_assigned = matches!(item(self.sources, at)?.kind, ItemKind::Assign { .. });
        is_assigned.then_some(Value::Named(found))
    }

    /// `object[index] = value`.
    pub(crate) fn assign_item(
        &mut self,
        frame: &mut Frame,
        object: ExprId,
        index: ExprId,
        value: &Value,
    ) {
        let code = frame.code.clone();
        let owner = self.expr(frame, object);
        if let Value::Tensor(_) = &owner {
            let part = self.subscript(frame, &owner, index);
            let refused = match &part {
                Value::Raises(_) => part.clone(),
                part => fits::not_assigned(part, value).map_or(Value::Unknown, Value::from),
            };
            self.note_raised(frame, index, &refused, &[]);
            let positions = match &code.body().exprs[index] {
                Expr::Name(_) => self.expr(frame, index),
                _ => Value::Unknown,
            };
            // All numbers are gone through for each assignment.
            self.note_effort("", std::iter::once(&owner));
            let chosen = self.positions(frame, &owner, index);
            let stored = match (&owner, &chosen) {
                (Value::Tensor(owner), Some(chosen)) => self.stored(owner, chosen, value),
                _ => None,
            };
            let by = chosen.map_or(By::Unknown, By::Stored);
            self.on_tape_in_place(by, vec![(None, value.clone())], &owner);
            return match owner.allocations().as_slice() {
                [id] => {
                    let scattered = || order::scattered(&owner, &positions, value);
                    let stored = match stored {
                        Some(Stored { known: Some(_), .. }) => stored,
                        stored => scattered().map(Stored::from).or(stored),
                    };
                    match stored {
                        Some(stored) => self.note_stored(*id, &part, stored),
                        None => self.note_part_written(*id, &part),
                    }
                }
                _ => self.note_write(frame, object, &owner),
            };
        }
        self.note_array_written(&owner);
        self.unfollowed |= gives_names(code.body(), object);
        let key = self.expr(frame, index);
        if let Some(object) = self.owner_of_dict(frame, object) {
            return self.set_by_name(object, &key, value);
        }
        if self.special(&owner, "__setitem__", &[key.clone(), value.clone()]).is_some() {
            return;
        }
        match owner {
            Value::Dict(mut entries) => {
                let changed = collections::set(&mut entries, key, value.clone());
                self.change_collection(
                    frame,
                    object,
                    changed.map_or(Value::Unknown, |()| Value::Dict(entries)),
                );
            }
            Value::Collection => self.change_collection(frame, object, Value::Collection),
            owner if is_environment(&owner) => self.set_variable(&key, value),
            Value::Object(object) if self.set_mapped(object, key.clone(), value) => {}
            Value::Object(sequence) => self.set_child(sequence, &key, value.clone()),
            Value::List(mut items) => {
                let at = match key {
                    Value::Int(Some(at)) => operators::position(items.len(), at),
                    _ => None,
                };
                let changed = at.map(|at| items[at] = value.clone());
                self.change_collection(
                    frame,
                    object,
                    changed.map_or(Value::Unknown, |()| Value::List(items)),
                );
            }
            _ => {}
        }
    }

    /// Notes that an array of NumPy is changed in place: a tensor may be in the same memory.
    pub(crate) fn note_array_written(&mut self, owner: &Value) {
        if matches!(owner, Value::Array(_)) {
            self.arrays_written = true;
            self.unfollowed |= self.arrays_shared;
        }
    }

    /// Notes what the gradient of a tensor is set to.
    fn set_gradient(&mut self, tensor: &Tensor, value: &Value) {
        let value = if self.doubt.is_straight() { value.clone() } else { Value::Unknown };
        let Some(variable) = tensor.own_variable() else { return };
        match value {
            Value::None => self.cleared_gradients.insert(variable),
            _ => self.cleared_gradients.remove(&variable),
        };
        self.gradients.insert(variable, value);
    }

    /// A tensor to which `result` was written, as `+=` does: it stays what and where it is.
    pub(crate) fn updated(&mut self, tensor: &Tensor, result: &Value) -> Value {
        let Some(id) = tensor.memory() else { return result.clone() };
        let all = self.positions_in(tensor);
        let contents = all.and_then(|all| self.stored(tensor, &all, result));
        let mut updated = tensor.clone();
        updated.note_write();
        // It is another result for those who differentiate.
        if let (Some(storage), Value::Tensor(made)) = (&mut updated.storage, result) {
            storage.output = None;
            storage.made_of = made.storage.as_ref().and_then(|made| made.made_of);
        }
        match contents {
            Some(Stored { known: Some(contents), .. }) => self.note_filled(id, contents),
            _ if tensor.allocation() == Some(id) => self.note_updated(id),
            _ => self.note_part_written(id, &Value::Tensor(tensor.clone())),
        }
        Value::Tensor(updated)
    }

    /// The positions in a tensor of what `tensor[index]` shows.
    fn positions(&mut self, frame: &mut Frame, tensor: &Value, index: ExprId) -> Option<Value> {
        let Value::Tensor(tensor) = tensor else { return None };
        let positions = self.positions_in(tensor)?;
        Some(self.subscript(frame, &positions, index))
    }

    /// `descriptor.block_shape = value`.
    fn assign_block(
        &mut self,
        frame: &mut Frame,
        object: ExprId,
        descriptor: &Descriptor,
        value: &Value,
    ) {
        let Some(block) = value.elements() else { return };
        let descriptor = Descriptor { block, ..descriptor.clone() };
        self.assign(frame, object, &Value::Descriptor(Box::new(descriptor)));
    }
}

/// What each of `targets` targets gets of `items`; the one at `star` gets a list of what the others
/// leave. `None` where they do not fit.
fn dealt(mut items: Vec<Value>, targets: usize, star: Option<usize>) -> Option<Vec<Value>> {
    if let Some(star) = star {
        let rest = (items.len() + 1).checked_sub(targets)?;
        let rest: Vec<Value> = items.drain(star..star + rest).collect();
        items.insert(star, Value::List(rest));
    }
    (items.len() == targets).then_some(items)
}

/// Whether an expression gives the variables of code or of an object by their names.
fn gives_names(body: &Body, expr: ExprId) -> bool {
    let Expr::Call { callee, .. } = &body.exprs[expr] else { return false };
    body.exprs[*callee].as_name().is_some_and(|name| NAMESPACES.contains(&&**name))
}
