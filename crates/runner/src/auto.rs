//! Arguments for a kernel that nothing launches: `--arg auto`.
//!
//! Integer parameters get values of one [`SCALES`] entry, floats one half; buffers are as large as
//! the kernel's own address arithmetic then reaches. [`strides`] of what it stores are those of rows
//! as long as the entry says, so that no two lanes meet in one element. The grid has one program:
//! with strides that nobody gave, several could, which would say nothing about the kernel. To
//! find out how far it reaches, the kernel runs on the CPU executor with empty buffers, where every
//! load gives zero and every store is dropped; then again with buffers of the size it reached,
//! since what it loads may be an index, until it reaches no further. Floats in buffers are uniform
//! in `0..1`, so that roots and logarithms have values; integers are zero, so that an index that is
//! loaded is a valid one. A kernel that reaches too far or takes too long at one scale is tried at
//! the next.
//!
//! What is chosen is given as expressions of scenarios, so that a user can repeat and change it.

mod strides;

use std::time::Duration;

use rustc_hash::FxHashMap;
use tile_compiler::ir::Function;
use tile_compiler::specialization::{ArgSpec, Specialization};

use crate::launch::arg_spec;
use crate::scenario::{Arguments, Array, DType, KernelInfo, LaunchFailure, Value};
use tile_executor::{Arg, Buffers, Kernel, Options, RunError};

/// Values of integer parameters that are multiples of 16, and of others: the first is large enough
/// for some tiles and a ragged one.
const SCALES: [Scale; 3] = [
    Scale { aligned: 1024, plain: 1000 },
    Scale { aligned: 128, plain: 100 },
    Scale { aligned: 16, plain: 10 },
];

/// Runs until the kernel must reach no further.
const ROUNDS: usize = 4;

/// Bytes that all buffers together may take.
const MAX_BYTES: u64 = 1 << 28;

/// Time that one run may take.
const DEADLINE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
struct Scale {
    aligned: i128,
    plain: i128,
}

impl Scale {
    fn of(self, aligned: bool) -> i128 {
        if aligned { self.aligned } else { self.plain }
    }
}

/// A launch whose arguments were chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutoLaunch {
    /// Expressions of the parameters that were not given, in parameter order.
    pub args: Vec<(String, String)>,
    /// The expression of the grid.
    pub grid: String,
}

/// `spec` with what the given arguments say of their parameters.
///
/// # Errors
/// When a value cannot be an argument.
pub fn specialize_on(
    spec: &Specialization,
    info: &KernelInfo,
    given: &Arguments,
) -> Result<Specialization, LaunchFailure> {
    let mut spec = spec.clone();
    for param in &info.params {
        let value = given.values.iter().find(|(name, _)| **name == *param.name);
        if let Some((_, value)) = value {
            spec.args.insert(param.name.clone(), arg_spec(param, value, &|_| 0)?);
            spec.assumed.retain(|assumed| *assumed != param.name);
        }
    }
    Ok(spec)
}

/// Chooses the arguments that are not `given` of a kernel under a specialization. `func` is its
/// tile IR.
///
/// # Errors
/// When the kernel cannot run on the CPU, reaches further than memory allows, or takes arguments
/// that cannot be chosen.
pub fn choose(
    spec: &Specialization,
    func: &Function,
    given: &Arguments,
    grid: Option<[u32; 3]>,
) -> Result<AutoLaunch, LaunchFailure> {
    let kernel =
        Kernel::compile(func).map_err(|error| LaunchFailure::Compile(error.to_string()))?;
    let launched = grid.unwrap_or([1; 3]);
    let strides = strides::of_stores(func);
    let mut failure = None;
    for scale in SCALES {
        let mut slots = slots(spec, given, scale, &strides)?;
        match size_buffers(&kernel, func, (&mut slots, given), launched) {
            Ok(()) => return Ok(expressions(&slots, launched)),
            Err(TooMuch(reason)) => failure = Some(reason),
        }
    }
    Err(failure.unwrap_or_else(|| LaunchFailure::Usage("no argument can be chosen".to_owned())))
}

