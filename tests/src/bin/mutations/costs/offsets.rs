//! Where the lanes of each access are, one by one: integers and addresses of one program in the first
//! trip of each loop.

use std::collections::BTreeMap;

use tile_compiler::ir::{Attrs, Function, Inst, Opcode, Region, Type, Value};
use tile_compiler::specialization::{KnownArg, KnownLaunch};

/// The program that is looked at: neighbors on either side.
const PROGRAM: i128 = 1;

/// What is known of integers, and of addresses as elements after the parameter's.
pub struct Offsets<'f> {
    func: &'f Function,
    launch: Option<&'f KnownLaunch>,
    /// Element by element, in row-major order.
    known: BTreeMap<Value, Vec<i128>>,
}

impl<'f> Offsets<'f> {
    /// Looks at `func` in a launch; at its constants alone where there is none.
    pub fn of(func: &'f Function, launch: Option<&'f KnownLaunch>) -> Offsets<'f> {
        let mut offsets = Offsets { func, launch, known: BTreeMap::new() };
        let args = launch.map_or(&[][..], |launch| &launch.args);
        for (param, value) in func.params.iter().zip(&func.regions[func.body].args) {
            let given = args.iter().find(|(name, _)| **name == *param.name);
            match given {
                Some((_, KnownArg::Int(number))) => offsets.set(*value, vec![*number]),
                Some((_, KnownArg::Buffer(_))) => offsets.set(*value, vec![0]),
                _ => {}
            }
        }
        offsets.region(func.body);
        offsets
    }

    /// The elements of a value, if none is computed from what memory holds.
    pub fn get(&self, value: Value) -> Option<&[i128]> {
        self.known.get(&value).map(Vec::as_slice)
    }

    fn set(&mut self, value: Value, elements: Vec<i128>) {
        self.known.insert(value, elements);
    }

    fn region(&mut self, region: Region) {
        for &inst in &self.func.regions[region].insts {
            let data = &self.func.insts[inst];
            if let (Opcode::For, Some(&inner)) = (data.opcode, data.regions.first()) {
                let index = data.operand_opt(0).into_iter();
                let enter = index.chain(data.uses().skip(3));
                for (&arg, value) in self.func.regions[inner].args.iter().zip(enter) {
                    if let Some(elements) = self.known.get(&value).cloned() {
                        self.set(arg, elements);
                    }
                }
            }
            data.regions.iter().for_each(|inner| self.region(*inner));
            if let Some(elements) = self.elements(inst) {
                self.set(data.result(), elements);
            }
        }
    }

    fn elements(&self, inst: Inst) -> Option<Vec<i128>> {
        let data = &self.func.insts[inst];
        let ty = self.func.ty(*data.results.first()?);
        let operand = |slot: usize| self.get(data.operand_opt(slot)?);
        Some(match (data.opcode, &data.attrs) {
            (Opcode::Constant, Attrs::Constant(constant)) => {
                vec![signed(ty, constant.bits)?; ty.numel()]
            }
            (Opcode::ProgramId, _) => self.launch.map(|_| vec![PROGRAM])?,
            (Opcode::NumPrograms, Attrs::Axis(axis)) => {
                vec![i128::from(self.launch?.grid?[axis.axis as usize])]
            }
            (Opcode::Arange, Attrs::Range(range)) => {
                (range.start..range.end).map(i128::from).collect()
            }
            (Opcode::Splat, _) => vec![*operand(0)?.first()?; ty.numel()],
            (Opcode::Broadcast, _) => {
                let from = self.func.ty(data.operand(0)).shape();
                spread(operand(0)?, from, ty.shape())
            }
            (
                Opcode::Unsplat
                | Opcode::ExpandDims
                | Opcode::Reshape
                | Opcode::ExtS
                | Opcode::ExtU
                | Opcode::Trunc
                | Opcode::AssertFacts,
                _,
            ) => operand(0)?.to_vec(),
            (opcode, _) => {
                let combine = operation(opcode)?;
                let pairs = operand(0)?.iter().zip(operand(1)?);
                pairs.map(|(a, b)| combine(*a, *b)).collect::<Option<_>>()?
            }
        })
    }
}

/// A constant's number, if it is an integer.
fn signed(ty: &Type, bits: u64) -> Option<i128> {
    let width = ty.number().filter(|number| number.is_int())?.bits();
    let value = i128::from(bits);
    let is_negative = width > 1 && bits >> (width - 1) & 1 == 1;
    Some(if is_negative { value - (1 << width) } else { value })
}

/// The elements of a tile that is repeated along axes of extent 1.
fn spread(elements: &[i128], from: &[u32], to: &[u32]) -> Vec<i128> {
    let count: usize = to.iter().map(|extent| *extent as usize).product();
    let source = |mut at: usize| {
        let (mut index, mut stride) = (0, 1);
        for (old, new) in from.iter().zip(to).rev() {
            let place = at % *new as usize;
            at /= *new as usize;
            index += stride * place.min(*old as usize - 1);
            stride *= *old as usize;
        }
        elements[index]
    };
    (0..count).map(source).collect()
}

fn operation(opcode: Opcode) -> Option<fn(i128, i128) -> Option<i128>> {
    Some(match opcode {
        Opcode::Add | Opcode::PtrAdd => i128::checked_add,
        Opcode::Sub => i128::checked_sub,
        Opcode::Mul => i128::checked_mul,
        Opcode::DivS | Opcode::DivU => i128::checked_div,
        Opcode::RemS | Opcode::RemU => i128::checked_rem,
        Opcode::MinS | Opcode::MinU => |a, b| Some(a.min(b)),
        Opcode::MaxS | Opcode::MaxU => |a, b| Some(a.max(b)),
        Opcode::And => |a, b| Some(a & b),
        _ => return None,
    })
}
