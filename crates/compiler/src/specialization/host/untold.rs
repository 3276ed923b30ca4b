//! Functions that give a number which no text tells: by chance, by the clock, by the process.

use super::Host;
use super::arguments::Args;
use super::operators::join;
use super::value::Value;
use crate::hir::Name;

/// What gives one of several elements.
const CHOICE: &str = "random.choice";

/// Functions that give an integer of Python's. Source: the documentation of Python, NumPy and PyTorch.
const INTEGERS: &[&str] = &[
    "numpy.random.randint",
    "os.getpid",
    "random.getrandbits",
    "random.randint",
    "random.randrange",
    "time.monotonic_ns",
    "time.perf_counter_ns",
    "time.time_ns",
    "torch.cuda.initial_seed",
    "torch.cuda.random.initial_seed",
    "torch.initial_seed",
    "torch.random.initial_seed",
    "torch.random.seed",
    "torch.seed",
];

/// Functions that give a float of Python's. Source: as of [`INTEGERS`].
const FLOATS: &[&str] = &[
    "numpy.random.normal",
    "numpy.random.rand",
    "numpy.random.randn",
    "numpy.random.random",
    "numpy.random.uniform",
    "random.betavariate",
    "random.expovariate",
    "random.gauss",
    "random.normalvariate",
    "random.random",
    "random.uniform",
    "time.monotonic",
    "time.perf_counter",
    "time.process_time",
    "time.time",
];

impl Host<'_> {
    /// What such a function gives; `None` for others, and where they make an array. In one run that draws
    /// its random numbers, those that Python's library draws are known.
    pub(super) fn untold(&mut self, path: &[Name], args: &Args<'_>) -> Option<Value> {
        let path: Vec<&str> = path.iter().map(|name| &**name).collect();
        let bounds = match path.as_slice() {
            ["numpy", "random", "normal" | "randint" | "uniform"] => 2,
            ["numpy", ..] => 0,
            _ => usize::MAX,
        };
        if args.keyword("size").is_some() || args.positional().len() > bounds {
            return None;
        }
        let name = path.join(".");
        let is_told = !INTEGERS.contains(&&*name) && !FLOATS.contains(&&*name) && name != CHOICE;
        (!is_told).then(|| match self.drawn_in_run(&name, args) {
            Some(drawn) => drawn,
            None if name == CHOICE => one_of(args).unwrap_or(Value::Unknown),
            None if INTEGERS.contains(&&*name) => Value::Int(None),
            None => Value::Float(None),
        })
    }

    /// The number or element that a run draws, where it draws its random numbers and knows of which.
    fn drawn_in_run(&mut self, name: &str, args: &Args<'_>) -> Option<Value> {
        let known = |at: usize| match args.positional().get(at) {
            Some(Value::Int(number)) => *number,
            _ => None,
        };
        let mut draw = |lo: i128, hi: i128| {
            self.draws = true;
            let numbers = self.numbers.as_mut().filter(|_| lo <= hi)?;
            Some(numbers.integer(lo, hi))
        };
        match (name, args.positional().as_slice()) {
            (CHOICE, [items]) => {
                let items = items.elements().filter(|items| !items.is_empty())?;
                let at = draw(0, items.len() as i128 - 1)?;
                items.get(at as usize).cloned()
            }
            ("random.randint", [_, _]) => Some(Value::Int(Some(draw(known(0)?, known(1)?)?))),
            ("random.randrange" | "numpy.random.randint", [_, _]) => {
                Some(Value::Int(Some(draw(known(0)?, known(1)? - 1)?)))
            }
            ("random.randrange" | "numpy.random.randint", [_]) => {
                Some(Value::Int(Some(draw(0, known(0)? - 1)?)))
            }
            _ => None,
        }
    }
}

/// What any of the elements that are chosen from has.
fn one_of(args: &Args<'_>) -> Option<Value> {
    let elements = args.positional().first()?.elements()?;
    elements.into_iter().reduce(|a, b| join(&a, &b))
}