/// Why a launch cannot be what is chosen; a smaller one may.
struct TooMuch(LaunchFailure);

/// A parameter while buffers are sized.
#[derive(Debug)]
struct Slot {
    name: String,
    argument: Argument,
}

#[derive(Debug)]
enum Argument {
    /// What the user gave.
    Given(Value),
    /// A compile-time value, as an expression.
    Constant(String),
    Scalar(Value),
    Buffer {
        dtype: DType,
        bytes: u64,
    },
}

fn slots(
    spec: &Specialization,
    given: &Arguments,
    scale: Scale,
    strides: &FxHashMap<String, Vec<u32>>,
) -> Result<Vec<Slot>, LaunchFailure> {
    let slot = |(name, arg): (&tile_compiler::hir::Name, &ArgSpec)| {
        let found = given.values.iter().find(|(known, _)| **known == **name);
        let argument = match found {
            Some((_, value)) => Argument::Given(value.clone()),
            None => choose_one(name, arg, scale, strides.get(&**name))?,
        };
        Ok(Slot { name: name.to_string(), argument })
    };
    spec.args.iter().map(slot).collect()
}

/// What is chosen for one parameter; `within` are the extents within the axis that it strides.
fn choose_one(
    name: &str,
    arg: &ArgSpec,
    scale: Scale,
    within: Option<&Vec<u32>>,
) -> Result<Argument, LaunchFailure> {
    let hopeless = |what: &str| {
        LaunchFailure::Usage(format!(
            "--arg auto can choose no value for `{name}`, {what}; give it with --arg {name}=EXPR"
        ))
    };
    let (signature, aligned) = match arg {
        ArgSpec::Constexpr(value) => return Ok(Argument::Constant(value.to_string())),
        ArgSpec::Tuple(_) => return Err(hopeless("a tuple")),
        ArgSpec::Runtime { signature, divisible_by_16 } => (signature, *divisible_by_16),
    };
    if let Some(pointee) = signature.strip_prefix('*') {
        let pointee = pointee.strip_prefix('k').unwrap_or(pointee);
        let dtype = DType::from_name(pointee).ok_or_else(|| hopeless(signature))?;
        return Ok(Argument::Buffer { dtype, bytes: 0 });
    }
    let dtype = DType::from_name(signature).ok_or_else(|| hopeless(signature))?;
    Ok(Argument::Scalar(match dtype {
        DType::Bool => Value::Bool(true),
        dtype if dtype.is_float() => Value::Float(0.5),
        // Eight bits hold no thousand.
        dtype if dtype.bytes() == 1 => Value::Int(scale.plain.min(100)),
        _ => Value::Int(match within.map(|extents| &**extents) {
            Some([]) if !aligned => 1,
            Some([outer @ .., last]) => {
                let row = scale.of(aligned).max(i128::from(*last));
                outer.iter().fold(row, |stride, extent| stride * i128::from(*extent))
            }
            _ => scale.of(aligned),
        }),
    }))
}

/// Runs the kernel until its buffers are as large as it reaches.
fn size_buffers(
    kernel: &Kernel,
    func: &Function,
    (slots, given): (&mut [Slot], &Arguments),
    grid: [u32; 3],
) -> Result<(), TooMuch> {
    let options = Options { probe: true, deadline: Some(DEADLINE), ..Options::default() };
    for _ in 0..ROUNDS {
        let mut buffers = Buffers::new();
        let mut sized = Vec::new();
        let mut args = Vec::new();
        for param in &func.params {
            let index = slots.iter().position(|slot| *slot.name == *param.name);
            let Some(index) = index else { continue };
            args.push(match &slots[index].argument {
                Argument::Buffer { dtype, bytes } => {
                    let count = *bytes as usize / dtype.bytes();
                    let id = buffers.add("", dtype.scalar(), &contents(*dtype, count).to_bytes());
                    sized.push(index);
                    Arg::Pointer(buffers.address(id))
                }
                Argument::Given(Value::Tensor(tensor)) => {
                    let storage = &given.store.storages[tensor.storage.0];
                    let id = buffers.add("", storage.dtype.scalar(), &storage.bytes);
                    sized.push(index);
                    let offset = tensor.layout.offset * tensor.dtype.bytes();
                    Arg::Pointer(buffers.address(id) + offset as u64)
                }
                Argument::Given(value) | Argument::Scalar(value) => scalar(value)?,
                Argument::Constant(_) => continue,
            });
        }
        let report = kernel.launch(&mut buffers, &args, grid, &options).map_err(|error| {
            TooMuch(match error {
                RunError::Arguments { .. } => LaunchFailure::Usage(error.to_string()),
                _ => LaunchFailure::Device(error.to_string()),
            })
        })?;
        if !grow(slots, &sized, &report.extents)? {
            break;
        }
    }
    Ok(())
}

