//! Axis information: what is known of the integers and addresses in a tile, axis by axis.
//!
//! A forward dataflow over a verified function of either level. Loops start from what enters them
//! and are repeated until what they yield adds nothing; every fact only ever weakens, so that this
//! ends. The facts are those of Triton's axis analysis: they decide vector widths, coalesced
//! layouts and mask handling. Cost: linear, times the few rounds of each loop.
//!
//! As in Triton, quotients and remainders are taken to be of non-negative integers.

use cranelift_entity::SecondaryMap;
use smallvec::{SmallVec, smallvec};

use crate::ir::{
    Attrs, Function, Inst, InstData, IntPredicate, Opcode, Region, Scalar, Type, Value,
};

/// The largest power of two that is worth knowing.
const MAX_POWER: i64 = 1 << 30;

/// Rounds after which a loop that still changes is given up; facts are powers of two, so that real
/// loops settle in two or three.
const MAX_ROUNDS: usize = 8;

/// Facts about one value, one entry per axis; scalars have one axis of extent 1. All are powers of
/// two, and 1 says nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AxisInfo {
    /// Along the axis, aligned runs of this many elements increase by one (pointers: by one
    /// element).
    pub contiguity: SmallVec<[i64; 4]>,
    /// The first element of each such run is a multiple of this (pointers: in bytes).
    pub divisibility: SmallVec<[i64; 4]>,
    /// Along the axis, aligned runs of this many elements are equal.
    pub constancy: SmallVec<[i64; 4]>,
    /// Along the axis, in aligned runs of this many truth values those that hold come first; equal
    /// ones do in any case, see [`AxisInfo::leading`].
    first: SmallVec<[i64; 4]>,
    /// The value, where all elements are known to have one.
    pub constant: Option<i64>,
}

impl AxisInfo {
    /// No knowledge about a value of `rank` axes.
    pub fn unknown(rank: usize) -> AxisInfo {
        let ones: SmallVec<[i64; 4]> = smallvec![1; rank.max(1)];
        AxisInfo {
            contiguity: ones.clone(),
            divisibility: ones.clone(),
            constancy: ones.clone(),
            first: ones,
            constant: None,
        }
    }

    /// Knowledge about elements that are all the same multiple.
    fn uniform(ty: &Type, divisibility: i64, constant: Option<i64>) -> AxisInfo {
        let rank = ty.shape().len().max(1);
        let extents = ty.shape().iter().map(|&extent| i64::from(extent));
        let mut constancy: SmallVec<[i64; 4]> = extents.collect();
        constancy.resize(rank, 1);
        AxisInfo {
            contiguity: smallvec![1; rank],
            divisibility: smallvec![divisibility; rank],
            constancy,
            first: smallvec![1; rank],
            constant,
        }
    }

    /// The length of the aligned runs along `axis` in which the truth values that hold come first.
    pub fn leading(&self, axis: usize) -> i64 {
        self.first[axis].max(self.constancy[axis])
    }

    /// The number of axes described.
    pub fn rank(&self) -> usize {
        self.contiguity.len()
    }

    /// What every element is a multiple of (pointers: in bytes), `unit` being the distance of
    /// neighbors in the same measure.
    pub fn alignment(&self, unit: i64) -> i64 {
        let each = (0..self.rank()).map(|axis| self.multiple_of(axis, 1, unit));
        each.max().unwrap_or(1)
    }

    /// What holds of both.
    fn join(&self, other: &AxisInfo) -> AxisInfo {
        if self.rank() != other.rank() {
            return AxisInfo::unknown(self.rank());
        }
        let mut joined = AxisInfo::unknown(self.rank());
        for axis in 0..self.rank() {
            let run = self.contiguity[axis].min(other.contiguity[axis]);
            joined.contiguity[axis] = run;
            joined.divisibility[axis] =
                self.multiple_of(axis, run, 1).min(other.multiple_of(axis, run, 1));
            joined.constancy[axis] = self.constancy[axis].min(other.constancy[axis]);
            joined.first[axis] = self.leading(axis).min(other.leading(axis));
        }
        joined.constant = self.constant.filter(|_| self.constant == other.constant);
        joined
    }

    /// What the first elements of aligned runs of `run` elements are multiples of, `unit` being the
    /// distance of neighbors.
    fn multiple_of(&self, axis: usize, run: i64, unit: i64) -> i64 {
        if self.contiguity[axis] <= 1 || run >= self.contiguity[axis] {
            self.divisibility[axis]
        } else {
            self.divisibility[axis].min(run * unit)
        }
    }
}

