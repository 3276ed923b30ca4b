//! Specializations as flags spell them.

use std::sync::Arc;

use super::{ArgSpec, ConstArg};
use crate::builtins::TORCH;
use crate::diagnostic::suggest_in_any_case;
use crate::hir::{Expr, Function, Literal, Name, UnaryOp, lower_expression};
use crate::host::named_dtype;

/// What `--type`, `--set`, `--num-warps` and `--num-stages` give.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flags {
    /// Arguments by parameter name: types and values.
    pub args: Vec<(Name, ArgSpec)>,
    /// Warps per CTA.
    pub num_warps: Option<u32>,
    /// Pipeline depth.
    pub num_stages: Option<u32>,
}

impl Flags {
    /// True when nothing is given.
    pub fn is_empty(&self) -> bool {
        *self == Flags::default()
    }

    /// Adds `NAME=TYPE` of `--type`.
    ///
    /// # Errors
    ///
    /// A sentence for the user when the text is not of that form.
    pub fn add_type(&mut self, text: &str) -> Result<(), String> {
        let (name, ty) = split(text, "--type", "n=i32")?;
        self.args.push((name, parse_type(ty)?));
        Ok(())
    }

    /// Adds `NAME=VALUE` of `--set`.
    ///
    /// # Errors
    ///
    /// A sentence for the user when the text is not of that form.
    pub fn add_value(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = split(text, "--set", "BLOCK=128")?;
        self.args.push((name, ArgSpec::Constexpr(parse_value(value)?)));
        Ok(())
    }

    /// Checks that of the kernels asked for, one has each parameter that is named. Where there is no
    /// kernel, nothing is said.
    ///
    /// # Errors
    ///
    /// A sentence that names the parameters there are.
    pub fn check(&self, kernels: &[Arc<Function>]) -> Result<(), String> {
        let mut known: Vec<&str> = Vec::new();
        for param in kernels.iter().flat_map(|kernel| &kernel.params) {
            if !known.contains(&&*param.name) {
                known.push(&param.name);
            }
        }
        let unknown = self.args.iter().find(|(name, _)| !known.contains(&&**name));
        let (Some((name, _)), [first, rest @ ..]) = (unknown, kernels) else { return Ok(()) };
        let closest = suggest_in_any_case(name, known.iter().copied());
        let hint = closest.map(|known| format!("; did you mean {known}?")).unwrap_or_default();
        let parameters = known.join(", ");
        Err(match rest {
            [] => {
                format!("kernel {} has no parameter {name}; it has {parameters}{hint}", first.name)
            }
            _ => format!("no kernel has a parameter {name}; there are {parameters}{hint}"),
        })
    }

    /// What is given for the parameter `name`; the last one counts.
    pub(super) fn arg(&self, name: &str) -> Option<&ArgSpec> {
        self.args.iter().rev().find(|(known, _)| &**known == name).map(|(_, arg)| arg)
    }
}

fn split<'t>(text: &'t str, flag: &str, example: &str) -> Result<(Name, &'t str), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((Name::from(name.trim()), value.trim()))
        }
        _ => Err(format!("{flag} takes NAME=VALUE, such as {flag} {example}; got {text:?}")),
    }
}

/// Reads a type in Triton's signature spelling, with `:16` for divisible by 16 and `:1` for
/// equal to one: `*fp16:16`, `i32`, `i32:1`, `fp32`, `tensordesc<fp16[64, 64]>`, `constexpr` is
/// not a type.
///
/// # Errors
///
/// A sentence for the user.
pub(crate) fn parse_type(text: &str) -> Result<ArgSpec, String> {
    let text = text.trim();
    let (spelling, suffix) = match text.rsplit_once(':') {
        Some((spelling, suffix)) => (spelling.trim(), Some(suffix.trim())),
        None => (text, None),
    };
    let spelling = spelling.trim_matches(['\'', '"']);
    let signature = canonical_type(spelling).ok_or_else(|| {
        format!(
            "{text:?} is not a type; types are spelled like *fp16, *i64, fp32, i32 or \
             tensordesc<fp16[64, 64]>, with :16 for divisible by 16 and :1 for equal to one"
        )
    })?;
    match suffix {
        None => Ok(ArgSpec::Runtime { signature, divisible_by_16: false }),
        Some("16") => Ok(ArgSpec::Runtime { signature, divisible_by_16: true }),
        Some("1") if is_integer(&signature) => Ok(ArgSpec::Constexpr(ConstArg::Int(1))),
        Some("1") => Err(format!("only an integer can be :1, and {spelling} is none")),
        Some(other) => Err(format!("{text:?} ends in :{other}; the suffixes are :16 and :1")),
    }
}

/// True for signature spellings of integers.
pub(super) fn is_integer(signature: &str) -> bool {
    signature.starts_with(['i', 'u']) && !matches!(signature, "i1" | "u1")
}

