//! Writing LLVM IR as text: types, values, blocks.
//!
//! LLVM's own parser and verifier check what is written here, so this module stays small: a value
//! is a number or a name, an instruction is a line.

use std::fmt::{self, Write};

use tile_compiler::ir::{Elem, Scalar};

/// A first-class LLVM type of one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ty {
    /// An integer of this many bits.
    Int(u32),
    /// IEEE half precision.
    Half,
    /// Brain float.
    BFloat,
    /// IEEE single precision.
    Float,
    /// IEEE double precision.
    Double,
    /// A pointer to global memory.
    Ptr,
}

impl Ty {
    /// The type of one element in a register. 8-bit floats are held as bytes.
    pub(super) fn of(elem: Elem) -> Ty {
        match elem {
            Elem::Scalar(scalar) => Ty::of_scalar(scalar),
            Elem::Ptr(_) | Elem::PtrPtr(_) => Ty::Ptr,
        }
    }

    /// The type of one number in a register.
    pub(super) fn of_scalar(scalar: Scalar) -> Ty {
        match scalar {
            Scalar::F16 => Ty::Half,
            Scalar::BF16 => Ty::BFloat,
            Scalar::F32 => Ty::Float,
            Scalar::F64 => Ty::Double,
            other => Ty::Int(other.bits()),
        }
    }

    /// Width in bits.
    pub(super) fn bits(self) -> u32 {
        match self {
            Ty::Int(bits) => bits,
            Ty::Half | Ty::BFloat => 16,
            Ty::Float => 32,
            Ty::Double | Ty::Ptr => 64,
        }
    }

    /// The suffix by which overloaded intrinsics name the type.
    pub(super) fn suffix(self) -> String {
        match self {
            Ty::Int(bits) => format!("i{bits}"),
            Ty::Half => "f16".to_owned(),
            Ty::BFloat => "bf16".to_owned(),
            Ty::Float => "f32".to_owned(),
            Ty::Double => "f64".to_owned(),
            Ty::Ptr => "p1".to_owned(),
        }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ty::Int(bits) => write!(f, "i{bits}"),
            Ty::Half => f.write_str("half"),
            Ty::BFloat => f.write_str("bfloat"),
            Ty::Float => f.write_str("float"),
            Ty::Double => f.write_str("double"),
            Ty::Ptr => f.write_str("ptr addrspace(1)"),
        }
    }
}

/// A value: a temporary, a parameter, or a constant of the type of its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Val {
    /// The result of an instruction.
    Temp(u32),
    /// A parameter of the kernel.
    Param(u32),
    /// The address of a tensor map that the kernel takes.
    TensorMap(u32),
    /// An integer.
    Int(i64),
    /// A float by its bits.
    Float(Ty, u64),
    /// Zero of any type.
    Zero,
    /// A value that nothing depends on.
    Poison,
}

impl Val {
    /// The constant whose bits are `bits` in type `ty`.
    pub(super) fn constant(ty: Ty, bits: u64) -> Val {
        match ty {
            Ty::Int(1) => Val::Int((bits & 1) as i64),
            Ty::Int(width) => Val::Int((bits << (64 - width)) as i64 >> (64 - width)),
            Ty::Ptr if bits == 0 => Val::Zero,
            Ty::Ptr => Val::Int(bits as i64),
            float => Val::Float(float, bits),
        }
    }

    /// A single precision constant.
    pub(super) fn float(value: f32) -> Val {
        Val::Float(Ty::Float, value.to_bits().into())
    }

    /// A boolean constant.
    pub(super) fn bool(value: bool) -> Val {
        Val::Int(value.into())
    }
}

impl From<u32> for Val {
    fn from(value: u32) -> Val {
        Val::Int(value.into())
    }
}

impl fmt::Display for Val {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Val::Temp(number) => write!(f, "%t{number}"),
            Val::Param(number) => write!(f, "%p{number}"),
            Val::TensorMap(number) => write!(f, "%m{number}"),
            Val::Int(value) => write!(f, "{value}"),
            Val::Float(Ty::Half, bits) => write!(f, "0xH{bits:04X}"),
            Val::Float(Ty::BFloat, bits) => write!(f, "0xR{bits:04X}"),
            // LLVM spells single precision constants as the double of the same value.
            Val::Float(Ty::Float, bits) => {
                let value = f64::from(f32::from_bits(bits as u32));
                write!(f, "0x{:016X}", value.to_bits())
            }
            Val::Float(_, bits) => write!(f, "0x{bits:016X}"),
            Val::Zero => f.write_str("zeroinitializer"),
            Val::Poison => f.write_str("poison"),
        }
    }
}

/// A basic block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block(usize);

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b{}", self.0)
    }
}

#[derive(Default)]
struct BlockText {
    phis: String,
    body: String,
}

/// The body of one function under construction.
#[derive(Default)]
pub(super) struct Text {
    blocks: Vec<BlockText>,
    current: usize,
    temps: u32,
    /// Number of the debug location of new instructions.
    pub(super) location: Option<u32>,
    /// Declarations of everything called.
    pub(super) declarations: std::collections::BTreeSet<String>,
}

