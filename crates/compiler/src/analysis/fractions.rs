//! Floats whose fractions a conversion to integers drops, for a known launch.
//!
//! What is said of is a store that converts floats to the integers of a buffer without a word, and a conversion that
//! the kernel spells out although its result is taken for a float again. It is said where the floats certainly have
//! fractions: a quotient or a root was taken, or random numbers were read, and nothing rounds them. What a kernel
//! computes and then converts may be meant to be cut off, as where it quantizes; what it reads, adds up or multiplies as
//! matrices is not.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Finding;
use super::arguments::buffer;
use super::elements::{Access, Elements};
use super::report;
use crate::diagnostic::{Code, Diagnostic};
use crate::host::Contents;
use crate::ir::{Function, Inst, Opcode, Value};
use crate::specialization::KnownLaunch;

/// Integers of so many bits may hold what is quantized.
const QUANTIZED_BITS: u32 = 8;

/// Findings about the conversions of `func` under `launch`.
pub(super) fn check(
    func: &Function,
    launch: &KnownLaunch,
    elements: &Elements<'_>,
    accesses: &[Access],
) -> Vec<Finding> {
    let stores =
        accesses.iter().filter_map(|access| truncated(func, launch, elements, (access, accesses)));
    let stores: Vec<Diagnostic> = stores.collect();
    let conversions = Conversions::of(func);
    let all = func.walk().into_iter();
    let passed = all.filter_map(|inst| conversions.passing(inst, (launch, accesses)));
    stores.into_iter().chain(passed).map(Finding::from).collect()
}

/// The finding about a store that drops the fractions of floats. Bytes may be meant to hold what is left, as those
/// of a quantized tensor.
fn truncated(
    func: &Function,
    launch: &KnownLaunch,
    elements: &Elements<'_>,
    (access, accesses): (&Access, &[Access]),
) -> Option<Diagnostic> {
    let store = &func.insts[access.inst];
    let stored = (store.opcode == Opcode::Store).then(|| store.operand(1))?;
    let conversion = func.def(stored)?;
    let implicit =
        matches!(conversion.opcode, Opcode::FToS | Opcode::FToU) && conversion.loc == store.loc;
    let bits = func.ty(stored).number()?.bits();
    let has_fractions = || {
        Fractions { func, launch, accesses }.of(conversion.operand(0), &mut FxHashSet::default())
    };
    if !implicit || bits <= QUANTIZED_BITS || !has_fractions() {
        return None;
    }
    let name = elements.param_name(access.param);
    let message =
        format!("this store drops what follows the point: `{name}` has integers of {bits} bits");
    let found = report::finding(func, store.loc, Code::LossyStore, message);
    Some(found.with_note("pass a buffer of floats, or convert with `.to(...)` where that is meant"))
}

/// Looks for what makes fractions.
struct Fractions<'a> {
    func: &'a Function,
    launch: &'a KnownLaunch,
    accesses: &'a [Access],
}

impl Fractions<'_> {
    /// Whether a float certainly has a fraction for some lanes of some programs, as far as what it is computed
    /// from tells.
    fn of(&self, value: Value, seen: &mut FxHashSet<Value>) -> bool {
        use Opcode::{
            Broadcast, Cat, Cos, Dot, Exp, ExpandDims, FAbs, FAdd, FDiv, FDivRn, FExt, FMax, FMin,
            FMul, FNeg, FSub, FTrunc, Fma, For, Gather, If, Join, Load, Log, Log2, Permute, Reduce,
            Reshape, Rsqrt, Scan, Sin, Splat, Split, Sqrt, SqrtRn, Unsplat,
        };
        let Some(made) = self.func.def(value).filter(|_| seen.insert(value)) else { return false };
        match made.opcode {
            FDiv | FDivRn | Exp | Log | Log2 | Sqrt | SqrtRn | Rsqrt | Sin | Cos => true,
            Load => self.reads_random(value),
            FAbs | FAdd | FExt | FMax | FMin | FMul | FNeg | FSub | FTrunc | Fma | Dot | Reduce
            | Scan | Broadcast | Cat | ExpandDims | Gather | Join | Permute | Reshape | Splat
            | Split | Unsplat => made.uses().any(|used| self.of(used, seen)),
            Opcode::Select => made.uses().skip(1).any(|used| self.of(used, seen)),
            For | If => {
                let at = made.results.iter().position(|result| *result == value);
                let ends = made.regions.iter().filter_map(|region| self.func.terminator(*region));
                let given = ends.filter_map(|end| end.uses().nth(at?));
                given.collect::<Vec<Value>>().into_iter().any(|given| self.of(given, seen))
            }
            _ => false,
        }
    }

    /// Whether a load reads random numbers of either sign.
    fn reads_random(&self, loaded: Value) -> bool {
        let is_it = |access: &&Access| self.func.insts[access.inst].results.contains(&loaded);
        let access = self.accesses.iter().find(is_it);
        let read = access.and_then(|access| buffer(self.func, self.launch, access.param));
        read.is_some_and(|read| matches!(read.contents, Contents::Signed))
    }
}

