//! Answers that outlive edits elsewhere.
//!
//! A module changes with every keystroke, since it says where everything stands. What is asked of
//! a function depends on less: on the heads of the items around it, and on the insides that were
//! looked at. Queries depend on these through values that hold the module of the moment but equal
//! one another as long as the part in question is the same. What they find is kept with places
//! that count from the starts of items; see [`super::anchored`].

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tile_compiler::hir::{Function, Item, ItemKind, Module, Name, apart};
use tile_compiler::project::{self, ArrayHead, Imports, ItemRef, Sources, Ways};
use tile_compiler::source::{FileId, LineIndex, TextRange};
use tile_compiler::specialization::{Usage, may_write, usage};

use super::{Analysis, Database, Db, SourceFile, folder_rules, line_index, module};

/// A module, equal to another one when the heads of its items are.
#[derive(Debug, Clone)]
pub(crate) struct Heads {
    /// The module as it stands.
    pub(crate) module: Arc<Module>,
    /// The text as it stands.
    pub(crate) text: Arc<str>,
    /// Where the lines of the text begin.
    pub(crate) lines: Arc<LineIndex>,
    /// Hashes of the heads' texts.
    texts: Vec<u64>,
}

impl PartialEq for Heads {
    fn eq(&self, other: &Heads) -> bool {
        self.texts == other.texts && apart::same_heads(&self.module, &other.module)
    }
}

/// Keeps the parts of this many files.
pub(super) fn keep_few(db: &mut Database, files: usize) {
    heads::set_lru_capacity(db, files);
    host_code::set_lru_capacity(db, files);
    inside::set_lru_capacity(db, files * ITEMS);
}

/// Items of a file that are looked into, in general.
const ITEMS: usize = 8;

/// The heads of the items of a file; `None` when there is no such file.
#[salsa::tracked(returns(ref), lru = 0)]
pub(crate) fn heads(db: &dyn Db, file: SourceFile) -> Option<Heads> {
    let text = file.text(db).as_ref()?.text().clone();
    let module = module(db, file).clone();
    let texts = module.items.iter().map(|item| match &item.kind {
        ItemKind::Function(function) => {
            let end = head_end(function).max(item.name_range.end);
            hash(&text, TextRange { start: item.range.start, end })
        }
        ItemKind::Assign { .. } => hash(&text, item.range),
        _ => 0,
    });
    let texts = texts.collect();
    Some(Heads { module, text, lines: line_index(db, file).clone(), texts })
}

/// Where the head of a function ends: after its last parameter, or the return annotation.
fn head_end(function: &Function) -> u32 {
    let parts = function.params.iter().flat_map(|param| [param.annotation, param.default]);
    let exprs = parts.chain([function.returns]).flatten();
    let ends = exprs.map(|expr| function.map.exprs[expr].end);
    ends.chain(function.params.iter().map(|param| param.range.end)).max().unwrap_or_default()
}

/// What stands at `range`, and how far from the start of its line.
fn hash(text: &str, range: TextRange) -> u64 {
    let range = range.as_usize();
    let before = text.get(..range.start).unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    before.rsplit(['\n', '\r']).next().map(str::len).hash(&mut hasher);
    text.get(range).hash(&mut hasher);
    hasher.finish()
}

/// An item, equal to another one when what it holds inside is. Nothing else of its module is held:
/// there is an answer for each item, and those that are not asked for again stay as they were.
#[derive(Debug, Clone)]
struct Inside {
    item: Item,
    text: u64,
}

impl PartialEq for Inside {
    fn eq(&self, other: &Inside) -> bool {
        self.text == other.text && apart::same_inside(&self.item, &other.item)
    }
}

#[salsa::tracked(returns(ref), lru = 0)]
fn inside(db: &dyn Db, file: SourceFile, index: u32) -> Option<Inside> {
    let text = file.text(db).as_ref()?.text();
    let item = module(db, file).items.get(index as usize)?.clone();
    let text = hash(text, item.range);
    Some(Inside { item, text })
}

/// The function that is this item of a file, for whoever depends on what it holds inside and not on
/// where it stands.
pub(crate) fn function(db: &dyn Db, file: SourceFile, index: u32) -> Option<&Arc<Function>> {
    match &inside(db, file, index).as_ref()?.item.kind {
        ItemKind::Function(function) => Some(function),
        _ => None,
    }
}

/// The jit functions of a file, as items, and whether they are kernels.
#[salsa::tracked(returns(ref))]
pub(crate) fn jit_items(db: &dyn Db, file: SourceFile) -> Vec<(u32, bool)> {
    let sources = Analysis(db);
    let kernels = project::kernels(&sources, file.id(db));
    let functions = project::jit_functions(&sources, file.id(db)).into_iter();
    functions.map(|at| (at.index, kernels.contains(&at))).collect()
}

