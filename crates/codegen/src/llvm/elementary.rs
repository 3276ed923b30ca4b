//! Functions that are compiled without a math library.
//!
//! Each one that a kernel calls becomes an LLVM function of its own, which LLVM inlines. What is
//! not here is left to libdevice.

mod exponential;
mod function;
mod logarithm;
mod machine;
mod power;
#[cfg(test)]
mod tests;
mod trigonometry;

use std::fmt::Write;

use super::Emitter;
use super::text::{Block, Text, Ty, Val};
use machine::Machine;

pub(super) use function::Elementary;

/// The function that libdevice names `symbol`, in single precision.
pub(super) fn elementary(symbol: &str) -> Option<Elementary> {
    let name = symbol.strip_suffix('f')?;
    Elementary::ALL.iter().copied().find(|function| function.name() == name)
}

impl Emitter<'_> {
    /// Calls `function`, which is defined in this module.
    pub(super) fn call_elementary(&mut self, function: Elementary, args: &[Val]) -> Val {
        self.elementary.insert(function);
        let args: Vec<String> = args.iter().map(|arg| format!("float {arg}")).collect();
        let name = symbol(function);
        self.text.op(format_args!("call float @{name}({})", args.join(", ")))
    }
}

fn symbol(function: Elementary) -> String {
    format!("elementary.{}", function.name())
}

/// The definition of `function`; what it calls is added to `declarations`.
pub(super) fn definition(
    function: Elementary,
    declarations: &mut std::collections::BTreeSet<String>,
) -> String {
    let mut text = Text::default();
    let entry = text.add_block();
    text.switch_to(entry);
    let args: Vec<Val> = (0..function.arity() as u32).map(Val::Param).collect();
    let mut writer = Writer { text };
    let result = function.run(&mut writer, &args);
    writer.text.line(format_args!("ret float {result}"));
    let params: Vec<String> = args.iter().map(|arg| format!("float {arg}")).collect();
    let mut out = String::new();
    let name = symbol(function);
    let _ = writeln!(out, "define internal float @{name}({}) nounwind {{", params.join(", "));
    writer.text.write_blocks(&mut out);
    out.push_str("}\n");
    declarations.append(&mut writer.text.declarations);
    out
}

/// Writes instructions.
struct Writer {
    text: Text,
}

const INT: Ty = Ty::Int(32);
const LONG: Ty = Ty::Int(64);

impl Writer {
    fn call(&mut self, name: &str, args: &[Val]) -> Val {
        let args: Vec<(Ty, Val)> = args.iter().map(|&arg| (Ty::Float, arg)).collect();
        self.text.call(name, Ty::Float, &args)
    }
}

impl Machine for Writer {
    type F = Val;
    type I = Val;
    type L = Val;
    type B = Val;

