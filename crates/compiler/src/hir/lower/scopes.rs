//! Names that nothing binds, as the text alone shows: Python's scopes, without what it means.
//!
//! Wherever a name may be bound by any statement of a scope around it, at any time, it is taken to be.
//! A text that may bind names in ways that no statement shows has no such names.
//!
//! What an outermost statement binds and leaves to the module is found once, and outlives edits of
//! others.

use std::hash::BuildHasher;
use std::sync::{Arc, LazyLock};

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::hir::{Name, PYTHON_NAMES, Unbound, names_by_star};
use crate::source::TextRange;
use crate::syntax::kind::{Field, Kind};
use crate::syntax::node::Node;
use crate::syntax::statement::Statement;

/// Names by which a text may bind others: what is done with them is not followed.
const BINDERS: &[&str] = &[
    "exec",
    "execfile",
    "globals",
    "vars",
    "dir",
    "builtins",
    "__builtins__",
    "__dict__",
    MODULES,
];

/// What `sys` has all modules in by name; other things are called so as well, such as the parts of a model.
const MODULES: &str = "modules";

/// What asks a value that it is given for its own names: only without one does it tell of those around it.
const ASKERS: &[&str] = &["vars", "dir"];

/// Names by which Python has itself in methods: what their attributes are is no module's name.
const RECEIVERS: &[&str] = &["self", "cls"];

/// What a module has without binding it, beside what Python defines everywhere.
const IMPLICIT: &[&str] = &[
    "__annotations__",
    "__builtins__",
    "__cached__",
    "__class__",
    "__debug__",
    "__doc__",
    "__file__",
    "__import__",
    "__loader__",
    "__module__",
    "__name__",
    "__package__",
    "__path__",
    "__qualname__",
    "__spec__",
    "_",
];

/// Whether the name with this hash is bound everywhere.
fn is_implicit(hash: u64) -> bool {
    static HASHES: LazyLock<FxHashSet<u64>> = LazyLock::new(|| {
        IMPLICIT.iter().chain(PYTHON_NAMES).map(|name| self::hash(name)).collect()
    });
    HASHES.contains(&hash)
}

/// How deep nodes are followed into each other.
const MAX_DEPTH: u32 = 200;

/// What an outermost statement does with the module's names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatementNames {
    /// Those that it binds.
    bound: Box<[Name]>,
    /// Hashes of those that it reads and nothing in it binds, rising: all kernels read the same few.
    free: Box<[u64]>,
    /// Whether it may bind names in ways that are not followed.
    pub(super) is_open: bool,
    /// Whether it binds all names of another module, of which this one does not know.
    has_star: bool,
}

fn hash(name: &str) -> u64 {
    FxBuildHasher.hash_one(name)
}

/// The names of each outermost statement; those of `kept` are known.
pub(super) fn of_statements(
    text: &str,
    statements: &[Statement<'_>],
    kept: &[(TextRange, Arc<StatementNames>)],
) -> Vec<(TextRange, Arc<StatementNames>)> {
    let kept: FxHashMap<TextRange, &Arc<StatementNames>> =
        kept.iter().map(|(range, names)| (*range, names)).collect();
    let names = |statement: &Statement<'_>| match kept.get(&statement.range()) {
        Some(names) => (*names).clone(),
        None => Arc::new(Names::of(text, statement.top()).summary()),
    };
    statements.iter().map(|statement| (statement.range(), names(statement))).collect()
}

