//! What importing a file computes: the variables of its module.
//!
//! The outermost statements run in order, as Python runs them, but only those that have to do with
//! the variable asked for: ones that bind it or change what it holds, and the same for all that they
//! name. A statement of which something is not known loses what it binds and may have changed.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::value::{FunctionKind, FunctionRef, Role, Value};
use super::super::{Evaluator, Frame, Locals, Mode, Source, names};
use super::{Exit, Obj, Run, Scope};
use crate::hir::{
    Body, Expr, ExprId, Function, Item, Literal, MainBlock, Module, Name, SourceMap, StmtId,
    statements,
};
use crate::project::{self, ItemRef, Resolution};
use crate::source::FileId;

/// Modules that import each other, deeper than which nothing runs.
const MAX_IMPORTS: usize = 8;

/// What running the statements of a module costs the evaluation that asked for it, at most.
const MAX_COST: u32 = 2_000;

/// A module whose statements run.
pub(in super::super) struct Import {
    file: FileId,
    /// The variable asked for.
    name: Name,
    variables: Variables,
}

type Variables = Rc<RefCell<indexmap::IndexMap<Name, Obj, rustc_hash::FxBuildHasher>>>;

/// Variables of modules that were asked for; `None` where that is not known.
pub(in super::super) type Imports = FxHashMap<(FileId, Name), Option<Obj>>;

/// In the place of a variable's value: it is not known.
pub(super) const LOST: Obj = Obj::Value(Value::Unknown);

impl Obj {
    /// True for the value of a variable that is not known.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self, Obj::Value(Value::Unknown))
    }

    /// True for what can be changed in place.
    fn is_mutable(&self) -> bool {
        match self {
            Obj::Const(_) | Obj::Range(..) | Obj::Builtin(_) | Obj::Value(_) => false,
            Obj::Constexpr(inner) => inner.is_mutable(),
            Obj::Tuple(items, _) | Obj::Sequence(items, _) => items.iter().any(Obj::is_mutable),
            _ => true,
        }
    }

    /// The value with copies of all lists, dictionaries and sets.
    fn copied(&self) -> Obj {
        let all = |items: &[Obj]| items.iter().map(Obj::copied).collect::<Vec<Obj>>();
        match self {
            Obj::Constexpr(inner) => Obj::Constexpr(Rc::new(inner.copied())),
            Obj::Tuple(items, named) => Obj::Tuple(Rc::new(all(items)), named.clone()),
            Obj::Sequence(items, named) => Obj::Sequence(Rc::new(all(items)), named.clone()),
            Obj::List(items) => Obj::list(all(&items.borrow())),
            Obj::Set(items) => Obj::Set(Rc::new(RefCell::new(all(&items.borrow())))),
            Obj::Dict(entries) => {
                let entries = entries.borrow();
                let entries = entries.iter().map(|(key, value)| (key.copied(), value.copied()));
                Obj::Dict(Rc::new(RefCell::new(entries.collect())))
            }
            other => other.clone(),
        }
    }
}

