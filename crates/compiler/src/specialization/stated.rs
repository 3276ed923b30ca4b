//! What the compiler that wrote a kernel states of its arguments in a decorator.
//!
//! PyTorch's graph compiler marks kernels with `@triton_heuristics.pointwise(...)` and the like.
//! The keyword `triton_meta` holds the types of the arguments (`signature`, by name or position),
//! values of those that are compiled in (`constants`), and which ones are multiples of 16
//! (`configs`). `size_hints` has the extent along each axis, from which the decorator picks tile
//! extents when the program runs.
//!
//! What is stated of types counts as much as a launch. Tile extents are derived: along an axis no
//! more than its hint, rounded up to a power of two, and the limits of [`limit`].

use super::flags::parse_type;
use super::{ArgSpec, ConstArg};
use crate::hir::{ArgKind, Body, Expr, ExprId, Name};
use crate::host::Host;
use crate::host::value::Value;
use crate::project::Kernel;

/// What decorators state of the parameters of a kernel.
#[derive(Debug, Clone, Default)]
pub(super) struct Stated {
    /// Types and values of parameters.
    args: Vec<(Name, ArgSpec)>,
    /// Tile extents that follow from the size hints.
    extents: Vec<(Name, i128)>,
    /// Warps per CTA, if it says.
    pub(super) num_warps: Option<u32>,
    /// Pipeline depth, if it says.
    pub(super) num_stages: Option<u32>,
}

impl Stated {
    /// True when no decorator states the types of arguments.
    pub(super) fn is_empty(&self) -> bool {
        self.args.is_empty()
    }

    /// What is stated of a parameter.
    pub(super) fn argument(&self, name: &str) -> Option<&ArgSpec> {
        self.args.iter().find(|(known, _)| &**known == name).map(|(_, spec)| spec)
    }

    /// The tile extent that a compile-time parameter is.
    pub(super) fn extent(&self, name: &str) -> Option<ArgSpec> {
        let (_, extent) = self.extents.iter().find(|(known, _)| &**known == name)?;
        Some(ArgSpec::Constexpr(ConstArg::Int(*extent)))
    }
}

/// Reads the decorator call `id` of `kernel`; `None` when it states no types.
pub(super) fn stated(host: &mut Host<'_>, kernel: &Kernel, id: ExprId) -> Option<Stated> {
    let mut reader = Reader { host, kernel };
    let Expr::Call { args, .. } = &kernel.function.body.exprs[id] else { return None };
    let keyword = |name: &str| args.iter().find(|arg| is_keyword(&arg.kind, name));
    let meta = keyword("triton_meta")?.value;
    let signature = entry(reader.body(), meta, "signature")?;
    let mut stated = Stated::default();
    for (name, value) in reader.by_parameter(signature) {
        if let Value::Str(spelling) = value
            && let Ok(spec) = parse_type(&spelling)
        {
            stated.args.push((name, spec));
        }
    }
    for name in reader.multiples_of_16(meta) {
        let found = stated.args.iter_mut().find(|(known, _)| *known == name);
        if let Some((_, ArgSpec::Runtime { divisible_by_16, .. })) = found {
            *divisible_by_16 = true;
        }
    }
    let constants = entry(reader.body(), meta, "constants");
    for (name, value) in constants.map(|id| reader.by_parameter(id)).unwrap_or_default() {
        let Some(value) = value.to_const() else { continue };
        stated.args.retain(|(known, _)| *known != name);
        stated.args.push((name, ArgSpec::Constexpr(value)));
    }
    if let Some(hints) = keyword("size_hints") {
        stated.extents = reader.extents(hints.value);
    }
    let mut count = |name: &str| match reader.value(keyword(name)?.value) {
        Value::Int(Some(count)) => u32::try_from(count).ok(),
        _ => None,
    };
    stated.num_warps = count("num_warps");
    stated.num_stages = count("num_stages");
    Some(stated)
}

struct Reader<'r, 'a> {
    host: &'r mut Host<'a>,
    kernel: &'r Kernel,
}

