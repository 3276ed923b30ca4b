//! Elementwise operations: one instruction (or a few) per register.

use tile_compiler::ir::{Attrs, FloatPredicate, InstData, Opcode, Scalar, Value};
use tile_compiler::layout::Coordinates;

use super::text::{Ty, Val};
use super::{Emitted, Emitter};
use crate::CodegenError;

impl Emitter<'_> {
    /// Writes an operation that acts on each element by itself: once for all registers that are
    /// known to hold the same, such as a mask's for the elements of one access.
    pub(super) fn elementwise(&mut self, data: &InstData) -> Emitted {
        let [result] = data.results.as_slice() else {
            return Err(self.unsupported(data));
        };
        let operands: Vec<Vec<Val>> = data.uses().map(|operand| self.registers(operand)).collect();
        if let [values] = operands.as_slice()
            && let Some(registers) = self.convert_in_pairs(data, values)?
        {
            self.set(*result, registers);
            return Ok(());
        }
        if let Some(registers) = self.stepped(data, &operands)? {
            self.set(*result, registers);
            return Ok(());
        }
        let same_as = self.first_of_alike(*result);
        let mut registers: Vec<Val> = Vec::with_capacity(self.register_count(*result));
        for at in 0..self.register_count(*result) {
            if let Some(&first) = same_as.get(at).filter(|&&first| first != at) {
                registers.push(registers[first]);
                continue;
            }
            // A scalar operand (the condition of a choice) is the same for every register.
            let args: Vec<Val> =
                operands.iter().map(|all| *all.get(at).unwrap_or(&all[0])).collect();
            registers.push(self.element(data, &args)?);
        }
        self.set(*result, registers);
        Ok(())
    }

    /// For each register of a tile the first one that holds the same value in every thread, as far
    /// as runs of equal elements are known; empty if none are.
    pub(super) fn first_of_alike(&self, value: Value) -> Vec<usize> {
        let Some(layout) = self.layout(value) else { return Vec::new() };
        let info = self.infos.get(self.func, value);
        if info.constancy.iter().all(|&run| run == 1) {
            return Vec::new();
        }
        let run_of = |register: usize| -> Coordinates {
            let offset = layout.offset_for_register(register);
            let runs = offset.iter().zip(&info.constancy);
            runs.map(|(&at, &run)| at & !((run - 1) as u32)).collect()
        };
        let runs: Vec<Coordinates> = (0..layout.elements_per_thread()).map(run_of).collect();
        let first = |run| runs.iter().position(|other| other == run);
        runs.iter().enumerate().map(|(at, run)| first(run).unwrap_or(at)).collect()
    }

    pub(super) fn unsupported(&self, data: &InstData) -> CodegenError {
        let at = &self.func.locs[self.func.user_loc(data.loc)];
        CodegenError::Unsupported { what: format!("`{}` (line {})", data.opcode, at.line) }
    }

    pub(super) fn element(&mut self, data: &InstData, args: &[Val]) -> Result<Val, CodegenError> {
        let ty = self.register_ty(data.operand(0))?;
        if let Some(op) = integer_instruction(data.opcode) {
            return Ok(self.text.binary(op, ty, args[0], args[1]));
        }
        if let Some(name) = integer_intrinsic(data.opcode) {
            let name = format!("llvm.{name}.{}", ty.suffix());
            return Ok(self.text.call(&name, ty, &[(ty, args[0]), (ty, args[1])]));
        }
        match (&data.attrs, data.opcode) {
            (Attrs::IntCompare(compare), Opcode::Cmp) => {
                // LLVM and this IR spell predicates alike.
                let predicate = compare.predicate.name();
                Ok(self.text.op(format_args!("icmp {predicate} {ty} {}, {}", args[0], args[1])))
            }
            (Attrs::FloatCompare(compare), Opcode::FCmp) => {
                self.float_compare(data, compare.predicate, args)
            }
            (_, Opcode::Select) => {
                let ty = self.register_ty(data.operand(1))?;
                Ok(self.text.select(args[0], ty, args[1], args[2]))
            }
            (_, Opcode::AbsS) => {
                let name = format!("llvm.abs.{}", ty.suffix());
                Ok(self.text.call(&name, ty, &[(ty, args[0]), (Ty::Int(1), Val::bool(false))]))
            }
            (_, Opcode::MulHighU) => Ok(self.multiply_high(ty, args)),
            (_, Opcode::PtrAdd) => self.move_pointer(data, args),
            (_, opcode) if (Opcode::ExtS..=Opcode::PtrToInt).contains(&opcode) => {
                self.convert_element(data, args[0])
            }
            (_, opcode) if (Opcode::FAdd..=Opcode::Extern).contains(&opcode) => {
                self.float_element(data, args)
            }
            _ => Err(self.unsupported(data)),
        }
    }

    fn multiply_high(&mut self, ty: Ty, args: &[Val]) -> Val {
        let wide = Ty::Int(ty.bits() * 2);
        let a = self.text.cast("zext", ty, args[0], wide);
        let b = self.text.cast("zext", ty, args[1], wide);
        let product = self.text.binary("mul nuw", wide, a, b);
        let high = self.text.binary("lshr", wide, product, Val::Int(ty.bits().into()));
        self.text.cast("trunc", wide, high, ty)
    }

    fn move_pointer(&mut self, data: &InstData, args: &[Val]) -> Result<Val, CodegenError> {
        let offset = self.register_ty(data.operand(1))?;
        let pointee = self.ty(data.operand(0)).elem().and_then(|elem| elem.pointee());
        let bits = pointee.map_or(8, |elem| elem.bits().max(8));
        let [ptr, by] = [args[0], args[1]];
        Ok(self
            .text
            .op(format_args!("getelementptr i{bits}, ptr addrspace(1) {ptr}, {offset} {by}")))
    }

    fn float_compare(
        &mut self,
        data: &InstData,
        predicate: FloatPredicate,
        args: &[Val],
    ) -> Result<Val, CodegenError> {
        let scalar = self.ty(data.operand(0)).number().unwrap_or(Scalar::F32);
        self.compare_floats(scalar, predicate, [args[0], args[1]])
    }

    pub(super) fn compare_floats(
        &mut self,
        scalar: Scalar,
        predicate: FloatPredicate,
        [mut a, mut b]: [Val; 2],
    ) -> Result<Val, CodegenError> {
        let mut ty = Ty::of_scalar(scalar);
        if scalar.is_fp8() {
            a = self.widen_float(scalar, a, Scalar::F32)?;
            b = self.widen_float(scalar, b, Scalar::F32)?;
            ty = Ty::Float;
        }
        let predicate = predicate.name();
        Ok(self.text.op(format_args!("fcmp {predicate} {ty} {a}, {b}")))
    }
}

/// The LLVM instruction that an integer operation is.
fn integer_instruction(opcode: Opcode) -> Option<&'static str> {
    Some(match opcode {
        Opcode::Add => "add",
        Opcode::Sub => "sub",
        Opcode::Mul => "mul",
        Opcode::DivS => "sdiv",
        Opcode::DivU => "udiv",
        Opcode::RemS => "srem",
        Opcode::RemU => "urem",
        Opcode::And => "and",
        Opcode::Or => "or",
        Opcode::Xor => "xor",
        Opcode::Shl => "shl",
        Opcode::ShrS => "ashr",
        Opcode::ShrU => "lshr",
        _ => return None,
    })
}

fn integer_intrinsic(opcode: Opcode) -> Option<&'static str> {
    Some(match opcode {
        Opcode::MinS => "smin",
        Opcode::MaxS => "smax",
        Opcode::MinU => "umin",
        Opcode::MaxU => "umax",
        _ => return None,
    })
}
