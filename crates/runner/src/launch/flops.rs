//! Counting the operations of a launch's matrix products without running them.
//!
//! Only scalar integers are computed, for each program: they decide how often loops run and which
//! branches are taken. Products count whole tiles, masked parts included, as the hardware does.

use cranelift_entity::SecondaryMap;
use tile_compiler::ir::{Attrs, Function, InstData, IntPredicate, Opcode, Region, Scalar, Value};

/// Programs above which counting is given up.
const MAX_PROGRAMS: u64 = 1 << 18;
/// Loop iterations of all programs above which counting is given up.
const MAX_STEPS: u64 = 1 << 24;

/// Multiplications and additions of a launch's matrix products; `None` when there are none, or
/// how often they run depends on what is in memory. `args` are the bits of the arguments.
pub fn count_flops(func: &Function, args: &[u64], grid: [u32; 3]) -> Option<u64> {
    let mut counter = Counter::new(func, grid);
    if !counter.has_products(func.body) {
        return None;
    }
    let programs = grid.iter().map(|&extent| u64::from(extent)).product::<u64>();
    if programs > MAX_PROGRAMS {
        return None;
    }
    let mut total = 0u64;
    for linear in 0..programs {
        let [x, y, _] = grid.map(u64::from);
        counter.program = [linear % x, linear / x % y, linear / x / y];
        for (&arg, &bits) in func.regions[func.body].args.iter().zip(args) {
            counter.values[arg] = counter.signed(arg, bits);
        }
        total = total.checked_add(counter.region(func.body)?)?;
    }
    Some(total)
}

struct Counter<'f> {
    func: &'f Function,
    grid: [u32; 3],
    program: [u64; 3],
    /// Scalar integers that are known, sign-extended.
    values: SecondaryMap<Value, Option<i64>>,
    products: SecondaryMap<Region, Option<bool>>,
    steps: u64,
}

