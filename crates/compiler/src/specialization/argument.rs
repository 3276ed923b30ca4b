//! What a kernel is compiled for of one argument: what a launch gives, what decorators state, the
//! default, and last the guess.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::bind::{Binder, Bound};
use super::guess;
use super::launches::ShownLaunches;
use super::usage::{Compared, usage};
use super::{ArgSpec, ConstArg, TupleArg, TupleNames};
use crate::hir::{Expr, ExprId, Literal, Name, Param};
use crate::host::value::{Tensor, Value};
use crate::host::{Host, SPELLINGS, is_complex, language_dtype};
use crate::project::{
    ItemRef, Kernel, Resolution, Scope, Sources, function, item, resolve_expr, resolve_item,
};

impl Binder<'_> {
    /// The value of a parameter that no configuration sets.
    pub(super) fn argument(&self, index: usize, param: &Param, given: Option<&Value>) -> Bound {
        let is_constexpr = self.constexpr.contains(&param.name);
        if matches!(given, Some(Value::Omitted)) {
            return self.omitted_argument(index, param, is_constexpr);
        }
        let known = match given {
            Some(Value::Named(Resolution::Jit(at))) => self.function_argument(*at),
            Some(value) if is_constexpr => value.to_const().map(ArgSpec::Constexpr),
            Some(value) => self.runtime_argument(param, value),
            None => None,
        };
        if let Some(spec) = known {
            return Bound::new(spec, false);
        }
        if given.is_none()
            && let Some(spec) = self.tuning.stated.argument(&param.name)
        {
            return Bound::new(spec.clone(), false);
        }
        let default =
            if given.is_none() { self.default_argument(param, is_constexpr) } else { None };
        if let Some(spec) = default {
            return Bound::new(spec, false);
        }
        if let Some(Value::Descriptor(given)) = given
            && given.tensor.dtype.is_none()
            && let Some(spec) = descriptor("fp32", &given.block)
        {
            return Bound::new(spec, true);
        }
        if let Some(given) = given.filter(|_| !is_constexpr)
            && let Some(spec) = self.partly_known(index, param, given)
        {
            return Bound::new(spec, true);
        }
        if let Some(extent) = self.tuning.stated.extent(&param.name).filter(|_| is_constexpr) {
            return Bound::new(extent, true);
        }
        Bound::new(self.guess(index, param, is_constexpr), true)
    }

    /// A tuple of which not everything is known; `None` for other values.
    fn partly_known(&self, index: usize, param: &Param, value: &Value) -> Option<ArgSpec> {
        let uses = self.uses.get(index).copied().unwrap_or_default();
        let (items, named) = match value {
            Value::Ints => return Some(guess::tuple(&param.name, &uses)),
            Value::Tuple(items) => (items, None),
            Value::Record { names, items } => (items, Some(names.clone())),
            _ => return None,
        };
        let item = |item: &Value| {
            let known = self.runtime_argument(param, item);
            known.or_else(|| self.partly_known(index, param, item))
        };
        let guessed = |at: usize| {
            let names: Option<&Arc<TupleNames>> = named.as_ref();
            guess::element(names.map_or(&*param.name, |names| &*names.fields[at]), &uses)
        };
        let items = items.iter().enumerate();
        let items = items.map(|(at, value)| item(value).unwrap_or_else(|| guessed(at))).collect();
        Some(ArgSpec::Tuple(TupleArg { items, named }))
    }

    /// An argument that host code leaves out by default: `None`, unless the kernel needs it.
    fn omitted_argument(&self, index: usize, param: &Param, is_constexpr: bool) -> Bound {
        let uses = self.uses.get(index).copied().unwrap_or_default();
        let number = uses.operand && !uses.pointer && !uses.none_test;
        let required = uses.required || number;
        let spec = match required {
            true => self.guess(index, param, is_constexpr),
            false => ArgSpec::Constexpr(ConstArg::None),
        };
        Bound::new(spec, true)
    }

    fn default_argument(&self, param: &Param, is_constexpr: bool) -> Option<ArgSpec> {
        let default = self.head_value(param.default?);
        match default {
            Value::Named(Resolution::Jit(at)) => self.function_argument(at),
            value if is_constexpr => value.to_const().map(ArgSpec::Constexpr),
            value => self.runtime_argument(param, &value),
        }
    }

    pub(super) fn head_value(&self, id: ExprId) -> Value {
        let (at, scope) = (self.kernel.at, &self.kernel.item.scope);
        Host::new(self.sources).head_expr(at.file, scope, &self.kernel.function, id)
    }

    /// A jit function as an argument, by the name it has where the kernel is defined.
    fn function_argument(&self, at: ItemRef) -> Option<ArgSpec> {
        let name = item(self.sources, at)?.name;
        let module = self.sources.module(self.kernel.at.file)?;
        let visible = module.items.iter().enumerate().find(|(index, _)| {
            let candidate = ItemRef { file: self.kernel.at.file, index: *index as u32 };
            resolve_item(self.sources, candidate) == Resolution::Jit(at)
        });
        let name = visible.map_or(name, |(_, item)| item.name.clone());
        Some(ArgSpec::Constexpr(ConstArg::Function(name)))
    }

    /// What a value passed at run time is specialized to; `None` when too little is known.
    fn runtime_argument(&self, param: &Param, value: &Value) -> Option<ArgSpec> {
        if let Some(forced) = self.forced_type(param) {
            return match value {
                Value::None => Some(ArgSpec::Constexpr(ConstArg::None)),
                Value::Int(value) => Some(self.annotated_integer(param, *value, forced)),
                _ => Some(ArgSpec::Runtime {
                    divisible_by_16: forced.starts_with('*'),
                    signature: forced.into(),
                }),
            };
        }
        Some(match value {
            Value::Constexpr(value) => ArgSpec::Constexpr(value.to_const()?),
            Value::None => ArgSpec::Constexpr(ConstArg::None),
            Value::Bool(_) => guess::number("u1"),
            Value::Int(None) if self.is_address(param) => guess::number("i64"),
            Value::Int(value) => self.integer(param, *value),
            Value::Float(_) => guess::number("fp32"),
            Value::Tensor(Tensor { dtype: Some(dtype), .. }) if !is_complex(dtype) => {
                let konst = if self.is_const_pointer(param) { "k" } else { "" };
                let divisible_by_16 = self.tuning.specializes_on_alignment(&param.name);
                let signature = format!("*{konst}{dtype}").into();
                ArgSpec::Runtime { signature, divisible_by_16 }
            }
            Value::Descriptor(given) => descriptor(given.tensor.dtype.as_deref()?, &given.block)?,
            Value::Tuple(items) => {
                let items = items.iter().map(|item| self.runtime_argument(param, item));
                ArgSpec::Tuple(items.collect::<Option<Vec<_>>>()?.into())
            }
            Value::Record { names, items } => {
                let items = items.iter().map(|item| self.runtime_argument(param, item));
                let items = items.collect::<Option<_>>()?;
                ArgSpec::Tuple(TupleArg { items, named: Some(names.clone()) })
            }
            Value::DType(dtype) if !is_complex(dtype) => {
                ArgSpec::Constexpr(ConstArg::DType(dtype.clone()))
            }
            Value::TorchDType(dtype) if !is_complex(dtype) => {
                ArgSpec::Constexpr(ConstArg::TorchDType(dtype.clone()))
            }
            Value::Named(Resolution::Jit(at)) => self.function_argument(*at)?,
            _ => return None,
        })
    }

    /// An integer argument, specialized as a launch does: 1 is a constant, and multiples of 16
    /// are marked.
    fn integer(&self, param: &Param, value: Option<i128>) -> ArgSpec {
        let signature = match value {
            Some(value) if i32::try_from(value).is_err() => {
                if i64::try_from(value).is_ok() {
                    "i64"
                } else {
                    "u64"
                }
            }
            _ => "i32",
        };
        if value == Some(1) && self.tuning.specializes_on_value(&param.name) {
            return ArgSpec::Constexpr(ConstArg::Int(1));
        }
        let divisible_by_16 = self.is_aligned(param, value);
        ArgSpec::Runtime { signature: signature.into(), divisible_by_16 }
    }

    /// What an integer is specialized to whose type an annotation sets: 1 is no constant then, and only integers are
    /// told apart by what divides them (`create_function_from_signature` in Triton's `runtime/jit.py`).
    fn annotated_integer(&self, param: &Param, value: Option<i128>, forced: &str) -> ArgSpec {
        let is_of_kinds = super::flags::is_integer(forced) || forced.starts_with('*');
        let divisible_by_16 = is_of_kinds && self.is_aligned(param, value);
        ArgSpec::Runtime { signature: forced.into(), divisible_by_16 }
    }

    fn is_aligned(&self, param: &Param, value: Option<i128>) -> bool {
        value.is_some_and(|value| value % 16 == 0)
            && self.tuning.specializes_on_alignment(&param.name)
    }

    /// Whether the kernel makes a pointer of an integer: then it is an address, which takes 64 bits.
    fn is_address(&self, param: &Param) -> bool {
        let mut params = self.kernel.function.params.iter();
        let at = params.position(|known| known.name == param.name);
        let uses = usage(self.sources, self.kernel.at).uses;
        at.and_then(|at| uses.get(at)).is_some_and(|used| used.address)
    }

    fn annotation(&self, param: &Param) -> Option<Resolution> {
        let scope = Scope { file: self.kernel.at.file, path: &self.kernel.item.scope };
        Some(resolve_expr(self.sources, scope, &self.kernel.function.body, param.annotation?))
    }

    fn is_const_pointer(&self, param: &Param) -> bool {
        self.annotation(param) == Some(Resolution::Triton("language.const".into()))
    }

    /// The type that the annotation forces: `int`, `float`, a dtype, or a string that spells one.
    fn forced_type(&self, param: &Param) -> Option<&str> {
        match &self.kernel.function.body.exprs[param.annotation?] {
            Expr::Name(name) if &**name == "int" => Some("i32"),
            Expr::Name(name) if &**name == "float" => Some("fp32"),
            Expr::Literal(Literal::Str(text)) => {
                let text = text.strip_prefix("tl.").unwrap_or(text);
                let element = text.strip_prefix('*').unwrap_or(text);
                let known = SPELLINGS.contains(&element) && !element.is_empty();
                if known { Some(text) } else { language_dtype(&format!("language.{text}")) }
            }
            _ => match self.annotation(param)? {
                Resolution::Triton(path) => language_dtype(&path),
                _ => None,
            },
        }
    }

    /// The type of the number that an annotation makes of a parameter.
    pub(super) fn annotated_number(&self, param: &Param) -> Option<&str> {
        self.forced_type(param).filter(|forced| !forced.starts_with('*'))
    }

    fn guess(&self, index: usize, param: &Param, is_constexpr: bool) -> ArgSpec {
        let uses = self.uses.get(index).copied().unwrap_or_default();
        if is_constexpr {
            let is_choice = !uses.extent && !uses.number && !uses.unrolled;
            let compared = uses.compared.filter(|_| is_choice);
            let compared = compared.and_then(|compared| self.compared_value(compared));
            return ArgSpec::Constexpr(guess::constexpr(&param.name, &uses, self.facts, compared));
        }
        match self.forced_type(param) {
            Some(forced) => ArgSpec::Runtime {
                divisible_by_16: forced.starts_with('*'),
                signature: forced.into(),
            },
            None => guess::runtime(&param.name, &uses),
        }
    }

    /// The string or number that a parameter is compared with.
    fn compared_value(&self, compared: Compared) -> Option<ConstArg> {
        let scope = item(self.sources, compared.at)?.body_scope();
        let function = function(self.sources, compared.at)?;
        let mut host = Host::new(self.sources);
        let value = host.head_expr(compared.at.file, &scope, &function, compared.value);
        match value {
            Value::Str(_) | Value::Int(Some(_)) => value.to_const(),
            _ => None,
        }
    }
}

