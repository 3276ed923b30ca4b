//! Members of PyTorch and of its tensors that host code misspells, and keywords that its functions do
//! not have.

use rustc_hash::{FxHashMap, FxHashSet};

use super::keyword_args;
use super::pieces::{Host, Piece};
use crate::builtins::{TORCH, torch};
use crate::diagnostic::{Code, Diagnostic, Severity, misspelled, other_ending};
use crate::hir::{Arg, ArgKind, Body, Expr, ExprId, Name, Param, Stmt};
use crate::project::{Resolution, Scope, may_be_of_torch, resolve};
use crate::source::TextRange;

/// Methods that tensors of PyTorch have, and arrays that pass for them elsewhere have not: what is
/// asked for one of them is a tensor.
const TELLING: &[&str] = &[
    "contiguous",
    "data_ptr",
    "element_size",
    "is_contiguous",
    "new_empty",
    "new_zeros",
    "numel",
    "stride",
];

/// What arrays have as well: what has a device beside, or one of the others nearly, is a tensor.
const SHARED: &[&str] = &["dtype", "ndim", "shape"];

/// The tensors that a context of `torch.autograd.Function` keeps.
const SAVED: &str = "saved_tensors";

/// Attributes of a tensor that are tensors.
const PARTS: &[&str] = &["T", "mT", "data"];

/// What arrays of NumPy have, which pass for tensors in much of host code.
const OF_ARRAYS: &[&str] = &["strides"];

/// What is wrong with what a piece of host code asks of PyTorch.
pub(super) fn check(host: &Host<'_>, piece: &Piece<'_>) -> Vec<Diagnostic> {
    let asks = Asks { host, piece, tensors: tensors(host, piece) };
    let mut found: Vec<Diagnostic> =
        piece.attributes().filter_map(|attribute| asks.member(attribute)).collect();
    for (callee, args) in piece.calls() {
        found.extend(asks.keywords(callee, args));
    }
    found
}

/// As [`check`], of the members of PyTorch and its modules alone.
pub(super) fn members(host: &Host<'_>, piece: &Piece<'_>) -> Vec<Diagnostic> {
    let asks = Asks { host, piece, tensors: FxHashSet::default() };
    let of_modules = piece.attributes().filter(|(value, ..)| asks.torch_path(*value).is_some());
    of_modules.filter_map(|attribute| asks.member(attribute)).collect()
}

/// The names of a piece that stand for tensors of PyTorch wherever they are bound.
fn tensors(host: &Host<'_>, piece: &Piece<'_>) -> FxHashSet<Name> {
    if piece.is_head() {
        return FxHashSet::default();
    }
    let bindings = bindings(host, piece);
    let tensors = bindings.keys().map(|name| (*name).clone()).collect();
    let mut asks = Asks { host, piece, tensors };
    // What is bound to something else is none, and neither is what is made of it.
    loop {
        let is_other = |binding: &Binding| match binding {
            Binding::Value(value) => !asks.is_tensor(*value),
            Binding::Tensor => false,
            Binding::Other => true,
        };
        let is_lost = |name: &&Name| bindings[*name].iter().any(is_other);
        let others: Vec<Name> = asks.tensors.iter().filter(is_lost).cloned().collect();
        if others.is_empty() {
            return asks.tensors;
        }
        asks.tensors.retain(|name| !others.contains(name));
    }
}

/// What a name is bound to in one place.
enum Binding {
    /// What an expression gives.
    Value(ExprId),
    /// A tensor, as a parameter is that is known to be one.
    Tensor,
    /// Anything else.
    Other,
}

/// Whether an expression is what a context has saved.
fn is_saved(body: &Body, id: ExprId) -> bool {
    matches!(&body.exprs[id], Expr::Attribute { attr, .. } if &**attr == SAVED)
}

/// Whether each name of a tuple gets one of the tensors that a context has saved.
fn is_unpacked(body: &Body, target: ExprId, value: ExprId) -> bool {
    let Expr::Tuple(targets) = &body.exprs[target] else { return false };
    is_saved(body, value) && targets.iter().all(|it| matches!(body.exprs[*it], Expr::Name(_)))
}

