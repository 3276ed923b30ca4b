//! The specification of well-formed IR, as a check.
//!
//! A function is well formed when:
//!
//! 1. *Structure.* Every region ends in exactly one terminator and has none before its end. The
//!    body ends in `return`; the first region of `while` in `condition`; every other region in
//!    `yield`.
//! 2. *Operands.* Required slots are filled, no slot is filled beyond the table's, attributes are
//!    of the table's kind, the number of regions is the table's.
//! 3. *Dominance.* An operand is an argument of an enclosing region, or a result of an earlier
//!    instruction of the same or an enclosing region.
//! 4. *Shapes.* Extents are powers of two, and a tile has at most 2^20 elements.
//! 5. *Types.* Result types follow the table's rule; operations whose rule is explicit satisfy the
//!    relation that their documentation states (`check_explicit`).
//! 6. *Control flow.* Region arguments, yielded values, inits and results agree in type.
//! 7. *Levels.* At tile level no type has a layout and no operation of the GPU group occurs; at
//!    GPU level every tile has a layout whose outputs are the tile's extents, and pairs that are
//!    put together or taken apart are neighbors in a thread's registers.
//! 8. *Parameters.* The body has one argument per parameter, all scalars.
//!
//! An error here is always a bug of the stage before, never of the user.

use rustc_hash::FxHashSet;
use thiserror::Error;

use super::{
    Arity, Attrs, BufferType, Elem, Function, Inst, InstData, Level, Opcode, Region, ResultRule,
    Scalar, Type, Value,
};
use crate::layout::Dim;

/// The most elements that a tile may have, as in Triton.
pub(crate) const MAX_TILE_ELEMENTS: usize = 1 << 20;

/// A function that was found well formed. Later stages ask for it, so that none can be reached
/// with unchecked IR.
#[derive(Debug, Clone, Copy)]
pub struct Verified<'f>(&'f Function);

impl<'f> Verified<'f> {
    /// The function.
    pub fn function(self) -> &'f Function {
        self.0
    }
}

impl std::ops::Deref for Verified<'_> {
    type Target = Function;

    fn deref(&self) -> &Function {
        self.0
    }
}

/// A violated invariant.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{message}", .inst.map(|(inst, opcode)| format!("{inst} ({opcode}): ")).unwrap_or_default())]
pub struct VerifyError {
    /// The instruction concerned, if one is.
    pub inst: Option<(Inst, Opcode)>,
    /// What does not hold.
    pub message: String,
}

/// Checks every invariant.
///
/// # Errors
/// All violations found, in program order.
pub fn verify(func: &Function) -> Result<Verified<'_>, Vec<VerifyError>> {
    let mut verifier = Verifier { func, errors: Vec::new(), visible: FxHashSet::default() };
    verifier.params();
    verifier.region(func.body, &[Opcode::Return]);
    if verifier.errors.is_empty() { Ok(Verified(func)) } else { Err(verifier.errors) }
}

type Check = Result<(), String>;

struct Verifier<'f> {
    func: &'f Function,
    errors: Vec<VerifyError>,
    visible: FxHashSet<Value>,
}

