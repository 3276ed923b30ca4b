//! Launches that host code shows, written as scenarios write them.

use std::collections::BTreeSet;

use indexmap::IndexMap;

use super::{ArgSpec, KnownArg, KnownBuffer, KnownLaunch, LaunchSite, Specialization};
use crate::eval::dtype::DType;
use crate::hir::Name;
use crate::host::value::contents::Contents;
use crate::ir::LaunchOptions;
use crate::project::{ItemRef, Sources, kernel};

/// Numbers of a tensor that are written one by one.
const MAX_WRITTEN: usize = 64;

/// A launch of a kernel as a scenario writes it. What host code does not show of it is made up:
/// floats in memory are normally distributed, and integers there of which nothing is known are zero,
/// so that one which is an index is a valid one; a float whose value is not known is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenLaunch {
    /// Where host code has it.
    pub site: LaunchSite,
    /// The kernel's arguments by name as expressions, in the order of parameters; those that
    /// heuristics compute are left out. An expression may name an argument before it, whose memory
    /// is the same.
    pub args: Vec<(Name, String)>,
    /// The extents of the grid.
    pub grid: [u32; 3],
    /// Launch options.
    pub options: LaunchOptions,
    /// Parameters of buffers whose integers are made up.
    pub made_up: Vec<Name>,
}

impl WrittenLaunch {
    /// The argument for the parameter `name`.
    pub fn arg(&self, name: &str) -> Option<&str> {
        self.args.iter().find(|(known, _)| **known == *name).map(|(_, text)| text.as_str())
    }

    /// The grid as an expression.
    pub fn grid(&self) -> String {
        match self.grid {
            [x, 1, 1] => format!("({x},)"),
            [x, y, 1] => format!("({x}, {y})"),
            [x, y, z] => format!("({x}, {y}, {z})"),
        }
    }
}

/// What host code does not show of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchGap {
    /// Where host code has it.
    pub site: LaunchSite,
    /// The parameter whose argument is not known well enough; `None` for the grid.
    pub param: Option<Name>,
}

/// Launch options other than the usual ones, by their names at a launch.
pub fn written_options(options: &LaunchOptions) -> Vec<(&'static str, u32)> {
    let usual = LaunchOptions::default();
    let all = [
        ("num_warps", Some(options.num_warps), Some(usual.num_warps)),
        ("num_stages", Some(options.num_stages), Some(usual.num_stages)),
        ("num_ctas", Some(options.num_ctas), Some(usual.num_ctas)),
        ("maxnreg", options.max_registers, usual.max_registers),
    ];
    let other = all.into_iter().filter(|(_, value, usual)| value != usual);
    other.filter_map(|(name, value, _)| Some((name, value?))).collect()
}

/// The launches of the kernel `at` in host code, one for each place that has one; written where the
/// grid, the integers and the sizes of buffers are known. `specializations` are what the kernel is
/// compiled for.
pub fn written_launches(
    sources: &dyn Sources,
    at: ItemRef,
    specializations: &[Specialization],
) -> Vec<Result<WrittenLaunch, LaunchGap>> {
    let Some(kernel) = kernel(sources, at) else { return Vec::new() };
    let mut heuristics = None;
    let mut found: IndexMap<LaunchSite, Result<WrittenLaunch, LaunchGap>> = IndexMap::new();
    for spec in specializations {
        for launch in &spec.launches {
            let Some(site) = launch.site else { continue };
            if found.get(&site).is_some_and(Result::is_ok) || site.is_in_scenario(sources) {
                continue;
            }
            let computed =
                heuristics.get_or_insert_with(|| super::tuning(sources, &kernel).heuristics);
            let written = write(spec, launch, site, computed);
            if written.is_ok() || !found.contains_key(&site) {
                found.insert(site, written.map_err(|param| LaunchGap { site, param }));
            }
        }
    }
    found.into_values().collect()
}

/// The launch of the kernel `at` under each autotune configuration: the position of the configuration
/// in what [`launched_tuning`](super::launched_tuning) finds, and the launch at that place in host code of
/// which all is known, with the grid that follows from the configuration. `specializations` are what
/// the kernel is compiled for.
///
/// # Errors
/// What is not known, where no launch is known in full; `None` where there is none.
pub fn tuned_launches(
    sources: &dyn Sources,
    at: ItemRef,
    specializations: &[Specialization],
) -> Result<Vec<(usize, WrittenLaunch)>, Option<LaunchGap>> {
    let position = |spec: &Specialization| Some(spec.config.as_ref()?.position);
    let configs: BTreeSet<usize> = specializations.iter().filter_map(position).collect();
    let (mut found, mut gap) = (Vec::<(usize, WrittenLaunch)>::new(), None);
    for config in configs {
        let under = specializations.iter().filter(|spec| position(spec) == Some(config));
        for launch in written_launches(sources, at, &under.cloned().collect::<Vec<_>>()) {
            let is_elsewhere = |launch: &WrittenLaunch| {
                found.first().is_some_and(|(_, first)| first.site != launch.site)
            };
            match launch {
                Ok(launch) if is_elsewhere(&launch) => {}
                Ok(launch) => {
                    found.push((config, launch));
                    break;
                }
                Err(missing) => gap = gap.or(Some(missing)),
            }
        }
    }
    if found.is_empty() { Err(gap) } else { Ok(found) }
}