/// The signature spelling that `spelling` means, which may also use names such as `float16`.
fn canonical_type(spelling: &str) -> Option<Arc<str>> {
    if let Some(element) = spelling.strip_prefix('*') {
        let (konst, element) = match element.strip_prefix('k') {
            Some(element) => ("k", element),
            None => ("", element),
        };
        let element = match element.strip_prefix('*') {
            Some(_) => canonical_type(element)?,
            None => Arc::from(named_dtype(element)?),
        };
        return Some(Arc::from(format!("*{konst}{element}")));
    }
    if let Some(inner) = spelling.strip_prefix("tensordesc<") {
        let (element, shape) = inner.strip_suffix("]>")?.split_once('[')?;
        let element = named_dtype(element.trim())?;
        let sizes: Vec<u64> =
            shape.split(',').map(|size| size.trim().parse().ok()).collect::<Option<_>>()?;
        let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
        return Some(Arc::from(format!("tensordesc<{element}[{}]>", sizes.join(", "))));
    }
    named_dtype(spelling).map(Arc::from)
}

/// Reads a compile-time value: an integer, float, bool, `None`, string, dtype, tuple, or the
/// name of a jit function.
///
/// # Errors
///
/// A sentence for the user.
pub fn parse_value(text: &str) -> Result<ConstArg, String> {
    let failure = || {
        format!(
            "{text:?} is not a value; values are integers, floats, True, False, None, strings in \
             quotes, dtypes such as fp16, tuples, and names of jit functions"
        )
    };
    let (body, _, id) = lower_expression(text).ok_or_else(failure)?;
    value_of(&body, id).ok_or_else(failure)
}

fn value_of(body: &crate::hir::Body, id: crate::hir::ExprId) -> Option<ConstArg> {
    Some(match &body.exprs[id] {
        Expr::Literal(Literal::Int(value)) => ConstArg::Int(value.get()),
        Expr::Literal(Literal::Float(bits)) => ConstArg::Float(*bits),
        Expr::Literal(Literal::Bool(value)) => ConstArg::Bool(*value),
        Expr::Literal(Literal::None) => ConstArg::None,
        Expr::Literal(Literal::Str(text)) => ConstArg::Str(text.clone()),
        Expr::Unary { op: UnaryOp::Minus, operand } => match value_of(body, *operand)? {
            ConstArg::Int(value) => ConstArg::Int(-value),
            ConstArg::Float(bits) => ConstArg::Float((-f64::from_bits(bits)).to_bits()),
            _ => return None,
        },
        Expr::Attribute { value, attr }
            if body.exprs[*value].is_name(TORCH)
                && let Some(dtype) = named_dtype(attr) =>
        {
            ConstArg::TorchDType(dtype.into())
        }
        Expr::Name(name) | Expr::Attribute { attr: name, .. } => match &**name {
            "true" => ConstArg::Bool(true),
            "false" => ConstArg::Bool(false),
            "none" => ConstArg::None,
            name => match named_dtype(name) {
                Some(dtype) => ConstArg::DType(dtype.into()),
                None => ConstArg::Function(name.into()),
            },
        },
        Expr::Call { callee, args } => match (&body.exprs[*callee], &**args) {
            (Expr::Name(float), [arg]) if &**float == "float" => {
                let ConstArg::Str(text) = value_of(body, arg.value)? else { return None };
                ConstArg::Float(text.parse::<f64>().ok()?.to_bits())
            }
            _ => return None,
        },
        Expr::Tuple(items) | Expr::List(items) => {
            ConstArg::Tuple(items.iter().map(|item| value_of(body, *item)).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_round_trip_through_their_spelling() {
        for spelling in ["*fp16:16", "*ki64", "i32", "i32:16", "fp32", "tensordesc<fp16[64, 32]>"] {
            assert_eq!(parse_type(spelling).expect(spelling).to_string(), spelling);
        }
        assert_eq!(parse_type("*float16").expect("a name").to_string(), "*fp16");
        assert_eq!(parse_type("i64:1"), Ok(ArgSpec::Constexpr(ConstArg::Int(1))));
        for wrong in ["", "*", "fp17", "fp32:1", "i32:8", "tensordesc<fp16>"] {
            assert!(parse_type(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn values_are_python() {
        assert_eq!(parse_value("0x40"), Ok(ConstArg::Int(64)));
        assert_eq!(parse_value("-1"), Ok(ConstArg::Int(-1)));
        assert_eq!(parse_value("tl.float16"), Ok(ConstArg::DType("fp16".into())));
        assert_eq!(parse_value("torch.float16"), Ok(ConstArg::TorchDType("fp16".into())));
        assert_eq!(parse_value("'relu'"), Ok(ConstArg::Str("relu".into())));
        assert_eq!(
            parse_value("(1, None)"),
            Ok(ConstArg::Tuple(vec![ConstArg::Int(1), ConstArg::None]))
        );
        assert!(parse_value("1 +").is_err());
        assert!(parse_value("f(x)").is_err());
    }
}
