//! Whose rules hold: one version of Triton, or any that is known.
//!
//! Where no version was chosen and none is installed, code that some version accepts is right:
//! block pointers, which 3.9 removed, must not make a working 3.6 kernel look broken.

use super::culprit::{Culprit, culprit};
use super::kernel::{
    FileInference, KernelInference, LowerResult, infer_all, infer_function, infer_under,
    lower_function, try_lowering_within,
};
use super::repair::repair;
use crate::builtins::TritonVersion;
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::gpu;
use crate::hir::Name;
use crate::ir;
use crate::project::{self, ItemRef, Sources};
use crate::source::{FileId, FileRange};
use crate::specialization::{ArgSpec, Specialization};

/// Which versions' rules hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Rules {
    /// Those of one version.
    Only(TritonVersion),
    /// The newest version's; those of the one before for a kernel that only it accepts.
    #[default]
    Any,
}

/// What a function may be given although it looks like a kernel, of which arguments are scalars that
/// are known at run time.
enum Given {
    /// Tiles, by kernels that are not seen.
    Tiles,
    /// Ones by a launch for the parameters at these places, which are compile-time values.
    Ones(Vec<FileRange>),
    /// Whatever kernels of other files have, or compile-time values by a launch.
    Anything,
}

impl Given {
    fn to(sources: &dyn Sources, at: ItemRef) -> Option<Given> {
        if project::is_helper_of_others(sources, at) || project::is_given_constants(sources, at) {
            return Some(Given::Anything);
        }
        if project::may_be_helper(sources, at) {
            return Some(Given::Tiles);
        }
        let ones = project::given_ones(sources, at).into_iter();
        let ones: Vec<_> =
            ones.map(|param| FileRange { file: at.file, range: param.range }).collect();
        (!ones.is_empty()).then_some(Given::Ones(ones))
    }

