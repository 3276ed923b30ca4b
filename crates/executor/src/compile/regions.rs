//! Operations with a region that is applied to elements: reductions, scans, maps.

use rustc_hash::FxHashSet;
use tile_compiler::ir::{Attrs, InstData, Opcode, Region, Value, ValueDef};

use super::super::collective::{self, Capture, Combiner, Known, MapElements};
use super::super::frame::Slot;
use super::super::lanes::{map1, with_word};
use super::super::program::{Block, Step};
use super::super::shape::{Act, Along};
use super::{Compilation, CompileError, Compiler};

impl Compiler<'_> {
    /// A reduction or a scan.
    pub(super) fn combine(&mut self, data: &InstData) -> Compilation<Act> {
        let inputs: Vec<Value> = data.uses().collect();
        let shape = self.shape(inputs[0]);
        let (axis, scan) = match &data.attrs {
            Attrs::Axis(axis) => (axis.axis, None),
            Attrs::Scan(scan) => (scan.axis, Some(scan.reverse)),
            _ => return Err(CompileError::Malformed("a reduction without axis".to_owned())),
        };
        let along = Along::new(shape, axis);
        let known = self.known_combination(data.regions[0]);
        if let (Some(known), &[input], &[result]) = (known, inputs.as_slice(), &data.results[..]) {
            let (from, out, scalar) = (self.slot(input), self.slot(result), self.scalar(input));
            match scan {
                _ if !collective::is_folded(scalar) => {}
                Some(reverse) => {
                    let slots = (from, out);
                    return Ok(collective::accumulate_known(known, scalar, slots, along, reverse));
                }
                None => return Ok(collective::fold_known(known, scalar, from, out, along)),
            }
        }
        let lanes = if scan.is_some() { along.reduced() } else { along.numel().max(2) / 2 };
        let count = inputs.len();
        let inputs = self.slots(inputs);
        // Results are written while the region runs again: they get no register that it has left.
        let outs = self.slots(data.results.iter().copied());
        let combiner = self.combiner(data.regions[0], count, lanes)?;
        Ok(match scan {
            Some(reverse) => Box::new(move |frame, machine| {
                combiner.scan(frame, machine, (&inputs, &outs), along, reverse)
            }),
            None => Box::new(move |frame, machine| {
                combiner.reduce(frame, machine, &inputs, &outs, along)
            }),
        })
    }

    /// The name of what a region computes, if it is one operation on its two arguments.
    fn known_combination(&self, region: Region) -> Option<Known> {
        let inst = self.func.combination(region)?;
        let propagate = matches!(&inst.attrs, Attrs::NanRule(rule) if rule.propagate);
        Some(match inst.opcode {
            Opcode::Add => Known::Add,
            Opcode::Mul => Known::Mul,
            Opcode::And => Known::And,
            Opcode::Or => Known::Or,
            Opcode::Xor => Known::Xor,
            Opcode::MinS => Known::MinS,
            Opcode::MaxS => Known::MaxS,
            Opcode::MinU => Known::MinU,
            Opcode::MaxU => Known::MaxU,
            Opcode::FAdd => Known::FAdd,
            Opcode::FMul => Known::FMul,
            Opcode::FMin => Known::FMin(propagate),
            Opcode::FMax => Known::FMax(propagate),
            _ => return None,
        })
    }

    fn combiner(&mut self, region: Region, inputs: usize, lanes: usize) -> Compilation<Combiner> {
        let lanes = lanes.max(1);
        let applied = self.applied_region(region, lanes)?;
        let args = &self.func.regions[region].args;
        let sizes =
            args.iter().take(inputs).map(|&arg| self.scalar(arg).bytes() as usize).collect();
        Ok(Combiner {
            left: applied.args[..inputs].to_vec(),
            right: applied.args[inputs..].to_vec(),
            body: applied.body,
            captures: applied.captures,
            yields: applied.yields,
            sizes,
            vector: applied.vector,
        })
    }

    /// Compiles a region that is applied to up to `lanes` elements at once.
    fn applied_region(&mut self, region: Region, lanes: usize) -> Compilation<Applied> {
        let outer_lanes = std::mem::replace(&mut self.lanes, lanes);
        let outer_slots = self.slots.clone();
        let args = self.slots(self.func.regions[region].args.iter().copied());
        let captures = self.capture(region, lanes);
        let vector = self.func.regions[region].insts.iter().all(|&inst| {
            let data = &self.func.insts[inst];
            let scalars = data.uses().chain(data.results.iter().copied());
            data.regions.is_empty() && scalars.into_iter().all(|value| self.shape(value).is_empty())
        });
        let mut body = self.block(region)?;
        let yields = self.own_yields(region, lanes, &mut body);
        self.lanes = outer_lanes;
        self.slots = outer_slots;
        Ok(Applied { args, captures, body, yields, vector })
    }

    /// Gives every scalar from outside that the region uses a register for all lanes.
    fn capture(&mut self, region: Region, lanes: usize) -> Vec<Capture> {
        let mut inside: FxHashSet<Value> = FxHashSet::default();
        let mut used = Vec::new();
        self.values_of(region, &mut inside, &mut used);
        let mut captures: Vec<Capture> = Vec::new();
        let mut captured = FxHashSet::default();
        for value in used {
            let outside = !inside.contains(&value) && self.shape(value).is_empty();
            if outside && captured.insert(value) {
                let from = self.slot(value);
                let size = self.scalar(value).bytes() as usize;
                let to = self.fresh(lanes * size);
                self.slots.insert(value, to);
                captures.push(Capture { from, to, size });
            }
        }
        captures
    }

    fn values_of(&self, region: Region, inside: &mut FxHashSet<Value>, used: &mut Vec<Value>) {
        inside.extend(self.func.regions[region].args.iter().copied());
        for &inst in &self.func.regions[region].insts {
            let data = &self.func.insts[inst];
            inside.extend(data.results.iter().copied());
            used.extend(data.uses());
            data.regions.iter().for_each(|&inner| self.values_of(inner, inside, used));
        }
    }

    /// The registers of a region's yields: each its own, none that of an argument.
    fn own_yields(&mut self, region: Region, lanes: usize, body: &mut Block) -> Vec<Slot> {
        let mut seen = FxHashSet::default();
        let mut yields = Vec::new();
        for value in self.yielded(region) {
            let from = self.slot(value);
            let result = match self.func.values[value].def {
                ValueDef::Result(inst, _) => self.func.regions[region].insts.contains(&inst),
                ValueDef::Argument(..) => false,
            };
            if result && seen.insert(value) {
                yields.push(from);
                continue;
            }
            let size = self.scalar(value).bytes() as usize;
            let out = self.fresh(lanes * size);
            let run = with_word!(self.scalar(value), T => {
                map1::<T, T>(from, |element| element)
            });
            body.steps.push(Step::Lanes { out, numel: 1, run, watch: None });
            yields.push(out);
        }
        yields
    }

    pub(super) fn map_elements(&mut self, data: &InstData) -> Compilation<Act> {
        let pack = match &data.attrs {
            Attrs::Pack(pack) => pack.pack.max(1) as usize,
            _ => 1,
        };
        let inputs: Vec<Value> = data.uses().collect();
        let numel = self.numel(data.results.first().copied().unwrap_or(inputs[0]));
        // As for reductions, before the region leaves registers.
        let results = self.slots(data.results.iter().copied());
        let applied = self.applied_region(data.regions[0], (numel / pack).max(1))?;
        let sizes = |compiler: &Self, values: &[Value]| {
            values.iter().map(|&value| compiler.scalar(value).bytes() as usize).collect()
        };
        let sizes = (sizes(self, &inputs), sizes(self, &data.results));
        let grouped = |slots: Vec<Slot>, parts: &[Slot]| -> Vec<(Slot, Vec<Slot>)> {
            slots.into_iter().zip(parts.chunks(pack).map(<[Slot]>::to_vec)).collect()
        };
        let map = MapElements {
            inputs: grouped(self.slots(inputs), &applied.args),
            outputs: grouped(results, &applied.yields),
            body: applied.body,
            captures: applied.captures,
            sizes,
            numel,
            pack,
            vector: applied.vector,
        };
        Ok(Box::new(move |frame, machine| map.run(frame, machine)))
    }
}

/// A region that is applied to many elements at once, compiled.
struct Applied {
    args: Vec<Slot>,
    captures: Vec<Capture>,
    body: Block,
    yields: Vec<Slot>,
    vector: bool,
}