/// All that the names of a piece are bound to.
fn bindings<'p>(host: &Host<'_>, piece: &Piece<'p>) -> FxHashMap<&'p Name, Vec<Binding>> {
    let body = piece.body;
    let mut bindings: FxHashMap<&Name, Vec<Binding>> = FxHashMap::default();
    let mut bind = |name, binding| bindings.entry(name).or_default().push(binding);
    let gradients = host.is_backward(piece);
    for (at, param) in piece.params.iter().enumerate() {
        let is_tensor = gradients && at > 0 || is_tensor_param(host, piece, param);
        bind(&param.name, if is_tensor { Binding::Tensor } else { Binding::Other });
    }
    for stmt in body.stmts.values() {
        match stmt {
            Stmt::Assign { targets, value } => {
                for target in targets {
                    for name in body.names_in(*target) {
                        let given = given(body, (*target, *value), name);
                        let binding = match given {
                            Some(value) => Binding::Value(value),
                            None if is_unpacked(body, *target, *value) => Binding::Tensor,
                            None => Binding::Other,
                        };
                        bind(name, binding);
                    }
                }
            }
            Stmt::AugAssign { .. } => {}
            stmt => {
                let names = stmt.targets().into_iter().flat_map(|target| body.names_in(target));
                names.for_each(|name| bind(name, Binding::Other));
            }
        }
    }
    let within = body.exprs.keys().flat_map(|expr| body.bound_by(expr));
    within.for_each(|name| bind(name, Binding::Other));
    bindings
}

/// What an assignment of `value` to `target` gives a name in it.
fn given(body: &Body, (target, value): (ExprId, ExprId), name: &Name) -> Option<ExprId> {
    match (&body.exprs[target], &body.exprs[value]) {
        (Expr::Name(_), _) => Some(value),
        (Expr::Tuple(targets), Expr::Tuple(values)) if targets.len() == values.len() => {
            let mut pairs = targets.iter().zip(values);
            pairs.find(|(target, _)| body.exprs[**target].is_name(name)).map(|(_, value)| *value)
        }
        _ => None,
    }
}

/// Whether a parameter is a tensor by its annotation, or by what the code asks of it.
fn is_tensor_param(host: &Host<'_>, piece: &Piece<'_>, param: &Param) -> bool {
    let exprs = &piece.body.exprs;
    let may_be_of_torch = |root: &Name| {
        let scope = Scope { file: host.file, path: &piece.path };
        may_be_of_torch(&resolve(host.sources, scope, root))
    };
    match param.annotation.map(|annotation| &exprs[annotation]) {
        Some(Expr::Attribute { value, attr }) => {
            let root = match &exprs[*value] {
                Expr::Name(root) => Some(root),
                _ => None,
            };
            &**attr == "Tensor" && root.is_none_or(may_be_of_torch)
        }
        Some(Expr::Name(name)) => &**name == "Tensor" && may_be_of_torch(name),
        Some(_) => false,
        None => {
            let asked = exprs.values().filter_map(|expr| match expr {
                Expr::Attribute { value, attr } if exprs[*value].is_name(&param.name) => {
                    Some(&**attr)
                }
                _ => None,
            });
            let asked: FxHashSet<&str> = asked.collect();
            let is_near = |attr: &&str| {
                let meant = if OF_ARRAYS.contains(attr) { *attr } else { meant(attr) };
                meant == "device" || TELLING.contains(&meant)
            };
            asked.iter().any(|attr| TELLING.contains(attr))
                || asked.iter().any(is_near) && SHARED.iter().any(|attr| asked.contains(attr))
                || is_likened(piece, &param.name)
        }
    }
}

/// Whether the code makes a tensor like what a name stands for: `torch.empty_like(x)`.
fn is_likened(piece: &Piece<'_>, name: &Name) -> bool {
    let exprs = &piece.body.exprs;
    piece.calls().any(|(callee, args)| {
        let Expr::Attribute { value, attr } = &exprs[callee] else { return false };
        let makes_like = attr.ends_with("_like") && torch::gives_tensor(attr);
        let first = args.first().filter(|arg| arg.kind == ArgKind::Positional);
        makes_like
            && exprs[*value].is_name(TORCH)
            && first.is_some_and(|first| exprs[first.value].is_name(name))
    })
}

