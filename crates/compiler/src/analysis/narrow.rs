//! Numbers that do not fit the elements of the buffer that they are stored to, for a known launch.
//!
//! A store converts what is stored to the type of the buffer's elements, which drops the upper bits
//! of a wider integer without a word. It is reported where a search finds a program and a lane that
//! stores a number which the elements cannot hold. Of floats it drops what follows the point, which is reported
//! where they certainly have fractions: a quotient or a root was taken, or random numbers were read, and nothing
//! rounds them. Conversions that the kernel spells out are meant.

use rustc_hash::FxHashSet;

use super::Finding;
use super::arguments::buffer;
use super::elements::{Access, Element, Elements};
use super::report;
use super::solve::Outcome;
use super::terms::{Domain, Interval, Linear};
use crate::diagnostic::{Code, Diagnostic};
use crate::host::Contents;
use crate::ir::{Function, Opcode, Value};
use crate::specialization::KnownLaunch;

/// Boxes that may be looked at for one store.
const FUEL: u32 = 1_000;

/// Findings about the stores of `func` under `launch`.
pub(super) fn check(
    func: &Function,
    launch: &KnownLaunch,
    elements: &mut Elements<'_>,
    accesses: &[Access],
) -> Vec<Finding> {
    let found = accesses.iter().filter_map(|access| {
        if let Some((stored, wide)) = narrowed(func, access.inst) {
            return lossy(func, launch, elements, access, (stored, wide));
        }
        truncated(func, launch, elements, (access, accesses))
    });
    found.map(Finding::from).collect()
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
    if !implicit || bits <= 8 || !has_fractions() {
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

/// What a store converts to fewer bits, after and before.
fn narrowed(func: &Function, inst: crate::ir::Inst) -> Option<(Value, Value)> {
    let store = &func.insts[inst];
    if store.opcode != Opcode::Store {
        return None;
    }
    let stored = store.operand(1);
    let conversion = func.def(stored)?;
    // A conversion that is spelled out has a place of its own.
    let implicit = conversion.opcode == Opcode::Trunc && conversion.loc == store.loc;
    let bits = func.ty(stored).number().map_or(1, |number| number.bits());
    (implicit && bits > 1).then(|| (stored, conversion.operand(0)))
}

fn lossy(
    func: &Function,
    launch: &KnownLaunch,
    elements: &mut Elements<'_>,
    access: &Access,
    (stored, wide): (Value, Value),
) -> Option<Diagnostic> {
    let bits = func.ty(stored).number()?.bits();
    let (Element::Int(term), _) = elements.lane(wide) else { return None };
    if !elements.terms.is_known(&term) {
        return None;
    }
    let fits = elements_range(&func.params[access.param].signature, bits);
    let above = elements.terms.less(&Linear::constant(fits.hi), &term);
    let below = elements.terms.less(&term, &Linear::constant(fits.lo));
    let mut fuel = FUEL;
    let point = [above, below].into_iter().find_map(|cond| {
        let mut conds = access.happens();
        conds.push(cond);
        match elements.search(&conds, &mut fuel) {
            Outcome::Found(point) => Some(point),
            _ => None,
        }
    })?;
    let value = Domain::at(&elements.terms, &point).value(&term)?;
    let program = report::program(elements.position(&point), launch.grid_rank);
    let name = elements.param_name(access.param);
    let message = format!(
        "program {program} stores {value} to `{name}`, whose elements of {bits} bits cannot hold it"
    );
    let loc = func.insts[access.inst].loc;
    let found = report::finding(func, loc, Code::LossyStore, message);
    Some(found.with_note(
        "a store drops the upper bits: pass a buffer of wider elements, or convert where that is \
         meant",
    ))
}

/// The numbers that elements of this many bits are taken for. An unsigned element may be meant to
/// hold a negative number's bits.
fn elements_range(signature: &str, bits: u32) -> Interval {
    let signed = Interval::signed(bits);
    match signature.trim_start_matches(['*', 'k']).starts_with('u') {
        true => Interval::new(signed.lo, signed.hi * 2 + 1),
        false => signed,
    }
}
