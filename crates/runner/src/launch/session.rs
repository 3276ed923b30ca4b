//! A device, a compiler and the launches of a scenario.

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};
use tile_compiler::hir::Name;
use tile_compiler::ir::Function;
use tile_compiler::specialization::{Specialization, TupleNames};

use super::arguments::{runtime_args, specialize, tensors};
use super::flops::count_flops;
use super::uses::{ParamUse, param_uses};
use super::{Device, KernelCompiler, KernelId, LaunchOptions, LaunchReport};
use crate::bench::{self, Measurement};
use crate::scenario::{
    BoundLaunch, KernelInfo, LaunchFailure, Launcher, StorageId, Store, Tensor, Value,
};
use tile_executor::{Arg, argument_bits};

/// How a session runs launches.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SessionOptions {
    /// Look for races, reads of uninitialized memory and births of NaN.
    pub sanitize: bool,
    /// Measure each launch by the benchmark protocol, after running it once.
    pub bench: bool,
    /// How long one launch may take.
    pub deadline: Option<Duration>,
}

/// What one launch of a scenario did.
#[derive(Debug, Clone)]
pub struct LaunchRecord {
    /// The kernel.
    pub kernel: String,
    /// What it was compiled for.
    pub specialization: Specialization,
    /// Programs along x, y and z.
    pub grid: [u32; 3],
    /// What the launch did.
    pub report: LaunchReport,
    /// Bytes that it must move at least: what was counted, else the sizes of the tensor arguments
    /// that it reads and writes.
    pub bytes: u64,
    /// Storages that it writes.
    pub written: Vec<StorageId>,
    /// What the benchmark measured, if it was asked for.
    pub measurement: Option<Measurement>,
    /// The kernel on the device.
    pub id: KernelId,
}

/// Runs the launches of a scenario on a device.
pub struct Session<'a> {
    compiler: &'a mut dyn KernelCompiler,
    device: &'a mut dyn Device,
    options: SessionOptions,
    loaded: FxHashMap<(String, String), Loaded>,
    /// Storages that the device holds as they are on the host.
    resident: FxHashSet<StorageId>,
    /// Storages that kernels may reach by an address that the scenario asked for.
    exposed: FxHashSet<StorageId>,
    records: Vec<LaunchRecord>,
}

#[derive(Clone)]
struct Loaded {
    id: KernelId,
    params: Vec<(String, tile_compiler::ir::Elem)>,
    uses: Vec<ParamUse>,
    func: Arc<Function>,
}

impl<'a> Session<'a> {
    /// A session without launches.
    pub fn new(
        compiler: &'a mut dyn KernelCompiler,
        device: &'a mut dyn Device,
        options: SessionOptions,
    ) -> Session<'a> {
        Session {
            compiler,
            device,
            options,
            loaded: FxHashMap::default(),
            resident: FxHashSet::default(),
            exposed: FxHashSet::default(),
            records: Vec::new(),
        }
    }

    /// The launches so far, in order.
    pub fn records(&self) -> &[LaunchRecord] {
        &self.records
    }

    /// The device's name.
    pub fn device_name(&self) -> String {
        self.device.name()
    }

    /// The device.
    pub fn device(&self) -> &dyn Device {
        self.device
    }

    fn load(
        &mut self,
        kernel: &str,
        specialization: &Specialization,
    ) -> Result<Loaded, LaunchFailure> {
        let key = (kernel.to_owned(), specialization.to_string());
        if let Some(loaded) = self.loaded.get(&key) {
            return Ok(loaded.clone());
        }
        let func = self.compiler.tile_ir(kernel, specialization)?;
        let loaded = Loaded {
            id: self.device.load(self.compiler, &func)?,
            params: param_types(&func),
            uses: param_uses(&func),
            func: Arc::new(func),
        };
        self.loaded.insert(key, loaded.clone());
        Ok(loaded)
    }

    fn upload(&mut self, store: &Store, storages: &[StorageId]) -> Result<(), LaunchFailure> {
        for &id in storages {
            if self.resident.insert(id) {
                self.device.upload(id, store.get(id))?;
            }
        }
        Ok(())
    }

    fn download(&mut self, store: &mut Store, written: &[StorageId]) -> Result<(), LaunchFailure> {
        for &id in written {
            let storage = &mut store.storages[id.0];
            storage.bytes = self.device.download(id)?;
            storage.initialized = true;
        }
        Ok(())
    }
}

impl Session<'_> {
    /// What a launch may write: through its arguments, or through addresses it was told.
    fn written_storages(&self, tensors: &[(usize, Tensor)], uses: &[ParamUse]) -> Vec<StorageId> {
        let written =
            tensors.iter().filter(|(index, _)| uses.get(*index).is_some_and(|u| u.written));
        let written = written.map(|(_, tensor)| tensor.storage);
        let mut written: Vec<StorageId> = written.chain(self.exposed.iter().copied()).collect();
        written.sort_unstable();
        written.dedup();
        written
    }
}

