//! Functions and classes that Python has without an import.

use std::cell::RefCell;
use std::rc::Rc;

use super::super::size::MAX_ITEMS;
use super::super::value::{Const, Role, Value};
use super::super::{Evaluator, Source};
use super::{Exit, Obj, Run, raise, text};
use crate::builtins::{CORE, LANGUAGE, classes};
use crate::hir::{BinaryOp, CompareOp, Name};

/// The classes among them, which `isinstance` takes.
const CLASSES: &[&str] = &[
    "bool",
    "bytes",
    "dict",
    "enumerate",
    "float",
    "frozenset",
    "int",
    "list",
    "map",
    "object",
    "range",
    "reversed",
    "set",
    "str",
    "tuple",
    "type",
    "zip",
];

const FUNCTIONS: &[&str] = &[
    "abs",
    "all",
    "any",
    "bin",
    "callable",
    "chr",
    "divmod",
    "getattr",
    "hasattr",
    "hex",
    "isinstance",
    "issubclass",
    "len",
    "max",
    "min",
    "oct",
    "ord",
    "pow",
    "print",
    "repr",
    "round",
    "sorted",
    "sum",
];

/// Exceptions with the classes that they derive from, but for `Exception`.
const EXCEPTIONS: &[(&str, &[&str])] = &[
    ("ArithmeticError", &[]),
    ("AssertionError", &[]),
    ("AttributeError", &[]),
    ("BaseException", &[]),
    ("Exception", &[]),
    ("IndexError", &["LookupError"]),
    ("KeyError", &["LookupError"]),
    ("LookupError", &[]),
    ("NotImplementedError", &["RuntimeError"]),
    ("RuntimeError", &[]),
    ("TypeError", &[]),
    ("ValueError", &[]),
    ("ZeroDivisionError", &["ArithmeticError"]),
];

/// Functions of Python's other modules.
const IMPORTED: &[&str] = &[
    "functools.reduce",
    "itertools.chain",
    "itertools.product",
    "operator.add",
    "operator.floordiv",
    "operator.mod",
    "operator.mul",
    "operator.sub",
    "operator.truediv",
    "os.environ",
    "os.environ.get",
    "os.getenv",
];

/// The function that a dotted path means, as imports spell it.
pub(super) fn imported(path: &[Name]) -> Option<&'static str> {
    let path = path.join(".");
    IMPORTED.iter().find(|known| **known == path).copied()
}

/// The builtin that a name means.
pub(super) fn named(name: &str) -> Option<&'static str> {
    let exceptions = EXCEPTIONS.iter().map(|(exception, _)| exception);
    CLASSES.iter().chain(FUNCTIONS).chain(exceptions).find(|known| **known == name).copied()
}

/// True for a class.
pub(super) fn is_class(name: &str) -> bool {
    CLASSES.contains(&name) || EXCEPTIONS.iter().any(|(exception, _)| *exception == name)
}

/// Whether the exception `kind` may derive from `base`, which is another one.
pub(super) fn may_derive(kind: &str, base: &str) -> bool {
    match EXCEPTIONS.iter().find(|(exception, _)| *exception == kind) {
        Some((_, bases)) => bases.contains(&base),
        None => true,
    }
}

