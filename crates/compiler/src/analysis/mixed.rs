//! Tiles that are combined although, along one axis, the elements of one go with one place and those of the other with
//! another: rows of the block of one program meet columns of that of another.
//!
//! Where tiles are square, nothing else tells that an axis was expanded the wrong way, an operand transposed twice, or
//! the operands of a product exchanged. Each axis of a tile is followed from the integers that its addresses and masks
//! are made of to all that is computed from it, with the [scalars that move it](movers). Tiles whose axes nothing
//! moves go with any.

mod movers;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

use self::movers::{Moved, Movers};
use super::report;
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{Attrs, Function, Inst, InstData, Opcode, Region, Value};
use crate::specialization::KnownLaunch;

/// What moves a tile along each of its axes.
type Axes = SmallVec<[Moved; 3]>;

/// Findings about the tiles of `func`, of which these launches are known.
pub(super) fn check(func: &Function, launches: &[KnownLaunch]) -> Vec<Diagnostic> {
    let mut tiles = Tiles {
        func,
        movers: Movers::of(func, launches),
        axes: FxHashMap::default(),
        loose: FxHashMap::default(),
        found: Vec::new(),
        told: FxHashSet::default(),
    };
    tiles.region(func.body);
    tiles.found
}

struct Tiles<'f> {
    func: &'f Function,
    movers: Movers<'f>,
    axes: FxHashMap<Value, Axes>,
    /// What moves all elements of a tile that one scalar was made into.
    loose: FxHashMap<Value, Moved>,
    found: Vec<Diagnostic>,
    told: FxHashSet<Inst>,
}

