//! Elements that a larger grid or a larger block would write, update or read, and that a known
//! launch leaves untouched.

use rustc_hash::FxHashMap;

use super::arguments::{buffer, in_one_unit, passed, storage};
use super::elements::{Access, Elements, Index, Variable};
use super::grid::axes_asked_for;
use super::led::{
    depends_on_memory, freed, is_apart_from_memory, is_led_alike, is_led_by_memory,
    is_led_lane_by_lane,
};
use super::solve::{Outcome, Pause};
use super::terms::{Atom, AtomKind, Cond, CondKind, Domain, Interval, Linear, Operation, Var};
use super::unfollowed::Unfollowed;
use super::{Finding, Spot, report};
use crate::diagnostic::{Code, Diagnostic};
use crate::host::Contents;
use crate::ir::{Function, Inst, InstData, Opcode, Value};
use crate::specialization::{KnownArg, KnownBuffer, KnownLaunch};

/// Of the boxes that all searches about a launch may look at, the part for one access that writes.
const OF_WRITE: u32 = 6;

/// Boxes that may be looked at for one that reads: masks that say how far to read are simple.
const READ_FUEL: u32 = 200;

/// Of the boxes that all searches about a launch may look at, the part for elements that it leaves
/// untouched.
const OF_LAUNCH: u32 = 4;

/// An axis along which a launch may have too few programs or lanes.
#[derive(Clone, Copy)]
struct Along {
    variable: Variable,
    /// How many there are.
    extent: u32,
    /// Whether the mask must say how many there should be.
    by_mask: bool,
    /// Whether what is looked for is a program before the first one, where a kernel begins too late.
    before: bool,
}

impl Along {
    /// The positions that are looked at.
    fn positions(&self) -> Interval {
        match self.before {
            true => Interval::new(-1, -1),
            false => Interval::new(0, most(self.extent)),
        }
    }
}

/// The finding about elements that `launch`, which is one of `launches`, leaves untouched, under a configuration of a
/// tuner if it `is_tuned`.
pub(super) fn check<'s>(
    func: &'s Function,
    (launch, launches): (&'s KnownLaunch, &[KnownLaunch]),
    is_tuned: bool,
    (elements, accesses): (&'s mut Elements<'_>, &'s [Access]),
    pause: Pause<'s>,
) -> Option<Finding> {
    let shared = others_get(launch, launches);
    let launched = Launched { launch, grid: launch.grid?, shared, is_tuned };
    Search::new(func, launched, (elements, accesses), false, pause).finding()
}

/// As [`check`], of what is stored where integers in memory say, as the rows of experts, whatever they are,
/// and of grids of which not all extents are known. Searches look at so many `boxes`.
pub(super) fn check_led(
    func: &Function,
    (launch, launches): (&KnownLaunch, &[KnownLaunch]),
    boxes: u32,
    pause: Pause<'_>,
) -> Option<Finding> {
    let grid = launch.greatest_grid()?;
    let asked = axes_asked_for(func);
    let has_axis =
        |inst: Inst| (0..3).any(|axis| asked[axis as usize] && is_led_alike(func, inst, axis));
    let is_led = |inst: Inst| {
        func.insts[inst].opcode == Opcode::Store
            && (launch.grid.is_none() || is_led_by_memory(func, inst))
            && has_axis(inst)
    };
    if !func.walk().into_iter().any(is_led) {
        return None;
    }
    let shared = others_get(launch, launches);
    let launch = &KnownLaunch { grid: Some(grid), ..launch.clone() };
    let mut elements = Elements::of_open_launch(func, launch, pause).searching(boxes);
    let accesses = elements.accesses();
    let accesses: Vec<Access> =
        accesses.iter().map(|access| freed(&mut elements, access)).collect();
    let launched = Launched { launch, grid, shared, is_tuned: false };
    Search::new(func, launched, (&mut elements, &accesses), true, pause).finding()
}

/// The allocations that launches other than `launch` get.
fn others_get(launch: &KnownLaunch, launches: &[KnownLaunch]) -> Vec<u32> {
    let buffers = |launch: &KnownLaunch| -> Vec<u32> {
        let buffers = launch.args.iter().filter_map(|(_, arg)| match arg {
            KnownArg::Buffer(buffer) => buffer.id,
            _ => None,
        });
        buffers.collect()
    };
    launches.iter().filter(|other| *other != launch).flat_map(buffers).collect()
}

/// A launch of which the grid is known.
struct Launched<'s> {
    launch: &'s KnownLaunch,
    grid: [u32; 3],
    /// Allocations that other launches get as well.
    shared: Vec<u32>,
    /// Whether a tuner chose the blocks, so that memory may be as large as other blocks need it.
    is_tuned: bool,
}