impl Evaluator<'_> {
    /// Calls a builtin.
    pub(super) fn python_builtin(
        &mut self,
        source: Source<'_>,
        name: &'static str,
        given: Vec<(Option<Name>, Obj)>,
    ) -> Run<Obj> {
        let mut args = Vec::new();
        let mut keywords = Vec::new();
        for (keyword, value) in given {
            match keyword {
                Some(keyword) => keywords.push((keyword, value)),
                None => args.push(value),
            }
        }
        if !keywords.is_empty() {
            return match (name, args.as_slice()) {
                ("dict", []) => {
                    let entries = keywords.into_iter().map(|(key, value)| (Obj::str(&key), value));
                    Ok(Obj::Dict(Rc::new(RefCell::new(entries.collect()))))
                }
                ("sorted", [items]) => self.python_sorted(source, items, &keywords),
                ("os.environ.get" | "os.getenv", [_]) if keywords.len() == 1 => {
                    self.unset_variable(Some(&keywords[0].1))
                }
                ("min" | "max", [_, ..]) => self.python_best(source, name, &args, &keywords),
                _ => Err(Exit::Unknown),
            };
        }
        match (name, args.as_slice()) {
            ("min" | "max", _) => self.python_best(source, name, &args, &[]),
            ("sorted", [items]) => self.python_sorted(source, items, &[]),
            ("print", _) => Ok(Obj::NONE),
            ("zip", _) => {
                let columns =
                    args.iter().map(|items| self.python_items(items)).collect::<Run<Vec<_>>>()?;
                let count = columns.iter().map(Vec::len).min().unwrap_or(0);
                let row = |at: usize| Obj::tuple(columns.iter().map(|it| it[at].clone()).collect());
                Ok(iterator((0..count).map(row).collect(), "zip"))
            }
            ("range", [_] | [_, _] | [_, _, _]) => {
                let bounds = args.iter().map(index).collect::<Run<Vec<i128>>>()?;
                match *bounds.as_slice() {
                    [end] => Ok(Obj::Range(0, end, 1)),
                    [start, end] => Ok(Obj::Range(start, end, 1)),
                    [_, _, 0] => raise("ValueError", "range() arg 3 must not be zero"),
                    [start, end, step] => Ok(Obj::Range(start, end, step)),
                    _ => Err(Exit::Unknown),
                }
            }
            ("os.environ.get" | "os.getenv", [_] | [_, _]) => self.unset_variable(args.get(1)),
            (_, [value]) => self.python_unary_builtin(name, value),
            ("isinstance", [value, class]) => self.python_is_instance(value, class).map(Obj::bool),
            ("sum", [items, start]) => self.python_total(items, start.clone()),
            ("enumerate", [items, start]) => self.python_enumerate(items, index(start)?),
            ("functools.reduce", [_, items] | [_, items, _]) => {
                let mut items = self.python_items(items)?.into_iter();
                let Some(first) = args.get(2).cloned().or_else(|| items.next()) else {
                    return raise("TypeError", "reduce() of empty iterable with no initial value");
                };
                items.try_fold(first, |left, right| {
                    self.python_apply(source, &args[0], vec![(None, left), (None, right)])
                })
            }
            ("itertools.chain", _) => {
                let parts =
                    args.iter().map(|items| self.python_items(items)).collect::<Run<Vec<_>>>()?;
                Ok(iterator(parts.concat(), "chain"))
            }
            ("itertools.product", _) => {
                let mut rows = vec![Vec::new()];
                for items in &args {
                    let items = self.python_items(items)?;
                    if rows.len().saturating_mul(items.len()) > MAX_ITEMS {
                        return Err(Exit::Unknown);
                    }
                    let extended = |row: &Vec<Obj>| {
                        let row = row.clone();
                        items.clone().into_iter().map(move |item| [&row[..], &[item]].concat())
                    };
                    rows = rows.iter().flat_map(extended).collect();
                }
                Ok(iterator(rows.into_iter().map(Obj::tuple).collect(), "product"))
            }
            (_, [left, right]) if let Some(op) = operator(name) => {
                self.python_binary(op, left, right)
            }
            ("divmod", [left, right]) => {
                let quotient = self.python_binary(BinaryOp::FloorDiv, left, right)?;
                let rest = self.python_binary(BinaryOp::Mod, left, right)?;
                Ok(Obj::tuple(vec![quotient, rest]))
            }
            ("pow", [left, right]) => self.python_binary(BinaryOp::Pow, left, right),
            ("map", [function, items]) => {
                let mut results = Vec::new();
                for item in self.python_items(items)? {
                    results.push(self.python_apply(source, function, vec![(None, item)])?);
                }
                Ok(iterator(results, "map"))
            }
            ("getattr" | "hasattr", [object, Obj::Const(Const::Str(attr)), ..]) => {
                let found = self.python_member(source, object, &Name::from(&**attr))?;
                match (name, found, args.get(2)) {
                    ("hasattr", found, _) => Ok(Obj::bool(found.is_some())),
                    (_, Some(value), _) => Ok(value),
                    (_, None, Some(default)) => Ok(default.clone()),
                    (_, None, None) => raise("AttributeError", format!("no attribute '{attr}'")),
                }
            }
            ("int", [Obj::Const(Const::Str(text)), base]) => {
                let base = u32::try_from(index(base)?).ok();
                let base = base.filter(|base| (2..=36).contains(base)).ok_or(Exit::Unknown)?;
                Ok(Obj::int(i128::from_str_radix(text, base).map_err(|_| Exit::Unknown)?))
            }
            ("int" | "float" | "str" | "bool" | "list" | "tuple" | "set" | "dict", []) => {
                self.python_empty(name)
            }
            _ => Err(Exit::Unknown),
        }
    }

    /// What a variable of the environment holds: a kernel is compiled as if it were not set, and
    /// inferred for any value.
    fn unset_variable(&mut self, default: Option<&Obj>) -> Run<Obj> {
        self.take_unset()?;
        Ok(default.cloned().unwrap_or(Obj::NONE))
    }

    /// Takes variables of the environment to be unset, where that is not left open.
    pub(super) fn take_unset(&mut self) -> Run<()> {
        if !self.exact {
            return Err(Exit::Unknown);
        }
        self.unset = true;
        Ok(())
    }

    fn python_empty(&mut self, class: &str) -> Run<Obj> {
        Ok(match class {
            "int" => Obj::int(0),
            "float" => Obj::Const(Const::Float(0.0)),
            "str" => Obj::str(""),
            "bool" => Obj::bool(false),
            "list" => Obj::list(Vec::new()),
            "tuple" => Obj::tuple(Vec::new()),
            "set" => Obj::Set(Rc::default()),
            _ => Obj::Dict(Rc::default()),
        })
    }

    fn python_unary_builtin(&mut self, name: &'static str, value: &Obj) -> Run<Obj> {
        Ok(match name {
            "len" => Obj::int(length(value)? as i128),
            "str" => Obj::str(&text::str(value).ok_or(Exit::Unknown)?),
            "repr" => Obj::str(&text::repr(value).ok_or(Exit::Unknown)?),
            "bool" => Obj::bool(self.python_truth(value)?),
            "int" | "float" => number(name, value)?,
            "list" => Obj::list(self.python_items(value)?),
            "tuple" => Obj::tuple(self.python_items(value)?),
            "set" | "frozenset" => {
                let items = self.python_unordered(value)?;
                self.python_set(items)?
            }
            "dict" => match value {
                Obj::Dict(entries) => Obj::Dict(Rc::new(RefCell::new(entries.borrow().clone()))),
                _ => {
                    let made = Obj::Dict(Rc::default());
                    for pair in self.python_items(value)? {
                        let pair = self.python_items(&pair)?;
                        let [key, value] = pair.as_slice() else { return Err(Exit::Unknown) };
                        self.python_store(&made, key, value.clone())?;
                    }
                    made
                }
            },
            "iter" | "reversed" => {
                let mut items = self.python_items(value)?;
                items.reverse();
                iterator(items, "reversed")
            }
            "enumerate" => self.python_enumerate(value, 0)?,
            "sum" => self.python_total(value, Obj::int(0))?,
            "any" | "all" => {
                let mut result = name == "all";
                for item in self.python_unordered(value)? {
                    result = self.python_truth(&item)?;
                    if result == (name == "any") {
                        break;
                    }
                    result = name == "all";
                }
                Obj::bool(result)
            }
            "abs" => match value {
                Obj::Const(Const::Int(value)) => {
                    Obj::int(value.checked_abs().ok_or(Exit::Unknown)?)
                }
                Obj::Const(Const::Bool(value)) => Obj::int(i128::from(*value)),
                Obj::Const(Const::Float(value)) => Obj::Const(Const::Float(value.abs())),
                Obj::Const(Const::None | Const::Str(_) | Const::DType(_))
                | Obj::List(_)
                | Obj::Tuple(..) => {
                    return raise(
                        "TypeError",
                        format!("bad operand type for abs(): '{}'", value.class_text()),
                    );
                }
                _ => return Err(Exit::Unknown),
            },
            "round" => match value {
                Obj::Const(Const::Int(value)) => Obj::int(*value),
                Obj::Const(Const::Float(value)) if value.abs() < 1e15 => {
                    Obj::int(value.round_ties_even() as i128)
                }
                _ => return Err(Exit::Unknown),
            },
            "ord" => match value {
                Obj::Const(Const::Str(text)) if text.chars().count() == 1 => {
                    Obj::int(text.chars().next().map_or(0, |c| i128::from(u32::from(c))))
                }
                _ => return Err(Exit::Unknown),
            },
            "chr" => {
                let c = u32::try_from(index(value)?).ok().and_then(char::from_u32);
                Obj::str(c.ok_or(Exit::Unknown)?.encode_utf8(&mut [0; 4]))
            }
            "bin" => Obj::str(&based(index(value)?, "0b", |value| format!("{value:b}"))),
            "hex" => Obj::str(&based(index(value)?, "0x", |value| format!("{value:x}"))),
            "oct" => Obj::str(&based(index(value)?, "0o", |value| format!("{value:o}"))),
            "callable" => match value {
                Obj::Builtin(_) | Obj::Lambda(_) | Obj::Method(..) => Obj::bool(true),
                Obj::Const(Const::Int(_) | Const::Float(_) | Const::Str(_) | Const::None) => {
                    Obj::bool(false)
                }
                _ => return Err(Exit::Unknown),
            },
            "type" => match value {
                Obj::Value(Value::Object(_)) => return Err(Exit::Unknown),
                Obj::Tuple(_, Some(_)) => return Err(Exit::Unknown),
                // Classes of the language have names alone here.
                value => Obj::Builtin(static_class(value).ok_or(Exit::Unknown)?),
            },
            _ => return Err(Exit::Unknown),
        })
    }

    fn python_total(&mut self, items: &Obj, start: Obj) -> Run<Obj> {
        let items = self.python_items(items)?;
        items.iter().try_fold(start, |sum, item| self.python_binary(BinaryOp::Add, &sum, item))
    }

    fn python_enumerate(&mut self, items: &Obj, start: i128) -> Run<Obj> {
        let items = self.python_items(items)?.into_iter().zip(start..);
        let pair = |(item, at)| Obj::tuple(vec![Obj::int(at), item]);
        Ok(iterator(items.map(pair).collect(), "enumerate"))
    }

    /// The keys by which values are ordered.
    fn python_keys(
        &mut self,
        source: Source<'_>,
        items: &[Obj],
        keywords: &[(Name, Obj)],
    ) -> Run<Vec<Obj>> {
        let Some((_, function)) = keywords.iter().find(|(name, _)| &**name == "key") else {
            return Ok(items.to_vec());
        };
        let key = |item: &Obj| self.python_apply(source, function, vec![(None, item.clone())]);
        items.iter().map(key).collect()
    }

    fn python_sorted(
        &mut self,
        source: Source<'_>,
        items: &Obj,
        keywords: &[(Name, Obj)],
    ) -> Run<Obj> {
        let items = self.python_unordered(items)?;
        let keys = self.python_keys(source, &items, keywords)?;
        let reverse = match keywords.iter().find(|(name, _)| &**name == "reverse") {
            Some((_, reverse)) => self.python_truth(reverse)?,
            None => false,
        };
        let mut sorted: Vec<(Obj, Obj)> = Vec::with_capacity(items.len());
        for (key, item) in keys.into_iter().zip(items) {
            let mut at = sorted.len();
            while at > 0 {
                let (left, right) = match reverse {
                    false => (&key, &sorted[at - 1].0),
                    true => (&sorted[at - 1].0, &key),
                };
                let less = self.python_compare(CompareOp::Lt, left, right)?;
                if !self.python_truth(&less)? {
                    break;
                }
                at -= 1;
            }
            sorted.insert(at, (key, item));
        }
        Ok(Obj::list(sorted.into_iter().map(|(_, item)| item).collect()))
    }

    fn python_best(
        &mut self,
        source: Source<'_>,
        name: &str,
        args: &[Obj],
        keywords: &[(Name, Obj)],
    ) -> Run<Obj> {
        let items = match args {
            // Neither a tensor nor a type has elements.
            [only @ Obj::Value(Value::Tensor(_))] => {
                let class = only.class_text();
                return raise("TypeError", format!("'{class}' object is not iterable"));
            }
            [only] => self.python_unordered(only)?,
            several => several.to_vec(),
        };
        let keys = self.python_keys(source, &items, keywords)?;
        let op = if name == "max" { CompareOp::Gt } else { CompareOp::Lt };
        let mut best = 0;
        for at in 1..items.len() {
            let better = self.python_compare(op, &keys[at], &keys[best])?;
            if self.python_truth(&better)? {
                best = at;
            }
        }
        match (items.get(best), keywords.iter().find(|(name, _)| &**name == "default")) {
            (Some(item), _) => Ok(item.clone()),
            (None, Some((_, default))) => Ok(default.clone()),
            (None, None) => raise("ValueError", format!("{name}() arg is an empty sequence")),
        }
    }

    pub(super) fn python_is_instance(&mut self, value: &Obj, class: &Obj) -> Run<bool> {
        match class {
            Obj::Tuple(classes, None) => {
                for class in classes.iter() {
                    if self.python_is_instance(value, class)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Obj::Builtin("object") => Ok(true),
            Obj::Builtin(class) => is_of_class(value, class),
            Obj::Value(Value::Builtin(class)) if matches!(class.module, LANGUAGE | CORE) => {
                Ok(match class.name {
                    "constexpr" => matches!(value, Obj::Constexpr(_)),
                    "tuple" => matches!(value, Obj::Sequence(..)),
                    "tensor" => matches!(value, Obj::Value(Value::Tensor(_) | Value::BlockPtr(_))),
                    "dtype" => {
                        matches!(value, Obj::Const(Const::DType(_) | Const::BlockType(..)))
                    }
                    "pointer_type" => {
                        matches!(value, Obj::Const(Const::DType(elem)) if elem.is_ptr())
                    }
                    "block_type" => matches!(value, Obj::Const(Const::BlockType(..))),
                    "tensor_descriptor" | "tensor_descriptor_base" => {
                        matches!(value, Obj::Value(Value::Descriptor(_)))
                    }
                    "base_value" => match value {
                        Obj::Constexpr(_) | Obj::Sequence(..) => true,
                        Obj::Value(Value::Tensor(_) | Value::Descriptor(_) | Value::Object(_)) => {
                            true
                        }
                        Obj::Const(_) | Obj::Tuple(..) | Obj::List(_) | Obj::Dict(_) => false,
                        _ => return Err(Exit::Unknown),
                    },
                    _ => return Err(Exit::Unknown),
                })
            }
            Obj::Value(Value::Class(class)) => match value {
                Obj::Value(Value::Object(object)) => {
                    let same = std::sync::Arc::ptr_eq(&object.class.class, &class.class);
                    if same { Ok(true) } else { Err(Exit::Unknown) }
                }
                Obj::Tuple(_, Some(_)) | Obj::Const(Const::Member(_)) => Err(Exit::Unknown),
                Obj::Constexpr(value) if matches!(**value, Obj::Const(Const::Member(_))) => {
                    Err(Exit::Unknown)
                }
                _ => Ok(false),
            },
            Obj::Const(_) | Obj::List(_) => {
                let message = "isinstance() arg 2 must be a type, a tuple of types, or a union";
                raise("TypeError", message)
            }
            _ => Err(Exit::Unknown),
        }
    }

    /// An attribute, if a value has it.
    fn python_member(&mut self, source: Source<'_>, object: &Obj, attr: &Name) -> Run<Option<Obj>> {
        match self.python_attribute(source, object, attr) {
            Ok(value) => Ok(Some(value)),
            Err(Exit::Raised(exception)) if exception.kind == Some("AttributeError") => Ok(None),
            Err(exit) => Err(exit),
        }
    }
}

/// Whether a value is of one of Python's classes.
fn is_of_class(value: &Obj, class: &str) -> Run<bool> {
    let member = match value {
        Obj::Const(Const::Enum(_)) => return Err(Exit::Unknown),
        Obj::Const(Const::Member(member)) => member.plain(),
        Obj::Const(value) => Some(value),
        _ => None,
    };
    Ok(match class {
        "NoneType" => matches!(value, Obj::Const(Const::None)),
        "int" => matches!(member, Some(Const::Int(_) | Const::Bool(_))),
        "bool" => matches!(member, Some(Const::Bool(_))),
        "float" => matches!(member, Some(Const::Float(_))),
        "str" => matches!(member, Some(Const::Str(_))),
        "tuple" => matches!(value, Obj::Tuple(..)),
        "list" => matches!(value, Obj::List(_)),
        "dict" => matches!(value, Obj::Dict(_)),
        "set" => matches!(value, Obj::Set(_)),
        "range" => matches!(value, Obj::Range(..)),
        "type" => {
            matches!(value, Obj::Builtin(name) if is_class(name))
                || matches!(value, Obj::Value(Value::Class(_)))
        }
        _ => return Err(Exit::Unknown),
    })
}

/// The name of a value's class that is written in Python or the language.
fn static_class(value: &Obj) -> Option<&'static str> {
    const OF_LANGUAGE: &[&str] = &[
        "NoneType",
        "block_type",
        "builtin_function_or_method",
        "constexpr",
        "dtype",
        "ellipsis",
        "function",
        "generator",
        "module",
        "pointer_type",
        "tensor",
        "JITFunction",
        "ConstexprFunction",
    ];
    let class = value.class()?;
    named(class).or_else(|| OF_LANGUAGE.iter().find(|known| **known == class).copied())
}

