//! Instances of the project's own classes, those of `torch.nn.Module` among them: what their
//! constructors set, what their methods do, and what calls of them run.

use std::sync::Arc;

use crate::builtins::TORCH;
use crate::hir::{Class, Expr, ExprId, Item, ItemKind, Name};
use crate::host::code::arguments::Args;
use crate::host::code::operators;
use crate::host::code::statics::Owner;
use crate::host::objects::records::is_data_base;
use crate::host::torch::modules::{CHANGE_SEQUENCE, known_class, torch_class};
use crate::host::value::{Callable, Value};
use crate::host::{Frame, Host};
use crate::project::{self, ItemRef, Resolution, Scope, class, is_external, resolve_expr};

/// Classes whose bases are followed no deeper than this.
const MAX_BASES: usize = 8;

/// The class of Python's own tests.
const TEST_CASE: &[&str] = &["unittest", "TestCase"];

/// The class of dicts with the keys and types that a class lists.
const TYPED_DICT: &[&[&str]] = &[&["typing", "TypedDict"], &["typing_extensions", "TypedDict"]];

/// Methods of PyTorch's modules that change neither types nor shapes, and give the module.
const KEEPING: &[&str] =
    &["cpu", "cuda", "eval", "requires_grad_", "share_memory", "train", "zero_grad"];

/// Classes outside of the project that make no difference to how instances are made.
const PLAIN_BASES: &[&[&str]] = &[
    &["abc", "ABC"],
    &["collections", "OrderedDict"],
    &["collections", "UserDict"],
    &["typing", "Generic"],
    &["typing", "Protocol"],
    &["typing_extensions", "Protocol"],
];

/// The method that a call of a module runs, or of a `torch.autograd.Function`.
pub(crate) const FORWARD: &str = "forward";

/// The attribute of a module that says whether it is in training.
pub(crate) const TRAINING: &str = "training";

/// Methods that change it, also that of modules which others hold.
const CHANGE_MODE: &[&str] = &["eval", "train"];

/// Methods that only tell how a value is printed.
const TEXTS: &[&str] = &["__format__", "__repr__", "__str__"];

/// The classes of several lines in one, each before those that it derives from (C3 linearization). Source: Python's
/// documentation on its method resolution order.
fn merged(mut lines: Vec<Vec<ItemRef>>) -> Vec<ItemRef> {
    let mut merged = Vec::new();
    loop {
        lines.retain(|line| !line.is_empty());
        let Some(first) = lines.first().map(|line| line[0]) else { return merged };
        let comes_later = |class: &ItemRef| lines.iter().any(|line| line[1..].contains(class));
        // Where each comes after another one, Python refuses the class.
        let next = lines.iter().map(|line| line[0]).find(|class| !comes_later(class));
        let next = next.unwrap_or(first);
        merged.push(next);
        lines.iter_mut().for_each(|line| line.retain(|class| *class != next));
    }
}

/// Methods of a class that make its instances, or give what these have, in ways of their own.
const OWN_MAKERS: &[&str] = &["__getattribute__", "__new__"];