    fn f(&mut self, value: f32) -> Val {
        Val::float(value)
    }
    fn i(&mut self, value: i32) -> Val {
        Val::Int(value.into())
    }
    fn add(&mut self, a: Val, b: Val) -> Val {
        self.text.rounded("add", Ty::Float, a, b)
    }
    fn sub(&mut self, a: Val, b: Val) -> Val {
        self.text.rounded("sub", Ty::Float, a, b)
    }
    fn mul(&mut self, a: Val, b: Val) -> Val {
        self.text.rounded("mul", Ty::Float, a, b)
    }
    fn div(&mut self, a: Val, b: Val) -> Val {
        self.text.binary("fdiv", Ty::Float, a, b)
    }
    fn reciprocal(&mut self, a: Val) -> Val {
        self.call("llvm.nvvm.rcp.approx.ftz.f", &[a])
    }
    fn fma(&mut self, a: Val, b: Val, c: Val) -> Val {
        self.call("llvm.fma.f32", &[a, b, c])
    }
    fn neg(&mut self, a: Val) -> Val {
        self.text.op(format_args!("fneg float {a}"))
    }
    fn abs(&mut self, a: Val) -> Val {
        self.call("llvm.fabs.f32", &[a])
    }
    fn copysign(&mut self, a: Val, b: Val) -> Val {
        self.call("llvm.copysign.f32", &[a, b])
    }
    fn min(&mut self, a: Val, b: Val) -> Val {
        self.call("llvm.minnum.f32", &[a, b])
    }
    fn max(&mut self, a: Val, b: Val) -> Val {
        self.call("llvm.maxnum.f32", &[a, b])
    }
    fn trunc(&mut self, a: Val) -> Val {
        self.call("llvm.trunc.f32", &[a])
    }
    fn exp2(&mut self, a: Val) -> Val {
        self.call("llvm.nvvm.ex2.approx.ftz.f", &[a])
    }
    fn less(&mut self, a: Val, b: Val) -> Val {
        self.text.op(format_args!("fcmp olt float {a}, {b}"))
    }
    fn equal(&mut self, a: Val, b: Val) -> Val {
        self.text.op(format_args!("fcmp oeq float {a}, {b}"))
    }
    fn differ(&mut self, a: Val, b: Val) -> Val {
        self.text.op(format_args!("fcmp one float {a}, {b}"))
    }
    fn pick(&mut self, condition: Val, yes: Val, no: Val) -> Val {
        self.text.select(condition, Ty::Float, yes, no)
    }
    fn bits(&mut self, a: Val) -> Val {
        self.text.bitcast(Ty::Float, a, INT)
    }
    fn float_of_bits(&mut self, a: Val) -> Val {
        self.text.bitcast(INT, a, Ty::Float)
    }
    fn to_float(&mut self, a: Val) -> Val {
        self.text.cast("sitofp", INT, a, Ty::Float)
    }
    fn iadd(&mut self, a: Val, b: Val) -> Val {
        self.text.binary("add", INT, a, b)
    }
    fn isub(&mut self, a: Val, b: Val) -> Val {
        self.text.binary("sub", INT, a, b)
    }
    fn and(&mut self, a: Val, b: Val) -> Val {
        self.text.binary("and", INT, a, b)
    }
    fn or(&mut self, a: Val, b: Val) -> Val {
        self.text.binary("or", INT, a, b)
    }
    fn shl(&mut self, a: Val, by: Val) -> Val {
        self.text.binary("shl", INT, a, by)
    }
    fn shr(&mut self, a: Val, by: Val) -> Val {
        self.text.binary("ashr", INT, a, by)
    }
    fn below(&mut self, a: Val, b: Val) -> Val {
        self.text.op(format_args!("icmp ult i32 {a}, {b}"))
    }
    fn iequal(&mut self, a: Val, b: Val) -> Val {
        self.text.op(format_args!("icmp eq i32 {a}, {b}"))
    }
    fn ipick(&mut self, condition: Val, yes: Val, no: Val) -> Val {
        self.text.select(condition, INT, yes, no)
    }
    fn long(&mut self, a: Val) -> Val {
        self.text.cast("zext", INT, a, LONG)
    }
    fn low(&mut self, a: Val) -> Val {
        self.text.cast("trunc", LONG, a, INT)
    }
    fn ladd(&mut self, a: Val, b: Val) -> Val {
        self.text.binary("add", LONG, a, b)
    }
    fn lmul(&mut self, a: Val, b: Val) -> Val {
        self.text.binary("mul", LONG, a, b)
    }
    fn lor(&mut self, a: Val, b: Val) -> Val {
        self.text.binary("or", LONG, a, b)
    }
    fn lshl(&mut self, a: Val, by: Val) -> Val {
        self.text.binary("shl", LONG, a, by)
    }
    fn lshr(&mut self, a: Val, by: Val) -> Val {
        self.text.binary("lshr", LONG, a, by)
    }
    fn long_to_float(&mut self, a: Val) -> Val {
        self.text.cast("sitofp", LONG, a, Ty::Float)
    }

    fn rarely(
        &mut self,
        condition: Val,
        usual: (Val, Val),
        rare: impl FnOnce(&mut Writer) -> (Val, Val),
    ) -> (Val, Val) {
        let before = self.text.current();
        let [apart, join] = [(); 2].map(|()| self.text.add_block());
        self.text.branch(condition, apart, join);
        self.text.switch_to(apart);
        let other = rare(self);
        let after = self.text.current();
        self.text.jump(join);
        self.text.switch_to(join);
        let mut merge = |ty: Ty, usual: Val, other: Val, from: [Block; 2]| {
            let merged = self.text.reserve();
            self.text.phi(join, merged, ty, &[(usual, from[0]), (other, from[1])]);
            merged
        };
        let from = [before, after];
        (merge(Ty::Float, usual.0, other.0, from), merge(INT, usual.1, other.1, from))
    }
}