fn iterator(items: Vec<Obj>, class: &'static str) -> Obj {
    Obj::Iterator(Rc::new(RefCell::new(items)), class)
}

/// `len(value)`.
fn length(value: &Obj) -> Run<usize> {
    Ok(match value {
        Obj::Tuple(items, _) | Obj::Sequence(items, _) => items.len(),
        Obj::List(items) | Obj::Set(items) => items.borrow().len(),
        Obj::Dict(entries) => entries.borrow().len(),
        Obj::Range(start, end, step) => {
            super::super::range::iterations(*start, *end, *step) as usize
        }
        Obj::Const(Const::Str(text)) => text.chars().count(),
        Obj::Const(Const::Member(_) | Const::Enum(_)) => return Err(Exit::Unknown),
        Obj::Const(_)
        | Obj::Constexpr(_)
        | Obj::Iterator(..)
        | Obj::Value(Value::Tensor(_) | Value::Module(_)) => {
            return raise(
                "TypeError",
                format!("object of type '{}' has no len()", value.class_text()),
            );
        }
        Obj::Value(Value::Function(function)) if function.kind.role != Role::Unknown => {
            return raise(
                "TypeError",
                format!("object of type '{}' has no len()", value.class_text()),
            );
        }
        _ => return Err(Exit::Unknown),
    })
}

