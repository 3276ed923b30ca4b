//! What can be written at a place: members, names, keyword arguments.
//!
//! The text before the cursor rarely parses, so the context is read from the text itself, and
//! the meaning of its names from the last state of the tree.

use tile_compiler::builtins::{
    self, Builtin, Choice, Parameter, ParameterKind, ScenarioFunction, TritonVersion,
    scenario_function,
};
use tile_compiler::eval::dtype::DType;
use tile_compiler::hir::{Function, ItemKind, Name};
use tile_compiler::project::{self, ItemRef, Resolution, Scope};
use tile_compiler::source::TextRange;

use crate::db::{self, Analysis, Db, SourceFile};
use crate::ide::symbol::{Semantics, is_class, locals};

mod members;
mod open_call;
mod snippets;
mod strings;

pub(crate) use open_call::{OpenCall, open_call};
use open_call::{code_alone, path_at_end};

/// Something that can be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// The place asks for such: it comes before what can stand anywhere.
    pub(crate) expected: bool,
    /// What is written over before the cursor, where that is not the word there.
    pub(crate) replaces: Option<TextRange>,
    /// The word.
    pub(crate) label: String,
    /// What is written, where it differs.
    pub(crate) insert: Option<String>,
    /// What it is.
    pub(crate) kind: ItemKindHint,
    /// One line about it.
    pub(crate) detail: Option<String>,
    /// Documentation in Markdown.
    pub(crate) doc: Option<&'static str>,
    /// It should not be used any more.
    pub(crate) deprecated: bool,
    /// What is written has places to fill in, as snippets of the protocol do.
    pub(crate) snippet: bool,
    /// Its place among those of its kind, before its name counts: parameters come in their order,
    /// what is private comes last.
    pub(crate) place: usize,
}

/// What a completion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ItemKindHint {
    /// A keyword argument of the call around the cursor.
    Keyword,
    /// What a value has besides methods.
    Attribute,
    /// A variable or parameter.
    Variable,
    /// A module-level value.
    Constant,
    /// A class of the project.
    Class,
    /// A function of the project.
    Function,
    /// A member of the language.
    Builtin,
    /// An element type.
    Type,
    /// A module.
    Module,
    /// A piece of code with places to fill in.
    Snippet,
    /// What an option may say.
    Choice,
    /// A word of Python.
    Word,
}

/// What can be written at `offset`.
pub(crate) fn completions(db: &dyn Db, file: SourceFile, offset: usize) -> Vec<Item> {
    let Some(semantics) = Semantics::new(db, file) else { return Vec::new() };
    let offset = offset.min(semantics.text.len());
    if let Some(codes) = strings::codes(semantics.text, offset) {
        return codes;
    }
    let context = Context::new(&semantics, offset);
    match written_at(&semantics, offset) {
        Written::Code => {}
        Written::Comment => return Vec::new(),
        Written::String => {
            let choices = context.choices_in_string();
            return if choices.is_empty() { context.parameters_in_string() } else { choices };
        }
    }
    match dotted_before(semantics.text, offset) {
        Some(path) => context.members(&path),
        None => context.names(offset),
    }
}

