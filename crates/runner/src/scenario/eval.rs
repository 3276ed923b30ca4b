//! Evaluation of statements and expressions.

mod launch;

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tile_compiler::hir::{
    Arg, ArgKind, Body, CompareOp, Expr, ExprId, ItemKind, Literal, Module, Name, Scenario,
    SourceMap, Stmt, StmtId,
};
use tile_compiler::source::TextRange;
use tile_compiler::specialization::TupleNames;

use super::args::Args;
use super::dtype::DType;
use super::error::{Eval, Fault, ScenarioError, fault};
use super::host::{Host, ScenarioOptions};
use super::launcher::{BoundLaunch, Launcher};
use super::methods;
use super::operators;
use super::tensor::{Comparison, Store, Tensor, Value};
use super::views::{self, Index};

/// What an `assert` found.
#[derive(Debug, Clone, PartialEq)]
pub struct AssertOutcome {
    /// The statement.
    pub at: TextRange,
    /// True when it holds.
    pub ok: bool,
    /// What `allclose` found, if it was one.
    pub comparison: Option<Comparison>,
}

/// What a scenario did.
#[derive(Debug)]
pub struct Outcome {
    /// Its assertions in order; evaluation goes on after one that does not hold.
    pub asserts: Vec<AssertOutcome>,
    /// Variables at its end.
    pub variables: BTreeMap<String, Value>,
    /// Launches in order.
    pub launches: Vec<BoundLaunch>,
    /// What its tensors hold.
    pub store: Store,
}

impl Outcome {
    /// Its tensors by name: variables, then what launches passed to a parameter of that name.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &Tensor)> + Clone {
        let variables = self.variables.iter().map(|(name, value)| (name.as_str(), value));
        let args = self.launches.iter().flat_map(|launch| &launch.args);
        let passed = args.map(|arg| (&*arg.param.name, &arg.value));
        variables.chain(passed).filter_map(|(name, value)| match value {
            Value::Tensor(tensor) => Some((name, tensor)),
            _ => None,
        })
    }
}

/// Runs a scenario of `module`.
///
/// # Errors
/// What is wrong with a statement, where, and what to do. What a kernel does wrong is no error.
pub fn run(
    module: &Module,
    scenario: &Scenario,
    launcher: &mut dyn Launcher,
    options: &ScenarioOptions,
) -> Result<Outcome, ScenarioError> {
    let mut evaluator = Evaluator::new(module, options, Some(launcher), Store::default());
    let code = Code { body: scenario.body.clone(), map: scenario.map.clone() };
    let root = code.body.root.clone();
    evaluator.statements(&code, &root).map_err(Fault::finish)?;
    Ok(evaluator.finish())
}

/// Values of `NAME=EXPR` arguments.
#[derive(Debug, Clone, Default)]
pub struct Arguments {
    /// Names with their values.
    pub values: Vec<(String, Value)>,
    /// What tensors among the values hold.
    pub store: Store,
}

/// What is wrong with a `NAME=EXPR` argument.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("--arg {name}: {error}")]
pub struct ArgumentError {
    /// The argument's name.
    pub name: String,
    /// What is wrong; its place is in the text of the expression.
    pub error: ScenarioError,
}

/// Evaluates `NAME=EXPR` arguments: each expression may use the names before it, and the module's
/// constants.
///
/// # Errors
/// When an expression cannot be read or computed.
pub fn evaluate_arguments(
    module: &Module,
    arguments: &[(String, String)],
    options: &ScenarioOptions,
) -> Result<Arguments, ArgumentError> {
    let mut evaluator = Evaluator::new(module, options, None, Store::default());
    let mut values = Vec::new();
    for (name, text) in arguments {
        let failed = |fault: Fault| ArgumentError { name: name.clone(), error: fault.finish() };
        let value = evaluator.argument_text(text).map_err(failed)?;
        evaluator.bind(name, value.clone());
        values.push((name.clone(), value));
    }
    Ok(Arguments { values, store: evaluator.host.store })
}