impl Launcher for Session<'_> {
    fn kernel(&mut self, name: &str) -> Result<KernelInfo, LaunchFailure> {
        self.compiler.kernel(name)
    }

    fn heuristics(&mut self, kernel: &str, args: &[(Name, Value)]) -> Vec<(Name, Value)> {
        self.compiler.heuristics(kernel, args)
    }

    fn record(&mut self, name: &str) -> Option<Arc<TupleNames>> {
        self.compiler.record(name)
    }

    fn launch(&mut self, store: &mut Store, launch: &BoundLaunch) -> Result<(), LaunchFailure> {
        // Storages must be on the device before their addresses are known.
        let named = launch.args.iter().flat_map(|arg| storages_of(&arg.value));
        let named: Vec<StorageId> = named.chain(self.exposed.iter().copied()).collect();
        self.upload(store, &named)?;
        let address = |id: StorageId| self.device.address(id);
        let specialization = specialize(launch, &address)?;
        let args = runtime_args(launch, &specialization, &address);
        let tensors = tensors(launch, &specialization);
        let loaded = self.load(&launch.kernel, &specialization)?;
        check_args(&launch.kernel, &loaded.params, &args)?;
        let written = self.written_storages(&tensors, &loaded.uses);
        let options = LaunchOptions {
            sanitize: self.options.sanitize,
            trace: false,
            deadline: self.options.deadline,
        };
        let mut report = match launch.grid.contains(&0) {
            true => LaunchReport::default(),
            false => self.device.launch(loaded.id, &args, launch.grid, &options)?,
        };
        if report.flops.is_none() {
            report.flops = count_flops(&loaded.func, &bits(&loaded, &args), launch.grid);
        }
        self.download(store, &written)?;
        let bytes = match report.touched {
            Some((read, written)) => read + written,
            None => argument_bytes(&tensors, &loaded.uses),
        };
        let measurement = match self.options.bench && !launch.grid.contains(&0) {
            true => Some(bench::measure(self.device, loaded.id, &args, launch.grid)?),
            false => None,
        };
        if measurement.is_some() {
            // Many launches have written them since they were copied back.
            written.iter().for_each(|id| {
                self.resident.remove(id);
            });
        }
        self.records.push(LaunchRecord {
            kernel: launch.kernel.to_string(),
            specialization,
            grid: launch.grid,
            report,
            bytes,
            written,
            measurement,
            id: loaded.id,
        });
        Ok(())
    }

    fn address(&mut self, store: &Store, id: StorageId) -> Result<u64, LaunchFailure> {
        self.upload(store, &[id])?;
        self.exposed.insert(id);
        Ok(self.device.address(id))
    }
}

/// The bits of arguments that were found to fit.
fn bits(loaded: &Loaded, args: &[Arg]) -> Vec<u64> {
    let typed = args.iter().zip(&loaded.params);
    typed.map(|(&arg, (_, elem))| argument_bits(arg, *elem).unwrap_or_default()).collect()
}

fn storages_of(value: &Value) -> Vec<StorageId> {
    match value {
        Value::Tensor(tensor) => vec![tensor.storage],
        Value::Tuple(items) | Value::Record(_, items) => {
            items.iter().flat_map(storages_of).collect()
        }
        _ => Vec::new(),
    }
}

fn param_types(func: &Function) -> Vec<(String, tile_compiler::ir::Elem)> {
    let args = &func.regions[func.body].args;
    let types = args.iter().filter_map(|&arg| func.ty(arg).elem());
    func.params.iter().map(|param| param.name.to_string()).zip(types).collect()
}

fn check_args(
    kernel: &str,
    params: &[(String, tile_compiler::ir::Elem)],
    args: &[Arg],
) -> Result<(), LaunchFailure> {
    if params.len() != args.len() {
        let message = format!(
            "`{kernel}` has {} runtime parameters, the launch {}",
            params.len(),
            args.len()
        );
        return Err(LaunchFailure::Usage(message));
    }
    for ((name, elem), &arg) in params.iter().zip(args) {
        if argument_bits(arg, *elem).is_none() {
            let message = format!("argument `{name}` of `{kernel}` is {arg}, which is no {elem}");
            return Err(LaunchFailure::Usage(message));
        }
    }
    Ok(())
}

fn argument_bytes(tensors: &[(usize, Tensor)], uses: &[ParamUse]) -> u64 {
    let bytes = tensors.iter().map(|(index, tensor)| {
        let found = uses.get(*index).copied().unwrap_or_default();
        let times = u64::from(found.read) + u64::from(found.written);
        times * (tensor.layout.numel() * tensor.dtype.bytes()) as u64
    });
    bytes.sum()
}
