//! Loops compiled for wider registers, where the processor has them.

/// A loop over elements, with all that it works on.
///
/// The compiler does not inline functions that pass slices about into one that is compiled for
/// other features, so iterators over slices stay calls there: inner loops count and index instead.
pub(super) trait Loop {
    /// What it gives.
    type Output;

    /// Runs it. Implementations are `#[inline(always)]`, so that they are compiled for the
    /// processor that [`widest`] finds.
    fn run(self) -> Self::Output;
}

/// Runs a loop with the widest registers that this processor has. Results are the same with all.
#[inline(always)]
pub(super) fn widest<L: Loop>(work: L) -> L::Output {
    #[cfg(target_arch = "x86_64")]
    if has_fma() {
        // SAFETY: the processor has the features that the function is compiled for.
        return unsafe { run_wide(work) };
    }
    work.run()
}

/// Whether the processor has AVX2 and fused multiply-adds.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn has_fma() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
}

/// # Safety
/// The processor must have AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn run_wide<L: Loop>(work: L) -> L::Output {
    work.run()
}