/// Facts about every value of a function.
#[derive(Debug, Clone, Default)]
pub struct AxisInfos(SecondaryMap<Value, Option<Box<AxisInfo>>>);

impl AxisInfos {
    /// Analyzes `func`.
    pub fn of(func: &Function) -> AxisInfos {
        let mut analysis = Analysis { func, infos: AxisInfos::default() };
        for (param, &value) in func.params.iter().zip(&func.regions[func.body].args) {
            let mut info = AxisInfo::unknown(1);
            info.divisibility[0] = power_divisor(i64::from(param.divisibility));
            analysis.set(value, info);
        }
        analysis.region(func.body);
        analysis.infos
    }

    /// The facts about `value`.
    pub fn get(&self, func: &Function, value: Value) -> AxisInfo {
        match &self.0[value] {
            Some(info) => (**info).clone(),
            None => AxisInfo::unknown(func.ty(value).shape().len()),
        }
    }
}

struct Analysis<'f> {
    func: &'f Function,
    infos: AxisInfos,
}

impl Analysis<'_> {
    fn set(&mut self, value: Value, info: AxisInfo) {
        self.infos.0[value] = Some(Box::new(info));
    }

    fn get(&self, value: Value) -> AxisInfo {
        self.infos.get(self.func, value)
    }

    fn region(&mut self, region: Region) {
        for &inst in &self.func.regions[region].insts {
            self.inst(inst);
        }
    }

    fn inst(&mut self, inst: Inst) {
        let data = &self.func.insts[inst];
        match data.opcode {
            Opcode::For | Opcode::While => self.visit_loop(data),
            Opcode::If => self.visit_if(data),
            _ => {
                for &region in &data.regions {
                    self.region(region);
                }
                if let [result] = data.results.as_slice() {
                    let info = self.transfer(data, *result);
                    self.set(*result, info);
                }
            }
        }
    }

    fn visit_if(&mut self, data: &InstData) {
        for &region in &data.regions {
            self.region(region);
        }
        for (at, &result) in data.results.iter().enumerate() {
            let mut yields = data.regions.iter().filter_map(|&region| {
                self.func.terminator(region).and_then(|end| end.operand_opt(at))
            });
            let info = match (yields.next(), yields.next()) {
                (Some(first), Some(second)) => self.get(first).join(&self.get(second)),
                _ => AxisInfo::unknown(self.func.ty(result).shape().len()),
            };
            self.set(result, info);
        }
    }

    fn visit_loop(&mut self, data: &InstData) {
        let skip = if data.opcode == Opcode::For { 3 } else { 0 };
        let inits: Vec<Value> = data.uses().skip(skip).collect();
        let head = data.regions[0];
        let args = self.func.regions[head].args.clone();
        let carried = if data.opcode == Opcode::For { &args[1..] } else { &args[..] };
        if let (Opcode::For, Some(&index)) = (data.opcode, args.first()) {
            let (lower, step) = (self.get(data.operand(0)), self.get(data.operand(2)));
            let mut info = AxisInfo::unknown(1);
            info.divisibility[0] = lower.divisibility[0].min(step.divisibility[0]);
            self.set(index, info);
        }
        for (&arg, &init) in carried.iter().zip(&inits) {
            let info = self.get(init);
            self.set(arg, info);
        }
        for round in 0.. {
            let passed = self.visit_loop_regions(data);
            let mut changed = false;
            for (&arg, &next) in carried.iter().zip(&passed) {
                let old = self.get(arg);
                let new = if round < MAX_ROUNDS {
                    old.join(&self.get(next))
                } else {
                    AxisInfo::unknown(old.rank())
                };
                changed |= new != old;
                self.set(arg, new);
            }
            if !changed {
                break;
            }
        }
        for (at, &result) in data.results.iter().enumerate() {
            let source = match data.opcode {
                Opcode::For => carried.get(at).copied(),
                _ => self.func.terminator(head).and_then(|end| end.operand_opt(at + 1)),
            };
            if let Some(source) = source {
                let info = self.get(source);
                self.set(result, info);
            }
        }
    }

    /// Visits the regions once; returns the values carried to the next round.
    fn visit_loop_regions(&mut self, data: &InstData) -> Vec<Value> {
        self.region(data.regions[0]);
        if let Some(&after) = data.regions.get(1) {
            let passed: Vec<Value> = self
                .func
                .terminator(data.regions[0])
                .map(|end| end.uses().skip(1).collect())
                .unwrap_or_default();
            for (&arg, &value) in self.func.regions[after].args.iter().zip(&passed) {
                let info = self.get(value);
                self.set(arg, info);
            }
            self.region(after);
        }
        let last = data.regions.last().and_then(|&region| self.func.terminator(region));
        last.map(|end| end.uses().collect()).unwrap_or_default()
    }

    fn transfer(&self, data: &InstData, result: Value) -> AxisInfo {
        let ty = self.func.ty(result);
        let unknown = || AxisInfo::unknown(ty.shape().len());
        let operand = |at: usize| self.get(data.operand(at));
        match (data.opcode, &data.attrs) {
            (Opcode::Constant, Attrs::Constant(constant)) => match ty.number() {
                Some(scalar) if scalar.is_int() => {
                    let value = sign_extend(constant.bits, scalar);
                    AxisInfo::uniform(ty, power_divisor(value), Some(value))
                }
                _ => AxisInfo::uniform(ty, 1, None),
            },
            (Opcode::Arange, Attrs::Range(range)) => AxisInfo {
                contiguity: smallvec![i64::from(ty.shape()[0])],
                divisibility: smallvec![power_divisor(range.start)],
                constancy: smallvec![1],
                first: smallvec![1],
                constant: None,
            },
            (Opcode::Splat, _) => {
                let scalar = operand(0);
                AxisInfo::uniform(ty, scalar.divisibility[0], scalar.constant)
            }
            (Opcode::Broadcast, _) => {
                broadcast(&operand(0), self.func.ty(data.operand(0)).shape(), ty)
            }
            (Opcode::ExpandDims, Attrs::Axis(axis)) => expand_dims(&operand(0), axis.axis as usize),
            (Opcode::Permute, Attrs::Order(order)) => permute(&operand(0), &order.order),
            (
                Opcode::ConvertLayout
                | Opcode::ExtS
                | Opcode::ExtU
                | Opcode::Trunc
                | Opcode::IntToPtr
                | Opcode::PtrToInt,
                _,
            ) => operand(0),
            (Opcode::Bitcast, _) => self.bitcast(data, ty, operand(0)),
            (Opcode::Add, _) => sum(&operand(0), &operand(1), 1, i64::wrapping_add),
            (Opcode::Sub, _) => difference(&operand(0), &operand(1)),
            (Opcode::PtrAdd, _) => {
                let pointee = ty.elem().and_then(|elem| elem.pointee());
                let bytes = pointee.map_or(1, |elem| i64::from(elem.bits().div_ceil(8)));
                let mut info = sum(&operand(0), &operand(1), bytes, |_, _| 0);
                info.constant = None;
                info
            }
            (Opcode::Mul, _) => product(&operand(0), &operand(1)),
            (Opcode::Shl, _) => shift_left(&operand(0), &operand(1)),
            (Opcode::DivS | Opcode::DivU, _) => quotient(&operand(0), &operand(1)),
            (Opcode::RemS | Opcode::RemU, _) => remainder(&operand(0), &operand(1)),
            (Opcode::And | Opcode::Or, _) => both_first(&operand(0), &operand(1)),
            (Opcode::Xor, _) => bitwise(&operand(0), &operand(1)),
            (Opcode::MinS | Opcode::MinU | Opcode::MaxS | Opcode::MaxU, _) => {
                bitwise(&operand(0), &operand(1))
            }
            (Opcode::Cmp, Attrs::IntCompare(compare)) => {
                comparison(compare.predicate, &operand(0), &operand(1))
            }
            (Opcode::Select, _) => choice(&operand(0), &operand(1), &operand(2)),
            (Opcode::AssertFacts, Attrs::Facts(facts)) => {
                let mut info = operand(0);
                raise(&mut info.divisibility, &facts.divisibility.0);
                raise(&mut info.contiguity, &facts.contiguity.0);
                raise(&mut info.constancy, &facts.constancy.0);
                info
            }
            (opcode, _) if is_elementwise(opcode) => {
                let mut info = unknown();
                for axis in 0..info.rank() {
                    let constancies = data.uses().map(|value| self.get(value).constancy[axis]);
                    info.constancy[axis] = constancies.min().unwrap_or(1);
                }
                info
            }
            _ => unknown(),
        }
    }

    /// Pointers keep their facts in bytes, not in elements of another size.
    fn bitcast(&self, data: &InstData, ty: &Type, mut info: AxisInfo) -> AxisInfo {
        let from = self.func.ty(data.operand(0)).elem().and_then(|elem| elem.pointee());
        let to = ty.elem().and_then(|elem| elem.pointee());
        match (from, to) {
            (Some(from), Some(to)) if from.bits().div_ceil(8) == to.bits().div_ceil(8) => info,
            (Some(from), Some(_)) => {
                let bytes = i64::from(from.bits().div_ceil(8));
                for axis in 0..info.rank() {
                    info.divisibility[axis] = info.multiple_of(axis, 1, bytes);
                    info.contiguity[axis] = 1;
                }
                info
            }
            _ => info,
        }
    }
}

