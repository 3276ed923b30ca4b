//! Emission of tile IR. Every function here works without an emitter too: the result then is a
//! tensor without IR.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::dtype::{DType, Elem};
use super::value::{Const, Origin, Shape, Tensor};
use super::{Eval, Evaluator, Stop};
use crate::diagnostic::{Code, Diagnostic};
use crate::ir::{self, Attrs, Builder, Opcode};
use crate::source::FileRange;

/// The function under construction.
#[derive(Debug)]
pub(super) struct Emitter {
    /// The function.
    pub func: ir::Function,
    /// Where instructions go.
    pub region: ir::Region,
    /// The location of new instructions.
    pub loc: ir::Loc,
    locs: FxHashMap<(FileRange, Option<ir::Loc>), ir::Loc>,
}

impl Emitter {
    pub(super) fn new(func: ir::Function) -> Emitter {
        let region = func.body;
        Emitter { func, region, loc: ir::Loc::from_u32(0), locs: FxHashMap::default() }
    }

    fn builder(&mut self) -> Builder<'_> {
        let mut builder = Builder::new(&mut self.func, self.region);
        builder.set_loc(self.loc);
        builder
    }

    /// Appends an instruction with explicit result types.
    pub(super) fn inst(
        &mut self,
        opcode: Opcode,
        operands: impl IntoIterator<Item = Option<ir::Value>>,
        attrs: impl Into<Attrs>,
        results: impl IntoIterator<Item = ir::Type>,
        regions: impl IntoIterator<Item = ir::Region>,
    ) -> SmallVec<[ir::Value; 1]> {
        let inst = self.builder().emit_inst(opcode, operands, attrs, results, regions);
        self.func.insts[inst].results.clone()
    }
}

/// The IR type of elements at a shape, when all of it is known.
pub(super) fn ir_type(elem: Elem, shape: &Shape) -> Option<ir::Type> {
    Some(ir::Type::of(elem.lower()?, &shape.known()?))
}

