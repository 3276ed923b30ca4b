//! Arguments for a kernel that nothing launches: `--arg auto`.
//!
//! Buffers are as large as the kernel's own address arithmetic reaches. To find out, the kernel
//! runs on the CPU executor with empty buffers, where every load gives zero and every store is
//! dropped; then again with buffers of the size it reached, since what it loads may be an index,
//! until it reaches no further. Floats are uniform in `0..1`, integers zero, so that an index
//! that is loaded is a valid one.
//!
//! Integer parameters are [`INTEGER`], or [`ALIGNED_INTEGER`] where the specialization says that
//! they are multiples of 16; floats are one half; grid axes that the kernel asks for have
//! [`PROGRAMS`] programs. What was chosen is returned in words.

use std::time::Duration;

use tile_compiler::ir::{Attrs, Function, Opcode};
use tile_compiler::specialization::{ArgSpec, Specialization};

use crate::cpu::{Arg, Buffers, Kernel, Options};
use crate::scenario::{
    Array, BoundArg, BoundLaunch, DType, KernelInfo, KernelParam, LaunchFailure, StorageId, Store,
    Value,
};

/// Value of integer parameters.
pub const INTEGER: i128 = 1000;
/// Value of integer parameters that are multiples of 16.
pub const ALIGNED_INTEGER: i128 = 1024;
/// Programs along each axis that the kernel asks for.
pub const PROGRAMS: u32 = 4;

/// Runs until the kernel must reach no further.
const ROUNDS: usize = 4;
/// Bytes that all buffers together may take.
const MAX_BYTES: u64 = 1 << 30;
/// Time that one run may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// A launch whose arguments were chosen.
#[derive(Debug, Clone)]
pub struct AutoLaunch {
    /// The launch.
    pub launch: BoundLaunch,
    /// Its tensors.
    pub store: Store,
    /// What was chosen, one line for each parameter and one for the grid.
    pub notes: Vec<String>,
}

/// Chooses the arguments that are not `given` of a kernel under a specialization. `func` is its
/// tile IR; tensors among the given values are in `store`.
///
/// # Errors
/// When the kernel cannot run on the CPU, reaches further than memory allows, or takes arguments
/// that cannot be chosen.
pub fn choose(
    info: &KernelInfo,
    specialization: &Specialization,
    func: &Function,
    given: &[(String, Value)],
    grid: Option<[u32; 3]>,
    mut store: Store,
) -> Result<AutoLaunch, LaunchFailure> {
    let mut notes = Vec::new();
    let chosen_grid = grid.unwrap_or_else(|| default_grid(func));
    let mut slots = Vec::new();
    for param in &info.params {
        let spec = specialization.args.get(&param.name);
        let found = given.iter().find(|(name, _)| **name == *param.name);
        let slot = match (found, spec) {
            (Some((_, value)), _) => Slot::Known(value.clone()),
            (None, Some(spec)) => choose_one(param, spec, &mut notes)?,
            (None, None) => {
                return Err(LaunchFailure::Usage(format!("`{}` needs a value", param.name)));
            }
        };
        slots.push(slot);
    }
    size_buffers(func, specialization, &mut slots, &mut store, chosen_grid)?;
    let mut args = Vec::new();
    for (param, slot) in info.params.iter().zip(slots) {
        let value = match slot {
            Slot::Known(value) => value,
            Slot::Buffer { dtype, bytes } => {
                let count = (bytes as usize).div_ceil(dtype.bytes()).max(1);
                notes.push(format!("{} = {count} elements of {dtype}", param.name));
                Value::Tensor(store.store(&contents(dtype, count)))
            }
        };
        if let Value::Tensor(tensor) = &value {
            store.storages[tensor.storage.0].name = param.name.to_string();
        }
        args.push(BoundArg { param: param.clone(), value });
    }
    if grid.is_none() {
        let [x, y, z] = chosen_grid;
        notes.push(format!("grid = ({x}, {y}, {z})"));
    }
    let launch = BoundLaunch {
        kernel: func.name.clone(),
        args,
        grid: chosen_grid,
        options: specialization.options.clone(),
    };
    Ok(AutoLaunch { launch, store, notes })
}

/// An argument while buffers are sized.
#[derive(Debug, Clone)]
enum Slot {
    Known(Value),
    Buffer { dtype: DType, bytes: u64 },
}

fn default_grid(func: &Function) -> [u32; 3] {
    let mut grid = [1; 3];
    for inst in func.walk() {
        let data = &func.insts[inst];
        if let (Opcode::ProgramId, Attrs::Axis(axis)) = (data.opcode, &data.attrs)
            && let Some(extent) = grid.get_mut(axis.axis as usize)
        {
            *extent = PROGRAMS;
        }
    }
    grid
}

