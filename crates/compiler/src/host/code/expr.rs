//! Expressions of host code.

use crate::hir::{
    BinaryOp, Body, CompareOp, Expr, ExprId, FStringPart, LambdaParam, Literal, UnaryOp,
};
use crate::host::code::operators::{self, compare};
use crate::host::library::{collections, sets};
use crate::host::objects::records;
use crate::host::torch::data;
use crate::host::torch::subscripts::{self, Part};
use crate::host::value::changes::show_lambdas;
use crate::host::value::contents::Contents;
use crate::host::value::dtype::is_integer;
use crate::host::value::{Callable, Dict, Missing, Parameter, Tensor, Value};
use crate::host::{Frame, Host, MAX_DEPTH, Maker};
use crate::project::Resolution;

/// Methods of Python's collections, and a function, that give nothing and raise nothing.
const GIVING_NOTHING: &[&str] = &["add", "append", "clear", "extend", "print", "update"];

impl Host<'_> {
    /// The value of an expression.
    pub(crate) fn expr(&mut self, frame: &mut Frame, id: ExprId) -> Value {
        if self.fuel == 0 || self.depth >= MAX_DEPTH * 8 {
            self.lost += 1;
            return Value::Unknown;
        }
        self.fuel -= 1;
        self.depth += 1;
        let value = self.nested_expr(frame, id);
        self.depth -= 1;
        self.lost += u32::from(self.may_have_raised(frame.code.body(), id, &value));
        value
    }

    /// Whether an expression that has this value may have raised an exception instead, as far as its value tells.
    fn may_have_raised(&self, body: &Body, id: ExprId, value: &Value) -> bool {
        match (&body.exprs[id], value) {
            (
                _,
                Value::Unknown
                | Value::Ints
                | Value::Raises(_)
                | Value::Bool(None)
                | Value::Int(None)
                | Value::Float(None),
            ) => true,
            // What shapes and types go together is not told of everything.
            (
                Expr::Binary { .. }
                | Expr::Call { .. }
                | Expr::Subscript { .. }
                | Expr::Unary { .. },
                Value::Tensor(_),
            ) => true,
            (Expr::Call { .. }, Value::Object(object)) => !self.is_made_by_own_code(*object),
            (Expr::Binary { .. } | Expr::Call { .. }, Value::Float(Some(number))) => {
                !number.is_finite()
            }
            (Expr::Call { callee, .. }, Value::None) => {
                let name = match &body.exprs[*callee] {
                    Expr::Attribute { attr, .. } => Some(attr),
                    callee => callee.as_name(),
                };
                !name.is_some_and(|name| GIVING_NOTHING.contains(&&**name))
            }
            _ => false,
        }
    }

    fn nested_expr(&mut self, frame: &mut Frame, id: ExprId) -> Value {
        let code = frame.code.clone();
        let body = code.body();
        match &body.exprs[id] {
            Expr::Name(name) => self.name(frame, name),
            Expr::Literal(literal) => literal_value(literal),
            Expr::Tuple(items) => self.items(frame, items).map_or(Value::Collection, Value::Tuple),
            Expr::List(items) => self.items(frame, items).map_or(Value::Collection, Value::List),
            Expr::Set(items) => {
                self.items(frame, items).and_then(sets::of).unwrap_or(Value::Collection)
            }
            Expr::SetComp(elements) => match self.expr(frame, *elements) {
                Value::List(items) => sets::of(items).unwrap_or(Value::Collection),
                _ => Value::Unknown,
            },
            Expr::ListComp { element, target, iterable, conditions } => {
                self.comprehension(frame, *element, *target, *iterable, conditions)
            }
            Expr::Generator(elements) => self.expr(frame, *elements),
            Expr::DictComp(elements) => match self.expr(frame, *elements) {
                Value::List(pairs) => dict_of(pairs),
                _ => Value::Unknown,
            },
            Expr::Binary { op, lhs, rhs } => {
                let [lhs, rhs] = [lhs, rhs].map(|operand| {
                    let value = self.operand(frame, *operand);
                    self.as_operand(value)
                });
                if let Some(made) = self.special_binary(*op, &lhs, &rhs) {
                    return made;
                }
                let result = self.binary(*op, &lhs, &rhs);
                self.note_raised(frame, id, &result, &[&lhs, &rhs]);
                result
            }
            Expr::Unary { op, operand } => {
                let operand = self.expr(frame, *operand);
                match op {
                    UnaryOp::Not => Value::Bool(self.holds(&operand).map(|holds| !holds)),
                    op => {
                        let value = operators::unary(*op, &operand);
                        let value =
                            self.allocate_known(data::noted(value, data::unary(*op, &operand)));
                        self.recorded(&Maker::Unary(*op), &[(None, operand)], value)
                    }
                }
            }
            Expr::Bool { and, values } => self.bool_op(frame, *and, values),
            Expr::Compare { first, rest } => {
                self.comparing += 1;
                let found = self.comparison(frame, id, *first, rest);
                self.comparing -= 1;
                found
            }
            Expr::Call { callee, args } => self.call(frame, id, *callee, args),
            Expr::Attribute { value, attr } => {
                let (owner, member) = self.attribute(frame, *value, attr);
                self.note_raised(frame, id, &member, &[&owner]);
                match self.says_whether_wanted(&owner, attr) {
                    Some(wanted) => wanted,
                    None => member,
                }
            }
            Expr::Subscript { value, index } => {
                let only_reads = self.only_read.take() == Some(id);
                let (owner, value) = (*value, self.expr(frame, *value));
                let part = match &value {
                    Value::Dict(dict) if dict.missing.is_some() => {
                        self.made_or_found(frame, (owner, dict), *index)
                    }
                    value => {
                        let mut part = self.subscript(frame, value, *index);
                        self.note_begun(&mut part);
                        part
                    }
                };
                if !only_reads {
                    self.note_part(&value, &part);
                }
                self.note_raised(frame, id, &part, &[&value]);
                part
            }
            Expr::IfElse { condition, on_true, on_false } => {
                let condition = self.expr(frame, *condition);
                let holds =
                    self.holds(&condition).or_else(|| without_arguments(body, *on_true, *on_false));
                match holds {
                    Some(true) => self.expr(frame, *on_true),
                    Some(false) => self.expr(frame, *on_false),
                    None => {
                        let on_true = self.perhaps_running(|host| host.expr(frame, *on_true));
                        let raised = std::mem::take(&mut self.doubt.raised);
                        let on_false = self.perhaps_running(|host| host.expr(frame, *on_false));
                        self.doubt.raised &= raised;
                        self.one_of(on_true, &on_false)
                    }
                }
            }
            Expr::FString(parts) => self.fstring(frame, parts),
            Expr::Lambda { params, body } => {
                let param = |param: &LambdaParam| Parameter {
                    name: param.name.clone(),
                    kind: param.kind,
                    default: param.default.map_or(Value::Unknown, |id| self.expr(frame, id)),
                };
                let params = params.iter().map(param).collect();
                Value::Callable(Callable::Lambda { frame: frame.kept(), params, body: *body })
            }
            Expr::Walrus { target, value } => {
                let value = self.expr(frame, *value);
                frame.bind(target, value.clone());
                value
            }
            Expr::Dict(entries) => self.dict(frame, entries),
            Expr::Yield { value, of_each } => {
                let value = value.map_or(Value::None, |value| self.expr(frame, value));
                let given = match of_each {
                    true => value.elements(),
                    false => Some(vec![value]),
                };
                if let Some(yielded) = &mut frame.exits.yielded {
                    yielded.give(given, &self.doubt);
                }
                Value::Unknown
            }
            _ => Value::Unknown,
        }
    }

    /// `left op right`, as functions of Python have it.
    pub(crate) fn operated(&mut self, op: BinaryOp, left: &Value, right: &Value) -> Value {
        match self.special_binary(op, left, right) {
            Some(made) => made,
            None => self.binary(op, left, right),
        }
    }

    /// `left op right` of values that no class of the project defines.
    fn binary(&mut self, op: BinaryOp, left: &Value, right: &Value) -> Value {
        if let Some(rest) = self.beyond_aligned(op, left, right) {
            return rest;
        }
        let result = match self.product_of_types(op, left, right) {
            Some(misuse) => Value::Raises(misuse),
            None => operators::binary(op, left, right),
        };
        let name = if op == BinaryOp::MatMul { "matmul" } else { "" };
        self.note_effort(name, [left, right].into_iter());
        let result = self.following(name, [left, right].into_iter(), result);
        let given = || vec![(None, left.clone()), (None, right.clone())];
        match self.cast_automatically(name, result) {
            Value::Unknown => self.exact_binary(op, left, right),
            raised @ Value::Raises(_) => raised,
            value => match operators::contents(op, left, right) {
                Contents::Unknown => {
                    let value = self.with_numbers(value, || data::binary(op, left, right));
                    let value = self.allocate_known(value);
                    let value = self.note_sums(op, (left, right), value);
                    self.note_made(Maker::Binary(op), given, value)
                }
                contents => {
                    let value = self.allocate(value, contents);
                    self.recorded(&Maker::Binary(op), &given(), value)
                }
            },
        }
    }

    /// The value of an operand, of which nothing is kept but what is computed from it.
    pub(crate) fn operand(&mut self, frame: &mut Frame, id: ExprId) -> Value {
        if matches!(frame.code.body().exprs[id], Expr::Subscript { .. }) {
            self.only_read = Some(id);
        }
        let value = self.expr(frame, id);
        self.only_read = None;
        value
    }

    /// `first op right op right…`.
    fn comparison(
        &mut self,
        frame: &mut Frame,
        id: ExprId,
        first: ExprId,
        rest: &[(CompareOp, ExprId)],
    ) -> Value {
        let mut left = self.operand(frame, first);
        let mut all = Some(true);
        let code = frame.code.clone();
        // What a method gives may be a view that looks like its tensor.
        let is_called = |side: &ExprId| matches!(code.body().exprs[*side], Expr::Call { .. });
        for (op, written) in rest {
            let right = self.compared(frame, *op, *written);
            self.note_close_call(&left, &right);
            if rest.len() == 1
                && let Some(tensor) = operators::compared(*op, &left, &right)
            {
                self.note_raised(frame, id, &tensor, &[&left, &right]);
                let tensor = data::noted(tensor, data::compared(*op, &left, &right));
                return self.allocate_known(tensor);
            }
            if rest.len() == 1
                && let Some(is_set) = self.compared_variable(frame.file, *op, (&left, &right))
            {
                return is_set;
            }
            let holds = match self.compared_members(*op, &left, &right) {
                None if self.may_lack_gradient(frame, first, &left) => None,
                None if matches!(op, CompareOp::Is | CompareOp::IsNot)
                    && matches!((&left, &right), (Value::Tensor(_), Value::Tensor(_)))
                    && [first, *written].iter().any(is_called) =>
                {
                    None
                }
                None => match self.special_comparison(*op, &left, &right) {
                    Some(found) => self.holds(&found),
                    None => compare(*op, &left, &right).or_else(|| {
                        let sides = [first, *written].map(|side| &code.body().exprs[side]);
                        self.compared_devices(*op, sides, [&left, &right])
                    }),
                },
                known => known,
            };
            all = match (all, holds) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
            left = right;
        }
        Value::Bool(all)
    }

    /// Whether an expression is the gradient of a tensor, of which it is not known that there is one.
    fn may_lack_gradient(&mut self, frame: &mut Frame, expr: ExprId, value: &Value) -> bool {
        let code = frame.code.clone();
        let of = match &code.body().exprs[expr] {
            Expr::Attribute { value, attr } if &**attr == "grad" => *value,
            _ => return false,
        };
        let Value::Tensor(_) = value else { return false };
        let variable = match self.expr(frame, of) {
            Value::Tensor(of) => of.own_variable(),
            _ => None,
        };
        let known = variable.and_then(|variable| self.gradients.get(&variable));
        !matches!(known, Some(Value::Tensor(_)))
    }

    /// Whether the devices of two tensors compare so, where nothing says which these are: what runs by itself has its
    /// tensors on one.
    fn compared_devices(
        &self,
        op: CompareOp,
        sides: [&Expr; 2],
        values: [&Value; 2],
    ) -> Option<bool> {
        let is_asked =
            |side: &&Expr| matches!(side, Expr::Attribute { attr, .. } if &**attr == "device");
        let is_one = self.entry.is_some()
            && sides.iter().all(is_asked)
            && values.iter().all(|value| matches!(value, Value::Device));
        match op {
            CompareOp::Eq if is_one => Some(true),
            CompareOp::Ne if is_one => Some(false),
            _ => None,
        }
    }

    /// The right side of a comparison: nothing changes a set that is only looked into.
    fn compared(&mut self, frame: &mut Frame, op: CompareOp, right: ExprId) -> Value {
        let code = frame.code.clone();
        match &code.body().exprs[right] {
            Expr::Set(items) if matches!(op, CompareOp::In | CompareOp::NotIn) => {
                self.items(frame, items).map_or(Value::Collection, Value::Tuple)
            }
            _ => self.expr(frame, right),
        }
    }

    /// `value[index]`.
    pub(crate) fn subscript(&mut self, frame: &mut Frame, value: &Value, index: ExprId) -> Value {
        let code = frame.code.clone();
        if let Value::Named(Resolution::Class(at)) = value
            && self.is_enumeration(*at)
        {
            return match self.expr(frame, index).plain() {
                Value::Str(name) => self.member_of_class(*at, name),
                _ => Value::Unknown,
            };
        }
        match &code.body().exprs[index] {
            Expr::Slice { lower, upper, step } => {
                let bounds =
                    [lower, upper, step].map(|bound| bound.map(|bound| self.bound(frame, bound)));
                match value {
                    Value::Object(_) => self.element(frame, value, records::slice(bounds)),
                    value => self.sliced(value, bounds),
                }
            }
            Expr::Tuple(parts) if let Value::Tensor(tensor) = value => {
                let parts = parts.iter().map(|part| self.part(frame, *part));
                let parts = parts.collect();
                self.parts(tensor, parts)
            }
            _ => match (value, self.expr(frame, index)) {
                (value, index) if let Some(bounds) = records::slice_bounds(&index) => {
                    self.sliced(value, bounds)
                }
                (Value::Tensor(tensor), Value::Tuple(items) | Value::List(items))
                    if items.iter().any(|item| records::slice_bounds(item).is_some()) =>
                {
                    self.parts(tensor, items.into_iter().map(part_of).collect())
                }
                (value, index) => self.element(frame, value, index),
            },
        }
    }

    /// `value[lower:upper:step]`.
    fn sliced(&mut self, value: &Value, [lower, upper, step]: [Option<Value>; 3]) -> Value {
        let simple = match (&step, value) {
            (None, _) => operators::slice(value, lower.as_ref(), upper.as_ref()),
            (Some(step), Value::Tensor(_)) => {
                let part = Part::stepped([lower.as_ref(), upper.as_ref(), Some(step)]);
                operators::parts(value, vec![part])
            }
            (Some(_), _) => Value::Unknown,
        };
        match simple {
            Value::Unknown => self.exact_slice(value, [lower, upper, step]),
            value => value,
        }
    }

    /// `tensor[part, part]`, each with its value if it has one.
    fn parts(&mut self, tensor: &Tensor, parts: Vec<(Part, Option<Value>)>) -> Value {
        if let Some([slices, rest]) = subscripts::apart(&parts)
            && let Value::Tensor(part) = self.parts(tensor, slices)
        {
            return self.parts(&part, rest);
        }
        let (parts, values): (Vec<Part>, Vec<Option<Value>>) = parts.into_iter().unzip();
        let chosen = subscripts::along_axes(&parts, values, tensor);
        let part = operators::parts(&Value::Tensor(tensor.clone()), parts);
        let numbers = || chosen.as_ref().and_then(|chosen| data::indexed(tensor, chosen));
        let part = self.with_numbers(part, numbers);
        let part = self.allocate_known(part);
        self.recorded_choice(tensor, chosen.unwrap_or_default(), part)
    }

    /// `value[index]` of an index that is no slice.
    fn element(&mut self, frame: &mut Frame, value: &Value, index: Value) -> Value {
        let index = match value {
            Value::Dict(_) | Value::Object(_) => index,
            _ => as_position(index),
        };
        let kept = self.kept_for_parameter(value, &index).or_else(|| self.child(value, &index));
        let kept = kept
            .or_else(|| self.of_module(frame.file, value, &index))
            .or_else(|| self.variable(frame.file, value, &index))
            .or_else(|| self.special(value, "__getitem__", std::slice::from_ref(&index)));
        let kept = kept
            .or_else(|| Some(operators::subscript(&Value::Dict(self.items_of(value)?), &index)));
        let part = kept.unwrap_or_else(|| operators::subscript(value, &index));
        match value {
            Value::Tensor(tensor) => {
                let index = [Some(index)];
                let numbers = || data::indexed(tensor, &index);
                let part = self.with_numbers(part, numbers);
                let part = self.allocate_known(part);
                self.recorded_choice(tensor, index.into(), part)
            }
            _ => {
                self.note_missing(value, &index);
                part
            }
        }
    }

    /// What was chosen of a tensor by indices along its axes, for backward passes.
    fn recorded_choice(
        &mut self,
        tensor: &Tensor,
        chosen: Vec<Option<Value>>,
        part: Value,
    ) -> Value {
        match self.records() {
            true => {
                let whole = [(None, Value::Tensor(tensor.clone()))];
                self.recorded(&Maker::Chosen(chosen), &whole, part)
            }
            false => part,
        }
    }

    /// `dict[key]` of a dict that makes what it lacks: it has the key from then on, but for a `Counter`.
    fn made_or_found(
        &mut self,
        frame: &mut Frame,
        (owner, dict): (ExprId, &Dict),
        index: ExprId,
    ) -> Value {
        let key = self.expr(frame, index);
        let found = |dict: &Dict| operators::subscript(&Value::Dict(dict.clone()), &key);
        if compare(CompareOp::In, &key, &Value::Dict(dict.clone())) != Some(false) {
            return found(dict);
        }
        match &dict.missing {
            Some(Missing::Made(factory)) => {
                let made = self.call_value(factory, &[]);
                let mut grown = dict.clone();
                let known = collections::set(&mut grown, key, made.clone());
                let now = known.map_or(Value::Collection, |()| Value::Dict(grown));
                self.change_collection(frame, owner, now);
                made
            }
            Some(Missing::Zero) => Value::Int(Some(0)),
            None => found(dict),
        }
    }

    /// Notes that a dict has no such key, where what takes the exception stands around the code.
    fn note_missing(&mut self, value: &Value, key: &Value) {
        if let Value::Dict(_) = value
            && self.doubt.has_handlers()
            && compare(CompareOp::In, key, value) == Some(false)
        {
            self.doubt.raised = true;
        }
    }

    /// What stands in a subscript for one axis of a tensor, or for several, and its value if it has one.
    fn part(&mut self, frame: &mut Frame, id: ExprId) -> (Part, Option<Value>) {
        let code = frame.code.clone();
        match &code.body().exprs[id] {
            Expr::Slice { lower, upper, step } => {
                let bounds =
                    [lower, upper, step].map(|bound| bound.map(|bound| self.bound(frame, bound)));
                (Part::stepped(bounds.each_ref().map(Option::as_ref)), None)
            }
            Expr::Literal(Literal::Ellipsis) => (Part::Rest, None),
            _ => part_of(self.expr(frame, id)),
        }
    }

    /// A bound of a slice: a tensor of one number stands for it.
    fn bound(&mut self, frame: &mut Frame, id: ExprId) -> Value {
        match self.expr(frame, id) {
            Value::Tensor(tensor) => data::item(&tensor).unwrap_or(Value::Tensor(tensor)),
            value => value,
        }
    }

    /// Elements of a display; `None` where their number is not known. Of configurations those that
    /// are known count, with something unknown among them.
    fn items(&mut self, frame: &mut Frame, ids: &[ExprId]) -> Option<Vec<Value>> {
        let mut items = Vec::new();
        let mut is_open = false;
        for id in ids {
            if let Expr::Starred(inner) = frame.code.body().exprs[*id] {
                let inner = self.expr(frame, inner).elements();
                is_open |= inner.is_none();
                items.extend(inner.unwrap_or_else(|| vec![Value::Unknown]));
            } else {
                items.push(self.expr(frame, *id));
            }
        }
        let lists_configs = || items.iter().any(|item| matches!(item, Value::Config(_)));
        (!is_open || lists_configs()).then_some(items)
    }

    fn comprehension(
        &mut self,
        frame: &mut Frame,
        element: ExprId,
        target: ExprId,
        iterable: ExprId,
        conditions: &[ExprId],
    ) -> Value {
        let items = self.expr(frame, iterable);
        let Some(items) = self.gone_over(items).elements() else { return Value::Unknown };
        let mut inner = frame.clone();
        let flatten = match inner.code.body().exprs[element] {
            Expr::Starred(nested) => Some(nested),
            _ => None,
        };
        let mut results = Vec::new();
        for item in items {
            self.assign(&mut inner, target, &item);
            let mut keep = Some(true);
            for condition in conditions {
                let condition = self.expr(&mut inner, *condition);
                let holds = self.holds(&condition);
                if holds == Some(false) {
                    keep = holds;
                    break;
                }
                keep = keep.and(holds);
            }
            // A condition that is not known keeps the element.
            match keep {
                Some(false) => continue,
                Some(true) => {}
                None => self.doubt.note_more(),
            }
            let raised = self.doubt.raised;
            match flatten {
                None => results.push(self.expr(&mut inner, element)),
                Some(nested) => match self.expr(&mut inner, nested).elements() {
                    Some(items) => results.extend(items),
                    None => return Value::Unknown,
                },
            }
            self.doubt.raised &= raised || keep.is_some();
        }
        let mut results = Value::List(results);
        let here = (frame.file, &*frame.scope);
        for name in frame.code.body().names_in(target) {
            if let Some(last) = inner.variables.get(name) {
                show_lambdas(&mut results, here, name, last);
            }
        }
        results
    }

    fn bool_op(&mut self, frame: &mut Frame, and: bool, values: &[ExprId]) -> Value {
        let mut result = Value::Unknown;
        for (at, value) in values.iter().enumerate() {
            let value = self.expr(frame, *value);
            match self.holds(&value) {
                Some(truth) if truth != and => return value,
                Some(_) => result = value,
                None if at + 1 == values.len() => return value,
                None => {
                    let raised = self.doubt.raised;
                    for rest in &values[at + 1..] {
                        let rest = self.perhaps_running(|host| host.expr(frame, *rest));
                        self.doubt.raised = raised;
                        if self.holds(&rest) == Some(!and) {
                            return if and {
                                Value::Bool(Some(false))
                            } else {
                                self.one_of(value, &rest)
                            };
                        }
                    }
                    return Value::Unknown;
                }
            }
        }
        result
    }

    fn fstring(&mut self, frame: &mut Frame, parts: &[FStringPart]) -> Value {
        let mut text = String::new();
        for part in parts {
            match part {
                FStringPart::Text(piece) => text.push_str(piece),
                FStringPart::Formatted { value, conversion, format } => {
                    let value = self.expr(frame, *value);
                    match self.exact_format(&value, *conversion, format) {
                        Some(piece) => text.push_str(&piece),
                        None => return Value::Unknown,
                    }
                }
                FStringPart::Hole(hole) => {
                    let value = self.expr(frame, *hole);
                    match self.exact_format(&value, None, "") {
                        Some(piece) => text.push_str(&piece),
                        None => return Value::Unknown,
                    }
                }
            }
        }
        Value::Str(text.into())
    }

    fn dict(&mut self, frame: &mut Frame, entries: &[(Option<ExprId>, ExprId)]) -> Value {
        let mut dict = Vec::new();
        for (key, value) in entries {
            let value = self.expr(frame, *value);
            match key {
                Some(key) => {
                    let key = self.expr(frame, *key);
                    if collections::set(&mut dict, key, value).is_none() {
                        return Value::Unknown;
                    }
                }
                None => match value {
                    Value::Dict(inner) => {
                        for (key, value) in inner {
                            collections::set(&mut dict, key, value);
                        }
                    }
                    _ => return Value::Unknown,
                },
            }
        }
        Value::Dict(dict.into())
    }
}