/// True for operations that act on each element by itself and say nothing of integers.
fn is_elementwise(opcode: Opcode) -> bool {
    (Opcode::Add..=Opcode::PtrToInt).contains(&opcode)
}

fn power_divisor(value: i64) -> i64 {
    if value == 0 { MAX_POWER } else { (value & value.wrapping_neg()).clamp(1, MAX_POWER) }
}

/// The bits of an integer as a signed number.
fn sign_extend(bits: u64, scalar: Scalar) -> i64 {
    let unused = 64 - scalar.bits();
    if scalar == Scalar::I1 { bits as i64 & 1 } else { (bits << unused) as i64 >> unused }
}

fn raise(facts: &mut [i64], claims: &[i64]) {
    for (fact, &claim) in facts.iter_mut().zip(claims) {
        *fact = (*fact).max(power_divisor(claim));
    }
}

fn zip_constant(a: &AxisInfo, b: &AxisInfo, apply: impl Fn(i64, i64) -> i64) -> Option<i64> {
    Some(apply(a.constant?, b.constant?))
}

/// Elementwise combination: constancy always is the shorter one of the two.
fn combine(a: &AxisInfo, b: &AxisInfo, axis_facts: impl Fn(usize) -> (i64, i64)) -> AxisInfo {
    let rank = a.rank().min(b.rank());
    let mut info = AxisInfo::unknown(rank);
    for axis in 0..rank {
        (info.contiguity[axis], info.divisibility[axis]) = axis_facts(axis);
        info.constancy[axis] = a.constancy[axis].min(b.constancy[axis]);
    }
    info
}

