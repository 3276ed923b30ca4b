//! The two uses of evaluation: inference of a file, lowering of a kernel.

use std::sync::Arc;

use super::builtins::descriptor::{ALIGNMENT, row_multiple};
use super::dtype::{DType, Elem, Pointer};
use super::emit::Emitter;
use super::names::function_ref;
use super::symbolic::Sym;
use super::types::BodyTypes;
use super::value::{
    Const, Descriptor, FunctionRef, Held, Origin, Role, Shape, Tensor, Tuple, Value,
};
use super::{
    Evaluator, Failing, Frame, Local, Locals, Mode, OriginKind, Rules, Source, options_of,
};
use crate::builtins::TritonVersion;
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::hir::{ArgKind, Expr, ExprId, Literal, Name, Param};
use crate::ir::{self, Opcode};
use crate::passes;
use crate::project::{self, Decorator, ItemRef, Resolution, Sources};
use crate::source::{FileId, FileRange, TextRange};
use crate::specialization::{ArgSpec, ConstArg, Origin as SpecOrigin, Specialization, uses};

/// What inference found in one file.
#[derive(Debug, Clone, Default)]
pub struct FileInference {
    /// Every jit function, in source order.
    pub kernels: Vec<KernelInference>,
}

/// What inference found in one jit function.
#[derive(Debug, Clone, Default)]
pub struct KernelInference {
    /// Its name.
    pub name: Name,
    /// Range of its name.
    pub range: TextRange,
    /// Values and types of its expressions.
    pub types: BodyTypes,
    /// What is certainly wrong, for every specialization.
    pub diagnostics: Vec<Diagnostic>,
}

/// What lowering a kernel gave.
#[derive(Debug, Default)]
pub struct LowerResult {
    /// The kernel as tile IR; `None` when there is an error.
    pub function: Option<ir::Function>,
    /// Errors and prints, each naming the specialization.
    pub diagnostics: Vec<Diagnostic>,
    /// What `tl.static_print` printed, with where.
    pub prints: Vec<(FileRange, String)>,
    /// Values and types of its expressions under the specialization.
    pub types: BodyTypes,
    /// The jit functions that were inlined, each once.
    pub inlined: Vec<FunctionRef>,
    /// The specialization with better guesses, when the kernel lowers only with these.
    pub repaired: Option<Specialization>,
    /// Variables of the environment that the kernel's constants depend on are taken to be unset.
    pub(super) takes_defaults: bool,
    /// Steps of evaluation until the first error.
    pub(super) steps_to_error: u32,
    /// Where the first error is, innermost function first.
    pub(super) failing: Vec<Failing>,
}

/// Infers every jit function of a file.
pub fn infer_file(sources: &dyn Sources, file: FileId, version: TritonVersion) -> FileInference {
    infer_all(sources, file, Rules::Only(version))
}

/// As [`infer_file`], each function under the version that accepts it.
pub(super) fn infer_all(sources: &dyn Sources, file: FileId, rules: Rules) -> FileInference {
    let entries = project::kernels(sources, file);
    let functions = project::jit_functions(sources, file).into_iter();
    let mut kernels: Vec<KernelInference> = functions
        .filter_map(|at| rules.infer_function(sources, at, entries.contains(&at)))
        .collect();
    let mut found: Vec<&mut Vec<Diagnostic>> =
        kernels.iter_mut().map(|kernel| &mut kernel.diagnostics).collect();
    drop_repeated(&mut found);
    FileInference { kernels }
}

/// Drops errors of callers that the helper, a function of the same file, has by itself. `found`
/// is what inference found in each function.
pub fn drop_repeated(found: &mut [&mut Vec<Diagnostic>]) {
    let own: rustc_hash::FxHashSet<(Code, FileRange)> = found
        .iter()
        .flat_map(|diagnostics| diagnostics.iter())
        .map(|diagnostic| (diagnostic.code, diagnostic.primary))
        .collect();
    for diagnostics in found {
        diagnostics.retain(|diagnostic| {
            let inner = diagnostic
                .related
                .first()
                .filter(|related| related.message.starts_with("inside the inlined function"));
            inner.is_none_or(|inner| !own.contains(&(diagnostic.code, inner.at)))
        });
    }
}

