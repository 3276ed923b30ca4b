//! Python for host code: what this interpreter knows exactly, in values that host code has too.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use super::super::dtype::{DType, Elem};
use super::super::value::{ClassRef, Const};
use super::super::{Evaluator, Frame, Locals, Mode, Source};
use super::{Obj, builtins, operators, text};
use crate::builtins::TritonVersion;
use crate::hir::{BinaryOp, Body, Name, SourceMap};
use crate::project::{self, ItemRef, Sources};
use crate::source::FileId;
use crate::specialization::{ConstArg, TupleNames};

/// A value of Python that is put together of constants.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Plain {
    /// One without parts.
    Const(ConstArg),
    /// `tl.constexpr(value)`.
    Constexpr(Box<Plain>),
    /// A tuple.
    Tuple(Vec<Plain>),
    /// A named tuple.
    Record(Arc<TupleNames>, Vec<Plain>),
    /// A list.
    List(Vec<Plain>),
    /// A dictionary in order.
    Dict(Vec<(Plain, Plain)>),
    /// What Python calls so without an import.
    Builtin(Name),
}

/// Arguments in order, with their keywords.
pub(crate) type Arguments = Vec<(Option<Name>, Plain)>;

/// The interpreter. What it does not know exactly, or what raises an exception, has no answer.
pub(crate) struct Python<'a>(Evaluator<'a>);

impl<'a> Python<'a> {
    pub(crate) fn new(project: &'a dyn Sources) -> Python<'a> {
        Python(Evaluator::new(project, TritonVersion::default()))
    }

    /// What importing a file leaves in a variable of its module.
    pub(crate) fn variable(&mut self, file: FileId, name: &Name) -> Option<Plain> {
        self.asked(file, |evaluator, _| evaluator.module_variable(file, name))
    }

    /// What the body of a class binds a name to.
    pub(crate) fn member(&mut self, class: ItemRef, name: &Name) -> Option<Plain> {
        let found = project::class(self.0.project, class)?;
        let class = ClassRef { file: class.file, class: found };
        self.asked(class.file, |evaluator, _| evaluator.class_member(&class, name).ok()?)
    }

    /// The result of a function by the dotted path that imports give it, or one of Python's own.
    pub(crate) fn call(&mut self, path: &[Name], given: Arguments) -> Option<Plain> {
        let function = match path {
            [name] => builtins::named(name)?,
            path => builtins::imported(path)?,
        };
        self.asked(FileId::default(), |evaluator, source| {
            evaluator.python_builtin(source, function, objects(given)?).ok()
        })
    }

    /// The result of a method.
    pub(crate) fn method(
        &mut self,
        receiver: Plain,
        name: &str,
        given: Arguments,
    ) -> Option<Plain> {
        let (receiver, given) = (receiver.object()?, objects(given)?);
        self.asked(FileId::default(), |evaluator, _| {
            evaluator.python_method(&receiver, name, given).ok()
        })
    }

    /// `left op right`.
    pub(crate) fn binary(&mut self, op: BinaryOp, left: Plain, right: Plain) -> Option<Plain> {
        let (left, right) = (left.object()?, right.object()?);
        self.asked(FileId::default(), |evaluator, _| {
            evaluator.python_binary(op, &left, &right).ok()
        })
    }

    /// `value[first:end:step]`.
    pub(crate) fn slice(&mut self, value: Plain, bounds: [Option<Plain>; 3]) -> Option<Plain> {
        let value = value.object()?;
        let mut known = [None, None, None];
        for (known, bound) in known.iter_mut().zip(bounds) {
            if let Some(bound) = bound {
                *known = Some(bound.object()?);
            }
        }
        Plain::of(&operators::slice(&value, &known).ok()?)
    }

    /// `f"{value!conversion:format}"`.
    pub(crate) fn formatted(
        &self,
        value: Plain,
        conversion: Option<char>,
        format: &str,
    ) -> Option<String> {
        text::converted(&value.object()?, conversion, format)
    }

    /// Answers one question of host code in `file`.
    fn asked(
        &mut self,
        file: FileId,
        answer: impl FnOnce(&mut Evaluator<'a>, Source<'_>) -> Option<Obj>,
    ) -> Option<Plain> {
        let (body, map) = (Body::default(), SourceMap::default());
        let source = Source { body: &body, map: &map, file };
        let frame = Frame::new(Mode::Python, file, None, Arc::from([]), Locals::default());
        let evaluator = &mut self.0;
        evaluator.steps = 0;
        evaluator.frames.push(frame);
        let result = evaluator.quietly(|evaluator| answer(evaluator, source));
        evaluator.frames.pop();
        Plain::of(&result?)
    }
}

fn objects(given: Arguments) -> Option<Vec<(Option<Name>, Obj)>> {
    given.into_iter().map(|(keyword, value)| Some((keyword, value.object()?))).collect()
}

impl Plain {
    /// The same for those who compute with it; `None` for what has no counterpart.
    fn object(self) -> Option<Obj> {
        let all = |items: Vec<Plain>| items.into_iter().map(Plain::object).collect::<Option<_>>();
        Some(match self {
            Plain::Const(value) => Obj::Const(match value {
                ConstArg::None => Const::None,
                ConstArg::Bool(value) => Const::Bool(value),
                ConstArg::Int(value) => Const::Int(value),
                ConstArg::Float(bits) => Const::Float(f64::from_bits(bits)),
                ConstArg::Str(text) => Const::Str(text),
                ConstArg::DType(name) => Const::DType(Elem::from_signature(&name)?),
                ConstArg::TorchDType(name) => Const::TorchDType(DType::from_signature(&name)?),
                ConstArg::Function(_) | ConstArg::Member(_) | ConstArg::Tuple(_) => return None,
            }),
            Plain::Constexpr(value) => Obj::Constexpr(Rc::new(value.object()?)),
            Plain::Tuple(items) => Obj::tuple(all(items)?),
            Plain::Record(names, items) => {
                let names = (names.class.clone(), names.fields.clone());
                Obj::Tuple(Rc::new(all(items)?), Some(Arc::new(names)))
            }
            Plain::List(items) => Obj::list(all(items)?),
            Plain::Dict(entries) => {
                let entry = |(key, value): (Plain, Plain)| Some((key.object()?, value.object()?));
                let entries = entries.into_iter().map(entry).collect::<Option<Vec<_>>>()?;
                Obj::Dict(Rc::new(RefCell::new(entries)))
            }
            Plain::Builtin(name) => Obj::Builtin(builtins::named(&name)?),
        })
    }

