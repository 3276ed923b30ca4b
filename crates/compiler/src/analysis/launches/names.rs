//! Names in host code that nothing defines, and members that Triton does not have.

use rustc_hash::FxHashSet;

use super::{device, keyword_args, own, torch};
use crate::builtins::{self, LANGUAGE, TRITON, TritonVersion};
use crate::diagnostic::{Code, Diagnostic, misspelled, suggest};
use crate::eval::dtype::DType;
use crate::hir::{
    Arg, Body, Expr, ExprId, Item, ItemKind, Literal, MATH, MainBlock, Module, Name, Occasion,
    PYTHON_NAMES, Param, SourceMap, Stmt, Unbound,
};
use crate::project::{
    self, ItemRef, Resolution, Scope, Sources, is_expected_to_fail, item, jit_functions,
    launch_scope, resolve, resolve_expr,
};
use crate::source::{FileId, FileRange, TextRange};

/// The class of descriptors that host code makes, and what is called on it.
const DESCRIPTOR: &str = "tools.tensor_descriptor.TensorDescriptor";
const DESCRIPTOR_MEMBERS: &[&str] = &["from_tensor"];

/// The class of configurations of kernels.
const CONFIG: &str = "Config";

/// Modules of Triton that are imported by their paths.
const TRITON_MODULES: &[&str] = &[
    "backends",
    "compiler",
    "errors",
    "experimental",
    "instrumentation",
    "knobs",
    "language",
    "profiler",
    "runtime",
    "testing",
    "tools",
];

/// A module that Triton had before version 3.0.
const REMOVED: &str = "ops";

/// Members of other versions of Triton may be called anything but nearly what a known one is: so many
/// letters apart, more where names are long.
const NEAR: usize = 2;

/// Shorter names are part of too many others to stand for them.
const LEAST_LETTERS: usize = 4;

/// Host code whose names are looked at: a function, the head of one that is compiled or of a class, or
/// an outermost statement.
pub(super) struct Piece<'a> {
    pub(super) path: Vec<Name>,
    pub(super) body: &'a Body,
    pub(super) map: &'a SourceMap,
    pub(super) params: &'a [Param],
    /// The names that it binds itself, apart from its parameters.
    bound: FxHashSet<&'a Name>,
    /// Where what is compiled begins, of the head of a function that is.
    end: Option<u32>,
}

/// Names that nothing defines in the code of `file` around its kernels and launches, and members and
/// keywords that are misspelled there. What is inside of jit functions evaluation looks at.
pub(super) fn check(sources: &dyn Sources, file: FileId, module: &Module) -> Vec<Diagnostic> {
    let compiled = jit_functions(sources, file);
    if compiled.is_empty() && module.launches.is_empty() {
        return Vec::new();
    }
    let mut found = undefined(sources, file, module, &compiled);
    let pieces = pieces(file, module, &compiled);
    let launching = module.launches.iter().map(|launch| launch_scope(module, launch)).collect();
    let host = Host { sources, file, module, stored: stored(&pieces), launching };
    for piece in &pieces {
        found.extend(host.members(piece));
        found.extend(host.keywords(piece));
        found.extend(torch::check(&host, piece));
        found.extend(own::check(&host, piece));
        found.extend(device::check(&host, piece));
    }
    found.extend(module.items.iter().filter_map(|item| host.import(item)));
    found.retain(|found| !is_expected_to_fail(sources, file, found.primary.range));
    found
}

fn pieces<'m>(file: FileId, module: &'m Module, compiled: &[ItemRef]) -> Vec<Piece<'m>> {
    let of_item = |(index, item): (usize, &'m Item)| match &item.kind {
        ItemKind::Function(function) => {
            let (path, code) = (item.body_scope(), (&*function.body, &function.map));
            if compiled.contains(&ItemRef { file, index: index as u32 }) {
                return Some(Piece::head(path, code, item.name_range.start));
            }
            Some(Piece { params: &function.params, ..Piece::new(path, code) })
        }
        ItemKind::Class(class) => Some(Piece::new(item.scope.clone(), (&class.body, &class.map))),
        _ => None,
    };
    let of_main = |main: &'m MainBlock| Piece::new(Vec::new(), (&main.body, &main.map));
    let items = module.items.iter().enumerate().filter_map(of_item);
    items.chain(module.mains.iter().map(of_main)).collect()
}