/// Infers one jit function. `entry` says that it is launched: its arguments are scalars then.
pub(super) fn infer_function(
    sources: &dyn Sources,
    at: ItemRef,
    entry: bool,
    version: TritonVersion,
) -> Option<KernelInference> {
    let function = function_ref(sources, at, Role::Jit)?;
    let range = project::item(sources, at)?.name_range;
    let mut evaluator = Evaluator::new(sources, version);
    evaluator.kernel = function.function.name.clone();
    evaluator.is_uncalled = !entry;
    let locals = evaluator.symbolic_arguments(at, &function, entry);
    evaluator.check_decorators(at, &function);
    evaluator.run_kernel(&function, locals);
    if evaluator.has_other_definitions(at) {
        // One of several definitions, each for its own version of Triton.
        evaluator.diagnostics.retain(|found| {
            !matches!(found.code, Code::UnknownBuiltin | Code::UnknownKeyword | Code::NoAttribute)
        });
    }
    let name = function.function.name.clone();
    let mut types = std::mem::take(&mut evaluator.types);
    types.finish(std::mem::take(&mut evaluator.origins));
    Some(KernelInference { name, range, types, diagnostics: evaluator.diagnostics })
}

/// Lowers the kernel called `kernel` of `file`, the last one of several, under a specialization.
pub fn lower_kernel(
    sources: &dyn Sources,
    file: FileId,
    kernel: &str,
    spec: &Specialization,
    version: TritonVersion,
) -> LowerResult {
    match named_kernel(sources, file, kernel) {
        Some(at) => lower_function(sources, at, spec, version),
        None => {
            let message = format!("there is no kernel `{kernel}` in this file");
            let diagnostic = Diagnostic::new(Code::NoKernel, FileRange::default(), message);
            LowerResult { diagnostics: vec![diagnostic], ..LowerResult::default() }
        }
    }
}

/// The jit function of this name; the last one when several are.
pub(super) fn named_kernel(sources: &dyn Sources, file: FileId, kernel: &str) -> Option<ItemRef> {
    let functions = project::jit_functions(sources, file);
    functions
        .into_iter()
        .rfind(|at| project::item(sources, *at).is_some_and(|item| &*item.name == kernel))
}

/// As [`lower_kernel`], for the jit function `at`.
pub(super) fn lower_function(
    sources: &dyn Sources,
    at: ItemRef,
    spec: &Specialization,
    version: TritonVersion,
) -> LowerResult {
    lower_with(Evaluator::new(sources, version), at, spec)
}

/// As [`lower_function`], up to the first error: whether the kernel lowers, else how far it comes.
pub(super) fn try_lowering(
    sources: &dyn Sources,
    at: ItemRef,
    spec: &Specialization,
    version: TritonVersion,
) -> LowerResult {
    try_lowering_within(ir::MAX_TILE_ELEMENTS, sources, at, spec, version)
}

/// As [`try_lowering`]; a tile of more than `most_elements` is an error too.
pub(super) fn try_lowering_within(
    most_elements: usize,
    sources: &dyn Sources,
    at: ItemRef,
    spec: &Specialization,
    version: TritonVersion,
) -> LowerResult {
    let mut evaluator = Evaluator::new(sources, version);
    evaluator.ends_at_error = true;
    evaluator.most_elements = most_elements;
    lower_with(evaluator, at, spec)
}

fn lower_with(mut evaluator: Evaluator<'_>, at: ItemRef, spec: &Specialization) -> LowerResult {
    let sources = evaluator.project;
    let Some(function) = function_ref(sources, at, Role::Jit) else {
        return LowerResult::default();
    };
    let kernel = function.function.name.clone();
    evaluator.exact = true;
    evaluator.label = Some(spec.to_string());
    evaluator.options = options_of(spec);
    let ir_function = ir::Function::new(kernel.clone(), ir::Level::Tile, evaluator.options.clone());
    evaluator.kernel = kernel;
    let function = evaluator.made_in_module(at, function);
    evaluator.emitter = Some(Emitter::new(ir_function));
    evaluator.check_decorators(at, &function);
    if let Some(fault) = evaluator.options.fault() {
        let range = project::item(sources, at).map(|item| item.name_range).unwrap_or_default();
        let name = FileRange { file: function.file, range };
        evaluator.emit_diagnostic(Diagnostic::new(Code::WarpCount, name, fault));
    } else if let Some(locals) = evaluator.specialized_arguments(&function, spec) {
        let returns = evaluator.run_kernel(&function, locals);
        // What is only guessed to be launched may be called instead.
        if spec.origin != SpecOrigin::Guess {
            evaluator.refuse_results(&returns);
        }
    }
    evaluator.finish()
}