/// `int(value)` or `float(value)`.
fn number(class: &str, value: &Obj) -> Run<Obj> {
    let int = class == "int";
    Ok(match value {
        Obj::Const(Const::Int(value)) if int => Obj::int(*value),
        Obj::Const(Const::Int(value)) => Obj::Const(Const::Float(*value as f64)),
        Obj::Const(Const::Bool(value)) if int => Obj::int(i128::from(*value)),
        Obj::Const(Const::Bool(value)) => Obj::Const(Const::Float(f64::from(u8::from(*value)))),
        Obj::Const(Const::Float(value)) if !int => Obj::Const(Const::Float(*value)),
        Obj::Const(Const::Float(value)) if value.is_finite() && value.abs() < 1e38 => {
            Obj::int(value.trunc() as i128)
        }
        Obj::Const(Const::Str(text)) if int => match text.trim().parse::<i128>() {
            Ok(value) => Obj::int(value),
            Err(_) if text.contains('_') || text.len() > 38 => return Err(Exit::Unknown),
            Err(_) => {
                let text = text::repr(value).unwrap_or_default();
                let message = format!("invalid literal for int() with base 10: {text}");
                return raise("ValueError", message);
            }
        },
        Obj::Const(Const::None | Const::DType(_))
        | Obj::Tuple(..)
        | Obj::List(_)
        | Obj::Sequence(..) => {
            let what = if int {
                "a string, a bytes-like object or a real number"
            } else {
                "a string or a real number"
            };
            let message =
                format!("{class}() argument must be {what}, not '{}'", value.class_text());
            return raise("TypeError", message);
        }
        _ => return Err(Exit::Unknown),
    })
}

