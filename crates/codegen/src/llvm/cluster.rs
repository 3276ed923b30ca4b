//! Loads of neighboring fields: `load(p + 4 * i)`, `load(p + 4 * i + 1)`, ... as one access.
//!
//! Each such load alone strides through memory. Where several of one region, with nothing written
//! between them, have one mask and addresses that differ by constants, one instruction per element
//! reads a run of fields. The run starts at an address that is aligned to the run's size, so that
//! offsets within it cannot wrap around.

use smallvec::SmallVec;
use tile_compiler::ir::{Attrs, Effects, Inst, InstData, Opcode, Region, Scalar, Value, ValueDef};

use super::Emitter;

/// The widest access of one thread, in bytes.
const MAX_BYTES: usize = 16;

/// An address as a sum: values, sorted, and a constant count of elements.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Sum {
    terms: SmallVec<[Value; 4]>,
    constant: i64,
}

impl Emitter<'_> {
    /// The loads that one access of neighboring fields serves, by rising address, `inst` among
    /// them; `None` when it stands alone.
    pub(super) fn cluster(&self, inst: Inst) -> Option<Vec<Inst>> {
        let data = &self.func.insts[inst];
        let ptr = data.operand(0);
        let layout = self.layout(ptr)?;
        let elem = self.ty(data.result()).elem()?;
        let bytes = elem.bits().div_ceil(8) as usize;
        let masked = |axis| self.alike(data.operand_opt(1), axis);
        let (_, bits) = self.access_bits(ptr, layout, bytes as u32, masked);
        let volatile = matches!(&data.attrs, Attrs::LoadHints(hints) if hints.volatile);
        if !bits.is_empty() || volatile || elem.scalar() == Some(Scalar::I1) {
            return None;
        }
        let own = self.address(ptr);
        let mut members: Vec<(i64, Inst)> = vec![(own.constant, inst)];
        for other in self.loads_after(inst) {
            let candidate = &self.func.insts[other];
            let alike = candidate.attrs == data.attrs
                && candidate.operands[1..] == data.operands[1..]
                && self.ty(candidate.result()) == self.ty(data.result());
            let address = self.address(candidate.operand(0));
            if alike && address.terms == own.terms {
                members.push((address.constant, other));
            }
        }
        members.sort();
        members.dedup_by_key(|(offset, _)| *offset);
        self.aligned_run(&members, inst, bytes)
    }

    /// The longest run of consecutive offsets around `inst` that one access can read.
    fn aligned_run(&self, members: &[(i64, Inst)], inst: Inst, bytes: usize) -> Option<Vec<Inst>> {
        let mut count = (MAX_BYTES / bytes).min(members.len().next_power_of_two());
        while count >= 2 {
            for run in members.windows(count) {
                let consecutive = run.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1);
                let first = self.func.insts[run[0].1].operand(0);
                let aligned = self.infos.get(self.func, first).alignment(bytes as i64)
                    >= (count * bytes) as i64;
                let ready = self.values.contains_key(&first);
                let includes = run.iter().any(|(_, member)| *member == inst);
                if consecutive && aligned && ready && includes {
                    return Some(run.iter().map(|(_, member)| *member).collect());
                }
            }
            count /= 2;
        }
        None
    }

    /// The loads between `inst` and the next instruction of its region that may write.
    fn loads_after(&self, inst: Inst) -> Vec<Inst> {
        let Some(region) = self.region_of(inst) else { return Vec::new() };
        let insts = &self.func.regions[region].insts;
        let after = insts.iter().skip_while(|&&other| other != inst).skip(1);
        after
            .copied()
            .take_while(|&other| {
                let effects = self.func.insts[other].opcode.info().effects;
                matches!(effects, Effects::Pure | Effects::Read)
                    || self.func.insts[other].opcode == Opcode::Reduce
            })
            .filter(|&other| self.func.insts[other].opcode == Opcode::Load)
            .filter(|other| !self.clustered.contains(other))
            .collect()
    }

    fn region_of(&self, inst: Inst) -> Option<Region> {
        let regions = self.func.regions.iter();
        regions.filter(|(_, data)| data.insts.contains(&inst)).map(|(region, _)| region).next()
    }

    /// An address or index as a sum.
    fn address(&self, value: Value) -> Sum {
        let mut sum = Sum::default();
        self.add_terms(value, &mut sum);
        sum.terms.sort();
        sum
    }

    fn add_terms(&self, value: Value, sum: &mut Sum) {
        let ValueDef::Result(inst, _) = self.func.values[value].def else {
            return sum.terms.push(value);
        };
        let data: &InstData = &self.func.insts[inst];
        match data.opcode {
            Opcode::PtrAdd | Opcode::Add => {
                self.add_terms(data.operand(0), sum);
                self.add_terms(data.operand(1), sum);
            }
            Opcode::Splat => self.add_terms(data.operand(0), sum),
            Opcode::Constant => match self.constant_int(value) {
                Some(constant) => sum.constant = sum.constant.wrapping_add(constant),
                None => sum.terms.push(value),
            },
            _ => sum.terms.push(value),
        }
    }

    fn constant_int(&self, value: Value) -> Option<i64> {
        let scalar = self.ty(value).number().filter(|scalar| scalar.is_int())?;
        let bits = self.func.constant_bits(value)?;
        let unused = 64 - scalar.bits();
        Some((bits << unused) as i64 >> unused)
    }
}
