//! Products of warp groups that are in flight while the next ones start.
//!
//! A product reads its operands until it is waited for, and groups finish in the order in which
//! they started. In a pipelined loop nothing but the next iteration's product needs a sum, and
//! the units add to one sum in order; so each iteration waits for the products of the one before,
//! after it has started its own, and the matrix units never run dry:
//!
//! ```text
//! for each iteration:
//!   async_wait until this iteration's operands are there
//!   start the n products
//!   warp_group_wait {pending=n}     # those of the iteration before are done: its stage is free
//!   copy into that stage
//! warp_group_wait {pending=0}
//! ```
//!
//! [`Carried`] finds such loops and moves the waits; [`Reading`] tells later passes what is still
//! read where. Cost: linear per loop.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::{Attrs, Builder, Function, Inst, Opcode, Region, Type, Value, ValueDef, Wait};

/// The products of a loop's body whose sums nothing in the loop reads but products.
pub(super) struct Carried {
    products: Vec<Inst>,
    /// The waits of products whose sum another product of the same iteration adds to.
    inner_waits: Vec<Inst>,
    /// The waits of the last products of each sum, and the positions of the sums among the
    /// values that the loop carries.
    last_waits: Vec<(Inst, usize)>,
}

impl Carried {
    /// The products of `body`, if all of them can be in flight at the end of an iteration: their
    /// operands are in stages of buffers, which are those that `staged` names, or outlive the loop.
    pub(super) fn of(func: &Function, body: Region, staged: &FxHashSet<Value>) -> Option<Carried> {
        let insts = func.walk_from(body);
        let uses = Uses::of(func, &insts);
        let is_product = |inst: &Inst| func.insts[*inst].opcode == Opcode::WarpGroupMma;
        let products: Vec<Inst> = insts.iter().copied().filter(is_product).collect();
        let direct = &func.regions[body].insts;
        let stays = |&product: &Inst| {
            let data = &func.insts[product];
            direct.contains(&product)
                && [0, 1].map(|slot| data.operand(slot)).into_iter().all(|operand| {
                    let buffer = func.allocation(operand);
                    staged.contains(&buffer) || uses.is_constant_buffer(func, buffer)
                })
        };
        if products.is_empty() || !products.iter().all(stays) {
            return None;
        }
        let mut carried = Carried { products, inner_waits: Vec::new(), last_waits: Vec::new() };
        let mut positions = FxHashMap::default();
        for &product in &carried.products {
            let data = &func.insts[product];
            let sum = data.operand(2);
            let position = match func.values[sum].def {
                ValueDef::Argument(region, at) if region == body && at > 0 => at as usize - 1,
                ValueDef::Result(wait, _) => *positions.get(&wait)?,
                ValueDef::Argument(..) => return None,
            };
            let (wait, _) = uses.only(data.result())?;
            let (user, slot) = uses.only(func.insts[wait].results.first().copied()?)?;
            uses.only(sum)?;
            if func.insts[wait].opcode != Opcode::WarpGroupWait || !direct.contains(&wait) {
                return None;
            }
            positions.insert(wait, position);
            match func.insts[user].opcode {
                Opcode::WarpGroupMma if slot == 2 => carried.inner_waits.push(wait),
                Opcode::Yield if slot == position && direct.contains(&user) => {
                    carried.last_waits.push((wait, position));
                }
                _ => return None,
            }
        }
        Some(carried)
    }

    /// Moves the waits among `insts`, the body's, behind the last product. Returns the position
    /// from which on what the iteration before has read is free.
    pub(super) fn move_waits(&self, func: &mut Function, insts: &mut Vec<Inst>) -> usize {
        let mut started = FxHashMap::default();
        for &wait in &self.inner_waits {
            let data = &func.insts[wait];
            started.insert(data.result(), data.operand(0));
        }
        for &product in &self.products {
            for operand in func.insts[product].operands.iter_mut().flatten() {
                *operand = *started.get(operand).unwrap_or(operand);
            }
        }
        let last: Vec<Inst> = self.last_waits.iter().map(|&(wait, _)| wait).collect();
        insts.retain(|inst| !self.inner_waits.contains(inst) && !last.contains(inst));
        let pending = self.products.len() as u32;
        for &wait in &last {
            func.insts[wait].attrs = Wait { pending }.into();
        }
        let is_product = |inst: &Inst| self.products.contains(inst);
        let behind = insts.iter().rposition(is_product).map_or(0, |at| at + 1);
        insts.splice(behind..behind, last.iter().copied());
        behind + last.len()
    }