impl Counter<'_> {
    fn new(func: &Function, grid: [u32; 3]) -> Counter<'_> {
        let (values, products) = (SecondaryMap::new(), SecondaryMap::new());
        Counter { func, grid, program: [0; 3], values, products, steps: 0 }
    }

    fn has_products(&mut self, region: Region) -> bool {
        if let Some(known) = self.products[region] {
            return known;
        }
        let found = self.func.regions[region].insts.iter().any(|&inst| {
            let data = &self.func.insts[inst];
            matches!(data.opcode, Opcode::Dot | Opcode::DotScaled)
                || data.regions.iter().any(|&inner| self.has_products(inner))
        });
        self.products[region] = Some(found);
        found
    }

    /// The bits as an integer of the value's type; `None` for other types.
    fn signed(&self, value: Value, bits: u64) -> Option<i64> {
        let ty = self.func.ty(value);
        let scalar = ty.number().filter(|scalar| scalar.is_int() && ty.shape().is_empty())?;
        let spare = 64 - scalar.bits();
        Some(if scalar == Scalar::I1 { (bits & 1) as i64 } else { (bits << spare) as i64 >> spare })
    }

    /// Operations of a region run once.
    fn region(&mut self, region: Region) -> Option<u64> {
        let mut total = 0u64;
        for &inst in &self.func.regions[region].insts {
            let data = &self.func.insts[inst];
            let count = match data.opcode {
                Opcode::Dot | Opcode::DotScaled => self.product(data),
                Opcode::For => self.counted_loop(data)?,
                Opcode::If => self.branch(data)?,
                Opcode::While => {
                    data.results.iter().for_each(|&result| self.values[result] = None);
                    if data.regions.iter().any(|&inner| self.has_products(inner)) {
                        return None;
                    }
                    0
                }
                _ => {
                    if let &[result] = data.results.as_slice() {
                        let value = self.scalar(data);
                        self.values[result] =
                            value.and_then(|value| self.signed(result, value as u64));
                    }
                    0
                }
            };
            total = total.checked_add(count)?;
        }
        Some(total)
    }

    fn product(&self, data: &InstData) -> u64 {
        let result = self.func.ty(data.result());
        let lhs = self.func.ty(data.operand(0));
        let shape = result.shape();
        let rows = result.numel() as u64 / u64::from(shape.last().copied().unwrap_or(1)).max(1);
        let packed = matches!(&data.attrs, Attrs::DotScaled(attrs)
            if attrs.lhs == tile_compiler::ir::ScaledFormat::E2M1);
        let k = lhs.numel() as u64 / rows.max(1) * if packed { 2 } else { 1 };
        2 * result.numel() as u64 * k
    }

    fn counted_loop(&mut self, data: &InstData) -> Option<u64> {
        let region = data.regions[0];
        let args = self.func.regions[region].args.clone();
        let counts = self.has_products(region);
        let bounds = [0, 1, 2].map(|slot| self.values[data.operand(slot)]);
        let ([Some(lower), Some(upper), Some(step)], true) = (bounds, counts) else {
            data.results.iter().for_each(|&result| self.values[result] = None);
            return if counts { None } else { Some(0) };
        };
        if step == 0 {
            return None;
        }
        for (&arg, init) in args.iter().skip(1).zip(data.uses().skip(3)) {
            self.values[arg] = self.values[init];
        }
        let span = if step > 0 { upper.checked_sub(lower)? } else { lower.checked_sub(upper)? };
        let trips = u64::try_from(span).unwrap_or(0).div_ceil(step.unsigned_abs());
        let mut total = 0u64;
        for trip in 0..trips {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return None;
            }
            self.values[args[0]] = Some(lower + step * trip as i64);
            total = total.checked_add(self.region(region)?)?;
            self.pass(region, &args[1..]);
        }
        for (&arg, &result) in args.iter().skip(1).zip(&data.results) {
            self.values[result] = self.values[arg];
        }
        Some(total)
    }

    fn branch(&mut self, data: &InstData) -> Option<u64> {
        let Some(condition) = self.values[data.operand(0)] else {
            data.results.iter().for_each(|&result| self.values[result] = None);
            let counts = data.regions.iter().any(|&inner| self.has_products(inner));
            return if counts { None } else { Some(0) };
        };
        let taken = data.regions[usize::from(condition == 0)];
        let count = self.region(taken)?;
        self.pass(taken, &data.results);
        Some(count)
    }

    /// Gives what a region yields to `targets`, all at once.
    fn pass(&mut self, region: Region, targets: &[Value]) {
        let Some(end) = self.func.terminator(region) else { return };
        let yielded: Vec<Option<i64>> = end.uses().map(|value| self.values[value]).collect();
        targets.iter().zip(yielded).for_each(|(&target, value)| self.values[target] = value);
    }

    /// A scalar integer, if it is known. The caller wraps it to its type.
    fn scalar(&self, data: &InstData) -> Option<i64> {
        let operand = |slot: usize| data.operand_opt(slot).and_then(|value| self.values[value]);
        let unsigned = |slot: usize| {
            let value = operand(slot)?;
            let bits = self.func.ty(data.operand(slot)).number()?.bits();
            Some(value as u64 & (u64::MAX >> (64 - bits)))
        };
        let (a, b) = (operand(0), operand(1));
        Some(match (data.opcode, &data.attrs) {
            (Opcode::Constant, Attrs::Constant(constant)) => constant.bits as i64,
            (Opcode::ProgramId, Attrs::Axis(axis)) => *self.program.get(axis.axis as usize)? as i64,
            (Opcode::NumPrograms, Attrs::Axis(axis)) => {
                i64::from(*self.grid.get(axis.axis as usize)?)
            }
            (Opcode::Add, _) => a?.wrapping_add(b?),
            (Opcode::Sub, _) => a?.wrapping_sub(b?),
            (Opcode::Mul, _) => a?.wrapping_mul(b?),
            (Opcode::DivS, _) => a?.checked_div(b?)?,
            (Opcode::RemS, _) => a?.checked_rem(b?)?,
            (Opcode::DivU, _) => unsigned(0)?.checked_div(unsigned(1)?)? as i64,
            (Opcode::RemU, _) => unsigned(0)?.checked_rem(unsigned(1)?)? as i64,
            (Opcode::And, _) => a? & b?,
            (Opcode::Or, _) => a? | b?,
            (Opcode::Xor, _) => a? ^ b?,
            (Opcode::Shl, _) => a?.checked_shl(u32::try_from(b?).ok()?)?,
            (Opcode::ShrS, _) => a? >> b?.clamp(0, 63),
            (Opcode::ShrU, _) => (unsigned(0)? >> b?.clamp(0, 63)) as i64,
            (Opcode::MinS, _) => a?.min(b?),
            (Opcode::MaxS, _) => a?.max(b?),
            (Opcode::MinU, _) => unsigned(0)?.min(unsigned(1)?) as i64,
            (Opcode::MaxU, _) => unsigned(0)?.max(unsigned(1)?) as i64,
            (Opcode::ExtS | Opcode::Trunc | Opcode::AssertFacts, _) => a?,
            (Opcode::ExtU, _) => unsigned(0)? as i64,
            (Opcode::Select, _) => operand(if a? != 0 { 1 } else { 2 })?,
            (Opcode::Cmp, Attrs::IntCompare(compare)) => {
                let (signed, unsigned) = ((a?, b?), (unsigned(0)?, unsigned(1)?));
                i64::from(holds(compare.predicate, signed, unsigned))
            }
            _ => return None,
        })
    }
}

fn holds(predicate: IntPredicate, (a, b): (i64, i64), (x, y): (u64, u64)) -> bool {
    match predicate {
        IntPredicate::Eq => a == b,
        IntPredicate::Ne => a != b,
        IntPredicate::Slt => a < b,
        IntPredicate::Sle => a <= b,
        IntPredicate::Sgt => a > b,
        IntPredicate::Sge => a >= b,
        IntPredicate::Ult => x < y,
        IntPredicate::Ule => x <= y,
        IntPredicate::Ugt => x > y,
        IntPredicate::Uge => x >= y,
    }
}
