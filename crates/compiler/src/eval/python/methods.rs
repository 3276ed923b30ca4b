//! Methods of Python's classes.

use std::cell::RefCell;
use std::rc::Rc;

use super::super::Evaluator;
use super::super::value::Const;
use super::builtins::index;
use super::{Exit, Obj, Run, raise, text};
use crate::hir::Name;

/// Texts are not filled up to more letters.
const MAX_WIDTH: usize = 1 << 16;

impl Evaluator<'_> {
    /// Calls a method.
    pub(super) fn python_method(
        &mut self,
        receiver: &Obj,
        name: &str,
        given: Vec<(Option<Name>, Obj)>,
    ) -> Run<Obj> {
        if let (Obj::Const(Const::Str(text)), "format") = (receiver, name) {
            return Ok(Obj::str(&formatted(text, &given).ok_or(Exit::Unknown)?));
        }
        if let Obj::Instance(instance) = receiver {
            return self.call_instance_method(instance, name, given);
        }
        let is_limit = |keyword: &Option<Name>| keyword.as_deref() == Some("maxsplit");
        let splits = matches!(name, "split" | "rsplit") && given.len() == 2;
        if given.iter().any(|(keyword, _)| keyword.is_some() && !(splits && is_limit(keyword))) {
            return Err(Exit::Unknown);
        }
        let args: Vec<Obj> = given.into_iter().map(|(_, value)| value).collect();
        match receiver {
            Obj::Const(Const::Str(text)) => self.string_method(text, name, &args),
            Obj::Const(Const::Int(value)) => integer_method(*value, name, &args),
            Obj::Const(Const::Bool(value)) => integer_method(i128::from(*value), name, &args),
            Obj::Const(Const::Float(value)) if name == "is_integer" => {
                Ok(Obj::bool(value.fract() == 0.0))
            }
            Obj::List(items) => self.list_method(items, name, &args),
            Obj::Tuple(items, _) => {
                let items = Rc::new(RefCell::new(items.to_vec()));
                self.list_method(&items, name, &args)
            }
            Obj::Dict(_) => self.dictionary_method(receiver, name, &args),
            Obj::Set(items) => match (name, args.as_slice()) {
                ("add", [item]) => {
                    super::operators::check_hashable(item)?;
                    let known = items.borrow().clone();
                    if !self.python_contains(&known, item)? {
                        items.borrow_mut().push(item.clone());
                    }
                    Ok(Obj::NONE)
                }
                _ => Err(Exit::Unknown),
            },
            _ => Err(Exit::Unknown),
        }
    }

    fn list_method(&mut self, items: &Rc<RefCell<Vec<Obj>>>, name: &str, args: &[Obj]) -> Run<Obj> {
        match (name, args) {
            ("append", [item]) => items.borrow_mut().push(item.clone()),
            ("extend", [more]) => {
                let more = self.python_items(more)?;
                items.borrow_mut().extend(more);
            }
            ("clear", []) => items.borrow_mut().clear(),
            ("reverse", []) => items.borrow_mut().reverse(),
            ("copy", []) => return Ok(Obj::list(items.borrow().clone())),
            ("insert", [at, item]) => {
                let count = items.borrow().len() as i128;
                let at = index(at)?;
                let at = if at < 0 { at + count } else { at }.clamp(0, count);
                items.borrow_mut().insert(at as usize, item.clone());
            }
            ("pop", [] | [_]) => {
                let last = Obj::int(-1);
                let count = items.borrow().len();
                let at = super::operators::position(args.first().unwrap_or(&last), count)?;
                return Ok(items.borrow_mut().remove(at));
            }
            ("index", [item]) => {
                let known = items.borrow().clone();
                for (at, other) in known.iter().enumerate() {
                    if self.python_equal(other, item)? {
                        return Ok(Obj::int(at as i128));
                    }
                }
                return raise("ValueError", "the value is not in the sequence");
            }
            ("count", [item]) => {
                let known = items.borrow().clone();
                let mut count = 0;
                for other in &known {
                    count += i128::from(self.python_equal(other, item)?);
                }
                return Ok(Obj::int(count));
            }
            _ => return Err(Exit::Unknown),
        }
        Ok(Obj::NONE)
    }

    fn dictionary_method(&mut self, receiver: &Obj, name: &str, args: &[Obj]) -> Run<Obj> {
        let Obj::Dict(entries) = receiver else { return Err(Exit::Unknown) };
        let known = entries.borrow().clone();
        let listed =
            |items: Vec<Obj>| Ok(Obj::Iterator(Rc::new(RefCell::new(items)), "dict_items"));
        match (name, args) {
            ("keys", []) => listed(known.into_iter().map(|(key, _)| key).collect()),
            ("values", []) => listed(known.into_iter().map(|(_, value)| value).collect()),
            ("items", []) => {
                listed(known.into_iter().map(|(key, value)| Obj::tuple(vec![key, value])).collect())
            }
            ("copy", []) => Ok(Obj::Dict(Rc::new(RefCell::new(known)))),
            ("get" | "setdefault", [key] | [key, _]) => {
                super::operators::check_hashable(key)?;
                for (other, value) in &known {
                    if self.python_equal(other, key)? {
                        return Ok(value.clone());
                    }
                }
                let default = args.get(1).cloned().unwrap_or(Obj::NONE);
                if name == "setdefault" {
                    entries.borrow_mut().push((key.clone(), default.clone()));
                }
                Ok(default)
            }
            ("update", [Obj::Dict(more)]) => {
                let more = more.borrow().clone();
                for (key, value) in more {
                    self.python_store(receiver, &key, value)?;
                }
                Ok(Obj::NONE)
            }
            _ => Err(Exit::Unknown),
        }
    }

    fn string_method(&mut self, value: &str, name: &str, args: &[Obj]) -> Run<Obj> {
        let string = |at: usize| match args.get(at) {
            Some(Obj::Const(Const::Str(text))) => Some(&**text),
            _ => None,
        };
        if let ("join", [items]) = (name, args) {
            let mut parts = Vec::new();
            for item in self.python_items(items)? {
                match item {
                    Obj::Const(Const::Str(text)) => parts.push(text.to_string()),
                    Obj::Const(Const::Member(_)) => return Err(Exit::Unknown),
                    other => {
                        let class = other.class_text();
                        let message =
                            format!("sequence item: expected str instance, {class} found");
                        return raise("TypeError", message);
                    }
                }
            }
            return Ok(Obj::str(&parts.join(value)));
        }
        if let ("startswith" | "endswith", [Obj::Tuple(affixes, _)]) = (name, args) {
            for affix in affixes.iter() {
                let found = self.string_method(value, name, std::slice::from_ref(affix))?;
                if self.python_truth(&found)? {
                    return Ok(found);
                }
            }
            return Ok(Obj::bool(false));
        }
        if let Some(place) = place(value, name, args) {
            return match place {
                None if name.ends_with("index") => raise("ValueError", "substring not found"),
                place => Ok(Obj::int(place.map_or(-1, |at| at as i128))),
            };
        }
        if let Some(parts) = parts(value, name, args) {
            let parts = parts.into_iter().map(Obj::str).collect();
            return Ok(if name.ends_with("split") { Obj::list(parts) } else { Obj::tuple(parts) });
        }
        let all = |test: fn(char) -> bool| Obj::bool(!value.is_empty() && value.chars().all(test));
        Ok(match (name, args.len(), string(0)) {
            ("lower" | "casefold", 0, _) => Obj::str(&value.to_lowercase()),
            ("upper", 0, _) => Obj::str(&value.to_uppercase()),
            ("capitalize", 0, _) => {
                let mut chars = value.chars();
                let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
                Obj::str(&(first + &chars.as_str().to_lowercase()))
            }
            ("strip", 0, _) => Obj::str(value.trim()),
            ("lstrip", 0, _) => Obj::str(value.trim_start()),
            ("rstrip", 0, _) => Obj::str(value.trim_end()),
            ("strip", 1, Some(chars)) => Obj::str(value.trim_matches(|c| chars.contains(c))),
            ("lstrip", 1, Some(chars)) => Obj::str(value.trim_start_matches(|c| chars.contains(c))),
            ("rstrip", 1, Some(chars)) => Obj::str(value.trim_end_matches(|c| chars.contains(c))),
            ("split", 0, _) => Obj::list(value.split_whitespace().map(Obj::str).collect()),
            ("splitlines", 0, _) => Obj::list(value.lines().map(Obj::str).collect()),
            ("startswith", 1, Some(prefix)) => Obj::bool(value.starts_with(prefix)),
            ("endswith", 1, Some(suffix)) => Obj::bool(value.ends_with(suffix)),
            ("removeprefix", 1, Some(prefix)) => {
                Obj::str(value.strip_prefix(prefix).unwrap_or(value))
            }
            ("removesuffix", 1, Some(suffix)) => {
                Obj::str(value.strip_suffix(suffix).unwrap_or(value))
            }
            ("replace", 2, Some(old)) if let Some(new) = string(1) => {
                Obj::str(&value.replace(old, new))
            }
            ("count", 1, Some(part)) if !part.is_empty() => {
                Obj::int(value.matches(part).count() as i128)
            }
            ("zfill", 1, _) => {
                let width = usize::try_from(index(&args[0])?).unwrap_or(0);
                if width > MAX_WIDTH {
                    return Err(Exit::Unknown);
                }
                let (sign, digits) = value.split_at(usize::from(value.starts_with(['+', '-'])));
                let zeros = width.saturating_sub(value.chars().count());
                Obj::str(&format!("{sign}{}{digits}", "0".repeat(zeros)))
            }
            ("isdigit" | "isdecimal", 0, _) if value.is_ascii() => all(|c| c.is_ascii_digit()),
            ("isalpha", 0, _) if value.is_ascii() => all(|c| c.is_ascii_alphabetic()),
            ("isalnum", 0, _) if value.is_ascii() => all(|c| c.is_ascii_alphanumeric()),
            ("isspace", 0, _) if value.is_ascii() => all(|c| c.is_ascii_whitespace()),
            _ => return Err(Exit::Unknown),
        })
    }
}