    /// Whether a finding about a kernel holds as it does where nothing else is given.
    fn leaves(&self, found: &Diagnostic) -> bool {
        match self {
            Given::Tiles => found.code.is_constexpr(),
            Given::Ones(ones) => {
                let is_of = |at: &FileRange| found.related.iter().any(|related| related.at == *at);
                !found.code.is_constexpr() || !ones.iter().any(is_of)
            }
            Given::Anything => false,
        }
    }
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
        let mut inference = self.infer_as(sources, at, entry)?;
        let of_helper = |found: &Diagnostic| found.severity >= Severity::Warning;
        if entry
            && inference.diagnostics.iter().any(of_helper)
            && let Some(given) = Given::to(sources, at)
            && let Some(helper) = self.infer_as(sources, at, false)
        {
            inference.diagnostics.retain(|found| {
                !of_helper(found)
                    || given.leaves(found)
                    || helper.diagnostics.iter().any(|other| is_same(found, other))
            });
        }
        Some(inference)
    }

    fn infer_as(self, sources: &dyn Sources, at: ItemRef, entry: bool) -> Option<KernelInference> {
        let mut inference = infer_function(sources, at, entry, self.newest())?;
        let Some(older) = self.older().filter(|_| !is_clean(&inference.diagnostics)) else {
            return Some(inference);
        };
        let Some(earlier) = infer_function(sources, at, entry, older) else {
            return Some(inference);
        };
        match (accepted(&inference.diagnostics), accepted(&earlier.diagnostics)) {
            (true, false) => return Some(inference),
            (false, true) => return Some(earlier),
            _ if is_clean(&earlier.diagnostics) => return Some(earlier),
            _ => inference.diagnostics = agreed(inference.diagnostics, earlier.diagnostics),
        }
        Some(inference)
    }

    /// Lowers the jit function at `at` under a specialization and the version that accepts it. Guesses
    /// that cannot work are guessed again, unless something is wrong whatever the arguments are, and sizes
    /// of tiles too that no GPU could hold: then [`LowerResult::repaired`] is what the kernel was lowered for.
    pub fn lower_kernel(
        self,
        sources: &dyn Sources,
        at: ItemRef,
        spec: &Specialization,
    ) -> LowerResult {
        let result = self.lower_as_given(sources, at, spec);
        match &result.function {
            _ if spec.is_certain() => result,
            None => {
                self.repair(sources, at, spec, &result, ir::MAX_TILE_ELEMENTS).unwrap_or(result)
            }
            Some(function) if spec.guesses_a_value() && gpu::has_too_large_tile(function) => {
                self.with_smaller_tiles(sources, at, spec).unwrap_or(result)
            }
            Some(_) => result,
        }
    }

    /// As [`Rules::lower_kernel`] under guesses of which no tile is too large for a GPU. Such a tile is found
    /// where it is made, as an error would be.
    fn with_smaller_tiles(
        self,
        sources: &dyn Sources,
        at: ItemRef,
        spec: &Specialization,
    ) -> Option<LowerResult> {
        let most = gpu::most_elements(spec.options.num_warps);
        let failed = try_lowering_within(most, sources, at, spec, self.newest());
        self.repair(sources, at, spec, &failed, most)
    }

    fn lower_as_given(
        self,
        sources: &dyn Sources,
        at: ItemRef,
        spec: &Specialization,
    ) -> LowerResult {
        let result = lower_function(sources, at, spec, self.newest());
        let Some(older) = self.older().filter(|_| result.function.is_none()) else { return result };
        let earlier = lower_function(sources, at, spec, older);
        if earlier.function.is_some() || is_removed(&result.diagnostics, &earlier.diagnostics) {
            return earlier;
        }
        let diagnostics = agreed(result.diagnostics.clone(), earlier.diagnostics);
        LowerResult { diagnostics, ..result }
    }

    /// What is wrong under `spec` for all values of what it guesses.
    fn infer_under(self, sources: &dyn Sources, at: ItemRef, spec: &Specialization) -> LowerResult {
        let result = infer_under(sources, at, spec, self.newest());
        let Some(older) = self.older().filter(|_| !result.diagnostics.is_empty()) else {
            return result;
        };
        let earlier = infer_under(sources, at, spec, older);
        if earlier.diagnostics.is_empty() {
            return earlier;
        }
        let diagnostics = agreed(result.diagnostics.clone(), earlier.diagnostics);
        LowerResult { diagnostics, ..result }
    }

    fn repair(
        self,
        sources: &dyn Sources,
        at: ItemRef,
        spec: &Specialization,
        failed: &LowerResult,
        most_elements: usize,
    ) -> Option<LowerResult> {
        let fits = |version: &TritonVersion| {
            infer_function(sources, at, true, *version)
                .is_some_and(|inference| accepted(&inference.diagnostics))
        };
        let version = [Some(self.newest()), self.older()].into_iter().flatten().find(fits)?;
        let (spec, result) = repair(sources, at, spec, failed, version, most_elements)?;
        Some(LowerResult { repaired: Some(spec), ..result })
    }

    /// The argument of `spec` because of whose type alone the kernel does not lower: with another
    /// one it does. `failed` is what came of `spec`.
    pub(crate) fn culprit(
        self,
        sources: &dyn Sources,
        at: ItemRef,
        spec: &Specialization,
        failed: &LowerResult,
    ) -> Option<Culprit> {
        culprit(sources, at, spec, failed, self.newest())
    }

    /// Lowers one kernel under several specializations; see [`Lowering`].
    pub fn lowering(self, sources: &dyn Sources, at: ItemRef) -> Lowering<'_> {
        Lowering { rules: self, sources, at, changes: Vec::new(), failures: 0 }
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
    at: ItemRef,
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

impl<'a> Lowering<'a> {
    /// Whose rules hold.
    pub(crate) fn rules(&self) -> Rules {
        self.rules
    }