/// What a value stands for among the parts of a subscript, with itself unless it is a slice.
fn part_of(value: Value) -> (Part, Option<Value>) {
    let value = as_position(value);
    match records::slice_bounds(&value) {
        Some(bounds) => (Part::stepped(bounds.each_ref().map(Option::as_ref)), None),
        None => (Part::of(&value), Some(value)),
    }
}

/// The position that a tensor of one integer stands for between brackets: what it chooses is a view.
fn as_position(value: Value) -> Value {
    match &value {
        Value::Tensor(tensor @ Tensor { dtype: Some(dtype), shape: Some(shape), .. })
            if shape.is_empty() && is_integer(dtype) =>
        {
            data::item(tensor).unwrap_or(Value::Int(None))
        }
        _ => value,
    }
}

/// Which of two values a program has that is given no arguments, where only the other asks for one: as
/// parsers of command lines have defaults.
fn without_arguments(body: &Body, on_true: ExprId, on_false: ExprId) -> Option<bool> {
    match (asks_for_arguments(body, on_true), asks_for_arguments(body, on_false)) {
        (true, false) => Some(false),
        (false, true) => Some(true),
        _ => None,
    }
}

/// Whether an expression has an element of `sys.argv`.
fn asks_for_arguments(body: &Body, id: ExprId) -> bool {
    let is_list = |value: &Expr| {
        matches!(value, Expr::Attribute { value, attr }
            if &**attr == "argv" && body.exprs[*value].is_name("sys"))
    };
    let mut asks = match &body.exprs[id] {
        Expr::Subscript { value, index } => {
            let is_first =
                matches!(&body.exprs[*index], Expr::Literal(Literal::Int(at)) if at.get() == 0);
            is_list(&body.exprs[*value]) && !is_first
        }
        _ => false,
    };
    body.exprs[id].for_each_child(|child| asks |= asks_for_arguments(body, child));
    asks
}

/// The dictionary of pairs of a key and a value.
fn dict_of(pairs: Vec<Value>) -> Value {
    let mut dict = Vec::new();
    for pair in pairs {
        let Value::Tuple(pair) = pair else { return Value::Unknown };
        let Ok([key, value]) = <[Value; 2]>::try_from(pair) else { return Value::Unknown };
        if collections::set(&mut dict, key, value).is_none() {
            return Value::Unknown;
        }
    }
    Value::Dict(dict.into())
}

fn literal_value(literal: &Literal) -> Value {
    match literal {
        Literal::Int(value) => Value::Int(Some(value.get())),
        Literal::BigInt(_) => Value::Int(None),
        Literal::Float(bits) => Value::Float(Some(f64::from_bits(*bits))),
        Literal::Bool(value) => Value::Bool(Some(*value)),
        Literal::None => Value::None,
        Literal::Str(text) => Value::Str(text.clone()),
        Literal::Bytes | Literal::Ellipsis | Literal::Imaginary => Value::Unknown,
    }
}