/// An integer where Python takes nothing else.
pub(super) fn index(value: &Obj) -> Run<i128> {
    match value {
        Obj::Const(Const::Int(value)) => Ok(*value),
        Obj::Const(Const::Bool(value)) => Ok(i128::from(*value)),
        Obj::Constexpr(value) if matches!(**value, Obj::Const(Const::Int(_))) => index(value),
        Obj::Const(Const::Member(_) | Const::Enum(_)) | Obj::Constexpr(_) => Err(Exit::Unknown),
        Obj::Value(Value::Object(_)) => Err(Exit::Unknown),
        other => {
            let class = other.class_text();
            raise("TypeError", format!("'{class}' object cannot be interpreted as an integer"))
        }
    }
}

/// The operator that a function of Python's `operator` is.
fn operator(name: &str) -> Option<BinaryOp> {
    Some(match name.strip_prefix("operator.")? {
        "add" => BinaryOp::Add,
        "floordiv" => BinaryOp::FloorDiv,
        "mod" => BinaryOp::Mod,
        "mul" => BinaryOp::Mul,
        "sub" => BinaryOp::Sub,
        "truediv" => BinaryOp::Div,
        _ => return None,
    })
}

fn based(value: i128, prefix: &str, digits: impl Fn(u128) -> String) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{prefix}{}", digits(value.unsigned_abs()))
}

/// True where the name is a method of one of Python's classes.
pub(super) fn is_method_name(name: &str) -> bool {
    ["int", "str", "list", "dict"].iter().any(|class| classes::exists(class, name))
}
