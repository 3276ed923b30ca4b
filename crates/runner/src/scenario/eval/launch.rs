//! Launches in a scenario: arguments bound to parameters, options, the grid.

use std::sync::Arc;

use tile_compiler::hir::{Arg, ArgKind, Expr, ExprId, Name};
use tile_compiler::ir::LaunchOptions;

use super::super::error::{Eval, Fault, fault};
use super::super::launcher::{BoundArg, BoundLaunch, KernelInfo, KernelParam};
use super::super::tensor::Value;
use super::{Code, Evaluator};

impl Evaluator<'_> {
    /// True when `id` was a launch, which is then done.
    pub(super) fn launch_statement(&mut self, code: &Code, id: ExprId) -> Eval<bool> {
        let Expr::Call { callee, args } = &code.body.exprs[id] else { return Ok(false) };
        let Expr::Subscript { value, index } = &code.body.exprs[*callee] else { return Ok(false) };
        let Expr::Name(kernel) = &code.body.exprs[*value] else {
            return Err(fault!("a launch is written `kernel[grid](arguments)`"));
        };
        let launch = self.bind_launch(code, kernel, *index, args)?;
        let launcher =
            self.host.launcher.as_mut().ok_or_else(|| fault!("nothing can be launched here"))?;
        launcher.launch(&mut self.host.store, &launch).map_err(Fault::from)?;
        self.launches.push(launch);
        Ok(true)
    }

    fn bind_launch(
        &mut self,
        code: &Code,
        kernel: &Name,
        grid: ExprId,
        args: &[Arg],
    ) -> Eval<BoundLaunch> {
        let launcher =
            self.host.launcher.as_mut().ok_or_else(|| fault!("nothing can be launched here"))?;
        let info = launcher.kernel(kernel).map_err(Fault::from)?;
        let mut options = info.options.clone();
        let mut given: Vec<Option<Value>> = vec![None; info.params.len()];
        let mut next = 0;
        for arg in args {
            let at = code.map.exprs[arg.value];
            match &arg.kind {
                ArgKind::Positional => {
                    if next >= given.len() {
                        let count = given.len();
                        return Err(fault!("`{kernel}` takes {count} arguments").at(at));
                    }
                    given[next] = Some(self.argument(code, arg.value)?);
                    next += 1;
                }
                ArgKind::Keyword(name) => {
                    let param = info.params.iter().position(|param| param.name == *name);
                    let value = self.argument(code, arg.value)?;
                    match param {
                        Some(index) if given[index].is_some() => {
                            return Err(fault!("`{name}` is given twice").at(at));
                        }
                        Some(index) => given[index] = Some(value),
                        None => set_option(&mut options, name, &value).map_err(|f| f.at(at))?,
                    }
                }
                ArgKind::Star => {
                    let (Value::Tuple(values) | Value::Record(_, values)) =
                        self.expr(code, arg.value)?
                    else {
                        return Err(fault!("`*` takes a tuple").at(at));
                    };
                    for value in values {
                        let slot = given.get_mut(next);
                        *slot.ok_or_else(|| fault!("too many arguments").at(at))? = Some(value);
                        next += 1;
                    }
                }
                ArgKind::DoubleStar => {
                    return Err(fault!("`**` arguments are not supported in scenarios").at(at));
                }
            }
        }
        self.host.options.num_warps.inspect(|&count| options.num_warps = count);
        self.host.options.num_stages.inspect(|&count| options.num_stages = count);
        let args = self.bind_arguments(kernel, info, given)?;
        let grid = match self.host.options.grid {
            Some(grid) => grid,
            None => self.grid(code, grid, &args)?,
        };
        Ok(BoundLaunch { kernel: kernel.clone(), args, grid, options })
    }

    fn bind_arguments(
        &mut self,
        kernel: &Name,
        info: KernelInfo,
        given: Vec<Option<Value>>,
    ) -> Eval<Vec<BoundArg>> {
        let values = self.values_of(kernel, &info.params, given);
        let mut bound = Vec::new();
        for (param, value) in info.params.into_iter().zip(values) {
            let Some(value) = value else {
                return Err(fault!("`{kernel}` needs an argument for `{}`", param.name));
            };
            self.name_storage(&param.name, &value);
            bound.push(BoundArg { param, value });
        }
        Ok(bound)
    }

    /// The values of parameters, in order: what flags say, what heuristics set, what the launch
    /// gives, defaults.
    fn values_of(
        &mut self,
        kernel: &Name,
        params: &[KernelParam],
        given: Vec<Option<Value>>,
    ) -> Vec<Option<Value>> {
        let mut values = Vec::with_capacity(params.len());
        let mut computed = Vec::new();
        for (index, (param, given)) in params.iter().zip(given).enumerate() {
            let mut flags = self.host.options.arguments.iter();
            let flag = flags.find(|(name, _)| **name == *param.name);
            if param.computed && flag.is_none() {
                computed.push(index);
            }
            let flag = flag.map(|(_, value)| value.clone());
            values.push(flag.or(given).or_else(|| param.default.clone()));
        }
        let Some(launcher) = self.host.launcher.as_deref_mut().filter(|_| !computed.is_empty())
        else {
            return values;
        };
        let others = params.iter().zip(&values).enumerate();
        let others = others.filter(|(index, _)| !computed.contains(index));
        let args =
            others.filter_map(|(_, (param, value))| Some((param.name.clone(), value.clone()?)));
        let args: Vec<(Name, Value)> = args.collect();
        for (name, value) in launcher.heuristics(kernel, &args) {
            if let Some(&index) = computed.iter().find(|&&index| params[index].name == name) {
                values[index] = Some(value);
            }
        }
        values
    }

    /// An argument: a computed tensor becomes a storage, and the name that it has refers to it.
    pub(super) fn argument(&mut self, code: &Code, id: ExprId) -> Eval<Value> {
        let value = self.expr(code, id)?;
        let Value::Array(array) = value else { return Ok(value) };
        let tensor = self.host.store.store(&array);
        let value = Value::Tensor(tensor);
        if let Expr::Name(name) = &code.body.exprs[id] {
            self.bind(name, value.clone());
        }
        Ok(value)
    }

    /// The value of an expression given as text, as an argument of a launch.
    pub(super) fn argument_text(&mut self, text: &str) -> Eval<Value> {
        let lowered = tile_compiler::hir::lower_expression(text);
        let (body, map, id) = lowered.ok_or_else(|| fault!("`{text}` is not an expression"))?;
        let code = Code { body: Arc::new(body), map: Arc::new(map) };
        self.argument(&code, id)
    }

    /// The grid: a tuple of up to three extents, one extent, or a function of the arguments.
    fn grid(&mut self, code: &Code, id: ExprId, args: &[BoundArg]) -> Eval<[u32; 3]> {
        let named = match &code.body.exprs[id] {
            Expr::Name(name) => self.grids.get(name).copied(),
            _ => None,
        };
        let id = named.unwrap_or(id);
        let at = code.map.exprs[id];
        let value = match &code.body.exprs[id] {
            Expr::Lambda { params, body } => {
                let meta = args.iter().map(|arg| (arg.param.name.to_string(), arg.value.clone()));
                let meta = Value::Meta(Arc::new(meta.collect()));
                let outer = params.first().map(|param| {
                    let name = param.name.to_string();
                    (name.clone(), self.variables.insert(name, meta))
                });
                let value = self.expr(code, *body);
                match outer {
                    Some((name, Some(value))) => self.variables.insert(name, value),
                    Some((name, None)) => self.variables.remove(&name),
                    None => None,
                };
                value?
            }
            _ => self.expr(code, id)?,
        };
        parse_grid(&value).map_err(|fault| fault.at(at))
    }
}

