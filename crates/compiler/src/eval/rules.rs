//! Whose rules hold: one version of Triton, or any that is known.
//!
//! Where no version was chosen and none is installed, code that some version accepts is right:
//! block pointers, which 3.9 removed, must not make a working 3.6 kernel look broken.

use super::culprit::{Culprit, culprit};
use super::kernel::{
    FileInference, KernelInference, LowerResult, infer_all, infer_function, lower_kernel,
    named_kernel,
};
use super::repair::repair;
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::hir::Name;
use crate::project::{ItemRef, Sources};
use crate::source::FileId;
use crate::specialization::{ArgSpec, Specialization, TritonVersion};

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
        let better = |found: &KernelInference| {
            accepted(&found.diagnostics) || is_removed(&inference.diagnostics, &found.diagnostics)
        };
        Some(earlier.filter(better).unwrap_or(inference))
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
        let result = self.lower_as_given(sources, file, kernel, spec);
        if result.function.is_some() || spec.is_certain() {
            return result;
        }
        self.repair(sources, file, kernel, spec, &result).unwrap_or(result)
    }

    fn lower_as_given(
        self,
        sources: &dyn Sources,
        file: FileId,
        kernel: &str,
        spec: &Specialization,
    ) -> LowerResult {
        let result = lower_kernel(sources, file, kernel, spec, self.newest());
        let Some(older) = self.older().filter(|_| result.function.is_none()) else { return result };
        let earlier = lower_kernel(sources, file, kernel, spec, older);
        let better =
            earlier.function.is_some() || is_removed(&result.diagnostics, &earlier.diagnostics);
        if better { earlier } else { result }
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

    /// The argument of `spec` because of whose type alone the kernel does not lower: with another
    /// one it does. `failed` is what came of `spec`.
    pub fn culprit(
        self,
        sources: &dyn Sources,
        file: FileId,
        kernel: &str,
        spec: &Specialization,
        failed: &LowerResult,
    ) -> Option<Culprit> {
        let at = named_kernel(sources, file, kernel)?;
        culprit(sources, at, spec, failed, self.newest())
    }

    /// Lowers one kernel under several specializations; see [`Lowering`].
    pub fn lowering<'a>(
        self,
        sources: &'a dyn Sources,
        file: FileId,
        kernel: &'a str,
    ) -> Lowering<'a> {
        Lowering { rules: self, sources, file, kernel, changes: Vec::new(), failures: 0 }
    }

    fn older(self) -> Option<TritonVersion> {
        (self == Rules::Any).then_some(TritonVersion::V3_6)
    }
}

/// Lowers one kernel under one specialization after the other. A guess that had to be changed for
/// one is changed for the next ones as well, before it fails again.
pub struct Lowering<'a> {
    rules: Rules,
    sources: &'a dyn Sources,
    file: FileId,
    kernel: &'a str,
    changes: Vec<Change>,
    /// Specializations that could not be repaired.
    failures: u32,
}

/// Specializations of one kernel for which other guesses are sought in vain.
const MAX_FAILURES: u32 = 2;

/// An argument with the value that did not work and the one that did.
struct Change {
    name: Name,
    from: ArgSpec,
    to: ArgSpec,
}

impl Lowering<'_> {
    /// What the kernel was lowered for, which has better guesses than `spec` where those cannot
    /// work, and what came of it.
    pub fn lower(&mut self, spec: &Specialization) -> (Specialization, LowerResult) {
        let (rules, sources, file, kernel) = (self.rules, self.sources, self.file, self.kernel);
        if let Some(changed) = self.changed(spec) {
            let result = rules.lower_as_given(sources, file, kernel, &changed);
            if result.function.is_some() {
                return (changed, result);
            }
        }
        if self.failures >= MAX_FAILURES {
            return (spec.clone(), rules.lower_as_given(sources, file, kernel, spec));
        }
        let mut result = rules.lower_kernel(sources, file, kernel, spec);
        let Some(repaired) = result.repaired.take() else {
            self.failures += u32::from(result.function.is_none());
            return (spec.clone(), result);
        };
        for (name, to) in &repaired.args {
            match spec.args.get(name) {
                Some(from) if from != to => {
                    let (name, from, to) = (name.clone(), from.clone(), to.clone());
                    self.changes.push(Change { name, from, to });
                }
                _ => {}
            }
        }
        (repaired, result)
    }

    /// The specialization with the changes that helped before, if any applies.
    fn changed(&self, spec: &Specialization) -> Option<Specialization> {
        if spec.is_certain() {
            return None;
        }
        let mut changed = spec.clone();
        for Change { name, from, to } in &self.changes {
            if changed.args.get(name) == Some(from) {
                changed.args.insert(name.clone(), to.clone());
                changed.assumed.push(name.clone());
            }
        }
        changed.assumed.dedup();
        (changed.args != spec.args).then_some(changed)
    }
}

/// True when the newer version refuses a member that the older one has: the author writes for the
/// older one, and what that says is what is wrong.
fn is_removed(newer: &[Diagnostic], older: &[Diagnostic]) -> bool {
    let unknown = |found: &[Diagnostic]| found.iter().any(|f| f.code == Code::UnknownBuiltin);
    unknown(newer) && !unknown(older)
}

fn accepted(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().all(|diagnostic| diagnostic.severity < Severity::Error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::{MemorySources, jit_functions};

    /// What is wrong with a kernel of which any version may be meant.
    fn errors(body: &str) -> Vec<String> {
        let head = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x, T):\n";
        let mut sources = MemorySources::new(Vec::new());
        let file = sources.add("k.py", &format!("{head}{body}"));
        let at = jit_functions(&sources, file)[0];
        let inferred = Rules::Any.infer_function(&sources, at, true).expect("the kernel is there");
        inferred.diagnostics.iter().map(|found| found.code.to_string()).collect()
    }

    #[test]
    fn mistakes_beside_removed_members_are_those_of_the_version_that_has_them() {
        let block = "    p = tl.make_block_ptr(x, (T,), (1,), (0,), (16,), (0,))\n";
        let inferred = errors(&format!("{block}    tl.sum(tl.load(p), axis=5)\n"));
        assert_eq!(inferred, ["shape/axis"]);
        let inferred = errors(&format!("{block}    tl.nothing(p)\n"));
        assert!(inferred.contains(&"name/unknown-builtin".to_owned()), "{inferred:?}");
        let inferred = errors("    tl.sum(tl.arange(0, 16), axis=5)\n");
        assert_eq!(inferred, ["shape/axis"]);
        let inferred = errors(&format!("{block}    tl.load(p)\n"));
        assert_eq!(inferred, Vec::<String>::new());
    }
}