struct Search<'s, 'e> {
    func: &'s Function,
    launch: &'s KnownLaunch,
    /// Allocations that other launches get as well.
    shared: Vec<u32>,
    is_tuned: bool,
    grid: [u32; 3],
    /// The axes along which the kernel asks for its position.
    asked: [bool; 3],
    elements: &'s mut Elements<'e>,
    accesses: &'s [Access],
    /// Whether variables stand for what memory holds. Then programs are looked for that are beyond the
    /// grid along an axis with which that has nothing to do.
    led: bool,
    /// What happens with more programs or lanes along an axis.
    longer: FxHashMap<(Variable, bool), (Elements<'s>, Vec<Access>)>,
    fuel: u32,
    pause: Pause<'s>,
}

impl<'s, 'e> Search<'s, 'e> {
    fn new(
        func: &'s Function,
        Launched { launch, grid, shared, is_tuned }: Launched<'s>,
        (elements, accesses): (&'s mut Elements<'e>, &'s [Access]),
        led: bool,
        pause: Pause<'s>,
    ) -> Self {
        let (longer, fuel) = (FxHashMap::default(), elements.allowed() / OF_LAUNCH);
        let asked = axes_asked_for(func);
        Search {
            func,
            launch,
            shared,
            is_tuned,
            grid,
            asked,
            elements,
            accesses,
            led,
            longer,
            fuel,
            pause,
        }
    }

    /// The first finding.
    fn finding(mut self) -> Option<Finding> {
        let (func, accesses) = (self.func, self.accesses);
        // What is at an address that is not known may be any element.
        let written = Unfollowed::of(func, self.launch, accesses, |opcode| {
            opcode == Opcode::InlineAsm || opcode.is_global_write()
        });
        let loaded = Unfollowed::of(func, self.launch, accesses, |opcode| opcode == Opcode::Load);
        let of = |opcode: Opcode| {
            accesses.iter().filter(move |access| func.insts[access.inst].opcode == opcode)
        };
        let writes = of(Opcode::Store).chain(of(Opcode::AtomicRmw));
        let reads = of(Opcode::Load).filter(|access| !loaded.may_reach(access.param));
        let followed = writes.chain(reads).filter(|access| !written.may_reach(access.param));
        let found = { followed }.find_map(|access| self.untouched(access))?;
        Some(Finding { spot: Spot::Launch, ..found.into() })
    }

    /// A finding about elements that `access` leaves untouched.
    fn untouched(&mut self, access: &Access) -> Option<Diagnostic> {
        let buffer = buffer(self.func, self.launch, access.param)?;
        // Where no program comes to it, as where one block is all there is, nothing is to do.
        if !buffer.contents.is_new() && !self.happens(access) {
            return None;
        }
        let mut along = self.axes(access, buffer);
        along.retain(|along| !along.before || !self.begins(access));
        along.into_iter().find_map(|along| {
            let (position, element) = self.missed(access, along)?;
            Some(self.describe(access, buffer, along, (position, element)))
        })
    }

    /// Whether a program of the launch may come to an access.
    fn happens(&mut self, access: &Access) -> bool {
        self.elements.search(&access.happens(), &mut { READ_FUEL }) != Outcome::Never
    }

    /// Whether the first element of an access's buffer may be written.
    fn begins(&mut self, access: &Access) -> bool {
        let reaches = (self.func, self.launch, &mut *self.elements, self.accesses);
        let written = buffer(self.func, self.launch, access.param)
            .is_some_and(|buffer| buffer.contents.is_written_at(0));
        written || may_reach(reaches, access, 0, &mut { READ_FUEL })
    }

    /// The axes along which `access` should reach all elements.
    ///
    /// What held something before may be meant to keep it, unless a mask says how far it is updated,
    /// and what is read may be meant to be a part, unless a mask says how far. But a kernel that asks
    /// for its position along an axis that the grid lacks was written for several programs there.
    fn axes(&self, access: &Access, buffer: &KnownBuffer) -> Vec<Along> {
        let opcode = self.func.insts[access.inst].opcode;
        let is_new = buffer.contents.is_new();
        if self.led {
            let is_meant = opcode == Opcode::Store && is_new;
            return if is_meant { self.further_programs(access.inst) } else { Vec::new() };
        }
        let by_programs = match opcode {
            Opcode::Store if is_new => Some(false),
            // The mask says how far to go whatever stands there before, or there is more to read there.
            Opcode::Store if is_zero(buffer) => Some(false),
            Opcode::Store => is_read_first(self.func, self.accesses, access).then_some(true),
            // A sum starts with zeros, and goes to all of them where the launch tells how many.
            Opcode::AtomicRmw => Some(!(is_zero(buffer) && self.is_told(buffer))),
            _ => (!is_new).then_some(true),
        };
        let programs = (0..3).zip(self.grid).filter_map(|(axis, extent)| {
            let lacks = axis as usize >= self.launch.grid_rank && self.asked[axis as usize];
            let by_mask = match by_programs {
                _ if lacks && !(opcode == Opcode::Load && is_new) => false,
                by_mask => by_mask?,
            };
            Some(Along { variable: Variable::Program(axis), extent, by_mask, before: false })
        });
        let earlier = (0..3).zip(self.grid).filter(|_| opcode == Opcode::Store && is_new);
        let earlier =
            earlier.filter(|(axis, _)| self.asked[*axis as usize]).map(|(axis, extent)| Along {
                variable: Variable::Program(axis),
                extent,
                by_mask: false,
                before: true,
            });
        let by_lanes = opcode == Opcode::Load && !is_new || opcode == Opcode::Store && is_new;
        let lanes = self.masked_lanes(access).into_iter().filter(|_| by_lanes);
        let lanes = lanes.map(|(variable, extent)| Along {
            variable,
            extent,
            by_mask: true,
            before: false,
        });
        programs.chain(lanes).chain(earlier).collect()
    }

    /// The axes along which there may be further programs that memory leads as it does these.
    fn further_programs(&self, access: Inst) -> Vec<Along> {
        let axes = (0..3).zip(self.grid).filter(|(axis, _)| {
            let at = *axis as usize;
            self.asked[at] && !self.launch.open_axes[at] && is_led_alike(self.func, access, *axis)
        });
        let along = |(axis, extent)| Along {
            variable: Variable::Program(axis),
            extent,
            by_mask: false,
            before: false,
        };
        axes.map(along).collect()
    }

    /// Whether the launch passes the number of a buffer's elements.
    fn is_told(&self, buffer: &KnownBuffer) -> bool {
        self.launch.args.iter().any(|(_, arg)| *arg == KnownArg::Int(buffer.elements))
    }

    /// The lanes of a masked access along each axis, and how many they are. None where tiles change
    /// their shape: lanes beyond the last one would not be what a longer block has there. Nor where a
    /// descriptor or block pointer is read: its bounds are those of the tensor, whatever part is meant.
    fn masked_lanes(&self, access: &Access) -> Vec<(Variable, u32)> {
        let reshapes = |inst: &Inst| {
            use Opcode::{Cat, Gather, Join, Reshape, Split};
            match self.func.insts[*inst].opcode {
                Cat | Gather | Join | Split => true,
                Reshape => !self.is_reduced_whole(*inst),
                _ => false,
            }
        };
        let data = &self.func.insts[access.inst];
        let Some(mask) = super::flow::mask_of(data) else { return Vec::new() };
        // What nobody wrote stands where the access does.
        let is_bounds = self.func.def(mask).is_some_and(|made| made.loc == data.loc);
        let is_read = data.opcode == Opcode::Load;
        if is_read && is_bounds || self.func.walk().iter().any(reshapes) {
            return Vec::new();
        }
        lanes(self.func, access.inst)
    }

    /// Whether a reshaped tile only goes to reductions of all its lanes, however many they are.
    fn is_reduced_whole(&self, reshape: Inst) -> bool {
        let func = self.func;
        let reshaped = func.insts[reshape].result();
        let leaves_lanes = |user: &&InstData| {
            let is_scalar = |result: &Value| func.ty(*result).shape().is_empty();
            user.opcode != Opcode::Reduce || !user.results.iter().all(is_scalar)
        };
        let all = func.walk();
        let mut users = all.iter().map(|inst| &func.insts[*inst]);
        !users.any(|user| user.uses().any(|used| used == reshaped) && leaves_lanes(&user))
    }

    /// An element that a program beyond the grid or a lane beyond the block would reach, and none
    /// within them does.
    fn missed(&mut self, access: &Access, along: Along) -> Option<([i128; 3], i128)> {
        let Along { variable, extent, by_mask, before } = along;
        let positions = along.positions();
        let KnownBuffer { elements: size, contents, .. } =
            buffer(self.func, self.launch, access.param)?;
        let size = *size;
        let (func, launch, led, pause) = (self.func, self.launch, self.led, self.pause);
        let allowed = self.elements.allowed();
        let longer = self.longer.entry((variable, before)).or_insert_with(|| {
            let elements = match led {
                true => Elements::of_open_launch(func, launch, pause),
                false => Elements::of_launch(func, launch, pause),
            };
            let mut elements = elements.searching(allowed);
            elements.variable_term(variable, positions);
            let accesses = elements.accesses();
            (elements, accesses)
        });
        let is_load = func.insts[access.inst].opcode == Opcode::Load;
        let most_boxes = if is_load { READ_FUEL } else { allowed / OF_WRITE };
        let (wide, accesses) = (&mut longer.0, &longer.1);
        let further = wide.variable_term(variable, positions);
        let is_same = |wide: &&Access| (wide.inst, wide.param) == (access.inst, access.param);
        let same = accesses.iter().find(is_same)?;
        // Tables that say where a program's part is have nothing for programs that are not there, and those that say
        // what each lane reads nothing for lanes that are not.
        let is_led = match variable {
            Variable::Program(_) => is_led_by_memory(func, access.inst),
            Variable::Lane(..) => is_led_lane_by_lane(func, access.inst),
            _ => false,
        };
        if is_load && is_led {
            return None;
        }
        if led
            && let Variable::Program(axis) = variable
            && (wide.gave_up() || !is_apart_from_memory(func, wide, same, axis))
        {
            return None;
        }
        let same = &if led { freed(wide, same) } else { same.clone() };
        if !before && fills_rows(wide, &same.offset, &further, extent) {
            return None;
        }
        let is_masked = limits(wide, same.mask, variable) || ends(wide, same, &further, extent);
        if by_mask && !is_masked {
            return None;
        }
        let is_store = func.insts[access.inst].opcode == Opcode::Store;
        let may_be_spare = !is_masked && is_store && self.is_tuned;
        let needs_reads = !is_masked && is_store && is_zero(buffer(func, launch, access.param)?);
        // What is longer than the programs need, as a table of positions is, need not be read whole.
        let is_lane = matches!(variable, Variable::Lane(..));
        if is_load && is_lane && is_moved(wide, same.mask, variable) {
            return None;
        }
        let step = step(wide, &same.offset, &further);
        // Lanes that go backwards begin elsewhere in a longer block, and of what all programs look at in the
        // same places, each as far as its mask says, none needs the end, as sums of what is before a program do not.
        let is_elsewhere = step.is_some_and(|step| if is_lane { step < 0 } else { step == 0 });
        if is_load && is_elsewhere {
            return None;
        }
        let first = if before { -1 } else { i128::from(extent) };
        let beyond = wide.terms.at_most(&Linear::constant(first), &further);
        // Before the first of several rows is where another one ends. The lanes of a single row are those of
        // the part that a program has of it.
        let programs =
            (0..3).zip(self.grid).map(|(axis, programs)| (Variable::Program(axis), programs));
        let lanes = lanes(func, access.inst);
        let lanes = lanes.iter().copied().filter(|_| lanes.len() > 1);
        let others = programs.chain(lanes).filter(|(other, _)| before && *other != variable);
        let first_there = others.map(|(other, extent)| {
            let there = wide.variable_term(other, Interval::new(0, i128::from(extent) - 1));
            wide.terms.at_most(&there, &Linear::default())
        });
        let first_there: Vec<Cond> = first_there.collect();
        let start = wide.terms.at_most(&Linear::default(), &same.offset);
        let end = wide.terms.less(&same.offset, &Linear::constant(size));
        let unwrapped = unwrapped(wide, &same.offset, variable);
        let mut missed = None;
        // Where programs overlap, the first element beyond them is one that the last of them reaches.
        for least in [0, size / 2, size - 1] {
            let mut conds = same.happens();
            let far = wide.terms.at_most(&Linear::constant(least), &same.offset);
            conds.extend([start, end, beyond, far]);
            conds.extend(&first_there);
            conds.extend(&unwrapped);
            let mut share = most_boxes.min(self.fuel);
            let before = share;
            let outcome = wide.search(&conds, &mut share);
            self.fuel -= before - share;
            // Elements further on are fewer: what is not found among all is not found among them.
            let Outcome::Found(point) = outcome else { break };
            let Some(element) = Domain::at(&wide.terms, &point).value(&same.offset) else { break };
            let written = contents.is_written_at(element);
            let reaches = (func, launch, &mut *self.elements, self.accesses);
            let may_be = written || may_reach(reaches, access, element, &mut { most_boxes });
            let reaches = (func, launch, &mut *self.elements, self.accesses);
            if !may_be && !is_left_out(reaches, access, element, &mut { most_boxes }) {
                let further = wide.position(&point);
                let reaching = (func, launch, &mut *self.elements, self.accesses);
                if may_be_spare
                    && reads_nothing(func, launch, (wide, accesses), further, most_boxes)
                {
                    break;
                }
                if needs_reads && !reads_more((wide, accesses), reaching, further, most_boxes) {
                    break;
                }
                let is_asked = !is_load
                    || is_lane
                    || match brought((func, launch, wide, accesses), further, &self.shared, &mut {
                        most_boxes
                    }) {
                        Brings::More => true,
                        Brings::Shared => false,
                        Brings::Nothing => is_told_by_mask(func, launch, access),
                    };
                missed = is_asked.then_some((further, element));
                break;
            }
        }
        missed
    }

    fn describe(
        &self,
        access: &Access,
        buffer: &KnownBuffer,
        along: Along,
        (position, element): ([i128; 3], i128),
    ) -> Diagnostic {
        let data = &self.func.insts[access.inst];
        let verb = report::verb(data.opcode);
        let name = self.elements.param_name(access.param);
        let has = report::count(buffer.elements, "element");
        let what = format!("{verb} element {element} of `{name}`, which has {has}");
        let rank = self.launch.grid_rank;
        let (message, note) = match along.variable {
            Variable::Program(_) if along.before => (
                format!("no program {what}: the first program begins behind it"),
                "a program's part begins at its position times the length of the part".to_owned(),
            ),
            Variable::Program(axis) => {
                let extents = &self.grid[..rank.clamp(1, 3)];
                let extents: Vec<i128> = extents.iter().map(|extent| i128::from(*extent)).collect();
                let grid = match self.launch.open_axes.contains(&true) {
                    true => "this grid".to_owned(),
                    false => format!("the grid {}", report::tuple(&extents)),
                };
                let further = report::program(position, rank.max(axis as usize + 1));
                let message = format!("no program of {grid} {what}; program {further} would");
                let note = match axis as usize >= rank {
                    true => format!(
                        "the kernel asks for its position along axis {axis}, which the grid lacks"
                    ),
                    false => self.why(buffer, by_mask_alone(data.opcode)).to_owned(),
                };
                (message, note)
            }
            _ => {
                let does = if data.opcode == Opcode::Load { "load" } else { "store" };
                let message = format!(
                    "no program {what}: the mask lets more lanes {does} than the {} of this block",
                    along.extent
                );
                let note = "make the block as long as what the mask allows, or loop over blocks";
                (message, note.to_owned())
            }
        };
        report::finding(self.func, data.loc, Code::Uncovered, message).with_note(note)
    }

    /// Whether the grid or the buffer is at fault, as far as the launch tells.
    fn why(&self, buffer: &KnownBuffer, by_mask: bool) -> &'static str {
        match (self.is_told(buffer), by_mask) {
            (true, _) => "the launch passes the number of elements as well: the grid is too short",
            (false, true) => "the mask says how far to go: the grid is too short for that",
            (false, false) => {
                "the grid is too short, or the buffer has more elements than the launch is for"
            }
        }
    }
}

/// The lanes of an access along each axis, and how many they are.
fn lanes(func: &Function, access: Inst) -> Vec<(Variable, u32)> {
    let shape = func.ty(func.insts[access].operand(0)).shape().iter().enumerate();
    shape.map(|(axis, &extent)| (Variable::Lane(axis as u32, extent), extent)).collect()
}

/// Whether the mask alone says how far an operation should go.
fn by_mask_alone(opcode: Opcode) -> bool {
    opcode != Opcode::Store
}

/// The last position that is looked at along an axis of this extent.
fn most(extent: u32) -> i128 {
    let most = i128::from(extent).saturating_mul(16).saturating_add(4096);
    most.min(i128::from(i32::MAX) - 1)
}

fn is_zero(buffer: &KnownBuffer) -> bool {
    buffer.contents == Contents::Progression { start: 0, step: 0 }
}

/// What a launch does, to ask whether that reaches an element.
type Reaching<'r, 'e> = (&'r Function, &'r KnownLaunch, &'r mut Elements<'e>, &'r [Access]);

/// Whether the launch may reach an element of an access's buffer, by any access if it is a load, else
/// by one that writes.
pub(super) fn may_reach(
    (func, launch, elements, accesses): Reaching<'_, '_>,
    access: &Access,
    element: i128,
    fuel: &mut u32,
) -> bool {
    accesses.iter().filter(|other| is_instead(func, launch, access, other)).any(|other| {
        if other.may_be_elsewhere(func) || !in_one_unit(func, other.param, access.param) {
            return true;
        }
        comes_to(elements, other.happens(), other, element, fuel)
    })
}

/// Whether a kernel reads each element that an access stores to.
fn is_read_first(func: &Function, accesses: &[Access], store: &Access) -> bool {
    accesses.iter().any(|load| {
        func.insts[load.inst].opcode == Opcode::Load
            && (load.param, &load.offset, load.mask) == (store.param, &store.offset, store.mask)
    })
}

/// What a program beyond the grid would write.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Brings {
    /// Nothing that is inside of the buffers.
    Nothing,
    /// What another launch may write.
    Shared,
    /// An element of its own.
    More,
}

/// What `program` would write that is beyond the grid. `shared` are the allocations that other launches
/// get as well.
fn brought(
    (func, launch, elements, accesses): Reaching<'_, '_>,
    program: [i128; 3],
    shared: &[u32],
    fuel: &mut u32,
) -> Brings {
    let there = at_program(elements, program);
    let writes = accesses.iter().filter(|other| other.writes(func));
    let brought = writes.map(|write| {
        let Some(buffer) = buffer(func, launch, write.param) else { return Brings::More };
        let mut conds = write.happens();
        conds.extend(&there);
        conds.push(elements.terms.at_most(&Linear::default(), &write.offset));
        conds.push(elements.terms.less(&write.offset, &Linear::constant(buffer.elements)));
        let is_shared = match elements.search(&conds, fuel) {
            Outcome::Never => return Brings::Nothing,
            Outcome::Found(point) => {
                let element = Domain::at(&elements.terms, &point).value(&write.offset);
                element.is_some_and(|element| buffer.contents.is_written_at(element))
            }
            _ => false,
        };
        let is_shared = is_shared || buffer.id.is_some_and(|id| shared.contains(&id));
        if is_shared { Brings::Shared } else { Brings::More }
    });
    brought.max().unwrap_or(Brings::Nothing)
}

/// Whether `program`, which is beyond the grid, would read an element of an input that none within it reads.
fn reads_more(
    (wide, accesses): (&mut Elements<'_>, &[Access]),
    (func, launch, elements, within): Reaching<'_, '_>,
    program: [i128; 3],
    fuel: u32,
) -> bool {
    let there: Vec<Cond> = at_program(wide, program);
    let mut reads = loads_of_inputs(func, launch, accesses).filter_map(|(load, buffer)| {
        let mut conds = load.happens();
        conds.extend(&there);
        conds.push(wide.terms.at_most(&Linear::default(), &load.offset));
        conds.push(wide.terms.less(&load.offset, &Linear::constant(buffer.elements)));
        match wide.search(&conds, &mut { fuel }) {
            Outcome::Found(point) => {
                Some((load, Domain::at(&wide.terms, &point).value(&load.offset)?))
            }
            _ => None,
        }
    });
    reads.any(|(load, element)| {
        let reaching = (func, launch, &mut *elements, within);
        !may_reach(reaching, load, element, &mut { fuel })
    })
}

/// Whether `program`, which is beyond the grid, would read nothing of the inputs, which those within it read: it has
/// no part in them.
fn reads_nothing(
    func: &Function,
    launch: &KnownLaunch,
    (wide, accesses): (&mut Elements<'_>, &[Access]),
    program: [i128; 3],
    fuel: u32,
) -> bool {
    let there: Vec<Cond> = at_program(wide, program);
    let mut loads = loads_of_inputs(func, launch, accesses).peekable();
    loads.peek().is_some()
        && loads.all(|(load, _)| {
            let mut conds = load.happens();
            conds.extend(&there);
            wide.search(&conds, &mut { fuel }) == Outcome::Never
        })
}

/// The loads of memory that held something before the launch, with that.
fn loads_of_inputs<'a>(
    func: &'a Function,
    launch: &'a KnownLaunch,
    accesses: &'a [Access],
) -> impl Iterator<Item = (&'a Access, &'a KnownBuffer)> {
    let loads = accesses.iter().filter(|other| func.insts[other.inst].opcode == Opcode::Load);
    let with_buffer = |load: &'a Access| Some((load, buffer(func, launch, load.param)?));
    loads.filter_map(with_buffer).filter(|(_, buffer)| !buffer.contents.is_new())
}

/// That the program is this one.
fn at_program(elements: &mut Elements<'_>, program: [i128; 3]) -> Vec<Cond> {
    let there = (0..).zip(program).map(|(axis, at)| {
        let position = elements.variable_term(Variable::Program(axis), Interval::new(at, at));
        elements.terms.equal(&position, &Linear::constant(at))
    });
    there.collect()
}

/// Whether an access may be to an element where `conds` hold.
fn comes_to(
    elements: &mut Elements<'_>,
    mut conds: Vec<Cond>,
    access: &Access,
    element: i128,
    fuel: &mut u32,
) -> bool {
    conds.push(elements.terms.equal(&access.offset, &Linear::constant(element)));
    elements.search(&conds, fuel) != Outcome::Never
}

/// Whether the launch would reach an element of an access's buffer if numbers in memory, as the length
/// of a sequence, did not keep it from that.
fn is_left_out(
    (func, launch, elements, accesses): Reaching<'_, '_>,
    access: &Access,
    element: i128,
    fuel: &mut u32,
) -> bool {
    accesses.iter().filter(|other| is_instead(func, launch, access, other)).any(|other| {
        let reads = |value: &Value| depends_on_memory(func, *value);
        let branches = elements.branches_around(other.inst).into_iter();
        let loops = elements.loops_around(other.inst);
        let mut asked: Vec<Cond> = branches
            .map(|branch| func.insts[branch].operand(0))
            .filter(reads)
            .flat_map(|asked| {
                let holds = elements.truth(asked, &Index::new());
                [holds, elements.terms.not(holds)]
            })
            .collect();
        for inst in loops {
            if func.insts[inst].uses().take(3).any(|bound| reads(&bound)) {
                asked.push(elements.runs(inst));
            }
        }
        let masked = super::flow::mask_of(&func.insts[other.inst]).filter(reads).is_some();
        if asked.is_empty() && !masked {
            return false;
        }
        let kept = other.path.iter().copied().filter(|cond| !asked.contains(cond));
        let conds = kept.chain((!masked).then_some(other.mask)).collect();
        comes_to(elements, conds, other, element, fuel)
    })
}

/// Whether an access may be to the memory of another, and reaches elements as that one does.
fn is_instead(func: &Function, launch: &KnownLaunch, access: &Access, other: &Access) -> bool {
    let storage = |param: usize| storage(func, launch, param);
    let is_load = |access: &Access| func.insts[access.inst].opcode == Opcode::Load;
    let same_memory = other.param == access.param
        || storage(other.param).is_none()
        || storage(other.param) == storage(access.param);
    same_memory && (!is_load(other) || is_load(access))
}

/// Whether the mask of an access is computed from an argument that is the number of the buffer's
/// elements.
fn is_told_by_mask(func: &Function, launch: &KnownLaunch, access: &Access) -> bool {
    let Some(buffer) = buffer(func, launch, access.param) else { return false };
    super::flow::mask_of(&func.insts[access.inst]).is_some_and(|mask| {
        let computed = func.computing(mask);
        passed(func, launch, buffer.elements).any(|argument| computed.contains(&argument))
    })
}

/// Whether the branches around an access leave out programs that are far beyond the grid, as where
/// those return for which there is nothing to do.
fn ends(wide: &mut Elements<'_>, access: &Access, position: &Linear, extent: u32) -> bool {
    let far = wide.terms.at_most(&Linear::constant(most(extent) / 2), position);
    let conds: Vec<Cond> = access.path.iter().copied().chain([far]).collect();
    !access.path.is_empty() && wide.search(&conds, &mut { READ_FUEL }) == Outcome::Never
}

/// Whether so many positions fill rows: a lane or trip moves an offset as far as all of them together, so
/// that one more would be in the next row, which may not be meant to be there.
fn fills_rows(elements: &Elements<'_>, offset: &Linear, position: &Linear, extent: u32) -> bool {
    let &[(atom, 1)] = position.terms.as_slice() else { return false };
    let row = offset.factor(atom).saturating_mul(i128::from(extent));
    let is_program = |var: Var| {
        elements.variables().any(|(of, known)| known == var && matches!(of, Variable::Program(_)))
    };
    let is_within = |other: Atom| match elements.terms.atom(other) {
        AtomKind::Var(var) => !is_program(*var),
        _ => false,
    };
    row != 0 && offset.terms.iter().any(|(other, factor)| *factor == row && is_within(*other))
}

/// By how much an offset grows with a variable that `position` is; `None` where that is not always the same.
fn step(elements: &Elements<'_>, offset: &Linear, position: &Linear) -> Option<i128> {
    let &[(atom, 1)] = position.terms.as_slice() else { return None };
    let factor = offset.factor(atom);
    let mut is_within = false;
    elements.terms.visit(offset, &mut |found, _| is_within |= found == atom);
    (factor != 0 || !is_within).then_some(factor)
}

/// That no part of an offset that depends on a variable wraps around: where it does, a program far beyond the others
/// would come back to where these are.
fn unwrapped(elements: &mut Elements<'_>, offset: &Linear, variable: Variable) -> Vec<Cond> {
    let mut wrapping: Vec<(u32, Linear)> = Vec::new();
    elements.terms.visit(offset, &mut |_, kind| {
        if let AtomKind::Wrap(bits, inner) = kind {
            wrapping.push((*bits, inner.clone()));
        }
    });
    let mut conds = Vec::new();
    for (bits, inner) in wrapping {
        let range = Interval::signed(bits);
        let least = elements.terms.at_most(&Linear::constant(range.lo), &inner);
        let most = elements.terms.at_most(&inner, &Linear::constant(range.hi));
        if elements.depends(most, variable) {
            conds.extend([least, most]);
        }
    }
    conds
}

/// Whether a mask says how far a variable goes: what is left of a division of it, as in a checkerboard, says nothing of
/// that.
fn limits(elements: &Elements<'_>, cond: Cond, variable: Variable) -> bool {
    let is_rest = |(atom, _): &(Atom, i128)| {
        let kind = elements.terms.atom(*atom);
        matches!(kind, AtomKind::Binary(Operation::Rem | Operation::And, ..))
    };
    any_part(elements, cond, &|part| {
        let says = match elements.terms.cond(part) {
            CondKind::AtMostZero(term) | CondKind::IsZero(term) => !term.terms.iter().all(is_rest),
            _ => true,
        };
        says && elements.depends(part, variable)
    })
}

/// Whether a mask compares what the lane and the program or the trip make together: then it is further
/// programs and trips that go as far as the mask says, rather than longer blocks.
fn is_moved(elements: &Elements<'_>, cond: Cond, lane: Variable) -> bool {
    any_part(elements, cond, &|part| {
        let compares =
            matches!(elements.terms.cond(part), CondKind::AtMostZero(_) | CondKind::IsZero(_));
        let mut others = elements.variables().filter(|(variable, var)| {
            let range = elements.terms.var_ranges()[var.0 as usize];
            !matches!(variable, Variable::Lane(..)) && range.lo < range.hi
        });
        compares
            && elements.depends(part, lane)
            && others.any(|(variable, _)| elements.depends(part, variable))
    })
}

/// Whether something holds for one of the conditions that `cond` is made of.
fn any_part(elements: &Elements<'_>, cond: Cond, holds: &dyn Fn(Cond) -> bool) -> bool {
    match elements.terms.cond(cond) {
        CondKind::And(a, b) | CondKind::Or(a, b) => {
            any_part(elements, *a, holds) || any_part(elements, *b, holds)
        }
        CondKind::Not(inner) => any_part(elements, *inner, holds),
        _ => holds(cond),
    }
}