fn set_option(options: &mut LaunchOptions, name: &str, value: &Value) -> Eval<()> {
    let number = match value {
        Value::Int(value) => u32::try_from(*value).ok(),
        _ => None,
    };
    match (name, number, value) {
        ("num_warps", Some(count), _) if count.is_power_of_two() => options.num_warps = count,
        ("num_stages", Some(count), _) => options.num_stages = count,
        ("num_ctas", Some(count), _) => options.num_ctas = count,
        ("maxnreg", Some(count), _) => options.max_registers = Some(count),
        ("enable_fp_fusion", _, Value::Bool(value)) => options.fp_fusion = *value,
        ("num_warps", ..) => return Err(fault!("num_warps must be a power of 2")),
        ("num_stages" | "num_ctas" | "maxnreg", ..) => {
            return Err(fault!("`{name}` takes a positive integer"));
        }
        _ => return Err(fault!("the kernel has no parameter `{name}`, nor is it a launch option")),
    }
    Ok(())
}

/// The extents of a grid.
fn parse_grid(value: &Value) -> Eval<[u32; 3]> {
    let extents = match value {
        Value::Tuple(items) if (1..=3).contains(&items.len()) => items.clone(),
        Value::Int(_) => vec![value.clone()],
        Value::Tuple(items) => {
            return Err(fault!("a grid has one to three extents, not {}", items.len()));
        }
        other => return Err(fault!("a grid is a tuple of integers, not {}", other.kind())),
    };
    let mut grid = [1; 3];
    for (at, extent) in extents.iter().enumerate() {
        let limit = if at == 0 { i128::from(i32::MAX) } else { 65_535 };
        grid[at] = match extent {
            Value::Int(extent) if (0..=limit).contains(extent) => *extent as u32,
            Value::Int(extent) => {
                return Err(fault!("the grid's extent {extent} is outside 0 to {limit}"));
            }
            other => return Err(fault!("a grid's extents are integers, not {}", other.kind())),
        };
    }
    Ok(grid)
}