    /// Where the kernel is found.
    pub(crate) fn sources(&self) -> &'a dyn Sources {
        self.sources
    }

    /// The kernel.
    pub(crate) fn at(&self) -> ItemRef {
        self.at
    }

    /// What the kernel is lowered to under `spec` as it is; `None` where there is an error.
    pub(crate) fn as_given(&self, spec: &Specialization) -> Option<ir::Function> {
        self.of_other(self.at, spec)
    }

    /// The same of another kernel.
    pub(crate) fn of_other(&self, at: ItemRef, spec: &Specialization) -> Option<ir::Function> {
        self.rules.lower_as_given(self.sources, at, spec).function
    }

    /// What the kernel was lowered for, which has better guesses than `spec` where those cannot
    /// work, and what came of it.
    pub fn lower(&mut self, spec: &Specialization) -> (Specialization, LowerResult) {
        let (rules, sources, at) = (self.rules, self.sources, self.at);
        if let Some(changed) = self.changed(spec) {
            let result = rules.lower_as_given(sources, at, &changed);
            if result.function.is_some() {
                return (changed, result);
            }
        }
        if self.failures >= MAX_FAILURES {
            return (spec.clone(), rules.lower_as_given(sources, at, spec));
        }
        let mut result = rules.lower_kernel(sources, at, spec);
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

    /// As [`Lowering::lower`], for those who ask what is the author's mistake: other guesses are
    /// sought only where these seem to show one. Where a compile-time value is guessed nothing is
    /// lowered: what is found holds for all its values.
    pub fn check(&mut self, spec: &Specialization) -> (Specialization, LowerResult) {
        if spec.guesses_a_value() {
            return (spec.clone(), self.rules.infer_under(self.sources, self.at, spec));
        }
        let result = self.rules.lower_as_given(self.sources, self.at, spec);
        if result.function.is_none() && result.takes_defaults {
            // Whoever runs the kernel may set what it needs in the environment.
            return (spec.clone(), self.rules.infer_under(self.sources, self.at, spec));
        }
        let mistake =
            |found: &Diagnostic| found.severity == Severity::Error && spec.proves(found.code);
        let is_open = result.function.is_none() && !spec.is_certain();
        if is_open && result.diagnostics.iter().any(mistake) {
            return self.lower(spec);
        }
        (spec.clone(), result)
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

/// What is wrong with a kernel that every version finds fault with, all with errors or none: what
/// they agree on. Where each has reasons of its own, those of the version that has fewer.
fn agreed(newer: Vec<Diagnostic>, older: Vec<Diagnostic>) -> Vec<Diagnostic> {
    if is_removed(&newer, &older) {
        return older;
    }
    let decisive = if accepted(&newer) { Severity::Warning } else { Severity::Error };
    let by_both = |found: &Diagnostic| older.iter().any(|other| is_same(found, other));
    if newer.iter().any(|found| found.severity >= decisive && by_both(found)) {
        let kept = |found: &Diagnostic| found.severity < Severity::Warning || by_both(found);
        return newer.into_iter().filter(kept).collect();
    }
    let count = |found: &[Diagnostic]| found.iter().filter(|one| one.severity >= decisive).count();
    if count(&older) < count(&newer) { older } else { newer }
}

/// True when nothing is wrong, under flags or otherwise.
fn is_clean(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().all(|diagnostic| diagnostic.severity < Severity::Warning)
}

/// True for one finding at one place.
fn is_same(a: &Diagnostic, b: &Diagnostic) -> bool {
    let inner = |found: &Diagnostic| found.related.first().map(|related| related.at);
    a.code == b.code && a.primary == b.primary && inner(a) == inner(b)
}

fn accepted(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().all(|diagnostic| diagnostic.severity < Severity::Error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::{MemorySources, jit_functions};
    use crate::specialization::{Flags, discover};

    const HEADER: &str = "import triton\nimport triton.language as tl\n\n";

    /// Codes of the errors in the first of some files, under the rules of any version.
    fn errors(files: &[(&str, &str)]) -> Vec<&'static str> {
        let mut sources = MemorySources::new(vec!["/p".to_owned()]);
        let added = files.iter().map(|(path, text)| sources.add(path, &format!("{HEADER}{text}")));
        let first = added.collect::<Vec<_>>()[0];
        let found = Rules::Any.infer_file(&sources, first).kernels.into_iter();
        found.flat_map(|kernel| kernel.diagnostics).map(|found| found.code.name()).collect()
    }

    /// What is wrong with the statements of a kernel of which any version may be meant.
    fn errors_of_any(body: &str) -> Vec<String> {
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
        let inferred = errors_of_any(&format!("{block}    tl.sum(tl.load(p), axis=5)\n"));
        assert_eq!(inferred, ["shape/axis"]);
        let inferred = errors_of_any(&format!("{block}    tl.nothing(p)\n"));
        assert!(inferred.contains(&"name/unknown-builtin".to_owned()), "{inferred:?}");
        let inferred = errors_of_any("    tl.sum(tl.arange(0, 16), axis=5)\n");
        assert_eq!(inferred, ["shape/axis"]);
        let inferred = errors_of_any(&format!("{block}    tl.load(p)\n"));
        assert_eq!(inferred, Vec::<String>::new());
    }

    #[test]
    fn defaults_of_the_environment_that_do_not_work_are_no_mistake() {
        for (default, lowers) in [("64", true), ("6", false)] {
            let text = format!(
                "{HEADER}import os, torch\n\nWIDTH = tl.constexpr(int(os.getenv('WIDTH', '{default}')))\n\n@triton.jit\ndef k(p):\n    tl.store(p + tl.arange(0, WIDTH), 1.0)\n\nk[(1,)](torch.empty(64))\n"
            );
            let mut sources = MemorySources::new(Vec::new());
            let file = sources.add("k.py", &text);
            let at = jit_functions(&sources, file)[0];
            let specs = discover(&sources, at, &Flags::default());
            let mut lowering = Rules::Any.lowering(&sources, at);
            assert_eq!(lowering.lower(&specs[0]).1.function.is_some(), lowers, "{default}");
            let checked = lowering.check(&specs[0]).1;
            assert_eq!(checked.diagnostics, [], "{default}");
        }
    }

    #[test]
    fn what_only_one_version_refuses_is_not_wrong() {
        let pointer = "tl.make_block_ptr(p, (n,), (1,), (0,), (64,), (0,))";
        let kernel = |store: &str| {
            format!("@triton.jit\ndef k(p, n):\n    b = {pointer}\n    tl.store({store})\n")
        };
        assert_eq!(errors(&[("/p/a.py", &kernel("b, 1.0"))]), [""; 0]);
        assert_eq!(errors(&[("/p/a.py", &kernel("b, missing"))]), ["name/undefined"]);
        let flagged =
            "@triton.jit\ndef k(p, n, F: tl.constexpr):\n    if F:\n        b = {}\n        tl.store(b, 1.0)\n"
                .replace("{}", pointer);
        assert_eq!(errors(&[("/p/a.py", &flagged)]), [""; 0]);
        // Each version has a reason of its own.
        let masked = format!("{}    b = tl.advance(b, (64,))\n", kernel("b, 1.0, mask=n > 0"));
        assert_eq!(errors(&[("/p/a.py", &masked)]), ["type/block-pointer"]);
    }

    #[test]
    fn what_is_too_long_to_be_evaluated_may_return_something() {
        let mut text = String::from("@triton.jit\ndef f0(a, b):\n    return a, b\n");
        for depth in 1..4 {
            let calls = format!("    a, b = f{}(a, b)\n", depth - 1).repeat(60);
            text += &format!("@triton.jit\ndef f{depth}(a, b):\n{calls}    return a, b\n");
        }
        text += "@triton.jit\ndef k(p):\n    a, b = f3(p, p)\n    tl.store(a, 1.0)\n";
        assert_eq!(errors(&[("/p/a.py", &text)]), [""; 0]);
    }

    #[test]
    fn what_stands_for_code_elsewhere_may_return_something() {
        let stub = "def team(p):\n    ...\n";
        let kernel = "import stub\n\n@triton.jit\ndef k(p):\n    q = stub.team(p)\n    q += 1\n    tl.store(q, 1.0)\n";
        assert_eq!(errors(&[("/p/a.py", kernel), ("/p/stub.py", stub)]), [""; 0]);
    }

    #[test]
    fn helpers_of_other_files_take_tiles() {
        let helper = "@triton.jit\ndef put(p, n):\n    tl.store(p + tl.arange(0, n), 1.0)\n";
        assert_eq!(errors(&[("/p/a.py", helper)]), ["constexpr/arange-bound"]);
        let caller = "from a import put\n\n@triton.jit\ndef k(p):\n    put(p, 8)\n";
        assert_eq!(errors(&[("/p/a.py", helper), ("/p/b.py", caller)]), [""; 0]);
    }
}
