//! Strings, and keywords of `dict`, that name parameters of kernels: keys of configurations and
//! heuristics, names that decorators list, what launches are given by `**`, and what grids and heuristics
//! look up in the arguments they get.

use rustc_hash::FxHashSet;
use tile_compiler::hir::{Function, Item, ItemKind};
use tile_compiler::project::{self, ItemRef};
use tree_sitter::Node;

use super::{Semantics, Symbol};
use crate::db::{self, Analysis};
use crate::ide::tree::{ancestors, is_field, range};

/// How a word stands for a parameter.
enum Role<'t> {
    /// It is a key of a dict.
    Key,
    /// It is one of several names that are listed.
    Element,
    /// It is looked up in what this function or lambda gets.
    Lookup(Node<'t>),
}

impl Semantics<'_> {
    /// The functions that have the parameter which a string, or a keyword of `dict`, names. Several
    /// where kernels share configurations or a grid.
    pub(crate) fn owners(&self, node: Node<'_>) -> Vec<ItemRef> {
        self.owners_below(&ancestors(self.root(), node), node)
    }

    /// The same, given the nodes around it, outermost first.
    pub(super) fn owners_below(&self, around: &[Node<'_>], node: Node<'_>) -> Vec<ItemRef> {
        let Some(role) = self.role(around, node) else { return Vec::new() };
        let mut found = match (self.decorated(around), role) {
            (Some(function), _) => vec![function],
            (None, Role::Key) => {
                let mut found = self.spread_over(around);
                found.extend(self.decorated_with(node.start_byte()));
                found
            }
            (None, Role::Lookup(getter)) => self.launched_with(around, getter),
            (None, Role::Element) => Vec::new(),
        };
        let word = self.text_of(node);
        found.retain(|at| {
            project::function(&Analysis(self.db), *at)
                .is_some_and(|function| function.params.iter().any(|param| &*param.name == word))
        });
        found
    }

    fn role<'t>(&self, around: &[Node<'t>], node: Node<'t>) -> Option<Role<'t>> {
        let (parent, outer) = around.split_last()?;
        if parent.kind() == "keyword_argument" {
            let call = outer.iter().rev().find(|outer| outer.kind() == "call")?;
            let callee = call.child_by_field_name("function")?;
            let is_key = is_field(*parent, "name", node) && self.text_of(callee) == "dict";
            return is_key.then_some(Role::Key);
        }
        if parent.kind() != "string" {
            return None;
        }
        let holder = outer.last()?;
        match holder.kind() {
            "pair" => is_field(*holder, "key", *parent).then_some(Role::Key),
            "list" | "tuple" | "set" => {
                let is_value = outer.iter().any(|outer| outer.kind() == "pair");
                (!is_value).then_some(Role::Element)
            }
            "subscript" if is_field(*holder, "subscript", *parent) => {
                let value = holder.child_by_field_name("value")?;
                let getter = outer.iter().rev().find(|outer| {
                    matches!(outer.kind(), "lambda" | "function_definition")
                        && self.has_parameter(**outer, self.text_of(value))
                })?;
                Some(Role::Lookup(*getter))
            }
            _ => None,
        }
    }

    /// Whether a function or lambda has a parameter of this name.
    fn has_parameter(&self, function: Node<'_>, name: &str) -> bool {
        let Some(parameters) = function.child_by_field_name("parameters") else { return false };
        let mut cursor = parameters.walk();
        let mut children = parameters.named_children(&mut cursor);
        children.any(|parameter| {
            let first = parameter.named_child(0).unwrap_or(parameter);
            self.text_of(first) == name
        })
    }

    /// The function in one of whose decorators these nodes lie.
    fn decorated(&self, around: &[Node<'_>]) -> Option<ItemRef> {
        let at = around.iter().position(|node| node.kind() == "decorator")?;
        let definition = around[at.checked_sub(1)?].child_by_field_name("definition")?;
        let name = range(definition.child_by_field_name("name")?);
        self.item_where(|item| item.name_range == name)
    }

    fn item_where(&self, is_sought: impl Fn(&Item) -> bool) -> Option<ItemRef> {
        let index = db::module(self.db, self.file).items.iter().position(is_sought)?;
        Some(ItemRef { file: self.file.id(self.db), index: index as u32 })
    }

    /// The functions of this file whose decorators use, directly or through functions and constants
    /// of the module, what is defined at `offset`.
    fn decorated_with(&self, offset: usize) -> Vec<ItemRef> {
        let module = db::module(self.db, self.file);
        let mut items = module.items.iter();
        let outermost = items.find(|item| item.scope.is_empty() && item.range.touches(offset));
        let mut names: Vec<&str> = outermost.map(|item| &*item.name).into_iter().collect();
        let mut seen: FxHashSet<&str> = names.iter().copied().collect();
        let mut found = Vec::new();
        while let Some(name) = names.pop() {
            for (index, item) in module.items.iter().enumerate() {
                let uses = match &item.kind {
                    ItemKind::Function(function) => {
                        if decorators_mention(function, name) {
                            found
                                .push(ItemRef { file: self.file.id(self.db), index: index as u32 });
                            continue;
                        }
                        function.body.exprs.values().any(|expr| expr.is_name(name))
                    }
                    ItemKind::Assign { body, .. } => {
                        body.exprs.values().any(|expr| expr.is_name(name))
                    }
                    _ => false,
                };
                if uses && seen.insert(&item.name) {
                    names.push(&item.name);
                }
            }
        }
        found
    }

    /// The kernels that are launched with a grid which is this lambda or function.
    fn launched_with(&self, around: &[Node<'_>], getter: Node<'_>) -> Vec<ItemRef> {
        let Some(depth) = around.iter().position(|node| *node == getter) else { return Vec::new() };
        let outer = &around[..depth];
        if let Some(at) = outer.iter().rposition(|node| node.kind() == "subscript") {
            return self.kernel_of(&outer[..=at]).into_iter().collect();
        }
        let named = match outer.last() {
            _ if getter.kind() == "function_definition" => getter.child_by_field_name("name"),
            Some(parent) if parent.kind() == "assignment" => parent.child_by_field_name("left"),
            _ => None,
        };
        let scope = outer.iter().rfind(|node| node.kind() == "function_definition");
        match (named, scope.or(outer.first())) {
            (Some(name), Some(scope)) => self.launched_in(*scope, self.text_of(name)),
            _ => Vec::new(),
        }
    }

    /// The kernels that code inside a node launches with a grid of this name.
    fn launched_in(&self, scope: Node<'_>, grid: &str) -> Vec<ItemRef> {
        self.kernels_by(scope, grid, |node, around| {
            let is_grid = around.last().is_some_and(|parent| is_field(*parent, "subscript", node));
            self.kernel_of(around).filter(|_| is_grid)
        })
    }

    /// The kernels that the places inside a node where this name stands lead to.
    fn kernels_by(
        &self,
        scope: Node<'_>,
        name: &str,
        kernel: impl Fn(Node<'_>, &[Node<'_>]) -> Option<ItemRef>,
    ) -> Vec<ItemRef> {
        let mut found = Vec::new();
        for (start, _) in self.text_of(scope).match_indices(name) {
            let start = scope.start_byte() + start;
            let node = self.root().descendant_for_byte_range(start, start + name.len());
            let Some(node) = node.filter(|node| self.text_of(*node) == name) else { continue };
            found.extend(kernel(node, &ancestors(self.root(), node)));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The kernels that are launched with the elements of the dict that these nodes lie in as keywords,
    /// at its place or by its name.
    fn spread_over(&self, around: &[Node<'_>]) -> Vec<ItemRef> {
        let makes_dict = |node: &Node<'_>| match node.kind() {
            "call" => {
                let callee = node.child_by_field_name("function");
                callee.is_some_and(|callee| self.text_of(callee) == "dict")
            }
            kind => kind == "dictionary",
        };
        let Some(at) = around.iter().rposition(makes_dict) else { return Vec::new() };
        let outer = &around[..at];
        let Some(holder) = outer.last() else { return Vec::new() };
        match holder.kind() {
            "dictionary_splat" => self.launched_around(outer).into_iter().collect(),
            "assignment" => {
                let name = holder.child_by_field_name("left");
                let scope = outer.iter().rfind(|node| node.kind() == "function_definition");
                let (Some(name), Some(scope)) = (name, scope.or(outer.first())) else {
                    return Vec::new();
                };
                self.kernels_by(*scope, self.text_of(name), |_, around| {
                    self.launched_around(around)
                })
            }
            _ => Vec::new(),
        }
    }

    /// The kernel of the launch to which the last of these nodes spreads a dict.
    fn launched_around(&self, around: &[Node<'_>]) -> Option<ItemRef> {
        let [outer @ .., call, _arguments, splat] = around else { return None };
        if (call.kind(), splat.kind()) != ("call", "dictionary_splat") {
            return None;
        }
        match self.callee(outer, *call)? {
            Symbol::Item(at) => Some(at),
            _ => None,
        }
    }

    /// What `kernel[grid]`, the last of these nodes, launches.
    fn kernel_of(&self, around: &[Node<'_>]) -> Option<ItemRef> {
        let subscript = around.last().filter(|node| node.kind() == "subscript")?;
        let kernel = subscript.child_by_field_name("value")?;
        let found = match kernel.kind() {
            "identifier" => self.symbol_below(around, kernel),
            "attribute" => self.member(around, kernel),
            _ => None,
        };
        match found? {
            Symbol::Item(at) => Some(at),
            _ => None,
        }
    }
}

/// Whether the decorators of a function use a name.
fn decorators_mention(function: &Function, name: &str) -> bool {
    let ranges: Vec<_> = function.decorators.iter().map(|it| function.map.exprs[*it]).collect();
    function.body.exprs.iter().any(|(id, expr)| {
        let at = function.map.exprs[id];
        expr.is_name(name) && ranges.iter().any(|decorator| decorator.contains_range(at))
    })
}
