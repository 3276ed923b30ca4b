//! The compiled form of a kernel: steps over dense registers.

use std::sync::atomic::Ordering;

use smallvec::SmallVec;
use tile_compiler::ir::{Loc, Scalar};

use super::access::is_nan;
use super::frame::{Frame, Slot};
use super::lanes::{LaneFn, with_int};
use super::machine::{Flow, Machine, Stop};
use super::shape::Act;
use crate::number::{Bit, Int};

/// Steps in order.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub steps: Vec<Step>,
}

/// One operation, compiled.
pub(super) enum Step {
    /// Computes each element alone.
    Lanes { out: Slot, numel: usize, run: LaneFn, watch: Option<Watch> },
    /// Anything else without regions, or with regions that it runs itself.
    Act { run: Act, watch: Option<Watch> },
    /// A counted loop.
    For(Box<For>),
    /// A loop with a condition.
    While(Box<While>),
    /// A branch.
    If(Box<If>),
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::Lanes { out, numel, .. } => write!(f, "lanes {out:?} x {numel}"),
            Step::Act { .. } => f.write_str("act"),
            Step::For(inner) => inner.fmt(f),
            Step::While(inner) => inner.fmt(f),
            Step::If(inner) => inner.fmt(f),
        }
    }
}

/// What to look at to find the birth of a NaN.
#[derive(Debug)]
pub(super) struct Watch {
    pub loc: Loc,
    pub inputs: SmallVec<[(Slot, Scalar, usize); 3]>,
    pub out: (Slot, Scalar, usize),
    /// True when element `i` of the result depends only on elements `i` of the inputs.
    pub elementwise: bool,
}

#[derive(Debug)]
pub(super) struct For {
    pub bounds: [Slot; 3],
    pub index: Slot,
    pub scalar: Scalar,
    pub enter: Moves,
    pub body: Block,
    pub next: Moves,
    pub leave: Moves,
}

#[derive(Debug)]
pub(super) struct While {
    /// Whether it reads the same place of memory again and again: it may wait for another program.
    pub waits: bool,
    pub enter: Moves,
    pub before: Block,
    pub condition: Slot,
    pub pass: Moves,
    pub after: Block,
    pub next: Moves,
    pub leave: Moves,
}

#[derive(Debug)]
pub(super) struct If {
    pub condition: Slot,
    pub branches: [(Block, Moves); 2],
}

/// Values that pass from registers to registers, all at once.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// Copies whose source is also a target: taken before anything moves.
    pub staged: Vec<(Slot, Slot)>,
    /// Copies whose source lives on.
    pub copies: Vec<(Slot, Slot)>,
    /// Exchanges with a source that is dead.
    pub swaps: Vec<(Slot, Slot)>,
    /// Copies from targets of exchanges.
    pub after: Vec<(Slot, Slot)>,
}

impl Moves {
    pub fn run(&self, frame: &mut Frame) {
        let staged: SmallVec<[Vec<u64>; 2]> =
            self.staged.iter().map(|&(from, _)| frame.snapshot(from)).collect();
        for &(from, to) in &self.copies {
            frame.copy(from, to);
        }
        for &(from, to) in &self.swaps {
            frame.swap(from, to);
        }
        for &(from, to) in &self.after {
            frame.copy(from, to);
        }
        for (&(_, to), words) in self.staged.iter().zip(staged) {
            frame.put(to, words);
        }
    }
}

/// What an operation that is no loop over lanes counts for; products count by themselves.
const ELEMENTS_OF_ACT: u64 = 512;

impl Block {
    pub fn run(&self, frame: &mut Frame, machine: &Machine) -> Flow {
        for step in &self.steps {
            match step {
                Step::Lanes { out, numel, run, watch } => {
                    frame.elements += *numel as u64;
                    let mut words = frame.take(*out);
                    run(frame, &mut words, numel * frame.lanes);
                    frame.put(*out, words);
                    watch.iter().for_each(|watch| watch.look(frame, machine));
                }
                Step::Act { run, watch } => {
                    frame.elements += ELEMENTS_OF_ACT;
                    run(frame, machine)?;
                    watch.iter().for_each(|watch| watch.look(frame, machine));
                }
                Step::For(step) => step.run(frame, machine)?,
                Step::While(step) => step.run(frame, machine)?,
                Step::If(step) => step.run(frame, machine)?,
            }
        }
        Ok(())
    }
}

impl Watch {
    #[inline]
    fn look(&self, frame: &mut Frame, machine: &Machine) {
        if machine.options.sanitize && frame.nan_birth.is_none() {
            self.find(frame);
        }
    }

    #[cold]
    fn find(&self, frame: &mut Frame) {
        let (slot, scalar, numel) = self.out;
        let mut born = is_nan(frame, slot, scalar, numel * frame.lanes);
        if !born.contains(&true) {
            return;
        }
        for &(slot, scalar, numel) in &self.inputs {
            let input = is_nan(frame, slot, scalar, numel * frame.lanes);
            if self.elementwise {
                born.iter_mut().zip(input).for_each(|(born, input)| *born &= !input);
            } else if input.contains(&true) {
                return;
            }
        }
        if born.contains(&true) {
            frame.nan_birth = Some(self.loc);
        }
    }
}

impl For {
    fn run(&self, frame: &mut Frame, machine: &Machine) -> Flow {
        let [mut index, upper, step] = self.bounds.map(|slot| signed(frame, slot, self.scalar));
        if step == 0 {
            machine.zero_step.store(true, Ordering::Relaxed);
            machine.stop();
            return Err(Stop::Launch);
        }
        self.enter.run(frame);
        while if step > 0 { index < upper } else { index > upper } {
            machine.tick(frame)?;
            with_int!(self.scalar, T => frame.set_scalar(self.index, T::wrap(index as u64)));
            self.body.run(frame, machine)?;
            self.next.run(frame);
            match index.checked_add(step) {
                Some(next) => index = next,
                None => break,
            }
        }
        self.leave.run(frame);
        Ok(())
    }
}

fn signed(frame: &Frame, slot: Slot, scalar: Scalar) -> i64 {
    with_int!(scalar, T => frame.scalar::<T>(slot).signed())
}

/// Iterations of a `while` after which its worker lets others run: it may wait for them.
const PATIENCE: u32 = 64;

impl While {
    fn run(&self, frame: &mut Frame, machine: &Machine) -> Flow {
        self.enter.run(frame);
        frame.synchronized |= self.waits;
        let mut iterations = 0u32;
        loop {
            machine.tick(frame)?;
            self.before.run(frame, machine)?;
            if frame.scalar::<Bit>(self.condition).0 == 0 {
                self.leave.run(frame);
                return Ok(());
            }
            self.pass.run(frame);
            self.after.run(frame, machine)?;
            self.next.run(frame);
            iterations = iterations.wrapping_add(1);
            if iterations.is_multiple_of(PATIENCE) {
                std::thread::yield_now();
            }
        }
    }
}

impl If {
    fn run(&self, frame: &mut Frame, machine: &Machine) -> Flow {
        let taken = usize::from(frame.scalar::<Bit>(self.condition).0 == 0);
        let (block, moves) = &self.branches[taken];
        block.run(frame, machine)?;
        moves.run(frame);
        Ok(())
    }
}
