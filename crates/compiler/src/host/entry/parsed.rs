//! Parsers of command lines, as of `argparse`: what they have by default, and what they make of options that
//! code gives them.

use crate::hir::Name;
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::library::environment::is_option;
use crate::host::value::Value;

/// An argument that a parser knows.
#[derive(Debug, Clone)]
pub(crate) struct Argument {
    /// What it is called on the command line: `-n`, `--size`.
    flags: Vec<Name>,
    /// The attribute that it sets.
    sets: Name,
    /// What it is set to where it is given and takes nothing.
    constant: Option<Value>,
    /// What reads each of its texts.
    read: Option<Value>,
    /// Whether it takes any number of texts.
    takes_many: bool,
}

impl Host<'_> {
    /// `parser.add_argument(...)`.
    pub(crate) fn add_argument(&mut self, parser: usize, args: &Args<'_>) {
        let Some((argument, default)) = argument(args) else { return };
        // A text is taken as one that the command line gives.
        let default = match (&argument.read, default) {
            (Some(read), text @ Value::Str(_)) => self.call_value(&read.clone(), &[(None, text)]),
            (_, default) => default,
        };
        self.add_default(parser, &argument.sets, default);
        self.parsers.entry(parser).or_default().push(argument);
    }

    /// Adds what an argument of a command line is by default: another command may have one of the same name.
    fn add_default(&mut self, parser: usize, name: &Name, value: Value) {
        let known = self.objects.get(&parser).and_then(|known| known.get(name).cloned());
        let value = match known {
            Some(known) => self.one_of(value, &known),
            None => value,
        };
        self.set_attribute(parser, name, value);
    }

    /// What `parser.parse_args(...)` gives: without options everything has its default.
    pub(crate) fn parsed(&mut self, parser: usize, args: &Args<'_>) -> Value {
        let given = match args.get(0, "args") {
            None | Some(Value::None) => return Value::Object(parser),
            Some(given) => given.elements(),
        };
        match given {
            Some(given) if !given.iter().any(is_option) => Value::Object(parser),
            Some(given) => self.read_options(parser, &given).unwrap_or(Value::Unknown),
            None => Value::Unknown,
        }
    }

    /// `config.getoption(name, default)` of pytest, which is started without options.
    pub(crate) fn option_by_default(&self, parser: usize, args: &Args<'_>) -> Value {
        let Some(Value::Str(name)) = args.get(0, "name") else { return Value::Unknown };
        let known = self.objects.get(&parser).and_then(|known| known.get(&*attribute_of(name)));
        known.or(args.get(1, "default")).cloned().unwrap_or(Value::Unknown)
    }

    /// A namespace with what options set and the defaults of the others.
    fn read_options(&mut self, parser: usize, given: &[Value]) -> Option<Value> {
        let arguments = self.parsers.get(&parser)?.clone();
        let texts = given.iter().map(|text| match text {
            Value::Str(text) => Some(text.clone()),
            _ => None,
        });
        let texts = texts.collect::<Option<Vec<Name>>>()?;
        let defaults = self.objects.get(&parser)?.clone();
        let Value::Object(made) = self.object() else { return None };
        self.objects.insert(made, defaults);
        let mut rest = &texts[..];
        while let Some((flag, after)) = rest.split_first() {
            let (flag, joined) = match flag.split_once('=') {
                Some((flag, text)) => (flag, Some(Name::from(text))),
                None => (&**flag, None),
            };
            let argument =
                arguments.iter().find(|argument| argument.flags.iter().any(|it| **it == *flag))?;
            let others = after.iter().position(|text| text.starts_with('-'));
            let taken = match (&argument.constant, &joined, argument.takes_many) {
                (Some(_), ..) | (None, Some(_), _) => 0,
                (None, None, true) => others.unwrap_or(after.len()),
                (None, None, false) => 1,
            };
            let (own, after) = after.split_at_checked(taken)?;
            let mut read = own.iter().chain(&joined).map(|text| {
                let text = Value::Str(text.clone());
                match &argument.read {
                    Some(read) => self.call_value(read, &[(None, text)]),
                    None => text,
                }
            });
            let value = match (&argument.constant, argument.takes_many) {
                (Some(constant), _) => constant.clone(),
                (None, true) => Value::List(read.collect()),
                (None, false) => read.next()?,
            };
            self.replace_attribute(made, &argument.sets, value);
            rest = after;
        }
        Some(Value::Object(made))
    }
}

/// The attribute that an option sets: `--max-size` sets `max_size`.
fn attribute_of(option: &str) -> String {
    option.trim_start_matches('-').replace('-', "_")
}

/// What `add_argument` adds, and what it is by default.
fn argument(args: &Args<'_>) -> Option<(Argument, Value)> {
    let text = |value: &Value| match value {
        Value::Str(text) => Some(text.clone()),
        _ => None,
    };
    let names: Vec<Name> = args.positional().into_iter().filter_map(text).collect();
    let long = names.iter().find(|name| name.starts_with("--"));
    let sets = match args.keyword("dest").and_then(text) {
        Some(name) => name,
        None => attribute_of(long.or(names.first())?).into(),
    };
    let is_option = names.first()?.starts_with('-');
    let action = args.keyword("action").and_then(text);
    let constant = match action.as_deref() {
        Some("store_true") => Some(Value::Bool(Some(true))),
        Some("store_false") => Some(Value::Bool(Some(false))),
        Some("store_const") => args.keyword("const").cloned(),
        Some("store") | None => None,
        Some(_) => Some(Value::Unknown),
    };
    let default = match (args.keyword("default"), action.as_deref()) {
        (Some(default), _) => default.clone(),
        (None, Some("store_true")) => Value::Bool(Some(false)),
        (None, Some("store_false")) => Value::Bool(Some(true)),
        (None, _) if is_option && args.keyword("required").is_none() => Value::None,
        (None, _) => Value::Unknown,
    };
    let read = args.keyword("type").cloned();
    let takes_many = args.keyword("nargs").is_some();
    Some((Argument { flags: names, sets, constant, read, takes_many }, default))
}
