//! Arguments that the decorators of tests and benchmarks run a function with.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::hir::{Arg, ArgKind, Expr, ExprId, Function, Item, ItemKind, Literal, Name, Param};
use crate::host::code::arguments::Args;
use crate::host::entry::marks::Mark;
use crate::host::value::Value;
use crate::host::{Host, Variables};
use crate::project::launchers::is_test;
use crate::project::{ItemRef, Resolution, Scope, function, item, item_scope, resolve};
use crate::source::FileId;

/// Values of one decorator that are taken.
const MAX_VALUES: usize = 4;

/// Sets of arguments that a function is run with.
const MAX_SETS: usize = 8;

/// The methods of a class of tests that run before each of them, in order.
const SET_UP: &[&str] = &["setUpClass", "setup_class", "setUp", "setup_method"];

/// The parameter by which a fixture has its own parameters, and how pytest is started.
const REQUEST: &str = "request";

/// The function by which code beside tests adds options to pytest.
const ADDS_OPTIONS: &str = "pytest_addoption";

/// Fixtures that ask for each other are followed no deeper than this.
const MAX_FIXTURES: usize = 4;

/// What fixtures give for one test.
#[derive(Clone, Default)]
struct Given {
    /// The instance that the test is a method of.
    instance: Option<Value>,
    /// The parameters that fixtures run with.
    chosen: FxHashMap<ItemRef, Value>,
    /// What they gave: each runs once.
    made: FxHashMap<ItemRef, Value>,
}

/// The parameters of `triton.testing.Benchmark` in order (triton/testing.py).
const BENCHMARK: &[&str] = &[
    "x_names",
    "x_vals",
    "line_arg",
    "line_vals",
    "line_names",
    "plot_name",
    "args",
    "xlabel",
    "ylabel",
    "x_log",
    "y_log",
    "styles",
];

