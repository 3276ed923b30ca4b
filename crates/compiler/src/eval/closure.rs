//! Functions that host functions make: what their names mean in the functions around them.

use std::sync::Arc;

use super::call::Argument;
use super::names::Global;
use super::value::{FunctionRef, Role, Value};
use super::{Evaluator, Mode, Source};
use crate::hir::{Arg, Expr, ExprId, Name, ParamKind};
use crate::project::{self, Resolution, Scope};

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
            value: captured.value.clone(),
            item: None,
            constexpr: captured.constexpr != Some(false),
        })
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

fn held(resolution: &Resolution) -> Option<bool> {
    match resolution {
        Resolution::Constexpr(_) => Some(true),
        Resolution::Constant(_) => Some(false),
        _ => None,
    }
}