/// Where in a text another one is found, in characters, as methods tell that look for it; `None` for other methods.
fn place(value: &str, name: &str, args: &[Obj]) -> Option<Option<usize>> {
    let [Obj::Const(Const::Str(part))] = args else { return None };
    let byte = match name {
        "find" | "index" => value.find(&**part),
        "rfind" | "rindex" => value.rfind(&**part),
        _ => return None,
    };
    Some(byte.map(|byte| value[..byte].chars().count()))
}

/// The parts of a text, as methods tell that take it apart at a separator; `None` for other methods.
fn parts<'t>(value: &'t str, name: &str, args: &'t [Obj]) -> Option<Vec<&'t str>> {
    let (Obj::Const(Const::Str(separator)), rest) = args.split_first()? else { return None };
    let most = match rest {
        [] => usize::MAX,
        [Obj::Const(Const::Int(limit))] => {
            usize::try_from(*limit).map_or(usize::MAX, |it| it.saturating_add(1))
        }
        _ => return None,
    };
    let separator = Some(&**separator).filter(|it| !it.is_empty())?;
    Some(match (name, rest) {
        ("split", _) => value.splitn(most, separator).collect(),
        ("rsplit", _) => {
            let mut parts: Vec<&str> = value.rsplitn(most, separator).collect();
            parts.reverse();
            parts
        }
        ("partition", []) => match value.split_once(separator) {
            Some((before, behind)) => vec![before, separator, behind],
            None => vec![value, "", ""],
        },
        ("rpartition", []) => match value.rsplit_once(separator) {
            Some((before, behind)) => vec![before, separator, behind],
            None => vec!["", "", value],
        },
        _ => return None,
    })
}