/// The names of a text without syntax errors that nothing binds but stars perhaps, in order, from those of its
/// outermost statements.
pub(super) fn unbound(
    text: &str,
    statements: &[Statement<'_>],
    names: &[(TextRange, Arc<StatementNames>)],
) -> Vec<Unbound> {
    if names.iter().any(|(_, names)| names.is_open) {
        return Vec::new();
    }
    let perhaps_starred = names.iter().any(|(_, names)| names.has_star);
    let bound = || names.iter().flat_map(|(_, names)| &*names.bound);
    let hashes: FxHashSet<u64> = bound().map(|name| hash(name)).collect();
    // Then nobody evaluates annotations.
    let are_texts = statements.iter().any(|it| it.top().kind() == Kind::FutureImportStatement);
    let mut found = Vec::new();
    for (statement, (_, names)) in statements.iter().zip(names) {
        if names.free.iter().any(|name| !hashes.contains(name) && !is_implicit(*name)) {
            let mut names = Names::of(text, statement.top());
            names.scopes[MODULE].bound.extend(bound().map(|name| &**name));
            let unbound = names.unbound().filter(|read| !read.in_annotation || !are_texts);
            found.extend(unbound.map(|read| Unbound { perhaps_starred, ..read }));
        }
    }
    found
}

/// Statements behind which nothing of their block runs.
const LEAVING: &[Kind] =
    &[Kind::BreakStatement, Kind::ContinueStatement, Kind::RaiseStatement, Kind::ReturnStatement];

/// The number of the outermost scope.
const MODULE: usize = 0;

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScopeKind {
    /// A module, a function or a lambda.
    Function,
    /// A comprehension, or what the annotations of a function see: `:=` in it binds outside.
    Comprehension,
    /// A class, whose names functions in it do not see.
    Class,
}

struct Scope<'t> {
    kind: ScopeKind,
    around: Option<usize>,
    bound: FxHashSet<&'t str>,
}

/// A name that is read.
struct Use<'t> {
    name: &'t str,
    range: TextRange,
    scope: usize,
    /// Whether it stands in the annotation of a parameter or a result.
    in_annotation: bool,
}

struct Names<'t> {
    text: &'t str,
    scopes: Vec<Scope<'t>>,
    uses: Vec<Use<'t>>,
    /// How much is around the node for which it does not matter whether a name is bound: handlers that take what that
    /// raises, and statements that leave the block before it.
    unread: u32,
    /// Whether the node stands in an annotation that a definition evaluates.
    in_annotation: bool,
    depth: u32,
    /// Whether names may be bound in ways that are not followed.
    is_open: bool,
    /// Whether a star imports some.
    has_star: bool,
}

