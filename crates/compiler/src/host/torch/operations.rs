//! Operations that a file registers with PyTorch, `@torch.library.custom_op("library::name")`, and calls
//! by that name: `torch.ops.library.name(...)`; and the functions that it registers to differentiate them.

use std::sync::Arc;

use crate::builtins::TORCH;
use crate::hir::{
    Arg, ArgKind, Body, Expr, ExprId, Function, Item, ItemKind, Literal, MainBlock, Name,
};
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::torch::autograd::Applied;
use crate::host::value::{Callable, Value};
use crate::project::launchers::{REGISTERS, REGISTERS_GRADIENT, registrations};
use crate::project::routes::imported_files;
use crate::project::{ItemRef, Resolution, Scope, is_external, item, resolve_expr};
use crate::source::FileId;

/// The attribute of a `torch.library.Library` that says what its operations are under.
pub(crate) const LIBRARY: &str = "ns";

/// Devices that run no kernels, as functions are registered for them beside those for GPUs.
const OTHER_DEVICES: &[&str] = &["cpu", "meta", "mps", "CPU", "Meta", "MPS"];

/// How an operation is differentiated.
struct Formula {
    backward: ItemRef,
    /// What keeps for it what it needs of a call.
    setup: Option<ItemRef>,
}

impl Host<'_> {
    /// The function of `file`, or of those that it or the program imports, that the operation at a dotted path is:
    /// `torch.ops.library.name`, with an overload or without.
    pub(crate) fn operation(&mut self, file: FileId, path: &[Name]) -> Option<ItemRef> {
        let (library, name) = match path {
            [torch, ops, library, name] | [torch, ops, library, name, _]
                if &**torch == "torch" && &**ops == "ops" =>
            {
                (library, name)
            }
            _ => return None,
        };
        let registered = Value::Str(format!("{library}::{name}").into());
        let imported = [Some(file), self.program]
            .map(|file| file.map(|file| imported_files(self.sources, file)).unwrap_or_default());
        let others = imported.iter().flat_map(|files| files.iter().copied());
        let others = others.filter(|other| *other != file);
        std::iter::once(file).chain(others).find_map(|file| self.operation_in(file, &registered))
    }

    /// The function of a file that is registered under a name.
    fn operation_in(&mut self, file: FileId, registered: &Value) -> Option<ItemRef> {
        let module = self.sources.module(file)?;
        let found = module.items.iter().position(|item| match &item.kind {
            ItemKind::Function(function) => {
                self.registers(file, item, function).as_ref() == Some(registered)
            }
            _ => false,
        });
        Some(ItemRef { file, index: found? as u32 })
    }

    /// The name under which a function is registered.
    fn registers(&mut self, file: FileId, item: &Item, function: &Arc<Function>) -> Option<Value> {
        let decorators = self.decorators(file, &item.scope, function);
        let registers =
            |found: &Resolution| REGISTERS.iter().any(|known| is_external(found, known));
        let Some(at) = decorators.iter().position(registers) else {
            return self.registered_by_project(file, &item.scope, function, &decorators);
        };
        let decorator = function.decorators[at];
        let Expr::Call { args, .. } = &function.body.exprs[decorator] else { return None };
        let mut given = args.iter().map(|arg| arg.value);
        let mut next = |host: &mut Self| {
            given.next().map(|value| host.head_expr(file, &item.scope, function, value))
        };
        let name = match next(self)? {
            Value::Object(library) => {
                match (self.object_attribute(library, LIBRARY), next(self)?) {
                    (Value::Str(library), Value::Str(name)) => {
                        Value::Str(format!("{library}::{name}").into())
                    }
                    _ => Value::Unknown,
                }
            }
            name => name,
        };
        let second = next(self);
        let elsewhere =
            matches!(second, Some(Value::Str(types)) if OTHER_DEVICES.contains(&&*types));
        (!elsewhere).then_some(name)
    }

    /// The name under which a decorator of the project's own registers a function.
    fn registered_by_project(
        &mut self,
        file: FileId,
        scope: &[Name],
        function: &Arc<Function>,
        decorators: &[Resolution],
    ) -> Option<Value> {
        function.decorators.iter().zip(decorators).find_map(|(decorator, found)| {
            let is_named = names_operation(&function.body, *decorator);
            (is_named && matches!(found, Resolution::Function(_))).then_some(())?;
            match self.head_expr(file, scope, function, *decorator) {
                Value::Callable(Callable::Registrar(name)) => Some(Value::Str(name)),
                _ => None,
            }
        })
    }

    /// Whether a function is an operation, whose code is not differentiated.
    pub(crate) fn is_operation(&mut self, at: ItemRef, function: &Arc<Function>) -> bool {
        let item = item(self.sources, at).filter(|_| !function.decorators.is_empty());
        item.is_some_and(|item| self.registers(at.file, &item, function).is_some())
    }

    /// What a call of a function gives, which may be an operation that a backward pass differentiates.
    pub(crate) fn differentiable(
        &mut self,
        at: ItemRef,
        function: &Arc<Function>,
        args: &[(Option<Name>, Value)],
        output: Value,
    ) -> Value {
        if function.decorators.is_empty() {
            return output;
        }
        let Some(item) = item(self.sources, at) else { return output };
        let Some(registered) = self.registers(at.file, &item, function) else { return output };
        let Some(formula) = self.formula(at, &registered) else { return output };
        if !function.params.iter().all(|param| param.kind.is_positional()) {
            return output;
        }
        let output = self.numbered(output);
        let context = self.object();
        let mut bound = self.parameters(at.file, &item.scope, function, args);
        let input = |name: &Name| bound.remove(name).unwrap_or(Value::Unknown);
        let inputs: Vec<Value> =
            function.params.iter().map(|param| &param.name).map(input).collect();
        let args: Vec<_> = inputs.iter().map(|input| (None, input.clone())).collect();
        if let Some(setup) = formula.setup {
            let inputs = inputs.clone();
            let given = [
                ("ctx", context.clone()),
                ("inputs", Value::Tuple(inputs)),
                ("output", output.clone()),
            ];
            let given = given.map(|(name, value)| (Some(Name::from(name)), value));
            // It is called where a gradient is wanted.
            match self.records() && self.follows_any(&args) {
                true => self.call_function(setup, &given),
                false => self.perhaps_running(|host| host.call_function(setup, &given)),
            };
        }
        let applied = Applied::new((formula.backward, None), &args, context, output);
        self.note_applied(applied, &args)
    }

    /// How the operation `at` is differentiated, where one outermost statement of its file says so.
    fn formula(&mut self, at: ItemRef, registered: &Value) -> Option<Formula> {
        let module = self.sources.module(at.file)?;
        let mut found = Vec::new();
        for (main, callee, args) in registrations(&module) {
            found.extend(self.registered_formula(at, registered, main, callee, args));
        }
        let [args] = &found[..] else { return None };
        let args = Args(args);
        let backward = function_of(args.positional().last()?)?;
        let setup = match args.keyword("setup_context") {
            None | Some(Value::None) => None,
            Some(setup) => Some(function_of(setup)?),
        };
        Some(Formula { backward, setup })
    }

    /// What a call registers for the operation `at`; `None` for other operations.
    fn registered_formula(
        &mut self,
        at: ItemRef,
        registered: &Value,
        main: &MainBlock,
        callee: ExprId,
        args: &[Arg],
    ) -> Option<Vec<(Option<Name>, Value)>> {
        let Expr::Attribute { value: object, .. } = &main.body.exprs[callee] else { return None };
        let scope = Scope { file: at.file, path: &[] };
        let is_method =
            resolve_expr(self.sources, scope, &main.body, *object) == Resolution::Function(at);
        let function = resolve_expr(self.sources, scope, &main.body, callee);
        let is_function = is_external(&function, &[TORCH, "library", REGISTERS_GRADIENT]);
        let mut given = Vec::new();
        for arg in args {
            let value = self.module_expr(at.file, &[], (&main.body, &main.map), arg.value);
            match &arg.kind {
                ArgKind::Positional => given.push((None, value)),
                ArgKind::Keyword(name) => given.push((Some(name.clone()), value)),
                ArgKind::Star | ArgKind::DoubleStar => return None,
            }
        }
        let count = given.iter().filter(|(name, _)| name.is_none()).count();
        let names_it = || {
            let first = &given[0].1;
            let is_name = matches!(first, Value::Str(_)) && first == registered;
            is_name || *first == Value::Named(Resolution::Function(at))
        };
        let is_of_operation = match (is_method, is_function) {
            (true, _) => count == 1,
            (_, true) => count == 2 && names_it(),
            _ => false,
        };
        is_of_operation.then_some(given)
    }
}

/// Whether a call is given the name of an operation.
fn names_operation(body: &Body, call: ExprId) -> bool {
    let Expr::Call { args, .. } = &body.exprs[call] else { return false };
    args.iter().any(|arg| match &body.exprs[arg.value] {
        Expr::Literal(Literal::Str(name)) => name.contains("::"),
        _ => false,
    })
}

fn function_of(value: &Value) -> Option<ItemRef> {
    match value {
        Value::Named(Resolution::Function(at)) => Some(*at),
        _ => None,
    }
}