struct Asks<'a> {
    host: &'a Host<'a>,
    piece: &'a Piece<'a>,
    tensors: FxHashSet<Name>,
}

impl Asks<'_> {
    fn expr(&self, id: ExprId) -> &Expr {
        &self.piece.body.exprs[id]
    }

    /// The path below `torch` that an expression names.
    fn torch_path(&self, id: ExprId) -> Option<String> {
        match self.host.meaning(self.piece, id) {
            Resolution::External(path) if path.first().is_some_and(|first| &**first == TORCH) => {
                Some(path.join("."))
            }
            _ => None,
        }
    }

    /// Whether an expression is certainly a tensor.
    fn is_tensor(&self, id: ExprId) -> bool {
        match self.expr(id) {
            Expr::Name(name) => self.tensors.contains(name),
            Expr::Call { callee, .. } => match self.expr(*callee) {
                Expr::Attribute { value, attr } if self.is_tensor(*value) => {
                    torch::method_gives_tensor(meant(attr))
                }
                Expr::Attribute { attr, value } => {
                    torch::gives_tensor(attr)
                        && self.torch_path(*value).is_some_and(|path| path == TORCH)
                }
                _ => false,
            },
            Expr::Attribute { value, attr } => PARTS.contains(&&**attr) && self.is_tensor(*value),
            Expr::Subscript { value, .. } => {
                is_saved(self.piece.body, *value) || self.is_tensor(*value)
            }
            Expr::Binary { lhs, rhs, .. } => self.is_tensor(*lhs) || self.is_tensor(*rhs),
            _ => false,
        }
    }

    /// A member that PyTorch, or a tensor, has under a name nearly like it.
    fn member(&self, (value, attr, range): (ExprId, &Name, TextRange)) -> Option<Diagnostic> {
        let (owner, members) = match self.torch_path(value) {
            Some(path) => {
                let members = torch::members(&path)?;
                (path, members)
            }
            None if self.is_tensor(value) && !OF_ARRAYS.contains(&&**attr) => {
                ("a tensor".to_owned(), torch::tensor_members()?)
            }
            None => return None,
        };
        if members.contains(&**attr) || torch::may_be_there(attr) || self.host.sets(attr) {
            return None;
        }
        let members = members.iter().copied();
        let best = misspelled(attr, members.clone()).or_else(|| other_ending(attr, members))?;
        let is_guessed = matches!(self.expr(value), Expr::Name(_));
        if self.host.is_set_elsewhere(attr) || is_guessed && self.host.is_read_repeatedly(attr) {
            return None;
        }
        let message = match owner.as_str() {
            "a tensor" => format!("a tensor has no attribute `{attr}`"),
            owner => format!("`{owner}` has no member `{attr}`"),
        };
        Some(in_this_release(self.host.misspelled(Code::NoAttribute, range, message, best)))
    }

    /// Keywords that a function of PyTorch, or a method of a tensor, does not have.
    fn keywords(&self, callee: ExprId, args: &[Arg]) -> Vec<Diagnostic> {
        let Expr::Attribute { value, attr } = self.expr(callee) else { return Vec::new() };
        let is_function = self.torch_path(*value).is_some_and(|path| path == TORCH);
        let is_method = !is_function && self.is_tensor(*value);
        let known = torch::keywords(attr, is_method).filter(|_| is_function || is_method);
        let Some(known) = known else { return Vec::new() };
        let unknown = keyword_args(args)
            .filter(|(name, _)| !known.contains(&***name) && !torch::is_other_keyword(name));
        let function = if is_function { format!("{TORCH}.{attr}") } else { attr.to_string() };
        let finding =
            |argument| self.host.keyword(self.piece, argument, &function, known.iter().copied());
        unknown.filter_map(finding).map(in_this_release).collect()
    }
}

/// What is said of the release of PyTorch that is known here: another may have what is missed.
fn in_this_release(found: Diagnostic) -> Diagnostic {
    Diagnostic { severity: Severity::Warning, ..found }
}

/// The member of tensors that a name stands for, which may be misspelled.
fn meant(attr: &str) -> &str {
    torch::tensor_member_near(attr).unwrap_or(attr)
}
