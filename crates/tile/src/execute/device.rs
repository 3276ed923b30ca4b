//! The devices of this machine.

use tile_compiler::artifact::Artifact;
use tile_runner::cpu::CpuDevice;
use tile_runner::cuda::{self, CudaDevice, CudaError};
use tile_runner::launch;
use tile_worker::protocol::{Device, DeviceInfo, Failure, FailureKind, Residency};

/// Opens a device.
pub(crate) fn open(device: Device) -> Result<Box<dyn launch::Device>, Failure> {
    match device {
        Device::Cpu => Ok(Box::new(CpuDevice::new())),
        Device::Cuda(number) => cuda(number),
        Device::Auto if list().is_empty() => Ok(Box::new(CpuDevice::new())),
        Device::Auto => cuda(0),
    }
}

fn cuda(number: u32) -> Result<Box<dyn launch::Device>, Failure> {
    let failed = |error: CudaError| {
        let message = match error {
            CudaError::NoDriver => error.to_string(),
            error => format!("cuda:{number}: {error}; `--device cpu` runs on the CPU"),
        };
        Failure::new(FailureKind::Device, message)
    };
    Ok(Box::new(CudaDevice::open(number).map_err(failed)?))
}

/// The function of the driver that [`residency`] asks.
const RESIDENCY_SOURCE: &str = "cuOccupancyMaxActiveBlocksPerMultiprocessor";

/// What a multiprocessor of the first CUDA device holds of each of these kernels.
pub(crate) fn residency(kernels: &[Artifact]) -> Result<Vec<Residency>, Failure> {
    let failed = |error: CudaError| Failure::new(FailureKind::Device, format!("cuda:0: {error}"));
    let device = CudaDevice::open(0).map_err(failed)?;
    let name = launch::Device::name(&device);
    let ask = |kernel: &Artifact| {
        let cubin = kernel.cubin.as_deref().unwrap_or_default();
        let found = device.residency(cubin, &kernel.manifest).map_err(failed)?;
        Ok(Residency {
            occupancy: found.occupancy,
            ctas: found.ctas,
            device: name.clone(),
            source: RESIDENCY_SOURCE.to_owned(),
        })
    };
    kernels.iter().map(ask).collect()
}

/// The CUDA devices; none without a driver.
pub(crate) fn list() -> Vec<DeviceInfo> {
    let devices = cuda::devices().unwrap_or_default().into_iter();
    devices
        .map(|device| DeviceInfo {
            name: device.name,
            arch: device.arch,
            memory_bytes: device.memory_bytes,
        })
        .collect()
}