/// The conversions of a kernel, with what uses their results.
struct Conversions<'a> {
    func: &'a Function,
    users: FxHashMap<Value, Vec<Inst>>,
}

impl Conversions<'_> {
    fn of(func: &Function) -> Conversions<'_> {
        let mut users: FxHashMap<Value, Vec<Inst>> = FxHashMap::default();
        for inst in func.walk() {
            for used in func.insts[inst].uses() {
                users.entry(used).or_default().push(inst);
            }
        }
        Conversions { func, users }
    }

    fn users(&self, value: Value) -> &[Inst] {
        self.users.get(&value).map_or(&[], |users| users)
    }

    /// The finding about a conversion to integers that are floats again wherever they are used.
    fn passing(
        &self,
        inst: Inst,
        (launch, accesses): (&KnownLaunch, &[Access]),
    ) -> Option<Diagnostic> {
        let (func, made) = (self.func, &self.func.insts[inst]);
        if !matches!(made.opcode, Opcode::FToS | Opcode::FToU) {
            return None;
        }
        let (float, integer) = (made.operand(0), *made.results.first()?);
        let bits = func.ty(integer).number()?.bits();
        let has_fractions =
            || Fractions { func, launch, accesses }.of(float, &mut FxHashSet::default());
        if bits <= QUANTIZED_BITS
            || !self.is_gathered(float)
            || !self.becomes_float(integer, &mut FxHashSet::default())
            || !has_fractions()
        {
            return None;
        }
        let message = format!(
            "this conversion to integers of {bits} bits drops what follows the point, and the result is used as \
             a float"
        );
        let found = report::finding(func, made.loc, Code::LossyConversion, message);
        Some(found.with_note(
            "convert to a type of floats, or back with `.to(...)` where whole numbers are meant",
        ))
    }

    /// Whether a float is read, a sum or a product of matrices, of which nothing but the conversion has a use.
    fn is_gathered(&self, value: Value) -> bool {
        let Some(made) = self.func.def(value).filter(|_| self.users(value).len() == 1) else {
            return false;
        };
        match made.opcode {
            Opcode::Load | Opcode::Dot | Opcode::For | Opcode::Reduce => true,
            Opcode::FExt | Opcode::FTrunc | Opcode::Reshape | Opcode::Permute => {
                self.is_gathered(made.operand(0))
            }
            _ => false,
        }
    }

    /// Whether integers are used, and sums, products and rearrangements of them alone, as what a conversion that
    /// nothing spells out turns into floats.
    fn becomes_float(&self, value: Value, seen: &mut FxHashSet<Value>) -> bool {
        use Opcode::{
            Add, Broadcast, ExpandDims, Mul, Permute, Reduce, Reshape, SToF, Scan, Splat, Sub, UToF,
        };
        let users = self.users(value);
        !users.is_empty()
            && users.iter().all(|user| {
                let used = &self.func.insts[*user];
                match used.opcode {
                    SToF | UToF => used.results.iter().all(|float| {
                        let mut users = self.users(*float).iter();
                        users.any(|user| self.func.insts[*user].loc == used.loc)
                    }),
                    Add | Broadcast | ExpandDims | Mul | Permute | Reduce | Reshape | Scan
                    | Splat | Sub => used
                        .results
                        .iter()
                        .all(|result| !seen.insert(*result) || self.becomes_float(*result, seen)),
                    _ => false,
                }
            })
    }
}