impl Evaluator<'_> {
    /// What a variable of a module holds once the file is imported, and whether that is a constexpr.
    pub(in super::super) fn imported(
        &mut self,
        file: FileId,
        name: &Name,
    ) -> Option<(Value, bool)> {
        let object = self.module_variable(file, name)?;
        let constexpr = matches!(object, Obj::Constexpr(_));
        Some((self.python_result(&object)?, constexpr))
    }

    /// As [`Self::imported`], as Python holds it.
    #[inline(never)]
    pub(super) fn module_variable(&mut self, file: FileId, name: &Name) -> Option<Obj> {
        // While a module runs, its functions see what its variables hold by then.
        let running = self.importing.iter().rev().find(|import| import.file == file);
        if let Some(value) = running.and_then(|it| it.variables.borrow().get(name).cloned()) {
            return (!value.is_lost()).then_some(value);
        }
        let key = (file, name.clone());
        if let Some(known) = self.imports.get(&key) {
            return known.as_ref().map(Obj::copied);
        }
        let asked = |import: &Import| import.file == file && import.name == *name;
        if self.importing.len() >= MAX_IMPORTS || self.importing.iter().any(asked) {
            return None;
        }
        let found = self.import(file, name);
        self.imports.insert(key, found.clone());
        found.as_ref().map(Obj::copied)
    }

    fn import(&mut self, file: FileId, name: &Name) -> Option<Obj> {
        let module = self.project.module(file)?;
        let statements = statements::concerned(&module, name);
        if !statements.iter().any(|main| statements::binds(&main.body, name)) {
            return None;
        }
        let variables = Variables::default();
        let (name, file_of) = (name.clone(), file);
        self.importing.push(Import { file, name: name.clone(), variables: variables.clone() });
        let frame = Frame::new(Mode::Python, file, None, Arc::from([]), Locals::default());
        self.frames.push(frame);
        let steps = self.steps;
        self.quietly(|this| {
            for main in statements {
                this.import_statement(file_of, &module, main, &variables);
            }
        });
        self.steps = self.steps.min(steps.saturating_add(MAX_COST));
        self.frames.pop();
        self.importing.pop();
        let value = variables.borrow().get(&name).cloned();
        value.filter(|value| !value.is_lost())
    }

    fn import_statement(
        &mut self,
        file: FileId,
        module: &Module,
        main: &MainBlock,
        variables: &Variables,
    ) {
        let scope =
            Scope { function: outermost(file, &main.body, &main.map), locals: variables.clone() };
        let source = Source { body: &main.body, map: &main.map, file };
        if self.python_block(source, &scope, &main.body.root).is_ok() {
            return;
        }
        for name in statements::bound(&main.body) {
            scope.set(name, LOST);
        }
        let body = &main.body;
        let named = |name: &Name| body.exprs.values().any(|expr| expr.is_name(name));
        let calls = body.exprs.values().any(|expr| matches!(expr, Expr::Call { .. }));
        let changed: FxHashSet<&Name> =
            module.items.iter().filter(|_| calls).flat_map(statements::changed_by).collect();
        let mut variables = variables.borrow_mut();
        // Variables may share what one of them names.
        let reached = variables
            .iter()
            .any(|(name, value)| value.is_mutable() && (named(name) || changed.contains(name)));
        for value in variables.values_mut().filter(|value| reached && value.is_mutable()) {
            *value = LOST;
        }
    }

    /// A function that is defined in a block of a module or in a function that runs.
    #[inline(never)]
    pub(super) fn python_definition(
        &mut self,
        source: Source<'_>,
        scope: &Scope,
        id: StmtId,
    ) -> Run<()> {
        let statement = source.map.stmts[id];
        let module = self.project.module(scope.file()).ok_or(Exit::Unknown)?;
        let is_defined = |item: &Item| {
            statement.contains_range(item.name_range) && item.scope[..] == scope.function.scope[..]
        };
        let index = module.items.iter().position(is_defined).ok_or(Exit::Unknown)?;
        let at = ItemRef { file: scope.file(), index: index as u32 };
        let role = match project::resolve_item(self.project, at) {
            Resolution::Jit(_) => Role::Jit,
            Resolution::ConstexprFunction(_) => Role::Constexpr,
            Resolution::Function(_) => Role::Host,
            _ => return Err(Exit::Unknown),
        };
        let function = names::function_ref(self.project, at, role).ok_or(Exit::Unknown)?;
        scope.set(&module.items[index].name, Obj::Value(Value::Function(function)));
        Ok(())
    }
}

/// The function that stands for a statement of a module or the variables of a class while it runs.
pub(super) fn outermost(file: FileId, body: &Arc<Body>, map: &SourceMap) -> FunctionRef {
    let function = Function {
        name: Name::from("<module>"),
        decorators: Vec::new(),
        params: Vec::new(),
        returns: None,
        doc: None,
        body: body.clone(),
        map: map.clone(),
        changes: Vec::new(),
        globals: Vec::new(),
    };
    FunctionRef {
        file,
        function: Arc::new(function),
        kind: FunctionKind { role: Role::Host, noinline: false, must_use: false },
        scope: Arc::from([]),
        closure: Arc::from([]),
    }
}

/// True for what needs no statements to run: a literal.
pub(in super::super) fn is_plain(body: &Body, value: ExprId) -> bool {
    matches!(&body.exprs[value], Expr::Literal(literal) if !matches!(literal, Literal::Bytes))
}