/// What is wrong with the kernel `at` for the arguments of `spec` that the source shows, whatever
/// those are that a guess stands in for. Nothing is lowered.
pub(super) fn infer_under(
    sources: &dyn Sources,
    at: ItemRef,
    spec: &Specialization,
    version: TritonVersion,
) -> LowerResult {
    let Some(function) = function_ref(sources, at, Role::Jit) else {
        return LowerResult::default();
    };
    let mut shown = spec.clone();
    shown.args.retain(|name, _| !spec.assumed.contains(name));
    let mut evaluator = Evaluator::new(sources, version);
    evaluator.label = Some(shown.to_string());
    evaluator.options = options_of(spec);
    evaluator.kernel = function.function.name.clone();
    let mut locals = evaluator.symbolic_arguments(at, &function, true);
    for param in function.function.params.iter() {
        let Some(arg) = shown.args.get(&param.name) else { continue };
        let place = FileRange { file: function.file, range: param.range };
        let Some(value) = evaluator.shown_argument(&function, param, arg, place) else { continue };
        locals.insert(param.name.clone(), Local { value, at: param.range });
    }
    evaluator.run_kernel(&function, locals);
    let mut result = evaluator.finish();
    result.diagnostics.retain(|found| found.severity == Severity::Error);
    result.function = None;
    result
}

/// True for what holds a value of the run time.
fn is_computed(value: &Value) -> bool {
    match value {
        Value::Tensor(_) | Value::BlockPtr(_) | Value::Descriptor(_) => true,
        Value::Tuple(tuple) => tuple.items.iter().any(is_computed),
        Value::Object(object) => object.fields.iter().any(|(_, field)| is_computed(field)),
        _ => false,
    }
}