fn integer_method(value: i128, name: &str, args: &[Obj]) -> Run<Obj> {
    match (name, args) {
        ("bit_length", []) => {
            Ok(Obj::int(i128::from(i128::BITS - value.unsigned_abs().leading_zeros())))
        }
        ("bit_count", []) => Ok(Obj::int(i128::from(value.unsigned_abs().count_ones()))),
        ("is_integer", []) => Ok(Obj::bool(true)),
        _ => Err(Exit::Unknown),
    }
}

/// `text.format(...)`, where fields name arguments by position or by keyword.
fn formatted(text: &str, given: &[(Option<Name>, Obj)]) -> Option<String> {
    let mut positional = given.iter().filter(|(keyword, _)| keyword.is_none());
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, brace) = rest.split_at(at);
        out.push_str(before);
        if brace.starts_with("{{") || brace.starts_with("}}") {
            out.push_str(&brace[..1]);
            rest = &brace[2..];
            continue;
        }
        let (field, behind) = brace.strip_prefix('{')?.split_once('}')?;
        let (field, format) = field.split_once(':').unwrap_or((field, ""));
        let (field, letter) = field.split_once('!').unwrap_or((field, ""));
        let (_, value) = match field.parse::<usize>() {
            _ if field.is_empty() => positional.next()?,
            Ok(at) => given.iter().filter(|(keyword, _)| keyword.is_none()).nth(at)?,
            Err(_) => given.iter().find(|(keyword, _)| keyword.as_deref() == Some(field))?,
        };
        out.push_str(&text::converted(value, letter.chars().next(), format)?);
        rest = behind;
    }
    Some(out + rest)
}