    fn of(value: &Obj) -> Option<Plain> {
        let all = |items: &[Obj]| items.iter().map(Plain::of).collect::<Option<Vec<Plain>>>();
        Some(match value {
            Obj::Const(value) => Plain::Const(match value {
                Const::None => ConstArg::None,
                Const::Bool(value) => ConstArg::Bool(*value),
                Const::Int(value) => ConstArg::Int(*value),
                Const::Float(value) => ConstArg::Float(value.to_bits()),
                Const::Str(text) => ConstArg::Str(text.clone()),
                Const::DType(Elem::Num(dtype)) => ConstArg::DType(dtype.signature().into()),
                Const::TorchDType(dtype) => ConstArg::TorchDType(dtype.signature().into()),
                _ => return None,
            }),
            Obj::Constexpr(value) => Plain::Constexpr(Box::new(Plain::of(value)?)),
            Obj::Tuple(items, None) => Plain::Tuple(all(items)?),
            Obj::Tuple(items, Some(named)) => {
                let names = TupleNames { class: named.0.clone(), fields: named.1.clone() };
                Plain::Record(Arc::new(names), all(items)?)
            }
            Obj::List(items) | Obj::Iterator(items, _) => Plain::List(all(&items.borrow())?),
            Obj::Dict(entries) => {
                let entries = entries.borrow();
                let entry = |(key, value): &(Obj, Obj)| Some((Plain::of(key)?, Plain::of(value)?));
                Plain::Dict(entries.iter().map(entry).collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }
}
