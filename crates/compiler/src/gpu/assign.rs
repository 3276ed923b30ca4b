//! Spreads the anchors' layouts to all other values.
//!
//! In: a verified tile-level function and the layouts of its memory accesses. Out: for each tile a
//! *home*, the layout in which it is computed. Values that follow from an anchor live where it
//! lives. Values that any thread can compute by itself (constants, ranges, addresses) have no home
//! unless a user asks for one: they are computed wherever they are needed, as often as needed.
//! Loop-carried values live where the loop's body computes them, which what they start from follows, else
//! [`beside`] vectors that they meet; they settle by repetition. Cost: a few linear sweeps.

use cranelift_entity::SecondaryMap;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::coalesce::{Anchors, default_layout};
use super::exchange::{self, Level};
use super::rebuild::is_cheap;
use super::{GpuTarget, LANES, LowerError, beside, early, product, propagate};
use crate::analysis::axis::AxisInfos;
use crate::ir::{Attrs, Function, Inst, InstData, Opcode, Region, Value};
use crate::layout::{Conversion, Dim, LinearLayout, plan_conversion};

/// Sweeps after which homes of nested loops have settled.
const SWEEPS: usize = 3;

/// Where values live and where instructions work.
#[derive(Debug, Default)]
pub struct Layouts {
    /// The layout in which a value is computed; `None` for values computed where they are needed.
    pub home: SecondaryMap<Value, Option<LinearLayout>>,
    /// The layout that a user of a value without home asks for.
    pub demand: SecondaryMap<Value, Option<LinearLayout>>,
    /// Values of which users ask for several layouts.
    pub contested: SecondaryMap<Value, bool>,
    /// The layout of the operands of accesses, reductions, scans and products.
    pub work: SecondaryMap<Inst, Option<LinearLayout>>,
}

/// Assigns layouts to all values of `func`.
///
/// # Errors
/// When some tile has no layout.
pub fn assign(func: &Function, anchors: Anchors, target: GpuTarget) -> Result<Layouts, LowerError> {
    let layouts = Layouts { work: anchors.layouts, ..Layouts::default() };
    let mut assigner = Assigner {
        func,
        target,
        infos: AxisInfos::of(func),
        anywhere: anchors.anywhere,
        ahead: early::loads_copied_ahead(func),
        spread: beside::spread_again(func),
        layouts,
        enter: false,
        settle: false,
    };
    for _ in 0..SWEEPS {
        assigner.forward(func.body)?;
        assigner.enter = true;
    }
    assigner.keep_small_writes();
    assigner.backward(func.body)?;
    assigner.settle = true;
    for _ in 0..SWEEPS {
        assigner.forward(func.body)?;
    }
    assigner.backward(func.body)?;
    Ok(assigner.layouts)
}

struct Assigner<'f> {
    func: &'f Function,
    target: GpuTarget,
    infos: AxisInfos,
    /// Loads that any layout does for.
    anywhere: FxHashSet<Inst>,
    /// Loads that are [copied ahead](early::loads_copied_ahead).
    ahead: FxHashSet<Inst>,
    /// Where what reductions leave is [spread again](beside::spread_again).
    spread: FxHashMap<Value, Value>,
    layouts: Layouts,
    /// Whether carried values may follow what enters their loop: not before the body had its say.
    enter: bool,
    /// Whether values that must have a home but follow no anchor get one now.
    settle: bool,
}

type Step = Result<(), LowerError>;

