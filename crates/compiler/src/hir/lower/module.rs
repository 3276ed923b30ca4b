//! Items and launches of a whole file.

use std::sync::Arc;

use super::{Lowering, function, parts};
use crate::hir::{
    Body, CompareOp, Expr, ExprId, Function, Guard, Item, ItemKind, Launch, Literal, MainBlock,
    Module, Name, Occasion, Stmt,
};
use crate::source::TextRange;
use crate::syntax::kind::{Field, Kind};
use crate::syntax::node::Node;
use crate::syntax::statement::Statement;

/// Statements may nest this deep before the rest is not looked at.
const MAX_BLOCKS: usize = 100;

/// Collects the items and the launches in host code.
pub(super) fn lower(text: &str, statements: &[Statement<'_>]) -> Module {
    let mut collector = Collector::new(text);
    statements.iter().for_each(|statement| collector.outermost(statement.top()));
    collector.module
}

pub(super) struct Collector<'a> {
    text: &'a str,
    pub(super) module: Module,
    scope: Vec<Name>,
    /// The innermost function around the statement.
    host: Option<Name>,
    blocks: usize,
    /// Whether assignments here are items: at module level, and in functions that define others.
    binds: bool,
    /// When the statement runs.
    occasion: Occasion,
    /// The condition under which it runs.
    guard: Option<Arc<Guard>>,
}

impl<'a> Collector<'a> {
    /// A collector of the outermost statements of `text`.
    pub(super) fn new(text: &'a str) -> Collector<'a> {
        Collector {
            text,
            module: Module::default(),
            scope: Vec::new(),
            host: None,
            blocks: 0,
            binds: true,
            occasion: Occasion::Always,
            guard: None,
        }
    }

    /// An outermost statement.
    pub(super) fn outermost(&mut self, node: Node<'_>) {
        self.blocks = 1;
        self.main_block(node);
        self.statement(node);
    }
}

impl Collector<'_> {
    /// Statements of a module, a block, or an error in which recovery kept statements.
    fn statements(&mut self, node: Node<'_>) {
        if self.blocks >= MAX_BLOCKS {
            return;
        }
        self.blocks += 1;
        for child in node.named_children() {
            self.statement(child);
        }
        self.blocks -= 1;
    }

    fn statement(&mut self, node: Node<'_>) {
        match node.kind() {
            Kind::ImportStatement => self.import(node),
            Kind::ImportFromStatement => self.import_from(node),
            Kind::FunctionDefinition => {
                self.function(node, node, &[]);
            }
            Kind::ClassDefinition => self.class(node, node, &[]),
            Kind::DecoratedDefinition => self.decorated(node),
            Kind::ExpressionStatement => {
                if self.binds {
                    self.bindings(node);
                }
                self.launches(node);
            }
            Kind::Error
            | Kind::Block
            | Kind::ElifClause
            | Kind::ElseClause
            | Kind::ExceptClause
            | Kind::FinallyClause
            | Kind::CaseClause => self.statements(node),
            Kind::IfStatement => self.conditional(node),
            Kind::TryStatement
            | Kind::WhileStatement
            | Kind::WithStatement
            | Kind::MatchStatement => {
                self.compound(node);
            }
            Kind::ForStatement => {
                if self.binds
                    && let Some(target) = node.field(Field::Left)
                {
                    self.unknown_targets(node, target);
                }
                self.compound(node);
            }
            Kind::ReturnStatement
            | Kind::AssertStatement
            | Kind::RaiseStatement
            | Kind::DeleteStatement => self.launches(node),
            _ => {}
        }
    }