impl Verifier<'_> {
    fn params(&mut self) {
        let args = &self.func.regions[self.func.body].args;
        let scalars = args.iter().all(|&arg| matches!(self.func.ty(arg), Type::Scalar(_)));
        if args.len() != self.func.params.len() || !scalars {
            let message = "the body needs one scalar argument per parameter".to_owned();
            self.errors.push(VerifyError { inst: None, message });
        }
    }

    fn region(&mut self, region: Region, terminators: &[Opcode]) {
        let data = &self.func.regions[region];
        let outer = self.visible.clone();
        self.visible.extend(data.args.iter().copied());
        for &arg in &data.args {
            self.report(None, self.check_type(self.func.ty(arg)));
        }
        let last = data.insts.len().wrapping_sub(1);
        for (at, &inst) in data.insts.iter().enumerate() {
            let opcode = self.func.insts[inst].opcode;
            let placed = match (opcode.is_terminator(), at == last) {
                (true, false) => Err("a terminator before the end of its region".to_owned()),
                (true, true) if !terminators.contains(&opcode) => {
                    Err(format!("this region cannot end in `{opcode}`"))
                }
                _ => Ok(()),
            };
            self.report(Some(inst), placed);
            self.inst(inst);
        }
        if self.func.terminator(region).is_none() {
            let message = format!("{region} does not end in a terminator");
            self.errors.push(VerifyError { inst: None, message });
        }
        self.visible = outer;
    }

    fn inst(&mut self, inst: Inst) {
        let data = &self.func.insts[inst];
        let form = self.check_form(data);
        let formed = form.is_ok();
        self.report(Some(inst), form);
        for (at, &region) in data.regions.iter().enumerate() {
            let end = match (data.opcode, at) {
                (Opcode::While, 0) => Opcode::Condition,
                _ => Opcode::Yield,
            };
            self.region(region, &[end]);
        }
        if formed {
            let checks = self.check_results(data).and_then(|()| self.check_level(data));
            self.report(Some(inst), checks);
        }
        self.visible.extend(data.results.iter().copied());
    }

    fn report(&mut self, inst: Option<Inst>, check: Check) {
        if let Err(message) = check {
            let inst = inst.map(|inst| (inst, self.func.insts[inst].opcode));
            self.errors.push(VerifyError { inst, message });
        }
    }

    /// Invariants 2 and 3.
    fn check_form(&self, data: &InstData) -> Check {
        let info = data.opcode.info();
        ensure(data.attrs.kind() == info.attrs, || "attributes of the wrong kind".to_owned())?;
        ensure(data.regions.len() == info.regions, || format!("needs {} regions", info.regions))?;
        let fixed = info.operands.iter().filter(|slot| slot.arity != Arity::Rest).count();
        let takes_rest = fixed < info.operands.len();
        let count = data.operands.len();
        ensure(count == fixed || (takes_rest && count > fixed), || {
            format!("{count} operand slots where the table has {fixed}")
        })?;
        for (at, operand) in data.operands.iter().enumerate() {
            let optional = info.operands.get(at).is_some_and(|s| s.arity == Arity::Optional);
            ensure(operand.is_some() || optional, || format!("operand {at} is missing"))?;
        }
        let hidden = data.uses().find(|value| !self.visible.contains(value));
        match hidden {
            Some(value) => Err(format!("{value} is not defined here")),
            None => Ok(()),
        }
    }

    /// Invariant 4 and the part of 7 that concerns types.
    fn check_type(&self, ty: &Type) -> Check {
        let powers = ty.shape().iter().all(|extent| extent.is_power_of_two());
        ensure(powers, || format!("{ty}: extents must be powers of two"))?;
        ensure(ty.numel() <= MAX_TILE_ELEMENTS, || format!("{ty}: too many elements"))?;
        match (self.func.level, ty) {
            (Level::Tile, Type::Buffer(_) | Type::Token | Type::TensorMap) => {
                Err(format!("{ty} at tile level"))
            }
            (Level::Tile, _) => ensure(ty.layout().is_none(), || format!("{ty} at tile level")),
            (Level::Gpu, Type::Tile(_)) => self.check_layout(ty),
            (Level::Gpu, _) => Ok(()),
        }
    }

    fn check_layout(&self, ty: &Type) -> Check {
        let id = ty.layout().ok_or_else(|| format!("{ty} needs a layout at GPU level"))?;
        let layout = self.func.layouts.get(id).ok_or_else(|| format!("no layout {id}"))?;
        let fits = ty.shape().iter().enumerate().all(|(axis, extent)| {
            layout.output_bits(Dim::Axis(axis as u8)) == extent.trailing_zeros()
        });
        ensure(fits && layout.outputs().len() == ty.shape().len(), || {
            format!("{id} does not cover {ty}")
        })
    }

    /// Invariant 7 for operations.
    fn check_level(&self, data: &InstData) -> Check {
        let gpu_only = data.opcode >= Opcode::ConvertLayout;
        ensure(!gpu_only || self.func.level == Level::Gpu, || "at tile level".to_owned())?;
        self.check_pairs(data)
    }

    /// Pairs are put together and taken apart within threads, where their elements are next to each other.
    fn check_pairs(&self, data: &InstData) -> Check {
        let (half, whole) = match data.opcode {
            Opcode::Join => (data.operand(0), data.result()),
            Opcode::Split => (data.results[0], data.operand(0)),
            _ => return Ok(()),
        };
        let layout = |value: Value| self.func.ty(value).layout().map(|id| &self.func.layouts[id]);
        let (Some(half), Some(whole)) = (layout(half), layout(whole)) else { return Ok(()) };
        ensure(half.join_axis().as_ref() == Ok(whole), || {
            "its pairs are not in neighboring registers".to_owned()
        })
    }

    /// Invariants 5 and 6.
    fn check_results(&self, data: &InstData) -> Check {
        for &result in &data.results {
            self.check_type(self.func.ty(result))?;
        }
        let operands: Vec<&Type> = data.uses().map(|value| self.func.ty(value)).collect();
        let results: Vec<&Type> = data.results.iter().map(|&v| self.func.ty(v)).collect();
        let one = || match results.as_slice() {
            [result] => Ok(*result),
            _ => Err("needs exactly one result".to_owned()),
        };
        match data.opcode.info().result {
            ResultRule::None => {
                ensure(results.is_empty(), || "has no result".to_owned())?;
                check_bulk(data.opcode, &operands)
            }
            ResultRule::SameInt => same(&operands, one()?, "integers", |elem| elem.is_int()),
            ResultRule::SameFloat => same(&operands, one()?, "floats", |elem| elem.is_float()),
            ResultRule::Same => same(&operands, one()?, "elements", |_| true),
            ResultRule::Index => {
                ensure(*one()? == Type::scalar(Scalar::I32), || "gives an i32".to_owned())
            }
            ResultRule::Bool => {
                same(&operands, operands[0], "elements", |_| true)?;
                let expected = operands[0].with_elem(Scalar::I1);
                ensure(*one()? == expected, || format!("gives {expected}"))
            }
            ResultRule::Select => check_select(&operands, one()?),
            ResultRule::Cast => check_cast(data.opcode, operands[0], one()?),
            ResultRule::Pointer => check_pointer(&operands, one()?),
            ResultRule::Explicit => self.check_explicit(data, &operands, &results),
        }
    }

    fn check_explicit(&self, data: &InstData, operands: &[&Type], results: &[&Type]) -> Check {
        match data.opcode {
            Opcode::For | Opcode::While | Opcode::If => self.check_control(data, results),
            Opcode::Reduce | Opcode::Scan | Opcode::MapElements => {
                self.check_elementwise_region(data, operands, results)
            }
            Opcode::Split => {
                let halves = results.len() == 2 && results[0] == results[1];
                ensure(halves, || "gives two results of one type".to_owned())?;
                check_numel(operands[0].numel(), results[0].numel() * 2)
            }
            Opcode::InlineAsm => check_asm(data, operands, results),
            Opcode::LocalAlloc => Ok(()),
            Opcode::AsyncCommit | Opcode::AsyncWait | Opcode::AsyncCopy => {
                ensure(results == [&Type::Token], || "gives a token".to_owned())
            }
            _ => match results {
                [result] => check_one(data, operands, result),
                _ => Err("needs exactly one result".to_owned()),
            },
        }
    }

    fn types_of(&self, values: impl IntoIterator<Item = Value>) -> Vec<&Type> {
        values.into_iter().map(|value| self.func.ty(value)).collect()
    }

    fn yielded(&self, region: Region, skip: usize) -> Vec<&Type> {
        let values = self.func.terminator(region).map(|inst| inst.uses().skip(skip));
        values.map(|values| self.types_of(values)).unwrap_or_default()
    }

    fn check_control(&self, data: &InstData, results: &[&Type]) -> Check {
        let arguments = |region: Region, skip: usize| {
            self.types_of(self.func.regions[region].args.iter().copied().skip(skip))
        };
        let agree = |what: &str, left: &[&Type], right: &[&Type]| {
            ensure(left == right, || format!("{what} disagree in type"))
        };
        match data.opcode {
            Opcode::If => {
                let condition = self.func.ty(data.operand(0));
                let scalar = *condition == Type::scalar(Scalar::I1);
                ensure(scalar, || "the condition is a scalar i1".to_owned())?;
                agree("then-values and results", &self.yielded(data.regions[0], 0), results)?;
                agree("else-values and results", &self.yielded(data.regions[1], 0), results)
            }
            Opcode::For => {
                let bounds = self.types_of(data.uses().take(3));
                let index = arguments(data.regions[0], 0);
                let one_type = bounds.iter().all(|ty| Some(ty) == index.first());
                ensure(one_type, || "bounds, step and index have one type".to_owned())?;
                let inits = self.types_of(data.uses().skip(3));
                agree("inits and results", &inits, results)?;
                agree("inits and arguments", &inits, &arguments(data.regions[0], 1))?;
                agree("yielded values and results", &self.yielded(data.regions[0], 0), results)
            }
            _ => {
                let inits = self.types_of(data.uses());
                let [before, after] = [data.regions[0], data.regions[1]];
                agree("inits and arguments", &inits, &arguments(before, 0))?;
                agree("passed values and results", &self.yielded(before, 1), results)?;
                agree("passed values and arguments", results, &arguments(after, 0))?;
                agree("yielded values and inits", &self.yielded(after, 0), &inits)
            }
        }
    }

    fn check_elementwise_region(
        &self,
        data: &InstData,
        operands: &[&Type],
        results: &[&Type],
    ) -> Check {
        let region = data.regions[0];
        let args = self.types_of(self.func.regions[region].args.iter().copied());
        let yielded = self.yielded(region, 0);
        let scalar_of = |ty: &&Type| ty.elem().map(Type::Scalar);
        let copies = match &data.attrs {
            Attrs::Pack(pack) => pack.pack as usize,
            _ => 2,
        };
        ensure(args.len() == operands.len() * copies, || {
            format!("the region takes {} arguments", operands.len() * copies)
        })?;
        let result_elems: Vec<_> = results.iter().map(scalar_of).collect();
        let yields = yielded.iter().map(|ty| Some((*ty).clone())).collect::<Vec<_>>();
        if let Attrs::Pack(_) = data.attrs {
            return ensure(yields.len() == results.len() * copies, || {
                "the region yields one value per result and element".to_owned()
            });
        }
        ensure(yields == result_elems, || "the region yields one value per result".to_owned())?;
        let expected = match &data.attrs {
            Attrs::Axis(axis) => operands.iter().map(|ty| without_axis(ty, axis.axis)).collect(),
            _ => operands.iter().map(|ty| ty.shape().to_vec()).collect::<Vec<_>>(),
        };
        let shapes: Vec<_> = results.iter().map(|ty| ty.shape().to_vec()).collect();
        ensure(shapes == expected, || "result shapes do not follow from the inputs".to_owned())
    }
}