/// Where names are looked up.
pub(crate) struct Context<'s, 'db> {
    semantics: &'s Semantics<'db>,
    around: Vec<(ItemRef, &'db Function)>,
    offset: usize,
}

/// What a path means to completion.
pub(crate) enum Callee {
    /// A member of the language.
    Builtin(&'static Builtin),
    /// A method of tensors: its first parameter is written before the dot.
    Method(&'static Builtin),
    /// A function of the project.
    Function(std::sync::Arc<Function>),
    /// A function of scenarios.
    Scenario(&'static ScenarioFunction),
}

impl<'s, 'db> Context<'s, 'db> {
    pub(crate) fn new(semantics: &'s Semantics<'db>, offset: usize) -> Context<'s, 'db> {
        let around = semantics.functions_around(offset);
        Context { semantics, around, offset }
    }

    fn version(&self) -> TritonVersion {
        db::version(self.semantics.db, self.semantics.file)
    }

    fn is_local(&self, name: &str) -> bool {
        self.around.iter().any(|(_, function)| locals(function).contains(&name))
    }

    fn resolve(&self, path: &[String]) -> Resolution {
        let db = self.semantics.db;
        let sources = Analysis(db);
        let Some((first, rest)) = path.split_first() else { return Resolution::Undefined };
        let scope_path: Vec<Name> = self.around.first().map_or(Vec::new(), |(at, _)| {
            let item = project::item(&sources, *at);
            item.map(|item| item.body_scope()).unwrap_or_default()
        });
        let scope = Scope { file: self.semantics.file.id(db), path: &scope_path };
        let mut found = project::resolve(&sources, scope, first);
        for name in rest {
            found = project::resolve_member(&sources, &found, name);
        }
        found
    }

    /// The parameter of a member of the language that the argument at the cursor is for.
    fn parameter(&self) -> Option<(&'static Builtin, &'static Parameter)> {
        let call = open_call(self.semantics.text, self.offset)?;
        let (builtin, receiver) = match self.callee(&call.callee)? {
            Callee::Builtin(builtin) => (builtin, 0),
            Callee::Method(builtin) => (builtin, 1),
            Callee::Function(_) | Callee::Scenario(_) => return None,
        };
        let mut parameters = builtin.parameters(self.version()).iter();
        let found = match &call.keyword {
            Some(keyword) => parameters.find(|parameter| parameter.name == *keyword),
            None if !call.given.is_empty() => None,
            None => parameters
                .nth(call.position + receiver)
                .filter(|parameter| parameter.kind == ParameterKind::Normal),
        };
        Some((builtin, found?))
    }

    /// What the option at the cursor may say, in quotes.
    fn choices(&self) -> Vec<Item> {
        let Some((builtin, parameter)) = self.parameter() else { return Vec::new() };
        let choices = builtin.choices(parameter.name, self.version()).into_iter().enumerate();
        choices.map(|(place, choice)| choice_item(&choice, place, true)).collect()
    }

    /// As [`Self::choices`], inside of the quotes: what was typed is written over.
    fn choices_in_string(&self) -> Vec<Item> {
        let before = &self.semantics.text[..self.offset];
        let typed = before.trim_end_matches(|c| is_word(c) || c == '.').len();
        if !before[..typed].ends_with(['"', '\'']) {
            return Vec::new();
        }
        let replaces = TextRange::new(typed, self.offset);
        let context = Context { offset: typed - 1, around: self.around.clone(), ..*self };
        let Some((builtin, parameter)) = context.parameter() else { return Vec::new() };
        let choices = builtin.choices(parameter.name, self.version()).into_iter().enumerate();
        let said = choices.filter(|(_, choice)| !choice.text.is_empty());
        let items = said.map(|(place, choice)| Item {
            replaces: Some(replaces),
            ..choice_item(&choice, place, false)
        });
        items.collect()
    }

    /// Element types where one is expected, as members of the language's module by the name that
    /// the file has for it.
    fn element_types(&self) -> Vec<Item> {
        let is_expected = self.parameter().is_some_and(|(_, parameter)| parameter.is_dtype());
        if self.is_type_of_scenario() {
            return types(|dtype| dtype.member().to_owned()).collect();
        }
        let module = db::module(self.semantics.db, self.semantics.file);
        let names = module.items.iter().filter(|item| item.scope.is_empty());
        let language = names.map(|item| item.name.to_string()).find(|name| {
            let found = self.resolve(std::slice::from_ref(name));
            matches!(found, Resolution::TritonModule(path) if &*path == "language")
        });
        let known = self.resolve(&["tl".to_owned()]);
        let known = matches!(known, Resolution::TritonModule(_)).then(|| "tl".to_owned());
        let Some(language) = known.or(language).filter(|_| is_expected) else { return Vec::new() };
        types(|dtype| format!("{language}.{}", dtype.member())).collect()
    }

    /// Whether the argument at the cursor is the element type of a function of scenarios.
    fn is_type_of_scenario(&self) -> bool {
        let call = open_call(self.semantics.text, self.offset);
        call.is_some_and(|call| {
            let is_type = call.keyword.as_deref() == Some("dtype");
            is_type && matches!(self.callee(&call.callee), Some(Callee::Scenario(_)))
        })
    }

    fn module_members(&self, module: &str) -> Vec<Item> {
        let version = self.version();
        let dotted = if module.is_empty() {
            builtins::TRITON.to_owned()
        } else {
            format!("{}.{module}", builtins::TRITON)
        };
        let members = builtins::members(&dotted).into_iter();
        let mut items: Vec<Item> = members
            .filter(|member| member.exists_in(version))
            .map(|member| builtin_item(member, None, version))
            .collect();
        let modules = builtins::submodules(&dotted).iter();
        items.extend(modules.map(|(name, _)| item(*name, ItemKindHint::Module)));
        if dotted == builtins::LANGUAGE {
            let expected = self.parameter().is_some_and(|(_, parameter)| parameter.is_dtype());
            items.extend(DType::ALL.iter().map(|dtype| Item {
                expected,
                place: if expected { place_of_type(*dtype) } else { 0 },
                ..item(dtype.member(), ItemKindHint::Type)
            }));
        }
        items
    }

    /// Names and keyword arguments. Outside of kernels and scenarios other servers know better.
    fn names(&self, offset: usize) -> Vec<Item> {
        let mut items = self.choices();
        items.extend(self.element_types());
        let call = open_call(self.semantics.text, offset);
        let callee = call.as_ref().and_then(|call| self.callee(&call.callee));
        let unnamed = call.as_ref().filter(|call| call.keyword.is_none());
        if let (Some(call), Some(callee)) = (unnamed, &callee) {
            items.extend(keywords(callee, call, self.version()));
            if let (Callee::Function(_), true) = (callee, call.launch) {
                let free = |name: &&str| !call.given.iter().any(|given| given == name);
                items.extend(LAUNCH_OPTIONS.into_iter().filter(free).map(|name| Item {
                    insert: Some(format!("{name}=")),
                    place: LAST,
                    ..item(format!("{name}="), ItemKindHint::Keyword)
                }));
            }
        }
        let in_scenario = self.in_scenario();
        if call.is_none() && !in_scenario {
            items.extend(snippets::at(self.semantics.text, offset, !self.around.is_empty()));
        }
        if in_scenario {
            items.extend(snippets::scenario_functions());
        }
        if self.around.is_empty() && !in_scenario {
            return items;
        }
        let locals = self.local_names();
        let hides = |found: &Item| locals.iter().any(|local| local.label == found.label);
        let globals = items_of(self.semantics.db, self.semantics.file).into_iter();
        let globals = globals.filter(|found| !hides(found) && self.is_usable(&found.label));
        let globals: Vec<Item> = globals.collect();
        items.extend(locals);
        items.extend(globals);
        items.extend(snippets::words(self.semantics.text, offset, in_scenario));
        let version = self.version();
        let python = builtins::members(builtins::PYTHON).into_iter();
        items.extend(python.map(|builtin| builtin_item(builtin, None, version)));
        items
    }

    /// The names that functions around the cursor bind, with their types, innermost first.
    fn local_names(&self) -> Vec<Item> {
        let mut seen = std::collections::BTreeSet::new();
        let names = self.around.iter().flat_map(|(_, function)| locals(function));
        let names = names.filter(|name| seen.insert(*name));
        let local = |name: &str| Item {
            detail: self.local_type(name),
            ..item(name, ItemKindHint::Variable)
        };
        names.map(local).collect()
    }

    /// Whether code at the cursor can use a name of the file: of modules, scenarios know that of the
    /// language alone.
    fn is_usable(&self, name: &str) -> bool {
        if !self.in_scenario() {
            return true;
        }
        match self.resolve(&[name.to_owned()]) {
            Resolution::TritonModule(path) => &*path == "language",
            Resolution::File(_) | Resolution::Folder(..) | Resolution::External(_) => false,
            _ => true,
        }
    }

    fn in_scenario(&self) -> bool {
        let module = db::module(self.semantics.db, self.semantics.file);
        module.scenarios.iter().any(|scenario| scenario.range.touches(self.offset))
    }

    /// The function that a dotted path calls.
    pub(crate) fn callee(&self, path: &[String]) -> Option<Callee> {
        let last = path.last()?;
        let is_method = path.len() > 1 && self.is_local(&path[0]) || path[0].is_empty();
        if is_method {
            return self.method(&path[..path.len() - 1], last).map(Callee::Method);
        }
        if let (true, [name]) = (self.in_scenario(), path)
            && let Some(function) = scenario_function(name)
        {
            return Some(Callee::Scenario(function));
        }
        match self.resolve(path) {
            Resolution::Triton(path) => crate::ide::symbol::builtin(&path).map(Callee::Builtin),
            Resolution::Jit(at) | Resolution::Function(at) | Resolution::ConstexprFunction(at) => {
                project::function(&Analysis(self.semantics.db), at).map(Callee::Function)
            }
            _ => builtins::member(builtins::PYTHON, last).map(Callee::Builtin),
        }
    }
}

/// Place behind all others of a kind.
const LAST: usize = 99;

fn item(label: impl Into<String>, kind: ItemKindHint) -> Item {
    let (insert, detail, doc) = (None, None, None);
    let (deprecated, snippet, expected, replaces) = (false, false, false, None);
    let label = label.into();
    let place = if label.starts_with('_') { LAST } else { 0 };
    Item { expected, replaces, label, insert, kind, detail, doc, deprecated, snippet, place }
}

/// Where an element type stands among those that can be written: what kernels compute with before what
/// they store, before the rest.
fn place_of_type(dtype: DType) -> usize {
    match (dtype.is_float(), dtype.bits()) {
        (true, 16 | 32) => 0,
        (false, 32 | 64) => 1,
        _ => 2,
    }
}

/// The element types, as `written`, where one is expected.
fn types(written: impl Fn(DType) -> String) -> impl Iterator<Item = Item> {
    DType::ALL.iter().map(move |dtype| Item {
        expected: true,
        place: place_of_type(*dtype),
        ..item(written(*dtype), ItemKindHint::Type)
    })
}

/// What an option may say, with its quotes or, inside of those, without.
fn choice_item(choice: &Choice, place: usize, quoted: bool) -> Item {
    let text = if quoted { format!("\"{}\"", choice.text) } else { choice.text.to_owned() };
    // To say nothing is the default, which need not be written.
    let place = if choice.text.is_empty() { LAST } else { place };
    Item {
        expected: true,
        place,
        detail: Some(choice.doc.to_owned()),
        ..item(text, ItemKindHint::Choice)
    }
}

fn builtin_item(builtin: &'static Builtin, receiver: Option<&str>, version: TritonVersion) -> Item {
    Item {
        detail: Some(builtin.call_text(receiver, version)),
        doc: Some(builtin.doc),
        deprecated: builtin.deprecated.is_some(),
        ..item(builtin.name, ItemKindHint::Builtin)
    }
}

fn keywords(callee: &Callee, call: &OpenCall, version: TritonVersion) -> Vec<Item> {
    let keyword = |name: &str, place: usize| Item {
        insert: Some(format!("{name}=")),
        place,
        ..item(format!("{name}="), ItemKindHint::Keyword)
    };
    let free = |name: &str, index: usize| {
        index >= call.position && !call.given.iter().any(|given| given == name)
    };
    match callee {
        Callee::Builtin(builtin) | Callee::Method(builtin) => {
            let receiver = usize::from(matches!(callee, Callee::Method(_)));
            let parameters = builtin.parameters(version).iter().skip(receiver).enumerate();
            let named = |parameter: &Parameter| parameter.kind != ParameterKind::VarArgs;
            parameters
                .filter(|(index, parameter)| named(parameter) && free(parameter.name, *index))
                .map(|(index, parameter)| Item {
                    detail: parameter.default.map(|default| format!("default {default}")),
                    ..keyword(parameter.name, index)
                })
                .collect()
        }
        Callee::Function(function) => {
            let params = function.params.iter().enumerate();
            let open = params.filter(|(index, param)| free(&param.name, *index));
            open.map(|(index, param)| keyword(&param.name, index)).collect()
        }
        Callee::Scenario(function) => {
            let optional = function.parameters().filter(|parameter| parameter.contains('='));
            let names = optional.map(ScenarioFunction::parameter_name);
            let free = |name: &&str| !call.given.iter().any(|given| given == name);
            names.filter(free).enumerate().map(|(index, name)| keyword(name, index)).collect()
        }
    }
}

/// The documentations of what can be called `name`: members of the language, and functions of
/// scenarios.
pub(crate) fn documented(name: &str) -> impl Iterator<Item = &'static str> {
    let builtins = builtins::all().filter(move |builtin| builtin.name == name);
    let scenario = snippets::scenario_functions().filter(move |item| item.label == name);
    builtins.map(|builtin| builtin.doc).chain(scenario.filter_map(|item| item.doc))
}

/// Options of every launch.
const LAUNCH_OPTIONS: [&str; 4] = ["num_warps", "num_stages", "num_ctas", "maxnreg"];

/// Names at the top of a file.
fn items_of(db: &dyn Db, file: SourceFile) -> Vec<Item> {
    let mut seen = std::collections::BTreeSet::new();
    let module = db::module(db, file);
    let items = module.items.iter().enumerate();
    let top = items.filter(|(_, item)| item.scope.is_empty() && &*item.name != "*");
    top.filter(|(_, item)| seen.insert(item.name.clone()))
        .map(|(index, found)| {
            let kind = match &found.kind {
                ItemKind::Function(_) => ItemKindHint::Function,
                ItemKind::Import { .. } => ItemKindHint::Module,
                _ if is_class(db, file, index) => ItemKindHint::Class,
                _ => ItemKindHint::Constant,
            };
            item(found.name.to_string(), kind)
        })
        .collect()
}

/// What is being written somewhere.
enum Written {
    Code,
    String,
    Comment,
}

fn written_at(semantics: &Semantics<'_>, offset: usize) -> Written {
    let before = offset.saturating_sub(1);
    let Some(node) = semantics.root().descendant_for_byte_range(before, offset) else {
        return Written::Code;
    };
    let covers = node.start_byte() < offset && offset <= node.end_byte();
    match node.kind() {
        "comment" if covers => Written::Comment,
        "string_content" if covers => Written::String,
        // Between two quotes there is no content yet.
        "string_start" if node.end_byte() == offset => Written::String,
        "string" if covers && offset < node.end_byte() => Written::String,
        _ => Written::Code,
    }
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// The dotted path before the word at `offset` when a dot precedes it; empty when what precedes
/// the dot is no path (`f(x).`).
fn dotted_before(text: &str, offset: usize) -> Option<Vec<String>> {
    let before = text[..offset].trim_end_matches(is_word);
    let before = before.strip_suffix('.')?;
    Some(path_at_end(before))
}

#[cfg(test)]
mod tests;