impl Host<'_> {
    /// The sets of arguments, by name, that decorators run a function with; one without any where no
    /// decorator does.
    pub(crate) fn given_arguments(
        &mut self,
        file: FileId,
        scope: &[Name],
        function: &Arc<Function>,
    ) -> Vec<Variables> {
        let mut sets = self.fixtures(file, scope, function);
        for mark in self.marks(file, scope, function) {
            let is_parametrize = |path: &[Name]| is_path(path, &["pytest", "mark", "parametrize"]);
            if matches!(&mark.found, Resolution::External(path) if is_parametrize(path)) {
                let values = self.parametrized(&mark);
                if !values.is_empty() {
                    sets = each_with(&sets, &values);
                }
            }
        }
        let decorators = self.decorators(file, scope, function);
        for (decorator, found) in function.decorators.iter().zip(decorators) {
            let values = match &found {
                Resolution::External(path)
                    if is_path(path, &["parameterized", "parameterized", "expand"]) =>
                {
                    self.expanded(file, scope, function, *decorator)
                }
                Resolution::External(path) if is_path(path, &["hypothesis", "given"]) => {
                    self.drawn_arguments(file, scope, function, *decorator)
                }
                Resolution::Triton(path) if &**path == "testing.perf_report" => {
                    self.reported(file, scope, function, *decorator)
                }
                _ => continue,
            };
            if values.is_empty() {
                continue;
            }
            sets = each_with(&sets, &values);
        }
        sets
    }

    /// `@pytest.mark.parametrize(names, values)`: what the names are, for some of the values.
    fn parametrized(&mut self, mark: &Mark) -> Vec<Variables> {
        let mut argument = |by: (usize, &str)| self.mark_argument(mark, by);
        let names = match argument((0, "argnames")) {
            Some(Value::Str(names)) => names.split(',').map(|name| name.trim().into()).collect(),
            Some(names) => texts(&names),
            None => return Vec::new(),
        };
        let values = argument((1, "argvalues")).and_then(|values| values.elements());
        let values = self.some_of(values.unwrap_or_default()).into_iter();
        let sets = values.map(|value| bound(&names, value));
        sets.flatten().collect()
    }

    /// `@parameterized.expand(values)`: what the parameters after the instance are, for some of the values.
    fn expanded(
        &mut self,
        file: FileId,
        scope: &[Name],
        function: &Arc<Function>,
        decorator: ExprId,
    ) -> Vec<Variables> {
        let Expr::Call { args, .. } = &function.body.exprs[decorator] else { return Vec::new() };
        let Some(values) = argument(args, 0, "input") else { return Vec::new() };
        let values = self.head_expr(file, scope, function, values).elements().unwrap_or_default();
        let names: Vec<Name> =
            function.params.iter().skip(1).map(|param| param.name.clone()).collect();
        let set = |value: Value| match value.elements() {
            Some(values) => bound_first(&names, values),
            None => bound_first(&names, vec![value]),
        };
        self.some_of(values).into_iter().map(set).collect()
    }

    /// Some of the values that a test runs with: the smallest ones where a run computes all numbers.
    fn some_of(&self, mut values: Vec<Value>) -> Vec<Value> {
        if self.launcher.is_none() {
            return some_of(values);
        }
        values.sort_by_key(extent);
        values.truncate(MAX_VALUES);
        values
    }

    /// `@hypothesis.given(strategies)`: some of what it draws for parameters by name, and for the last ones
    /// by position.
    fn drawn_arguments(
        &mut self,
        file: FileId,
        scope: &[Name],
        function: &Arc<Function>,
        decorator: ExprId,
    ) -> Vec<Variables> {
        let Expr::Call { args, .. } = &function.body.exprs[decorator] else { return Vec::new() };
        let unnamed = args.iter().filter(|arg| arg.kind == ArgKind::Positional).count();
        let first = function.params.len().saturating_sub(unnamed);
        let mut last = function.params[first..].iter();
        let mut sets = vec![Variables::default()];
        for arg in args.iter() {
            let name = match &arg.kind {
                ArgKind::Keyword(name) => name,
                ArgKind::Positional => match last.next() {
                    Some(param) => &param.name,
                    None => continue,
                },
                ArgKind::Star | ArgKind::DoubleStar => continue,
            };
            let drawn = self.head_expr(file, scope, function, arg.value);
            let drawn = some_of(drawn.elements().unwrap_or_else(|| vec![Value::Unknown]));
            let one = |value: Value| Variables::from_iter([(name.clone(), value)]);
            let drawn: Vec<Variables> = drawn.into_iter().map(one).collect();
            sets = each_with(&sets, &drawn);
        }
        sets
    }

    /// `@triton.testing.perf_report(Benchmark(...))`: what the benchmarks, here or in a variable, run the
    /// function with, for some of their values along the x axis and each of their lines.
    fn reported(
        &mut self,
        file: FileId,
        scope: &[Name],
        function: &Arc<Function>,
        decorator: ExprId,
    ) -> Vec<Variables> {
        let Expr::Call { args, .. } = &function.body.exprs[decorator] else { return Vec::new() };
        let Some(benchmarks) = argument(args, 0, "benchmarks") else { return Vec::new() };
        let benchmarks = match self.head_expr(file, scope, function, benchmarks) {
            Value::List(several) | Value::Tuple(several) => several,
            one => vec![one],
        };
        benchmarks.iter().flat_map(|benchmark| self.points(benchmark)).collect()
    }

    /// `triton.testing.Benchmark(...)`: its arguments are its attributes.
    pub(crate) fn benchmark(&mut self, args: &Args<'_>) -> Value {
        let mut names = BENCHMARK.iter().copied().map(Name::from);
        let named = args
            .0
            .iter()
            .map(|(name, value)| (name.clone().or_else(|| names.next()), value.clone()));
        self.namespace(&Args(&named.collect::<Vec<_>>()))
    }

    /// What a benchmark runs a function with.
    fn points(&self, benchmark: &Value) -> Vec<Variables> {
        let Value::Object(benchmark) = *benchmark else { return Vec::new() };
        let attribute = |name: &str| self.object_attribute(benchmark, name);
        let names = texts(&attribute("x_names"));
        let mut fixed = Variables::default();
        if let Value::Dict(entries) = attribute("args") {
            fixed.extend(entries.into_iter().filter_map(|(key, value)| match key {
                Value::Str(name) => Some((name, value)),
                _ => None,
            }));
        }
        let lines: Vec<Option<(Name, Value)>> =
            match (attribute("line_arg"), attribute("line_vals").elements()) {
                (Value::Str(line), Some(lines)) => {
                    some_of(lines).into_iter().map(|value| Some((line.clone(), value))).collect()
                }
                _ => vec![None],
            };
        let mut sets = Vec::new();
        for value in some_of(attribute("x_vals").elements().unwrap_or_default()) {
            // A single value is that of all names.
            let along = value.elements().unwrap_or_else(|| vec![value; names.len()]);
            for line in &lines {
                let mut set = fixed.clone();
                set.extend(names.iter().cloned().zip(along.iter().cloned()));
                set.extend(line.clone());
                sets.push(set);
            }
        }
        sets
    }

    /// What fixtures give for the parameters that are called like them: several sets where a fixture has
    /// several parameters of its own.
    fn fixtures(
        &mut self,
        file: FileId,
        scope: &[Name],
        function: &Arc<Function>,
    ) -> Vec<Variables> {
        let is_asked = |param: &&Param| param.default.is_none() && is_test(function);
        let asked = function.params.iter().filter(is_asked);
        let asked: Vec<(Name, ItemRef)> = asked
            .filter_map(|param| {
                let own = self.method(file, scope, &param.name).filter(|at| self.is_fixture(*at));
                let fixture = own.or_else(|| self.fixture(file, scope, &param.name))?;
                Some((param.name.clone(), fixture))
            })
            .collect();
        let mut choices = vec![Given::default()];
        for (_, fixture) in &asked {
            let values = self.fixture_values(*fixture);
            if values.is_empty() {
                continue;
            }
            let with = |given: &Given| {
                let given = given.clone();
                values.iter().map(move |value| {
                    let mut given = given.clone();
                    given.chosen.insert(*fixture, value.clone());
                    given
                })
            };
            choices = choices.iter().flat_map(with).take(MAX_SETS).collect();
        }
        let used = if is_test(function) { self.used_by_all_of(file) } else { Vec::new() };
        let given = choices.into_iter().map(|mut given| {
            let mut found = Variables::default();
            used.iter().for_each(|fixture| {
                self.given_by(*fixture, &mut given, 0);
            });
            given.instance = self.test_instance(file, scope, function);
            if let (Some(instance), Some(param)) = (&given.instance, function.params.first()) {
                found.insert(param.name.clone(), instance.clone());
            }
            for (name, fixture) in asked.iter() {
                if found.contains_key(name) {
                    continue;
                }
                let value = self.given_by(*fixture, &mut given, 0);
                found.insert(name.clone(), value);
            }
            found
        });
        given.collect()
    }

    /// Whether fixtures run before a test, which may change what it calls.
    pub(crate) fn has_fixtures(&self, file: FileId, scope: &[Name], function: &Function) -> bool {
        let is_fixture = |param: &Param| {
            let own = self.method(file, scope, &param.name).filter(|at| self.is_fixture(*at));
            own.or_else(|| self.fixture(file, scope, &param.name)).is_some()
        };
        !self.used_by_all_of(file).is_empty() || function.params.iter().any(is_fixture)
    }

    /// The fixture that code of a file asks for by a name: one of its own, or of what configures the tests
    /// of its folder.
    fn fixture(&self, file: FileId, scope: &[Name], name: &Name) -> Option<ItemRef> {
        let meaning = resolve(self.sources, Scope { file, path: scope }, name);
        let own = match meaning {
            Resolution::Function(at) => Some(at),
            _ => None,
        };
        let shared = || {
            let configuration = self.configuration(file)?;
            self.method(configuration, &[], name)
        };
        own.or_else(shared).filter(|at| self.is_fixture(*at))
    }

    /// The values of `request.param` that a fixture runs with, some of them.
    fn fixture_values(&mut self, fixture: ItemRef) -> Vec<Value> {
        let Some(function) = function(self.sources, fixture) else { return Vec::new() };
        let scope = item_scope(self.sources, fixture);
        let given = function.decorators.iter().find_map(|decorator| {
            let Expr::Call { args, .. } = &function.body.exprs[*decorator] else { return None };
            argument(args, usize::MAX, "params")
        });
        let values = given.map(|given| self.head_expr(fixture.file, &scope, &function, given));
        self.some_of(values.and_then(|values| values.elements()).unwrap_or_default())
    }

    /// What a fixture gives: its value, or what it yields first.
    fn given_by(&mut self, fixture: ItemRef, given: &mut Given, depth: usize) -> Value {
        if let Some(known) = given.made.get(&fixture) {
            return known.clone();
        }
        let Some(found) = function(self.sources, fixture) else { return Value::Unknown };
        let scope = item_scope(self.sources, fixture);
        let mut args: Vec<(Option<Name>, Value)> = Vec::new();
        if !scope.is_empty() {
            args.push((None, given.instance.clone().unwrap_or(Value::Unknown)));
        }
        for param in &found.params[args.len().min(found.params.len())..] {
            let value = match given.chosen.get(&fixture) {
                chosen if &*param.name == REQUEST => {
                    let mut request =
                        vec![(Some("config".into()), self.started_with(fixture.file))];
                    request.extend(chosen.map(|value| (Some("param".into()), value.clone())));
                    self.namespace(&Args(&request))
                }
                _ => match self.fixture(fixture.file, &[], &param.name) {
                    Some(other) if other != fixture && depth < MAX_FIXTURES => {
                        self.given_by(other, given, depth + 1)
                    }
                    _ => continue,
                },
            };
            args.push((Some(param.name.clone()), value));
        }
        let value = self.call_function(fixture, &args);
        let yields = found.body.yields();
        let value = match (value, yields) {
            (Value::List(given), true) => given.into_iter().next().unwrap_or(Value::Unknown),
            (value, false) => value,
            (_, true) => Value::Unknown,
        };
        given.made.insert(fixture, value.clone());
        value
    }

    /// How pytest is started for the tests of a file: without options, of which code beside them adds some.
    fn started_with(&mut self, file: FileId) -> Value {
        let config = self.object();
        let files = self.configuration(file).into_iter().chain([file]);
        let adding: Vec<ItemRef> =
            files.filter_map(|file| self.method(file, &[], ADDS_OPTIONS)).collect();
        for adds_options in adding {
            self.call_function(adds_options, &[(None, config.clone())]);
        }
        config
    }

    /// The fixtures that every test of a file uses, of its own and of what configures it.
    fn used_by_all_of(&self, file: FileId) -> Vec<ItemRef> {
        let files = self.configuration(file).into_iter().chain([file]);
        files.flat_map(|file| self.used_by_all(file, &[])).collect()
    }

    /// What a test that is a method is run with: an instance of its class, which is set up before.
    fn test_instance(
        &mut self,
        file: FileId,
        scope: &[Name],
        function: &Arc<Function>,
    ) -> Option<Value> {
        let module = self.sources.module(file).filter(|_| !scope.is_empty())?;
        let is_class =
            |item: &Item| matches!(item.kind, ItemKind::Class(_)) && item.body_scope() == scope;
        let index = module.items.iter().position(is_class)?;
        let at = ItemRef { file, index: index as u32 };
        let is_test = function.name.starts_with("test")
            && (module.items[index].name.starts_with("Test") || self.is_test_case(at));
        let instance = is_test.then(|| self.instance(at, &[]))?;
        let Value::Object(_) = instance else { return None };
        for name in SET_UP {
            if let Some(method) = self.class_method(at, name) {
                self.call_function(method, &[(None, instance.clone())]);
            }
        }
        for method in self.used_by_all(file, scope) {
            self.call_function(method, &[(None, instance.clone())]);
        }
        Some(instance)
    }

    /// The fixtures of a class that need nothing else and that its tests use without asking for them.
    fn used_by_all(&self, file: FileId, class: &[Name]) -> Vec<ItemRef> {
        let module = self.sources.module(file).unwrap_or_default();
        let methods = (0..).zip(&module.items).filter(|(_, item)| item.scope == class);
        let is_used = |at: &ItemRef| {
            let used = |function: Arc<Function>| {
                (class.is_empty() || function.params.len() == 1)
                    && function.decorators.iter().any(|decorator| {
                        let Expr::Call { args, .. } = &function.body.exprs[*decorator] else {
                            return false;
                        };
                        let autouse = argument(args, usize::MAX, "autouse");
                        autouse.is_some_and(|value| {
                            matches!(function.body.exprs[value], Expr::Literal(Literal::Bool(true)))
                        })
                    })
            };
            self.is_fixture(*at) && function(self.sources, *at).is_some_and(used)
        };
        methods.map(|(index, _)| ItemRef { file, index }).filter(is_used).collect()
    }

    /// Whether a call of a generator gives what it yields, or a context manager that does.
    pub(crate) fn gives_each(&self, file: FileId, scope: &[Name], function: &Function) -> bool {
        self.decorators(file, scope, function).iter().all(|found| match found {
            Resolution::External(path) => {
                is_path(path, &["pytest", "fixture"])
                    || is_path(path, &["contextlib", "contextmanager"])
            }
            found => *found == Resolution::Undefined,
        })
    }

    fn is_fixture(&self, at: ItemRef) -> bool {
        let (Some(item), Some(function)) = (item(self.sources, at), function(self.sources, at))
        else {
            return false;
        };
        self.decorators(at.file, &item.scope, &function).iter().any(
            |found| matches!(found, Resolution::External(path) if is_path(path, &["pytest", "fixture"])),
        )
    }
}