/// Attributes that some code of a file sets, or asks for by a string.
fn stored(pieces: &[Piece<'_>]) -> FxHashSet<Name> {
    let mut stored = FxHashSet::default();
    for body in pieces.iter().map(|piece| piece.body) {
        let mut open: Vec<ExprId> = body.stmts.values().flat_map(Stmt::targets).collect();
        while let Some(target) = open.pop() {
            match &body.exprs[target] {
                Expr::Attribute { attr, .. } => {
                    stored.insert(attr.clone());
                }
                Expr::Tuple(_) | Expr::List(_) | Expr::Starred(_) => {
                    body.exprs[target].for_each_child(|child| open.push(child));
                }
                _ => {}
            }
        }
        stored.extend(body.exprs.values().filter_map(|expr| match expr {
            Expr::Literal(Literal::Str(text)) => Some(text.clone()),
            _ => None,
        }));
    }
    stored
}

fn undefined(
    sources: &dyn Sources,
    file: FileId,
    module: &Module,
    compiled: &[ItemRef],
) -> Vec<Diagnostic> {
    // Decorators are host code.
    let inside = compiled.iter().filter_map(|at| {
        let item = item(sources, *at)?;
        Some(TextRange { start: item.name_range.start, end: item.range.end })
    });
    let inside: Vec<TextRange> = inside.collect();
    // What nothing binds may stand for what a file has without an import.
    let scope = Scope { file, path: &[] };
    let is_host = |unbound: &&Unbound| {
        !inside.iter().any(|function| function.contains_range(unbound.range))
            && !matches!(
                resolve(sources, scope, &unbound.name),
                Resolution::Triton(_) | Resolution::TritonModule(_)
            )
    };
    // What annotations name need not be there, but a misspelled name is a mistake.
    let is_told = |unbound: &&Unbound| {
        let known =
            || unbound.visible.iter().map(|name| &**name).chain(PYTHON_NAMES.iter().copied());
        !unbound.in_annotation || misspelled(&unbound.name, known()).is_some()
    };
    let finding = |unbound: &Unbound| {
        let at = FileRange { file, range: unbound.range };
        let message = format!("`{}` is not defined", unbound.name);
        let found = Diagnostic::new(Code::UndefinedName, at, message);
        let visible = unbound.visible.iter().map(|name| &**name);
        let known = visible.chain(PYTHON_NAMES.iter().copied().filter(|_| unbound.in_annotation));
        match suggest(&unbound.name, known) {
            Some(name) => found.with_suggestion(name),
            None => found,
        }
    };
    module.unbound.iter().filter(is_host).filter(is_told).map(finding).collect()
}

/// Host code of one file.
pub(super) struct Host<'a> {
    pub(super) sources: &'a dyn Sources,
    pub(super) file: FileId,
    pub(super) module: &'a Module,
    /// Attributes that its code sets, or asks for by a string.
    stored: FxHashSet<Name>,
    /// The scopes that launch.
    pub(super) launching: FxHashSet<Vec<Name>>,
}

impl<'a> Piece<'a> {
    /// A whole body with the names that lead to it.
    fn new(path: Vec<Name>, (body, map): (&'a Body, &'a SourceMap)) -> Piece<'a> {
        let bound = body.bound_names().collect();
        Piece { path, body, map, params: &[], bound, end: None }
    }

    /// What of a body stands before `end`.
    fn head(path: Vec<Name>, (body, map): (&'a Body, &'a SourceMap), end: u32) -> Piece<'a> {
        let exprs = body.exprs.keys().filter(|expr| map.exprs[*expr].end <= end);
        let bound = exprs.flat_map(|expr| body.bound_by(expr)).collect();
        Piece { path, body, map, params: &[], bound, end: Some(end) }
    }

    /// Whether it is the head of a function that is compiled.
    pub(super) fn is_head(&self) -> bool {
        self.end.is_some()
    }

    /// Whether an expression belongs to it.
    fn holds(&self, at: TextRange) -> bool {
        self.end.is_none_or(|end| at.end <= end)
    }

    /// The attributes that are read, with what of and where the names stand.
    pub(super) fn attributes(&self) -> impl Iterator<Item = (ExprId, &'a Name, TextRange)> {
        let targets: FxHashSet<ExprId> = self.body.stmts.values().flat_map(Stmt::targets).collect();
        let (body, map) = (self.body, self.map);
        let attributes = body.exprs.iter().filter_map(move |(id, expr)| match expr {
            Expr::Attribute { value, attr } if !targets.contains(&id) => {
                let end = map.exprs[id].end;
                let start = end.saturating_sub(attr.len() as u32);
                Some((*value, attr, TextRange { start, end }))
            }
            _ => None,
        });
        attributes.filter(|(.., range)| self.holds(*range))
    }

    /// The calls, with what is called and the arguments.
    pub(super) fn calls(&self) -> impl Iterator<Item = (ExprId, &'a [Arg])> {
        let (body, map) = (self.body, self.map);
        body.exprs.iter().filter_map(move |(id, expr)| match expr {
            Expr::Call { callee, args } if self.holds(map.exprs[id]) => Some((*callee, &**args)),
            _ => None,
        })
    }

    /// Whether the code binds a name itself.
    pub(super) fn binds(&self, name: &Name) -> bool {
        self.rebinds(name) || self.params.iter().any(|param| param.name == *name)
    }

    /// Whether the code binds a name that may be one of its parameters.
    pub(super) fn rebinds(&self, name: &Name) -> bool {
        self.bound.contains(name)
    }
}

