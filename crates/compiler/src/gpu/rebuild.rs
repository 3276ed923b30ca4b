//! Writes a function anew at GPU level.
//!
//! In: a verified tile-level function and its [`Layouts`]. Out: the same computation, every tile
//! in a layout; where a user needs a value in another layout than its home, a `convert_layout`.
//! Values without home are written once per layout in which they are needed.
//!
//! A value is always written into the region that corresponds to the one that defined it, at the
//! region's present end. That place dominates every user: what asks for it is either later in
//! that region or in a region inside it whose owner has not been written yet. Cost: linear in the
//! function written.

use cranelift_entity::SecondaryMap;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;

use super::assign::Layouts;
use super::coalesce::{default_layout, held_by_all};
use super::{GpuTarget, LowerError, propagate};
use crate::ir::{
    Attrs, Builder, Effects, Elem, Function, Inst, InstData, LayoutId, Level, Opcode, Region, Type,
    Value, ValueDef,
};
use crate::layout::{Conversion, LinearLayout, plan_conversion};

/// Rebuilds `func` with `layouts`.
///
/// # Errors
/// When some tile has no layout.
pub fn rebuild(
    func: &Function,
    layouts: &Layouts,
    target: GpuTarget,
) -> Result<Function, LowerError> {
    let mut new = Function::new(func.name.clone(), Level::Gpu, func.options.clone());
    new.locs = func.locs.clone();
    new.files = func.files.clone();
    let mut owners = SecondaryMap::with_default(func.body);
    for (region, data) in &func.regions {
        data.insts.iter().for_each(|&inst| owners[inst] = region);
    }
    let mut rebuilder = Rebuilder {
        old: func,
        target,
        layouts,
        regions: SecondaryMap::with_default(new.body),
        new,
        owners,
        written: FxHashMap::default(),
        buffers: FxHashMap::default(),
        matrix_buffers: FxHashMap::default(),
    };
    for (param, &arg) in func.params.iter().zip(&func.regions[func.body].args) {
        let value = rebuilder.new.add_param(param.clone(), func.ty(arg).clone());
        rebuilder.record(arg, value);
    }
    rebuilder.region(func.body)?;
    rebuilder.terminate(func.body, &[])?;
    Ok(rebuilder.new)
}

pub(super) struct Rebuilder<'f> {
    pub(super) old: &'f Function,
    pub(super) target: GpuTarget,
    pub(super) layouts: &'f Layouts,
    pub(super) new: Function,
    /// New region of each old one that was begun.
    pub(super) regions: SecondaryMap<Region, Region>,
    /// Old region that holds an instruction.
    pub(super) owners: SecondaryMap<Inst, Region>,
    /// Every form in which an old value was written, the home or first one in front.
    written: FxHashMap<Value, SmallVec<[Value; 2]>>,
    /// Shared buffers that hold old values.
    pub(super) buffers: FxHashMap<Value, Value>,
    /// Shared buffers that hold old values as matrix instructions of warp groups read them, and
    /// the axis along which these must be contiguous.
    pub(super) matrix_buffers: FxHashMap<(Value, Option<usize>), Value>,
}

pub(super) type Written = Result<Value, LowerError>;