fn ensure(holds: bool, message: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(message()) }
}

fn same(operands: &[&Type], result: &Type, what: &str, class: impl Fn(Elem) -> bool) -> Check {
    let agree =
        operands.iter().all(|ty| *ty == result) || operands.windows(2).all(|w| w[0] == w[1]);
    ensure(agree, || "operands of different types".to_owned())?;
    let elem = operands.first().and_then(|ty| ty.elem());
    ensure(elem.is_some_and(class), || format!("takes {what}"))?;
    let bool_result = result.number() == Some(Scalar::I1);
    ensure(bool_result || operands.iter().all(|ty| *ty == result), || {
        format!("result {result} is not of the operands' type")
    })
}

fn check_select(operands: &[&Type], result: &Type) -> Check {
    let [condition, on_true, on_false] = operands else {
        return Err("takes three operands".to_owned());
    };
    ensure(on_true == on_false && *on_true == result, || "choices differ in type".to_owned())?;
    ensure(condition.number() == Some(Scalar::I1), || "the condition is i1".to_owned())?;
    let scalar = condition.shape().is_empty();
    ensure(scalar || condition.shape() == result.shape(), || {
        "the condition has another shape than the choices".to_owned()
    })
}

fn check_pointer(operands: &[&Type], result: &Type) -> Check {
    let [ptr, offset] = operands else { return Err("takes two operands".to_owned()) };
    ensure(ptr.elem().is_some_and(Elem::is_ptr), || "takes pointers".to_owned())?;
    ensure(offset.elem().is_some_and(Elem::is_int), || "offsets are integers".to_owned())?;
    ensure(ptr.shape() == offset.shape() && *ptr == result, || {
        "pointers, offsets and result have one shape".to_owned()
    })
}