impl<'r> Reader<'r, '_> {
    fn body(&self) -> &'r Body {
        &self.kernel.function.body
    }

    fn value(&mut self, id: ExprId) -> Value {
        let kernel = self.kernel;
        self.host.head_expr(kernel.at.file, &kernel.item.scope, &kernel.function, id)
    }

    /// The parameter that a key means: its name, or its position.
    fn parameter(&self, key: &Value) -> Option<Name> {
        match key {
            Value::Str(name) => Some(name.clone()),
            Value::Int(Some(index)) => {
                let param = self.kernel.function.params.get(usize::try_from(*index).ok()?)?;
                Some(param.name.clone())
            }
            Value::Tuple(path) => match path.as_slice() {
                [key] => self.parameter(key),
                _ => None,
            },
            _ => None,
        }
    }

    /// The entries of a dict whose keys are parameters.
    fn by_parameter(&mut self, id: ExprId) -> Vec<(Name, Value)> {
        let Value::Dict(entries) = self.value(id) else { return Vec::new() };
        let named = |(key, value)| Some((self.parameter(&key)?, value));
        entries.into_iter().filter_map(named).collect()
    }

    /// Parameters that are stated to be multiples of 16. Versions of the compiler spell that as
    /// attributes by parameter, or as a list of positions.
    fn multiples_of_16(&mut self, meta: ExprId) -> Vec<Name> {
        let body = self.body();
        let Some(configs) = entry(body, meta, "configs") else { return Vec::new() };
        let Expr::List(configs) = &body.exprs[configs] else { return Vec::new() };
        let Some(&config) = configs.first() else { return Vec::new() };
        let listed = match &body.exprs[config] {
            Expr::Dict(_) => {
                let attributes = self.by_parameter(config).into_iter();
                return attributes.filter(|(_, list)| is_multiple(list)).map(|it| it.0).collect();
            }
            Expr::Call { args, .. } => {
                let keyword = args.iter().find(|arg| is_keyword(&arg.kind, "divisible_by_16"));
                keyword.map(|arg| arg.value).or_else(|| {
                    let properties = entry(body, args.first()?.value, "arg_properties")?;
                    entry(body, properties, "tt.divisibility")
                })
            }
            _ => None,
        };
        let positions = listed.and_then(|id| self.value(id).elements()).unwrap_or_default();
        positions.iter().filter_map(|position| self.parameter(position)).collect()
    }

    /// Tile extents by the size hints: a dict by axis, or the extents of `x`, `y`, `z` in order.
    fn extents(&mut self, hints: ExprId) -> Vec<(Name, i128)> {
        let hints: Vec<(String, i128)> = match self.value(hints) {
            Value::Dict(entries) => entries
                .into_iter()
                .filter_map(|entry| match entry {
                    (Value::Str(axis), Value::Int(Some(hint))) => Some((axis.to_string(), hint)),
                    _ => None,
                })
                .collect(),
            list => {
                let hints = list.elements().unwrap_or_default();
                let reduces = self.kernel.function.params.iter().any(|p| &*p.name == "RBLOCK");
                let axes = if reduces { ["x", "r", ""] } else { ["x", "y", "z"] };
                let known = hints.iter().zip(axes).filter_map(|(hint, axis)| match hint {
                    Value::Int(Some(hint)) => Some((axis.to_owned(), *hint)),
                    _ => None,
                });
                known.collect()
            }
        };
        let block = |axis: &str| Name::from(format!("{}BLOCK", axis.to_uppercase()));
        let blocks: Vec<(Name, i128)> =
            hints.into_iter().map(|(axis, hint)| (block(&axis), hint)).collect();
        let is_parameter =
            |name: &Name| self.kernel.function.params.iter().any(|param| param.name == *name);
        let names: Vec<Name> =
            blocks.iter().map(|(name, _)| name.clone()).filter(is_parameter).collect();
        let extent = |(name, hint): (Name, i128)| {
            let whole = u64::try_from(hint).ok()?.max(1).checked_next_power_of_two()?;
            Some((name.clone(), i128::from(whole).min(limit(&name, &names))))
        };
        blocks.into_iter().filter_map(extent).collect()
    }
}

/// The largest extent that is chosen along the axis of the block parameter `name`, of `all`: 1024
/// for the only one and for the one that is reduced, 1 beside one that is reduced, else 32.
fn limit(name: &str, all: &[Name]) -> i128 {
    let reduces = |name: &str| name.starts_with('R');
    match all {
        [_] => 1024,
        _ if reduces(name) => 1024,
        _ if all.iter().any(|other| reduces(other)) => 1,
        _ => 32,
    }
}

/// True for attributes that say that an argument is a multiple of 16.
fn is_multiple(attributes: &Value) -> bool {
    let attributes = attributes.elements().unwrap_or_default();
    attributes.iter().any(|attribute| match attribute.elements().as_deref() {
        Some([Value::Str(name), Value::Int(Some(16))]) => &**name == "tt.divisibility",
        _ => false,
    })
}

fn is_keyword(kind: &ArgKind, name: &str) -> bool {
    matches!(kind, ArgKind::Keyword(known) if &**known == name)
}

/// The value that a dict written out has for the string `key`.
fn entry(body: &Body, dict: ExprId, key: &str) -> Option<ExprId> {
    let Expr::Dict(entries) = &body.exprs[dict] else { return None };
    entries.iter().find_map(|(known, value)| match &body.exprs[(*known)?] {
        Expr::Literal(crate::hir::Literal::Str(text)) if &**text == key => Some(*value),
        _ => None,
    })
}
