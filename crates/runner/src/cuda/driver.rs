//! The CUDA driver, wrapped so that nothing outside this file is unsafe.
//!
//! Every handle is created here, valid until dropped, and used only while its context is alive:
//! [`super::CudaDevice`] drops the context last. Handles are raw pointers, which keeps them on one
//! thread. Work goes to one stream that waits for the legacy default stream, to which the copies
//! of [`Memory`] go, and the other way around.

use std::ffi::{CString, c_void};
use std::sync::OnceLock;
use std::time::Duration;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use tile_compiler::artifact::{Manifest, TensorMap};
use tile_compiler::eval::dtype::DType;

use super::{CudaError, DeviceInfo};
use crate::launch::KernelResources;

/// Names the error of a call.
fn failed(what: &'static str) -> impl Fn(DriverError) -> CudaError {
    move |error| {
        let name = match error.error_name() {
            Ok(name) => name.to_string_lossy().into_owned(),
            Err(_) => format!("error {}", error.0 as u32),
        };
        CudaError::Driver { what, name }
    }
}

/// Loads and starts the driver, once.
fn init() -> Result<(), CudaError> {
    static STARTED: OnceLock<Result<(), CudaError>> = OnceLock::new();
    STARTED
        .get_or_init(|| {
            // SAFETY: loading the driver's library runs its initializers, which are its own
            // business; no other thread is loading it through us.
            if !unsafe { sys::is_culib_present() } {
                return Err(CudaError::NoDriver);
            }
            result::init().map_err(failed("the CUDA driver does not start"))
        })
        .clone()
}

/// How many devices there are.
pub(super) fn count() -> Result<u32, CudaError> {
    init()?;
    let count = result::device::get_count().map_err(failed("cannot count the CUDA devices"))?;
    Ok(u32::try_from(count).unwrap_or(0))
}