/// The launch, or the parameter of which too little is known, if it is one.
fn write(
    spec: &Specialization,
    launch: &KnownLaunch,
    site: LaunchSite,
    computed: &[Name],
) -> Result<WrittenLaunch, Option<Name>> {
    let mut memory: Vec<(&Name, &KnownBuffer)> = Vec::new();
    let (mut args, mut made_up) = (Vec::new(), Vec::new());
    for (name, arg) in spec.args.iter().filter(|(name, _)| !computed.contains(name)) {
        let assumed = spec.assumed.contains(name);
        let text = argument((name, arg), launch.arg(name), &mut memory).filter(|_| !assumed);
        if is_made_up(arg, launch.arg(name)) {
            made_up.push(name.clone());
        }
        args.push((name.clone(), text.ok_or_else(|| Some(name.clone()))?));
    }
    let grid = launch.grid.filter(|_| !launch.doubtful).ok_or(None)?;
    Ok(WrittenLaunch { site, args, grid, options: spec.options.clone(), made_up })
}

/// Whether a buffer has integers that nothing shows.
fn is_made_up(arg: &ArgSpec, known: Option<&KnownArg>) -> bool {
    let (ArgSpec::Runtime { signature, .. }, Some(KnownArg::Buffer(buffer))) = (arg, known) else {
        return false;
    };
    matches!(buffer.contents, Contents::Unknown | Contents::Signed | Contents::Floats(_))
        && element(signature).is_some_and(|dtype| !dtype.is_float())
}

/// The type of the elements of a buffer.
fn element(signature: &str) -> Option<DType> {
    DType::from_signature(signature.strip_prefix('*')?.trim_start_matches('k'))
}

/// The argument as an expression. `memory` is that of the arguments before it.
fn argument<'s>(
    (name, arg): (&'s Name, &ArgSpec),
    known: Option<&'s KnownArg>,
    memory: &mut Vec<(&'s Name, &'s KnownBuffer)>,
) -> Option<String> {
    let signature = match arg {
        ArgSpec::Constexpr(value) => return Some(value.to_string()),
        ArgSpec::Runtime { signature, .. } => signature,
        ArgSpec::Tuple(_) => return None,
    };
    match known {
        Some(KnownArg::Buffer(buffer)) => {
            let is_same = |known: &KnownBuffer| {
                known.id.is_some()
                    && (known.id, known.elements) == (buffer.id, buffer.elements)
                    && known.contents == buffer.contents
            };
            if let Some((first, _)) = memory.iter().find(|(_, known)| is_same(known)) {
                return Some(first.to_string());
            }
            memory.push((name, buffer));
            tensor(signature, buffer, memory.len())
        }
        Some(KnownArg::Int(value)) => Some(match DType::from_signature(signature)? {
            DType::Int1 => if *value == 0 { "False" } else { "True" }.to_owned(),
            _ => value.to_string(),
        }),
        Some(KnownArg::Float(bits)) => Some(float(f64::from_bits(*bits))),
        None => {
            let is_float = DType::from_signature(signature)?.is_float();
            is_float.then(|| float(1.0))
        }
    }
}

fn float(value: f64) -> String {
    match value {
        // Too large a number is an infinity.
        value if value.is_infinite() => format!("{}1e999", if value < 0.0 { "-" } else { "" }),
        value => format!("{value:?}"),
    }
}

/// A tensor of the elements that `signature` says, as host code fills it.
fn tensor(signature: &str, buffer: &KnownBuffer, seed: usize) -> Option<String> {
    let dtype = element(signature)?;
    let of = format!(", dtype={}", dtype.member());
    let count = buffer.elements;
    let sizes = match buffer.shape() {
        Some(shape) => shape.iter().map(i128::to_string).collect::<Vec<_>>().join(", "),
        None => count.to_string(),
    };
    let is_flat = buffer.shape().is_none_or(|shape| shape.len() == 1);
    let in_shape = |flat: String| if is_flat { flat } else { format!("{flat}.view({sizes})") };
    let between =
        |lo: i128, hi: i128| format!("randint({lo}, {}, {sizes}{of}, seed={seed})", hi + 1);
    Some(match &buffer.contents {
        Contents::Uninitialized => format!("empty({sizes}{of})"),
        Contents::Progression { start: 0, step: 0 } => format!("zeros({sizes}{of})"),
        Contents::Progression { start: 1, step: 0 } => format!("ones({sizes}{of})"),
        Contents::Progression { start, step: 0 } => format!("full({sizes}, {start}{of})"),
        Contents::Progression { start, step } => {
            in_shape(format!("arange({start}, {}, {step}{of})", start + step * count))
        }
        Contents::Listed(numbers) if numbers.len() as i128 != count => return None,
        Contents::Listed(numbers) if numbers.len() <= MAX_WRITTEN => {
            let numbers: Vec<String> = numbers.iter().map(i128::to_string).collect();
            in_shape(format!("tensor([{}]{of})", numbers.join(", ")))
        }
        Contents::Listed(numbers) => between(*numbers.iter().min()?, *numbers.iter().max()?),
        Contents::Distinct { lo, hi } if hi - lo + 1 >= count => {
            in_shape(format!("arange({lo}, {}{of})", lo + count))
        }
        Contents::Distinct { lo, hi } | Contents::Random { lo, hi } => between(*lo, *hi),
        Contents::Unknown
        | Contents::Partly(_)
        | Contents::Signed
        | Contents::Floats(_)
        | Contents::Except { .. }
            if dtype.is_float() =>
        {
            format!("randn({sizes}{of}, seed={seed})")
        }
        Contents::Except { of: contents, .. } => {
            let contents = Contents::clone(contents);
            return tensor(signature, &KnownBuffer { contents, ..buffer.clone() }, seed);
        }
        Contents::Unknown | Contents::Partly(_) | Contents::Signed | Contents::Floats(_) => {
            format!("zeros({sizes}{of})")
        }
    })
}