fn check_cast(opcode: Opcode, from: &Type, to: &Type) -> Check {
    ensure(from.shape() == to.shape() && from.layout() == to.layout(), || {
        "a conversion keeps shape and layout".to_owned()
    })?;
    let (Some(from), Some(to)) = (from.elem(), to.elem()) else {
        return Err("takes elements".to_owned());
    };
    let wider = to.bits() > from.bits();
    let narrower = to.bits() < from.bits();
    // Formats of one width convert both ways: fp8 among themselves, f16 and bf16.
    let fits = match opcode {
        Opcode::ExtS | Opcode::ExtU => from.is_int() && to.is_int() && wider,
        Opcode::Trunc => from.is_int() && to.is_int() && narrower,
        Opcode::FExt => from.is_float() && to.is_float() && wider,
        Opcode::FTrunc => from.is_float() && to.is_float() && !wider && from != to,
        Opcode::SToF | Opcode::UToF => from.is_int() && to.is_float(),
        Opcode::FToS | Opcode::FToU => from.is_float() && to.is_int(),
        Opcode::Bitcast => from.bits() == to.bits(),
        Opcode::IntToPtr => from == Elem::Scalar(Scalar::I64) && to.is_ptr(),
        Opcode::PtrToInt => from.is_ptr() && to == Elem::Scalar(Scalar::I64),
        _ => true,
    };
    ensure(fits, || format!("does not convert {from} to {to}"))
}

