//! What moves a position: the place of a program along an axis, the trips of a loop, and quotients and remainders of
//! these, which are places of their own.

use std::cell::{Cell, RefCell};
use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use crate::ir::{Attrs, Function, Inst, Opcode, Region, Value, ValueDef};
use crate::specialization::KnownLaunch;

/// Nesting of quotients that is looked into.
const MAX_QUOTIENTS: u32 = 6;

/// Nesting of operations beyond which nothing is known of a scalar.
const MAX_DEPTH: u32 = 200;

/// Scalars that a position is moved by; `None` where something else may move it, as what memory holds.
pub(super) type Moved = Option<FxHashSet<Value>>;

/// Keys of the programs' places and loops that a mover is made of; `None` where there is more to it.
type Roots = Option<FxHashSet<u64>>;

/// The scalars of a function that move positions.
pub(super) struct Movers<'f> {
    func: &'f Function,
    /// The axes along which every known launch has one program.
    single: [bool; 3],
    owner: FxHashMap<Region, Inst>,
    keys: RefCell<FxHashMap<Value, u64>>,
    moving: RefCell<FxHashMap<Value, Moved>>,
    roots: RefCell<FxHashMap<Value, Roots>>,
    depth: Cell<u32>,
}

impl<'f> Movers<'f> {
    pub(super) fn of(func: &'f Function, launches: &[KnownLaunch]) -> Movers<'f> {
        let regions = func.walk().into_iter().flat_map(|inst| {
            func.insts[inst].regions.iter().map(move |region| (*region, inst)).collect::<Vec<_>>()
        });
        let (keys, moving, roots, depth) = Default::default();
        let has_one =
            |launch: &KnownLaunch, axis: usize| launch.grid.is_some_and(|it| it[axis] == 1);
        let single = [0, 1, 2].map(|axis| {
            !launches.is_empty() && launches.iter().all(|launch| has_one(launch, axis))
        });
        Movers { func, single, owner: regions.collect(), keys, moving, roots, depth }
    }

    /// What moves a scalar.
    pub(super) fn moving(&self, scalar: Value) -> Moved {
        if let Some(known) = self.moving.borrow().get(&scalar) {
            return known.clone();
        }
        // What a trip leaves may depend on itself.
        self.moving.borrow_mut().insert(scalar, None);
        let moved = self.deeper(|| self.moving_anew(scalar)).flatten();
        self.moving.borrow_mut().insert(scalar, moved.clone());
        moved
    }

    fn moving_anew(&self, scalar: Value) -> Moved {
        use Opcode::{
            Add, AssertFacts, Constant, DivS, DivU, ExtS, ExtU, MaxS, MaxU, MinS, MinU, Mul,
            NumPrograms, ProgramId, RemS, RemU, Shl, Sub, Trunc,
        };
        let Some(made) = self.func.def(scalar) else {
            return match self.loop_of(scalar) {
                Some(_) => Some(FxHashSet::from_iter([scalar])),
                None if self.is_param(scalar) => Some(FxHashSet::default()),
                None => self.carried(scalar),
            };
        };
        let of_operands = || {
            let each = made.uses().map(|used| self.moving(used)).collect::<Option<Vec<_>>>()?;
            Some(each.into_iter().flatten().collect::<FxHashSet<Value>>())
        };
        match made.opcode {
            Constant | NumPrograms => Some(FxHashSet::default()),
            ProgramId => Some(FxHashSet::from_iter([scalar])),
            // A position times a stride is where a row begins.
            Mul | Shl if !made.uses().any(|used| self.func.constant_bits(used).is_some()) => {
                of_operands().filter(|moved| moved.is_empty())
            }
            Add | Sub | Mul | Shl | ExtS | ExtU | Trunc | AssertFacts => of_operands(),
            DivS | DivU | RemS | RemU | MinS | MinU | MaxS | MaxU => {
                let moved = of_operands()?;
                Some(if moved.is_empty() { moved } else { FxHashSet::from_iter([scalar]) })
            }
            _ => None,
        }
    }

    /// What moves a scalar that each trip of a loop adds the same to.
    fn carried(&self, scalar: Value) -> Moved {
        let ValueDef::Argument(region, at) = self.func.values[scalar].def else { return None };
        let data = &self.func.insts[*self.owner.get(&region)?];
        if data.opcode != Opcode::For {
            return None;
        }
        let at = (at as usize).checked_sub(1)?;
        let end = self.func.terminator(region)?.uses().nth(at)?;
        let made = self.func.def(end).filter(|made| made.opcode == Opcode::Add)?;
        let added = made.uses().find(|used| *used != scalar)?;
        let is_step = made.uses().any(|used| used == scalar)
            && self.moving(added).is_some_and(|moved| moved.is_empty());
        let mut moved = self.moving(data.uses().nth(3 + at)?).filter(|_| is_step)?;
        moved.insert(self.func.regions[region].args[0]);
        Some(moved)
    }

    /// Whether what moves one position has nothing to do with what moves the other.
    pub(super) fn are_apart(&self, a: &Moved, b: &Moved) -> bool {
        let (Some(a), Some(b)) = (a, b) else { return false };
        let is_still = |moved: &FxHashSet<Value>| moved.iter().all(|it| self.is_first(*it));
        // What nothing moves goes with anything.
        let go_with_any = a.is_empty() || b.is_empty() || is_still(a) && is_still(b);
        !go_with_any && a.iter().all(|x| b.iter().all(|y| self.apart(*x, *y, 0)))
    }

    /// Whether a mover is the program's place along an axis that has only the first.
    fn is_first(&self, mover: Value) -> bool {
        self.func.def(mover).is_some_and(|made| match &made.attrs {
            Attrs::Axis(at) => made.opcode == Opcode::ProgramId && self.single[at.axis as usize],
            _ => false,
        })
    }

    /// The loop of which a value counts the trips.
    pub(super) fn loop_of(&self, value: Value) -> Option<Inst> {
        let ValueDef::Argument(region, 0) = self.func.values[value].def else { return None };
        let inst = *self.owner.get(&region)?;
        (self.func.insts[inst].opcode == Opcode::For).then_some(inst)
    }

    /// Whether a value is made of what counts the trips of a loop.
    pub(super) fn counts(&self, value: Value, of: Inst) -> bool {
        self.func.computing(value).into_iter().any(|used| self.loop_of(used) == Some(of))
    }

    fn is_param(&self, value: Value) -> bool {
        matches!(self.func.values[value].def, ValueDef::Argument(region, _) if region == self.func.body)
    }

    fn apart(&self, x: Value, y: Value, depth: u32) -> bool {
        if self.key(x) == self.key(y) || depth > MAX_QUOTIENTS {
            return false;
        }
        let roots = (self.roots(x), self.roots(y));
        if let (Some(a), Some(b)) = roots
            && a.is_disjoint(&b)
        {
            return true;
        }
        self.complement(x, y) || self.is_part_apart(x, y, depth) || self.is_part_apart(y, x, depth)
    }

    /// Whether one value is the quotient and the other the remainder of the same division.
    fn complement(&self, x: Value, y: Value) -> bool {
        let (Some(a), Some(b)) = (self.func.def(x), self.func.def(y)) else { return false };
        let is_pair = matches!(
            (a.opcode, b.opcode),
            (Opcode::DivS, Opcode::RemS)
                | (Opcode::RemS, Opcode::DivS)
                | (Opcode::DivU, Opcode::RemU)
                | (Opcode::RemU, Opcode::DivU)
        );
        is_pair && (0..2).all(|side| self.key(a.operand(side)) == self.key(b.operand(side)))
    }

    /// Whether what is divided to give `y` is all apart from `x`.
    fn is_part_apart(&self, x: Value, y: Value, depth: u32) -> bool {
        let Some(made) = self.func.def(y) else { return false };
        let divides =
            matches!(made.opcode, Opcode::DivS | Opcode::DivU | Opcode::RemS | Opcode::RemU);
        let divided = divides.then(|| self.moving(made.operand(0))).flatten();
        divided.is_some_and(|divided| {
            !divided.is_empty() && divided.iter().all(|part| self.apart(x, *part, depth + 1))
        })
    }

    fn roots(&self, mover: Value) -> Roots {
        if let Some(known) = self.roots.borrow().get(&mover) {
            return known.clone();
        }
        let roots = self.deeper(|| self.roots_anew(mover)).flatten();
        self.roots.borrow_mut().insert(mover, roots.clone());
        roots
    }

    fn roots_anew(&self, mover: Value) -> Roots {
        let Some(made) = self.func.def(mover) else {
            let Some(inst) = self.loop_of(mover) else {
                return self.is_param(mover).then(FxHashSet::default);
            };
            // Where a loop begins is part of where it is.
            let mut roots = self.roots(self.func.insts[inst].operand(0))?;
            roots.insert(self.key(mover));
            return Some(roots);
        };
        match made.opcode {
            Opcode::ProgramId => Some(FxHashSet::from_iter([self.key(mover)])),
            Opcode::Load | Opcode::AtomicRmw | Opcode::AtomicCas | Opcode::InlineAsm => None,
            Opcode::If | Opcode::For | Opcode::While => None,
            _ => {
                let each = made.uses().map(|used| self.roots(used)).collect::<Option<Vec<_>>>()?;
                Some(each.into_iter().flatten().collect())
            }
        }
    }

    /// The same for values that are computed alike.
    fn key(&self, value: Value) -> u64 {
        if let Some(known) = self.keys.borrow().get(&value) {
            return *known;
        }
        let made = self.func.def(value);
        let made = made.filter(|made| made.regions.is_empty() && made.opcode != Opcode::Load);
        let operands = made.and_then(|made| {
            self.deeper(|| made.uses().map(|used| self.key(used)).collect::<Vec<u64>>())
        });
        let mut hasher = FxHasher::default();
        match made.zip(operands) {
            Some((made, operands)) => {
                (made.opcode as u32, format!("{:?}", made.attrs), operands).hash(&mut hasher);
            }
            None => value.hash(&mut hasher),
        }
        let key = hasher.finish();
        self.keys.borrow_mut().insert(value, key);
        key
    }

    /// What `look` finds one operation further; nothing beyond [`MAX_DEPTH`].
    fn deeper<T>(&self, look: impl FnOnce() -> T) -> Option<T> {
        if self.depth.get() >= MAX_DEPTH {
            return None;
        }
        self.depth.set(self.depth.get() + 1);
        let found = look();
        self.depth.set(self.depth.get() - 1);
        Some(found)
    }
}