impl Evaluator<'_> {
    /// True while IR is built.
    pub(super) fn emitting(&self) -> bool {
        self.emitter.is_some()
    }

    /// Sets what is evaluated, and so the location of new instructions; returns what was before.
    pub(super) fn set_location(&mut self, at: FileRange) -> (FileRange, Option<ir::Loc>) {
        let outer = std::mem::replace(&mut self.here, at);
        (outer, self.locate(at))
    }

    fn locate(&mut self, at: FileRange) -> Option<ir::Loc> {
        let frame = self.frames.last()?;
        let (inlined_at, function) =
            (frame.inlined_at, frame.function.as_ref().map(|f| f.function.name.clone()));
        let known = self.emitter.as_ref()?.locs.get(&(at, inlined_at)).copied();
        let loc = match known {
            Some(loc) => loc,
            None => {
                let (line, col) = self.line_col(at.file, at.range.start);
                let project = self.project;
                let emitter = self.emitter.as_mut()?;
                let path = || project.path(at.file).into();
                emitter.func.files.entry(at.file).or_insert_with(path);
                let function = function.unwrap_or_else(|| emitter.func.name.clone());
                let data = ir::LocData { at, line, col, function, inlined_at };
                let loc = emitter.func.locs.push(data);
                emitter.locs.insert((at, inlined_at), loc);
                loc
            }
        };
        let emitter = self.emitter.as_mut()?;
        Some(std::mem::replace(&mut emitter.loc, loc))
    }

    /// Restores a location that [`Self::set_location`] returned.
    pub(super) fn restore_location(&mut self, (at, loc): (FileRange, Option<ir::Loc>)) {
        self.here = at;
        if let (Some(emitter), Some(loc)) = (self.emitter.as_mut(), loc) {
            emitter.loc = loc;
        }
    }

    /// An operation with one result of type `elem` at `shape`.
    pub(super) fn op(
        &mut self,
        opcode: Opcode,
        operands: &[&Tensor],
        attrs: impl Into<Attrs>,
        elem: Elem,
        shape: Shape,
    ) -> Tensor {
        let operands: SmallVec<[Option<&Tensor>; 4]> = operands.iter().copied().map(Some).collect();
        self.op_optional(opcode, &operands, attrs, elem, shape)
    }

    /// As [`Self::op`], with optional operands.
    pub(super) fn op_optional(
        &mut self,
        opcode: Opcode,
        operands: &[Option<&Tensor>],
        attrs: impl Into<Attrs>,
        elem: Elem,
        shape: Shape,
    ) -> Tensor {
        self.refuse_storage_format(opcode, operands);
        let origin = first_origin(operands.iter().flatten().copied());
        let mut result = Tensor { elem, shape, ir: None, origin, open: false, number: None };
        if let Some(values) = self.handles(operands)
            && let Some(ty) = ir_type(elem, &result.shape)
            && let Some(emitter) = self.emitter.as_mut()
        {
            result.ir = emitter.inst(opcode, values, attrs, [ty], []).first().copied();
        }
        result
    }

    /// `fp8e4b15` is stored and converted; nothing is computed in it.
    fn refuse_storage_format(&mut self, opcode: Opcode, operands: &[Option<&Tensor>]) {
        let stored = Elem::Num(DType::Float8E4B15);
        if !operands.iter().flatten().any(|tensor| tensor.elem == stored) || !computes(opcode) {
            return;
        }
        let at = self.here;
        let message = "`fp8e4b15` is a format of memory, in which nothing is computed";
        let diagnostic = Diagnostic::new(Code::BadOperand, at, message)
            .with_note("convert with `.to(tl.float16)` first");
        self.emit_diagnostic(diagnostic);
    }

    /// An operation without results. One that cannot be written, because something that it takes is
    /// not known, ends the lowering: a kernel without it would do something else.
    pub(super) fn effect(
        &mut self,
        opcode: Opcode,
        operands: &[Option<&Tensor>],
        attrs: impl Into<Attrs>,
    ) {
        if !self.emitting() {
            return;
        }
        let values = self.handles(operands);
        match (values, self.emitter.as_mut()) {
            (Some(values), Some(emitter)) => {
                emitter.inst(opcode, values, attrs, [], []);
            }
            _ if !self.failed => {
                self.not_understood(self.here);
            }
            _ => {}
        }
    }

    /// The IR values of operands, while emitting and when all have one.
    fn handles(&self, operands: &[Option<&Tensor>]) -> Option<SmallVec<[Option<ir::Value>; 4]>> {
        self.emitter.as_ref()?;
        let complete = operands.iter().flatten().all(|tensor| tensor.ir.is_some());
        complete.then(|| operands.iter().map(|tensor| tensor.and_then(|t| t.ir)).collect())
    }

    /// A scalar constant of an integer or float type from a compile-time number.
    pub(super) fn scalar_constant(&mut self, value: &Const, dtype: DType) -> Tensor {
        let mut result = Tensor::new(Elem::Num(dtype), Shape::scalar());
        let Some(scalar) = dtype.scalar() else { return result };
        if !self.emitting() {
            return result;
        }
        let Some(bits) = constant_bits(value, dtype) else {
            // 8-bit formats convert at run time; constant folding does the rest.
            let wide = self.scalar_constant(value, DType::Float32);
            let mode = ir::Round { mode: ir::Rounding::Nearest };
            return self.op(Opcode::FTrunc, &[&wide], mode, Elem::Num(dtype), Shape::scalar());
        };
        if let Some(emitter) = self.emitter.as_mut() {
            let ty = ir::Type::scalar(scalar);
            result.ir = Some(emitter.builder().constant(ty, bits));
        }
        result
    }

    /// A scalar integer constant.
    pub(super) fn int_constant(&mut self, value: i128, dtype: DType) -> Tensor {
        self.scalar_constant(&Const::Int(value), dtype)
    }

    /// Starts a new region with arguments of the given types; instructions go there until
    /// [`Self::end_region`].
    pub(super) fn begin_region(
        &mut self,
        types: impl IntoIterator<Item = ir::Type>,
    ) -> Option<OpenRegion> {
        let emitter = self.emitter.as_mut()?;
        let region = emitter.func.regions.push(ir::RegionData::default());
        let args = types.into_iter().map(|ty| emitter.func.add_argument(region, ty)).collect();
        let outer = std::mem::replace(&mut emitter.region, region);
        Some(OpenRegion { region, outer, args })
    }

    /// Continues a region that was ended but has no terminator yet.
    pub(super) fn reenter_region(&mut self, open: &Option<OpenRegion>) {
        if let (Some(emitter), Some(open)) = (self.emitter.as_mut(), open) {
            emitter.region = open.region;
        }
    }

    /// Goes back to the region around `open`.
    pub(super) fn end_region(&mut self, open: &Option<OpenRegion>) {
        if let (Some(emitter), Some(open)) = (self.emitter.as_mut(), open) {
            emitter.region = open.outer;
        }
    }

    /// Appends a terminator to a region, which need not be the current one.
    pub(super) fn terminate(
        &mut self,
        region: ir::Region,
        opcode: Opcode,
        values: impl IntoIterator<Item = ir::Value>,
    ) {
        if let Some(emitter) = self.emitter.as_mut() {
            let outer = std::mem::replace(&mut emitter.region, region);
            emitter.inst(opcode, values.into_iter().map(Some), Attrs::None, [], []);
            emitter.region = outer;
        }
    }

    /// Names an IR value after the variable first bound to it.
    pub(super) fn name_value(&mut self, value: Option<ir::Value>, name: &crate::hir::Name) {
        if let (Some(emitter), Some(value)) = (self.emitter.as_mut(), value) {
            emitter.func.values[value].name.get_or_insert_with(|| name.clone());
        }
    }

    /// The error that an element type does not exist on the target.
    pub(super) fn check_supported(&mut self, dtype: DType, at: FileRange) -> Eval<()> {
        if !dtype.is_fp8() {
            return Ok(());
        }
        // What only other devices have may stand under a flag that is not set here.
        let amd = matches!(dtype, DType::Float8E4B8 | DType::Float8E5B16) && self.speculative == 0;
        let newer = dtype == DType::Float8E4NV && self.capability < 89 && self.exact;
        if !(amd || newer) {
            return Ok(());
        }
        let message = format!("`{dtype}` is not supported on this architecture");
        Err(self.error(Code::UnsupportedDType, at, message))
    }

    /// Reports an expression of which nothing is known here, so that lowering cannot go on.
    pub(super) fn not_understood(&mut self, at: FileRange) -> Stop {
        let text = self.project.text(at.file);
        let text = text.as_ref().and_then(|text| {
            text.get(at.range.start as usize..at.range.end as usize).filter(|it| !it.contains('\n'))
        });
        let what = text.map_or_else(|| "this".to_owned(), |text| format!("`{text}`"));
        let kernel = self.frames.first().and_then(|frame| frame.function.as_ref());
        let kernel =
            kernel.map_or_else(|| "the kernel".to_owned(), |of| format!("`{}`", of.function.name));
        let message = format!(
            "Tile cannot analyse {what} (Triton may accept it): nothing here says what it gives; \
             the rest of {kernel} is not checked"
        );
        self.error(Code::NotUnderstood, at, message)
    }

    /// For results of which the evaluator cannot say the IR: lowering cannot go on.
    pub(super) fn unlowered(&mut self, what: &str, at: FileRange) -> Stop {
        if self.emitting() {
            let message = format!("Tile cannot compile {what} yet (Triton may accept it)");
            return self.error(Code::NotUnderstood, at, message);
        }
        Stop::Unknown
    }
}