/// `a + b * unit`, `a` counted in bytes when `unit` is a size.
fn sum(a: &AxisInfo, b: &AxisInfo, unit: i64, fold: impl Fn(i64, i64) -> i64) -> AxisInfo {
    let mut info = combine(a, b, |axis| {
        let run = a.constancy[axis]
            .min(b.contiguity[axis])
            .max(a.contiguity[axis].min(b.constancy[axis]));
        let right = (b.multiple_of(axis, run, 1) * unit).min(MAX_POWER);
        (run, a.multiple_of(axis, run, unit).min(right))
    });
    info.constant = zip_constant(a, b, fold);
    info
}

fn difference(a: &AxisInfo, b: &AxisInfo) -> AxisInfo {
    let mut info = combine(a, b, |axis| {
        let run = a.contiguity[axis].min(b.constancy[axis]);
        (run, a.multiple_of(axis, run, 1).min(b.multiple_of(axis, run, 1)))
    });
    info.constant = zip_constant(a, b, i64::wrapping_sub);
    info
}

fn product(a: &AxisInfo, b: &AxisInfo) -> AxisInfo {
    let mut info = combine(a, b, |axis| {
        let run = match (a.constant, b.constant) {
            (Some(1), _) => b.contiguity[axis],
            (_, Some(1)) => a.contiguity[axis],
            _ => 1,
        };
        let divisibility = a.multiple_of(axis, run, 1).saturating_mul(b.multiple_of(axis, run, 1));
        (run, divisibility.min(MAX_POWER))
    });
    info.constant = zip_constant(a, b, i64::wrapping_mul);
    info
}

fn shift_left(a: &AxisInfo, b: &AxisInfo) -> AxisInfo {
    match b.constant {
        Some(amount @ 0..=30) => {
            let mut power = b.clone();
            power.constant = Some(1 << amount);
            power.divisibility.fill(1 << amount);
            product(a, &power)
        }
        _ => combine(a, b, |axis| (1, a.multiple_of(axis, 1, 1))),
    }
}

/// The aligned run of `a` that lies between two multiples of `b`.
fn run_within(a: &AxisInfo, b: &AxisInfo, axis: usize) -> i64 {
    let divisor = b.divisibility[axis].min(b.constancy[axis]);
    a.contiguity[axis].min(a.divisibility[axis]).min(divisor)
}

fn quotient(a: &AxisInfo, b: &AxisInfo) -> AxisInfo {
    let mut info = combine(a, b, |axis| match b.constant {
        Some(1) => (a.contiguity[axis], a.divisibility[axis]),
        Some(divisor) if divisor > 0 && a.contiguity[axis] == 1 => {
            (1, (a.divisibility[axis] / power_divisor(divisor)).max(1))
        }
        _ => (1, 1),
    });
    if b.constant.is_none_or(|divisor| !(divisor as u64).is_power_of_two()) {
        info.divisibility.fill(1);
    }
    for axis in 0..info.rank() {
        info.constancy[axis] = info.constancy[axis].max(run_within(a, b, axis));
    }
    info.constant =
        zip_constant(a, b, |a, b| a.checked_div(b).unwrap_or(0)).filter(|_| b.constant != Some(0));
    info
}