impl Assigner<'_> {
    fn forward(&mut self, region: Region) -> Step {
        for &inst in &self.func.regions[region].insts {
            let data = &self.func.insts[inst];
            match data.opcode {
                Opcode::For | Opcode::While | Opcode::If => self.control(data)?,
                _ => self.follow(inst, data)?,
            }
        }
        Ok(())
    }

    /// Gives the results of an instruction without control flow their homes.
    fn follow(&mut self, inst: Inst, data: &InstData) -> Step {
        if !data.results.iter().any(|&result| self.func.ty(result).is_tile())
            && data.opcode != Opcode::Reduce
        {
            return Ok(());
        }
        let home = match data.opcode {
            Opcode::Load => self.load(inst, data)?,
            Opcode::AtomicRmw | Opcode::AtomicCas => self.layouts.work[inst].clone(),
            Opcode::Reduce => self.across(inst, data)?,
            Opcode::Scan | Opcode::Sort => self.across(inst, data)?,
            Opcode::Dot => self.product(inst, data)?,
            Opcode::Histogram => Some(default_layout(self.func, self.shape(data.result()))?),
            Opcode::Split | Opcode::Join | Opcode::Cat | Opcode::Gather => {
                let followed = self.operands_home(data)?;
                match followed {
                    Some(home) => Some(home),
                    None if self.settle => Some(self.rearranged(data)?),
                    None => None,
                }
            }
            _ => self.operands_home(data)?,
        };
        for &result in &data.results {
            if self.func.ty(result).is_tile() {
                self.layouts.home[result] = home.clone();
            }
        }
        Ok(())
    }

    fn shape(&self, value: Value) -> &[u32] {
        self.func.ty(value).shape()
    }

    /// Whether a value has no more elements than there are threads.
    fn is_small(&self, value: Value) -> bool {
        self.func.ty(value).numel() <= self.func.options.num_warps as usize * LANES
    }

    /// Whether a value follows element by element from a load whose [user chooses](Self::load) the layout.
    fn is_small_load(&self, value: Value) -> bool {
        let Some(data) = self.func.def(value) else { return false };
        match data.opcode {
            Opcode::Load => self.func.ty(value).is_tile() && self.is_small(value),
            opcode if propagate::is_elementwise(opcode) => {
                match data.uses().collect::<SmallVec<[Value; 3]>>()[..] {
                    [operand] => self.is_small_load(operand),
                    _ => false,
                }
            }
            _ => false,
        }
    }

    /// A load of fewer elements than threads costs about the same in any layout, so its user chooses, unless
    /// threads would [compute many addresses](Self::takes_many_addresses) for it or copy it ahead. Where nothing is
    /// known of where elements lie, addresses stay in the threads that compute them.
    fn load(&self, inst: Inst, data: &InstData) -> Result<Option<LinearLayout>, LowerError> {
        let small = self.is_small(data.result()) && !self.ahead.contains(&inst);
        let asked = self.layouts.demand[data.result()].clone();
        let asked = asked.filter(|layout| small && !self.takes_many_addresses(data, layout));
        let work = self.layouts.work[inst].as_ref();
        let own = self.layouts.home[data.operand(0)].as_ref().filter(|home| {
            let repeats =
                |work: &LinearLayout| home.elements_per_thread() > work.elements_per_thread();
            self.anywhere.contains(&inst) && !work.is_some_and(repeats)
        });
        Ok(asked.or_else(|| own.or(work).cloned()))
    }

    /// Has writes of fewer elements than threads work where what they write lives, such as what a reduction leaves of
    /// each row, if that spares an exchange between warps and costs no part of a sector. On an H200, the largest scores
    /// of blocks of keys take 0.94 to 0.96 times as long so, causal attention 0.96; scales of groups, of which four lie
    /// next to each other in a warp, would take 1.02.
    fn keep_small_writes(&mut self) {
        for inst in self.func.walk() {
            if let Some(home) = self.home_of_small_write(inst) {
                self.layouts.work[inst] = Some(home);
            }
        }
    }

    /// The layout in which `inst` would write few elements without an exchange.
    fn home_of_small_write(&self, inst: Inst) -> Option<LinearLayout> {
        /// Elements of a thread of which each is written by itself.
        const FEW: usize = 2;
        /// The bytes that the memory writes as a whole.
        const SECTOR: usize = 32;
        let data = &self.func.insts[inst];
        let work = self.layouts.work[inst].as_ref().filter(|_| data.opcode == Opcode::Store)?;
        let value = data.operand(1);
        let home = self.layouts.home[value].as_ref()?;
        let mut places = [Some(data.operand(0)), data.operand_opt(2)].into_iter().flatten();
        let may_move = places.all(|place| self.layouts.home[place].is_none());
        let ty = self.func.ty(value);
        let (count, bits) = (ty.numel(), ty.elem()?.bits().max(8) as usize);
        let is_small = self.is_small(value) && home.elements_per_thread() <= FEW;
        let lanes = home.bases(Dim::Lane);
        let run = (0..count.ilog2()).take_while(|&bit| lanes.contains(&(1 << bit))).count();
        let bytes = bits / 8;
        let spares_sectors = bytes << run >= SECTOR || bytes * count <= SECTOR;
        let exchanges =
            || matches!(plan_conversion(home, work, bits), Ok(Conversion::SharedMemory(_)));
        (may_move && is_small && spares_sectors && exchanges()).then(|| home.clone())
    }

    /// Whether a load in `layout` takes many addresses of each thread: elements that lie
    /// apart in memory take two registers each for theirs, of which conversions take none. On an H100, a convolution
    /// whose filter each thread loaded in full takes 0.8 times as long so.
    fn takes_many_addresses(&self, data: &InstData, layout: &LinearLayout) -> bool {
        /// Addresses that a thread has registers for.
        const FEW: usize = 8;
        let info = self.infos.get(self.func, data.operand(0));
        let apart = info.contiguity.iter().chain(&info.constancy).all(|&alike| alike == 1);
        apart && layout.elements_per_thread() > FEW
    }

    /// Reductions and scans work where their input lives.
    fn across(&mut self, inst: Inst, data: &InstData) -> Result<Option<LinearLayout>, LowerError> {
        let input = data.operand(0);
        let home = data.uses().find_map(|value| self.layouts.home[value].clone());
        let home = home.or_else(|| self.layouts.demand[input].clone().filter(|_| self.settle));
        let home = match home {
            Some(home) => home,
            None if self.settle => {
                let default = default_layout(self.func, self.shape(input))?;
                self.repeated(data)?.or_else(|| self.spread_in(data, &default)).unwrap_or(default)
            }
            None => return Ok(None),
        };
        let inward = scans_rows_apart(data, &home) || exchange::shows_places(self.func, data);
        let home = if inward { home.with_last_axis_inward() } else { home };
        self.layouts.work[inst] = Some(home.clone());
        Ok(propagate::to_result(self.func, data, 0, &home)?)
    }

    /// The layout of what a reduction reads beside [what it repeats](beside::repeated).
    fn repeated(&self, data: &InstData) -> Result<Option<LinearLayout>, LowerError> {
        let Attrs::Axis(axis) = &data.attrs else { return Ok(None) };
        if data.opcode != Opcode::Reduce {
            return Ok(None);
        }
        Ok(beside::repeated(self.func, &self.layouts.home, data.operand(0), axis.axis as usize)?)
    }

    /// The layout in which what a reduction leaves is wanted where it is spread again: nothing is exchanged but by the
    /// reduction then. `None` where threads would have more elements than in `default`. On an H200, sorts that are
    /// written out step by step and carry indices along take 0.18 to 0.36 times as long so.
    fn spread_in(&self, data: &InstData, default: &LinearLayout) -> Option<LinearLayout> {
        let tile = self.spread.get(data.results.first()?)?;
        let wanted = self.layouts.home[*tile].as_ref().or(self.layouts.demand[*tile].as_ref())?;
        (wanted.elements_per_thread() <= default.elements_per_thread()).then(|| wanted.clone())
    }

    fn product(&mut self, inst: Inst, data: &InstData) -> Result<Option<LinearLayout>, LowerError> {
        if self.layouts.work[inst].is_none() {
            let layouts = product::layouts(self.func, data, self.target)?;
            self.layouts.work[inst] = Some(layouts.acc);
        }
        Ok(self.layouts.work[inst].clone())
    }

    /// The layout that follows from the first operand with a home, the values of a selection before its condition;
    /// where others follow from further operands, the one among them that a user of the result asks for: it saves a
    /// conversion. Where it [spares work](Self::sparing), the one that all users ask for.
    fn operands_home(&self, data: &InstData) -> Result<Option<LinearLayout>, LowerError> {
        let mut first = None;
        let asked = data.results.first().and_then(|&result| self.layouts.demand[result].as_ref());
        // What a selection goes by takes the fewest bytes to move: on an H200, a gradient of masked attention
        // takes 0.83 times as long so.
        let last = usize::from(data.opcode == Opcode::Select);
        for slot in (last..data.operands.len()).chain(0..last) {
            let operand = data.operands[slot];
            let Some(home) = operand.and_then(|value| self.layouts.home[value].as_ref()) else {
                continue;
            };
            let followed = propagate::to_result(self.func, data, slot, home)?;
            if followed.is_some() && followed.as_ref() == asked {
                return Ok(followed);
            }
            first = first.or(followed);
        }
        let sparing = first.as_ref().and_then(|home| self.sparing(data, home));
        Ok(sparing.cloned().or(first))
    }

    /// The layout in which all users want the result of single elements, where threads would do a large part of
    /// each other's work in `home`, as with what reductions leave to all of them: on an H100, means of
    /// colors take 0.98 times as long so.
    fn sparing(&self, data: &InstData, home: &LinearLayout) -> Option<&LinearLayout> {
        /// Of so many elements one is a thread's own.
        const LARGE: usize = 16;
        let result = *data.results.first().filter(|_| propagate::is_elementwise(data.opcode))?;
        let asked =
            self.layouts.demand[result].as_ref().filter(|_| !self.layouts.contested[result])?;
        (asked.elements_per_thread() * LARGE <= home.elements_per_thread()).then_some(asked)
    }

    /// A home for operations that move elements between registers, when no operand has one that
    /// fits.
    fn rearranged(&self, data: &InstData) -> Result<LinearLayout, LowerError> {
        if data.opcode == Opcode::Split
            && let Some(home) = &self.layouts.home[data.operand(0)]
            && let Some(near) = home.with_pairs_in_registers()
            && let Some((_, halves)) = near.split_axis()
        {
            return Ok(halves);
        }
        if data.opcode == Opcode::Join && self.shape(data.operand(0)).is_empty() {
            return Ok(LinearLayout::empty().join_axis()?);
        }
        let shape = match data.opcode {
            Opcode::Join | Opcode::Cat => self.shape(data.operand(0)),
            _ => self.shape(data.result()),
        };
        let layout = default_layout(self.func, shape)?;
        match data.opcode {
            Opcode::Join | Opcode::Cat => {
                let passed = propagate::to_result(self.func, data, 0, &layout)?;
                Ok(passed.unwrap_or(layout))
            }
            _ => Ok(layout),
        }
    }

    fn control(&mut self, data: &InstData) -> Step {
        let func = self.func;
        match data.opcode {
            Opcode::If => {
                for &region in &data.regions {
                    self.forward(region)?;
                }
                for (at, &result) in data.results.iter().enumerate() {
                    let yields = data.regions.iter().filter_map(|&region| {
                        func.terminator(region).and_then(|end| end.operand_opt(at))
                    });
                    self.meet(result, &yields.collect::<Vec<_>>(), &[])?;
                }
                Ok(())
            }
            Opcode::For => {
                let body = data.regions[0];
                let args = func.regions[body].args.clone();
                let inits: Vec<Value> = data.uses().skip(3).collect();
                let yields: Vec<Value> =
                    func.terminator(body).map(|end| end.uses().collect()).unwrap_or_default();
                for (at, &arg) in args.iter().skip(1).enumerate() {
                    let sources = self.carried(yields[at], inits[at]);
                    self.meet(arg, &sources, &[data.results[at]])?;
                }
                self.forward(body)
            }
            _ => {
                let [before, after] = [data.regions[0], data.regions[1]];
                let inits: Vec<Value> = data.uses().collect();
                let uses = |region: Region| -> Vec<Value> {
                    func.terminator(region).map(|end| end.uses().collect()).unwrap_or_default()
                };
                let (passed, next) = (uses(before), uses(after));
                for (at, &arg) in func.regions[before].args.iter().enumerate() {
                    let sources = self.carried(next[at], inits[at]);
                    self.meet(arg, &sources, &[])?;
                }
                self.forward(before)?;
                for (at, &arg) in func.regions[after].args.iter().enumerate() {
                    self.meet(arg, &[passed[at + 1]], &[data.results[at]])?;
                }
                self.forward(after)
            }
        }
    }

    /// What the home of a carried value may follow from.
    fn carried(&self, next: Value, init: Value) -> SmallVec<[Value; 2]> {
        std::iter::once(next).chain(self.enter.then_some(init)).collect()
    }

    /// Gives `value` the home of the first of `sources` that has one, or what its users ask for.
    /// `alike` are values that always live where it does.
    fn meet(&mut self, value: Value, sources: &[Value], alike: &[Value]) -> Step {
        if !self.func.ty(value).is_tile() {
            return Ok(());
        }
        let home_of = |source: &Value| self.layouts.home[*source].clone();
        let mut home =
            sources.iter().filter(|source| !self.is_small_load(**source)).find_map(home_of);
        // Once settled, a home stays: sources may follow from the value itself.
        if self.settle && self.layouts.home[value].is_some() {
            home = self.layouts.home[value].clone();
        }
        if home.is_none() && self.settle {
            let asked = alike.iter().chain([&value]);
            home = asked.filter_map(|&value| self.layouts.demand[value].clone()).next();
            home = home.or_else(|| sources.iter().find_map(home_of));
            if home.is_none() {
                home = beside::layout(self.func, &self.layouts.home, value, sources)?;
            }
            if home.is_none() {
                home = Some(default_layout(self.func, self.func.ty(value).shape())?);
            }
        }
        for &value in alike.iter().chain([&value]) {
            self.layouts.home[value] = home.clone();
        }
        Ok(())
    }

    /// Hands each user's layout to operands without home, users before definitions.
    fn backward(&mut self, region: Region) -> Step {
        for &inst in self.func.regions[region].insts.iter().rev() {
            let data = &self.func.insts[inst];
            self.demand_of_inst(inst, data)?;
            for &inner in data.regions.iter().rev() {
                self.backward(inner)?;
            }
            if matches!(data.opcode, Opcode::For | Opcode::While) {
                self.demand_inits(data);
            }
            if data.opcode == Opcode::For {
                self.demand_next(data);
            }
        }
        Ok(())
    }

    /// What users ask of what a loop carries, that is asked of the small loads that it carries on: nothing is exchanged
    /// in the loop then. On an H200, gradients of a recurrence take 0.86 times as long so, the recurrence itself, whose
    /// exchange kept the assembler from delaying other loads, 1.19 times.
    fn demand_next(&mut self, data: &InstData) {
        let body = data.regions[0];
        let Some(end) = self.func.terminator(body) else { return };
        let next = end.uses().collect::<SmallVec<[Value; 8]>>();
        for (&arg, next) in self.func.regions[body].args[1..].iter().zip(next) {
            if let Some(asked) =
                self.layouts.demand[arg].clone().filter(|_| self.is_small_load(next))
            {
                self.ask(next, asked);
            }
        }
    }

    /// What a loop's body asks of its arguments, it asks of what enters them.
    fn demand_inits(&mut self, data: &InstData) {
        let skip = if data.opcode == Opcode::For { 3 } else { 0 };
        let args = self.func.regions[data.regions[0]].args.iter();
        let args: Vec<Value> = args.copied().skip(usize::from(skip > 0)).collect();
        for (&arg, init) in args.iter().zip(data.uses().skip(skip)) {
            let asked = self.layouts.home[arg].clone();
            if let Some(asked) = asked.or_else(|| self.layouts.demand[arg].clone()) {
                self.ask(init, asked);
            }
        }
    }

    fn ask(&mut self, value: Value, layout: LinearLayout) {
        if !self.func.ty(value).is_tile() {
            return;
        }
        let layout = self.shared_out(value, &layout).unwrap_or(layout);
        match &self.layouts.demand[value] {
            Some(asked) => self.layouts.contested[value] |= *asked != layout,
            None => self.layouts.demand[value] = Some(layout),
        }
    }

    /// The layout in which each thread computes a share of `value`, where in `layout` threads would repeat each
    /// other's long work for it, as with the divisions that make rows and columns of positions: on
    /// an H200, convolutions take 0.64 to 0.78 times as long so.
    fn shared_out(&self, value: Value, layout: &LinearLayout) -> Option<LinearLayout> {
        /// Of so many elements one is a thread's own.
        const LARGE: usize = 8;
        let long = self.func.def(value).is_some_and(|data| takes_long(self.func, data));
        if !long || self.layouts.home[value].is_some() {
            return None;
        }
        let shares = default_layout(self.func, self.shape(value)).ok()?;
        (shares.elements_per_thread() * LARGE <= layout.elements_per_thread()).then_some(shares)
    }

    fn demand_of_inst(&mut self, inst: Inst, data: &InstData) -> Step {
        let whole = match data.opcode {
            Opcode::Store | Opcode::AtomicRmw | Opcode::AtomicCas => {
                self.layouts.work[inst].clone()
            }
            Opcode::Load => self.load(inst, data)?,
            Opcode::Reduce | Opcode::Scan | Opcode::Sort => self.layouts.work[inst].clone(),
            _ => None,
        };
        if let Some(layout) = whole {
            data.uses().for_each(|value| self.ask(value, layout.clone()));
            return Ok(());
        }
        if data.opcode == Opcode::Dot {
            let layouts = product::layouts(self.func, data, self.target)?;
            for (slot, layout) in [layouts.lhs, layouts.rhs, layouts.acc].into_iter().enumerate() {
                self.ask(data.operand(slot), layout);
            }
            return Ok(());
        }
        let Some(&result) = data.results.first() else { return Ok(()) };
        let own = self.layouts.home[result].clone();
        let own = own.map(|home| self.sparing(data, &home).cloned().unwrap_or(home));
        let Some(layout) = own.or_else(|| self.layouts.demand[result].clone()) else {
            return Ok(());
        };
        for slot in 0..data.operands.len() {
            if matches!(data.opcode, Opcode::For | Opcode::While | Opcode::If) {
                break;
            }
            let asked = propagate::to_operand(self.func, data, slot, &layout)?;
            if let (Some(operand), Some(asked)) = (data.operand_opt(slot), asked) {
                self.ask(operand, asked);
            }
        }
        Ok(())
    }
}