impl Host<'_> {
    /// Notes what calls of a method of this name may do to any module.
    pub(crate) fn note_mode(&mut self, method: &str) {
        self.modes_change |= CHANGE_MODE.contains(&method);
    }

    /// Whether an attribute need not be what it was set to, because modules change it by themselves.
    pub(crate) fn is_of_mode(&self, attr: &str) -> bool {
        attr == TRAINING && self.modes_change
    }

    /// `Class(...)` with what the constructor sets; unknown for classes whose bases or decorators
    /// may make something else of it.
    pub(crate) fn instance(&mut self, at: ItemRef, args: &[(Option<Name>, Value)]) -> Value {
        if self.is_typed_dict(at) {
            return self.global_call("dict", &Args(args));
        }
        if let [(None, tensor @ Value::Tensor(_))] = args
            && self.marks_tensors(at)
        {
            return tensor.clone();
        }
        if !self.is_made_plainly(at, 0) {
            return Value::Unknown;
        }
        let instance = self.object();
        let Value::Object(number) = instance else { return Value::Unknown };
        self.classes.insert(number, at);
        if self.is_module(at) {
            self.set_attribute(number, &TRAINING.into(), Value::Bool(Some(true)));
        }
        if self.is_made_by_a_value(at) {
            return Value::Unknown;
        }
        let init = self.class_method(at, "__init__");
        if self.is_mapping(at) {
            let held: &[_] = if init.is_some() { &[] } else { args };
            self.fill_mapping(number, &Args(held));
        }
        if let Some(init) = init {
            let mut given = vec![(None, instance.clone())];
            given.extend(args.iter().cloned());
            if let Some(refused) = self.refused_by(init, &given, 1) {
                return refused;
            }
            self.call_function(init, &given);
        } else if let Some(base) = self.torch_base(at) {
            self.construct(number, base, &Args(args));
        } else if self.is_data_class(at) {
            self.fill(number, at, args);
            self.special(&instance, "__post_init__", &[]);
        }
        instance
    }

    /// Whether a class, or one that it derives from, binds `__init__` to what is no function of its own, as to
    /// a `partialmethod`.
    fn is_made_by_a_value(&self, at: ItemRef) -> bool {
        self.lineage(at).into_iter().any(|at| {
            let Some(class) = project::item(self.sources, at) else { return false };
            let module = self.sources.module(at.file).unwrap_or_default();
            let is_init =
                |item: &Item| &*item.name == "__init__" && item.scope == class.body_scope();
            let mut items = module.items.iter();
            items.any(|item| is_init(item) && matches!(item.kind, ItemKind::Assign { .. }))
        })
    }

    /// Whether an object is of a class without bases whose own code makes it: that is followed.
    pub(crate) fn is_made_by_own_code(&self, object: usize) -> bool {
        let class = self.classes.get(&object).copied();
        class.is_some_and(|at| {
            self.bases(at).is_empty() && self.class_method(at, "__init__").is_some()
        })
    }

    /// Whether a class derives from `torch.Tensor` and has no more than that: an instance made of a tensor is in the same
    /// memory, and does what that does.
    fn marks_tensors(&self, at: ItemRef) -> bool {
        let is_tensor = |base: &Resolution| is_external(base, &[TORCH, "Tensor"]);
        let Some(scope) = project::item(self.sources, at).map(|item| item.body_scope()) else {
            return false;
        };
        let module = self.sources.module(at.file).unwrap_or_default();
        let own = (0..).zip(&module.items).filter(|(_, item)| item.scope == scope);
        let adds_nothing = |(index, item): (u32, &Item)| {
            let method = ItemRef { file: at.file, index };
            TEXTS.contains(&&*item.name) || self.is_marked(method, "staticmethod")
        };
        matches!(&self.bases(at)[..], [base] if is_tensor(base)) && { own }.all(adds_nothing)
    }

    pub(crate) fn class_value(&mut self, at: ItemRef, class: &Class, value: ExprId) -> Value {
        let map = Arc::new(class.map.clone());
        let (range, scope) = (map.exprs[value], project::item_scope(self.sources, at));
        self.as_of(at.file, range, |host| {
            host.module_expr(at.file, &scope, (&class.body, &map), value)
        })
    }

    /// What an instance has of its class: a variable, or what a property gives.
    pub(crate) fn of_class(&mut self, object: usize, name: &str) -> Value {
        let Some(at) = self.classes.get(&object).copied() else { return Value::Unknown };
        if let Some(method) = self.class_method(at, name) {
            return match self.is_marked(method, "property") {
                _ if project::is_jit(self.sources, method) => Value::Named(Resolution::Jit(method)),
                true => self.call_function(method, &[(None, Value::Object(object))]),
                false if self.has_own(object, name) => Value::Unknown,
                false if self.is_cached(method) => {
                    let value = self.call_function(method, &[(None, Value::Object(object))]);
                    let kept = if self.doubt.has_run() { value.clone() } else { Value::Unknown };
                    self.replace_attribute(object, &name.into(), kept);
                    value
                }
                false => self.bound_method(object, at, method),
            };
        }
        // What it has itself hides the variable, though it be unknown.
        match self.has_own(object, name) {
            true => Value::Unknown,
            false => {
                let held = self.class_variable(at, name);
                self.read_by_descriptor(object, at, &held, name).unwrap_or(held)
            }
        }
    }

    /// What a variable of a class or of its bases is when it is made.
    pub(crate) fn class_variable(&mut self, at: ItemRef, name: &str) -> Value {
        for at in self.lineage(at) {
            if let Some(held) = self.held(Owner::Class(at), name) {
                return held;
            }
            let Some(class) = class(self.sources, at) else { return Value::Unknown };
            let field = class.fields.iter().find(|(field, ..)| **field == *name);
            if let Some((_, _, Some(value))) = field {
                let own = self.class_value(at, &class, *value);
                let value = match own.is_known() && !self.is_enumeration(at) {
                    true => own,
                    false => match self.member_of_class(at, name) {
                        Value::Unknown => own,
                        member => member,
                    },
                };
                return self.first_held_by_class(at, name, value);
            }
        }
        Value::Unknown
    }

    /// `instance(...)`: the class's `__call__`, or the `forward` of a module.
    pub(crate) fn call_instance(&mut self, object: usize, args: &[(Option<Name>, Value)]) -> Value {
        if self.is_torch_object(object) && self.has_own(object, FORWARD) {
            return match self.object_attribute(object, FORWARD) {
                Value::Object(_) | Value::Unknown => Value::Unknown,
                forward => self.call_value(&forward, args),
            };
        }
        let Some(at) = self.classes.get(&object).copied() else {
            return match self.modules.get(&object).copied() {
                Some(class) => self.call_torch_module(object, class, args),
                None => Value::Unknown,
            };
        };
        let called = self.class_method(at, "__call__");
        let forward = || self.class_method(at, FORWARD).filter(|_| self.is_module(at));
        match called.or_else(forward) {
            Some(method) => self.call_function(method, &with_receiver(object, args)),
            None => match self.torch_base(at) {
                Some(base) => self.call_torch_module(object, base, args),
                None => Value::Unknown,
            },
        }
    }

    /// Whether a method of an object is one of its class in the project.
    pub(crate) fn has_own_method(&mut self, object: usize, name: &str) -> bool {
        let class = self.classes.get(&object).copied();
        class.is_some_and(|class| self.class_method(class, name).is_some())
    }

    /// `instance.name(...)`.
    pub(crate) fn instance_method(
        &mut self,
        object: usize,
        name: &str,
        args: &[(Option<Name>, Value)],
    ) -> Value {
        match self.object_attribute(object, name) {
            Value::Unknown => {}
            Value::Object(inner) => return self.call_instance(inner, args),
            held => return self.call_value(&held, args),
        }
        let Some(at) = self.classes.get(&object).copied() else {
            return match self.modules.contains_key(&object) {
                true if args.is_empty()
                    && let Some(listed) = self.of_dict(object, name) =>
                {
                    listed
                }
                true if CHANGE_SEQUENCE.contains(&name) => {
                    self.change_sequence(object, name, Args(args).get(0, "module").cloned());
                    Value::Object(object)
                }
                true => self.module_method(object, name, args),
                false if self.holds_items(&Value::Object(object)) => {
                    self.mapping_method(object, name, &Args(args))
                }
                false => Value::Unknown,
            };
        };
        if let Some(method) = self.class_method(at, name) {
            return match self.is_marked(method, "staticmethod") {
                true => self.call_function(method, args),
                false if self.is_marked(method, "classmethod") => {
                    let class = (None, Value::Named(Resolution::Class(at)));
                    let given: Vec<_> = [class].into_iter().chain(args.iter().cloned()).collect();
                    self.call_function(method, &given)
                }
                false => {
                    let given = with_receiver(object, args);
                    let refused = self.refused_by(method, &given, 1);
                    refused.unwrap_or_else(|| self.call_function(method, &given))
                }
            };
        }
        match (name, args) {
            (
                "register_buffer" | "register_parameter",
                [(None, Value::Str(attr)), (_, value), ..],
            ) => {
                let value = self.parameter_of(value.clone());
                if name == "register_buffer" {
                    self.buffers.extend(value.allocations());
                }
                self.set_attribute(object, &attr.clone(), value);
                Value::None
            }
            _ if self.is_module(at) => self.module_method(object, name, args),
            _ => self.mapping_method(object, name, &Args(args)),
        }
    }

    /// `Class.name` of a method: a function, which `@classmethod` gives the class.
    pub(crate) fn method_of_class(&self, at: ItemRef, name: &str) -> Option<Value> {
        let method = self.class_method(at, name)?;
        if project::is_jit(self.sources, method) {
            return Some(Value::Named(Resolution::Jit(method)));
        }
        let function = Value::Named(Resolution::Function(method));
        Some(match self.is_marked(method, "classmethod") {
            true => Value::Callable(Callable::Partial {
                callee: Box::new(function),
                args: vec![(None, Value::Named(Resolution::Class(at)))],
            }),
            false => function,
        })
    }

    /// `super().name(...)` in a method: the first base of the project that has it, for the object
    /// that the method is of.
    pub(crate) fn call_super(
        &mut self,
        frame: &Frame,
        name: &str,
        args: &[(Option<Name>, Value)],
    ) -> Value {
        let [class @ .., method] = &frame.scope[..] else { return Value::Unknown };
        let Some(module) = self.sources.module(frame.file) else { return Value::Unknown };
        let is_class =
            |item: &Item| matches!(item.kind, ItemKind::Class(_)) && item.body_scope() == class;
        let Some(index) = module.items.iter().position(is_class) else { return Value::Unknown };
        let at = ItemRef { file: frame.file, index: index as u32 };
        let function = self.method(at.file, class, method);
        let function = function.and_then(|method| project::function(self.sources, method));
        let receiver = function.and_then(|function| Some(function.params.first()?.name.clone()));
        let object = match receiver.and_then(|name| frame.variables.get(&name)) {
            Some(Value::Object(object)) => *object,
            _ => return Value::Unknown,
        };
        match self.method_after(object, at, name) {
            Some(method) => self.call_function(method, &with_receiver(object, args)),
            None if name == "__init__" => {
                if let Some(base) = self.torch_base(at) {
                    self.construct(object, base, &Args(args));
                } else if self.is_optimizer(at) {
                    self.construct_optimizer(object, &Args(args));
                } else if self.holds_items(&Value::Object(object)) {
                    self.fill_mapping(object, &Args(args));
                }
                Value::None
            }
            None => match (name, args) {
                ("__setattr__", [(_, attr), (_, value)]) => {
                    self.set_by_name(object, attr, value);
                    Value::None
                }
                ("__setitem__", [(_, key), (_, value)]) => {
                    self.set_mapped(object, key.clone(), value);
                    Value::None
                }
                ("__getitem__", [(_, key)]) => self
                    .items_of(&Value::Object(object))
                    .map_or(Value::Unknown, |items| operators::subscript(&Value::Dict(items), key)),
                _ if self.is_module(at) => self.module_method(object, name, args),
                _ => self.mapping_method(object, name, &Args(args)),
            },
        }
    }

    /// The known class of PyTorch's modules that a class derives from.
    pub(crate) fn torch_base(&self, at: ItemRef) -> Option<&'static str> {
        let bases = self.lineage(at).into_iter().flat_map(|at| self.bases(at));
        bases.into_iter().find_map(|base| match base {
            Resolution::External(path) => known_class(&path),
            _ => None,
        })
    }

    /// True for a class of PyTorch's optimizers.
    fn is_optimizer(&self, at: ItemRef) -> bool {
        let mut bases = self.lineage(at).into_iter().flat_map(|at| self.bases(at));
        bases.any(|base| is_torch_optimizer(&base))
    }

    /// True for a class of functions that PyTorch differentiates.
    pub(crate) fn is_differentiable(&self, at: ItemRef) -> bool {
        let paths =
            [&[TORCH, "autograd", "Function"][..], &[TORCH, "autograd", "function", "Function"]];
        let mut bases = self.lineage(at).into_iter().flat_map(|at| self.bases(at));
        bases.any(|base| paths.iter().any(|path| is_external(&base, path)))
    }

    /// True for a class of Python's own tests.
    pub(crate) fn is_test_case(&self, at: ItemRef) -> bool {
        let mut bases = self.lineage(at).into_iter().flat_map(|at| self.bases(at));
        bases.any(|base| is_external(&base, TEST_CASE))
    }

    /// True for a class whose instances are dicts, of which it says the types.
    fn is_typed_dict(&self, at: ItemRef) -> bool {
        let mut bases = self.lineage(at).into_iter().flat_map(|at| self.bases(at));
        bases.any(|base| TYPED_DICT.iter().any(|path| is_external(&base, path)))
    }

    /// A method of a class or of the classes of the project that it derives from.
    pub(crate) fn class_method(&self, at: ItemRef, name: &str) -> Option<ItemRef> {
        self.lineage(at).into_iter().find_map(|at| {
            let method = self.own_method(at, name)?;
            let scope = project::item(self.sources, at)?.body_scope();
            // A function that only stands for a method gets no object.
            let is_own = project::item_scope(self.sources, method) == scope;
            project::function(self.sources, method).filter(|_| is_own).map(|_| method)
        })
    }

    /// The method `name` of a class itself, or the function that stands for it.
    pub(crate) fn own_method(&self, at: ItemRef, name: &str) -> Option<ItemRef> {
        let class = project::item(self.sources, at)?;
        let method = self.method(at.file, &class.body_scope(), name)?;
        Some(self.of_same_class(&class, method).unwrap_or(method))
    }

    /// The method of a class that is called as `method` is, where that is of another class by the same name, as in
    /// another branch.
    fn of_same_class(&self, class: &Item, method: ItemRef) -> Option<ItemRef> {
        let module = self.sources.module(method.file)?;
        let found = module.items.get(method.index as usize)?;
        if found.scope != class.body_scope() || class.range.contains_range(found.range) {
            return None;
        }
        let is_meant = |at: &u32| {
            let item = &module.items[*at as usize];
            item.scope == found.scope && class.range.contains_range(item.range)
        };
        let index = module.items_named(&found.name).rfind(is_meant)?;
        Some(ItemRef { index, ..method })
    }

    /// The method `name` that comes after those of the class `at` among the classes of an object.
    fn method_after(&self, object: usize, at: ItemRef, name: &str) -> Option<ItemRef> {
        let all = self.classes.get(&object).map(|class| self.lineage(*class)).unwrap_or_default();
        let behind =
            all.iter().position(|class| *class == at).map(|place| all[place + 1..].to_vec());
        let classes = behind.unwrap_or_else(|| self.lineage(at).split_off(1));
        classes.into_iter().find_map(|class| {
            let scope = project::item(self.sources, class)?.body_scope();
            let method = self.class_method(class, name)?;
            let is_own =
                method.file == class.file && project::item_scope(self.sources, method) == scope;
            is_own.then_some(method)
        })
    }

    /// A class with those of the project that it derives from, itself first.
    /// Their order is the one in which Python looks for methods.
    pub(crate) fn lineage(&self, at: ItemRef) -> Vec<ItemRef> {
        self.lineage_within(at, MAX_BASES)
    }

    /// The lineage up to so many classes above `at`.
    fn lineage_within(&self, at: ItemRef, levels: usize) -> Vec<ItemRef> {
        let is_class = |base: Resolution| match base {
            Resolution::Class(base) if levels > 0 && base != at => Some(base),
            _ => None,
        };
        let bases: Vec<ItemRef> = self.bases(at).into_iter().filter_map(is_class).collect();
        let mut lines: Vec<Vec<ItemRef>> =
            bases.iter().map(|base| self.lineage_within(*base, levels - 1)).collect();
        lines.push(bases);
        std::iter::once(at).chain(merged(lines)).collect()
    }

    /// Whether an object is an instance of a class, or of one of several, where that is known.
    pub(crate) fn is_object_of(&self, object: usize, class: &Value) -> Option<bool> {
        match class {
            Value::Tuple(classes) => {
                let known = classes.iter().map(|class| self.is_object_of(object, class));
                let known: Vec<Option<bool>> = known.collect();
                match known.contains(&Some(true)) {
                    true => Some(true),
                    false => known.iter().all(Option::is_some).then_some(false),
                }
            }
            Value::Named(Resolution::Class(class)) => {
                let own = *self.classes.get(&object)?;
                let lineage = self.lineage(own);
                match lineage.contains(class) {
                    true => Some(true),
                    // A protocol asks for members, and one of another class may derive from it in a way that is
                    // not seen.
                    false => {
                        let is_plain = self.derives_plainly(&lineage)
                            && self.derives_plainly(&self.lineage(*class));
                        is_plain.then_some(false)
                    }
                }
            }
            Value::Named(tensor) if is_external(tensor, &[TORCH, "Tensor"]) => {
                match self.sparse.contains(&object) {
                    true => Some(true),
                    false => self.is_no_tensor(object).then_some(false),
                }
            }
            _ => None,
        }
    }

    /// Whether an object is certainly no tensor: contexts of functions, namespaces, and instances of classes
    /// that derive from none but modules.
    fn is_no_tensor(&self, object: usize) -> bool {
        let class = self.classes.get(&object);
        class.is_none_or(|class| self.derives_plainly(&self.lineage(*class)))
    }

    /// Whether classes derive from none but each other, modules and Python's own.
    pub(crate) fn derives_plainly(&self, lineage: &[ItemRef]) -> bool {
        let is_plain = |base: &Resolution| match base {
            Resolution::Class(_) | Resolution::Undefined => true,
            base => is_torch_module(base),
        };
        lineage.iter().all(|at| {
            self.bases(*at).iter().all(is_plain)
                && self.metaclass(*at).is_none_or(|found| is_external(&found, &["abc", "ABCMeta"]))
        })
    }

    /// What decides how instances of a class are made and told from others, where one is given.
    fn metaclass(&self, at: ItemRef) -> Option<Resolution> {
        let class = class(self.sources, at)?;
        let scope = project::item_scope(self.sources, at);
        let scope = Scope { file: at.file, path: &scope };
        Some(resolve_expr(self.sources, scope, &class.body, class.metaclass?))
    }

    pub(crate) fn bases(&self, at: ItemRef) -> Vec<Resolution> {
        let Some(class) = class(self.sources, at) else { return Vec::new() };
        let scope = project::item_scope(self.sources, at);
        let scope = Scope { file: at.file, path: &scope };
        let resolve =
            |base| resolve_expr(self.sources, scope, &class.body, plain_base(&class, base));
        class.bases.iter().copied().map(resolve).collect()
    }

    /// Whether an object is a module of PyTorch.
    pub(crate) fn is_torch_object(&self, object: usize) -> bool {
        let class = self.classes.get(&object);
        self.modules.contains_key(&object) || class.is_some_and(|class| self.is_module(*class))
    }

    /// True for a module of PyTorch.
    fn is_module(&self, at: ItemRef) -> bool {
        self.lineage(at).into_iter().any(|at| self.bases(at).iter().any(is_torch_module))
    }

    /// True where the class makes its instances as Python does: neither a base nor a decorator is
    /// unknown.
    fn is_made_plainly(&mut self, at: ItemRef, depth: usize) -> bool {
        let Some(class) = class(self.sources, at).filter(|_| depth < MAX_BASES) else {
            return false;
        };
        // What makes its instances, or gives their members, is its own.
        let is_special = |name: &&str| self.class_method(at, name).is_some();
        if OWN_MAKERS.iter().any(is_special) {
            return false;
        }
        let mut decorators = class.decorators.iter();
        if !decorators.all(|decorator| self.keeps_class(at, &class, *decorator)) {
            return false;
        }
        self.bases(at).into_iter().all(|base| match base {
            Resolution::Class(base) => base != at && self.is_made_plainly(base, depth + 1),
            Resolution::Undefined => true,
            base => {
                is_torch_module(&base)
                    || is_torch_optimizer(&base)
                    || is_external(&base, TEST_CASE)
                    || is_data_base(&base)
                    || PLAIN_BASES.iter().any(|plain| is_external(&base, plain))
            }
        })
    }

    /// True where a decorator of Python's own marks a method.
    pub(crate) fn is_marked(&self, method: ItemRef, by: &str) -> bool {
        let Some(function) = project::function(self.sources, method) else { return false };
        function.decorators.iter().any(|decorator| function.body.exprs[*decorator].is_name(by))
    }
}

/// Whether a method of PyTorch's modules gives the module, with all that it holds as it is where it is
/// not told a type.
pub(crate) fn keeps_module(name: &str, args: &[(Option<Name>, Value)]) -> bool {
    KEEPING.contains(&name) || name == "to" && !args.is_empty()
}

fn with_receiver(object: usize, args: &[(Option<Name>, Value)]) -> Vec<(Option<Name>, Value)> {
    std::iter::once((None, Value::Object(object))).chain(args.iter().cloned()).collect()
}

/// The class that a base is made of: that of `Generic[T]` is `Generic`.
fn plain_base(class: &Class, base: ExprId) -> ExprId {
    match class.body.exprs[base] {
        Expr::Subscript { value, .. } => value,
        _ => base,
    }
}

fn is_torch_module(base: &Resolution) -> bool {
    matches!(base, Resolution::External(path) if torch_class(path).is_some())
}

fn is_torch_optimizer(base: &Resolution) -> bool {
    let paths = [&[TORCH, "optim", "Optimizer"][..], &[TORCH, "optim", "optimizer", "Optimizer"]];
    paths.iter().any(|path| is_external(base, path))
}