/// What annotations fix of parameters.
#[derive(Debug, Clone)]
pub struct Annotated {
    /// Compile-time parameters.
    pub constexpr: Vec<Name>,
    /// Types that do not depend on what is passed, in signature spelling, by parameter.
    pub types: FxHashMap<Name, Arc<str>>,
}

/// What annotations fix of the parameters of `kernel`.
pub fn annotated(sources: &dyn Sources, kernel: &Kernel) -> Annotated {
    let binder = Binder::new(sources, kernel, &ShownLaunches::default());
    let params = kernel.function.params.iter();
    let typed =
        params.filter_map(|param| Some((param.name.clone(), binder.forced_type(param)?.into())));
    Annotated { types: typed.collect(), constexpr: binder.constexpr }
}

/// A descriptor argument; `None` when some extent of its block is not known.
fn descriptor(dtype: &str, block: &[Value]) -> Option<ArgSpec> {
    let sizes = block.iter().map(|size| match size {
        Value::Int(Some(size)) => Some(size.to_string()),
        _ => None,
    });
    let sizes = sizes.collect::<Option<Vec<_>>>()?.join(", ");
    Some(guess::number(&format!("tensordesc<{dtype}[{sizes}]>")))
}

/// What a specialization tells of an argument's value.
pub(super) fn value_of(spec: &ArgSpec) -> Value {
    match spec {
        ArgSpec::Constexpr(value) => Value::from_const(value),
        ArgSpec::Runtime { signature, .. } => match &**signature {
            "u1" | "i1" => Value::Bool(None),
            spelling if spelling.starts_with('*') => {
                Value::tensor(Some(spelling[1..].trim_start_matches('k')))
            }
            spelling if super::flags::is_integer(spelling) => Value::Int(None),
            spelling if SPELLINGS.contains(&spelling) => Value::Float(None),
            _ => Value::Unknown,
        },
        ArgSpec::Tuple(tuple) => {
            let items: Vec<Value> = tuple.items.iter().map(value_of).collect();
            match &tuple.named {
                Some(names) => Value::Record { names: names.clone(), items },
                None => Value::Tuple(items),
            }
        }
    }
}