impl<'t> Names<'t> {
    /// The names of an outermost statement of `text`.
    fn of(text: &'t str, statement: Node<'t>) -> Names<'t> {
        let module = Scope { kind: ScopeKind::Function, around: None, bound: FxHashSet::default() };
        let (uses, unread, in_annotation, depth) = Default::default();
        let (is_open, has_star) = Default::default();
        let scopes = vec![module];
        let mut names =
            Names { text, scopes, uses, unread, in_annotation, depth, is_open, has_star };
        names.visit(statement, MODULE);
        names
    }

    fn summary(&self) -> StatementNames {
        let mut bound: Vec<Name> =
            self.scopes[MODULE].bound.iter().map(|name| Name::from(*name)).collect();
        bound.sort_unstable();
        let mut free: Vec<u64> = self.lost().map(|read| hash(read.name)).collect();
        free.sort_unstable();
        free.dedup();
        let (is_open, has_star) = (self.is_open, self.has_star);
        StatementNames { bound: bound.into(), free: free.into(), is_open, has_star }
    }

    /// Names that are read and that no scope around them binds.
    fn lost(&self) -> impl Iterator<Item = &Use<'t>> {
        self.uses
            .iter()
            .filter(|read| self.visible(read.scope).all(|scope| !scope.bound.contains(read.name)))
    }

    fn unbound(&self) -> impl Iterator<Item = Unbound> {
        let lost = self.lost().filter(|read| !is_implicit(hash(read.name)));
        lost.map(|&Use { name, range, scope, in_annotation }| {
            let bound = self.visible(scope).flat_map(|scope| scope.bound.iter().copied());
            let mut visible: Vec<&str> = bound.collect();
            visible.sort_unstable();
            visible.dedup();
            let visible = visible.into_iter().map(Name::from).collect();
            let name = Name::from(name);
            Unbound { name, range, in_annotation, perhaps_starred: false, visible }
        })
    }

    /// The scopes whose names are seen from `scope`, innermost first.
    fn visible(&self, scope: usize) -> impl Iterator<Item = &Scope<'t>> {
        let mut behind_function = false;
        let chain = std::iter::successors(Some(scope), |at| self.scopes[*at].around);
        chain.map(|at| &self.scopes[at]).filter(move |scope| {
            let is_seen = scope.kind != ScopeKind::Class || !behind_function;
            behind_function |= scope.kind == ScopeKind::Function;
            is_seen
        })
    }

    fn inner(&mut self, kind: ScopeKind, around: usize) -> usize {
        self.scopes.push(Scope { kind, around: Some(around), bound: FxHashSet::default() });
        self.scopes.len() - 1
    }

    fn name(&self, node: Node<'t>) -> &'t str {
        &self.text[node.range().as_usize()]
    }

    fn bind(&mut self, node: Node<'t>, scope: usize) {
        let name = self.name(node);
        self.scopes[scope].bound.insert(name);
    }

    /// Binds every name in `node`.
    fn bind_all(&mut self, node: Node<'t>, scope: usize) {
        if node.kind() == Kind::Identifier {
            self.bind(node, scope);
        }
        self.each(node, |names, child| names.bind_all(child, scope));
    }

    /// Binds what is assigned to, and reads what stands beside it.
    fn target(&mut self, node: Node<'t>, scope: usize) {
        match node.kind() {
            Kind::Identifier => self.bind(node, scope),
            Kind::Attribute | Kind::Subscript | Kind::Call => self.visit(node, scope),
            _ => self.each(node, |names, child| names.target(child, scope)),
        }
    }

    fn each(&mut self, node: Node<'t>, mut visit: impl FnMut(&mut Self, Node<'t>)) {
        if node.named_children().next().is_none() {
            return;
        }
        if self.depth >= MAX_DEPTH {
            self.is_open = true;
            return;
        }
        self.depth += 1;
        for child in node.named_children() {
            visit(self, child);
        }
        self.depth -= 1;
    }

    fn children(&mut self, node: Node<'t>, scope: usize) {
        self.each(node, |names, child| names.visit(child, scope));
    }

    fn field(&mut self, node: Node<'t>, field: Field, scope: usize) {
        if let Some(child) = node.field(field) {
            self.visit(child, scope);
        }
    }

    fn visit(&mut self, node: Node<'t>, scope: usize) {
        match node.kind() {
            kind if kind.is_extra() => {}
            // Annotations of variables may be left alone until somebody asks.
            Kind::Type | Kind::TypeParameter if self.in_annotation => self.children(node, scope),
            Kind::Type | Kind::ExecStatement | Kind::WildcardImport => {
                self.is_open |= node.kind() != Kind::Type;
            }
            // Elsewhere, what is put into `locals()` is no variable.
            Kind::Identifier if self.name(node) == "locals" && scope == MODULE => {
                self.is_open = true;
            }
            Kind::Identifier => self.read(node, scope),
            Kind::Attribute => {
                self.is_open |= self.gives_names(node);
                self.field(node, Field::Object, scope);
            }
            // `sys.modules` is no function: what is called so lists the parts of a model.
            Kind::Call if self.is_binder(node, |called| called == MODULES, Kind::Attribute) => {
                let called = node.field(Field::Function);
                self.each(node, |names, child| match Some(child) == called {
                    true => names.field(child, Field::Object, scope),
                    false => names.visit(child, scope),
                });
            }
            Kind::Call
                if self.is_binder(node, |called| ASKERS.contains(&called), Kind::Identifier)
                    && self.has_argument(node) =>
            {
                self.field(node, Field::Arguments, scope);
            }
            Kind::KeywordArgument => self.field(node, Field::Value, scope),
            Kind::Assignment | Kind::AugmentedAssignment => {
                self.assigned(node, Field::Left, scope);
                self.field(node, Field::Right, scope);
            }
            Kind::NamedExpression => {
                let mut home = scope;
                while let (ScopeKind::Comprehension, Some(around)) =
                    (self.scopes[home].kind, self.scopes[home].around)
                {
                    home = around;
                }
                self.assigned(node, Field::Name, home);
                self.field(node, Field::Value, scope);
            }
            Kind::ForStatement | Kind::ForInClause => {
                let left = node.field(Field::Left);
                self.assigned(node, Field::Left, scope);
                self.each(node, |names, child| {
                    if Some(child) != left {
                        names.visit(child, scope);
                    }
                });
            }
            Kind::AsPatternTarget => self.target(node, scope),
            Kind::ExceptClause => {
                let alias = node.field(Field::Alias);
                self.assigned(node, Field::Alias, scope);
                self.each(node, |names, child| {
                    if Some(child) != alias {
                        names.visit(child, scope);
                    }
                });
            }
            Kind::CasePattern | Kind::TypeParameter | Kind::TypeAliasStatement => {
                self.bind_all(node, scope);
            }
            Kind::GlobalStatement => self.bind_all(node, MODULE),
            Kind::NonlocalStatement => self.bind_all(node, scope),
            Kind::ImportStatement | Kind::ImportFromStatement | Kind::FutureImportStatement => {
                self.import(node, scope);
            }
            Kind::TryStatement => self.attempt(node, scope),
            Kind::IfStatement => self.branch(node, scope),
            Kind::Block => self.block(node, scope),
            Kind::FunctionDefinition => self.function(node, scope),
            Kind::ClassDefinition => {
                self.assigned(node, Field::Name, scope);
                self.field(node, Field::Superclasses, scope);
                let inside = self.inner(ScopeKind::Class, scope);
                self.each(node, |names, child| {
                    if child.kind() == Kind::TypeParameter {
                        names.bind_all(child, scope);
                    }
                });
                self.field(node, Field::Body, inside);
            }
            Kind::Lambda => {
                let inside = self.inner(ScopeKind::Function, scope);
                self.parameters(node, (scope, inside));
                self.field(node, Field::Body, inside);
            }
            Kind::ListComprehension
            | Kind::SetComprehension
            | Kind::DictionaryComprehension
            | Kind::GeneratorExpression => {
                let inside = self.inner(ScopeKind::Comprehension, scope);
                self.children(node, inside);
            }
            _ => self.children(node, scope),
        }
    }

    /// Whether a statement is `from sys import modules`.
    fn imports_modules(&self, import: Node<'t>) -> bool {
        let is_sys = import.field(Field::ModuleName).is_some_and(|it| self.name(it) == "sys");
        is_sys && self.name(import).contains(MODULES)
    }

    /// Whether an attribute may give a module's names.
    fn gives_names(&self, node: Node<'t>) -> bool {
        let attribute = node.field(Field::Attribute).map(|it| self.name(it));
        let is_receiver =
            |it: Node<'t>| it.kind() == Kind::Identifier && RECEIVERS.contains(&self.name(it));
        match attribute {
            Some("__dict__") => !node.field(Field::Object).is_some_and(is_receiver),
            Some(name) => BINDERS.contains(&name),
            None => false,
        }
    }

    /// Whether what is called is such a name, or an attribute of such a name.
    fn is_binder(&self, call: Node<'t>, is_meant: impl Fn(&str) -> bool, kind: Kind) -> bool {
        let Some(called) = call.field(Field::Function).filter(|it| it.kind() == kind) else {
            return false;
        };
        let name = match kind {
            Kind::Attribute => called.field(Field::Attribute),
            _ => Some(called),
        };
        name.is_some_and(|name| is_meant(self.name(name)))
    }

    fn has_argument(&self, call: Node<'t>) -> bool {
        call.field(Field::Arguments).is_some_and(|given| given.named_children().next().is_some())
    }

    fn read(&mut self, node: Node<'t>, scope: usize) {
        let name = self.name(node);
        self.is_open |= name != MODULES && BINDERS.contains(&name);
        if self.unread == 0 {
            let (range, in_annotation) = (node.range(), self.in_annotation);
            self.uses.push(Use { name, range, scope, in_annotation });
        }
    }

    fn assigned(&mut self, node: Node<'t>, field: Field, scope: usize) {
        if let Some(target) = node.field(field) {
            self.target(target, scope);
        }
    }

    fn import(&mut self, node: Node<'t>, scope: usize) {
        let module = node.field(Field::ModuleName);
        // In a package, `from .module import name` binds the module as well.
        if let Some(relative) = module.filter(|module| module.kind() == Kind::RelativeImport) {
            self.bind_all(relative, MODULE);
        }
        self.each(node, |names, child| match child.kind() {
            _ if Some(child) == module => names.is_open |= names.imports_modules(node),
            Kind::AliasedImport => names.assigned(child, Field::Alias, scope),
            Kind::DottedName => {
                if let Some(first) = child.named_children().next() {
                    names.bind(first, scope);
                }
            }
            Kind::WildcardImport => {
                match module.and_then(|module| names_by_star(names.name(module))) {
                    Some(known) => names.scopes[scope].bound.extend(known),
                    None => names.has_star = true,
                }
            }
            _ => {}
        });
    }

    /// The statements of a block. What stands behind one that leaves it never runs, but binds names all the same.
    fn block(&mut self, node: Node<'t>, scope: usize) {
        let unread = self.unread;
        self.each(node, |names, child| {
            names.visit(child, scope);
            names.unread += u32::from(LEAVING.contains(&child.kind()));
        });
        self.unread = unread;
    }

    /// An `if`. What stands under `if False:` never runs, but binds names all the same.
    fn branch(&mut self, node: Node<'t>, scope: usize) {
        let is_never = node.field(Field::Condition).is_some_and(|it| it.kind() == Kind::False);
        let never = node.field(Field::Consequence).filter(|_| is_never);
        self.each(node, |names, child| {
            let here = u32::from(Some(child) == never);
            names.unread += here;
            names.visit(child, scope);
            names.unread -= here;
        });
    }

    /// A `try`, whose handlers may take what an unbound name raises.
    fn attempt(&mut self, node: Node<'t>, scope: usize) {
        let takes = |clause: Node<'t>| {
            let head = self.name(clause).split(':').next().unwrap_or_default();
            clause.kind() == Kind::ExceptClause
                && (head.trim() == "except"
                    || ["NameError", "Exception"].iter().any(|kind| head.contains(kind)))
        };
        let caught = u32::from(node.named_children().any(takes));
        let body = node.field(Field::Body);
        self.each(node, |names, child| {
            let here = if Some(child) == body { caught } else { 0 };
            names.unread += here;
            names.visit(child, scope);
            names.unread -= here;
        });
    }

    fn function(&mut self, node: Node<'t>, scope: usize) {
        self.assigned(node, Field::Name, scope);
        // Annotations are evaluated where the definition stands, as in the body of a class.
        let around = self.inner(ScopeKind::Comprehension, scope);
        self.each(node, |names, child| {
            if child.kind() == Kind::TypeParameter {
                names.bind_all(child, around);
            }
        });
        let inside = self.inner(ScopeKind::Function, around);
        self.parameters(node, (around, inside));
        self.annotation(node, Field::ReturnType, around);
        self.field(node, Field::Body, inside);
    }

    /// Reads the annotation that a definition has in a field.
    fn annotation(&mut self, node: Node<'t>, field: Field, scope: usize) {
        let around = std::mem::replace(&mut self.in_annotation, true);
        self.field(node, field, scope);
        self.in_annotation = around;
    }

    /// Parameters are bound inside, and their defaults and annotations read outside.
    fn parameters(&mut self, node: Node<'t>, (outside, inside): (usize, usize)) {
        let Some(parameters) = node.field(Field::Parameters) else { return };
        self.each(parameters, |names, param| match param.kind() {
            Kind::DefaultParameter | Kind::TypedDefaultParameter => {
                names.assigned(param, Field::Name, inside);
                names.field(param, Field::Value, outside);
                names.annotation(param, Field::Type, outside);
            }
            Kind::TypedParameter => {
                names.each(param, |names, child| {
                    if child.kind() != Kind::Type {
                        names.bind_all(child, inside);
                    }
                });
                names.annotation(param, Field::Type, outside);
            }
            _ => names.bind_all(param, inside),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::{Parse, Statements};

    fn unbound_in(parse: &Parse) -> Vec<Unbound> {
        let (text, statements) = (parse.text(), Statements::of(parse));
        unbound(text, statements.all(), &of_statements(text, statements.all(), &[]))
    }

    fn names(text: &str) -> Vec<String> {
        let parse = Parse::new(text);
        assert!(!parse.has_error(), "{text} parses");
        unbound_in(&parse).iter().map(|found| found.name.to_string()).collect()
    }

    #[test]
    fn names_that_no_scope_binds_are_found() {
        assert_eq!(names("def f(n):\n    return lambda m: m + n + nn\n"), ["nn"]);
        assert_eq!(names("def f():\n    return [i for j in range(4)]\n"), ["i"]);
        assert_eq!(
            names("class A:\n    size = 4\n    def f(self):\n        return size\n"),
            ["size"]
        );
        assert_eq!(
            names("import a.b as c\nfrom d import e as f\nx = a, d, e, c, f\n"),
            ["a", "d", "e"]
        );
        assert_eq!(names("def f(x=n):\n    n = 1\n    return x\n"), ["n"]);
        assert_eq!(names("x = f'{a:{b}}'\n"), ["a", "b"]);
        assert_eq!(names("def f():\n    y = 1\nprint(y)\n"), ["y"]);
        assert_eq!(names("try:\n    a\nexcept KeyError:\n    pass\n"), ["a"]);
        assert_eq!(names("def f(x: A, y: B[C] = 1) -> D:\n    pass\n"), ["A", "B", "C", "D"]);
    }

    #[test]
    fn what_may_be_bound_is() {
        let silent = [
            "def f(a, /, b, *c, d: int = 1, **e):\n    return a, b, c, d, e, f, len\n",
            "def f():\n    global x\n    x = 1\ndef g():\n    return x\n",
            "def f():\n    x = 0\n    def g():\n        nonlocal x\n        x = 1\n    return g\n",
            "try:\n    import fast\nexcept ImportError:\n    fast = None\nprint(fast)\n",
            "try:\n    print(unicode)\nexcept NameError:\n    pass\n",
            "from __future__ import annotations\nif True:\n    import a.b\na.b.c(d=1).e\n",
            "class A:\n    n = 4\n    m = n * 2\n    k = [n for _ in range(4)]\n",
            "with open('f') as (a, [b, *c]):\n    print(a, b, c)\n",
            "for a, (b, c[0]) in []:\n    pass\nelse:\n    print(a, b)\nc = []\n",
            "print([y := 1, y], [z for x in 'ab' if (z := x)], z)\n",
            "match 1:\n    case [a, *b] | {'k': a, **b}:\n        print(a, b)\n",
            "def f(x):\n    y: Nothing = 1\n    return y\n",
            "from __future__ import annotations\ndef f(x: Unknown) -> Other:\n    pass\n",
            "def f(x: 'Unknown', y: A) -> A:\n    pass\nA = int\n",
            "def f[T](x: T) -> list[T]:\n    pass\n",
            "try:\n    pass\nexcept (A, B) as error:\n    print(error)\nA = B = 1\n",
            "globals()['x'] = 1\nprint(x)\n",
            "import sys\nsetattr(sys.modules[__name__], 'x', 1)\nprint(x)\n",
            "x = {k: v for k, v in {}.items()}\ny = (a for a in b for b in [1])\nb = 1\n",
            "del_ = lambda *args, k=1, **kw: (args, k, kw)\n",
            "type X = int\ndef f[T](x: T):\n    return T, X\n",
            "a = b = c = 1\na += b + c\n",
            "from ._api import f\ndel _api\n",
        ];
        for text in silent {
            assert_eq!(names(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn what_a_star_may_bind_is_told_apart() {
        let starred = |text: &str| -> Vec<(String, bool)> {
            let found = unbound_in(&Parse::new(text));
            found.iter().map(|read| (read.name.to_string(), read.perhaps_starred)).collect()
        };
        let join = |perhaps_starred| [("join".to_owned(), perhaps_starred)];
        assert_eq!(starred("from os.path import *\nprint(join)\n"), join(true));
        assert_eq!(starred("from math import *\nprint(sqrt, join)\n"), join(false));
        assert_eq!(starred("from os.path import *\nexec('join = 1')\nprint(join)\n"), []);
    }

    #[test]
    fn what_is_visible_is_told() {
        let parse = Parse::new("m = 1\ndef f(n):\n    return nn\ndef g(k):\n    pass\n");
        let found = unbound_in(&parse);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].visible, ["f", "g", "m", "n"].map(Name::from));
    }
}