impl Tiles<'_> {
    fn region(&mut self, region: Region) {
        for inst in &self.func.regions[region].insts {
            self.inst(*inst);
        }
    }

    fn rank(&self, value: Value) -> usize {
        self.func.ty(value).shape().len()
    }

    /// What moves a tile; nothing where it was not followed to there.
    fn of(&self, value: Value) -> Axes {
        let still = || smallvec![Some(FxHashSet::default()); self.rank(value)];
        self.axes.get(&value).cloned().unwrap_or_else(still)
    }

    fn unknown(&self, value: Value) -> Axes {
        smallvec![None; self.rank(value)]
    }

    fn inst(&mut self, inst: Inst) {
        let func = self.func;
        let data = &func.insts[inst];
        match (data.opcode, &data.attrs) {
            (Opcode::For, _) => return self.counted_loop(inst, data),
            (Opcode::If, _) => return self.branches(data),
            (Opcode::While, _) => return self.open_loop(data),
            (Opcode::Reduce | Opcode::Scan | Opcode::MapElements, _) => {}
            _ => data.regions.iter().for_each(|region| self.region(*region)),
        }
        for result in &data.results {
            if self.rank(*result) > 0 {
                let axes = self.made(inst, data, *result);
                self.axes.insert(*result, axes);
            }
        }
    }

    fn made(&mut self, inst: Inst, data: &InstData, result: Value) -> Axes {
        match (data.opcode, &data.attrs) {
            (Opcode::Arange | Opcode::Constant, _) => self.of(result),
            (Opcode::Splat, _) => {
                let scalar = data.operand(0);
                if self.func.ty(scalar).number().is_some_and(|number| number.is_int()) {
                    self.loose.insert(result, self.movers.moving(scalar));
                }
                self.of(result)
            }
            (Opcode::ExpandDims, Attrs::Axis(at)) => {
                let mut axes = self.of(data.operand(0));
                axes.insert(at.axis as usize, Some(FxHashSet::default()));
                axes
            }
            // One element for all of an axis goes with all of its places.
            (Opcode::Broadcast, _) => {
                let extents = self.func.ty(data.operand(0)).shape();
                let still = |extent: u32| (extent == 1).then(|| Some(FxHashSet::default()));
                let axes = self.of(data.operand(0)).into_iter().zip(extents);
                axes.map(|(axis, extent)| still(*extent).unwrap_or(axis)).collect()
            }
            (Opcode::Permute, Attrs::Order(order)) => {
                let axes = self.of(data.operand(0));
                order.order.iter().map(|source| axes[*source as usize].clone()).collect()
            }
            (Opcode::Reduce, Attrs::Axis(at)) => {
                let mut axes = self.of(data.operand(0));
                axes.remove(at.axis as usize);
                axes
            }
            (Opcode::Scan, _) => self.of(data.operand(0)),
            (Opcode::Reshape, _) => self.reshaped(data.operand(0), result),
            (Opcode::Load, _) => self.of(data.operand(0)),
            (Opcode::Dot, _) => self.product(inst, data, result),
            _ if data.opcode.is_elementwise() => self.combined(inst, data, result),
            _ => self.unknown(result),
        }
    }

    /// The axes of a tile in another shape, where no more than axes of one element come or go.
    fn reshaped(&self, from: Value, to: Value) -> Axes {
        let (before, after) = (self.func.ty(from).shape(), self.func.ty(to).shape());
        let long = |shape: &[u32]| shape.iter().copied().filter(|it| *it > 1).collect::<Vec<_>>();
        if long(before) != long(after) {
            return self.unknown(to);
        }
        let axes = self.of(from);
        let mut kept =
            before.iter().zip(axes).filter(|(extent, _)| **extent > 1).map(|(_, axis)| axis);
        let place = |extent: &u32| match extent {
            1 => Some(FxHashSet::default()),
            _ => kept.next().flatten(),
        };
        after.iter().map(place).collect()
    }

    /// Operations on elements in the same places.
    fn combined(&mut self, inst: Inst, data: &InstData, result: Value) -> Axes {
        let func = self.func;
        // What a condition is about may be elsewhere, as the mirror image of what it chooses.
        let conditions = usize::from(data.opcode == Opcode::Select);
        let combined = data.uses().skip(conditions);
        let tiles: Vec<Value> = combined.filter(|used| self.rank(*used) > 0).collect();
        let mut axes = self.of(*tiles.first().unwrap_or(&result));
        // Positions may be computed from others on purpose, and rows that lie one after another may meet lane by lane.
        let is_told = self.rank(result) > 1
            && !matches!(data.opcode, Opcode::PtrAdd)
            && (matches!(data.opcode, Opcode::Cmp)
                || tiles
                    .iter()
                    .any(|tile| func.ty(*tile).elem().is_some_and(|elem| elem.is_float())));
        for tile in tiles.iter().skip(1) {
            let other = self.of(*tile);
            for at in 0..axes.len().min(other.len()) {
                if is_told
                    && func.ty(*tile).shape()[at] > 1
                    && self.movers.are_apart(&axes[at], &other[at])
                {
                    self.tell(inst, at, (&axes[at].clone(), &other[at]));
                    axes[at] = None;
                }
                axes[at] = union(&axes[at], &other[at]);
            }
        }
        self.settle_loose(data, &tiles, result, &mut axes);
        axes
    }

    /// A scalar that is added to the integers along an axis moves them along it.
    fn settle_loose(&mut self, data: &InstData, tiles: &[Value], result: Value, axes: &mut Axes) {
        if !self.func.ty(result).number().is_some_and(|number| number.is_int()) {
            return;
        }
        let loose: Vec<Moved> =
            tiles.iter().filter_map(|tile| self.loose.get(tile).cloned()).collect();
        if loose.is_empty() {
            return;
        }
        let moved = loose.iter().cloned().collect::<Option<Vec<_>>>();
        let moved: Moved = moved.map(|each| each.into_iter().flatten().collect());
        if loose.len() == tiles.len() {
            self.loose.insert(result, moved);
            return;
        }
        let adds = matches!(data.opcode, Opcode::Add | Opcode::Sub)
            && tiles.iter().any(|tile| self.is_range(*tile));
        let extents = self.func.ty(result).shape().iter().zip(axes.iter_mut());
        let mut long = extents.filter(|(extent, _)| **extent > 1).map(|(_, axis)| axis);
        if let (true, Some(axis), None) = (adds, long.next(), long.next()) {
            *axis = union(axis, &moved);
        }
    }

    /// Whether a tile counts its elements: it is a range, moved or turned as it may be, but not scaled.
    fn is_range(&self, value: Value) -> bool {
        let (mut seen, mut pending) = (FxHashSet::default(), vec![value]);
        while let Some(value) = pending.pop() {
            let Some(made) = self.func.def(value).filter(|_| seen.insert(value)) else { continue };
            match made.opcode {
                Opcode::Arange => return true,
                Opcode::ExpandDims
                | Opcode::Broadcast
                | Opcode::ExtS
                | Opcode::ExtU
                | Opcode::Trunc
                | Opcode::AssertFacts
                | Opcode::RemS
                | Opcode::RemU => pending.push(made.operand(0)),
                Opcode::Add | Opcode::Sub => pending.extend(made.uses()),
                _ => {}
            }
        }
        false
    }

    fn product(&mut self, inst: Inst, data: &InstData, result: Value) -> Axes {
        let (a, b) = (self.of(data.operand(0)), self.of(data.operand(1)));
        let rank = a.len();
        if rank < 2 || b.len() != rank {
            return self.unknown(result);
        }
        let (columns, rows) = (&a[rank - 1], &b[rank - 2]);
        if self.movers.are_apart(columns, rows) && self.told.insert(inst) {
            let message = format!(
                "the columns of the left operand go with {}, but the rows of the right one with {}",
                self.described(columns),
                self.described(rows),
            );
            self.found.push(report::finding(self.func, data.loc, Code::MixedAxes, message));
        }
        let mut axes = a;
        axes[rank - 1] = b[rank - 1].clone();
        axes
    }

    fn tell(&mut self, inst: Inst, axis: usize, (one, other): (&Moved, &Moved)) {
        if !self.told.insert(inst) {
            return;
        }
        let message = format!(
            "along axis {axis}, the elements of one tile go with {}, those of the other with {}",
            self.described(one),
            self.described(other),
        );
        let loc = self.func.insts[inst].loc;
        self.found.push(report::finding(self.func, loc, Code::MixedAxes, message));
    }

    /// What moves a position, for people.
    fn described(&self, moved: &Moved) -> String {
        let mut names: Vec<String> =
            moved.iter().flatten().map(|mover| self.name_of(*mover)).collect();
        names.sort();
        names.dedup();
        names.join(" and ")
    }

    fn name_of(&self, mover: Value) -> String {
        if let Some(name) = &self.func.values[mover].name {
            return format!("`{name}`");
        }
        match self.func.def(mover).map(|made| (made.opcode, &made.attrs)) {
            Some((Opcode::ProgramId, Attrs::Axis(axis))) => {
                format!("the program's position along axis {}", axis.axis)
            }
            Some(_) => "a part of the program's position".to_owned(),
            None => "the loop".to_owned(),
        }
    }

    fn branches(&mut self, data: &InstData) {
        for region in &data.regions {
            self.region(*region);
        }
        for (at, result) in data.results.iter().enumerate() {
            let ends = data.regions.iter().filter_map(|region| self.func.terminator(*region));
            let given: Vec<Value> = ends.filter_map(|end| end.uses().nth(at)).collect();
            let axes = self.joined(*result, &given);
            self.axes.insert(*result, axes);
        }
    }

    /// A loop of which it is not known what changes between its trips.
    fn open_loop(&mut self, data: &InstData) {
        let args = data.regions.iter().flat_map(|region| self.func.regions[*region].args.iter());
        for value in args.chain(&data.results) {
            let axes = self.unknown(*value);
            self.axes.insert(*value, axes);
        }
        for region in &data.regions {
            self.region(*region);
        }
    }

    /// A loop: what it carries is moved by what moves it at first, and by what moves it after a trip.
    fn counted_loop(&mut self, inst: Inst, data: &InstData) {
        let [region] = data.regions[..] else { return };
        let (func, inits) = (self.func, data.uses().skip(3).collect::<Vec<Value>>());
        let carried: Vec<Value> = func.regions[region].args.iter().skip(1).copied().collect();
        for (arg, init) in carried.iter().zip(&inits) {
            let axes = self.of(*init);
            self.axes.insert(*arg, axes);
        }
        // The first look is for what a trip leaves.
        let told = (self.found.len(), self.told.clone());
        self.region(region);
        self.found.truncate(told.0);
        self.told = told.1;
        let yielded: Vec<Value> =
            func.terminator(region).map(|end| end.uses().collect()).unwrap_or_default();
        for ((arg, init), end) in carried.iter().zip(&inits).zip(&yielded) {
            let mut axes = self.joined(*arg, &[*init, *end]);
            axes.iter_mut().for_each(|axis| self.forget(axis, inst));
            self.axes.insert(*arg, axes);
        }
        self.region(region);
        for ((result, init), end) in data.results.iter().zip(&inits).zip(&yielded) {
            let mut axes = self.joined(*result, &[*init, *end]);
            axes.iter_mut().for_each(|axis| self.forget(axis, inst));
            self.axes.insert(*result, axes);
        }
    }

    /// What counts the trips of a loop is another number in the next one.
    fn forget(&self, axis: &mut Moved, of: Inst) {
        if axis.iter().flatten().any(|mover| self.movers.counts(*mover, of)) {
            *axis = None;
        }
    }

    fn joined(&self, value: Value, given: &[Value]) -> Axes {
        if self.rank(value) == 0 {
            return Axes::new();
        }
        let still: Axes = smallvec![Some(FxHashSet::default()); self.rank(value)];
        given.iter().fold(still, |so_far, one| {
            so_far.iter().zip(&self.of(*one)).map(|(a, b)| union(a, b)).collect()
        })
    }
}

fn union(a: &Moved, b: &Moved) -> Moved {
    let (a, b) = (a.as_ref()?, b.as_ref()?);
    Some(a | b)
}