/// A region that instructions go to, the one around it, and its arguments.
#[derive(Debug)]
pub(super) struct OpenRegion {
    /// The region.
    pub region: ir::Region,
    /// The region around it.
    pub outer: ir::Region,
    /// Its arguments.
    pub args: SmallVec<[ir::Value; 4]>,
}

/// The reason of the first operand that has one.
pub(super) fn first_origin<'t>(operands: impl IntoIterator<Item = &'t Tensor>) -> Origin {
    operands.into_iter().map(|t| t.origin).find(|&o| o != Origin::NONE).unwrap_or(Origin::NONE)
}

/// The bits of a compile-time number as a constant of `dtype`; `None` for 8-bit floats other
/// than zero.
fn constant_bits(value: &Const, dtype: DType) -> Option<u64> {
    let number = match value {
        Const::Int(value) => Number::Int(*value),
        Const::Bool(value) => Number::Int(i128::from(*value)),
        Const::Float(value) => Number::Float(*value),
        _ => Number::Int(0),
    };
    if dtype.is_int() {
        let value = match number {
            Number::Int(value) => value,
            Number::Float(value) => value as i128,
        };
        return dtype.scalar().map(|scalar| ir::Constant::int(scalar, value).bits);
    }
    let value = match number {
        Number::Int(value) => value as f64,
        Number::Float(value) => value,
    };
    match dtype {
        DType::Float64 => Some(value.to_bits()),
        DType::Float32 => Some(u64::from((value as f32).to_bits())),
        DType::Float16 => Some(u64::from(half::f16::from_f64(value).to_bits())),
        DType::BFloat16 => Some(u64::from(half::bf16::from_f64(value).to_bits())),
        _ if value.to_bits() == 0 => Some(0),
        _ => None,
    }
}

enum Number {
    Int(i128),
    Float(f64),
}

/// True for arithmetic on floats.
fn computes(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::FAdd
            | Opcode::FSub
            | Opcode::FMul
            | Opcode::FDiv
            | Opcode::FRem
            | Opcode::FNeg
            | Opcode::FCmp
            | Opcode::FMax
            | Opcode::FMin
            | Opcode::Fma
            | Opcode::Sort
    )
}
