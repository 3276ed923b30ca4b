//! The devices of this machine.

use tile_runner::cpu::CpuDevice;
use tile_runner::launch;
use tile_worker::protocol::{Device, Failure, FailureKind};

/// Opens a device.
pub(crate) fn open(device: Device) -> Result<Box<dyn launch::Device>, Failure> {
    match device {
        Device::Cpu | Device::Auto => Ok(Box::new(CpuDevice::new())),
        Device::Cuda(number) => Err(Failure::new(
            FailureKind::Device,
            format!("cuda:{number}: there is no CUDA device; --device cpu runs on the CPU"),
        )),
    }
}
