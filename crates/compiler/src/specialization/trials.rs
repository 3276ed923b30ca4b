//! Other values for what is guessed: what is found under all of them does not come of the guess.

use super::{ArgSpec, ConstArg, Origin, Specialization};
use crate::hir::Name;

/// Binary orders of magnitude by which guessed extents are larger or smaller, taken in turn: extents
/// that are guessed alike need not be.
const STEPS: [[i32; 3]; 2] = [[1, 2, 1], [-1, 1, -2]];

/// Numbers that are no larger choose between variants or count, as in `MODE == 2` or `num_stages=3`.
const MAX_CHOICE: i128 = 4;

/// What [ragged](Specialization::ragged) sizes have beyond whole halves of blocks.
const RAGGED: i128 = 4;

impl Specialization {
    /// Specializations that differ in the compile-time values that are guessed, each with others to take
    /// where the kernel does not lower for it: numbers are of other magnitudes, each of its own
    /// or, where they must agree, all of the same, and each choice is made otherwise. Empty where no
    /// compile-time value is guessed.
    pub fn trials(&self) -> Vec<Vec<Specialization>> {
        let (mut extents, mut choices) = (Vec::new(), Vec::new());
        for name in self.tried() {
            match &self.args[name] {
                ArgSpec::Constexpr(ConstArg::Int(value)) if *value > MAX_CHOICE => {
                    extents.push(name)
                }
                ArgSpec::Constexpr(value) => {
                    choices.extend(otherwise(value).map(|other| (name, other)));
                }
                _ => {}
            }
        }
        let mut trials: Vec<Vec<Specialization>> = Vec::new();
        if !extents.is_empty() {
            let of = |steps: [i32; 3]| {
                vec![self.scaled(&extents, &steps), self.scaled(&extents, &steps[..1])]
            };
            trials.extend(STEPS.map(of));
        }
        trials.extend(choices.into_iter().map(|(name, value)| vec![self.with(name, value)]));
        trials
    }

    /// The same with sizes in the place of guessed powers of two that blocks need not divide, where the
    /// kernel `lowers` for them, as it does where no tile has them.
    pub fn ragged(&self, lowers: impl Fn(&Specialization) -> bool) -> Specialization {
        let mut ragged = self.clone();
        for name in self.tried() {
            if let Some(ArgSpec::Constexpr(ConstArg::Int(value))) = self.args.get(name)
                && *value > MAX_CHOICE
            {
                let tried = ragged.with(name, ConstArg::Int(value + value / 2 + RAGGED));
                if lowers(&tried) {
                    ragged = tried;
                }
            }
        }
        ragged
    }

    /// The parameters whose compile-time values are guessed and matter.
    pub fn tried(&self) -> impl Iterator<Item = &Name> {
        self.guesses().filter(|name| {
            matches!(self.args.get(*name), Some(ArgSpec::Constexpr(value)) if *value != ConstArg::None)
        })
    }

    fn scaled(&self, names: &[&Name], steps: &[i32]) -> Specialization {
        let mut scaled = self.clone();
        for (name, step) in names.iter().zip(steps.iter().cycle()) {
            if let Some(ArgSpec::Constexpr(ConstArg::Int(value))) = scaled.args.get_mut(*name) {
                *value = if *step > 0 { *value << step } else { *value >> -step };
            }
        }
        scaled
    }

    fn with(&self, name: &Name, value: ConstArg) -> Specialization {
        let mut changed = self.clone();
        changed.args.insert(name.clone(), ArgSpec::Constexpr(value));
        changed
    }

    /// True when nothing in the source launches it, or a compile-time value is guessed: what is found
    /// must then hold for [`Specialization::trials`] as well.
    pub fn is_tried(&self) -> bool {
        self.origin == Origin::Guess || self.guesses_a_value()
    }
}

/// Another value of what chooses between variants; `None` for what does not.
fn otherwise(value: &ConstArg) -> Option<ConstArg> {
    match value {
        ConstArg::Bool(value) => Some(ConstArg::Bool(!value)),
        ConstArg::Int(value) => Some(ConstArg::Int(value + 1)),
        ConstArg::Str(_) => Some(ConstArg::Str("none of these".into())),
        _ => None,
    }
}
