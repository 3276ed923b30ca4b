//! Occupancy from measured resources and the published limits of each architecture.

use crate::artifact::Limit;

/// Limits of one streaming multiprocessor.
///
/// Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; the
/// allocation units are those of NVIDIA's occupancy calculator (`cuda_occupancy.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmLimits {
    /// Compute capability times ten: 90 for 9.0.
    pub capability: u32,
    /// Resident warps.
    pub warps: u32,
    /// Resident CTAs.
    pub blocks: u32,
    /// Bytes of shared memory.
    pub shared_bytes: u32,
    /// Most bytes of shared memory that one CTA may ask for.
    pub shared_bytes_per_block: u32,
    /// Bytes of shared memory that the system takes for each CTA.
    pub reserved_bytes: u32,
}

/// Registers of a multiprocessor, the same on every architecture listed.
pub(crate) const REGISTERS: u32 = 64 * 1024;
/// Registers are given to warps in units of this many.
const REGISTER_UNIT: u32 = 256;
/// Warps share four register files, so they are counted in fours.
const SUB_PARTITIONS: u32 = 4;
/// Shared memory is given to CTAs in units of this many bytes.
const SHARED_UNIT: u32 = 128;

const KIB: u32 = 1024;

const fn limits(
    capability: u32,
    warps: u32,
    blocks: u32,
    shared_kib: u32,
    reserved_bytes: u32,
) -> SmLimits {
    SmLimits {
        capability,
        warps,
        blocks,
        shared_bytes: shared_kib * KIB,
        shared_bytes_per_block: shared_kib * KIB - reserved_bytes,
        reserved_bytes,
    }
}

/// The table, by compute capability.
pub(crate) const SM_LIMITS: &[SmLimits] = &[
    limits(75, 32, 16, 64, 0),
    limits(80, 64, 32, 164, KIB),
    limits(86, 48, 16, 100, KIB),
    limits(87, 48, 16, 164, KIB),
    limits(89, 48, 24, 100, KIB),
    limits(90, 64, 32, 228, KIB),
    limits(100, 64, 32, 228, KIB),
    limits(103, 64, 32, 228, KIB),
    limits(120, 48, 24, 100, KIB),
    limits(121, 48, 24, 100, KIB),
];

impl SmLimits {
    /// The limits of an architecture such as `sm_90a`; those of the newest older one when it is
    /// not listed, `None` when it is older than all.
    pub fn of(arch: &str) -> Option<&'static SmLimits> {
        let digits = arch.strip_prefix("sm_")?.trim_end_matches(|c: char| !c.is_ascii_digit());
        SmLimits::of_capability(digits.parse().ok()?)
    }

    /// As [`SmLimits::of`], by compute capability as one number.
    pub(crate) fn of_capability(capability: u32) -> Option<&'static SmLimits> {
        SM_LIMITS.iter().rev().find(|limits| limits.capability <= capability)
    }

    /// Resident warps over the limit (0 to 1), and what bounds it, for a kernel whose CTAs have
    /// `num_warps` warps of threads with `registers` each and `shared_bytes` of shared memory.
    pub fn occupancy(&self, num_warps: u32, registers: u32, shared_bytes: u32) -> (f64, Limit) {
        let (blocks, limit) = self.resident_blocks(num_warps, registers, shared_bytes);
        (f64::from(blocks * num_warps.max(1)) / f64::from(self.warps), limit)
    }

    /// Resident CTAs, and what bounds them.
    pub fn resident_blocks(
        &self,
        num_warps: u32,
        registers: u32,
        shared_bytes: u32,
    ) -> (u32, Limit) {
        let num_warps = num_warps.max(1);
        let per_warp = (registers.max(1) * 32).next_multiple_of(REGISTER_UNIT);
        let warps = REGISTERS / SUB_PARTITIONS / per_warp * SUB_PARTITIONS;
        let per_block = (shared_bytes + self.reserved_bytes).next_multiple_of(SHARED_UNIT);
        let by_shared = self.shared_bytes.checked_div(per_block).unwrap_or(u32::MAX);
        // On ties the limit that no change of the kernel can lift is the one to name.
        let bounds = [
            (self.warps / num_warps, Limit::Warps),
            (self.blocks, Limit::Blocks),
            (warps / num_warps, Limit::Registers),
            (by_shared, Limit::Shared),
        ];
        bounds.into_iter().min_by_key(|(blocks, _)| *blocks).unwrap_or((0, Limit::Warps))
    }

    /// How many CTAs more than are resident registers alone are in the way of, from one more on, and
    /// how many of them a thread may have for it.
    pub fn more_blocks(
        &self,
        num_warps: u32,
        registers: u32,
        shared_bytes: u32,
    ) -> impl Iterator<Item = (u32, u32)> {
        let (resident, limit) = self.resident_blocks(num_warps, registers, shared_bytes);
        let with_registers = move |blocks: u32| {
            let units = REGISTERS / (blocks * num_warps.max(1)) / REGISTER_UNIT;
            let registers = units * REGISTER_UNIT / 32;
            let (found, _) = self.resident_blocks(num_warps, registers, shared_bytes);
            (found >= blocks).then_some((blocks, registers))
        };
        let binds = limit == Limit::Registers;
        (resident + 1..).take_while(move |_| binds).map_while(with_registers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arch: &str, warps: u32, registers: u32, shared: u32, expected: (f64, Limit)) {
        assert_eq!(SmLimits::of(arch).unwrap().occupancy(warps, registers, shared), expected);
    }

    #[test]
    fn each_limit_binds() {
        check("sm_90a", 4, 26, 0, (1.0, Limit::Warps));
        check("sm_90a", 1, 16, 0, (0.5, Limit::Blocks));
        check("sm_90a", 8, 255, 0, (0.125, Limit::Registers));
        check("sm_90a", 8, 32, 147_456, (0.125, Limit::Shared));
        check("sm_80", 8, 64, 0, (0.5, Limit::Registers));
    }

    #[test]
    fn registers_alone_are_in_the_way_of_more_blocks() {
        let limits = SmLimits::of("sm_90a").unwrap();
        let more = |warps, registers, shared| -> Vec<_> {
            limits.more_blocks(warps, registers, shared).collect()
        };
        assert_eq!(more(8, 142, 98_304), [(2, 128)]);
        assert_eq!(more(8, 142, 147_456), [], "shared memory is, too");
        assert_eq!(more(8, 128, 98_304), [], "two fit as it is");
        assert_eq!(more(4, 225, 50_176), [(3, 168), (4, 128)]);
        assert_eq!(more(4, 39, 0), [(13, 32), (14, 32), (15, 32), (16, 32)]);
        assert_eq!(more(4, 32, 0), [], "all warps are there");
    }

    #[test]
    fn newer_architectures_use_the_nearest_older_limits() {
        assert_eq!(SmLimits::of("sm_110").map(|limits| limits.capability), Some(103));
        assert_eq!(SmLimits::of("sm_35"), None);
        assert_eq!(SmLimits::of("gfx942"), None);
    }

    #[test]
    fn a_cta_that_does_not_fit_has_no_occupancy() {
        check("sm_80", 4, 32, 200 * 1024, (0.0, Limit::Shared));
    }
}