fn is_path(path: &[Name], of: &[&str]) -> bool {
    path.iter().map(|part| &**part).eq(of.iter().copied())
}

/// The argument called `name`, or the positional one at `at`.
pub(super) fn argument(args: &[Arg], at: usize, name: &str) -> Option<ExprId> {
    let named = args.iter().find(|arg| matches!(&arg.kind, ArgKind::Keyword(it) if &**it == name));
    let positional = args.get(at).filter(|arg| arg.kind == ArgKind::Positional);
    named.or(positional).map(|arg| arg.value)
}

fn texts(names: &Value) -> Vec<Name> {
    let names = names.elements().unwrap_or_default().into_iter();
    let texts = names.filter_map(|name| match name {
        Value::Str(name) => Some(name),
        _ => None,
    });
    texts.collect()
}

/// Each of some sets with each of `more`.
fn each_with(sets: &[Variables], more: &[Variables]) -> Vec<Variables> {
    let pairs = sets.iter().flat_map(|set| more.iter().map(move |more| (set, more)));
    let both = pairs.map(|(set, more)| {
        let mut set = set.clone();
        set.extend(more.iter().map(|(name, value)| (name.clone(), value.clone())));
        set
    });
    both.take(MAX_SETS).collect()
}

/// The first values and the last one.
fn some_of(mut values: Vec<Value>) -> Vec<Value> {
    if values.len() > MAX_VALUES {
        values.drain(MAX_VALUES - 1..values.len() - 1);
    }
    values
}

/// How much a value gives a test to compute: the product of its integers, as of a shape.
fn extent(value: &Value) -> i128 {
    match value {
        Value::Int(Some(number)) => number.saturating_abs().max(1),
        Value::Tuple(parts) | Value::List(parts) => {
            parts.iter().map(extent).fold(1, i128::saturating_mul)
        }
        _ => 1,
    }
}

/// What names are where they get a value together: its elements, if there are several.
fn bound(names: &[Name], value: Value) -> Option<Variables> {
    if let [name] = names {
        return Some(Variables::from_iter([(name.clone(), value)]));
    }
    let values = value.elements().filter(|values| values.len() == names.len())?;
    Some(names.iter().cloned().zip(values).collect())
}

/// The first parameters with values; the others have their defaults.
fn bound_first(names: &[Name], values: Vec<Value>) -> Variables {
    names.iter().cloned().zip(values).collect()
}
