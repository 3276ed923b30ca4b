//! Generators of random numbers that the code makes itself: `torch.Generator().manual_seed(0)`.

use crate::builtins::TORCH;
use crate::hir::{ExprId, Name};
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::torch::data::Draws;
use crate::host::value::Value;
use crate::project::Resolution;

/// The keyword by which functions and methods are given one.
pub(crate) const GENERATOR: &str = "generator";

/// The seed of one that is given none. Source: `c10::detail::default_rng_seed_val`.
const FIRST_SEED: i128 = 67_280_421_310_721;

/// Whether a call draws from a generator of its own, which may draw the same numbers as another one.
pub(crate) fn has_generator(args: &Args<'_>) -> bool {
    args.keyword(GENERATOR).is_some_and(|generator| *generator != Value::None)
}

impl Host<'_> {
    /// `torch.Generator()` in a run that draws its numbers.
    pub(crate) fn generator(&mut self) -> Value {
        let made = self.object();
        if let Value::Object(number) = made {
            self.generators.insert(number, Some(Draws::seeded(FIRST_SEED)));
        }
        made
    }

    /// `generator.name(...)`: the same seed draws the same numbers again.
    pub(crate) fn generator_method(
        &mut self,
        generator: usize,
        name: &str,
        args: &Args<'_>,
    ) -> Value {
        let seed = match (name, args.get(0, "seed")) {
            ("get_state" | "initial_seed", _) => return Value::Unknown,
            ("manual_seed", Some(Value::Int(Some(seed)))) => Some(*seed),
            _ => None,
        };
        let seed = seed.filter(|_| self.doubt.is_straight());
        self.generators.insert(generator, seed.map(Draws::seeded));
        match name {
            "manual_seed" => Value::Object(generator),
            _ => Value::Unknown,
        }
    }

    /// The generator of the code from which a function of PyTorch, or a method of a tensor, draws in a run that
    /// draws its numbers.
    pub(crate) fn generator_of(
        &self,
        (callee, receiver, _): &(Value, Option<Value>, Option<(ExprId, Name)>),
        args: &[(Option<Name>, Value)],
    ) -> Option<usize> {
        let is_of_torch = match (callee, receiver) {
            (Value::Named(Resolution::External(path)), _) => *path[0] == *TORCH,
            (_, Some(Value::Tensor(_))) => true,
            _ => false,
        };
        match Args(args).keyword(GENERATOR)? {
            Value::Object(number) if is_of_torch && self.generators.contains_key(number) => {
                Some(*number)
            }
            _ => None,
        }
    }

    /// Runs a call that draws from a generator of the code.
    pub(crate) fn drawn_by(
        &mut self,
        generator: usize,
        call: impl FnOnce(&mut Self) -> Value,
    ) -> Value {
        let own = self.generators.insert(generator, None).flatten();
        let around = std::mem::replace(&mut self.numbers, own);
        let made = call(self);
        let own = std::mem::replace(&mut self.numbers, around);
        if self.doubt.is_straight() {
            self.generators.insert(generator, own);
        }
        made
    }
}
