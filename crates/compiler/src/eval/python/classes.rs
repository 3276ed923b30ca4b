//! Classes that are Python's alone: variables of classes, constructors, methods.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use super::super::value::{ClassRef, FunctionRef, Role, Value};
use super::super::{Evaluator, Source};
use super::{Exit, Instance, Obj, Run, Scope, module, raise};
use crate::hir::{Expr, Function, Name};
use crate::project::{self, Resolution};

/// What makes a class, as far as it is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Making {
    /// Its own constructor.
    Plain,
    /// `@dataclasses.dataclass`, with or without options.
    Data,
}

impl Evaluator<'_> {
    /// How a class is made that derives from none; `None` where that is not followed.
    fn making(&self, class: &ClassRef) -> Option<Making> {
        if !class.class.bases.is_empty() {
            return None;
        }
        let [decorator] = class.class.decorators[..] else {
            return class.class.decorators.is_empty().then_some(Making::Plain);
        };
        let body = &class.class.body;
        let callee = match &body.exprs[decorator] {
            Expr::Call { callee, .. } => *callee,
            _ => decorator,
        };
        let scope = project::Scope { file: class.file, path: &[] };
        let meaning = project::resolve_expr(self.project, scope, body, callee);
        let is_data = matches!(&meaning, Resolution::External(path)
            if matches!(&path[..], [module, name] if &**module == "dataclasses" && &**name == "dataclass"));
        is_data.then_some(Making::Data)
    }

    /// True for a class without a metaclass that decides what its instances hold.
    pub(super) fn is_plain_class(&self, class: &ClassRef) -> bool {
        self.making(class).is_some()
    }

    /// The variables of a class, in order.
    fn class_variables(&mut self, class: &ClassRef) -> Scope {
        let body = &class.class;
        let function = module::outermost(class.file, &body.body, &body.map);
        let scope = Scope { function, locals: Rc::default() };
        let source = Source { body: &body.body, map: &body.map, file: class.file };
        for (name, _, value) in &body.fields {
            let Some(value) = value else { continue };
            let value = self.python_expr(source, &scope, *value);
            scope.set(name, value.unwrap_or(module::LOST));
        }
        scope
    }

    /// `Class.attr`, or what an instance has of its class; `None` where the class has none.
    #[inline(never)]
    pub(super) fn class_member(&mut self, class: &ClassRef, attr: &Name) -> Run<Option<Obj>> {
        if self.making(class).is_none() {
            return Err(Exit::Unknown);
        }
        if let Some(method) = class.class.methods.iter().find(|method| method.name == *attr) {
            let function = self.method(class, method).ok_or(Exit::Unknown)?;
            return Ok(Some(Obj::Value(Value::Function(function))));
        }
        let variables = self.class_variables(class);
        match variables.get(attr) {
            Some(value) if value.is_lost() => Err(Exit::Unknown),
            found => Ok(found),
        }
    }

    /// A method that Python runs.
    fn method(&self, class: &ClassRef, method: &Arc<Function>) -> Option<FunctionRef> {
        let kind = self.method_kind(class.file, method);
        (kind.role == Role::Host).then(|| FunctionRef {
            file: class.file,
            function: method.clone(),
            kind,
            scope: Arc::from([]),
            closure: Arc::from([]),
        })
    }

    /// An attribute of an instance of a plain class.
    #[inline(never)]
    pub(super) fn instance_member(&mut self, instance: &Rc<Instance>, attr: &Name) -> Run<Obj> {
        let field = instance.fields.borrow().iter().find(|(name, _)| name == attr).cloned();
        if let Some((_, value)) = field {
            return Ok(value);
        }
        let class = instance.class.clone();
        match self.class_member(&class, attr)? {
            Some(Obj::Value(Value::Function(method))) if method.function.decorators.is_empty() => {
                Ok(Obj::Method(Rc::new(Obj::Instance(instance.clone())), attr.clone()))
            }
            Some(value) => Ok(value),
            None => {
                let class = &class.class.name;
                raise("AttributeError", format!("'{class}' object has no attribute '{attr}'"))
            }
        }
    }

    /// Calls a method of an instance.
    #[inline(never)]
    pub(super) fn call_instance_method(
        &mut self,
        instance: &Rc<Instance>,
        name: &str,
        mut given: Vec<(Option<Name>, Obj)>,
    ) -> Run<Obj> {
        let class = instance.class.clone();
        let Some(Obj::Value(Value::Function(method))) =
            self.class_member(&class, &Name::from(name))?
        else {
            return Err(Exit::Unknown);
        };
        given.insert(0, (None, Obj::Instance(instance.clone())));
        self.apply_python(&method, given)
    }

    /// `Class(...)`.
    #[inline(never)]
    pub(super) fn instantiate(
        &mut self,
        class: &ClassRef,
        given: Vec<(Option<Name>, Obj)>,
    ) -> Run<Obj> {
        let making = self.making(class).ok_or(Exit::Unknown)?;
        let instance = Rc::new(Instance { class: class.clone(), fields: RefCell::default() });
        let has = |name: &str| class.class.methods.iter().any(|method| &*method.name == name);
        if has("__new__") || has("__post_init__") || has("__setattr__") || has("__getattr__") {
            return Err(Exit::Unknown);
        }
        match making {
            _ if has("__init__") => {
                self.call_instance_method(&instance, "__init__", given)?;
            }
            Making::Plain if given.is_empty() => {}
            Making::Plain => {
                let name = &class.class.name;
                return raise("TypeError", format!("{name}() takes no arguments"));
            }
            Making::Data => self.fill(&instance, given)?,
        }
        Ok(Obj::Instance(instance))
    }

    /// What the constructor of a data class does: fields have the arguments, or their defaults.
    fn fill(&mut self, instance: &Instance, given: Vec<(Option<Name>, Obj)>) -> Run<()> {
        let class = instance.class.clone();
        let defaults = self.class_variables(&class);
        let fields = class.class.fields.iter().filter(|(_, annotation, _)| annotation.is_some());
        let fields: Vec<Name> = fields.map(|(name, ..)| name.clone()).collect();
        let mut rest = fields.iter();
        let mut values: Vec<(Name, Obj)> = Vec::with_capacity(fields.len());
        for (keyword, value) in given {
            let name = match keyword {
                Some(name) => fields.iter().find(|field| **field == name),
                None => rest.next(),
            };
            let name = name.filter(|name| values.iter().all(|(known, _)| known != *name));
            let Some(name) = name else {
                let class = &class.class.name;
                return raise("TypeError", format!("{class}() does not take these arguments"));
            };
            values.push((name.clone(), value));
        }
        for name in &fields {
            if values.iter().any(|(known, _)| known == name) {
                continue;
            }
            match defaults.get(name) {
                Some(value) if !value.is_lost() => values.push((name.clone(), value)),
                Some(_) => return Err(Exit::Unknown),
                None => return raise("TypeError", format!("missing argument: '{name}'")),
            }
        }
        *instance.fields.borrow_mut() = values;
        Ok(())
    }
}
