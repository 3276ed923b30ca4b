//! Scenarios: the small host language that launches kernels and checks what they did.
//!
//! [`run`] evaluates the statements of a scenario in order. Tensors made by constructors are
//! storages that kernels can take; every other operation gives a value in double precision that
//! is rounded to its type only when a kernel takes it or `.to(dtype)` says so. A reference such as
//! `softmax(x)` is therefore more precise than the kernel that it is compared with.
//!
//! Arithmetic types follow PyTorch where it matters to what a kernel is given: floats win over
//! integers, wider over narrower, a number does not change a tensor's type (a float and an integer
//! tensor give `fp32`), `/` gives a float, comparisons give booleans.
//!
//! `allclose(a, b)` holds when every `|a - b| <= atol + rtol * |b|`; without `rtol` and `atol` the
//! tolerances are those of the less precise type ([`DType::tolerance`]). NaN equals nothing unless
//! `equal_nan=True`. Random numbers are described in the documentation of `random.rs`; the default
//! seed is 0.

mod args;
mod construct;
mod dtype;
mod error;
mod eval;
mod functions;
mod host;
mod launcher;
mod methods;
mod npy;
mod operators;
mod random;
mod reduce;
mod tensor;
mod views;

pub use dtype::DType;
pub use error::ScenarioError;
pub use eval::{ArgumentError, Arguments, AssertOutcome, Outcome, evaluate_arguments, run};
pub use host::ScenarioOptions;
pub use launcher::{BoundArg, BoundLaunch, KernelInfo, KernelParam, LaunchFailure, Launcher};
pub use npy::{load_npy, save_npy};
pub use random::uniform;
pub use tensor::{
    Array, Comparison, Data, Layout, Storage, StorageId, Store, Summary, Tensor, Value,
};