fn remainder(a: &AxisInfo, b: &AxisInfo) -> AxisInfo {
    let mut info = combine(a, b, |axis| {
        let run = run_within(a, b, axis);
        (run, a.multiple_of(axis, run, 1).min(b.divisibility[axis]))
    });
    info.constant =
        zip_constant(a, b, |a, b| a.checked_rem(b).unwrap_or(0)).filter(|_| b.constant != Some(0));
    info
}

/// Operations that keep low bits which are zero in both operands.
fn bitwise(a: &AxisInfo, b: &AxisInfo) -> AxisInfo {
    combine(a, b, |axis| (1, a.multiple_of(axis, 1, 1).min(b.multiple_of(axis, 1, 1))))
}

/// The same for truth values as well: if those that hold come first in both, they do in what is made
/// of the two.
fn both_first(a: &AxisInfo, b: &AxisInfo) -> AxisInfo {
    let mut info = bitwise(a, b);
    for axis in 0..info.rank() {
        info.first[axis] = a.leading(axis).min(b.leading(axis));
    }
    info
}

fn comparison(predicate: IntPredicate, a: &AxisInfo, b: &AxisInfo) -> AxisInfo {
    use IntPredicate::{Sge, Sgt, Sle, Slt, Uge, Ugt, Ule, Ult};
    let mut info = combine(a, b, |_| (1, 1));
    for axis in 0..info.rank() {
        // Within an aligned run, no element but the first can equal a multiple of the run.
        let run = match predicate {
            Slt | Sge | Ult | Uge => run_within(a, b, axis),
            Sle | Sgt | Ule | Ugt => run_within(b, a, axis),
            IntPredicate::Eq | IntPredicate::Ne => 1,
        };
        info.constancy[axis] = info.constancy[axis].max(run);
        // What grows by one is below a bound first, and beyond it from some element on. Without a sign,
        // numbers grow from the largest to zero as well, which is a multiple of any run.
        info.first[axis] = match predicate {
            Slt | Sle => a.contiguity[axis].min(b.constancy[axis]),
            Sgt | Sge => a.constancy[axis].min(b.contiguity[axis]),
            Ult | Ule => a.contiguity[axis].min(a.divisibility[axis]).min(b.constancy[axis]),
            Ugt | Uge => a.constancy[axis].min(b.contiguity[axis]).min(b.divisibility[axis]),
            IntPredicate::Eq | IntPredicate::Ne => 1,
        };
    }
    info
}

fn choice(condition: &AxisInfo, a: &AxisInfo, b: &AxisInfo) -> AxisInfo {
    let mut info = a.join(b);
    for axis in 0..info.rank() {
        let constancy = match condition.constancy.get(axis) {
            Some(&constancy) if condition.rank() == info.rank() => constancy,
            _ => 1,
        };
        let run = info.contiguity[axis].min(constancy);
        info.divisibility[axis] = info.multiple_of(axis, run, 1);
        info.contiguity[axis] = run;
        info.constancy[axis] = info.constancy[axis].min(constancy);
    }
    info
}

fn broadcast(from: &AxisInfo, extents: &[u32], ty: &Type) -> AxisInfo {
    let mut info = from.clone();
    for (axis, &extent) in ty.shape().iter().enumerate() {
        if extents.get(axis) == Some(&1) {
            info.constancy[axis] = i64::from(extent);
        }
    }
    info
}

fn expand_dims(from: &AxisInfo, axis: usize) -> AxisInfo {
    let mut info = from.clone();
    let each = (0..from.rank()).map(|axis| from.multiple_of(axis, 1, 1)).min().unwrap_or(1);
    let at = axis.min(info.rank());
    info.contiguity.insert(at, 1);
    info.divisibility.insert(at, each);
    info.constancy.insert(at, 1);
    info.first.insert(at, 1);
    info
}

fn permute(from: &AxisInfo, order: &[u32]) -> AxisInfo {
    let pick = |facts: &[i64]| order.iter().map(|&axis| facts[axis as usize]).collect();
    AxisInfo {
        contiguity: pick(&from.contiguity),
        divisibility: pick(&from.divisibility),
        constancy: pick(&from.constancy),
        first: pick(&from.first),
        constant: from.constant,
    }
}