fn check_numel(left: usize, right: usize) -> Check {
    ensure(left == right, || format!("{left} elements do not make {right}"))
}

fn without_axis(ty: &Type, axis: u32) -> Vec<u32> {
    let mut shape = ty.shape().to_vec();
    if (axis as usize) < shape.len() {
        shape.remove(axis as usize);
    }
    shape
}

/// Operations with one result whose relation to the operands is their own.
fn check_one(data: &InstData, operands: &[&Type], result: &Type) -> Check {
    let shape = result.shape();
    let same_elem =
        || ensure(operands[0].elem() == result.elem(), || "keeps the element type".to_owned());
    match (data.opcode, &data.attrs) {
        (Opcode::Arange, Attrs::Range(range)) => {
            ensure(*result == result.with_elem(Scalar::I32), || "gives i32".to_owned())?;
            ensure(shape.len() == 1 && i64::from(shape[0]) == range.end - range.start, || {
                "the extent is the length of the range".to_owned()
            })
        }
        (Opcode::Splat, _) => {
            same_elem()?;
            ensure(operands[0].shape().is_empty() && result.is_tile(), || {
                "makes a tile of a scalar".to_owned()
            })
        }
        (Opcode::Unsplat, _) => {
            same_elem()?;
            check_numel(operands[0].numel(), 1)?;
            ensure(shape.is_empty(), || "gives a scalar".to_owned())
        }
        (Opcode::Broadcast, _) => {
            same_elem()?;
            let from = operands[0].shape();
            let grows = from.len() == shape.len()
                && from.iter().zip(shape).all(|(from, to)| from == to || *from == 1);
            ensure(grows, || format!("does not broadcast {} to {result}", operands[0]))
        }
        (Opcode::ExpandDims, Attrs::Axis(axis)) => {
            same_elem()?;
            let inserted = without_axis(result, axis.axis) == operands[0].shape();
            let one = shape.get(axis.axis as usize) == Some(&1);
            ensure(inserted && one, || "inserts one axis of extent 1".to_owned())
        }
        (Opcode::Reshape | Opcode::ConvertLayout, _) => {
            same_elem()?;
            check_numel(operands[0].numel(), result.numel())
        }
        (Opcode::Permute | Opcode::LocalPermute, Attrs::Order(order)) => {
            same_elem()?;
            let from = operands[0].shape();
            let extents = order.order.iter().map(|&axis| from.get(axis as usize));
            ensure(extents.eq(shape.iter().map(Some)), || "permutes the extents".to_owned())
        }
        (Opcode::Join, _) => {
            same_elem()?;
            ensure(operands[0] == operands[1], || "joins two of one type".to_owned())?;
            let (last, front) = shape.split_last().unwrap_or((&0, &[]));
            ensure(*last == 2 && front == operands[0].shape(), || "adds an axis of 2".to_owned())
        }
        (Opcode::Cat, _) => check_numel(operands[0].numel() * 2, result.numel()),
        (Opcode::Gather, _) => {
            same_elem()?;
            ensure(operands[1].shape() == shape, || "has the index's shape".to_owned())
        }
        (Opcode::Load, _) => {
            let pointee = operands[0].elem().and_then(Elem::pointee);
            ensure(pointee.is_some() && pointee == result.elem(), || "loads pointees".to_owned())?;
            let tensor = data.tensor();
            let (own, tensor) = operands.split_at(operands.len() - tensor.len());
            let shapes = own.iter().all(|ty| ty.shape() == shape);
            ensure(shapes, || "pointers, mask and other have the result's shape".to_owned())?;
            let is_whole = tensor.is_empty() || tensor.len() == 1 + 3 * shape.len();
            let scalars = tensor.iter().all(|ty| matches!(ty, Type::Scalar(_)));
            ensure(is_whole && scalars, || {
                "a tensor is a base and three scalars per axis".to_owned()
            })
        }
        (Opcode::TensorMap, Attrs::Boxes(boxes)) => {
            let is_base = operands[0].elem().and_then(Elem::pointee).is_some_and(|e| !e.is_ptr());
            ensure(is_base && operands[0].shape().is_empty(), || "begins at a pointer".to_owned())?;
            let sizes = 2 * boxes.extents.len() - 1;
            ensure(operands.len() == 1 + sizes && !boxes.extents.is_empty(), || {
                format!("a box of {} axes has {sizes} sizes", boxes.extents.len())
            })?;
            ensure(*result == Type::TensorMap, || "gives a tensor map".to_owned())
        }
        (Opcode::AtomicRmw | Opcode::AtomicCas, _) => {
            let shapes = operands.iter().all(|ty| ty.shape() == shape);
            ensure(shapes, || "all operands have the result's shape".to_owned())
        }
        (Opcode::Dot | Opcode::Mma | Opcode::WarpGroupMma | Opcode::MultiplyAdd, _) => {
            check_dot(operands, result)
        }
        (Opcode::LocalStage, _) => check_stage(operands, result),
        (Opcode::LocalLoad, _) => {
            same_elem()?;
            ensure(operands[0].shape() == shape, || "has the buffer's shape".to_owned())
        }
        (Opcode::Sort, Attrs::Sort(sort)) => {
            same_elem()?;
            let rows = operands[0].shape().split_last();
            let kept =
                rows.zip(shape.split_last()).is_some_and(|((extent, rows), (kept, others))| {
                    rows == others && *kept == sort.keep && kept <= extent
                });
            ensure(kept, || "has the operand's rows, of `keep` elements each".to_owned())?;
            let starts = sort.runs.is_power_of_two() && sort.runs <= sort.keep;
            ensure(starts, || "starts with runs of a power of two within `keep`".to_owned())
        }
        (Opcode::Histogram, Attrs::Bins(bins)) => {
            ensure(shape == [bins.bins], || "has one element per bin".to_owned())
        }
        _ => Ok(()),
    }
}

