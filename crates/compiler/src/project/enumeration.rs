//! Enumerations: classes below those of Python's `enum`.

use super::{Resolution, Scope, Sources, resolve_expr};
use crate::hir::{Class, Expr, Name};
use crate::source::FileId;

/// Classes are followed this far, which also ends cycles.
const MAX_BASES: u32 = 8;

/// What members of an enumeration are besides members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Enumeration {
    /// They are also numbers or strings.
    pub also: Option<Also>,
    /// They are sets of bits, which `&`, `|`, `^` and `~` combine.
    pub flag: bool,
    /// They print as their value does, not as `Class.NAME`.
    pub prints_value: bool,
    /// Something changes what members are: methods that Python calls by itself, decorators, or
    /// bases that are not followed.
    pub altered: bool,
}

/// What else a member is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Also {
    /// An integer.
    Int,
    /// A string.
    Str,
}

/// What members of `class` are, if it is an enumeration. Names in its head are looked up at module
/// level of `file`.
pub(crate) fn enumeration(
    sources: &dyn Sources,
    file: FileId,
    class: &Class,
) -> Option<Enumeration> {
    // Most classes have neither bases nor members.
    (!class.bases.is_empty()).then(|| bases(sources, file, class, MAX_BASES))?
}

fn bases(sources: &dyn Sources, file: FileId, class: &Class, steps: u32) -> Option<Enumeration> {
    let mut found = None;
    let mut mixed = Enumeration {
        altered: !class.decorators.is_empty()
            || class.methods.iter().any(|method| method.name.starts_with('_')),
        ..Enumeration::default()
    };
    for &base in &class.bases {
        match resolve_expr(sources, Scope { file, path: &[] }, &class.body, base) {
            Resolution::External(path) => match standard(&path) {
                Some(kind) => found = Some(kind),
                None => mixed.altered = true,
            },
            Resolution::Class(at) if steps > 0 => {
                let inherited = super::class(sources, at)
                    .and_then(|base| bases(sources, at.file, &base, steps - 1));
                match inherited {
                    Some(kind) => found = Some(kind),
                    None => mixed.altered = true,
                }
            }
            Resolution::Undefined => match &class.body.exprs[base] {
                Expr::Name(name) if &**name == "int" => mixed.also = Some(Also::Int),
                Expr::Name(name) if &**name == "str" => mixed.also = Some(Also::Str),
                _ => mixed.altered = true,
            },
            _ => mixed.altered = true,
        }
    }
    let found: Enumeration = found?;
    Some(Enumeration {
        also: found.also.or(mixed.also),
        altered: found.altered || mixed.altered,
        ..found
    })
}

/// The classes of Python's `enum`.
fn standard(path: &[Name]) -> Option<Enumeration> {
    let [module, name] = path else { return None };
    if &**module != "enum" {
        return None;
    }
    let plain = Enumeration::default();
    Some(match &**name {
        "Enum" => plain,
        "IntEnum" => Enumeration { also: Some(Also::Int), prints_value: true, ..plain },
        "StrEnum" => Enumeration { also: Some(Also::Str), prints_value: true, ..plain },
        "Flag" => Enumeration { flag: true, ..plain },
        "IntFlag" => Enumeration { also: Some(Also::Int), flag: true, prints_value: true, ..plain },
        _ => return None,
    })
}

/// True for a field of an enumeration that makes a member: neither private nor one that `enum`
/// itself reads.
pub(crate) fn is_member_name(name: &str) -> bool {
    !name.starts_with('_')
}
