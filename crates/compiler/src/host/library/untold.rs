//! Functions that give what no text tells: by chance, by the clock, by the process, by the machine.

use crate::hir::Name;
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::code::operators::join;
use crate::host::value::Value;

/// More choices are not followed.
const MAX_CHOICES: i128 = 4096;

/// What gives one of several elements.
const CHOICE: &str = "random.choice";

/// What gives several of several elements.
const CHOICES: &[&str] = &["random.choices", "random.sample"];

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

/// Functions that tell of the machine and of processes beside the running one, with what they give where
/// there is no more than one GPU, one process and the project's own files. Source: the documentation of
/// Python and PyTorch.
const OF_MACHINE: &[(&str, Told)] = &[
    ("os.path.exists", Told::Flag(false)),
    ("os.path.isdir", Told::Flag(false)),
    ("os.path.isfile", Told::Flag(false)),
    ("torch.cuda.device_count", Told::Number(1)),
    ("torch.distributed.get_rank", Told::Number(0)),
    ("torch.distributed.get_world_size", Told::Number(1)),
    ("torch.distributed.is_initialized", Told::Flag(false)),
];

#[derive(Clone, Copy)]
enum Told {
    Flag(bool),
    Number(i128),
}

impl Told {
    /// What may be given, and in one possible run is.
    fn value(self, happens: bool) -> Value {
        match self {
            Told::Flag(flag) => Value::Bool(happens.then_some(flag)),
            Told::Number(number) => Value::Int(happens.then_some(number)),
        }
    }
}

impl Host<'_> {
    /// Whether what the text leaves open is as one possible run has it: such a run follows where this one
    /// asks and is none.
    pub(crate) fn happens(&mut self) -> bool {
        self.draws = true;
        self.numbers.is_some()
    }

    /// What such a function gives; `None` for others, and where they make an array. In one run that draws
    /// its random numbers, those that Python's library draws are known.
    pub(crate) fn untold(&mut self, path: &[Name], args: &Args<'_>) -> Option<Value> {
        let path: Vec<&str> = path.iter().map(|name| &**name).collect();
        let name = path.join(".");
        if let Some((_, told)) = OF_MACHINE.iter().find(|(known, _)| *known == name) {
            return Some(told.value(self.happens()));
        }
        let bounds = match path.as_slice() {
            ["numpy", "random", "normal" | "randint" | "uniform"] => 2,
            ["numpy", ..] => 0,
            _ => usize::MAX,
        };
        if args.keyword("size").is_some() || args.positional().len() > bounds {
            return None;
        }
        let chooses = CHOICES.contains(&&*name);
        let is_number = INTEGERS.contains(&&*name) || FLOATS.contains(&&*name);
        (chooses || is_number || name == CHOICE).then(|| match self.drawn_in_run(&name, args) {
            Some(drawn) => drawn,
            None if chooses => Value::Unknown,
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
        if name == "random.random" {
            self.draws = true;
            return self.numbers.as_mut().map(|numbers| Value::Float(Some(numbers.fraction())));
        }
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
            ("random.sample", [items, Value::Int(Some(count))]) if args.keywords().is_empty() => {
                let mut items = items.elements()?;
                let count = usize::try_from(*count).ok().filter(|count| *count <= items.len())?;
                let sample = (0..count).map(|_| {
                    let at = draw(0, items.len() as i128 - 1)?;
                    Some(items.remove(at as usize))
                });
                Some(Value::List(sample.collect::<Option<_>>()?))
            }
            ("random.choices", [items]) => {
                let items = items.elements().filter(|items| !items.is_empty())?;
                let count = match args.keyword("k") {
                    None => 1,
                    Some(Value::Int(Some(count))) if (0..MAX_CHOICES).contains(count) => *count,
                    Some(_) => return None,
                };
                if args.keyword("weights").or(args.keyword("cum_weights")).is_some() {
                    return None;
                }
                let choice = |_| Some(items[draw(0, items.len() as i128 - 1)? as usize].clone());
                Some(Value::List((0..count).map(choice).collect::<Option<_>>()?))
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
