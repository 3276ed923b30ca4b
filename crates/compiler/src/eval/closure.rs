//! Functions that host functions make: what their names mean in the functions around them.

use std::sync::Arc;

use super::call::Argument;
use super::names::Global;
use super::value::{FunctionRef, Role, Value};
use super::{Evaluator, Mode, Source};
use crate::hir::{Arg, Expr, ExprId, ItemKind, Name, ParamKind};
use crate::project::{self, ItemRef, Resolution, Scope};

/// A variable of a function around a function.
#[derive(Debug, Clone)]
pub struct Captured {
    /// Its name.
    pub name: Name,
    /// Its value when the inner function was returned.
    pub value: Value,
    /// Whether a constexpr holds it, as kernels need it; `None` where that is not known.
    pub constexpr: Option<bool>,
}

/// What a function sees of the functions around it; empty where they were not run.
pub type Closure = Arc<[Captured]>;

impl Evaluator<'_> {
    /// What the function of the innermost frame sees of a variable of those around it.
    pub(super) fn captured(&self, name: &Name) -> Option<Global> {
        let function = self.frame().function.as_ref()?;
        // While a host function runs, its closure says of its own parameters how they are held.
        let captured = function.closure.iter().find(|captured| captured.name == *name)?;
        Some(Global {
            value: self.beside(captured.value.clone()),
            item: None,
            constexpr: captured.constexpr != Some(false),
        })
    }

    /// A function that stands in the same one as that of the innermost frame sees what that sees.
    pub(super) fn beside(&self, value: Value) -> Value {
        let (Value::Function(other), Some(running)) = (&value, &self.frame().function) else {
            return value;
        };
        let around = other.scope.split_last().map_or(&[][..], |(_, around)| around);
        let shares = other.closure.is_empty()
            && other.file == running.file
            && !around.is_empty()
            && running.scope.len() > around.len()
            && running.scope.starts_with(around);
        match shares {
            true => {
                let closure = running.closure.clone();
                Value::Function(FunctionRef { closure, ..other.clone() })
            }
            false => value,
        }
    }

    /// A function as host code gets it by name: one that is defined in the host function that runs
    /// keeps that one's variables.
    pub(super) fn close(&mut self, value: Value) -> Value {
        let frame = self.frame();
        let (Value::Function(inner), Mode::Python, Some(outer)) =
            (&value, frame.mode, &frame.function)
        else {
            return value;
        };
        let nested = inner.file == frame.file
            && inner.scope.len() > frame.scope.len()
            && inner.scope.starts_with(&frame.scope);
        if !nested {
            return value;
        }
        let mut captured: Vec<Captured> = Vec::new();
        for (name, local) in &frame.locals {
            let known = outer.closure.iter().find(|captured| captured.name == *name);
            let constexpr = match known {
                Some(parameter) => parameter.constexpr,
                None => {
                    let scope = Scope { file: frame.file, path: &frame.scope };
                    held(&project::resolve(self.project, scope, name))
                }
            };
            captured.push(Captured { name: name.clone(), value: local.value.clone(), constexpr });
        }
        let outside = outer.closure.iter().filter(|it| !frame.locals.contains_key(&it.name));
        captured.extend(outside.cloned());
        let closure = captured.into();
        Value::Function(FunctionRef { closure, ..inner.clone() })
    }

    /// `function` with what is known of the parameters that a call of host code gives it.
    pub(super) fn called_with(
        &mut self,
        function: &FunctionRef,
        arguments: &[Argument],
    ) -> FunctionRef {
        let mut captured: Vec<Captured> = Vec::new();
        let params = function.function.params.clone();
        for (index, param) in params.iter().enumerate() {
            let given =
                arguments.iter().enumerate().find(|(at, argument)| match &argument.keyword {
                    Some(name) => *name == param.name,
                    None => *at == index && param.kind.is_positional(),
                });
            let constexpr = match (given, param.default) {
                _ if matches!(param.kind, ParamKind::VarArgs | ParamKind::KwArgs) => None,
                (Some((_, argument)), _) => argument.constexpr,
                (None, Some(default)) => {
                    let body = function.function.clone();
                    self.is_held(Source::of(&body, function.file), default)
                }
                (None, None) => None,
            };
            let (name, value) = (param.name.clone(), Value::Unknown);
            captured.push(Captured { name, value, constexpr });
        }
        let names: Vec<Name> = captured.iter().map(|it| it.name.clone()).collect();
        captured.extend(function.closure.iter().filter(|it| !names.contains(&it.name)).cloned());
        FunctionRef { closure: captured.into(), ..function.clone() }
    }

    /// A kernel that a function makes, with what a call of that function in the module gives it.
    /// One that the kernel runs with counts before one whose values no constexpr holds, which the
    /// kernel may not read; calls that leave one of its names open are passed over.
    pub(super) fn made_in_module(&mut self, at: ItemRef, function: FunctionRef) -> FunctionRef {
        if project::item_scope(self.project, at).is_empty() {
            return function;
        }
        let Some(module) = self.project.module(at.file) else { return function };
        let mut refused = None;
        for index in 0..module.items.len() as u32 {
            let other = ItemRef { file: at.file, index };
            let item = &module.items[index as usize];
            let ItemKind::Assign { body, value, .. } = &item.kind else { continue };
            if !item.scope.is_empty() || !matches!(body.exprs[*value], Expr::Call { .. }) {
                continue;
            }
            let made = project::resolve_item(self.project, other);
            if let Some(Global { value: Value::Function(made), .. }) = self.resolved(&made)
                && Arc::ptr_eq(&made.function, &function.function)
            {
                let reads = |captured: &&Captured| is_read(&function, captured);
                let open = |captured: &Captured| captured.value.is_unknown();
                if made.closure.iter().filter(reads).any(open) {
                    continue;
                }
                if made.closure.iter().filter(reads).all(|it| it.constexpr != Some(false)) {
                    return FunctionRef { closure: made.closure, ..function };
                }
                refused = Some(made.closure);
            }
        }
        let closure = refused.unwrap_or_else(|| function.closure.clone());
        FunctionRef { closure, ..function }
    }

    /// Whether a constexpr holds the value of an expression of host code; `None` where the text
    /// does not show it.
    pub(super) fn is_held(&mut self, source: Source<'_>, expr: ExprId) -> Option<bool> {
        match &source.body.exprs[expr] {
            Expr::Literal(_) | Expr::Tuple(_) | Expr::List(_) | Expr::FString(_) => Some(false),
            Expr::Call { callee, .. } => {
                let frame = self.frame();
                let scope = Scope { file: source.file, path: &frame.scope };
                let callee = project::resolve_expr(self.project, scope, source.body, *callee);
                (callee == Resolution::Triton("language.constexpr".into())).then_some(true)
            }
            Expr::Name(name) => {
                let frame = self.frame();
                if frame.locals.contains_key(name) {
                    let outer = frame.function.as_ref()?;
                    return outer.closure.iter().find(|it| it.name == *name)?.constexpr;
                }
                let scope = Scope { file: source.file, path: &frame.scope };
                held(&project::resolve(self.project, scope, name))
            }
            _ => None,
        }
    }

    /// `triton.jit(function)` in host code.
    pub(super) fn jit_of(
        &mut self,
        source: Source<'_>,
        callee: ExprId,
        args: &[Arg],
    ) -> Option<Value> {
        let [Arg { value, .. }] = args else { return None };
        let frame = self.frame();
        if frame.mode != Mode::Python {
            return None;
        }
        let scope = Scope { file: source.file, path: &frame.scope };
        let called = project::resolve_expr(self.project, scope, source.body, callee);
        if called != Resolution::Triton("jit".into()) {
            return None;
        }
        match self.expr(source, *value) {
            Value::Function(mut function) if function.kind.role == Role::Host => {
                function.kind.role = Role::Jit;
                Some(Value::Function(function))
            }
            _ => None,
        }
    }
}