impl Host<'_> {
    /// What an expression means; nothing that is known where the code binds the name by itself.
    pub(super) fn meaning(&self, piece: &Piece<'_>, id: ExprId) -> Resolution {
        let mut root = id;
        while let Expr::Attribute { value, .. } = &piece.body.exprs[root] {
            root = *value;
        }
        match &piece.body.exprs[root] {
            Expr::Name(name) if piece.binds(name) => Resolution::Unknown,
            Expr::Name(_) => {
                let scope = Scope { file: self.file, path: &piece.path };
                resolve_expr(self.sources, scope, piece.body, id)
            }
            _ => Resolution::Unknown,
        }
    }

    /// Whether the file sets an attribute of this name on some object, or names it in a string.
    pub(super) fn sets(&self, attr: &Name) -> bool {
        self.stored.contains(attr)
    }

    /// What the file sets of any object, or names in a string.
    pub(super) fn names_set(&self) -> FxHashSet<Name> {
        self.stored.clone()
    }

    /// A member or attribute that is misspelled.
    pub(super) fn misspelled(
        &self,
        code: Code,
        range: TextRange,
        message: String,
        best: &str,
    ) -> Diagnostic {
        let at = FileRange { file: self.file, range };
        Diagnostic::new(code, at, message).with_suggestion(best)
    }

    /// A keyword that a function does not have.
    pub(super) fn keyword<'n>(
        &self,
        piece: &Piece<'_>,
        (name, value): (&Name, ExprId),
        function: &str,
        known: impl Iterator<Item = &'n str> + Clone,
    ) -> Option<Diagnostic> {
        let text = self.sources.text(self.file)?;
        let range = super::keyword_range(&text, name, piece.map.exprs[value])?;
        let message = format!("`{function}` has no parameter `{name}`");
        let at = FileRange { file: self.file, range };
        let found = Diagnostic::new(Code::UnknownKeyword, at, message);
        let best = misspelled(name, known.clone())
            .or_else(|| known.into_iter().find(|known| abbreviates(name, known)));
        Some(match best {
            Some(best) => found.with_suggestion(best),
            None => found,
        })
    }

    /// Members of Triton that are misspelled.
    fn members(&self, piece: &Piece<'_>) -> Vec<Diagnostic> {
        piece.attributes().filter_map(|attribute| self.member(piece, attribute)).collect()
    }

    /// Whether an expression is a name that imports bind to the package as a whole.
    fn is_package(&self, value: &Expr) -> bool {
        let Expr::Name(name) = value else { return false };
        let items = self.module.items_named(name);
        let mut bound = items.map(|index| &self.module.items[index as usize]).peekable();
        let is_import = |item: &Item| matches!(&item.kind, ItemKind::Import { path } if path.iter().map(|part| &**part).eq([TRITON]));
        bound.peek().is_some() && bound.all(is_import)
    }

    fn member(
        &self,
        piece: &Piece<'_>,
        (value, attr, range): (ExprId, &Name, TextRange),
    ) -> Option<Diagnostic> {
        let (owner, members) = match self.meaning(piece, value) {
            // What stands in modules of their own, and members of the package as well, has others.
            Resolution::TritonModule(_) if self.is_package(&piece.body.exprs[value]) => {
                let members = builtins::members(TRITON);
                ("triton", members.into_iter().map(|member| member.name).collect())
            }
            Resolution::TritonModule(module) if *module == *"language" => {
                let members = builtins::members(LANGUAGE).into_iter().map(|member| member.name);
                (LANGUAGE, members.chain(DType::ALL.iter().map(|dtype| dtype.member())).collect())
            }
            Resolution::Triton(class) if *class == *DESCRIPTOR => {
                ("TensorDescriptor", DESCRIPTOR_MEMBERS.to_vec())
            }
            Resolution::External(path) if path.iter().map(|part| &**part).eq(["math"]) => {
                ("math", MATH.to_vec())
            }
            _ => return None,
        };
        if members.contains(&&**attr) || self.sets(attr) {
            return None;
        }
        let near = suggest(attr, members.iter().copied())
            .filter(|best| strsim::damerau_levenshtein(attr, best) <= NEAR.max(attr.len() / 5));
        let best = match owner {
            "triton" | "TensorDescriptor" => near
                .or_else(|| members.iter().copied().find(|member| abbreviates(attr, member)))
                .or_else(|| misspelled(attr, members.iter().copied())),
            _ => misspelled(attr, members.iter().copied()),
        };
        let best = best?;
        let message = format!("`{owner}` has no member `{attr}`");
        Some(self.misspelled(Code::UnknownBuiltin, range, message, best))
    }

    /// Keywords of functions of Triton, as decorators are, that are misspelled.
    fn keywords(&self, piece: &Piece<'_>) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (callee, args) in piece.calls() {
            let Resolution::Triton(path) = self.meaning(piece, callee) else { continue };
            let Some(builtin) = builtins::member(TRITON, &path) else { continue };
            let known = builtin.parameters(TritonVersion::V3_9).iter().map(|param| param.name);
            for (name, value) in keyword_args(args) {
                let is_known = known.clone().any(|known| *known == **name);
                if is_known {
                    continue;
                }
                // Versions and forks of Triton have options of their own.
                if misspelled(name, known.clone()).is_some() || self.is_misplaced(&path, name) {
                    found.extend(self.keyword(piece, (name, value), &path, known.clone()));
                }
            }
        }
        found
    }

    /// Whether a keyword of what tunes kernels belongs elsewhere: into the dict of a configuration, which
    /// has parameters of kernels, or to a configuration.
    fn is_misplaced(&self, member: &str, name: &Name) -> bool {
        let is_parameter = || {
            let kernels = jit_functions(self.sources, self.file);
            let heads = kernels.iter().filter_map(|at| project::function(self.sources, *at));
            let mut params = heads.flat_map(|function| function.params.clone());
            params.any(|param| param.name == *name)
        };
        let is_option = || {
            let config =
                builtins::member(TRITON, CONFIG).map(|it| it.parameters(TritonVersion::V3_9));
            config.into_iter().flatten().any(|option| *option.name == **name)
        };
        match member {
            CONFIG => is_parameter(),
            "autotune" => is_option(),
            _ => false,
        }
    }

    /// An import of a module of Triton that is misspelled, or that is always tried and was removed.
    fn import(&self, item: &Item) -> Option<Diagnostic> {
        let path = match &item.kind {
            ItemKind::Import { path } | ItemKind::ImportFrom { level: 0, path, .. } => path,
            _ => return None,
        };
        let [package, module, ..] = path.as_slice() else { return None };
        if &**package != TRITON || TRITON_MODULES.contains(&&**module) {
            return None;
        }
        let text = self.sources.text(self.file)?;
        let within = text.get(item.range.start as usize..item.range.end as usize)?;
        let start = item.range.start as usize + within.find(&**module)?;
        let range = TextRange::new(start, start + module.len());
        let message = format!("`{TRITON}` has no module `{module}`");
        if &**module == REMOVED {
            let always = item.occasion == Occasion::Always && item.guard.is_none();
            let at = FileRange { file: self.file, range };
            let message = format!("{message} since version 3.0, so this import fails");
            return (always && item.scope.is_empty())
                .then(|| Diagnostic::new(Code::UnknownBuiltin, at, message));
        }
        let best = misspelled(module, TRITON_MODULES.iter().copied())?;
        Some(self.misspelled(Code::UnknownBuiltin, range, message, best))
    }
}

/// Whether one of two names is the other with letters left out, and both begin with the same:
/// `ceil_div` for `cdiv`.
pub(super) fn abbreviates(name: &str, known: &str) -> bool {
    let (short, long) = if name.len() < known.len() { (name, known) } else { (known, name) };
    let mut rest = long.chars();
    let is_part = short.chars().all(|letter| rest.any(|other| other == letter));
    is_part && short.len() >= LEAST_LETTERS && name.chars().next() == known.chars().next()
}