/// Whether `data` takes many instructions for each element: quotients by constants take few.
fn takes_long(func: &Function, data: &InstData) -> bool {
    let by_constant = || {
        let divisor = data.operand_opt(1).and_then(|divisor| func.def(divisor));
        let divisor = match divisor {
            Some(of) if of.opcode == Opcode::Splat => func.def(of.operand(0)),
            other => other,
        };
        divisor.is_some_and(|of| of.opcode == Opcode::Constant)
    };
    data.opcode.is_pure() && data.opcode != Opcode::InlineAsm && !is_cheap(data) && !by_constant()
}

/// Whether a scan goes along rows of which each thread holds several parts with those of other
/// threads in between. Each part would be scanned between all lanes; moved through shared memory,
/// so that a thread holds neighbors alone, they are scanned there but once.
fn scans_rows_apart(data: &InstData, layout: &LinearLayout) -> bool {
    /// Parts that are moved in fewer steps than they are scanned, as powers of two.
    const PARTS: usize = 2;
    let Attrs::Scan(attrs) = &data.attrs else { return false };
    let is_last = attrs.axis as usize + 1 == layout.rank();
    let parts = exchange::levels(layout, attrs.axis as usize).map_or(0, |(_, levels)| {
        levels.iter().filter(|level| matches!(level, Level::Registers(_))).count()
    });
    is_last && parts >= PARTS
}