/// Whether a kernel reads a variable of the function around it.
fn is_read(function: &FunctionRef, captured: &Captured) -> bool {
    function.function.body.exprs.values().any(|expr| expr.is_name(&captured.name))
}

fn held(resolution: &Resolution) -> Option<bool> {
    match resolution {
        Resolution::Constexpr(_) => Some(true),
        Resolution::Constant(_) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::lower_kernel;
    use crate::builtins::TritonVersion;
    use crate::diagnostic::Code;
    use crate::ir;
    use crate::project::MemorySources;
    use crate::specialization::{ArgSpec, Origin, Specialization};

    /// What lowering the kernel that `make` makes gives in a module that ends with `calls`.
    fn lowered(calls: &str) -> Result<ir::Function, Vec<Code>> {
        let text = format!(
            "import triton\nimport triton.language as tl\n\n\ndef make(width):\n    @triton.jit\n    def kernel(x_ptr):\n        i = tl.arange(0, width)\n        tl.store(x_ptr + i, 1.0)\n    return kernel\n\n\n{calls}\n"
        );
        let mut sources = MemorySources::default();
        let file = sources.add("kernel.py", &text);
        let pointer = ArgSpec::Runtime { signature: "*fp32".into(), divisible_by_16: true };
        let args = [("x_ptr".into(), pointer)].into_iter().collect();
        let spec = Specialization::new(Origin::Flags, args);
        let result = lower_kernel(&sources, file, "kernel", &spec, TritonVersion::V3_9);
        let codes = result.diagnostics.iter().map(|found| found.code).collect();
        result.function.ok_or(codes)
    }

    #[test]
    fn a_kernel_has_what_a_call_in_its_module_gives_it() {
        for calls in [
            "wide = make(tl.constexpr(128))",
            "WIDTH = tl.constexpr(128)\nwide = make(width=WIDTH)",
            "other = print(1)\nnarrow = make(3)\nwide = make(tl.constexpr(128))",
        ] {
            let function = lowered(calls).expect("the kernel lowers");
            assert!(function.to_string().contains("128"), "{function}");
        }
    }

    #[test]
    fn a_kernel_reads_only_constexprs_of_the_function_around_it() {
        for calls in ["narrow = make(128)", "SIZE = 128\nnarrow = make(SIZE)"] {
            assert_eq!(lowered(calls).err(), Some(vec![Code::GlobalNotConstexpr]), "{calls}");
        }
    }

    #[test]
    fn a_kernel_that_no_call_is_known_for_stays_open() {
        for calls in ["", "def later(width):\n    return make(tl.constexpr(width))"] {
            assert_eq!(lowered(calls).err(), Some(vec![Code::NotUnderstood]), "{calls}");
        }
    }
}