/// What is known of a device.
pub(super) fn info(ordinal: u32) -> Result<DeviceInfo, CudaError> {
    use sys::CUdevice_attribute_enum as Attribute;
    init()?;
    let what = failed("cannot query the CUDA device");
    let device = result::device::get(ordinal as i32).map_err(&what)?;
    let attribute = |attribute| {
        // SAFETY: the device came from `device::get`.
        let value = unsafe { result::device::get_attribute(device, attribute) };
        value.map(|value| u32::try_from(value).unwrap_or(0)).map_err(&what)
    };
    let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    Ok(DeviceInfo {
        ordinal,
        name: result::device::get_name(device).map_err(&what)?,
        arch: arch_name(major, minor),
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        clock_khz: attribute(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
        memory_clock_khz: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?,
        // SAFETY: the device came from `device::get`.
        memory_bytes: unsafe { result::device::total_mem(device) }.map_err(&what)? as u64,
        max_shared_bytes: attribute(
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )?,
        max_threads: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
    })
}

/// The architecture to compile for: from Hopper on, the variant with the generation's own
/// instructions.
fn arch_name(major: u32, minor: u32) -> String {
    let suffix = if major >= 9 { "a" } else { "" };
    format!("sm_{major}{minor}{suffix}")
}

/// A device's primary context and the stream that work goes to.
#[derive(Debug)]
pub(super) struct Context {
    device: sys::CUdevice,
    context: sys::CUcontext,
    stream: sys::CUstream,
}

impl Context {
    pub fn new(ordinal: u32) -> Result<Context, CudaError> {
        init()?;
        let what = failed("cannot open the CUDA device");
        let device = result::device::get(ordinal as i32).map_err(&what)?;
        // SAFETY: the device came from `device::get`.
        let context = unsafe { result::primary_ctx::retain(device) }.map_err(&what)?;
        // SAFETY: the context was just retained.
        let bound = unsafe { result::ctx::set_current(context) };
        let stream =
            bound.and_then(|()| result::stream::create(result::stream::StreamKind::Default));
        match stream {
            Ok(stream) => Ok(Context { device, context, stream }),
            Err(error) => {
                // SAFETY: the device came from `device::get`, and its context was retained once.
                let _ = unsafe { result::primary_ctx::release(device) };
                Err(what(error))
            }
        }
    }

    /// Makes this the thread's context.
    pub fn bind(&self) -> Result<(), CudaError> {
        // SAFETY: the context lives as long as `self`.
        unsafe { result::ctx::set_current(self.context) }
            .map_err(failed("cannot use the CUDA device"))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the stream was created by `new` and the context retained there, once each.
        // Errors after a kernel's fault have no remedy.
        unsafe {
            let _ = result::ctx::set_current(self.context);
            let _ = result::stream::destroy(self.stream);
            let _ = result::primary_ctx::release(self.device);
        }
    }
}

/// Device memory.
#[derive(Debug)]
pub(super) struct Memory {
    address: sys::CUdeviceptr,
    len: usize,
}

impl Memory {
    /// `len` bytes of any content; at least one is allocated.
    pub fn new(context: &Context, len: usize) -> Result<Memory, CudaError> {
        context.bind()?;
        // SAFETY: the context is current.
        let address = unsafe { result::malloc_sync(len.max(1)) }
            .map_err(failed("cannot allocate device memory"))?;
        Ok(Memory { address, len })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn address(&self) -> u64 {
        self.address
    }

    /// Replaces the content by `bytes`, as far as both reach.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), CudaError> {
        let bytes = &bytes[..bytes.len().min(self.len)];
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the memory is allocated and at least as long as `bytes`.
        unsafe { result::memcpy_htod_sync(self.address, bytes) }
            .map_err(failed("cannot copy to the device"))
    }

    pub fn read(&self) -> Result<Vec<u8>, CudaError> {
        let mut bytes = vec![0u8; self.len];
        if bytes.is_empty() {
            return Ok(bytes);
        }
        // SAFETY: the memory is allocated and exactly as long as `bytes`.
        unsafe { result::memcpy_dtoh_sync(&mut bytes, self.address) }
            .map_err(failed("cannot copy from the device"))?;
        Ok(bytes)
    }

    /// Sets every byte, in the order of the stream.
    pub fn fill(&mut self, context: &Context, value: u8) -> Result<(), CudaError> {
        // SAFETY: the memory is allocated, `len` bytes long, and outlives the stream's work: it is
        // freed by a call that waits for it.
        unsafe { result::memset_d8_async(self.address, value, self.len, context.stream) }
            .map_err(failed("cannot write device memory"))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` and freed once. An error after a kernel's fault has no
        // remedy.
        let _ = unsafe { result::free_sync(self.address) };
    }
}

/// A point in the stream.
#[derive(Debug)]
pub(super) struct Event(sys::CUevent);

impl Event {
    pub fn new(context: &Context) -> Result<Event, CudaError> {
        context.bind()?;
        result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)
            .map(Event)
            .map_err(failed("cannot create a CUDA event"))
    }

    pub fn record(&self, context: &Context) -> Result<(), CudaError> {
        // SAFETY: event and stream are alive and of one context.
        unsafe { result::event::record(self.0, context.stream) }
            .map_err(failed("cannot record a CUDA event"))
    }

    /// True when everything before it is done.
    pub(crate) fn is_done(&self) -> Result<bool, CudaError> {
        // SAFETY: the event is alive.
        match unsafe { result::event::query(self.0) } {
            Ok(()) => Ok(true),
            Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            Err(error) => Err(failed("the kernel failed")(error)),
        }
    }

    pub fn wait(&self) -> Result<(), CudaError> {
        // SAFETY: the event is alive.
        unsafe { result::event::synchronize(self.0) }.map_err(failed("the kernel failed"))
    }

    /// Time between two events that are done.
    pub fn since(&self, start: &Event) -> Result<Duration, CudaError> {
        // SAFETY: both events are alive and were recorded on one stream.
        let ms = unsafe { result::event::elapsed(start.0, self.0) }
            .map_err(failed("cannot read a CUDA event"))?;
        Ok(Duration::from_secs_f64(f64::from(ms.max(0.0)) / 1e3))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: created by `new` and destroyed once.
        let _ = unsafe { result::event::destroy(self.0) };
    }
}

/// The entry function of a loaded module.
#[derive(Debug)]
pub(super) struct LoadedFunction {
    module: sys::CUmodule,
    function: sys::CUfunction,
}

impl LoadedFunction {
    pub fn new(context: &Context, cubin: &[u8], entry: &str) -> Result<LoadedFunction, CudaError> {
        context.bind()?;
        let what = failed("cannot load the kernel");
        let name = CString::new(entry).map_err(|_| CudaError::Driver {
            what: "cannot load the kernel",
            name: "its name has a NUL character".to_owned(),
        })?;
        // SAFETY: the image is a whole cubin, which the driver copies before it returns.
        let module =
            unsafe { result::module::load_data(cubin.as_ptr().cast::<c_void>()) }.map_err(&what)?;
        // SAFETY: the module was just loaded.
        match unsafe { result::module::get_function(module, name) } {
            Ok(function) => Ok(LoadedFunction { module, function }),
            Err(error) => {
                // SAFETY: the module was just loaded, and nothing refers to it.
                let _ = unsafe { result::module::unload(module) };
                Err(what(error))
            }
        }
    }

    /// Lets launches ask for this much dynamic shared memory, which must be done beyond 48 KiB.
    pub(crate) fn allow_shared(&self, bytes: u32) -> Result<(), CudaError> {
        use sys::CUfunction_attribute_enum as Attribute;
        let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function's module is loaded.
        unsafe { result::function::set_function_attribute(self.function, attribute, bytes as i32) }
            .map_err(failed("the device has too little shared memory"))
    }

    /// Registers, local memory and static shared memory.
    pub fn resources(&self) -> Result<KernelResources, CudaError> {
        use sys::CUfunction_attribute_enum as Attribute;
        let attribute = |attribute| {
            // SAFETY: the function's module is loaded.
            let value =
                unsafe { result::function::get_function_attribute(self.function, attribute) };
            value
                .map(|value| u32::try_from(value).unwrap_or(0))
                .map_err(failed("cannot query the kernel"))
        };
        Ok(KernelResources {
            registers: attribute(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local_bytes: attribute(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            shared_bytes: attribute(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
        })
    }

    /// How many CTAs of `threads` threads and `shared_bytes` of dynamic shared memory a
    /// multiprocessor holds at once, as the driver says. Clusters are not looked at.
    pub(crate) fn resident_ctas(&self, threads: u32, shared_bytes: u32) -> Result<u32, CudaError> {
        // SAFETY: the function's module is loaded.
        let ctas = unsafe {
            result::occupancy::max_active_block_per_multiprocessor(
                self.function,
                threads as i32,
                shared_bytes as usize,
            )
        };
        ctas.map(|ctas| u32::try_from(ctas).unwrap_or(0))
            .map_err(failed("cannot ask the driver for the occupancy"))
    }

    /// Puts a launch in the stream. `params` are the bits of each parameter, low bytes first, and `maps`
    /// the tensor maps behind them.
    pub fn launch(
        &self,
        context: &Context,
        grid: [u32; 3],
        manifest: &Manifest,
        params: &mut [u64],
        maps: &mut [EncodedMap],
    ) -> Result<(), CudaError> {
        let bits = params.iter_mut().map(|bits| std::ptr::from_mut(bits).cast());
        let maps = maps.iter_mut().map(|map| std::ptr::from_mut(&mut map.0).cast());
        let mut pointers: Vec<*mut c_void> = bits.chain(maps).collect();
        let [x, y, z] = manifest.block;
        let what = failed("the kernel cannot be launched");
        if manifest.cluster.iter().all(|&extent| extent <= 1) {
            // SAFETY: the function is loaded; there is a pointer to at least as many bytes as
            // each of its parameters has (8, little-endian, or 128), which the driver copies now. What
            // the kernel does with device memory cannot be checked.
            let launched = unsafe {
                result::launch_kernel(
                    self.function,
                    (grid[0], grid[1], grid[2]),
                    (x, y, z),
                    manifest.shared_bytes,
                    context.stream,
                    &mut pointers,
                )
            };
            return launched.map_err(what);
        }
        let mut attribute = cluster_attribute(manifest.cluster);
        let config = sys::CUlaunchConfig {
            gridDimX: grid[0],
            gridDimY: grid[1],
            gridDimZ: grid[2],
            blockDimX: x,
            blockDimY: y,
            blockDimZ: z,
            sharedMemBytes: manifest.shared_bytes,
            hStream: context.stream,
            attrs: &raw mut attribute,
            numAttrs: 1,
        };
        // SAFETY: as above; `config` and its one attribute live until the call returns.
        let launched = unsafe {
            sys::cuLaunchKernelEx(
                &raw const config,
                self.function,
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        launched.result().map_err(what)
    }
}

/// A tensor map as kernels take it.
#[derive(Debug)]
pub(super) struct EncodedMap(sys::CUtensorMap);

impl EncodedMap {
    /// The map of the tensor at `base`, with extents and strides in elements, the outermost axis first.
    pub fn new(
        map: &TensorMap,
        base: u64,
        extents: &[u64],
        strides: &[u64],
    ) -> Result<EncodedMap, CudaError> {
        use sys::{CUtensorMapDataType as Elem, CUtensorMapSwizzle as Swizzle};
        let element_bytes =
            DType::from_signature(&map.ty).map_or(0, |dtype| dtype.bits().div_ceil(8));
        let elem = match element_bytes {
            1 => Elem::CU_TENSOR_MAP_DATA_TYPE_UINT8,
            2 => Elem::CU_TENSOR_MAP_DATA_TYPE_UINT16,
            _ => Elem::CU_TENSOR_MAP_DATA_TYPE_UINT32,
        };
        let swizzle = match map.swizzle_bytes {
            32 => Swizzle::CU_TENSOR_MAP_SWIZZLE_32B,
            64 => Swizzle::CU_TENSOR_MAP_SWIZZLE_64B,
            128 => Swizzle::CU_TENSOR_MAP_SWIZZLE_128B,
            _ => Swizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
        };
        let extents: Vec<u64> = extents.iter().rev().copied().collect();
        let bytes = |stride: &u64| stride.wrapping_mul(element_bytes.into());
        let strides: Vec<u64> = strides.iter().rev().map(bytes).collect();
        let boxes: Vec<u32> = map.extents.iter().rev().copied().collect();
        let steps = vec![1u32; boxes.len()];
        let mut encoded = EncodedMap(sys::CUtensorMap_st { opaque: [0; 16] });
        // SAFETY: the map is aligned as its type says; there are as many extents, boxes and steps as axes,
        // and a stride less. The driver does not read what is at `base`.
        let made = unsafe {
            sys::cuTensorMapEncodeTiled(
                &raw mut encoded.0,
                elem,
                boxes.len() as u32,
                base as *mut c_void,
                extents.as_ptr(),
                strides.as_ptr(),
                boxes.as_ptr(),
                steps.as_ptr(),
                sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                swizzle,
                sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        };
        let what = "a tensor that a descriptor names does not begin at a multiple of 16 bytes, or rows \
                    of it do not";
        made.result().map_err(failed(what))?;
        Ok(encoded)
    }
}

fn cluster_attribute(cluster: [u32; 3]) -> sys::CUlaunchAttribute {
    // SAFETY: every field of the value is plain data for which zero bits are valid.
    let mut value: sys::CUlaunchAttributeValue = unsafe { std::mem::zeroed() };
    value.clusterDim.x = cluster[0].max(1);
    value.clusterDim.y = cluster[1].max(1);
    value.clusterDim.z = cluster[2].max(1);
    sys::CUlaunchAttribute {
        id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        pad: [0; 4],
        value,
    }
}

impl Drop for LoadedFunction {
    fn drop(&mut self) {
        // SAFETY: loaded by `new` and unloaded once, with no launch pending: launches are waited
        // for. An error after a kernel's fault has no remedy.
        let _ = unsafe { result::module::unload(self.module) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_have_their_suffix_from_hopper_on() {
        let names: Vec<String> =
            [(7, 5), (8, 9), (9, 0), (12, 0)].map(|(a, b)| arch_name(a, b)).to_vec();
        assert_eq!(names, ["sm_75", "sm_89", "sm_90a", "sm_120a"]);
    }

    #[test]
    fn a_machine_without_driver_gives_an_error() {
        match count() {
            Ok(count) => assert!((0..count).all(|ordinal| info(ordinal).is_ok())),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