/// Whether each parameter of the jit function that is this item of a file may be written to: host
/// code asks no more of what stands inside of kernels.
#[salsa::tracked(returns(ref))]
fn written(db: &dyn Db, file: SourceFile, index: u32) -> Arc<[bool]> {
    let sources = Observed::kernels(db, folder_rules(db, file).capability);
    may_write(&sources, ItemRef { file: file.id(db), index })
}

/// What specializations of the jit function that is this item of a file follow from of its body.
#[salsa::tracked(returns(ref))]
fn body_usage(db: &dyn Db, file: SourceFile, index: u32) -> Usage {
    let sources = Observed::kernels(db, folder_rules(db, file).capability);
    usage(&sources, ItemRef { file: file.id(db), index })
}

/// The jit functions that the jit function names which is this item of a file.
#[salsa::tracked(returns(ref))]
pub(super) fn callees(db: &dyn Db, file: SourceFile, index: u32) -> Arc<[ItemRef]> {
    let sources = Observed::kernels(db, folder_rules(db, file).capability);
    project::callees(&sources, ItemRef { file: file.id(db), index })
}

/// A module, equal to another one when its host code is: everything but the insides of its jit
/// functions.
#[derive(Debug, Clone)]
struct HostCode {
    module: Arc<Module>,
    kernels: Vec<(u32, bool)>,
}

impl PartialEq for HostCode {
    fn eq(&self, other: &HostCode) -> bool {
        let is_kernel = |index| self.kernels.iter().any(|(kernel, _)| *kernel == index);
        let indices = |code: &HostCode| code.kernels.iter().map(|(at, _)| *at).collect::<Vec<_>>();
        indices(self) == indices(other) && apart::same_host(&self.module, &other.module, is_kernel)
    }
}

#[salsa::tracked(returns(ref), lru = 0)]
fn host_code(db: &dyn Db, file: SourceFile) -> Option<HostCode> {
    file.text(db).as_ref()?;
    Some(HostCode { module: module(db, file).clone(), kernels: jit_items(db, file).clone() })
}

/// The files as seen by whoever keeps what it finds: it depends on no more than what it looks at.
/// Places that it finds must be kept as [`super::anchored::Anchored`].
#[derive(Clone, Copy)]
pub(crate) struct Observed<'db> {
    db: &'db dyn Db,
    host: bool,
    capability: u32,
}

impl<'db> Observed<'db> {
    /// For what looks at kernels, on devices of this compute capability.
    pub(crate) fn kernels(db: &'db dyn Db, capability: u32) -> Observed<'db> {
        Observed { db, host: false, capability }
    }

    /// For what looks at host code as well.
    pub(crate) fn host(db: &'db dyn Db, capability: u32) -> Observed<'db> {
        Observed { db, host: true, capability }
    }
}

impl Sources for Observed<'_> {
    fn module(&self, file: FileId) -> Option<Arc<Module>> {
        self.checkpoint();
        let file = self.db.file_of(file)?;
        if self.host {
            return Some(host_code(self.db, file).as_ref()?.module.clone());
        }
        Some(heads(self.db, file).as_ref()?.module.clone())
    }

    fn look_inside(&self, at: ItemRef) {
        if let Some(file) = self.db.file_of(at.file) {
            inside(self.db, file, at.index);
        }
    }

    fn written(&self, at: ItemRef) -> Option<Arc<[bool]>> {
        let file = self.db.file_of(at.file).filter(|_| self.host)?;
        Some(written(self.db, file, at.index).clone())
    }

    fn usage(&self, at: ItemRef) -> Option<Usage> {
        let file = self.db.file_of(at.file).filter(|_| self.host)?;
        Some(body_usage(self.db, file, at.index).clone())
    }

    fn text(&self, file: FileId) -> Option<Arc<str>> {
        // What is read of it lies in the items that were looked at.
        Some(heads(self.db, self.db.file_of(file)?).as_ref()?.text.clone())
    }

    fn lines(&self, file: FileId) -> Option<Arc<LineIndex>> {
        Some(heads(self.db, self.db.file_of(file)?).as_ref()?.lines.clone())
    }

    fn path(&self, file: FileId) -> String {
        Analysis(self.db).path(file)
    }

    fn import(&self, from: FileId, level: u32, path: &[Name]) -> Option<FileId> {
        Analysis(self.db).import(from, level, path)
    }

    fn array(&self, from: FileId, path: &str) -> Option<ArrayHead> {
        Analysis(self.db).array(from, path)
    }

    fn checkpoint(&self) {
        Analysis(self.db).checkpoint();
    }

    fn capability(&self) -> u32 {
        self.capability
    }

    fn imports(&self, file: FileId) -> Option<Imports> {
        Analysis(self.db).imports(file)
    }

    fn ways(&self, file: FileId) -> Option<Arc<Ways>> {
        Analysis(self.db).ways(file)
    }

    fn importers(&self, file: FileId) -> Vec<FileId> {
        Analysis(self.db).importers(file)
    }
}
