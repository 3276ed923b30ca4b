//! Conditions of modules whose outcome the text shows: which of several definitions of a name
//! there is, where Triton, PyTorch with CUDA and a Python that Triton supports are installed.

use super::installation::{self, CURRENT_TARGET, Fact, INTERPRETS};
use super::resolve::{MAX_WORK, Resolver};
use super::{ItemRef, Resolution, Scope, item, triton};
use crate::builtins::TritonVersion;
use crate::hir::{
    Arg, ArgKind, BinaryOp, Body, CompareOp, Expr, ExprId, Guard, Item, ItemKind, Literal, Name,
    Occasion, Stmt, StmtId, UnaryOp,
};
use crate::source::FileId;

/// Bindings looked at for one condition.
const CONDITION_WORK: u32 = 100;

/// Functions followed into each other for one condition.
const MAX_CALLS: u32 = 8;

/// The oldest minor version of Python 3 that Triton's releases support.
const OLDEST_PYTHON: i128 = 10;

impl Resolver<'_> {
    /// Whether the statement that binds `item` of `file` runs, where its conditions show it.
    pub(super) fn runs(&mut self, file: FileId, index: u32, item: &Item) -> Option<bool> {
        let mut all = Some(true);
        let mut next = item.guard.as_deref();
        while let Some(guard) = next {
            match self.holds(file, index, guard) {
                Some(false) => return Some(false),
                Some(true) => {}
                None => all = None,
            }
            next = guard.and.as_deref();
        }
        all
    }

    /// Whether a condition is met; only what stands before the item at `before` counts. Answers are
    /// kept: what a condition mentions is often bound under conditions itself.
    fn holds(&mut self, file: FileId, before: u32, guard: &Guard) -> Option<bool> {
        let versions = match self.version {
            Some(version) => vec![version],
            None => vec![TritonVersion::V3_6, TritonVersion::V3_9],
        };
        let mut outcomes = versions.into_iter().map(|version| {
            let key = (std::ptr::from_ref(guard), version);
            if let Some(known) = self.conditions.get(&key) {
                return *known;
            }
            // A condition that is asked about on the way to its own answer is not known.
            self.conditions.insert(key, None);
            let around = (self.version.replace(version), self.work);
            self.work = self.work.max(MAX_WORK - CONDITION_WORK);
            let place = Place::of_module(file, before, &guard.body);
            let truth = self.fact(&place, guard.test).and_then(|fact| fact.truth());
            (self.version, self.work) = around;
            let outcome = truth.map(|truth| truth == guard.holds);
            self.conditions.insert(key, outcome);
            outcome
        });
        let first = outcomes.next()??;
        outcomes.all(|outcome| outcome == Some(first)).then_some(first)
    }

    pub(super) fn fact(&mut self, place: &Place<'_>, id: ExprId) -> Option<Fact> {
        let body = place.body;
        match &body.exprs[id] {
            Expr::Literal(literal) => literal_fact(literal),
            Expr::Tuple(items) | Expr::List(items) => {
                let mut number = |id: &ExprId| match self.fact(place, *id)? {
                    Fact::Int(value) => Some(value),
                    _ => None,
                };
                items.iter().map(&mut number).collect::<Option<_>>().map(Fact::Numbers)
            }
            Expr::Binary { op, lhs, rhs } => {
                match (self.fact(place, *lhs)?, self.fact(place, *rhs)?) {
                    (Fact::Int(a), Fact::Int(b)) => whole(*op, a, b).map(Fact::Int),
                    _ => None,
                }
            }
            Expr::IfElse { condition, on_true, on_false } => {
                let taken = self.fact(place, *condition)?.truth()?;
                self.fact(place, if taken { *on_true } else { *on_false })
            }
            Expr::Unary { op: UnaryOp::Not, operand } => {
                Some(Fact::Bool(!self.fact(place, *operand)?.truth()?))
            }
            Expr::Bool { and, values } => self.all_or_any(place, *and, values),
            Expr::Compare { first, rest } => {
                let [(op, second)] = rest[..] else { return None };
                let left = self.fact(place, *first)?;
                compare(op, &left, &self.fact(place, second)?).map(Fact::Bool)
            }
            Expr::Call { callee, args } => self.called(place, *callee, args),
            Expr::Subscript { value, index } => {
                match (self.fact(place, *value)?, self.fact(place, *index)?) {
                    (Fact::Python, Fact::Int(0)) => Some(Fact::Int(3)),
                    (Fact::Numbers(numbers), Fact::Int(at)) => {
                        numbers.get(usize::try_from(at).ok()?).copied().map(Fact::Int)
                    }
                    _ => None,
                }
            }
            Expr::Name(name) if let Some(held) = place.local(name) => held.clone(),
            Expr::Name(_) => {
                let found = self.named(place, id);
                self.of_name(found)
            }
            Expr::Attribute { value, attr } => {
                let found = self.named(place, id);
                if let Some(fact) = self.of_name(found) {
                    return Some(fact);
                }
                self.fact(place, *value)?.attribute(attr, self.sources.capability())
            }
            _ => None,
        }
    }

    fn named(&mut self, place: &Place<'_>, id: ExprId) -> Resolution {
        if is_local(place, id) {
            return Resolution::Unknown;
        }
        let scope = Scope { file: place.file, path: &place.scope };
        self.step(|resolver| resolver.expr(scope, place.body, id, Some(place.before)))
    }

    fn all_or_any(&mut self, place: &Place<'_>, and: bool, values: &[ExprId]) -> Option<Fact> {
        let mut known = true;
        for value in values {
            match self.fact(place, *value).and_then(|fact| fact.truth()) {
                Some(truth) if truth != and => return Some(Fact::Bool(truth)),
                Some(_) => {}
                None => known = false,
            }
        }
        known.then_some(Fact::Bool(and))
    }

    /// What a name that resolves to `found` holds.
    fn of_name(&mut self, found: Resolution) -> Option<Fact> {
        match found {
            Resolution::Constant(at) => self.constant_fact(at),
            Resolution::Triton(path) if &*path == "__version__" => {
                Some(Fact::Text(format!("{}.0", self.version?)))
            }
            // Where kernels are compiled, none is interpreted.
            Resolution::Triton(path) if *path == *INTERPRETS => Some(Fact::Bool(false)),
            Resolution::External(path) => {
                let path: Vec<&str> = path.iter().map(|name| &**name).collect();
                installation::named(&path)
            }
            Resolution::TritonModule(_)
            | Resolution::Jit(_)
            | Resolution::ConstexprFunction(_)
            | Resolution::Function(_)
            | Resolution::Class(_)
            | Resolution::File(_) => Some(Fact::Object),
            Resolution::Triton(path) => {
                (triton::has(&path, self.version) == Some(true)).then_some(Fact::Object)
            }
            _ => None,
        }
    }

    /// The value of a binding that is certain to be the one.
    fn constant_fact(&mut self, at: ItemRef) -> Option<Fact> {
        let bound = item(self.sources, at)?;
        let ItemKind::Assign { body, value, .. } = &bound.kind else { return None };
        let certain = bound.occasion == Occasion::Always
            && self.runs(at.file, at.index, &bound) == Some(true);
        let place = Place::of_module(at.file, at.index, body);
        if certain { self.fact(&place, *value) } else { None }
    }

    fn called(&mut self, place: &Place<'_>, callee: ExprId, args: &[Arg]) -> Option<Fact> {
        if let Expr::Name(name) = &place.body.exprs[callee]
            && &**name == "hasattr"
            && let [object, member] = args
        {
            return self.has_attribute(place, object.value, member.value).map(Fact::Bool);
        }
        if let Expr::Attribute { value, attr } = &place.body.exprs[callee]
            && let Resolution::Triton(path) = self.named(place, *value)
            && format!("{path}.{attr}") == CURRENT_TARGET
        {
            return Some(Fact::Target);
        }
        match self.named(place, callee) {
            Resolution::External(path) => self.called_outside(place, &path, args),
            Resolution::Function(at) => self.returned(place, at, args),
            Resolution::Undefined => match (&place.body.exprs[callee], args) {
                // Python's own, which changes nothing of what it is given here.
                (Expr::Name(name), [arg])
                    if matches!(&**name, "bool" | "int" | "str" | "tuple") =>
                {
                    converted(name, self.fact(place, arg.value)?)
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn called_outside(&mut self, place: &Place<'_>, path: &[Name], args: &[Arg]) -> Option<Fact> {
        let path: Vec<&str> = path.iter().map(|name| &**name).collect();
        match (path.as_slice(), args) {
            (["packaging", "version", "parse" | "Version"], [text]) => {
                match self.fact(place, text.value)? {
                    Fact::Text(text) => version_numbers(&text).map(Fact::Numbers),
                    _ => None,
                }
            }
            _ => installation::called(&path, self.sources.capability()),
        }
    }

    /// What a function of the project returns, of whose arguments nothing is known. What it tries
    /// is taken to succeed.
    fn returned(&mut self, place: &Place<'_>, at: ItemRef, args: &[Arg]) -> Option<Fact> {
        if place.depth >= MAX_CALLS || self.work >= MAX_WORK {
            return None;
        }
        self.work += 1;
        let found = item(self.sources, at)?;
        let ItemKind::Function(function) = &found.kind else { return None };
        let mut scope = found.scope.clone();
        let cached = function.decorators.iter().all(|&decorator| {
            let callee = super::callee(&function.body, decorator);
            let outer = Scope { file: at.file, path: &scope };
            let decorator =
                self.step(|resolver| resolver.expr(outer, &function.body, callee, None));
            matches!(decorator, Resolution::External(path)
                if matches!(path.iter().map(|name| &**name).collect::<Vec<_>>()[..],
                    ["functools", "cache" | "lru_cache"]))
        });
        if !cached {
            return None;
        }
        scope.push(found.name.clone());
        self.sources.look_inside(at);
        let before = if at.file == place.file { place.before } else { u32::MAX };
        let given = function.params.iter().enumerate().map(|(index, param)| {
            let value = match (args.get(index), param.default) {
                (Some(arg), _) => self.fact(place, arg.value),
                (None, Some(default)) => {
                    let outside = Place::of_module(at.file, before, &function.body);
                    self.fact(&outside, default)
                }
                (None, None) => None,
            };
            // An argument by keyword may be any.
            let plain = args.iter().all(|arg| arg.kind == ArgKind::Positional);
            (param.name.clone(), value.filter(|_| plain))
        });
        let locals = given.collect();
        let depth = place.depth + 1;
        let mut inside =
            Place { file: at.file, before, body: &function.body, scope, locals, depth };
        match self.run(&mut inside, &function.body.root) {
            Some(Ended::Returned(fact)) => fact,
            Some(Ended::Falls) => Some(Fact::None),
            None => None,
        }
    }

    /// Runs statements; `None` where it is not known which of them run.
    fn run(&mut self, place: &mut Place<'_>, stmts: &[StmtId]) -> Option<Ended> {
        let body = place.body;
        for stmt in stmts {
            let ended = match &body.stmts[*stmt] {
                Stmt::Pass | Stmt::Expr(_) | Stmt::Assert { .. } => Ended::Falls,
                Stmt::Unsupported("Import" | "ImportFrom") => Ended::Falls,
                Stmt::Assign { targets, value } => {
                    let fact = self.fact(place, *value);
                    targets.iter().for_each(|target| place.bind(*target, fact.as_ref()));
                    Ended::Falls
                }
                Stmt::AnnAssign { target, value: Some(value), .. } => {
                    let fact = self.fact(place, *value);
                    place.bind(*target, fact.as_ref());
                    Ended::Falls
                }
                Stmt::If { test, body, orelse } => {
                    let taken = self.fact(place, *test)?.truth()?;
                    self.run(place, if taken { body } else { orelse })?
                }
                Stmt::Try { body, orelse, finally, .. } => match self.run(place, body)? {
                    Ended::Falls => match self.run(place, orelse)? {
                        Ended::Falls => self.run(place, finally)?,
                        returned => returned,
                    },
                    returned => returned,
                },
                Stmt::Return(value) => Ended::Returned(match value {
                    Some(value) => self.fact(place, *value),
                    None => Some(Fact::None),
                }),
                _ => return None,
            };
            if let Ended::Returned(_) = ended {
                return Some(ended);
            }
        }
        Some(Ended::Falls)
    }

    /// `hasattr(module, "name")` of one of Triton's modules.
    fn has_attribute(&mut self, place: &Place<'_>, object: ExprId, name: ExprId) -> Option<bool> {
        let Expr::Literal(Literal::Str(name)) = &place.body.exprs[name] else { return None };
        let Resolution::TritonModule(module) = self.named(place, object) else { return None };
        match triton::member(&module, name) {
            Resolution::Triton(path) => triton::has(&path, self.version),
            Resolution::TritonModule(_) => Some(true),
            _ => None,
        }
    }
}

/// How statements end.
enum Ended {
    /// The next statement runs.
    Falls,
    /// The function returns this, as far as it is known.
    Returned(Option<Fact>),
}

/// Where an expression of module-level code, or of a function that it calls, stands.
pub(super) struct Place<'b> {
    file: FileId,
    /// Only items before this one count.
    before: u32,
    body: &'b Body,
    /// The functions around it.
    scope: Vec<Name>,
    /// What is known of the variables of the innermost one.
    locals: Vec<(Name, Option<Fact>)>,
    /// Calls that led here.
    depth: u32,
}

impl<'b> Place<'b> {
    pub(super) fn of_module(file: FileId, before: u32, body: &'b Body) -> Place<'b> {
        Place { file, before, body, scope: Vec::new(), locals: Vec::new(), depth: 0 }
    }

    /// What is known of a local variable, if there is one of this name.
    fn local(&self, name: &str) -> Option<&Option<Fact>> {
        self.locals.iter().rev().find(|(local, _)| **local == *name).map(|(_, fact)| fact)
    }

    /// Assigns to a name, or to each of a tuple of them.
    fn bind(&mut self, target: ExprId, fact: Option<&Fact>) {
        match (&self.body.exprs[target], fact) {
            (Expr::Name(name), fact) => self.locals.push((name.clone(), fact.cloned())),
            (Expr::Tuple(items) | Expr::List(items), fact) => {
                for (index, item) in items.iter().enumerate() {
                    let part = match fact {
                        Some(Fact::Numbers(numbers)) if numbers.len() == items.len() => {
                            Some(Fact::Int(numbers[index]))
                        }
                        _ => None,
                    };
                    self.bind(*item, part.as_ref());
                }
            }
            _ => {}
        }
    }
}

/// Whether a dotted path begins with a local variable.
fn is_local(place: &Place<'_>, id: ExprId) -> bool {
    match &place.body.exprs[id] {
        Expr::Name(name) => place.local(name).is_some(),
        Expr::Attribute { value, .. } => is_local(place, *value),
        _ => false,
    }
}

/// What Python's `bool`, `int`, `str` or `tuple` makes of a value.
fn converted(class: &str, fact: Fact) -> Option<Fact> {
    match (class, fact) {
        ("bool", fact) => fact.truth().map(Fact::Bool),
        ("int", fact @ Fact::Int(_))
        | ("str", fact @ Fact::Text(_))
        | ("tuple", fact @ Fact::Numbers(_)) => Some(fact),
        ("int", Fact::Text(text)) => text.parse().ok().map(Fact::Int),
        ("str", Fact::Int(value)) => Some(Fact::Text(value.to_string())),
        _ => None,
    }
}

/// Arithmetic on integers.
fn whole(op: BinaryOp, a: i128, b: i128) -> Option<i128> {
    match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        _ => None,
    }
}

fn literal_fact(literal: &Literal) -> Option<Fact> {
    Some(match literal {
        Literal::None => Fact::None,
        Literal::Bool(value) => Fact::Bool(*value),
        Literal::Int(value) => Fact::Int(value.get()),
        Literal::Str(text) => Fact::Text(text.to_string()),
        _ => return None,
    })
}

/// The numbers of a version without suffixes: `3.6.0`.
fn version_numbers(text: &str) -> Option<Vec<i128>> {
    text.split('.').map(|part| part.parse().ok()).collect()
}

fn compare(op: CompareOp, left: &Fact, right: &Fact) -> Option<bool> {
    match (op, left, right) {
        (CompareOp::Is, a, b) => Some(a == b).filter(|same| *same || is_none(a) || is_none(b)),
        (CompareOp::IsNot, a, b) => compare(CompareOp::Is, a, b).map(|same| !same),
        (CompareOp::In, Fact::Text(_), Fact::Environment) => Some(false),
        (CompareOp::NotIn, Fact::Text(_), Fact::Environment) => Some(true),
        (CompareOp::In, Fact::Int(one), Fact::Numbers(all)) => Some(all.contains(one)),
        (CompareOp::NotIn, Fact::Int(one), Fact::Numbers(all)) => Some(!all.contains(one)),
        (_, Fact::Python, Fact::Numbers(wanted)) => compare_python(op, wanted),
        (_, Fact::Int(a), Fact::Int(b)) => ordered(op, a.cmp(b)),
        (_, Fact::Text(a), Fact::Text(b)) => ordered(op, a.cmp(b)),
        (_, Fact::Numbers(a), Fact::Numbers(b)) => ordered(op, a.cmp(b)),
        (_, Fact::Bool(a), Fact::Bool(b)) => ordered(op, a.cmp(b)),
        _ => None,
    }
}

fn is_none(fact: &Fact) -> bool {
    *fact == Fact::None
}

fn ordered(op: CompareOp, order: std::cmp::Ordering) -> Option<bool> {
    Some(match op {
        CompareOp::Eq => order.is_eq(),
        CompareOp::Ne => order.is_ne(),
        CompareOp::Lt => order.is_lt(),
        CompareOp::Le => order.is_le(),
        CompareOp::Gt => order.is_gt(),
        CompareOp::Ge => order.is_ge(),
        _ => return None,
    })
}

/// `sys.version_info op wanted`, where every Python that Triton supports agrees.
pub(crate) fn compare_python(op: CompareOp, wanted: &[i128]) -> Option<bool> {
    let older = *wanted <= [3, OLDEST_PYTHON][..];
    match op {
        CompareOp::Ge | CompareOp::Gt if older => Some(true),
        CompareOp::Lt | CompareOp::Le if older => Some(false),
        _ => None,
    }
}
