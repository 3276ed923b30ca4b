//! What can follow a dot.

use tile_compiler::builtins::{self, Builtin, attributes};
use tile_compiler::eval::BodyTypes;
use tile_compiler::eval::dtype::{DType, Elem};
use tile_compiler::eval::value::{Const, Value};
use tile_compiler::hir::{Class, Expr, ExprId, Stmt};
use tile_compiler::project::{self, Resolution};
use tile_compiler::specialization::ArgSpec;

use super::{Context, Item, ItemKindHint, builtin_item, item, items_of};
use crate::db::{self, Analysis};
use crate::ide::symbol::ANY_TENSOR;

/// What a value before a dot is, as far as its members are concerned.
enum Receiver {
    Tensor,
    Descriptor,
    /// A tensor or a descriptor: nothing shows which.
    Memory,
    BlockPointer,
    /// A type.
    Type,
    Constexpr,
    /// A tensor of a scenario.
    HostTensor,
    /// These members and no others.
    Names(Vec<String>),
}

impl Context<'_, '_> {
    /// What can follow `path.`; the path is empty where the dot follows no name.
    pub(super) fn members(&self, path: &[String]) -> Vec<Item> {
        let is_local = path.first().is_some_and(|first| self.is_local(first));
        if !is_local && !path.is_empty() {
            match self.resolve(path) {
                Resolution::TritonModule(module) => return self.module_members(&module),
                Resolution::File(file) => {
                    let db = self.semantics.db;
                    return db.file_of(file).map(|file| items_of(db, file)).unwrap_or_default();
                }
                _ => {}
            }
        }
        let receiver = self.receiver(path);
        receiver.map(|receiver| self.members_of(&receiver, path)).unwrap_or_default()
    }

    /// The method `name` of the value at `path`: tensors and descriptors have some of the same name.
    pub(super) fn method(&self, path: &[String], name: &str) -> Option<&'static Builtin> {
        let of_tensors = builtins::method(name);
        let of_descriptors =
            || builtins::descriptor_methods().iter().find(|method| method.name == name);
        match self.receiver(path) {
            Some(Receiver::Descriptor) => of_descriptors().or(of_tensors),
            Some(Receiver::Memory) => of_tensors.or_else(of_descriptors),
            _ => of_tensors,
        }
    }

    fn members_of(&self, receiver: &Receiver, path: &[String]) -> Vec<Item> {
        let version = self.version();
        let written = if path.is_empty() { ANY_TENSOR.to_owned() } else { path.join(".") };
        let methods = |known: Vec<&'static Builtin>| -> Vec<Item> {
            let known = known.into_iter().filter(|method| method.exists_in(version));
            known.map(|method| builtin_item(method, Some(&written), version)).collect()
        };
        let of_descriptors = || builtins::descriptor_methods().iter().collect();
        let (attributes, methods): (Vec<&attributes::Attribute>, _) = match receiver {
            Receiver::Tensor => {
                (attributes::OF_TENSORS.iter().collect(), methods(builtins::methods()))
            }
            Receiver::Descriptor => {
                (attributes::OF_DESCRIPTORS.iter().collect(), methods(of_descriptors()))
            }
            Receiver::Memory => {
                let mut all = builtins::methods();
                let known = all.clone();
                let is_new = |method: &&Builtin| !known.iter().any(|it| it.name == method.name);
                all.extend(builtins::descriptor_methods().iter().filter(is_new));
                (attributes::OF_TENSORS.iter().collect(), methods(all))
            }
            Receiver::BlockPointer => {
                (attributes::OF_BLOCK_POINTERS.iter().collect(), methods(builtins::methods()))
            }
            Receiver::Type => (attributes::documented_of_types().collect(), Vec::new()),
            Receiver::Constexpr => (attributes::OF_CONSTEXPRS.iter().collect(), Vec::new()),
            Receiver::HostTensor => (attributes::OF_HOST_TENSORS.iter().collect(), Vec::new()),
            Receiver::Names(names) => {
                return names.iter().map(|name| item(&**name, ItemKindHint::Attribute)).collect();
            }
        };
        let attributes = attributes.into_iter().map(|attribute| {
            let kind = match attribute.called {
                true => ItemKindHint::Builtin,
                false => ItemKindHint::Attribute,
            };
            Item { detail: Some(attribute.doc.to_owned()), ..item(attribute.name, kind) }
        });
        attributes.chain(methods).collect()
    }

    /// What the value at `path` is; `None` where it has no members that are known. In host code other
    /// servers know better.
    fn receiver(&self, path: &[String]) -> Option<Receiver> {
        let Some((first, rest)) = path.split_first() else {
            return (self.in_jit() && !self.follows_literal()).then_some(Receiver::Tensor);
        };
        if self.in_scenario() {
            let is_undefined = self.resolve(std::slice::from_ref(first)) == Resolution::Undefined;
            return (is_undefined && rest.is_empty()).then_some(Receiver::HostTensor);
        }
        if !self.is_local(first) {
            return self.receiver_of_global(path);
        }
        if !self.in_jit() {
            return None;
        }
        let value = self.local_value(first);
        if rest.is_empty() && value.as_ref().is_none_or(is_open) {
            return Some(self.receiver_of_parameter(first).unwrap_or(Receiver::Memory));
        }
        receiver_of(&attribute_of(value.unwrap_or(Value::Unknown), rest)?)
    }

    /// What a name that no function binds has as members.
    fn receiver_of_global(&self, path: &[String]) -> Option<Receiver> {
        match self.resolve(path) {
            Resolution::Triton(found) => {
                DType::from_member(found.strip_prefix("language.")?).map(|_| Receiver::Type)
            }
            Resolution::Class(at) => {
                let class = project::class(&Analysis(self.semantics.db), at)?;
                Some(Receiver::Names(names_of(&class)))
            }
            Resolution::Constexpr(_) => Some(Receiver::Constexpr),
            _ => None,
        }
    }

    /// What the kernel around the cursor is compiled for in this place.
    fn receiver_of_parameter(&self, name: &str) -> Option<Receiver> {
        let db = self.semantics.db;
        let (at, _) = self.around.first()?;
        let kernel = db::kernels(db, self.semantics.file).iter().find(|kernel| kernel.at == *at)?;
        let active = kernel.specializations.get(kernel.active(db))?;
        match active.spec.args.get(name)? {
            ArgSpec::Runtime { signature, .. } if signature.starts_with("tensordesc") => {
                Some(Receiver::Descriptor)
            }
            ArgSpec::Runtime { .. } => Some(Receiver::Tensor),
            ArgSpec::Constexpr(_) => Some(Receiver::Constexpr),
            ArgSpec::Tuple(_) => None,
        }
    }

    /// The value of a variable of the innermost function.
    fn local_value(&self, name: &str) -> Option<Value> {
        let types = self.types()?;
        let assigned = self.assigned(name).and_then(|value| types.value(value));
        assigned.or_else(|| types.param(name)).cloned()
    }

    /// The type of a variable of the innermost function, as far as it is known.
    pub(super) fn local_type(&self, name: &str) -> Option<String> {
        let types = self.types()?;
        let assigned = self.assigned(name).and_then(|value| types.type_text(value));
        assigned.or_else(|| types.param_text(name))
    }

    fn types(&self) -> Option<&BodyTypes> {
        let (at, _) = self.around.first()?;
        db::types(self.semantics.db, self.semantics.file, at.index)
    }

    /// What the innermost function assigned last to a name before the cursor.
    fn assigned(&self, name: &str) -> Option<ExprId> {
        let (_, function) = self.around.first()?;
        let assigned = function.body.stmts.values().filter_map(|stmt| match stmt {
            Stmt::Assign { targets, value } => Some((*targets.first()?, *value)),
            _ => None,
        });
        let is_it = |id| matches!(&function.body.exprs[id], Expr::Name(it) if **it == *name);
        let before = assigned.filter(|(target, value)| {
            is_it(*target) && (function.map.exprs[*value].end as usize) < self.offset
        });
        let last = before.max_by_key(|(target, _)| function.map.exprs[*target].start);
        last.map(|(_, value)| value)
    }

    /// Whether the dot before the cursor ends a number or a string.
    fn follows_literal(&self) -> bool {
        let before = self.semantics.text[..self.offset].trim_end_matches(super::is_word);
        let before = before.trim_end_matches('.');
        let word = &before[before.trim_end_matches(super::is_word).len()..];
        before.ends_with(['"', '\'']) || word.starts_with(|c: char| c.is_ascii_digit())
    }

    /// Whether the innermost function around the cursor is one of the language.
    pub(super) fn in_jit(&self) -> bool {
        let items = db::parts::jit_items(self.semantics.db, self.semantics.file);
        let is_jit = |index: u32| items.iter().any(|(item, _)| *item == index);
        self.around.first().is_some_and(|(at, _)| is_jit(at.index))
    }
}

