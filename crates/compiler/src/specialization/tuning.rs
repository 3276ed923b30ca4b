//! What decorators say of a kernel's specializations: autotune configurations, heuristics, and
//! arguments that are not specialized on.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::config::Config;
use super::host::{Host, Options, Variables, value::Value};
use super::spelled::spelled;
use super::stated::{Stated, stated};
use crate::hir::{ArgKind, Expr, ExprId, Name};
use crate::project::{Decorator, Kernel, Scope, Sources};

/// What the decorators of a kernel say.
#[derive(Debug, Clone, Default)]
pub struct Tuning {
    /// Autotune configurations in order.
    pub configs: Vec<Config>,
    /// True when there may be other configurations: these are those of one possible run of the
    /// module.
    pub one_run: bool,
    /// Names of the arguments on which the choice depends.
    pub key: Vec<Name>,
    /// Names of the arguments that tuning resets or restores between runs.
    pub restored: Vec<Name>,
    /// False when some configurations or heuristics could not be read statically.
    pub complete: bool,
    /// Where they could not, names of which they set no others; `None` when they may set any.
    pub spelled: Option<FxHashSet<Name>>,
    /// Names that `@triton.heuristics` computes, in order.
    pub heuristics: Vec<Name>,
    /// Parameters that are specialized on neither alignment nor the value 1.
    pub do_not_specialize: Vec<Name>,
    /// Parameters that are not specialized on alignment.
    pub do_not_specialize_on_alignment: Vec<Name>,
    /// True for `@triton.jit(noinline=True)`.
    pub noinline: bool,
    /// True for `@triton.jit(debug=True)`.
    pub debug: bool,
    /// What a decorator states of arguments.
    pub(super) stated: Stated,
    /// The functions behind `heuristics`.
    pub(super) heuristic_functions: Vec<Value>,
}

impl Tuning {
    /// True when a kernel is compiled anew for integers that equal 1 of the parameter `name`.
    pub fn specializes_on_value(&self, name: &str) -> bool {
        !self.do_not_specialize.iter().any(|known| &**known == name)
    }

    /// True when a kernel is compiled anew for multiples of 16 of the parameter `name`.
    pub fn specializes_on_alignment(&self, name: &str) -> bool {
        let mut others = self.do_not_specialize_on_alignment.iter();
        self.specializes_on_value(name) && !others.any(|known| &**known == name)
    }

    /// True when some configuration or heuristic sets the parameter `name`.
    pub fn sets(&self, name: &str) -> bool {
        let tuned = self.configs.iter().any(|config| config.value(name).is_some());
        tuned || self.heuristics.iter().any(|known| &**known == name)
    }

    /// True when some configuration or heuristic sets the parameter `name`, or one that could not
    /// be read spells it.
    pub fn may_set(&self, name: &str) -> bool {
        self.sets(name) || self.spelled.as_ref().is_some_and(|names| names.contains(name))
    }
}

/// Reads the decorators of `kernel`, following lists, comprehensions and helper functions.
pub fn tuning(sources: &dyn Sources, kernel: &Kernel) -> Tuning {
    let mut reader = Reader {
        sources,
        host: Host::new(sources),
        kernel,
        bound: None,
        any_name: false,
        tuning: Tuning { complete: true, ..Tuning::default() },
    };
    for decorator in &kernel.decorators {
        match *decorator {
            Decorator::Jit(id) => reader.jit(id),
            Decorator::Autotune(id) => reader.autotune(id),
            Decorator::Heuristics(id) => reader.heuristics(id),
            // Project wrappers take the same arguments as what they wrap.
            Decorator::Other(id) => {
                reader.autotune(id);
                if let Some(stated) = stated(&mut reader.host, kernel, id) {
                    reader.tuning.stated = stated;
                }
            }
            _ => {}
        }
    }
    if reader.any_name {
        reader.tuning.spelled = None;
    }
    reader.tuning
}

struct Reader<'a> {
    sources: &'a dyn Sources,
    host: Host<'a>,
    kernel: &'a Kernel,
    /// What the module has bound when it comes to the kernel, once that has been asked.
    bound: Option<Variables>,
    /// Whether some configurations or heuristics may set any name.
    any_name: bool,
    tuning: Tuning,
}