fn scalar(value: &Value) -> Result<Arg, TooMuch> {
    match value {
        Value::Float(value) => Ok(Arg::Float(*value)),
        Value::Bool(value) => Ok(Arg::Int(i128::from(*value))),
        Value::Int(value) => Ok(Arg::Int(*value)),
        other => {
            let message = format!("{} is no runtime argument", other.kind());
            Err(TooMuch(LaunchFailure::Usage(message)))
        }
    }
}

fn contents(dtype: DType, count: usize) -> Array {
    if dtype.is_float() {
        Array::floats(dtype, vec![count], crate::scenario::uniform(0, count))
    } else {
        Array::ints(dtype, vec![count], vec![0; count])
    }
}

/// Grows the buffers that were reached beyond their end; true if one was.
fn grow(
    slots: &mut [Slot],
    sized: &[usize],
    extents: &[Option<(i64, i64)>],
) -> Result<bool, TooMuch> {
    let mut grew = false;
    for (&index, extent) in sized.iter().zip(extents) {
        let (Argument::Buffer { dtype, bytes }, Some((_, last))) =
            (&mut slots[index].argument, extent)
        else {
            continue;
        };
        let unit = dtype.bytes() as u64;
        let reached = u64::try_from(last + 1).unwrap_or(0).div_ceil(unit) * unit;
        if reached > *bytes {
            *bytes = reached;
            grew = true;
        }
    }
    let bytes = |slot: &Slot| match slot.argument {
        Argument::Buffer { bytes, .. } => bytes,
        _ => 0,
    };
    let total: u64 = slots.iter().map(bytes).sum();
    if total > MAX_BYTES {
        let message = format!(
            "the kernel reaches over {} MiB with the arguments chosen; \
             give its sizes and strides with --arg NAME=VALUE",
            total >> 20
        );
        return Err(TooMuch(LaunchFailure::Usage(message)));
    }
    Ok(grew)
}

/// The chosen arguments and grid as a user would write them.
fn expressions(slots: &[Slot], [x, y, z]: [u32; 3]) -> AutoLaunch {
    let expression = |(seed, slot): (usize, &Slot)| {
        let text = match &slot.argument {
            Argument::Given(_) => return None,
            Argument::Constant(text) => text.clone(),
            Argument::Scalar(Value::Int(value)) => value.to_string(),
            Argument::Scalar(Value::Float(value)) => value.to_string(),
            Argument::Scalar(_) => "True".to_owned(),
            Argument::Buffer { dtype, bytes } => {
                let count = (*bytes as usize).div_ceil(dtype.bytes()).max(1);
                if dtype.is_float() {
                    format!("rand({count}, dtype={dtype}, seed={seed})")
                } else {
                    format!("zeros({count}, dtype={dtype})")
                }
            }
        };
        Some((slot.name.clone(), text))
    };
    let grid = match (y, z) {
        (1, 1) => format!("({x},)"),
        (_, 1) => format!("({x}, {y})"),
        _ => format!("({x}, {y}, {z})"),
    };
    AutoLaunch { args: slots.iter().enumerate().filter_map(expression).collect(), grid }
}
