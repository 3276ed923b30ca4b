//! What a word in the source means.

mod quoted;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use tile_compiler::builtins::{self, Builtin};
use tile_compiler::hir::{Function, Item, ItemKind, Name};
use tile_compiler::project::{self, ItemRef, Resolution, Scope};
use tile_compiler::source::{FileId, TextRange};
use tile_compiler::syntax::Parse;
use tree_sitter::Node;

use crate::db::{self, Analysis, Db, SourceFile};
use crate::ide::tree::{ancestors, identifier_at, is_field, range};

/// What stands for the receiver of a method in texts about any tensor.
pub(crate) const ANY_TENSOR: &str = "x";

/// What a word means.
#[derive(Debug, Clone)]
pub(crate) enum Symbol {
    /// A parameter or variable of the function that is this item.
    Local(ItemRef, Name),
    /// A variable of the scenario with this index in its file.
    Variable(FileId, usize, Name),
    /// What an item of a file binds.
    Item(ItemRef),
    /// A file, as a module.
    File(FileId),
    /// A module of the `triton` package, by its path inside it; see [`Resolution::TritonModule`].
    Module(Arc<str>),
    /// A member of the language.
    Builtin(&'static Builtin),
    /// A parameter of a member of the language.
    BuiltinParameter(&'static Builtin, Name),
}

impl PartialEq for Symbol {
    fn eq(&self, other: &Symbol) -> bool {
        match (self, other) {
            (Symbol::Local(a, b), Symbol::Local(c, d)) => a == c && b == d,
            (Symbol::Variable(a, b, c), Symbol::Variable(d, e, f)) => a == d && b == e && c == f,
            (Symbol::Item(a), Symbol::Item(b)) => a == b,
            (Symbol::File(a), Symbol::File(b)) => a == b,
            (Symbol::Module(a), Symbol::Module(b)) => a == b,
            (Symbol::Builtin(a), Symbol::Builtin(b)) => std::ptr::eq(*a, *b),
            (Symbol::BuiltinParameter(a, b), Symbol::BuiltinParameter(c, d)) => {
                std::ptr::eq(*a, *c) && b == d
            }
            _ => false,
        }
    }
}

/// A file with what is asked of it over and over.
pub(crate) struct Semantics<'db> {
    pub(crate) db: &'db dyn Db,
    pub(crate) file: SourceFile,
    pub(crate) text: &'db str,
    parse: Parse,
    /// Names that functions bind, by the index of their item.
    locals: RefCell<FxHashMap<u32, Rc<FxHashSet<&'db str>>>>,
    /// What names mean that no function around them binds, by the functions and classes around.
    names: RefCell<FxHashMap<(Vec<Name>, &'db str), Resolution>>,
}

impl<'db> Semantics<'db> {
    /// Asks about `file`; `None` when there is no such file.
    pub(crate) fn new(db: &'db dyn Db, file: SourceFile) -> Option<Semantics<'db>> {
        let source = file.text(db).as_ref()?;
        let (text, parse) = (source.text(), db.files().parse(source));
        let (locals, names) = Default::default();
        Some(Semantics { db, file, text, parse, locals, names })
    }

    /// The outermost node of the syntax tree.
    pub(crate) fn root(&self) -> Node<'_> {
        self.parse.root()
    }

    /// The text of a node.
    pub(crate) fn text_of(&self, node: Node<'_>) -> &'db str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// What the word at `offset` means, and where it stands.
    pub(crate) fn symbol_at(&self, offset: usize) -> Option<(Symbol, TextRange)> {
        let node = identifier_at(self.root(), offset)?;
        Some((self.symbol(node)?, range(node)))
    }

    /// What an identifier means.
    pub(crate) fn symbol(&self, node: Node<'_>) -> Option<Symbol> {
        self.symbol_below(&ancestors(self.root(), node), node)
    }

    /// What an identifier means, given the nodes around it, outermost first.
    pub(crate) fn symbol_below(&self, around: &[Node<'_>], node: Node<'_>) -> Option<Symbol> {
        let (parent, outer) = around.split_last()?;
        match parent.kind() {
            "string" => self.quoted(around, node),
            "keyword_argument" if is_field(*parent, "name", node) => {
                if let Some(parameter) = self.quoted(around, node) {
                    return Some(parameter);
                }
                // The argument stands in a list of them, which stands in a call.
                let (call, outer) = outer.split_last()?.1.split_last()?;
                self.keyword(outer, *call, node)
            }
            "attribute" if is_field(*parent, "attribute", node) => self.member(outer, *parent),
            "dotted_name" => self.imported(node),
            _ => self.item_named_at(node).or_else(|| self.name(around, node)),
        }
    }

    /// The parameter that a string, or a keyword of `dict`, names.
    fn quoted(&self, around: &[Node<'_>], node: Node<'_>) -> Option<Symbol> {
        let owner = self.owners_below(around, node).into_iter().next()?;
        Some(Symbol::Local(owner, Name::from(self.text_of(node))))
    }

    /// The item whose name stands at this node. What functions bind is theirs.
    fn item_named_at(&self, node: Node<'_>) -> Option<Symbol> {
        let module = db::module(self.db, self.file);
        let at = range(node);
        let index = module.items.iter().position(|item| item.name_range == at)?;
        let is_variable = matches!(
            module.items[index].kind,
            ItemKind::Assign { .. } | ItemKind::Element { .. } | ItemKind::Unknown
        );
        if is_variable && self.binder(node, self.text_of(node)).is_some() {
            return None;
        }
        let at = ItemRef { file: self.file.id(self.db), index: index as u32 };
        Some(match project::resolve_item(&Analysis(self.db), at) {
            Resolution::Undefined | Resolution::Unknown | Resolution::External(_) => {
                Symbol::Item(at)
            }
            found => of_resolution(found).unwrap_or(Symbol::Item(at)),
        })
    }

    /// A name where it is used.
    fn name(&self, around: &[Node<'_>], node: Node<'_>) -> Option<Symbol> {
        let name = self.text_of(node);
        if let Some(at) = self.binder(node, name) {
            return Some(Symbol::Local(at, Name::from(name)));
        }
        if let Some(variable) = self.variable(node, name) {
            return Some(variable);
        }
        of_resolution(self.free_name(around, node))
            .or_else(|| self.bound_around(around, node))
            .or_else(|| builtins::member(builtins::PYTHON, name).map(Symbol::Builtin))
    }

    /// A variable of the scenario around a node.
    fn variable(&self, node: Node<'_>, name: &str) -> Option<Symbol> {
        let scenarios = &db::module(self.db, self.file).scenarios;
        let at = scenarios.iter().position(|it| it.range.contains_range(range(node)))?;
        let found = scenarios[at].body.bound_names().find(|bound| &***bound == name)?;
        Some(Symbol::Variable(self.file.id(self.db), at, found.clone()))
    }

    /// What a name means that no function around it binds.
    fn free_name(&self, around: &[Node<'_>], node: Node<'_>) -> Resolution {
        let key = (self.scope_path(around, node), self.text_of(node));
        let mut known = self.names.borrow_mut();
        if let Some(found) = known.get(&key) {
            return found.clone();
        }
        let scope = Scope { file: self.file.id(self.db), path: &key.0 };
        let found = project::resolve(&Analysis(self.db), scope, key.1);
        known.insert(key, found.clone());
        found
    }

    /// The innermost function around a node that binds `name`.
    fn binder(&self, node: Node<'_>, name: &str) -> Option<ItemRef> {
        let around = self.functions_around(node.start_byte()).into_iter();
        let mut binders = around.filter(|(at, function)| {
            if let Some(decorator) = decorator_around(function, range(node)) {
                // It runs outside of the function.
                return bound_within(function, decorator, name);
            }
            let mut known = self.locals.borrow_mut();
            let names = known
                .entry(at.index)
                .or_insert_with(|| Rc::new(locals(function).into_iter().collect()));
            names.contains(name)
        });
        Some(binders.next()?.0)
    }

    /// The functions whose text covers `offset`, innermost first.
    pub(crate) fn functions_around(&self, offset: usize) -> Vec<(ItemRef, &'db Function)> {
        let module = db::module(self.db, self.file);
        let mut found = Vec::new();
        for (index, item) in module.items.iter().enumerate() {
            if let ItemKind::Function(function) = &item.kind
                && item.range.touches(offset)
            {
                let at = ItemRef { file: self.file.id(self.db), index: index as u32 };
                found.push((at, &**function));
            }
        }
        found.reverse();
        found
    }

    /// Names of the functions and classes around a node, outermost first. A decorator, a default
    /// and an annotation lie outside of the function that they belong to.
    fn scope_path(&self, around: &[Node<'_>], node: Node<'_>) -> Vec<Name> {
        let inner = around.iter().skip(1).chain([&node]);
        let scopes = around.iter().zip(inner).filter(|(outer, inner)| {
            matches!(outer.kind(), "function_definition" | "class_definition")
                && is_field(**outer, "body", **inner)
        });
        let names = scopes.filter_map(|(outer, _)| outer.child_by_field_name("name"));
        names.map(|name| Name::from(self.text_of(name))).collect()
    }

    /// `f(name=...)`.
    fn keyword(&self, around: &[Node<'_>], call: Node<'_>, name: Node<'_>) -> Option<Symbol> {
        let word = self.text_of(name);
        match self.callee(around, call)? {
            Symbol::Builtin(builtin) => Some(Symbol::BuiltinParameter(builtin, Name::from(word))),
            Symbol::Item(at) => {
                let function = project::function(&Analysis(self.db), at)?;
                let has = function.params.iter().any(|param| &*param.name == word);
                has.then(|| Symbol::Local(at, Name::from(word)))
            }
            _ => None,
        }
    }

    /// What a call calls, given the nodes around it; a launch `kernel[grid](...)` calls the kernel.
    pub(crate) fn callee(&self, around: &[Node<'_>], call: Node<'_>) -> Option<Symbol> {
        let mut around = around.to_vec();
        around.push(call);
        let mut callee = call.child_by_field_name("function")?;
        if callee.kind() == "subscript" {
            around.push(callee);
            callee = callee.child_by_field_name("value")?;
        }
        match callee.kind() {
            "identifier" => self.symbol_below(&around, callee),
            "attribute" => self.member(&around, callee),
            _ => None,
        }
    }

    /// `value.name`.
    fn member(&self, around: &[Node<'_>], attribute: Node<'_>) -> Option<Symbol> {
        let name = self.text_of(attribute.child_by_field_name("attribute")?);
        match self.module_before_dot(around, attribute) {
            Some(base) => {
                let found = project::resolve_member(&Analysis(self.db), &base, name);
                of_resolution(found)
            }
            // What values of host code are, others know better.
            None if self.is_of_kernels(attribute) => builtins::method(name).map(Symbol::Builtin),
            None => None,
        }
    }

    /// Whether a node stands in a jit function or a scenario.
    fn is_of_kernels(&self, node: Node<'_>) -> bool {
        let jit = db::parts::jit_items(self.db, self.file);
        let is_jit = |at: &ItemRef| jit.iter().any(|(index, _)| *index == at.index);
        let mut scenarios = db::module(self.db, self.file).scenarios.iter();
        self.functions_around(node.start_byte()).iter().any(|(at, _)| is_jit(at))
            || scenarios.any(|scenario| scenario.range.contains_range(range(node)))
    }

    /// Where the word at `offset` is a method of a value: the value's text, a name that stands for it
    /// where it is no name itself.
    pub(crate) fn receiver_at(&self, offset: usize) -> Option<&'db str> {
        let node = identifier_at(self.root(), offset)?;
        let around = ancestors(self.root(), node);
        let (attribute, outer) = around.split_last()?;
        let value = attribute.child_by_field_name("object")?;
        let is_member = is_field(*attribute, "attribute", node);
        if !is_member || self.module_before_dot(outer, *attribute).is_some() {
            return None;
        }
        Some(if value.kind() == "identifier" { self.text_of(value) } else { ANY_TENSOR })
    }

    /// The module before the dot of `value.name`, if it is one.
    fn module_before_dot(&self, around: &[Node<'_>], attribute: Node<'_>) -> Option<Resolution> {
        let value = attribute.child_by_field_name("object")?;
        let mut around = around.to_vec();
        around.push(attribute);
        self.module_of(&around, value)
    }

    /// The module that an expression names, if it does.
    pub(crate) fn module_of(&self, around: &[Node<'_>], value: Node<'_>) -> Option<Resolution> {
        let found = match value.kind() {
            "identifier" if self.binder(value, self.text_of(value)).is_some() => return None,
            "identifier" => self.free_name(around, value),
            "attribute" => {
                let base = self.module_before_dot(around, value)?;
                let name = self.text_of(value.child_by_field_name("attribute")?);
                project::resolve_member(&Analysis(self.db), &base, name)
            }
            _ => return None,
        };
        let is_module = matches!(
            found,
            Resolution::TritonModule(_)
                | Resolution::File(_)
                | Resolution::Folder(..)
                | Resolution::External(_)
        );
        is_module.then_some(found)
    }

    /// A part of a dotted name, which stands in an import.
    fn imported(&self, node: Node<'_>) -> Option<Symbol> {
        let module = db::module(self.db, self.file);
        let at = range(node);
        let word = self.text_of(node);
        let names_it = |item: &Item| {
            item.range.contains_range(at)
                && match &item.kind {
                    ItemKind::ImportFrom { member, .. } => &**member == word,
                    ItemKind::Import { .. } => item.name_range == at,
                    _ => false,
                }
        };
        let index = module.items.iter().position(names_it)?;
        let at = ItemRef { file: self.file.id(self.db), index: index as u32 };
        let found = of_resolution(project::resolve_item(&Analysis(self.db), at));
        found.or_else(|| {
            // What cannot be read may have a stand-in.
            let first = first_binding(self.db, at);
            (!is_import(self.db, first)).then_some(Symbol::Item(first))
        })
    }

    /// The binding of a name that is not followed, or that stands in for what cannot be read.
    fn bound_around(&self, around: &[Node<'_>], node: Node<'_>) -> Option<Symbol> {
        let module = db::module(self.db, self.file);
        let name = self.text_of(node);
        let path = self.scope_path(around, node);
        let is_class = |depth: usize| {
            let (class, outer) = path[..depth].split_last()?;
            let mut named = module.items_named(class).map(|index| &module.items[index as usize]);
            named.find(|item| matches!(item.kind, ItemKind::Class(_)) && item.scope == outer)
        };
        // What a class binds is not seen from inside of its functions.
        let depths = (0..=path.len()).rev();
        let mut depths = depths.filter(|depth| *depth == path.len() || is_class(*depth).is_none());
        depths.find_map(|depth| {
            let indices = module.items_named(name);
            let mut items = indices
                .filter(|index| module.items[*index as usize].scope == path[..depth])
                .map(|index| ItemRef { file: self.file.id(self.db), index });
            items.find(|at| !is_import(self.db, *at)).map(Symbol::Item)
        })
    }
}

/// A resolution as a symbol.
pub(crate) fn of_resolution(found: Resolution) -> Option<Symbol> {
    match found {
        Resolution::Jit(at)
        | Resolution::ConstexprFunction(at)
        | Resolution::Function(at)
        | Resolution::Class(at)
        | Resolution::Constexpr(at)
        | Resolution::Constant(at) => Some(Symbol::Item(at)),
        Resolution::File(file) => Some(Symbol::File(file)),
        Resolution::Triton(path) => builtin(&path).map(Symbol::Builtin),
        Resolution::TritonModule(path) => Some(Symbol::Module(path)),
        Resolution::Folder(..)
        | Resolution::External(_)
        | Resolution::Unknown
        | Resolution::Undefined => None,
    }
}

/// The items that bind the same name in the same scope as `at`, itself included, in source order: one
/// variable, whichever of them ran last.
pub(crate) fn bindings_beside(db: &dyn Db, at: ItemRef) -> Vec<ItemRef> {
    let module = db.file_of(at.file).map(|file| db::module(db, file));
    let item = module.and_then(|module| Some((module, module.items.get(at.index as usize)?)));
    let Some((module, item)) = item else { return vec![at] };
    let same = module.items_named(&item.name);
    let same = same.filter(|index| module.items[*index as usize].scope == item.scope);
    same.map(|index| ItemRef { file: at.file, index }).collect()
}

/// Whether an item of a file is a class, however it is made: by `class`, or as a named tuple is.
pub(crate) fn is_class(db: &dyn Db, file: SourceFile, index: usize) -> bool {
    match db::module(db, file).items.get(index).map(|item| &item.kind) {
        Some(ItemKind::Class(_)) => true,
        Some(ItemKind::Assign { .. }) => {
            let at = ItemRef { file: file.id(db), index: index as u32 };
            matches!(project::resolve_item(&Analysis(db), at), Resolution::Class(_))
        }
        _ => false,
    }
}

/// Whether an item imports what it binds.
pub(crate) fn is_import(db: &dyn Db, at: ItemRef) -> bool {
    project::item(&Analysis(db), at).is_some_and(|item| item.is_import())
}

/// The symbol that stands for all bindings of the variable that `symbol` is: what one of them imports,
/// else the first of them that is no import.
pub(crate) fn unified(db: &dyn Db, symbol: &Symbol) -> Symbol {
    let Symbol::Item(at) = symbol else { return symbol.clone() };
    let beside = bindings_beside(db, *at);
    let imports = beside.iter().filter(|at| is_import(db, **at));
    let mut imported =
        imports.filter_map(|at| of_resolution(project::resolve_item(&Analysis(db), *at)));
    // An import may come back to the file that it stands in.
    match imported.find(|found| !matches!(found, Symbol::Item(to) if to.file == at.file)) {
        Some(Symbol::Item(to)) => Symbol::Item(first_binding(db, to)),
        Some(found) => found,
        None => Symbol::Item(first_binding(db, *at)),
    }
}

/// The first item that binds the same as `at` and is no import, if there is one.
fn first_binding(db: &dyn Db, at: ItemRef) -> ItemRef {
    let mut beside = bindings_beside(db, at).into_iter();
    beside.find(|at| !is_import(db, *at)).unwrap_or(at)
}

/// The member of the language at `path` inside the `triton` package.
pub(crate) fn builtin(path: &str) -> Option<&'static Builtin> {
    let (module, name) = match path.rsplit_once('.') {
        Some((module, name)) => (format!("{}.{module}", builtins::TRITON), name),
        None => (builtins::TRITON.to_owned(), path),
    };
    builtins::member(&module, name)
}

/// Where the decorator of a function stands that holds `at`, if one does.
fn decorator_around(function: &Function, at: TextRange) -> Option<TextRange> {
    let mut ranges = function.decorators.iter().map(|decorator| function.map.exprs[*decorator]);
    ranges.find(|range| range.contains_range(at))
}

/// Whether a comprehension or lambda at `place` binds `name`.
fn bound_within(function: &Function, place: TextRange, name: &str) -> bool {
    function.body.exprs.keys().any(|expr| {
        place.contains_range(function.map.exprs[expr])
            && function.body.bound_by(expr).iter().any(|bound| &***bound == name)
    })
}

/// Names that a function binds: its parameters, and targets in its body.
pub(crate) fn locals(function: &Function) -> Vec<&str> {
    let params = function.params.iter().map(|param| &param.name);
    params.chain(function.body.bound_names()).map(|name| &**name).collect()
}