    /// Keeps what an outermost statement runs: what `if __name__ == "__main__":` guards, and
    /// statements that bind, call or assert something.
    fn main_block(&mut self, node: Node<'_>) {
        let runs = matches!(
            node.kind(),
            Kind::ExpressionStatement
                | Kind::AssertStatement
                | Kind::IfStatement
                | Kind::ForStatement
                | Kind::TryStatement
                | Kind::WhileStatement
                | Kind::WithStatement
                | Kind::MatchStatement
        );
        let first = node.named_children().next().map(Node::kind);
        let binds = matches!(first, Some(Kind::Assignment | Kind::AugmentedAssignment));
        // A compound statement binds by what stands in it.
        let calls = match node.kind() {
            Kind::ExpressionStatement => {
                first != Some(Kind::String) && self.text(node).contains('(')
            }
            Kind::AssertStatement => true,
            _ => self.text(node).contains(['(', '=']),
        };
        if !runs || !(binds || calls) {
            return;
        }
        let mut lowering = Lowering::new(self.text);
        let condition = node.field(Field::Condition).map(|condition| lowering.expr(condition));
        let asks = |test: ExprId| asks_main(&lowering.body, test);
        let is_program = condition.is_some_and(asks);
        // What more it asks is asked when the program runs.
        let asks_alone = condition.is_some_and(|test| is_main(&lowering.body, test));
        lowering.body.root = match asks_alone {
            true => lowering.field_block(node, Field::Consequence),
            false => vec![lowering.stmt(node)],
        };
        let (body, map) = lowering.finish();
        let map = Arc::new(map);
        self.module.mains.push(MainBlock { range: node.range(), body, map, is_program });
    }

    /// The condition that stands in an `if` or `elif`, outside of functions and classes.
    fn guard(&self, clause: Node<'_>, holds: bool) -> Option<Arc<Guard>> {
        let condition = clause.field(Field::Condition).filter(|_| self.scope.is_empty())?;
        let mut lowering = Lowering::new(self.text);
        let test = lowering.expr(condition);
        let ((body, _), and) = (lowering.finish(), self.guard.clone());
        Some(Arc::new(Guard { body, test, holds, and }))
    }

    /// The branches of an `if`, each under its condition.
    fn conditional(&mut self, node: Node<'_>) {
        let outer = self.guard.clone();
        let mut clause = node;
        self.guard = self.guard(node, true).or(outer.clone());
        let mut before = outer.clone();
        for child in node.named_children() {
            if matches!(child.kind(), Kind::ElifClause | Kind::ElseClause) {
                // None of the conditions before held.
                self.guard = before.clone();
                before = self.guard(clause, false).or(before);
                self.guard = before.clone();
                clause = child;
                self.guard = self.guard(child, true).or(before.clone());
            }
            self.branch(child, !self.scope.is_empty());
        }
        self.guard = outer;
    }

    /// Launches of a compound statement's head, and its blocks.
    fn compound(&mut self, node: Node<'_>) {
        let branches = matches!(node.kind(), Kind::TryStatement | Kind::MatchStatement);
        for child in node.named_children() {
            self.branch(child, branches);
        }
    }

    /// A part of a compound statement: one of several blocks of which some run, if `branches`.
    fn branch(&mut self, part: Node<'_>, branches: bool) {
        let around = self.occasion;
        match part.kind() {
            Kind::ExceptClause => {
                self.occasion = Occasion::Fallback;
                self.statements(part);
            }
            Kind::Block
            | Kind::ElifClause
            | Kind::ElseClause
            | Kind::FinallyClause
            | Kind::CaseClause
            | Kind::Error => {
                if branches && around == Occasion::Always {
                    self.occasion = Occasion::Branch;
                }
                self.statements(part);
            }
            _ => self.launches(part),
        }
        self.occasion = around;
    }

    fn text(&self, node: Node<'_>) -> &str {
        self.text.get(node.range().as_usize()).unwrap_or_default()
    }

    fn name(&self, node: Node<'_>) -> Name {
        Arc::from(self.text(node))
    }

    fn item(&mut self, name: Name, name_range: TextRange, range: TextRange, kind: ItemKind) {
        let (scope, occasion, guard) = (self.scope.clone(), self.occasion, self.guard.clone());
        self.module.items.push(Item { name, name_range, range, scope, occasion, guard, kind });
    }

