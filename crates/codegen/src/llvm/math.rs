//! Float arithmetic and functions.
//!
//! Precision follows Triton: f32 division is `div.full`, exponentials are `ex2.approx`, square
//! roots `sqrt.approx`. What Triton takes from libdevice is computed here as exactly where real
//! kernels use it ([`super::elementary`] and [`instruction`]), and is libdevice's elsewhere.
//! Formats narrower than f32 compute functions in f32.

use tile_compiler::ir::{Attrs, InstData, Opcode, Scalar};

use super::Emitter;
use super::elementary::elementary;
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
        let double = scalar == Scalar::F64;
        let a = args[0];
        let call = |this: &mut Self, name: &str| {
            let name = format!("{name}.{}", ty.suffix());
            let args: Vec<(Ty, Val)> = args.iter().map(|&arg| (ty, arg)).collect();
            Ok(this.text.call(&name, ty, &args))
        };
        match data.opcode {
            Opcode::FAdd => Ok(self.arithmetic("add", ty, a, args[1])),
            Opcode::FSub => Ok(self.arithmetic("sub", ty, a, args[1])),
            Opcode::FMul => Ok(self.arithmetic("mul", ty, a, args[1])),
            Opcode::FDiv if double => Ok(self.text.binary("fdiv", ty, a, args[1])),
            Opcode::FDiv => Ok(self.text.op(format_args!(
                "call float asm \"div.full.f32 $0, $1, $2;\", \"=f,f,f\"(float {a}, float {})",
                args[1]
            ))),
            Opcode::FDivRn => Ok(self.text.binary("fdiv", ty, a, args[1])),
            Opcode::FRem => self.function("fmod", scalar, args),
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
                if self.crowded.contains(&data.result()) {
                    return Ok(self.power_of_two(scaled));
                }
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
            | Opcode::Rsqrt => self.function(data.opcode.info().mnemonic, scalar, args),
            _ => Err(self.unsupported(data)),
        }
    }

    /// `ex2.approx` of an f32, results below the normal numbers included, without a predicate.
    ///
    /// The hardware's function gives 0 there, so the assembler scales argument and result of such
    /// elements under a predicate. Here a number that is 0 or 1 takes its place: an instruction more,
    /// for where [masks](super::crowded) take the predicates.
    fn power_of_two(&mut self, exponent: Val) -> Val {
        /// The exponent of the smallest normal number.
        const LEAST: f32 = -126.0;
        /// At least as many as the bits that subnormal numbers lose.
        const MORE: f32 = 24.0;
        let ty = Ty::Float;
        let bits = LEAST.to_bits();
        let is_small = self.text.op(format_args!(
            "call float asm \"set.lt.f32.f32 $0, $1, 0f{bits:08X};\", \"=f,f\"(float {exponent})"
        ));
        let mut fma = |factor: f32, addend: Val| {
            let factor = Val::float(factor);
            self.text.call("llvm.fma.f32", ty, &[(ty, is_small), (ty, factor), (ty, addend)])
        };
        let scaled = fma(MORE, exponent);
        let scale = fma((-MORE).exp2() - 1.0, Val::float(1.0));
        let power = self.text.call("llvm.nvvm.ex2.approx.ftz.f", ty, &[(ty, scaled)]);
        self.text.binary("fmul", ty, power, scale)
    }

    /// A sum, difference or product, which may become part of a fused multiply-add if the launch
    /// options allow that.
    fn arithmetic(&mut self, op: &str, ty: Ty, a: Val, b: Val) -> Val {
        // Before sm_90 there are fused operations of bf16 only, which are rounded once.
        let fused_anyway = ty == Ty::BFloat && self.target.arch.capability < 90;
        if self.func.options.fp_fusion || fused_anyway {
            return self.text.binary(&format!("f{op} contract"), ty, a, b);
        }
        self.text.rounded(op, ty, a, b)
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

    /// A function of floats: the name, with `f` for single precision.
    fn function(&mut self, name: &str, scalar: Scalar, args: &[Val]) -> Element {
        let suffix = if scalar == Scalar::F64 { "" } else { "f" };
        let ty = Ty::of_scalar(scalar);
        let args: Vec<(Ty, Val)> = args.iter().map(|&arg| (ty, arg)).collect();
        Ok(self.named_function(&format!("{name}{suffix}"), ty, &args))
    }

    /// The function that libdevice calls `symbol`: an instruction or a function of this module
    /// where there is one.
    fn named_function(&mut self, symbol: &str, result: Ty, args: &[(Ty, Val)]) -> Val {
        if let Some(function) = elementary(symbol) {
            let args: Vec<Val> = args.iter().map(|&(_, arg)| arg).collect();
            return self.call_elementary(function, &args);
        }
        if let Some(value) = self.instruction(symbol, args) {
            return value;
        }
        let name = format!("__nv_{symbol}");
        self.libdevice_function.get_or_insert_with(|| name.clone());
        self.text.call(&name, result, args)
    }

    /// The functions of libdevice that are a few instructions, approximate ones as the hardware
    /// has them.
    fn instruction(&mut self, symbol: &str, args: &[(Ty, Val)]) -> Option<Val> {
        let (ty, a) = *args.first()?;
        let b = args.get(1).map(|&(_, b)| b);
        let direct = match symbol {
            "fabsf" | "fabs" => "llvm.fabs",
            "floorf" | "floor" => "llvm.floor",
            "ceilf" | "ceil" => "llvm.ceil",
            "truncf" | "trunc" => "llvm.trunc",
            "rintf" | "rint" => "llvm.rint",
            "nearbyintf" | "nearbyint" => "llvm.nearbyint",
            "round" => "llvm.round",
            "copysignf" | "copysign" => "llvm.copysign",
            "fmaf" | "fmaf_rn" | "fma" | "fma_rn" => "llvm.fma",
            _ => "",
        };
        if !direct.is_empty() {
            return Some(self.text.call(&format!("{direct}.{}", ty.suffix()), ty, args));
        }
        let approximate = |this: &mut Self, name: &str, value: Val| {
            this.text.call(&format!("llvm.nvvm.{name}"), Ty::Float, &[(Ty::Float, value)])
        };
        let times = |this: &mut Self, value: Val, factor: f32| {
            this.text.binary("fmul", Ty::Float, value, Val::float(factor))
        };
        Some(match symbol {
            "roundf" => self.round(a),
            "exp2f" => approximate(self, "ex2.approx.ftz.f", a),
            "rsqrtf" => approximate(self, "rsqrt.approx.ftz.f", a),
            "sqrtf" => approximate(self, "sqrt.approx.ftz.f", a),
            "fsqrt_rn" => approximate(self, "sqrt.rn.f", a),
            "fast_sinf" => approximate(self, "sin.approx.ftz.f", a),
            "fast_cosf" => approximate(self, "cos.approx.ftz.f", a),
            "fast_log2f" => approximate(self, "lg2.approx.ftz.f", a),
            "fast_expf" => {
                let scaled = times(self, a, std::f32::consts::LOG2_E);
                approximate(self, "ex2.approx.ftz.f", scaled)
            }
            "fast_exp10f" => {
                let scaled = times(self, a, std::f32::consts::LOG2_10);
                approximate(self, "ex2.approx.ftz.f", scaled)
            }
            "fast_logf" => {
                let log = approximate(self, "lg2.approx.ftz.f", a);
                times(self, log, std::f32::consts::LN_2)
            }
            "fast_log10f" => {
                let log = approximate(self, "lg2.approx.ftz.f", a);
                times(self, log, std::f32::consts::LOG10_2)
            }
            "fast_powf" => {
                let log = approximate(self, "lg2.approx.ftz.f", a);
                let scaled = self.text.binary("fmul", Ty::Float, log, b?);
                approximate(self, "ex2.approx.ftz.f", scaled)
            }
            "fast_fdividef" => self.text.op(format_args!(
                "call float asm \"div.approx.ftz.f32 $0, $1, $2;\", \"=f,f,f\"(float {a}, float {})",
                b?
            )),
            "fdiv_rn" | "ddiv_rn" => self.text.binary("fdiv", ty, a, b?),
            "isnanf" | "isnand" => {
                let is_nan = self.text.op(format_args!("fcmp uno {ty} {a}, {a}"));
                self.text.cast("zext", Ty::Int(1), is_nan, Ty::Int(32))
            }
            "isinff" | "isinfd" | "finitef" | "isfinited" => {
                let name = format!("llvm.fabs.{}", ty.suffix());
                let magnitude = self.text.call(&name, ty, &[(ty, a)]);
                let infinity = match ty {
                    Ty::Double => Val::Float(ty, f64::INFINITY.to_bits()),
                    _ => Val::float(f32::INFINITY),
                };
                let predicate = if symbol.starts_with("isinf") { "oeq" } else { "olt" };
                let holds =
                    self.text.op(format_args!("fcmp {predicate} {ty} {magnitude}, {infinity}"));
                self.text.cast("zext", Ty::Int(1), holds, Ty::Int(32))
            }
            _ => return None,
        })
    }

    /// To the nearest integer, ties away from zero: half of one is added toward zero, so that no number
    /// below half of one reaches one.
    fn round(&mut self, a: Val) -> Val {
        let ty = Ty::Float;
        let half = self.text.call("llvm.copysign.f32", ty, &[(ty, Val::float(0.5)), (ty, a)]);
        let sum = self.text.call("llvm.nvvm.add.rz.f", ty, &[(ty, a), (ty, half)]);
        self.text.call("llvm.trunc.f32", ty, &[(ty, sum)])
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
        let symbol = symbol.strip_prefix("__nv_").unwrap_or(symbol);
        Ok(self.named_function(symbol, result, &typed))
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