/// A body with its positions.
#[derive(Debug, Clone)]
pub(super) struct Code {
    pub body: Arc<Body>,
    pub map: Arc<SourceMap>,
}

/// Module constants followed into each other.
const MAX_DEPTH: u32 = 32;

pub(super) struct Evaluator<'a> {
    module: &'a Module,
    host: Host<'a>,
    variables: FxHashMap<String, Value>,
    /// Functions that compute a grid, by the name they are assigned to.
    grids: FxHashMap<Name, ExprId>,
    asserts: Vec<AssertOutcome>,
    launches: Vec<BoundLaunch>,
    depth: u32,
}

impl<'a> Evaluator<'a> {
    fn new(
        module: &'a Module,
        options: &'a ScenarioOptions,
        launcher: Option<&'a mut dyn Launcher>,
        store: Store,
    ) -> Evaluator<'a> {
        Evaluator {
            module,
            host: Host { options, launcher, store },
            variables: FxHashMap::default(),
            grids: FxHashMap::default(),
            asserts: Vec::new(),
            launches: Vec::new(),
            depth: 0,
        }
    }

    fn finish(self) -> Outcome {
        Outcome {
            asserts: self.asserts,
            variables: self.variables.into_iter().collect(),
            launches: self.launches,
            store: self.host.store,
        }
    }

    fn statements(&mut self, code: &Code, statements: &[StmtId]) -> Eval<()> {
        for &statement in statements {
            let at = code.map.stmts[statement];
            self.statement(code, statement).map_err(|fault| fault.at(at))?;
        }
        Ok(())
    }

    fn statement(&mut self, code: &Code, statement: StmtId) -> Eval<()> {
        match &code.body.stmts[statement] {
            Stmt::Expr(value) => {
                if !self.launch_statement(code, *value)? {
                    self.expr(code, *value)?;
                }
                Ok(())
            }
            Stmt::Assign { targets, value }
                if matches!(code.body.exprs[*value], Expr::Lambda { .. }) =>
            {
                targets.iter().try_for_each(|&target| self.assign_grid(code, target, *value))
            }
            Stmt::Assign { targets, value } => {
                let value = self.expr(code, *value)?;
                targets.iter().try_for_each(|&target| self.assign(code, target, value.clone()))
            }
            Stmt::AnnAssign { target, value: Some(value), .. } => {
                let value = self.expr(code, *value)?;
                self.assign(code, *target, value)
            }
            Stmt::AugAssign { target, op, value } => {
                let old = self.expr(code, *target)?;
                let value = self.expr(code, *value)?;
                let (a, b) = (self.host.operand(old)?, self.host.operand(value)?);
                let value = operators::binary(*op, a, b)?;
                self.assign(code, *target, value)
            }
            Stmt::For { target, iter, body, .. } => self.for_loop(code, *target, *iter, body),
            Stmt::If { test, body, orelse } => {
                let test = self.expr(code, *test)?;
                let taken = if self.host.truth(&test)? { body } else { orelse };
                self.statements(code, taken)
            }
            Stmt::Assert { test, message: _ } => self.assert(code, statement, *test),
            Stmt::Pass | Stmt::AnnAssign { value: None, .. } => Ok(()),
            Stmt::Error => Err(fault!("this line cannot be read as a statement")),
            _ => Err(fault!(
                "a scenario has assignments, launches, asserts and `for` loops, nothing else"
            )),
        }
    }

    fn for_loop(&mut self, code: &Code, target: ExprId, iter: ExprId, body: &[StmtId]) -> Eval<()> {
        let items = match self.expr(code, iter)? {
            Value::Tuple(items) | Value::Record(_, items) => items,
            other => return Err(fault!("cannot loop over {}", other.kind())),
        };
        for item in items {
            self.assign(code, target, item)?;
            self.statements(code, body)?;
        }
        Ok(())
    }

    fn assert(&mut self, code: &Code, statement: StmtId, test: ExprId) -> Eval<()> {
        let value = self.expr(code, test)?;
        let comparison = match &value {
            Value::Comparison(comparison) => Some(*comparison),
            _ => None,
        };
        let ok = self.host.truth(&value)?;
        self.asserts.push(AssertOutcome { at: code.map.stmts[statement], ok, comparison });
        Ok(())
    }

    fn assign(&mut self, code: &Code, target: ExprId, value: Value) -> Eval<()> {
        let at = code.map.exprs[target];
        match &code.body.exprs[target] {
            Expr::Name(name) => {
                self.bind(name, value);
                Ok(())
            }
            Expr::Tuple(targets) | Expr::List(targets) => {
                let (Value::Tuple(values) | Value::Record(_, values)) = value else {
                    return Err(fault!("cannot unpack {}", value.kind()).at(at));
                };
                if values.len() != targets.len() {
                    let (left, right) = (targets.len(), values.len());
                    return Err(fault!("{left} names on the left, {right} values").at(at));
                }
                let pairs = targets.iter().zip(values);
                pairs.into_iter().try_for_each(|(&target, value)| self.assign(code, target, value))
            }
            Expr::Subscript { value: object, index } => {
                let object = self.memory(code, *object)?;
                match self.subscript(code, object, *index)? {
                    Value::Tensor(part) => {
                        self.host.fill(&part, value).map_err(|fault| fault.at(at))
                    }
                    _ => {
                        Err(fault!("only elements of tensors that have a name are assigned").at(at))
                    }
                }
            }
            _ => Err(fault!("a scenario assigns to names and to elements of tensors").at(at)),
        }
    }

    /// What is assigned into: a name that holds computed elements holds them in memory from now on,
    /// and so do its other names.
    fn memory(&mut self, code: &Code, object: ExprId) -> Eval<Value> {
        let value = self.expr(code, object)?;
        let (Value::Array(array), Expr::Name(_)) = (&value, &code.body.exprs[object]) else {
            return Ok(value);
        };
        let tensor = Value::Tensor(self.host.store.store(array));
        let same = |held: &Value| matches!(held, Value::Array(held) if Arc::ptr_eq(held, array));
        let held = self.variables.iter().filter(|(_, held)| same(held));
        let names: Vec<String> = held.map(|(name, _)| name.clone()).collect();
        names.iter().for_each(|name| self.bind(name, tensor.clone()));
        Ok(tensor)
    }

    /// Binds a name to a function that computes a grid.
    fn assign_grid(&mut self, code: &Code, target: ExprId, function: ExprId) -> Eval<()> {
        let Expr::Name(name) = &code.body.exprs[target] else {
            return Err(fault!("a scenario assigns to names only").at(code.map.exprs[target]));
        };
        self.grids.insert(name.clone(), function);
        Ok(())
    }

    /// Binds a name; a storage that has none takes it.
    fn bind(&mut self, name: &str, value: Value) {
        self.name_storage(name, &value);
        self.variables.insert(name.to_owned(), value);
    }

    /// Gives a tensor's storage its name, unless it has one.
    fn name_storage(&mut self, name: &str, value: &Value) {
        let Value::Tensor(tensor) = value else { return };
        let storage = &mut self.host.store.storages[tensor.storage.0];
        if storage.name.is_empty() {
            storage.name = name.to_owned();
        }
    }

    pub fn expr(&mut self, code: &Code, id: ExprId) -> Eval<Value> {
        let at = code.map.exprs[id];
        self.expr_inner(code, id).map_err(|fault| fault.at(at))
    }

    fn expr_inner(&mut self, code: &Code, id: ExprId) -> Eval<Value> {
        match &code.body.exprs[id] {
            Expr::Name(name) => self.name(name),
            Expr::Literal(literal) => literal_value(literal),
            Expr::Tuple(items) | Expr::List(items) => {
                let items = items.iter().map(|&item| self.expr(code, item));
                items.collect::<Eval<Vec<Value>>>().map(Value::Tuple)
            }
            Expr::Binary { op, lhs, rhs } => {
                let (lhs, rhs) = (self.expr(code, *lhs)?, self.expr(code, *rhs)?);
                self.binary(*op, lhs, rhs)
            }
            Expr::Unary { op, operand } => {
                let operand = self.expr(code, *operand)?;
                if *op == tile_compiler::hir::UnaryOp::Not {
                    return Ok(Value::Bool(!self.host.truth(&operand)?));
                }
                operators::unary(*op, self.host.operand(operand)?)
            }
            Expr::Bool { and, values } => {
                let mut last = Value::Bool(*and);
                for &value in values {
                    last = self.expr(code, value)?;
                    if self.host.truth(&last)? != *and {
                        break;
                    }
                }
                Ok(last)
            }
            Expr::Compare { first, rest } => self.compare(code, *first, rest),
            Expr::Call { callee, args } => self.call(code, *callee, args),
            Expr::Attribute { value, attr } => {
                if let Expr::Name(module) = &code.body.exprs[*value]
                    && let Some(dtype) = self.namespaced_dtype(module, attr)
                {
                    return Ok(Value::DType(dtype));
                }
                let value = self.expr(code, *value)?;
                self.host.attribute(&value, attr)
            }
            Expr::Subscript { value, index } => {
                let value = self.expr(code, *value)?;
                self.subscript(code, value, *index)
            }
            Expr::IfElse { condition, on_true, on_false } => {
                let condition = self.expr(code, *condition)?;
                let taken = if self.host.truth(&condition)? { *on_true } else { *on_false };
                self.expr(code, taken)
            }
            Expr::Missing => Err(fault!("something is missing here")),
            _ => Err(fault!("a scenario cannot compute this")),
        }
    }

    fn namespaced_dtype(&self, module: &str, attr: &str) -> Option<DType> {
        const NAMESPACES: [&str; 4] = ["tl", "torch", "np", "language"];
        let shadowed = self.variables.contains_key(module);
        let dtype = NAMESPACES.contains(&module).then(|| DType::from_name(attr)).flatten();
        dtype.filter(|_| !shadowed)
    }

    fn name(&mut self, name: &Name) -> Eval<Value> {
        if let Some(value) = self.variables.get(&**name) {
            return Ok(value.clone());
        }
        if let Some(value) = self.module_constant(name)? {
            return Ok(value);
        }
        // What is imported under this name is found when a kernel is compiled with it.
        let function = |item: &tile_compiler::hir::Item| {
            let kind = &item.kind;
            item.name == *name
                && matches!(kind, ItemKind::Function(_) | ItemKind::ImportFrom { .. })
        };
        match DType::from_name(name) {
            Some(dtype) => Ok(Value::DType(dtype)),
            None if self.module.items.iter().any(function) => Ok(Value::Function(name.clone())),
            None => Err(fault!("`{name}` is not defined in this scenario or as a module constant")),
        }
    }

    /// The value of a name that the file binds to a constant expression; the last binding counts.
    fn module_constant(&mut self, name: &Name) -> Eval<Option<Value>> {
        let module = self.module;
        let item =
            module.items.iter().rev().find(|item| item.name == *name && item.scope.is_empty());
        let Some(ItemKind::Assign { body, map, value, .. }) = item.map(|item| &item.kind) else {
            return Ok(None);
        };
        if self.depth >= MAX_DEPTH {
            return Err(fault!("`{name}` is defined by itself"));
        }
        let code = Code { body: body.clone(), map: map.clone() };
        let locals = std::mem::take(&mut self.variables);
        self.depth += 1;
        let found = self.expr(&code, *value);
        self.depth -= 1;
        self.variables = locals;
        // The place of an error is where the scenario uses the name.
        let failed = |fault: Fault| fault!("the module constant `{name}`: {}", fault.message);
        found.map(Some).map_err(failed)
    }

    fn binary(&mut self, op: tile_compiler::hir::BinaryOp, lhs: Value, rhs: Value) -> Eval<Value> {
        use tile_compiler::hir::BinaryOp;
        match (op, lhs, rhs) {
            (BinaryOp::Add, Value::Tuple(mut lhs), Value::Tuple(rhs)) => {
                lhs.extend(rhs);
                Ok(Value::Tuple(lhs))
            }
            (BinaryOp::Mul, Value::Tuple(items), Value::Int(count)) => {
                let count = usize::try_from(count).unwrap_or(0).min(64);
                let total = items.len() * count;
                Ok(Value::Tuple(items.into_iter().cycle().take(total).collect()))
            }
            (op, lhs, rhs) => {
                operators::binary(op, self.host.operand(lhs)?, self.host.operand(rhs)?)
            }
        }
    }

    fn compare(&mut self, code: &Code, first: ExprId, rest: &[(CompareOp, ExprId)]) -> Eval<Value> {
        let mut left = self.expr(code, first)?;
        let mut result = Value::Bool(true);
        for &(op, right) in rest {
            let right = self.expr(code, right)?;
            result = self.compare_pair(op, left, right.clone())?;
            if rest.len() > 1 && !self.host.truth(&result)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(result)
    }

    fn compare_pair(&mut self, op: CompareOp, left: Value, right: Value) -> Eval<Value> {
        let equal = match (&left, &right) {
            (Value::DType(a), Value::DType(b)) => Some(a == b),
            (Value::Str(a), Value::Str(b)) => Some(a == b),
            (Value::None, Value::None) => Some(true),
            (Value::None, _) | (_, Value::None) => Some(false),
            (Value::Tuple(a), Value::Tuple(b)) => Some(self.same_tuples(a, b)?),
            _ => None,
        };
        match (op, equal) {
            (CompareOp::Eq | CompareOp::Is, Some(equal)) => Ok(Value::Bool(equal)),
            (CompareOp::Ne | CompareOp::IsNot, Some(equal)) => Ok(Value::Bool(!equal)),
            (CompareOp::In | CompareOp::NotIn | CompareOp::Is | CompareOp::IsNot, _) => {
                Err(fault!("a scenario cannot compute this comparison"))
            }
            _ => operators::compare(op, self.host.operand(left)?, self.host.operand(right)?),
        }
    }

    fn same_tuples(&mut self, a: &[Value], b: &[Value]) -> Eval<bool> {
        if a.len() != b.len() {
            return Ok(false);
        }
        for (a, b) in a.iter().zip(b) {
            let same = self.compare_pair(CompareOp::Eq, a.clone(), b.clone())?;
            if !self.host.truth(&same)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn call(&mut self, code: &Code, callee: ExprId, args: &[Arg]) -> Eval<Value> {
        let mut positional = Vec::new();
        let mut named = Vec::new();
        for arg in args {
            let value = self.expr(code, arg.value)?;
            match (&arg.kind, value) {
                (ArgKind::Positional, value) => positional.push(value),
                (ArgKind::Keyword(name), value) => named.push((name.to_string(), value)),
                (ArgKind::Star, Value::Tuple(values) | Value::Record(_, values)) => {
                    positional.extend(values)
                }
                _ => return Err(fault!("`*` takes a tuple, and `**` is not supported")),
            }
        }
        let args = Args { positional, named };
        match &code.body.exprs[callee] {
            Expr::Name(name) => match self.record_names(name) {
                Some(names) => record(&names, args),
                None => methods::call(&mut self.host, name, args),
            },
            Expr::Attribute { value, attr } => {
                let namespace = matches!(&code.body.exprs[*value], Expr::Name(module)
                    if matches!(&**module, "triton" | "torch" | "np" | "math" | "tl")
                        && !self.variables.contains_key(&**module));
                if namespace {
                    return methods::call(&mut self.host, attr, args);
                }
                let value = self.expr(code, *value)?;
                methods::method(&mut self.host, value, attr, args)
            }
            _ => Err(fault!("a scenario cannot call this")),
        }
    }

    /// What the named tuple of this name and its fields are called, if the file has one.
    fn record_names(&mut self, name: &str) -> Option<Arc<TupleNames>> {
        self.host.launcher.as_deref_mut()?.record(name)
    }

    fn subscript(&mut self, code: &Code, value: Value, index: ExprId) -> Eval<Value> {
        match &value {
            Value::Tuple(items) | Value::Record(_, items) => {
                let Value::Int(at) = self.expr(code, index)? else {
                    return Err(fault!("a tuple is indexed by an integer"));
                };
                let position = if at < 0 { at + items.len() as i128 } else { at };
                let item = usize::try_from(position).ok().and_then(|at| items.get(at));
                item.cloned().ok_or_else(|| fault!("index {at} of a tuple of {}", items.len()))
            }
            Value::Meta(meta) => {
                let Value::Str(name) = self.expr(code, index)? else {
                    return Err(fault!("arguments are looked up by name, as in meta[\"BLOCK\"]"));
                };
                let found = meta.iter().find(|(known, _)| **known == *name);
                found
                    .map(|(_, value)| value.clone())
                    .ok_or_else(|| fault!("the kernel has no parameter `{name}`"))
            }
            Value::Tensor(_) | Value::Array(_) => {
                let parts = match &code.body.exprs[index] {
                    Expr::Tuple(parts) => parts.clone(),
                    _ => Box::new([index]) as Box<[_]>,
                };
                let parts = parts.into_iter().map(|part| self.index(code, part));
                let parts = parts.collect::<Eval<Vec<Index>>>()?;
                self.host.view(&value, |layout| views::slice(layout, &parts))
            }
            other => Err(fault!("{} cannot be indexed", other.kind())),
        }
    }

    fn index(&mut self, code: &Code, id: ExprId) -> Eval<Index> {
        if let Expr::Slice { lower, upper, step } = &code.body.exprs[id] {
            let mut part = |part: &Option<ExprId>| -> Eval<Option<i128>> {
                let Some(id) = *part else { return Ok(None) };
                let value = self.expr(code, id)?;
                self.host.int(&value).map(Some)
            };
            let (lower, upper, step) = (part(lower)?, part(upper)?, part(step)?);
            return Ok(Index::Range(lower, upper, step.unwrap_or(1)));
        }
        if matches!(&code.body.exprs[id], Expr::Literal(Literal::Ellipsis)) {
            return Ok(Index::Rest);
        }
        match self.expr(code, id)? {
            Value::None => Ok(Index::New),
            value => Ok(Index::At(self.host.int(&value)?)),
        }
    }
}

/// An instance of a named tuple.
fn record(names: &Arc<TupleNames>, args: Args) -> Eval<Value> {
    let class = &names.class;
    let mut items: Vec<Option<Value>> = args.positional.into_iter().map(Some).collect();
    if items.len() > names.fields.len() {
        return Err(fault!("`{class}` has {} fields", names.fields.len()));
    }
    items.resize(names.fields.len(), None);
    for (name, value) in args.named {
        let at = names.fields.iter().position(|field| **field == *name);
        let slot = at.and_then(|at| items.get_mut(at));
        *slot.ok_or_else(|| fault!("`{class}` has no field `{name}`"))? = Some(value);
    }
    let missing = items.iter().zip(&names.fields).find(|(item, _)| item.is_none());
    if let Some((_, field)) = missing {
        return Err(fault!("`{class}` needs the field `{field}`"));
    }
    Ok(Value::Record(names.clone(), items.into_iter().flatten().collect()))
}

fn literal_value(literal: &Literal) -> Eval<Value> {
    Ok(match literal {
        Literal::Int(value) => Value::Int(value.get()),
        Literal::Float(bits) => Value::Float(f64::from_bits(*bits)),
        Literal::Bool(value) => Value::Bool(*value),
        Literal::None => Value::None,
        Literal::Str(text) => Value::Str(text.clone()),
        Literal::BigInt(_) => return Err(fault!("the integer is too large")),
        Literal::Bytes | Literal::Ellipsis | Literal::Imaginary => {
            return Err(fault!("a scenario cannot use this literal"));
        }
    })
}