    fn dotted(&self, node: Node<'_>) -> Vec<Name> {
        parts(node).into_iter().map(|part| self.name(part)).collect()
    }

    fn import(&mut self, node: Node<'_>) {
        for part in parts(node) {
            if part.kind() == Kind::AliasedImport {
                let (Some(path), Some(alias)) = (part.field(Field::Name), part.field(Field::Alias))
                else {
                    continue;
                };
                let kind = ItemKind::Import { path: self.dotted(path), within: Vec::new() };
                self.item(self.name(alias), alias.range(), node.range(), kind);
            } else if let Some((first, rest)) = parts(part).split_first() {
                // `import a.b` binds `a`; that `a.b` exists follows from resolving attributes.
                let name = self.name(*first);
                let within = rest.iter().map(|part| self.name(*part)).collect();
                let kind = ItemKind::Import { path: vec![name.clone()], within };
                self.item(name, first.range(), node.range(), kind);
            }
        }
    }

    fn import_from(&mut self, node: Node<'_>) {
        let Some(source) = node.field(Field::ModuleName) else { return };
        let (level, path) = self.import_source(source);
        for part in parts(node) {
            if part == source {
                continue;
            }
            let (member, alias) = match part.kind() {
                Kind::WildcardImport => (Name::from("*"), part),
                Kind::AliasedImport => match (part.field(Field::Name), part.field(Field::Alias)) {
                    (Some(name), Some(alias)) => (self.name(name), alias),
                    _ => continue,
                },
                _ => (self.name(part), part),
            };
            let name = self.name(alias);
            let kind = ItemKind::ImportFrom { level, path: path.clone(), member };
            self.item(name, alias.range(), node.range(), kind);
        }
    }

    fn import_source(&self, node: Node<'_>) -> (u32, Vec<Name>) {
        if node.kind() != Kind::RelativeImport {
            return (0, self.dotted(node));
        }
        let mut level = 0;
        let mut path = Vec::new();
        for part in parts(node) {
            if part.kind() == Kind::ImportPrefix {
                level = self.text(part).bytes().filter(|&byte| byte == b'.').count() as u32;
            } else {
                path = self.dotted(part);
            }
        }
        (level, path)
    }

    fn decorated(&mut self, node: Node<'_>) {
        let Some(definition) = node.field(Field::Definition) else { return };
        let decorators: Vec<_> =
            parts(node).into_iter().filter(|n| n.kind() == Kind::Decorator).collect();
        match definition.kind() {
            Kind::FunctionDefinition => {
                self.function(node, definition, &decorators);
            }
            Kind::ClassDefinition => self.class(node, definition, &decorators),
            _ => {}
        }
    }