impl Evaluator<'_> {
    /// Evaluates a kernel's body; gives what it returns, with where.
    fn run_kernel(&mut self, function: &FunctionRef, locals: Locals) -> Vec<(Value, FileRange)> {
        let params = locals.iter().map(|(name, local)| (name.clone(), local.value.clone()));
        self.types.set_params(params.collect());
        let frame = Frame::new(
            Mode::Jit,
            function.file,
            Some(function.clone()),
            function.scope.clone(),
            locals,
        );
        self.frames.push(frame);
        self.check_head(function);
        let body = function.function.clone();
        let source = Source::of(&body, function.file);
        self.run(source, &source.body.root, None);
        self.frames.pop().map(|frame| frame.returns).unwrap_or_default()
    }

    /// A kernel that is launched returns nothing that has to be computed.
    fn refuse_results(&mut self, returns: &[(Value, FileRange)]) {
        let Some((_, at)) = returns.iter().find(|(value, _)| is_computed(value)) else { return };
        let message = "a kernel that is launched returns no value";
        let diagnostic = Diagnostic::new(Code::UnsupportedPython, *at, message)
            .with_note("store the value through a pointer");
        self.emit_diagnostic(diagnostic);
    }

    /// A constexpr parameter is specialized for, whatever the decorator says.
    fn check_decorators(&mut self, item: ItemRef, function: &FunctionRef) {
        let body = function.function.clone();
        let source = Source::of(&body, function.file);
        let decorators = project::decorators(self.project, item);
        let jit = decorators.iter().filter_map(|decorator| match decorator {
            Decorator::Jit(id) => Some(*id),
            _ => None,
        });
        for (count, id) in jit.enumerate() {
            if count > 0 {
                let message = "`@triton.jit` makes a kernel of a function, but not of a kernel";
                self.error(Code::NotCallable, source.at(id), message);
            }
            let Expr::Call { args, .. } = &body.body.exprs[id] else { continue };
            for arg in args {
                let ArgKind::Keyword(option) = &arg.kind else { continue };
                if matches!(&**option, "do_not_specialize" | "do_not_specialize_on_alignment") {
                    self.refuse_constexpr_in(option, arg.value, function);
                }
            }
        }
    }

    fn refuse_constexpr_in(&mut self, option: &str, list: ExprId, function: &FunctionRef) {
        let body = function.function.clone();
        let (Expr::List(items) | Expr::Tuple(items)) = &body.body.exprs[list] else { return };
        for &item in items {
            let Expr::Literal(Literal::Str(name)) = &body.body.exprs[item] else { continue };
            let param = body.params.iter().find(|param| *param.name == **name);
            let Some(param) = param else { continue };
            if self.is_constexpr_param(function, param) {
                let message =
                    format!("`{name}` is a `tl.constexpr`, so it cannot be in `{option}`");
                let at = FileRange { file: function.file, range: param.range };
                let source = Source::of(&body, function.file);
                let diagnostic = Diagnostic::new(Code::BadOption, at, message)
                    .with_related(source.at(item), "listed here");
                self.emit_diagnostic(diagnostic);
            }
        }
    }

    fn finish(mut self) -> LowerResult {
        if let Some(emitter) = self.emitter.as_ref() {
            let body = emitter.func.body;
            self.terminate(body, Opcode::Return, []);
        }
        if self.has_empty_tiles {
            self.drop_empty_tiles();
        }
        let function = self.emitter.take().filter(|_| !self.failed).map(|emitter| emitter.func);
        let mut types = std::mem::take(&mut self.types);
        types.finish(std::mem::take(&mut self.origins));
        LowerResult {
            function,
            diagnostics: self.diagnostics,
            prints: self.prints,
            types,
            inlined: self.inlined,
            repaired: None,
            takes_defaults: self.unset,
            steps_to_error: self.steps_to_error,
            failing: self.failing,
        }
    }

    /// Removes tiles without elements, which no later stage takes; what depends on one does not
    /// compile.
    fn drop_empty_tiles(&mut self) {
        let Some(emitter) = self.emitter.as_mut() else { return };
        passes::eliminate_dead_code(&mut emitter.func);
        let func = &emitter.func;
        let is_empty = |value: ir::Value| func.ty(value).shape().contains(&0);
        let left = reachable(func, func.body).into_iter().find(|&inst| {
            let data = &func.insts[inst];
            data.uses().any(is_empty) || data.results.iter().any(|&value| is_empty(value))
        });
        if let Some(inst) = left {
            let at = func.locs[func.insts[inst].loc].at;
            let message = "this depends on a tile without elements";
            let diagnostic = Diagnostic::new(Code::PowerOfTwo, at, message)
                .with_note("every extent of a tile is a power of two");
            self.emit_diagnostic(diagnostic);
        }
    }

    /// Arguments of which nothing but the annotations is known. Those of a kernel that is launched
    /// are scalars; helpers may get tiles too.
    fn symbolic_arguments(&mut self, item: ItemRef, function: &FunctionRef, entry: bool) -> Locals {
        let mut locals = Locals::default();
        let body = function.function.clone();
        let params = &function.function.params;
        let constexpr: Vec<bool> =
            params.iter().map(|param| self.is_constexpr_param(function, param)).collect();
        let uses =
            if constexpr.contains(&true) { uses(self.project, item) } else { Arc::default() };
        let is_method = project::is_method(self.project, item);
        for (index, param) in params.iter().enumerate() {
            let at = FileRange { file: function.file, range: param.range };
            let used = uses.get(index);
            // A helper may be passed a tensor in spite of the annotation.
            let may_be_tensor = !entry && used.is_some_and(|used| !used.is_constant());
            let is_self = is_method && index == 0;
            let value = if is_self || constexpr[index] && may_be_tensor {
                Value::Unknown
            } else if constexpr[index] {
                if used.is_some_and(|used| used.is_no_number()) {
                    self.other_symbols.insert(param.name.clone());
                }
                Value::Const(Const::Symbol(Sym::atom(param.name.clone())))
            } else {
                let hinted =
                    param.annotation.and_then(|id| self.annotated_elem(function, &body, id));
                let elem = hinted.unwrap_or(Elem::Unknown);
                let origin =
                    self.origin(at, OriginKind::Argument(param.name.clone()), Origin::NONE);
                let shape = if entry { Shape::scalar() } else { Shape::unknown() };
                Value::Tensor(Tensor {
                    elem,
                    shape,
                    ir: None,
                    origin,
                    open: elem.is_unknown(),
                    number: None,
                })
            };
            locals.insert(param.name.clone(), Local { value, at: param.range });
        }
        locals
    }

    /// The type that a parameter's annotation sets, if it sets one.
    fn annotated_elem(
        &mut self,
        function: &FunctionRef,
        body: &crate::hir::Function,
        annotation: ExprId,
    ) -> Option<Elem> {
        if let Expr::Literal(Literal::Str(text)) = &body.body.exprs[annotation] {
            return Elem::from_signature(text.trim_start_matches("tl."));
        }
        if let Expr::Name(name) = &body.body.exprs[annotation] {
            match &**name {
                "int" => return Some(Elem::I32),
                "float" => return Some(Elem::Num(DType::Float32)),
                _ => {}
            }
        }
        match self.default_value(function, annotation) {
            Value::Const(Const::DType(elem)) if !elem.is_unknown() => Some(elem),
            _ => None,
        }
    }

    /// Arguments of a specialization; adds the runtime ones to the IR function.
    fn specialized_arguments(
        &mut self,
        function: &FunctionRef,
        spec: &Specialization,
    ) -> Option<Locals> {
        let mut locals = Locals::default();
        for param in &function.function.params {
            let at = FileRange { file: function.file, range: param.range };
            let value = match spec.args.get(&param.name) {
                Some(arg) => self.shown_argument(function, param, arg, at)?,
                None => match param.default {
                    Some(default) => {
                        let value = self.default_value(function, default);
                        self.passed(function, param, value)
                    }
                    None => {
                        let message =
                            format!("the specialization has no value for `{}`", param.name);
                        self.error(Code::MissingArgument, at, message);
                        return None;
                    }
                },
            };
            locals.insert(param.name.clone(), Local { value, at: param.range });
        }
        Some(locals)
    }

    /// The value of `param` where `arg` is passed.
    fn shown_argument(
        &mut self,
        function: &FunctionRef,
        param: &Param,
        arg: &ArgSpec,
        at: FileRange,
    ) -> Option<Value> {
        let value = self.argument(&param.name, arg, function, at)?;
        Some(self.passed(function, param, value))
    }

    /// What `param` is where `value` is passed.
    fn passed(&mut self, function: &FunctionRef, param: &Param, value: Value) -> Value {
        let value = self.override_by_annotation(function, param, value);
        let constexpr = self.is_constexpr_param(function, param);
        if constexpr && !self.is_3_9() { value.held(Held::Python) } else { value }
    }

    /// `tl.const` makes a pointer constant.
    fn override_by_annotation(
        &mut self,
        function: &FunctionRef,
        param: &Param,
        value: Value,
    ) -> Value {
        let Some(annotation) = param.annotation else { return value };
        let body = function.function.clone();
        let is_const = match &body.body.exprs[annotation] {
            Expr::Attribute { attr, .. } => &**attr == "const",
            Expr::Name(name) => &**name == "const",
            _ => false,
        };
        match value {
            Value::Tensor(Tensor { elem: Elem::Ptr(pointer), shape, ir, origin, open, number })
                if is_const =>
            {
                let elem = Elem::Ptr(Pointer { constant: true, ..pointer });
                Value::Tensor(Tensor { elem, shape, ir, origin, open, number })
            }
            other => other,
        }
    }

    fn argument(
        &mut self,
        name: &Name,
        arg: &ArgSpec,
        function: &FunctionRef,
        at: FileRange,
    ) -> Option<Value> {
        match arg {
            ArgSpec::Constexpr(constant) => Some(self.constant_argument(constant, function)),
            ArgSpec::Tuple(tuple) => {
                let mut values = Vec::with_capacity(tuple.items.len());
                for (index, item) in tuple.items.iter().enumerate() {
                    let part = Name::from(format!("{name}.{index}"));
                    values.push(self.argument(&part, item, function, at)?);
                }
                let named = tuple.named.as_ref();
                let named =
                    named.map(|names| Arc::new((names.class.clone(), names.fields.clone())));
                Some(Value::Tuple(Arc::new(Tuple { items: values, named, held: Held::Elements })))
            }
            ArgSpec::Runtime { signature, divisible_by_16 } => {
                self.runtime_argument(name, signature, *divisible_by_16, at)
            }
        }
    }

    fn constant_argument(&mut self, constant: &ConstArg, function: &FunctionRef) -> Value {
        match constant {
            ConstArg::None => Value::NONE,
            ConstArg::Bool(value) => Value::bool(*value),
            ConstArg::Int(value) => Value::int(*value),
            ConstArg::Float(bits) => Value::Const(Const::Float(f64::from_bits(*bits))),
            ConstArg::Str(text) => Value::str(text.clone()),
            ConstArg::DType(name) => match Elem::from_signature(name) {
                Some(elem) => Value::Const(Const::DType(elem)),
                None => Value::Unknown,
            },
            ConstArg::TorchDType(name) => match DType::from_signature(name) {
                Some(dtype) => Value::Const(Const::TorchDType(dtype)),
                None => Value::Unknown,
            },
            ConstArg::Function(name) => {
                let scope = function.scope.clone();
                let found = self.global(function.file, &scope, &Name::from(&**name));
                found.map_or(Value::Unknown, |global| global.value)
            }
            ConstArg::Member(member) => {
                let class = self.resolved(&Resolution::Class(member.class));
                let at = FileRange::default();
                match class.map(|global| global.value) {
                    Some(class) => {
                        self.quietly(|this| this.attribute(&class, &member.name, at)).in_constexpr()
                    }
                    None => Value::Unknown,
                }
            }
            ConstArg::Tuple(items) => Value::tuple(
                items.iter().map(|item| self.constant_argument(item, function)).collect(),
            ),
        }
    }

    fn runtime_argument(
        &mut self,
        name: &Name,
        signature: &str,
        divisible: bool,
        at: FileRange,
    ) -> Option<Value> {
        if let Some(descriptor) = self.descriptor_argument(name, signature, at) {
            return Some(descriptor);
        }
        let Some(elem) = Elem::from_signature(signature) else {
            let message = format!("`{signature}` is not a type of an argument");
            self.error(Code::UnsupportedDType, at, message);
            return None;
        };
        self.scalar_argument(name, signature, elem, if divisible { 16 } else { 1 }, at)
            .map(Value::Tensor)
    }

    fn scalar_argument(
        &mut self,
        name: &Name,
        signature: &str,
        elem: Elem,
        divisibility: u32,
        at: FileRange,
    ) -> Option<Tensor> {
        let Some(lowered) = elem.lower() else {
            let message = format!("`{signature}` is not supported on this architecture");
            self.error(Code::UnsupportedDType, at, message);
            return None;
        };
        let origin = self.origin(at, OriginKind::Argument(name.clone()), Origin::NONE);
        let ir = self.emitter.as_mut().map(|emitter| {
            let param =
                ir::Param { name: name.clone(), signature: Arc::from(signature), divisibility };
            emitter.func.add_param(param, ir::Type::Scalar(lowered))
        });
        Some(Tensor { elem, shape: Shape::scalar(), ir, origin, open: false, number: None })
    }

    /// `tensordesc<fp16[128, 64]>`: a base pointer, extents and strides as separate parameters.
    fn descriptor_argument(
        &mut self,
        name: &Name,
        signature: &str,
        at: FileRange,
    ) -> Option<Value> {
        let inner = signature.strip_prefix("tensordesc<")?.strip_suffix('>')?;
        let (dtype, block) = inner.split_once('[')?;
        let dtype = DType::from_signature(dtype)?;
        let block = block.split(']').next()?;
        let extents: Option<Vec<Sym>> = block
            .split(',')
            .map(|extent| extent.trim().parse::<i128>().ok().map(Sym::Int))
            .collect();
        let block = Shape::of(extents?);
        self.check_extents(&block, at).ok()?;
        let rank = block.rank()?;
        let base_signature = format!("*{}", dtype.signature());
        let base = self.scalar_argument(
            &Name::from(format!("{name}.base")),
            &base_signature,
            Elem::pointer_to(Some(dtype)),
            ALIGNMENT,
            at,
        )?;
        let mut shape = Vec::new();
        for axis in 0..rank {
            let part = Name::from(format!("{name}.shape.{axis}"));
            shape.push(self.scalar_argument(&part, "i32", Elem::I32, 1, at)?);
        }
        let mut strides = Vec::new();
        for axis in 0..rank {
            let elem = Elem::Num(DType::Int64);
            if axis + 1 == rank {
                strides.push(self.int_constant(1, DType::Int64));
                continue;
            }
            let part = Name::from(format!("{name}.stride.{axis}"));
            let multiple = row_multiple(dtype);
            strides.push(self.scalar_argument(&part, "i64", elem, multiple, at)?);
        }
        let descriptor = Descriptor { base, shape, strides, block, nan_padding: false };
        Some(Value::Descriptor(Arc::new(descriptor)))
    }
}

/// The instructions of a region and of those inside, in order.
fn reachable(func: &ir::Function, region: ir::Region) -> Vec<ir::Inst> {
    let mut insts = Vec::new();
    for &inst in &func.regions[region].insts {
        insts.push(inst);
        for &inner in &func.insts[inst].regions {
            insts.extend(reachable(func, inner));
        }
    }
    insts
}
