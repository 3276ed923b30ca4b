//! The CPU executor as a device.

use rustc_hash::FxHashMap;
use tile_compiler::ir::Function;
use tile_executor::{Arg, BufferId, Buffers, Kernel, Options};

use crate::launch::{
    Device, KernelCompiler, KernelId, KernelResources, LaunchOptions, LaunchReport,
};
use crate::scenario::{LaunchFailure, Storage, StorageId};

/// The machine that this process runs on.
#[derive(Debug, Default)]
pub struct CpuDevice {
    buffers: Buffers,
    by_storage: FxHashMap<StorageId, BufferId>,
    kernels: Vec<Kernel>,
}

impl CpuDevice {
    /// A device without buffers and kernels.
    pub fn new() -> CpuDevice {
        CpuDevice::default()
    }
}

impl Device for CpuDevice {
    fn name(&self) -> String {
        "cpu".to_owned()
    }

    fn upload(&mut self, id: StorageId, storage: &Storage) -> Result<(), LaunchFailure> {
        if let Some(&buffer) = self.by_storage.get(&id) {
            self.buffers.write(buffer, &storage.bytes);
            return Ok(());
        }
        let name = if storage.name.is_empty() { "tensor" } else { storage.name.as_str() };
        let scalar = storage.dtype.scalar();
        let buffer = match storage.initialized {
            true => self.buffers.add(name, scalar, &storage.bytes),
            false => self.buffers.add_uninitialized(name, scalar, &storage.bytes),
        };
        self.by_storage.insert(id, buffer);
        Ok(())
    }

    fn download(&mut self, id: StorageId) -> Result<Vec<u8>, LaunchFailure> {
        Ok(self.by_storage.get(&id).map(|&buffer| self.buffers.bytes(buffer)).unwrap_or_default())
    }

    fn address(&self, id: StorageId) -> u64 {
        self.by_storage.get(&id).map_or(0, |&buffer| self.buffers.address(buffer))
    }

    fn load(
        &mut self,
        _: &mut dyn KernelCompiler,
        func: &Function,
    ) -> Result<KernelId, LaunchFailure> {
        let kernel =
            Kernel::compile(func).map_err(|error| LaunchFailure::Compile(error.to_string()))?;
        self.kernels.push(kernel);
        Ok(KernelId(self.kernels.len() - 1))
    }

    fn launch(
        &mut self,
        kernel: KernelId,
        args: &[Arg],
        grid: [u32; 3],
        options: &LaunchOptions,
    ) -> Result<LaunchReport, LaunchFailure> {
        let options = Options {
            sanitize: options.sanitize,
            trace: options.trace,
            deadline: options.deadline,
            ..Options::default()
        };
        let kernel = &self.kernels[kernel.0];
        let report = kernel
            .launch(&mut self.buffers, args, grid, &options)
            .map_err(|error| LaunchFailure::Device(error.to_string()))?;
        Ok(LaunchReport {
            elapsed: report.elapsed,
            findings: report.findings,
            prints: report.prints,
            flops: (report.flops > 0).then_some(report.flops),
            touched: report.touched,
        })
    }

    fn flush_caches(&mut self) -> Result<(), LaunchFailure> {
        // Larger than the last level of most processors' caches.
        const BYTES: usize = 64 << 20;
        let mut flood = vec![1u8; BYTES];
        flood.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(1));
        std::hint::black_box(&flood);
        Ok(())
    }

    fn resources(&self, _: KernelId) -> Option<KernelResources> {
        None
    }
}