    /// Waits, at the end of `region`, for what `inst`, the loop before it, has left in flight.
    pub(super) fn finish(&self, func: &mut Function, region: Region, inst: Inst) {
        let loc = func.insts[inst].loc;
        let mut finished = FxHashMap::default();
        for &(_, position) in &self.last_waits {
            let sum = func.insts[inst].results[position];
            let ty = func.ty(sum).clone();
            let mut builder = Builder::new(func, region);
            builder.set_loc(loc);
            let wait = Wait { pending: 0 };
            finished.insert(sum, builder.emit_typed(Opcode::WarpGroupWait, &[sum], wait, ty));
        }
        let waits: FxHashSet<Value> = finished.values().copied().collect();
        for data in func.insts.values_mut() {
            if data.results.first().is_some_and(|result| waits.contains(result)) {
                continue;
            }
            for operand in data.operands.iter_mut().flatten() {
                *operand = *finished.get(operand).unwrap_or(operand);
            }
        }
    }
}

/// Who uses values in a loop's body.
struct Uses {
    users: FxHashMap<Value, Vec<(Inst, usize)>>,
    inside: FxHashSet<Inst>,
    written: FxHashSet<Value>,
}

impl Uses {
    fn of(func: &Function, insts: &[Inst]) -> Uses {
        let (mut users, mut written) = (FxHashMap::default(), FxHashSet::default());
        for &inst in insts {
            let data = &func.insts[inst];
            for (slot, value) in data.operands.iter().enumerate() {
                let Some(value) = *value else { continue };
                users.entry(value).or_insert_with(Vec::new).push((inst, slot));
            }
            match data.opcode {
                Opcode::LocalStore => written.insert(func.allocation(data.operand(0))),
                Opcode::AsyncCopy | Opcode::BulkCopy => {
                    written.insert(func.allocation(data.operand(1)))
                }
                _ => false,
            };
        }
        Uses { users, inside: insts.iter().copied().collect(), written }
    }

    /// The one use of a value, with its operand position.
    fn only(&self, value: Value) -> Option<(Inst, usize)> {
        match self.users.get(&value)?.as_slice() {
            &[one] => Some(one),
            _ => None,
        }
    }

    /// Whether `value` is a buffer that holds the same in every iteration.
    fn is_constant_buffer(&self, func: &Function, value: Value) -> bool {
        let (Type::Buffer(_), ValueDef::Result(inst, _)) = (func.ty(value), func.values[value].def)
        else {
            return false;
        };
        !self.inside.contains(&inst) && !self.written.contains(&value)
    }
}

/// What products in flight read, a list for each, the latest last.
#[derive(Debug, Clone)]
pub struct Reading<T>(Vec<Vec<T>>);

impl<T> Default for Reading<T> {
    fn default() -> Self {
        Reading(Vec::new())
    }
}

impl<T: Clone + PartialEq> Reading<T> {
    /// Notes that a product has started that reads `places`.
    pub fn start(&mut self, places: Vec<T>) {
        self.0.push(places);
    }

    /// What the products read that have finished when `pending` are left.
    pub fn finish(&mut self, pending: u32) -> impl Iterator<Item = T> + use<T> {
        let count = self.0.len().saturating_sub(pending as usize);
        self.0.drain(..count).collect::<Vec<_>>().into_iter().flatten()
    }

    /// Everything that is read.
    pub fn places(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }

    /// Either this or `other`, from where two ways through the function meet.
    pub fn merge(&mut self, other: Reading<T>) {
        let missing = other.0.len().saturating_sub(self.0.len());
        self.0.splice(0..0, std::iter::repeat_n(Vec::new(), missing));
        for (own, places) in self.0.iter_mut().rev().zip(other.0.into_iter().rev()) {
            for place in places {
                if !own.contains(&place) {
                    own.push(place);
                }
            }
        }
    }

    /// The same with other names for places.
    pub fn renamed(self, rename: impl Fn(T) -> T) -> Reading<T> {
        let group = |places: Vec<T>| places.into_iter().map(&rename).collect();
        Reading(self.0.into_iter().map(group).collect())
    }
}

/// How many products an instruction leaves in flight, if it waits for others.
pub(crate) fn left_pending(func: &Function, inst: Inst) -> Option<u32> {
    let data = &func.insts[inst];
    match (&data.attrs, data.opcode) {
        (Attrs::Wait(wait), Opcode::WarpGroupWait) => Some(wait.pending),
        _ => None,
    }
}
