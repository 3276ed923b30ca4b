//! Float arithmetic and functions.
//!
//! Precision follows Triton: f32 division is `div.full`, exponentials are `ex2.approx`, square
//! roots `sqrt.approx`, and the rest are libdevice functions with denormals flushed. Formats
//! narrower than f32 compute functions in f32.

use tile_compiler::ir::{Attrs, InstData, Opcode, Scalar};

use super::Emitter;
use super::text::{Ty, Val};
use crate::CodegenError;

type Element = Result<Val, CodegenError>;

impl Emitter<'_> {
    /// One element of a float operation.
    pub(super) fn float_element(&mut self, data: &InstData, args: &[Val]) -> Element {
        if let (Opcode::Extern, Attrs::Extern(symbol)) = (data.opcode, &data.attrs) {
            return self.extern_function(data, &symbol.symbol.0, args);
        }
        let scalar = self.ty(data.result()).number().unwrap_or(Scalar::F32);
        let narrow = matches!(scalar, Scalar::F16 | Scalar::BF16);
        if scalar.is_fp8() || (narrow && !is_native(data.opcode)) {
            let wide: Vec<Val> = args
                .iter()
                .map(|&arg| self.widen_float(scalar, arg, Scalar::F32))
                .collect::<Result<_, _>>()?;
            let result = self.float_op(data, Scalar::F32, &wide)?;
            return self.narrow_float(Scalar::F32, result, scalar, false);
        }
        self.float_op(data, scalar, args)
    }

    fn float_op(&mut self, data: &InstData, scalar: Scalar, args: &[Val]) -> Element {
        let ty = Ty::of_scalar(scalar);
        let contract = if self.func.options.fp_fusion { " contract" } else { "" };
        let double = scalar == Scalar::F64;
        let a = args[0];
        let call = |this: &mut Self, name: &str| {
            let name = format!("{name}.{}", ty.suffix());
            let args: Vec<(Ty, Val)> = args.iter().map(|&arg| (ty, arg)).collect();
            Ok(this.text.call(&name, ty, &args))
        };
        match data.opcode {
            Opcode::FAdd => Ok(self.text.binary(&format!("fadd{contract}"), ty, a, args[1])),
            Opcode::FSub => Ok(self.text.binary(&format!("fsub{contract}"), ty, a, args[1])),
            Opcode::FMul => Ok(self.text.binary(&format!("fmul{contract}"), ty, a, args[1])),
            Opcode::FDiv if double => Ok(self.text.binary("fdiv", ty, a, args[1])),
            Opcode::FDiv => Ok(self.text.op(format_args!(
                "call float asm \"div.full.f32 $0, $1, $2;\", \"=f,f,f\"(float {a}, float {})",
                args[1]
            ))),
            Opcode::FDivRn => Ok(self.text.binary("fdiv", ty, a, args[1])),
            Opcode::FRem => self.libdevice("fmod", scalar, args),
            Opcode::FNeg => Ok(self.text.op(format_args!("fneg {ty} {a}"))),
            Opcode::FAbs => call(self, "llvm.fabs"),
            Opcode::FMin => self.extremum(data, "llvm.min", "olt", ty, args),
            Opcode::FMax => self.extremum(data, "llvm.max", "ogt", ty, args),
            Opcode::Fma => call(self, "llvm.fma"),
            Opcode::Floor => call(self, "llvm.floor"),
            Opcode::Ceil => call(self, "llvm.ceil"),
            Opcode::Exp if !double => {
                let log2_e = Val::float(std::f32::consts::LOG2_E);
                let scaled = self.text.binary("fmul", ty, a, log2_e);
                Ok(self.text.call("llvm.nvvm.ex2.approx.f", ty, &[(ty, scaled)]))
            }
            Opcode::Exp2 if !double => {
                Ok(self.text.call("llvm.nvvm.ex2.approx.ftz.f", ty, &[(ty, a)]))
            }
            Opcode::Sqrt if !double => {
                Ok(self.text.call("llvm.nvvm.sqrt.approx.ftz.f", ty, &[(ty, a)]))
            }
            Opcode::Rsqrt if !double => {
                Ok(self.text.call("llvm.nvvm.rsqrt.approx.ftz.f", ty, &[(ty, a)]))
            }
            Opcode::Sqrt | Opcode::SqrtRn => {
                let name = if double { "llvm.nvvm.sqrt.rn.d" } else { "llvm.nvvm.sqrt.rn.f" };
                Ok(self.text.call(name, ty, &[(ty, a)]))
            }
            Opcode::Exp
            | Opcode::Exp2
            | Opcode::Log
            | Opcode::Log2
            | Opcode::Sin
            | Opcode::Cos
            | Opcode::Erf
            | Opcode::Rsqrt => self.libdevice(data.opcode.info().mnemonic, scalar, args),
            _ => Err(self.unsupported(data)),
        }
    }

    /// Minimum or maximum, NaN as the attribute says.
    fn extremum(
        &mut self,
        data: &InstData,
        name: &str,
        better: &str,
        ty: Ty,
        args: &[Val],
    ) -> Element {
        let (a, b) = (args[0], args[1]);
        let propagate = matches!(&data.attrs, Attrs::NanRule(rule) if rule.propagate);
        if propagate && ty == Ty::Double {
            // No instruction: choose, and let NaN of either operand through by adding.
            let ordered = self.text.op(format_args!("fcmp ord double {a}, {b}"));
            let first = self.text.op(format_args!("fcmp {better} double {a}, {b}"));
            let chosen = self.text.select(first, ty, a, b);
            let nan = self.text.binary("fadd", ty, a, b);
            return Ok(self.text.select(ordered, ty, chosen, nan));
        }
        let rule = if propagate { "imum" } else { "num" };
        let name = format!("{name}{rule}.{}", ty.suffix());
        Ok(self.text.call(&name, ty, &[(ty, a), (ty, b)]))
    }

    /// A libdevice function of floats: the name, with `f` for single precision.
    fn libdevice(&mut self, name: &str, scalar: Scalar, args: &[Val]) -> Element {
        let suffix = if scalar == Scalar::F64 { "" } else { "f" };
        let ty = Ty::of_scalar(scalar);
        let args: Vec<(Ty, Val)> = args.iter().map(|&arg| (ty, arg)).collect();
        let name = format!("__nv_{name}{suffix}");
        self.libdevice_function.get_or_insert_with(|| name.clone());
        Ok(self.text.call(&name, ty, &args))
    }

    /// A libdevice function by name, with the types of its operands and result.
    fn extern_function(&mut self, data: &InstData, symbol: &str, args: &[Val]) -> Element {
        let valid = symbol.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !valid || symbol.is_empty() {
            return Err(self.unsupported(data));
        }
        let result = self.register_ty(data.result())?;
        let mut typed = Vec::with_capacity(args.len());
        for (operand, &arg) in data.uses().zip(args) {
            typed.push((self.register_ty(operand)?, arg));
        }
        let name = format!("__nv_{}", symbol.strip_prefix("__nv_").unwrap_or(symbol));
        self.libdevice_function.get_or_insert_with(|| name.clone());
        Ok(self.text.call(&name, result, &typed))
    }
}

/// Operations that 16-bit floats do in their own format.
fn is_native(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::FAdd
            | Opcode::FSub
            | Opcode::FMul
            | Opcode::FNeg
            | Opcode::FAbs
            | Opcode::FMin
            | Opcode::FMax
            | Opcode::Fma
    )
}