impl Reader<'_> {
    /// The argument `name`, or the positional one at `index`, of the decorator call `id`.
    fn argument(&self, id: ExprId, index: Option<usize>, name: &str) -> Option<ExprId> {
        let Expr::Call { args, .. } = &self.kernel.function.body.exprs[id] else { return None };
        let keyword = args.iter().find(|arg| match &arg.kind {
            ArgKind::Keyword(known) => &**known == name,
            _ => false,
        });
        let positional = index.and_then(|index| args.get(index));
        let positional = positional.filter(|arg| arg.kind == ArgKind::Positional);
        keyword.or(positional).map(|arg| arg.value)
    }

    fn value(&mut self, id: ExprId) -> Value {
        let kernel = self.kernel;
        let bound = self.bound.get_or_insert_with(|| self.host.bound_before(kernel)).clone();
        let (file, scope) = (kernel.at.file, &kernel.item.scope);
        self.host.head_expr_with(file, scope, &kernel.function, bound, id)
    }

    fn jit(&mut self, id: ExprId) {
        let names = |reader: &mut Self, name: &str| match reader.argument(id, None, name) {
            Some(list) => {
                let list = reader.value(list);
                reader.parameter_names(&list)
            }
            None => Vec::new(),
        };
        let flag = |reader: &mut Self, name: &str| {
            let value = reader.argument(id, None, name);
            value.is_some_and(|value| matches!(reader.value(value), Value::Bool(Some(true))))
        };
        self.tuning.do_not_specialize = names(self, "do_not_specialize");
        self.tuning.do_not_specialize_on_alignment = names(self, "do_not_specialize_on_alignment");
        self.tuning.noinline = flag(self, "noinline");
        self.tuning.debug = flag(self, "debug");
    }

    /// Parameters given by name or index.
    fn parameter_names(&self, list: &Value) -> Vec<Name> {
        let items = list.elements().unwrap_or_default();
        let name = |item: &Value| match item {
            Value::Str(name) => Some(name.clone()),
            Value::Int(Some(index)) => {
                let param = self.kernel.function.params.get(usize::try_from(*index).ok()?)?;
                Some(param.name.clone())
            }
            _ => None,
        };
        items.iter().filter_map(name).collect()
    }

    /// Notes that some of the configurations that `id` makes are not known.
    fn incomplete(&mut self, id: ExprId) {
        self.tuning.complete = false;
        let path = &self.kernel.item.scope;
        let scope = Scope { file: self.kernel.at.file, path };
        match spelled(self.sources, scope, &self.kernel.function.body, id) {
            Some(names) => self.tuning.spelled.get_or_insert_default().extend(names),
            None => self.any_name = true,
        }
    }

    fn autotune(&mut self, id: ExprId) {
        let Some(configs) = self.argument(id, Some(0), "configs") else { return };
        let mut found = self.value(configs).elements();
        if found.is_none() {
            // Which ones there are depends on something that is not known.
            self.incomplete(configs);
            self.tuning.one_run = true;
            let options = Options { one_run: true, ..Options::default() };
            let host = std::mem::replace(&mut self.host, Host::with(self.sources, options));
            let bound = self.bound.take();
            found = self.value(configs).elements();
            (self.host, self.bound) = (host, bound);
        }
        if !found.iter().flatten().any(is_config) {
            if !found.is_some_and(|items| items.is_empty()) {
                self.incomplete(configs);
            }
            return;
        }
        let found = found.unwrap_or_default();
        if !found.iter().all(is_config) {
            self.incomplete(configs);
        }
        self.tuning.configs.extend(found.into_iter().filter_map(|config| match config {
            Value::Config(config) => Some(*config),
            _ => None,
        }));
        if let Some(key) = self.argument(id, Some(1), "key") {
            let key = self.value(key);
            self.tuning.key = self.parameter_names(&key);
        }
        for list in ["reset_to_zero", "restore_value"] {
            if let Some(names) = self.argument(id, None, list) {
                let names = self.value(names);
                let names = self.parameter_names(&names);
                self.tuning.restored.extend(names);
            }
        }
    }

    fn heuristics(&mut self, id: ExprId) {
        let Some(values) = self.argument(id, Some(0), "values") else { return };
        let Value::Dict(entries) = self.value(values) else {
            self.tuning.complete = false;
            self.any_name = true;
            return;
        };
        for (key, function) in entries {
            if let Value::Str(name) = key {
                self.tuning.heuristics.push(Arc::clone(&name));
                self.tuning.heuristic_functions.push(function);
            }
        }
    }
}

fn is_config(value: &Value) -> bool {
    matches!(value, Value::Config(_))
}