impl Rebuilder<'_> {
    pub(super) fn record(&mut self, old: Value, new: Value) {
        if self.new.values[new].name.is_none() {
            self.new.values[new].name = self.old.values[old].name.clone();
        }
        self.written.entry(old).or_default().push(new);
    }

    fn region(&mut self, region: Region) -> Result<(), LowerError> {
        for &inst in &self.old.regions[region].insts {
            self.inst(inst)?;
        }
        Ok(())
    }

    fn inst(&mut self, inst: Inst) -> Result<(), LowerError> {
        let data = &self.old.insts[inst];
        match data.opcode {
            Opcode::For | Opcode::While | Opcode::If => self.control(inst, data),
            Opcode::Load | Opcode::Store | Opcode::AtomicRmw | Opcode::AtomicCas => {
                let layout = match (data.opcode, data.results.first()) {
                    (Opcode::Load, Some(&result)) => self.layouts.home[result].as_ref(),
                    _ => self.layouts.work[inst].as_ref(),
                };
                self.uniform(inst, data, layout)
            }
            Opcode::Reduce | Opcode::Scan | Opcode::Sort => {
                self.uniform(inst, data, self.layouts.work[inst].as_ref())
            }
            Opcode::Dot => self.product(inst, data),
            // Two scalars of a pair are the same in all threads.
            Opcode::Split if !self.is_tile(data.results[0]) => {
                let pair = held_by_all(self.old, 2)?;
                self.uniform(inst, data, Some(&pair))
            }
            Opcode::Yield | Opcode::Condition | Opcode::Return => Ok(()),
            _ if data.results.iter().any(|&result| self.old.ty(result).is_tile()) => {
                self.tile_inst(inst, data)
            }
            _ => self.uniform(inst, data, None),
        }
    }

    /// Writes an instruction with tile results: at its home, else where a user wants it. What has
    /// neither waits until it is asked for, unless it has effects.
    fn tile_inst(&mut self, inst: Inst, data: &InstData) -> Result<(), LowerError> {
        let result = data.results[0];
        let home = self.layouts.home[result].as_ref();
        match home.or(self.layouts.demand[result].as_ref()) {
            Some(layout) => self.write_in(inst, layout),
            None if data.opcode.info().effects == Effects::Pure => Ok(()),
            None => {
                let layout = default_layout(self.old, self.old.ty(result).shape())?;
                self.write_in(inst, &layout)
            }
        }
    }

    /// Writes an instruction whose tile operands all are in `layout`, or each where it lives when
    /// there is none.
    fn uniform(
        &mut self,
        inst: Inst,
        data: &InstData,
        layout: Option<&LinearLayout>,
    ) -> Result<(), LowerError> {
        let mut operands = Vec::with_capacity(data.operands.len());
        for operand in &data.operands {
            operands.push(match (operand, layout) {
                (None, _) => None,
                (Some(value), Some(layout)) => Some(self.get(*value, layout)?),
                (Some(value), None) => Some(self.anywhere(*value)?),
            });
        }
        let result_layout = match (layout, data.opcode) {
            (Some(layout), Opcode::Reduce | Opcode::Sort)
                if data.results.iter().any(|&r| self.is_tile(r)) =>
            {
                propagate::to_result(self.old, data, 0, layout)?
            }
            (layout, _) => layout.cloned(),
        };
        self.emit(inst, data, operands, result_layout.as_ref())
    }

    fn is_tile(&self, value: Value) -> bool {
        self.old.ty(value).is_tile()
    }

    /// Writes an instruction with its results in `layout`, operands as that implies.
    fn write_in(&mut self, inst: Inst, layout: &LinearLayout) -> Result<(), LowerError> {
        self.write_from(inst, layout, Self::get)
    }

    /// The same, of operands as `read` finds them in a layout.
    pub(super) fn write_from(
        &mut self,
        inst: Inst,
        layout: &LinearLayout,
        read: impl Fn(&mut Self, Value, &LinearLayout) -> Written,
    ) -> Result<(), LowerError> {
        let data = &self.old.insts[inst];
        if let Some(near) = self.of_parts(data, layout)? {
            self.write_from(inst, &near, read)?;
            let id = self.new.intern_layout(layout.clone());
            return self.convert(data.result(), id);
        }
        let mut operands = Vec::with_capacity(data.operands.len());
        for (slot, operand) in data.operands.iter().enumerate() {
            let asked = propagate::to_operand(self.old, data, slot, layout)?;
            operands.push(match (operand, asked) {
                (None, _) => None,
                (Some(value), Some(asked)) => Some(read(self, *value, &asked)?),
                (Some(value), None) => Some(self.anywhere(*value)?),
            });
        }
        self.emit(inst, data, operands, Some(layout))
    }

    /// The layout in which tiles are put together without moving elements, where that is not `layout`: each thread has
    /// the parts of its elements, those of pairs next to each other.
    fn of_parts(
        &self,
        data: &InstData,
        layout: &LinearLayout,
    ) -> Result<Option<LinearLayout>, LowerError> {
        let puts_together = matches!(data.opcode, Opcode::Join | Opcode::Cat);
        if !puts_together || !self.is_tile(data.operand(0)) {
            return Ok(None);
        }
        let near = match data.opcode {
            Opcode::Join if layout.split_axis().is_none() => layout.with_pairs_in_registers(),
            _ => Some(layout.clone()),
        };
        let parts = near.map(|near| propagate::to_operand(self.old, data, 0, &near)).transpose()?;
        let parts = match parts.flatten() {
            Some(parts) => parts,
            None => default_layout(self.old, self.old.ty(data.operand(0)).shape())?,
        };
        let whole = propagate::to_result(self.old, data, 0, &parts)?;
        Ok(whole.filter(|whole| whole != layout))
    }

    pub(super) fn emit(
        &mut self,
        inst: Inst,
        data: &InstData,
        operands: Vec<Option<Value>>,
        layout: Option<&LinearLayout>,
    ) -> Result<(), LowerError> {
        let layout = layout.map(|layout| self.new.intern_layout(layout.clone()));
        let types: Vec<Type> =
            data.results.iter().map(|&result| in_layout(self.old.ty(result), layout)).collect();
        let mut regions: SmallVec<[Region; 2]> = SmallVec::new();
        for &region in &data.regions {
            regions.push(self.scalar_region(region)?);
        }
        self.emit_typed(inst, operands, types, regions);
        Ok(())
    }

    /// Writes what takes the place of `inst`, and notes its results as that one's.
    fn emit_typed(
        &mut self,
        inst: Inst,
        operands: Vec<Option<Value>>,
        types: Vec<Type>,
        regions: SmallVec<[Region; 2]>,
    ) {
        let data = &self.old.insts[inst];
        let home = self.regions[self.owners[inst]];
        let mut builder = Builder::new(&mut self.new, home);
        builder.set_loc(data.loc);
        let new = builder.emit_inst(data.opcode, operands, data.attrs.clone(), types, regions);
        let results = self.new.insts[new].results.clone();
        for (&old, new) in data.results.iter().zip(results) {
            self.record(old, new);
        }
    }

    /// Copies a region over scalars (a combination) as it is.
    fn scalar_region(&mut self, region: Region) -> Result<Region, LowerError> {
        let new = self.new.regions.push(Default::default());
        self.regions[region] = new;
        for &arg in &self.old.regions[region].args {
            let value = self.new.add_argument(new, self.old.ty(arg).clone());
            self.written.remove(&arg);
            self.record(arg, value);
        }
        // A combination may be written once per layout, so that its values are forgotten first.
        self.forget(region);
        self.region(region)?;
        self.terminate(region, &[])?;
        Ok(new)
    }

    fn forget(&mut self, region: Region) {
        for &inst in &self.old.regions[region].insts {
            for result in &self.old.insts[inst].results {
                self.written.remove(result);
            }
        }
    }

    /// Writes the terminator of an old region, tile operands in `layouts` by operand position.
    fn terminate(
        &mut self,
        region: Region,
        layouts: &[Option<LinearLayout>],
    ) -> Result<(), LowerError> {
        let Some(&last) = self.old.regions[region].insts.last() else { return Ok(()) };
        let data = &self.old.insts[last];
        let mut operands = Vec::with_capacity(data.operands.len());
        for (at, value) in data.uses().enumerate() {
            operands.push(Some(match layouts.get(at) {
                Some(Some(layout)) => self.get(value, layout)?,
                _ => self.anywhere(value)?,
            }));
        }
        self.emit(last, data, operands, None)
    }

    fn control(&mut self, inst: Inst, data: &InstData) -> Result<(), LowerError> {
        let homes = |values: &[Value]| -> Vec<Option<LinearLayout>> {
            values.iter().map(|&value| self.layouts.home[value].clone()).collect()
        };
        let results = homes(&data.results);
        let head = self.old.regions[data.regions[0]].args.clone();
        let fixed = if data.opcode == Opcode::For { 3 } else { 0 };
        // By operand: three scalar bounds have no home, then one entry per carried value.
        let mut wanted = vec![None; fixed];
        wanted.extend(homes(&head[usize::from(fixed > 0)..]));
        let mut operands = Vec::with_capacity(data.operands.len());
        for (at, value) in data.uses().enumerate() {
            operands.push(Some(match wanted.get(at) {
                Some(Some(layout)) => self.get(value, layout)?,
                _ => self.anywhere(value)?,
            }));
        }
        let carried = wanted.split_off(fixed);
        let mut passed = vec![None];
        passed.extend(results.iter().cloned());
        let ends: [&[Option<LinearLayout>]; 2] = match data.opcode {
            Opcode::For => [&carried, &[]],
            Opcode::If => [&results, &results],
            _ => [&passed, &carried],
        };
        let mut regions: SmallVec<[Region; 2]> = SmallVec::new();
        for (&region, end) in data.regions.iter().zip(ends) {
            regions.push(self.control_region(region, end)?);
        }
        self.emit_control(inst, data, operands, regions, &results)
    }

    fn control_region(
        &mut self,
        region: Region,
        end: &[Option<LinearLayout>],
    ) -> Result<Region, LowerError> {
        let new = self.new.regions.push(Default::default());
        self.regions[region] = new;
        for &arg in &self.old.regions[region].args {
            let layout = self.layouts.home[arg].clone();
            let layout = layout.map(|layout| self.new.intern_layout(layout));
            let value = self.new.add_argument(new, in_layout(self.old.ty(arg), layout));
            self.record(arg, value);
        }
        self.region(region)?;
        self.terminate(region, end)?;
        Ok(new)
    }

    fn emit_control(
        &mut self,
        inst: Inst,
        data: &InstData,
        operands: Vec<Option<Value>>,
        regions: SmallVec<[Region; 2]>,
        results: &[Option<LinearLayout>],
    ) -> Result<(), LowerError> {
        let mut types = Vec::with_capacity(results.len());
        for (&result, layout) in data.results.iter().zip(results) {
            let layout = layout.clone().map(|layout| self.new.intern_layout(layout));
            types.push(in_layout(self.old.ty(result), layout));
        }
        self.emit_typed(inst, operands, types, regions);
        Ok(())
    }

    /// The value in any layout: as it was written first, else in the default layout.
    pub(super) fn anywhere(&mut self, value: Value) -> Written {
        if let Some(&first) = self.written.get(&value).and_then(|forms| forms.first()) {
            return Ok(first);
        }
        let layout = match &self.layouts.demand[value] {
            Some(layout) => layout.clone(),
            None => default_layout(self.old, self.old.ty(value).shape())?,
        };
        self.get(value, &layout)
    }

    /// The value in `layout`; a scalar as it is.
    pub(super) fn get(&mut self, value: Value, layout: &LinearLayout) -> Written {
        if !self.is_tile(value) {
            return self.anywhere(value);
        }
        let id = self.new.intern_layout(layout.clone());
        if let Some(form) = self.form_in(value, id) {
            return Ok(form);
        }
        match self.old.values[value].def {
            ValueDef::Result(inst, _)
                if self.is_repeatable(value, inst) || self.widens_behind_shuffles(inst, layout) =>
            {
                self.write_in(inst, layout)?;
            }
            ValueDef::Result(inst, _) if self.is_smaller_before(value, layout) => {
                self.write_from(inst, layout, Self::get_early)?;
            }
            _ => self.convert(value, id)?,
        }
        self.form_in(value, id).ok_or_else(|| LowerError::Unsupported {
            opcode: Opcode::ConvertLayout,
            reason: format!("{value} cannot be brought into the layout asked for"),
        })
    }

    pub(super) fn form_in(&self, value: Value, layout: LayoutId) -> Option<Value> {
        let forms = self.written.get(&value)?;
        forms.iter().copied().find(|&form| self.new.ty(form).layout() == Some(layout))
    }

    /// Whether to compute the value again rather than to convert it: it has no home, and it was
    /// not written yet or is cheap.
    fn is_repeatable(&self, value: Value, inst: Inst) -> bool {
        let data = &self.old.insts[inst];
        let free = self.layouts.home[value].is_none() && data.opcode.is_pure();
        free && (!self.written.contains_key(&value) || is_cheap(data))
    }

    /// Whether to move what `inst` widens to `layout`, and to widen it there: several narrow elements
    /// share a shuffle.
    fn widens_behind_shuffles(&self, inst: Inst, layout: &LinearLayout) -> bool {
        let data = &self.old.insts[inst];
        let is_widening = matches!(data.opcode, Opcode::FExt | Opcode::ExtS | Opcode::ExtU);
        let source = data.operand_opt(0).filter(|_| is_widening);
        let Some(home) = source.and_then(|source| self.layouts.home[source].as_ref()) else {
            return false;
        };
        let bits = source.and_then(|source| self.old.ty(source).elem()).map_or(8, Elem::bits);
        let plan = plan_conversion(home, layout, bits.max(8) as usize);
        matches!(plan, Ok(Conversion::WarpShuffle(_)))
    }

    /// Whether to move what `value` is made of, element by element, to `layout`, since it takes fewer bytes,
    /// and to make it there, which takes no more instructions where threads hold no more elements. On an
    /// H100, 4-bit numbers that become bfloat16 take 0.996 times as long so, an atomic maximum of which indices
    /// move instead of addresses 0.987; a filter whose weights each thread would widen for itself takes 1.02.
    fn is_smaller_before(&self, value: Value, layout: &LinearLayout) -> bool {
        /// Values that are looked at; what follows from more of them is moved as it is.
        const MOST: usize = 64;
        let bits = |value: Value| {
            let ty = self.old.ty(value);
            ty.numel() * ty.elem().map_or(0, Elem::bits).max(8) as usize
        };
        let home = self.layouts.home[value].as_ref();
        if home.is_none_or(|home| home.elements_per_thread() < layout.elements_per_thread()) {
            return false;
        }
        let (mut seen, mut moved) = (IndexSet::<Value, FxBuildHasher>::from_iter([value]), 0);
        let mut at = 0;
        while at < MOST
            && let Some(&value) = seen.get_index(at)
        {
            at += 1;
            match self.remade(value) {
                Some(inst) => {
                    let uses = self.old.insts[inst].uses();
                    seen.extend(uses.filter(|&value| self.layouts.home[value].is_some()));
                }
                None => moved += bits(value),
            }
        }
        seen.len() <= MOST && moved < bits(value)
    }

    /// The value in `layout`, made there of what it is made of, element by element.
    fn get_early(&mut self, value: Value, layout: &LinearLayout) -> Written {
        if self.layouts.home[value].is_some()
            && let Some(inst) = self.remade(value)
        {
            let id = self.new.intern_layout(layout.clone());
            if self.form_in(value, id).is_none() {
                self.write_from(inst, layout, Self::get_early)?;
            }
        }
        self.get(value, layout)
    }

    /// What makes `value` of single elements of others, at little cost.
    fn remade(&self, value: Value) -> Option<Inst> {
        let ValueDef::Result(inst, _) = self.old.values[value].def else { return None };
        let data = &self.old.insts[inst];
        let passes = propagate::is_elementwise(data.opcode)
            || matches!(data.opcode, Opcode::Reshape | Opcode::Join);
        (passes && data.opcode.is_pure() && is_cheap(data)).then_some(inst)
    }

    fn convert(&mut self, value: Value, layout: LayoutId) -> Result<(), LowerError> {
        let source = self.anywhere(value)?;
        let ty = in_layout(self.old.ty(value), Some(layout));
        let region = match self.old.values[value].def {
            ValueDef::Result(inst, _) => self.owners[inst],
            ValueDef::Argument(region, _) => region,
        };
        let loc = self.old.def(value).map(|data| data.loc);
        let home = self.regions[region];
        let mut builder = Builder::new(&mut self.new, home);
        if let Some(loc) = loc {
            builder.set_loc(loc);
        }
        let converted = builder.emit_typed(Opcode::ConvertLayout, &[source], Attrs::None, ty);
        self.record(value, converted);
        Ok(())
    }
}

fn in_layout(ty: &Type, layout: Option<LayoutId>) -> Type {
    match layout {
        Some(layout) => ty.with_layout(layout),
        None => ty.clone(),
    }
}

/// Operations of an instruction or two per element.
pub(super) fn is_cheap(data: &InstData) -> bool {
    let expensive = matches!(
        data.opcode,
        Opcode::DivS
            | Opcode::DivU
            | Opcode::RemS
            | Opcode::RemU
            | Opcode::FDiv
            | Opcode::FDivRn
            | Opcode::FRem
            | Opcode::Extern
            | Opcode::InlineAsm
    ) || (Opcode::Exp..=Opcode::Erf).contains(&data.opcode);
    !expensive
}