/// Whether nothing shows what a value is.
fn is_open(value: &Value) -> bool {
    match value {
        Value::Unknown => true,
        Value::Tensor(tensor) => tensor.is_open(),
        _ => false,
    }
}

/// What stands at the end of `attributes` of a value.
fn attribute_of(value: Value, attributes: &[String]) -> Option<Value> {
    attributes.iter().try_fold(value, |value, name| {
        let field = match &value {
            Value::Object(object) => object.fields.iter().find(|(field, _)| **field == **name),
            _ => None,
        };
        match (field, name.as_str()) {
            (Some((_, value)), _) => Some(value.clone()),
            // Which type it is does not matter.
            (None, "dtype" | "type" | "element_ty" | "scalar" | "block_type") => {
                Some(Value::Const(Const::DType(Elem::Unknown)))
            }
            (None, "T") => Some(value),
            _ => None,
        }
    })
}

fn receiver_of(value: &Value) -> Option<Receiver> {
    Some(match value {
        Value::Unknown | Value::Tensor(_) => Receiver::Tensor,
        Value::Descriptor(_) => Receiver::Descriptor,
        Value::BlockPtr(_) => Receiver::BlockPointer,
        Value::Const(Const::DType(_) | Const::BlockType(..) | Const::BlockPtrType(..)) => {
            Receiver::Type
        }
        Value::Const(_) => Receiver::Constexpr,
        Value::Object(object) => Receiver::Names(names_of(&object.class.class)),
        Value::Class(class) => Receiver::Names(names_of(&class.class)),
        Value::Tuple(tuple) => {
            let (_, fields) = tuple.named.as_deref()?;
            Receiver::Names(fields.iter().map(ToString::to_string).collect())
        }
        _ => return None,
    })
}

/// The fields of a class, then its methods.
fn names_of(class: &Class) -> Vec<String> {
    let fields = class.fields.iter().map(|(name, ..)| name);
    let methods = class.methods.iter().map(|method| &method.name);
    fields.chain(methods).map(ToString::to_string).collect()
}