    fn function(
        &mut self,
        whole: Node<'_>,
        definition: Node<'_>,
        decorators: &[Node<'_>],
    ) -> Option<Arc<Function>> {
        let name = definition.field(Field::Name)?;
        let function = Arc::new(function::function(self.text, definition, decorators));
        let kind = ItemKind::Function(function.clone());
        self.item(self.name(name), name.range(), whole.range(), kind);
        let body = definition.field(Field::Body)?;
        let outer_host = self.host.replace(self.name(name));
        let outer_binds = std::mem::replace(&mut self.binds, defines_functions(&function.body));
        let around = std::mem::replace(&mut self.occasion, Occasion::Always);
        self.scope.push(self.name(name));
        self.statements(body);
        self.scope.pop();
        self.occasion = around;
        self.binds = outer_binds;
        self.host = outer_host;
        Some(function)
    }

    fn class(&mut self, whole: Node<'_>, definition: Node<'_>, decorators: &[Node<'_>]) {
        let Some(name) = definition.field(Field::Name) else { return };
        let index = self.module.items.len();
        self.item(self.name(name), name.range(), whole.range(), ItemKind::Unknown);
        self.scope.push(self.name(name));
        let around = std::mem::replace(&mut self.occasion, Occasion::Always);
        let mut methods = Vec::new();
        for statement in definition.field(Field::Body).map(parts).unwrap_or_default() {
            methods.extend(self.method(statement));
        }
        self.occasion = around;
        self.scope.pop();
        let class = function::class(self.text, definition, decorators, methods);
        self.module.items[index].kind = ItemKind::Class(Arc::new(class));
    }

    /// A statement of a class body; the method, if it is one.
    fn method(&mut self, statement: Node<'_>) -> Option<Arc<Function>> {
        let definition = match statement.kind() {
            Kind::DecoratedDefinition => statement.field(Field::Definition)?,
            _ => statement,
        };
        if definition.kind() != Kind::FunctionDefinition {
            self.statement(statement);
            return function::lambda_method(self.text, statement).map(Arc::new);
        }
        let decorators: Vec<_> =
            parts(statement).into_iter().filter(|n| n.kind() == Kind::Decorator).collect();
        self.function(statement, definition, &decorators)
    }

    /// Names bound by an assignment statement.
    fn bindings(&mut self, node: Node<'_>) {
        let Some(assignment) = parts(node).first().copied() else { return };
        if !matches!(assignment.kind(), Kind::Assignment | Kind::AugmentedAssignment) {
            return;
        }
        let mut lowering = Lowering::new(self.text);
        let stmt = lowering.stmt(node);
        let (targets, value, annotation) = match lowering.body.stmts[stmt].clone() {
            Stmt::Assign { targets, value } => (targets, Some(value), None),
            Stmt::AnnAssign { target, annotation, value } => {
                (vec![target], value, Some(annotation))
            }
            Stmt::AugAssign { target, .. } => (vec![target], None, None),
            _ => return,
        };
        let mut names = Vec::new();
        for target in &targets {
            bound_names(&lowering.body, *target, value, &mut names);
        }
        let element = |name: ExprId| {
            let call =
                value.filter(|value| matches!(lowering.body.exprs[*value], Expr::Call { .. }))?;
            let at = targets.iter().find_map(|target| match &lowering.body.exprs[*target] {
                Expr::Tuple(names) => names.iter().position(|known| *known == name),
                _ => None,
            });
            Some((call, at?))
        };
        let elements: Vec<_> = names.iter().map(|(name, ..)| element(*name)).collect();
        let ranges = names.iter().map(|(target, ..)| lowering.map.exprs[*target]);
        let ranges: Vec<_> = ranges.collect();
        let (body, map) = lowering.finish();
        let map = Arc::new(map);
        for (((_, name, value), element), name_range) in names.into_iter().zip(elements).zip(ranges)
        {
            let kind = match (value, element) {
                (Some(value), _) => {
                    ItemKind::Assign { body: body.clone(), map: map.clone(), value, annotation }
                }
                (None, Some((call, index))) => {
                    ItemKind::Element { body: body.clone(), map: map.clone(), call, index }
                }
                (None, None) => ItemKind::Unknown,
            };
            self.item(name, name_range, node.range(), kind);
        }
    }

    /// Names bound in ways that are not followed.
    fn unknown_targets(&mut self, statement: Node<'_>, target: Node<'_>) {
        let mut lowering = Lowering::new(self.text);
        let target = lowering.expr(target);
        let mut names = Vec::new();
        bound_names(&lowering.body, target, None, &mut names);
        for (target, name, _) in names {
            self.item(name, lowering.map.exprs[target], statement.range(), ItemKind::Unknown);
        }
    }

    /// Launches `kernel[grid](...)` anywhere inside a host expression.
    fn launches(&mut self, node: Node<'_>) {
        if !may_launch(self.text(node)) {
            return;
        }
        // Scenarios may stand anywhere and are lowered by themselves.
        let enters = |node: Node<'_>| node.kind() != Kind::ScenarioLine;
        for call in node.within(enters).filter(|node| node.kind() == Kind::Call) {
            if is_launch(call) {
                self.launch(call);
            }
        }
    }

    fn launch(&mut self, call: Node<'_>) {
        let mut lowering = Lowering::new(self.text);
        let call_id = lowering.expr(call);
        let launch = launch_of(lowering, call_id, call.range(), self.host.clone());
        self.module.launches.extend(launch);
    }
}

/// True for `__name__ == "__main__"`, alone or with more that has to hold.
fn asks_main(body: &Body, condition: ExprId) -> bool {
    match &body.exprs[condition] {
        Expr::Bool { and: true, values } => values.iter().any(|value| asks_main(body, *value)),
        _ => is_main(body, condition),
    }
}

/// True for `__name__ == "__main__"`.
fn is_main(body: &Body, condition: ExprId) -> bool {
    let Expr::Compare { first, rest } = &body.exprs[condition] else { return false };
    let [(CompareOp::Eq, second)] = rest[..] else { return false };
    let is_name =
        |expr: ExprId| matches!(&body.exprs[expr], Expr::Name(name) if &**name == "__name__");
    let is_text = |expr: ExprId| matches!(&body.exprs[expr], Expr::Literal(Literal::Str(text)) if &**text == "__main__");
    (is_name(*first) && is_text(second)) || (is_text(*first) && is_name(second))
}

/// True when a closing bracket stands before an opening parenthesis, as in every launch; most
/// statements are spared a walk of their tree.
fn may_launch(text: &str) -> bool {
    text.match_indices(']').any(|(at, _)| {
        let rest = text[at + 1..].trim_start_matches([' ', '\t', '\r', '\n', '\\']);
        rest.starts_with(['(', '#'])
    })
}

/// A call of a subscript whose callee can name a kernel.
fn is_launch(call: Node<'_>) -> bool {
    let callee = call.field(Field::Function).filter(|node| node.kind() == Kind::Subscript);
    callee.and_then(|callee| callee.field(Field::Value)).is_some_and(|value| {
        let kind = value.kind();
        matches!(kind, Kind::Identifier | Kind::Attribute | Kind::Call | Kind::Subscript)
    })
}

/// The launch that the lowered call `call` is.
fn launch_of(
    lowering: Lowering<'_>,
    call: ExprId,
    range: TextRange,
    host: Option<Name>,
) -> Option<Launch> {
    let Expr::Call { callee, args } = &lowering.body.exprs[call] else { return None };
    let Expr::Subscript { value, index } = lowering.body.exprs[*callee] else { return None };
    let args = args.clone();
    let (body, map) = lowering.finish();
    let map = Arc::new(map);
    Some(Launch { range, body, map, kernel: value, grid: index, args, host })
}

/// The names in an assignment target, each with its value where the value's shape shows it.
fn bound_names(
    body: &Body,
    target: ExprId,
    value: Option<ExprId>,
    names: &mut Vec<(ExprId, Name, Option<ExprId>)>,
) {
    match &body.exprs[target] {
        Expr::Name(name) => names.push((target, name.clone(), value)),
        Expr::Tuple(targets) | Expr::List(targets) => {
            let values = match value.map(|value| &body.exprs[value]) {
                Some(Expr::Tuple(values) | Expr::List(values)) if values.len() == targets.len() => {
                    Some(values)
                }
                _ => None,
            };
            for (index, target) in targets.iter().enumerate() {
                bound_names(body, *target, values.map(|values| values[index]), names);
            }
        }
        Expr::Starred(target) => bound_names(body, *target, None, names),
        _ => {}
    }
}

/// True when a body defines functions or classes, whose names may refer to its bindings.
fn defines_functions(body: &Body) -> bool {
    body.stmts.values().any(|stmt| {
        matches!(stmt, Stmt::Unsupported("FunctionDef" | "AsyncFunctionDef" | "ClassDef"))
    })
}
