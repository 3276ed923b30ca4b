//! Conditions of modules whose outcome the text shows: which of several definitions of a name
//! there is, where Triton, PyTorch with CUDA and a Python that Triton supports are installed.

use super::resolve::{MAX_WORK, Resolver};
use super::{ItemRef, Resolution, Scope, item, triton};
use crate::hir::{
    Arg, Body, CompareOp, Expr, ExprId, Guard, Item, ItemKind, Literal, Occasion, UnaryOp,
};
use crate::source::FileId;
use crate::specialization::TritonVersion;

/// Bindings looked at for one condition.
const CONDITION_WORK: u32 = 100;

/// The oldest minor version of Python 3 that Triton's releases support.
const OLDEST_PYTHON: i128 = 10;

/// A value of module-level code, as far as conditions need it.
#[derive(Debug, Clone, PartialEq)]
enum Fact {
    None,
    Bool(bool),
    Int(i128),
    Text(String),
    /// A version, or another tuple of integers.
    Numbers(Vec<i128>),
    /// `sys.version_info`.
    Python,
    /// `os.environ`, in which nothing is set unless somebody sets it.
    Environment,
    /// A module, function or class.
    Object,
}

impl Fact {
    fn truth(&self) -> Option<bool> {
        match self {
            Fact::None => Some(false),
            Fact::Bool(value) => Some(*value),
            Fact::Int(value) => Some(*value != 0),
            Fact::Text(text) => Some(!text.is_empty()),
            Fact::Numbers(numbers) => Some(!numbers.is_empty()),
            Fact::Python | Fact::Object => Some(true),
            Fact::Environment => None,
        }
    }
}

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
            let place = Place { file, before, body: &guard.body };
            let truth = self.fact(&place, guard.test).and_then(|fact| fact.truth());
            (self.version, self.work) = around;
            let outcome = truth.map(|truth| truth == guard.holds);
            self.conditions.insert(key, outcome);
            outcome
        });
        let first = outcomes.next()??;
        outcomes.all(|outcome| outcome == Some(first)).then_some(first)
    }

    fn fact(&mut self, place: &Place<'_>, id: ExprId) -> Option<Fact> {
        let body = place.body;
        match &body.exprs[id] {
            Expr::Literal(literal) => literal_fact(literal),
            Expr::Tuple(items) => {
                let number = |id: &ExprId| match body.exprs[*id] {
                    Expr::Literal(Literal::Int(value)) => Some(value),
                    _ => None,
                };
                items.iter().map(number).collect::<Option<_>>().map(Fact::Numbers)
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
            Expr::Name(_) | Expr::Attribute { .. } => {
                let found = self.named(place, id);
                self.of_name(found)
            }
            _ => None,
        }
    }

    fn named(&mut self, place: &Place<'_>, id: ExprId) -> Resolution {
        let scope = Scope { file: place.file, path: &[] };
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
            Resolution::External(path) => {
                let path: Vec<&str> = path.iter().map(|name| &**name).collect();
                match path.as_slice() {
                    ["sys", "version_info"] => Some(Fact::Python),
                    ["sys", "platform"] => Some(Fact::Text("linux".into())),
                    ["os", "name"] => Some(Fact::Text("posix".into())),
                    ["os", "environ"] => Some(Fact::Environment),
                    ["typing", "TYPE_CHECKING"] => Some(Fact::Bool(false)),
                    ["torch", "version", "hip"] => Some(Fact::None),
                    _ => None,
                }
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
        let place = Place { file: at.file, before: at.index, body };
        if certain { self.fact(&place, *value) } else { None }
    }

    fn called(&mut self, place: &Place<'_>, callee: ExprId, args: &[Arg]) -> Option<Fact> {
        if let Expr::Name(name) = &place.body.exprs[callee]
            && &**name == "hasattr"
            && let [object, member] = args
        {
            return self.has_attribute(place, object.value, member.value).map(Fact::Bool);
        }
        let Resolution::External(path) = self.named(place, callee) else { return None };
        let path: Vec<&str> = path.iter().map(|name| &**name).collect();
        match (path.as_slice(), args) {
            (["torch", "cuda", "is_available"], []) => Some(Fact::Bool(true)),
            (["packaging", "version", "parse" | "Version"], [text]) => {
                match self.fact(place, text.value)? {
                    Fact::Text(text) => version_numbers(&text).map(Fact::Numbers),
                    _ => None,
                }
            }
            _ => None,
        }
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

/// Where an expression of module-level code stands.
struct Place<'b> {
    file: FileId,
    /// Only items before this one count.
    before: u32,
    body: &'b Body,
}

fn literal_fact(literal: &Literal) -> Option<Fact> {
    Some(match literal {
        Literal::None => Fact::None,
        Literal::Bool(value) => Fact::Bool(*value),
        Literal::Int(value) => Fact::Int(*value),
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
fn compare_python(op: CompareOp, wanted: &[i128]) -> Option<bool> {
    let older = *wanted <= [3, OLDEST_PYTHON][..];
    match op {
        CompareOp::Ge | CompareOp::Gt if older => Some(true),
        CompareOp::Lt | CompareOp::Le if older => Some(false),
        _ => None,
    }
}
