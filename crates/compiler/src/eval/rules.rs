//! Whose rules hold: one version of Triton, or any that is known.
//!
//! Where no version was chosen and none is installed, code that some version accepts is right:
//! block pointers, which 3.9 removed, must not make a working 3.6 kernel look broken.

use super::kernel::{
    FileInference, KernelInference, LowerResult, infer_all, infer_function, lower_kernel,
    named_kernel,
};
use super::repair::repair;
use crate::diagnostic::{Diagnostic, Severity};
use crate::project::{ItemRef, Sources};
use crate::source::FileId;
use crate::specialization::{Specialization, TritonVersion};

/// Which versions' rules hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Rules {
    /// Those of one version.
    Only(TritonVersion),
    /// The newest version's; those of the one before for a kernel that only it accepts.
    #[default]
    Any,
}

impl Rules {
    /// The version whose documentation and signatures are shown.
    pub fn newest(self) -> TritonVersion {
        match self {
            Rules::Only(version) => version,
            Rules::Any => TritonVersion::V3_9,
        }
    }

    /// The version, where one was chosen.
    pub fn only(self) -> Option<TritonVersion> {
        match self {
            Rules::Only(version) => Some(version),
            Rules::Any => None,
        }
    }

    /// As [`super::infer_file`], each function under the version that accepts it.
    pub fn infer_file(self, sources: &dyn Sources, file: FileId) -> FileInference {
        infer_all(sources, file, self)
    }

    /// What holds for the jit function at `at` under every specialization, under the version that
    /// accepts it. `entry` says that it is a kernel. `None` when there is no such function.
    pub fn infer_function(
        self,
        sources: &dyn Sources,
        at: ItemRef,
        entry: bool,
    ) -> Option<KernelInference> {
        let inference = infer_function(sources, at, entry, self.newest())?;
        let Some(older) = self.older().filter(|_| !accepted(&inference.diagnostics)) else {
            return Some(inference);
        };
        let earlier = infer_function(sources, at, entry, older);
        Some(earlier.filter(|found| accepted(&found.diagnostics)).unwrap_or(inference))
    }

    /// As [`lower_kernel`], under the version that accepts the kernel. Guesses that cannot work
    /// are guessed again, unless something is wrong whatever the arguments are: then
    /// [`LowerResult::repaired`] is what the kernel was lowered for.
    pub fn lower_kernel(
        self,
        sources: &dyn Sources,
        file: FileId,
        kernel: &str,
        spec: &Specialization,
    ) -> LowerResult {
        let result = lower_kernel(sources, file, kernel, spec, self.newest());
        if result.function.is_some() {
            return result;
        }
        if let Some(older) = self.older() {
            let earlier = lower_kernel(sources, file, kernel, spec, older);
            if earlier.function.is_some() {
                return earlier;
            }
        }
        if spec.is_certain() {
            return result;
        }
        self.repair(sources, file, kernel, spec, &result).unwrap_or(result)
    }

    fn repair(
        self,
        sources: &dyn Sources,
        file: FileId,
        kernel: &str,
        spec: &Specialization,
        failed: &LowerResult,
    ) -> Option<LowerResult> {
        let at = named_kernel(sources, file, kernel)?;
        let fits = |version: &TritonVersion| {
            infer_function(sources, at, true, *version)
                .is_some_and(|inference| accepted(&inference.diagnostics))
        };
        let version = [Some(self.newest()), self.older()].into_iter().flatten().find(fits)?;
        let (spec, result) = repair(sources, at, spec, failed, version)?;
        Some(LowerResult { repaired: Some(spec), ..result })
    }

    fn older(self) -> Option<TritonVersion> {
        (self == Rules::Any).then_some(TritonVersion::V3_6)
    }
}

fn accepted(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().all(|diagnostic| diagnostic.severity < Severity::Error)
}
