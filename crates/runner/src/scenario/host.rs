//! What the functions of scenarios work on: tensors in their storages, and numbers.

use std::path::PathBuf;
use std::sync::Arc;

use super::dtype::DType;
use super::error::{Eval, Fault, fault};
use super::launcher::Launcher;
use super::operators::Operand;
use super::tensor::{Array, Data, Layout, Store, Tensor, Value};

/// Loop iterations that a scenario may make.
const MAX_ITERATIONS: i128 = 1 << 20;

/// How a scenario is evaluated.
#[derive(Debug, Clone, Default)]
pub struct ScenarioOptions {
    /// Where relative paths of `load` start.
    pub folder: PathBuf,
    /// A grid that replaces that of every launch.
    pub grid: Option<[u32; 3]>,
    /// Values that replace the arguments of these names in every launch.
    pub arguments: Vec<(String, Value)>,
    /// Launch options that replace those of the scenario.
    pub num_warps: Option<u32>,
    /// See [`ScenarioOptions::num_warps`].
    pub num_stages: Option<u32>,
}

/// The side of a scenario that holds its data.
pub(super) struct Host<'a> {
    pub options: &'a ScenarioOptions,
    pub launcher: Option<&'a mut dyn Launcher>,
    pub store: Store,
}

impl Host<'_> {
    pub fn attribute(&mut self, value: &Value, attr: &str) -> Eval<Value> {
        let tuple = |shape: &[usize]| {
            Value::Tuple(shape.iter().map(|&extent| Value::Int(extent as i128)).collect())
        };
        let known = match (value, attr) {
            (Value::Tensor(tensor), "shape") => Some(tuple(&tensor.layout.shape)),
            (Value::Array(array), "shape") => Some(tuple(&array.shape)),
            (Value::Tensor(tensor), "dtype") => Some(Value::DType(tensor.dtype)),
            (Value::Array(array), "dtype") => Some(Value::DType(array.dtype)),
            (Value::DType(dtype), "itemsize") => {
                Some(Value::Int(i128::from(dtype.scalar().bits().div_ceil(8))))
            }
            (Value::Tensor(tensor), "ndim") => Some(Value::Int(tensor.layout.shape.len() as i128)),
            (Value::Array(array), "ndim") => Some(Value::Int(array.shape.len() as i128)),
            (Value::Tensor(_) | Value::Array(_), "T") => {
                Some(self.view(value, |layout| Ok(layout.transposed()))?)
            }
            (Value::Record(names, items), _) => {
                let at = names.fields.iter().position(|field| **field == *attr);
                at.and_then(|at| items.get(at)).cloned()
            }
            (Value::Meta(meta), _) => {
                meta.iter().find(|(name, _)| name == attr).map(|(_, value)| value.clone())
            }
            _ => None,
        };
        known.ok_or_else(|| fault!("{} has no attribute `{attr}`", value.kind()))
    }

    /// Another view of a tensor's elements.
    pub fn view(&mut self, value: &Value, f: impl FnOnce(&Layout) -> Eval<Layout>) -> Eval<Value> {
        match value {
            Value::Tensor(tensor) => {
                let layout = f(&tensor.layout)?;
                Ok(Value::Tensor(Tensor { layout, ..tensor.clone() }))
            }
            Value::Array(array) => {
                let layout = f(&Layout::contiguous(&array.shape))?;
                Ok(Value::Array(array.gather(&layout).into()))
            }
            other => Err(fault!("{} is not a tensor", other.kind())),
        }
    }

    /// The elements of a tensor.
    pub fn array(&self, value: &Value) -> Eval<Arc<Array>> {
        match value {
            Value::Tensor(tensor) => Ok(self.store.read(tensor).into()),
            Value::Array(array) => Ok(array.clone()),
            other => Err(fault!("a tensor is needed here, not {}", other.kind())),
        }
    }

    /// A number or a tensor.
    pub fn operand(&self, value: Value) -> Eval<Operand> {
        Ok(match value {
            Value::Bool(value) => Operand::Int(i128::from(value)),
            Value::Comparison(comparison) => Operand::Int(i128::from(comparison.ok)),
            Value::Int(value) => Operand::Int(value),
            Value::Float(value) => Operand::Float(value),
            Value::Tensor(_) | Value::Array(_) => Operand::Array(self.array(&value)?),
            other => {
                return Err(fault!("a number or a tensor is needed here, not {}", other.kind()));
            }
        })
    }

    /// Writes a number, or the elements of a tensor, to all elements of `part`.
    pub fn fill(&mut self, part: &Tensor, value: Value) -> Eval<()> {
        let array = match self.operand(value)? {
            Operand::Int(value) => Array::ints(DType::I64, Vec::new(), vec![value as i64]).into(),
            Operand::Float(value) => Array::floats(DType::F64, Vec::new(), vec![value]).into(),
            Operand::Array(array) => array,
        };
        let shape = &part.layout.shape;
        let Some(layout) = Layout::contiguous(&array.shape).broadcast(shape) else {
            return Err(fault!("elements of shape {:?} do not fill {shape:?}", array.shape));
        };
        self.store.write(part, &array.gather(&layout).convert(part.dtype));
        Ok(())
    }

    /// An integer; a tensor of one element counts.
    pub fn int(&self, value: &Value) -> Eval<i128> {
        match value {
            Value::Int(value) => Ok(*value),
            Value::Bool(value) => Ok(i128::from(*value)),
            Value::Tensor(_) | Value::Array(_) => match &self.array(value)?.data {
                Data::Int(values) if values.len() == 1 => Ok(i128::from(values[0])),
                _ => Err(fault!("an integer is needed here, not a tensor")),
            },
            other => Err(fault!("an integer is needed here, not {}", other.kind())),
        }
    }

    pub fn truth(&self, value: &Value) -> Eval<bool> {
        Ok(match value {
            Value::None => false,
            Value::Bool(value) => *value,
            Value::Comparison(comparison) => comparison.ok,
            Value::Int(value) => *value != 0,
            Value::Float(value) => *value != 0.0,
            Value::Str(text) => !text.is_empty(),
            Value::Tuple(items) | Value::Record(_, items) => !items.is_empty(),
            Value::DType(_) | Value::Function(_) | Value::Member(_) | Value::Meta(_) => true,
            Value::Tensor(_) | Value::Array(_) => {
                let array = self.array(value)?;
                if array.numel() != 1 {
                    let message = "a tensor of many elements has no one truth value; \
                                   use all(...), any(...) or allclose(a, b)";
                    return Err(fault!("{message}"));
                }
                array.float_at(0) != 0.0
            }
        })
    }

    /// Where a tensor's first element lies on the device.
    pub fn address(&mut self, tensor: &Tensor) -> Eval<Value> {
        let launcher = self
            .launcher
            .as_mut()
            .ok_or_else(|| fault!("a tensor has an address only in a scenario that runs"))?;
        let base = launcher.address(&self.store, tensor.storage).map_err(Fault::from)?;
        let offset = tensor.layout.offset * tensor.dtype.bytes();
        Ok(Value::Int(i128::from(base) + offset as i128))
    }
}

/// The integers that `range` counts.
pub(super) fn range(start: i128, end: i128, step: i128) -> Eval<Value> {
    if step == 0 {
        return Err(fault!("range's step cannot be 0"));
    }
    let span = if step > 0 { end - start } else { start - end };
    let count = ((span + step.abs() - 1) / step.abs()).max(0);
    if count > MAX_ITERATIONS {
        return Err(fault!("a loop of {count} iterations is too long for a scenario"));
    }
    Ok(Value::Tuple((0..count).map(|at| Value::Int(start + at * step)).collect()))
}