impl Text {
    /// Adds a block, without moving to it.
    pub(super) fn add_block(&mut self) -> Block {
        self.blocks.push(BlockText::default());
        Block(self.blocks.len() - 1)
    }

    /// Directs instructions to the end of `block`; returns where they went before.
    pub(super) fn switch_to(&mut self, block: Block) -> Block {
        Block(std::mem::replace(&mut self.current, block.0))
    }

    /// The block that instructions go to.
    pub(super) fn current(&self) -> Block {
        Block(self.current)
    }

    /// A name for a value that is defined later, by a [`phi`](Self::phi).
    pub(super) fn reserve(&mut self) -> Val {
        self.temps += 1;
        Val::Temp(self.temps - 1)
    }

    /// Appends an instruction without result.
    pub(super) fn line(&mut self, text: fmt::Arguments<'_>) {
        let body = &mut self.blocks[self.current].body;
        body.push_str("  ");
        let _ = body.write_fmt(text);
        finish(body, self.location);
    }

    /// Appends an instruction; returns its result.
    pub(super) fn op(&mut self, text: fmt::Arguments<'_>) -> Val {
        let result = self.reserve();
        self.line(format_args!("{result} = {text}"));
        result
    }

    /// Defines `result` at the start of `block` by where control comes from.
    pub(super) fn phi(&mut self, block: Block, result: Val, ty: Ty, from: &[(Val, Block)]) {
        let phis = &mut self.blocks[block.0].phis;
        let sources: Vec<String> =
            from.iter().map(|(value, block)| format!("[ {value}, %{block} ]")).collect();
        let _ = writeln!(phis, "  {result} = phi {ty} {}", sources.join(", "));
    }

    /// Calls an LLVM intrinsic or another external function.
    pub(super) fn call(&mut self, name: &str, result: Ty, args: &[(Ty, Val)]) -> Val {
        let types: Vec<String> = args.iter().map(|(ty, _)| ty.to_string()).collect();
        self.declarations.insert(format!("declare {result} @{name}({})", types.join(", ")));
        let args: Vec<String> = args.iter().map(|(ty, value)| format!("{ty} {value}")).collect();
        self.op(format_args!("call {result} @{name}({})", args.join(", ")))
    }

    /// Writes all blocks.
    pub(super) fn write_blocks(&self, out: &mut String) {
        for (at, block) in self.blocks.iter().enumerate() {
            let _ = writeln!(out, "{}:", Block(at));
            out.push_str(&block.phis);
            out.push_str(&block.body);
        }
    }
}

fn finish(body: &mut String, location: Option<u32>) {
    if let Some(location) = location {
        let _ = write!(body, ", !dbg !{location}");
    }
    body.push('\n');
}

/// Short forms for common instructions.
impl Text {
    /// A binary instruction such as `add` or `fmul contract`.
    pub(super) fn binary(&mut self, op: &str, ty: Ty, a: Val, b: Val) -> Val {
        self.op(format_args!("{op} {ty} {a}, {b}"))
    }

    /// The sum, difference or product of floats as `op` says, rounded by itself: neither LLVM nor
    /// the assembler makes it part of a fused multiply-add.
    pub(super) fn rounded(&mut self, op: &str, ty: Ty, a: Val, b: Val) -> Val {
        let letter = match ty {
            Ty::Half | Ty::BFloat => {
                let name = if ty == Ty::Half { "f16" } else { "bf16" };
                return self.op(format_args!(
                    "call {ty} asm \"{op}.rn.{name} $0, $1, $2;\", \"=h,h,h\"({ty} {a}, {ty} {b})"
                ));
            }
            Ty::Double => "d",
            _ => "f",
        };
        let (op, b) = match op {
            "sub" => ("add", self.op(format_args!("fneg {ty} {b}"))),
            op => (op, b),
        };
        self.call(&format!("llvm.nvvm.{op}.rn.{letter}"), ty, &[(ty, a), (ty, b)])
    }

    /// A conversion instruction such as `zext`.
    pub(super) fn cast(&mut self, op: &str, from: Ty, value: Val, to: Ty) -> Val {
        if from == to {
            return value;
        }
        self.op(format_args!("{op} {from} {value} to {to}"))
    }

    /// The same bits as another type of the same width.
    pub(super) fn bitcast(&mut self, from: Ty, value: Val, to: Ty) -> Val {
        match (from, to) {
            _ if from == to => value,
            (Ty::Ptr, Ty::Int(_)) => self.cast("ptrtoint", from, value, to),
            (Ty::Int(_), Ty::Ptr) => self.cast("inttoptr", from, value, to),
            _ => self.cast("bitcast", from, value, to),
        }
    }

    /// A choice.
    pub(super) fn select(&mut self, condition: Val, ty: Ty, yes: Val, no: Val) -> Val {
        self.op(format_args!("select i1 {condition}, {ty} {yes}, {ty} {no}"))
    }

    /// A jump.
    pub(super) fn jump(&mut self, to: Block) {
        self.line(format_args!("br label %{to}"));
    }

    /// A two-way branch.
    pub(super) fn branch(&mut self, condition: Val, yes: Block, no: Block) {
        self.line(format_args!("br i1 {condition}, label %{yes}, label %{no}"));
    }
}