fn check_asm(data: &InstData, operands: &[&Type], results: &[&Type]) -> Check {
    let Attrs::InlineAsm(asm) = &data.attrs else { return Err("has its text".to_owned()) };
    let bits = |types: &[&Type]| -> Vec<Option<u32>> {
        types.iter().map(|ty| ty.elem().map(Elem::bits)).collect()
    };
    asm.check(&bits(operands), &bits(results)).map_err(|mismatch| mismatch.to_string())
}

/// Operands of bulk copies and of what they are waited for by.
fn check_bulk(opcode: Opcode, operands: &[&Type]) -> Check {
    let is = |at: usize, scalar: Scalar| *operands[at] == Type::scalar(scalar);
    let stages = |at: usize| match operands[at] {
        Type::Buffer(buffer) => buffer.stages,
        _ => 0,
    };
    let is_mbarrier = |at: usize| {
        stages(at) > 0 && operands[at].numel() == 1 && operands[at].number() == Some(Scalar::I64)
    };
    let fits = match opcode {
        Opcode::MbarrierInit | Opcode::MbarrierInvalidate => is_mbarrier(0),
        Opcode::MbarrierExpect => is_mbarrier(0) && stages(0) == 1 && is(1, Scalar::I1),
        Opcode::MbarrierWait => is_mbarrier(0) && stages(0) == 1 && is(1, Scalar::I32),
        Opcode::BulkCopy => {
            let rank = operands[1].shape().len();
            *operands[0] == Type::TensorMap
                && stages(1) == 1
                && is_mbarrier(2)
                && stages(2) == 1
                && is(3, Scalar::I1)
                && operands.len() == 4 + rank
                && (4..4 + rank).all(|at| is(at, Scalar::I32))
        }
        Opcode::BulkStore => {
            let (to, value) = (operands[0], operands[1]);
            let pointee = to.elem().and_then(|elem| elem.pointee());
            value.shape().len() == 1
                && pointee == value.elem()
                && (to.shape(), to.layout()) == (value.shape(), value.layout())
                && operands.get(2).is_none_or(|mask| **mask == value.with_elem(Scalar::I1))
        }
        _ => true,
    };
    ensure(fits, || "takes stages of mbarriers, one `i64` each, and what the table says".to_owned())
}

fn check_stage(operands: &[&Type], result: &Type) -> Check {
    let one_stage = match operands {
        [Type::Buffer(buffer), stage] => {
            let one = Type::Buffer(BufferType { stages: 1, ..buffer.clone() });
            *result == one && **stage == Type::scalar(Scalar::I32)
        }
        _ => false,
    };
    ensure(one_stage, || "takes a buffer and an i32, gives one stage of it".to_owned())
}

fn check_dot(operands: &[&Type], result: &Type) -> Check {
    let [lhs, rhs, acc] = operands else { return Err("takes three operands".to_owned()) };
    let rank = result.shape().len();
    let ranks = rank >= 2 && lhs.shape().len() == rank && rhs.shape().len() == rank;
    ensure(ranks && *acc == result, || "operands of rank 2 or more, acc as the result".to_owned())?;
    let (m, k) = (lhs.shape()[rank - 2], lhs.shape()[rank - 1]);
    let (k2, n) = (rhs.shape()[rank - 2], rhs.shape()[rank - 1]);
    let fits = k == k2 && result.shape()[rank - 2..] == [m, n];
    ensure(fits, || format!("cannot multiply {lhs} by {rhs} into {result}"))
}
