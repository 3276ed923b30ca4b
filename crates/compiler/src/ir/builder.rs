//! Appending instructions to a region.

use smallvec::SmallVec;

use super::{
    Attrs, Constant, Function, Inst, InstData, Loc, Opcode, Region, ResultRule, Scalar, Type,
    Value, ValueData, ValueDef,
};

/// Appends instructions at the end of one region of a function.
#[derive(Debug)]
pub struct Builder<'f> {
    /// The function under construction.
    pub func: &'f mut Function,
    region: Region,
    loc: Loc,
}

impl<'f> Builder<'f> {
    /// A builder at the end of `region`.
    pub fn new(func: &'f mut Function, region: Region) -> Builder<'f> {
        Builder { func, region, loc: Loc::from_u32(0) }
    }

    /// The region that instructions go to.
    pub fn region(&self) -> Region {
        self.region
    }

    /// Directs instructions to the end of `region`; returns the region before.
    pub fn switch_to(&mut self, region: Region) -> Region {
        std::mem::replace(&mut self.region, region)
    }

    /// A new, empty region.
    pub fn create_region(&mut self) -> Region {
        self.func.regions.push(Default::default())
    }

    /// The location given to new instructions.
    pub fn loc(&self) -> Loc {
        self.loc
    }

    /// Sets the location given to new instructions; returns the one before.
    pub(crate) fn set_loc(&mut self, loc: Loc) -> Loc {
        std::mem::replace(&mut self.loc, loc)
    }

    /// Appends an instruction with explicit result types.
    pub fn emit_inst(
        &mut self,
        opcode: Opcode,
        operands: impl IntoIterator<Item = Option<Value>>,
        attrs: impl Into<Attrs>,
        results: impl IntoIterator<Item = Type>,
        regions: impl IntoIterator<Item = Region>,
    ) -> Inst {
        let inst = self.func.insts.push(InstData {
            opcode,
            operands: operands.into_iter().collect(),
            attrs: attrs.into(),
            results: SmallVec::new(),
            regions: regions.into_iter().collect(),
            loc: self.loc,
        });
        for (index, ty) in results.into_iter().enumerate() {
            let def = ValueDef::Result(inst, index as u32);
            let value = self.func.values.push(ValueData { ty, def, name: None });
            self.func.insts[inst].results.push(value);
        }
        self.func.regions[self.region].insts.push(inst);
        inst
    }

    /// Appends an operation whose single result type follows from its operands.
    ///
    /// # Panics
    /// If the table says that the result type must be given.
    pub fn emit(&mut self, opcode: Opcode, operands: &[Value], attrs: impl Into<Attrs>) -> Value {
        let func = &*self.func;
        let types: SmallVec<[&Type; 4]> = operands.iter().map(|&value| func.ty(value)).collect();
        let result = infer_result(opcode, &types);
        drop(types);
        let result =
            result.expect("invariant: the caller gives the type where the table has no rule");
        self.emit_typed(opcode, operands, attrs, result)
    }

    /// Appends an operation with one result of the given type and all operands present.
    pub fn emit_typed(
        &mut self,
        opcode: Opcode,
        operands: &[Value],
        attrs: impl Into<Attrs>,
        result: Type,
    ) -> Value {
        let operands = operands.iter().copied().map(Some);
        let inst = self.emit_inst(opcode, operands, attrs, [result], []);
        self.func.insts[inst].result()
    }

    /// Appends an operation without results.
    pub fn emit_effect(
        &mut self,
        opcode: Opcode,
        operands: impl IntoIterator<Item = Option<Value>>,
        attrs: impl Into<Attrs>,
    ) -> Inst {
        self.emit_inst(opcode, operands, attrs, [], [])
    }

    /// A constant of type `ty` whose elements have `bits`.
    pub fn constant(&mut self, ty: Type, bits: u64) -> Value {
        self.emit_typed(Opcode::Constant, &[], Constant { bits }, ty)
    }

    /// A scalar integer constant.
    pub fn int(&mut self, scalar: Scalar, value: i128) -> Value {
        let constant = Constant::int(scalar, value);
        self.constant(Type::scalar(scalar), constant.bits)
    }
}

/// The result type that the table's rule gives, where it gives one.
pub(crate) fn infer_result(opcode: Opcode, operands: &[&Type]) -> Option<Type> {
    let first = operands.first().copied();
    match opcode.info().result {
        ResultRule::SameInt | ResultRule::SameFloat | ResultRule::Same | ResultRule::Pointer => {
            first.cloned()
        }
        ResultRule::Bool => first.map(|ty| ty.with_elem(Scalar::I1)),
        ResultRule::Index => Some(Type::scalar(Scalar::I32)),
        ResultRule::Select => operands.get(1).map(|&ty| ty.clone()),
        ResultRule::None | ResultRule::Cast | ResultRule::Explicit => None,
    }
}
