//! Host code of a file in pieces, and what names mean there.

use rustc_hash::FxHashSet;

use crate::diagnostic::{Code, Diagnostic, misspelled};
use crate::hir::{
    Arg, Body, Expr, ExprId, Item, ItemKind, Literal, MainBlock, Module, Name, Occasion, Param,
    SourceMap, Stmt,
};
use crate::project::{ItemRef, Resolution, Scope, Sources, launch_scope, resolve_expr, routes};
use crate::source::{FileId, FileRange, TextRange};

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

/// Host code of one file.
pub(super) struct Host<'a> {
    pub(super) sources: &'a dyn Sources,
    pub(super) file: FileId,
    pub(super) module: &'a Module,
    /// Attributes that its code sets, or asks for by a string.
    stored: FxHashSet<Name>,
    /// Attributes that several pieces of it read.
    repeated: FxHashSet<Name>,
    /// The scopes that launch.
    pub(super) launching: FxHashSet<Vec<Name>>,
}

/// The pieces of a file's host code, of which the functions `compiled` are kernels and what they call.
pub(super) fn pieces<'m>(file: FileId, module: &'m Module, compiled: &[ItemRef]) -> Vec<Piece<'m>> {
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

/// Attributes that several of these read.
fn repeated(pieces: &[Piece<'_>]) -> FxHashSet<Name> {
    let (mut met, mut repeated) = (FxHashSet::default(), FxHashSet::default());
    for piece in pieces {
        let read: FxHashSet<&Name> = piece.attributes().map(|(_, attr, _)| attr).collect();
        repeated
            .extend(read.iter().filter(|attr| met.contains(**attr)).map(|attr| (*attr).clone()));
        met.extend(read);
    }
    repeated
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

impl<'a> Host<'a> {
    /// That of `file`, which is made of `pieces`.
    pub(super) fn new(
        sources: &'a dyn Sources,
        file: FileId,
        module: &'a Module,
        pieces: &[Piece<'_>],
    ) -> Host<'a> {
        let launching = module.launches.iter().map(|launch| launch_scope(module, launch)).collect();
        Host {
            sources,
            file,
            module,
            stored: stored(pieces),
            repeated: repeated(pieces),
            launching,
        }
    }

    /// Whether several pieces of the file read an attribute of this name: nobody makes the same mistake everywhere.
    pub(super) fn is_read_repeatedly(&self, attr: &Name) -> bool {
        self.repeated.contains(attr)
    }

    /// What an expression means; nothing that is known where the code binds the name by itself.
    pub(super) fn meaning(&self, piece: &Piece<'_>, id: ExprId) -> Resolution {
        let mut root = id;
        while let Expr::Attribute { value, .. } = &piece.body.exprs[root] {
            root = *value;
        }
        match &piece.body.exprs[root] {
            Expr::Name(name) if piece.binds(name) && !self.is_stood_in(piece, name) => {
                Resolution::Unknown
            }
            Expr::Name(_) => {
                let scope = Scope { file: self.file, path: &piece.path };
                resolve_expr(self.sources, scope, piece.body, id)
            }
            _ => Resolution::Unknown,
        }
    }

    /// Whether code outside of functions binds a name by an import, and otherwise only where that fails.
    fn is_stood_in(&self, piece: &Piece<'_>, name: &Name) -> bool {
        let items = self.module.items_named(name).map(|index| &self.module.items[index as usize]);
        let mut tried =
            items.filter(|item| item.scope.is_empty() && item.occasion != Occasion::Fallback);
        piece.path.is_empty() && tried.next().is_some_and(Item::is_import) && tried.next().is_none()
    }

    /// Whether the file sets an attribute of this name on some object, or names it in a string.
    pub(super) fn sets(&self, attr: &Name) -> bool {
        self.stored.contains(attr)
    }

    /// Whether a file that it imports does, or one that this imports in turn: classes that look like others may be
    /// theirs.
    pub(super) fn is_set_elsewhere(&self, attr: &Name) -> bool {
        let imported = routes::imported_files(self.sources, self.file);
        let sets = |file: &FileId| {
            let module = self.sources.module(*file).unwrap_or_default();
            stored(&pieces(*file, &module, &[])).contains(attr)
        };
        imported.iter().filter(|file| **file != self.file).any(sets)
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
}

/// Whether one of two names is the other with letters left out, and both begin with the same:
/// `ceil_div` for `cdiv`.
pub(super) fn abbreviates(name: &str, known: &str) -> bool {
    let (short, long) = if name.len() < known.len() { (name, known) } else { (known, name) };
    let mut rest = long.chars();
    let is_part = short.chars().all(|letter| rest.any(|other| other == letter));
    is_part && short.len() >= LEAST_LETTERS && name.chars().next() == known.chars().next()
}