fn choose_one(
    param: &KernelParam,
    spec: &ArgSpec,
    notes: &mut Vec<String>,
) -> Result<Slot, LaunchFailure> {
    let value = match spec {
        ArgSpec::Constexpr(value) => return Ok(Slot::Known(Value::from(value))),
        ArgSpec::Runtime { signature, divisible_by_16 } => {
            if let Some(pointee) = signature.strip_prefix('*') {
                let pointee = pointee.strip_prefix('k').unwrap_or(pointee);
                if let Some(dtype) = DType::from_name(pointee) {
                    return Ok(Slot::Buffer { dtype, bytes: 0 });
                }
            }
            match DType::from_name(signature) {
                Some(DType::Bool) => Value::Bool(true),
                Some(dtype) if dtype.is_float() => Value::Float(0.5),
                Some(_) if *divisible_by_16 => Value::Int(ALIGNED_INTEGER),
                // Eight bits hold no thousand.
                Some(dtype) if dtype.bytes() == 1 => Value::Int(100),
                Some(_) => Value::Int(INTEGER),
                None => {
                    let message =
                        format!("no value can be chosen for `{}: {signature}`", param.name);
                    return Err(LaunchFailure::Usage(message));
                }
            }
        }
        ArgSpec::Tuple(_) => {
            let message = format!("no value can be chosen for the tuple `{}`", param.name);
            return Err(LaunchFailure::Usage(message));
        }
    };
    let shown = match &value {
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        _ => "True".to_owned(),
    };
    notes.push(format!("{} = {shown}", param.name));
    Ok(Slot::Known(value))
}

fn contents(dtype: DType, count: usize) -> Array {
    if dtype.is_float() {
        let random = crate::scenario::uniform(0, count);
        Array::floats(dtype, vec![count], random)
    } else {
        Array::ints(dtype, vec![count], vec![0; count])
    }
}

/// Runs the kernel until its buffers are as large as it reaches.
fn size_buffers(
    func: &Function,
    specialization: &Specialization,
    slots: &mut [Slot],
    store: &mut Store,
    grid: [u32; 3],
) -> Result<(), LaunchFailure> {
    let kernel =
        Kernel::compile(func).map_err(|error| LaunchFailure::Compile(error.to_string()))?;
    let options = Options { probe: true, deadline: Some(DEADLINE), ..Options::default() };
    for _ in 0..ROUNDS {
        let mut buffers = Buffers::new();
        let mut args = Vec::new();
        let mut sized = Vec::new();
        for (index, (slot, spec)) in slots.iter().zip(specialization.args.values()).enumerate() {
            if matches!(spec, ArgSpec::Constexpr(_)) {
                continue;
            }
            let arg = match slot {
                Slot::Buffer { dtype, bytes } => {
                    let count = *bytes as usize / dtype.bytes();
                    let id = buffers.add("", dtype.scalar(), &contents(*dtype, count).to_bytes());
                    sized.push(index);
                    Arg::Pointer(buffers.address(id))
                }
                Slot::Known(Value::Tensor(tensor)) => {
                    let StorageId(storage) = tensor.storage;
                    let storage = &store.storages[storage];
                    let id = buffers.add("", storage.dtype.scalar(), &storage.bytes);
                    sized.push(index);
                    let offset = tensor.layout.offset * tensor.dtype.bytes();
                    Arg::Pointer(buffers.address(id) + offset as u64)
                }
                Slot::Known(Value::Float(value)) => Arg::Float(*value),
                Slot::Known(Value::Bool(value)) => Arg::Int(i128::from(*value)),
                Slot::Known(Value::Int(value)) => Arg::Int(*value),
                Slot::Known(other) => {
                    let message = format!("{} is no runtime argument", other.kind());
                    return Err(LaunchFailure::Usage(message));
                }
            };
            args.push(arg);
        }
        let report = kernel
            .launch(&mut buffers, &args, grid, &options)
            .map_err(|error| LaunchFailure::Device(error.to_string()))?;
        if !grow(slots, &sized, &report.extents)? {
            break;
        }
    }
    Ok(())
}

/// Grows the buffers that were reached beyond their end; true if one was.
fn grow(
    slots: &mut [Slot],
    sized: &[usize],
    extents: &[Option<(i64, i64)>],
) -> Result<bool, LaunchFailure> {
    let mut grew = false;
    for (&index, extent) in sized.iter().zip(extents) {
        let (Slot::Buffer { dtype, bytes }, Some((_, last))) = (&mut slots[index], extent) else {
            continue;
        };
        let unit = dtype.bytes() as u64;
        let reached = u64::try_from(last + 1).unwrap_or(0).div_ceil(unit) * unit;
        if reached > *bytes {
            *bytes = reached;
            grew = true;
        }
    }
    let total: u64 = slots
        .iter()
        .map(|slot| match slot {
            Slot::Buffer { bytes, .. } => *bytes,
            Slot::Known(_) => 0,
        })
        .sum();
    if total > MAX_BYTES {
        let message = format!(
            "the kernel reaches over {} MiB with the arguments chosen; \
             give its sizes and strides with --arg NAME=VALUE",
            total >> 20
        );
        return Err(LaunchFailure::Usage(message));
    }
    Ok(grew)
}
