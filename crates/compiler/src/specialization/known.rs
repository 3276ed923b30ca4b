//! What host code shows of a launch beyond what the kernel is compiled for: the grid, the values
//! of numbers, and the sizes of buffers.

use std::sync::Arc;

use super::{ArgSpec, Origin, Specialization};
use crate::builtins::LAUNCH_OPTIONS;
use crate::hir::{ArgKind, Expr, ExprId, Item, Launch, Literal, Module, Name, Param, ParamKind};
use crate::host;
use crate::host::torch::misuse::Misuse;
use crate::host::value::contents::Contents;
use crate::host::value::{Callable, Storage, Tensor, Value};
use crate::host::{Host, Making, ObservedLaunch, REST, elements, is_complex};
use crate::ir::{MAX_GRID, no_power_of_two};
use crate::project::{
    Decorator, ItemRef, Kernel, Resolution, Sources, is_wrapped_by_call, is_wrapped_by_known_calls,
    item, launched_by,
};
use crate::source::{FileId, FileRange};

/// The option for how many warps run a program.
const WARPS: &str = "num_warps";

/// One launch of a kernel under a specialization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownLaunch {
    /// Where it stands.
    pub site: Option<LaunchSite>,
    /// What runs and comes to it, where that is another function than the one that holds it.
    pub caller: Option<Caller>,
    /// Whether a scenario, a launch site or flags show it.
    pub origin: Origin,
    /// Whether it may never happen, so that nothing under it need be a mistake: it stands under a
    /// condition that has one outcome, which is not known. Of its arguments nothing is told.
    pub doubtful: bool,
    /// Whether it is as one draw of the random numbers of host code has it.
    pub drawn: bool,
    /// Extents of the grid, where all of them are known.
    pub grid: Option<[u32; 3]>,
    /// Axes along which the launch gives an extent that is not known.
    pub open_axes: [bool; 3],
    /// At least so many programs run along each axis, if any does: one where the extent is not known.
    pub least_grid: [u32; 3],
    /// What is wrong with the grid.
    pub grid_fault: Option<GridFault>,
    /// How many extents the launch gives, 1 to 3; 0 when that is not known.
    pub grid_rank: usize,
    /// What is wrong with the arguments.
    pub arg_faults: Vec<ArgFault>,
    /// What is known of arguments, by the names of the IR's parameters. Others are not known.
    pub args: Vec<(Name, KnownArg)>,
    /// The launches that left what is in its memory, where that may decide what it does.
    pub past: Option<Arc<Past>>,
    /// What is assumed of the sizes of tensors, if anything is.
    pub assumed: Option<Arc<str>>,
    /// The function that comes to it, where nothing shows the sizes of tensors that it gets.
    pub open_sizes: Option<Caller>,
}

/// Steps in order, from which it follows what memory holds that a launch is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Past {
    /// The steps.
    pub steps: Vec<PastStep>,
    /// By allocation which of them left it as it is.
    pub left: Vec<(u32, usize)>,
}

/// Something that left memory as a launch finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastStep {
    /// What it is.
    pub what: Happened,
    /// By allocation which of those before left it as it is.
    pub left: Vec<(u32, usize)>,
}

/// What leaves something in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// A launch.
    Launch(Box<PastLaunch>),
    /// Host code made tensors.
    Made(Arc<Making>),
}

/// A launch that comes before another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastLaunch {
    /// What it launches.
    pub kernel: ItemRef,
    /// What that is compiled for.
    pub spec: Specialization,
    /// What is known of it.
    pub launch: KnownLaunch,
}

impl PastLaunch {
    /// What the kernel is compiled for, with the launch.
    pub(crate) fn in_launch(&self) -> Specialization {
        Specialization { launches: vec![self.launch.clone()], ..self.spec.clone() }
    }
}

/// Arguments with which no kernel is launched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgFault {
    /// These parameters get none.
    Missing(Vec<Name>),
    /// There are more by position than parameters.
    Surplus {
        /// How many there are.
        given: usize,
    },
    /// A parameter gets a value by position and another by name.
    Repeated(Name),
    /// One is given by a name that no parameter and no option has.
    Unknown(Name),
    /// A parameter that is no compile-time value gets what has no type at run time, named in the second
    /// place.
    Untyped(Name, &'static str),
    /// A parameter of which the annotation says that it is a number gets what is none, named in the second
    /// place.
    NoNumber(Name, &'static str),
    /// A parameter that is an extent of tiles gets a tensor.
    TensorExtent(Name),
    /// A parameter that is a number at compile time gets a tensor.
    TensorNumber(Name),
    /// A parameter gets a tensor of elements that Triton has no type for.
    Elements(Name, Arc<str>),
    /// A parameter gets what a tensor or a tuple does not have.
    Misuse(Name, Misuse),
    /// The heuristic that sets a parameter raises an exception for the other arguments.
    Heuristic(Name, Misuse),
    /// An extent of the grid is computed from what a tensor or a tuple does not have.
    GridMisuse(Misuse),
    /// `num_warps` is computed as a number that is no power of two.
    Warps(i128),
}

/// A grid that no device takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GridFault {
    /// It is a number, not a tuple of them.
    Number,
    /// An extent is no number.
    Other {
        /// The axis.
        axis: usize,
    },
    /// An extent is a float.
    Fraction {
        /// The axis.
        axis: usize,
    },
    /// An extent is none, so that nothing runs.
    Empty {
        /// The axis.
        axis: usize,
    },
    /// An extent is more than devices take.
    TooLarge {
        /// The axis.
        axis: usize,
        /// The extent.
        extent: i128,
        /// The largest that there may be.
        most: i128,
    },
}

/// What is known of one runtime argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownArg {
    /// An integer or bool.
    Int(i128),
    /// A float, by its bits.
    Float(u64),
    /// An address in a buffer.
    Buffer(KnownBuffer),
}

/// Memory that an argument points to the first element of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownBuffer {
    /// Equal for arguments in the same memory; `None` when that is not known.
    pub id: Option<u32>,
    /// Its size in elements of the argument's type, from the tensor's first on.
    pub elements: i128,
    /// How many of its elements come before the tensor's first.
    pub before: i128,
    /// The sizes of the tensor, where its elements are one after another in memory.
    pub sizes: Option<Vec<i128>>,
    /// What it holds when the launch comes.
    pub contents: Contents,
    /// Whether several elements of the tensor are one in memory, as those of an expanded tensor are.
    pub is_expanded: bool,
    /// Where the launch gives the result of a conversion to another type, which nothing else holds: the
    /// position of the parameter that gets it.
    pub converted: Option<usize>,
}

impl KnownBuffer {
    /// The sizes of the tensor, where its elements are all of the memory, in order.
    pub fn shape(&self) -> Option<&[i128]> {
        let fills =
            |sizes: &&[i128]| self.before == 0 && sizes.iter().product::<i128>() == self.elements;
        self.sizes.as_deref().filter(fills)
    }

    /// What it holds, element by element; of random numbers, what one run draws. `None` where that is
    /// not known.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        let count = usize::try_from(self.elements).ok()?;
        host::drawn(&self.contents, count)?.all(count)
    }
}

/// A launch in host code by its number, which stays when text before it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaunchSite {
    /// The file.
    pub file: FileId,
    /// Position in [`Module::launches`](crate::hir::Module::launches).
    pub index: u32,
}

/// A function of host code that runs by itself, by its number, which stays when text before it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Caller(pub(super) ItemRef);

impl Caller {
    /// What it is called, and where its name stands now.
    pub(crate) fn place(self, sources: &dyn Sources) -> Option<(Name, FileRange)> {
        let Item { name, name_range, .. } = item(sources, self.0)?;
        Some((name, FileRange { file: self.0.file, range: name_range }))
    }

    /// Whether it holds the launch at `site`, itself or in a function that it defines.
    fn holds(self, sources: &dyn Sources, site: LaunchSite) -> bool {
        let module = sources.module(site.file);
        let launch = module.as_ref().and_then(|module| module.launches.get(site.index as usize));
        let item = item(sources, self.0);
        let both = launch.zip(item).filter(|_| site.file == self.0.file);
        both.is_some_and(|(launch, item)| item.range.contains_range(launch.range))
    }
}

impl LaunchSite {
    /// The launch whose kernel is named at `at`.
    pub(crate) fn at(sources: &dyn Sources, at: FileRange) -> Option<LaunchSite> {
        let module = sources.module(at.file)?;
        let stands = |launch: &Launch| launch.map.exprs[launch.kernel] == at.range;
        let index = module.launches.iter().position(stands)?;
        Some(LaunchSite { file: at.file, index: index as u32 })
    }

    /// True when it stands in a scenario.
    pub fn is_in_scenario(self, sources: &dyn Sources) -> bool {
        let Some(module) = sources.module(self.file) else { return false };
        let Some(launch) = module.launches.get(self.index as usize) else { return false };
        module.scenarios.iter().any(|scenario| scenario.range.contains_range(launch.range))
    }

    /// Whether arguments of it come from something that is taken apart.
    fn spreads(self, sources: &dyn Sources) -> bool {
        let module = sources.module(self.file);
        let launch = module.as_ref().and_then(|module| module.launches.get(self.index as usize));
        let has = |kind: &ArgKind| {
            launch.is_some_and(|launch| launch.args.iter().any(|arg| arg.kind == *kind))
        };
        has(&ArgKind::Star) || has(&ArgKind::DoubleStar)
    }

    /// Whether its text says that it launches this kernel.
    fn names(self, sources: &dyn Sources, kernel: ItemRef) -> bool {
        let module = sources.module(self.file);
        module.is_some_and(|module| {
            let Some(launch) = module.launches.get(self.index as usize) else { return true };
            launched_by(sources, self.file, &module, launch) == Resolution::Jit(kernel)
        })
    }

    /// Whether a dict gives it arguments although what it launches is not named, so that they may be
    /// meant for several kernels, each of which takes others.
    fn gives_by_choice(self, sources: &dyn Sources) -> bool {
        let module = sources.module(self.file);
        let named = module.as_ref().and_then(|module| {
            let launch = module.launches.get(self.index as usize)?;
            let spreads = launch.args.iter().any(|arg| arg.kind == ArgKind::DoubleStar);
            let found = launched_by(sources, self.file, module, launch);
            Some(!spreads || matches!(found, Resolution::Jit(_)))
        });
        named == Some(false)
    }

    /// Whether it gives the argument `name` as a number; `None` where it has no argument of that
    /// name in its text.
    fn is_number(self, sources: &dyn Sources, name: &str) -> Option<bool> {
        let module = sources.module(self.file)?;
        let launch = module.launches.get(self.index as usize)?;
        let named = |kind: &ArgKind| matches!(kind, ArgKind::Keyword(given) if **given == *name);
        let arg = launch.args.iter().find(|arg| named(&arg.kind))?;
        Some(matches!(launch.body.exprs[arg.value], Expr::Literal(Literal::Int(_))))
    }

    /// Whether its text gives an argument of this name.
    fn gives_by_name(self, sources: &dyn Sources, name: &str) -> bool {
        self.is_number(sources, name).is_some()
    }

    /// Where its grid stands now.
    pub(crate) fn grid_place(self, sources: &dyn Sources) -> Option<FileRange> {
        let module = sources.module(self.file)?;
        let launch = module.launches.get(self.index as usize)?;
        Some(FileRange { file: self.file, range: launch.map.exprs[launch.grid] })
    }

    /// Where it passes the argument for the parameter `name`, which is the one at `index`.
    pub(crate) fn argument_place(
        self,
        sources: &dyn Sources,
        name: &str,
        index: usize,
    ) -> Option<FileRange> {
        let module = sources.module(self.file)?;
        let (launch, value) = self.argument(&module, name, index)?;
        Some(FileRange { file: self.file, range: launch.map.exprs[value] })
    }

    /// Whether it gives a parameter what a method makes there of a tensor that has a name.
    fn gives_what_a_method_makes(self, sources: &dyn Sources, name: &str, index: usize) -> bool {
        let module = sources.module(self.file);
        let argument = module.as_ref().and_then(|module| self.argument(module, name, index));
        let receiver = argument.and_then(|(launch, value)| {
            let Expr::Call { callee, .. } = &launch.body.exprs[value] else { return None };
            match &launch.body.exprs[*callee] {
                Expr::Attribute { value, .. } => Some(&launch.body.exprs[*value]),
                _ => None,
            }
        });
        matches!(receiver, Some(Expr::Name(_) | Expr::Attribute { .. }))
    }

    /// What it gives the parameter of a name and position.
    fn argument<'m>(
        self,
        module: &'m Module,
        name: &str,
        index: usize,
    ) -> Option<(&'m Launch, ExprId)> {
        let launch = module.launches.get(self.index as usize)?;
        let starred = launch.args.iter().any(|arg| arg.kind == ArgKind::Star);
        let mut args = launch.args.iter().enumerate();
        let (_, arg) = args.find(|(position, arg)| match &arg.kind {
            ArgKind::Positional => *position == index && !starred,
            ArgKind::Keyword(keyword) => **keyword == *name,
            ArgKind::Star | ArgKind::DoubleStar => false,
        })?;
        Some((launch, arg.value))
    }

    /// Where it stands now: the kernel's name and the grid.
    pub fn place(self, sources: &dyn Sources) -> Option<FileRange> {
        let module = sources.module(self.file)?;
        let launch = module.launches.get(self.index as usize)?;
        let range = launch.map.exprs[launch.kernel].cover(launch.map.exprs[launch.grid]);
        Some(FileRange { file: self.file, range })
    }
}

impl KnownLaunch {
    fn doubtful(site: Option<LaunchSite>, origin: Origin) -> KnownLaunch {
        KnownLaunch {
            site,
            caller: None,
            origin,
            doubtful: true,
            drawn: false,
            grid: None,
            open_axes: [false; 3],
            least_grid: [1; 3],
            grid_fault: None,
            grid_rank: 0,
            arg_faults: Vec::new(),
            args: Vec::new(),
            past: None,
            assumed: None,
            open_sizes: None,
        }
    }

    /// Takes it for one that may never happen.
    pub(super) fn doubt(&mut self) {
        *self = KnownLaunch::doubtful(self.site, self.origin);
    }

    /// What is wrong with its arguments, without what they are; `None` where nothing is. What host code
    /// raises before is told of where it does.
    pub(super) fn faults_alone(mut self) -> Option<KnownLaunch> {
        let raised =
            |fault: &ArgFault| matches!(fault, ArgFault::Misuse(..) | ArgFault::GridMisuse(_));
        self.arg_faults.retain(|fault| !raised(fault));
        let is_faulty = !self.doubtful && !self.arg_faults.is_empty();
        is_faulty.then(|| self.not_run())
    }

    /// A launch of which no program runs.
    fn not_run(self) -> KnownLaunch {
        KnownLaunch {
            grid: None,
            open_axes: [false; 3],
            least_grid: [1; 3],
            grid_fault: None,
            args: Vec::new(),
            open_sizes: None,
            ..self
        }
    }

    /// The launch with no more programs than certainly run, where extents of its grid are not known. Of a
    /// grid of which nothing is known none may run at all, as where the kernel is only compiled.
    pub(crate) fn of_least_grid(&self) -> Option<KnownLaunch> {
        let has_extents = self.grid_rank > 0 && self.grid_fault.is_none();
        let is_open = self.grid.is_none() && has_extents && !self.doubtful;
        is_open.then(|| KnownLaunch { grid: Some(self.least_grid), ..self.clone() })
    }

    /// At most so many programs run along each axis, where anything bounds them.
    pub(crate) fn greatest_grid(&self) -> Option<[u32; 3]> {
        let least = self.of_least_grid().and_then(|least| least.grid);
        let most = |axis: usize, least: u32| match self.open_axes[axis] {
            true => i32::MAX as u32,
            false => least,
        };
        let is_whole = self.arg_faults.is_empty() && self.open_axes != [true; 3];
        let bounded = least.filter(|_| is_whole);
        let bounded = bounded.map(|[x, y, z]| [most(0, x), most(1, y), most(2, z)]);
        self.grid.or(bounded)
    }

    /// What is known of the argument called `name`.
    pub fn arg(&self, name: &str) -> Option<&KnownArg> {
        self.args.iter().find(|(known, _)| **known == *name).map(|(_, arg)| arg)
    }
}

/// The parameters that a launch gives values to.
pub(super) struct Binding<'k> {
    /// The kernel's.
    pub(super) kernel: &'k Kernel,
    /// Those that need a value and get none.
    pub(super) missing: Vec<Name>,
    /// Whether what calls make of the kernel is known to be the kernel, tuned.
    pub(super) is_made_known: bool,
    /// Those that are compile-time values.
    pub(super) constexpr: &'k [Name],
    /// Those that are extents of tiles.
    pub(super) extents: Vec<&'k Name>,
    /// Those that are numbers at compile time.
    pub(super) numbers: Vec<&'k Name>,
    /// Those that annotations make numbers at run time, with their types.
    pub(super) annotated: Vec<(&'k Name, &'k str)>,
}

/// What `launch` shows. `args` are its arguments as bound to parameters; `meta` is what a grid
/// that is a function gets.
pub(super) fn known_launch<'a>(
    sources: &dyn Sources,
    origin: Origin,
    launch: &ObservedLaunch,
    args: impl Iterator<Item = (&'a Name, &'a ArgSpec, Value)>,
    meta: Value,
    binding: &Binding<'_>,
) -> KnownLaunch {
    let site = launch.site;
    if launch.doubtful {
        return KnownLaunch::doubtful(site, origin);
    }
    let grid = match &launch.grid {
        function @ (Value::Callable(_) | Value::Named(_)) => {
            Host::new(sources).knowing(&launch.objects).outcome(function, &[(None, meta)])
        }
        grid => grid.clone(),
    };
    let mut known = Vec::new();
    let params = &binding.kernel.function.params;
    let converted = |name: &Name, value: &Value| {
        let index = params.iter().position(|param| param.name == *name)?;
        let is_made_there =
            || site.is_some_and(|site| site.gives_what_a_method_makes(sources, name, index));
        (is_converted(value) && is_made_there()).then_some(index)
    };
    for (name, spec, value) in args {
        note_arg(name, spec, &value, &mut known);
        match known.last_mut() {
            Some((last, KnownArg::Buffer(buffer))) if last == name => {
                buffer.converted = converted(name, &value);
            }
            _ => {}
        }
    }
    if has_hooks(sources, binding.kernel.at) {
        forget_contents(&mut known);
    }
    let holds = |caller: &Caller| site.is_some_and(|site| caller.holds(sources, site));
    let known = KnownLaunch {
        site,
        caller: launch.caller.filter(|caller| !holds(caller)),
        origin,
        doubtful: false,
        drawn: launch.drawn,
        grid: extents(&grid),
        open_axes: open_axes(&grid),
        least_grid: least_grid(&grid),
        grid_fault: grid_fault(&grid, origin),
        arg_faults: arg_faults(sources, site, launch, binding, &grid),
        grid_rank: grid
            .elements()
            .map_or(usize::from(matches!(grid, Value::Int(_))), |extents| extents.len().min(3)),
        args: known,
        past: None,
        assumed: launch.assumed.clone(),
        open_sizes: launch.caller.filter(|_| launch.open_sizes),
    };
    match launch.complete && !binding.missing.is_empty() && !has_rest(launch) {
        true => known.not_run(),
        false => known,
    }
}

/// Whether something may run before each launch of a kernel that writes to what it is given.
pub(super) fn has_hooks(sources: &dyn Sources, kernel: ItemRef) -> bool {
    const ADDS_HOOK: &str = "add_pre_run_hook";
    sources.text(kernel.file).is_some_and(|text| text.contains(ADDS_HOOK))
}

/// Takes what memory holds for unknown.
fn forget_contents(args: &mut [(Name, KnownArg)]) {
    for (_, arg) in args {
        if let KnownArg::Buffer(buffer) = arg {
            buffer.contents = Contents::Unknown;
        }
    }
}

impl Binding<'_> {
    /// What a value is that the launch cannot make the number of which a parameter's annotation speaks.
    fn no_number(&self, param: &Name, value: &Value) -> Option<&'static str> {
        let (_, of) = self.annotated.iter().find(|(name, _)| *name == param)?;
        match value {
            Value::Tuple(_) | Value::Record { .. } | Value::Ints => Some("a tuple"),
            Value::Float(_) if of.starts_with(['i', 'u']) => Some("a float"),
            // One of a single element is a number.
            Value::Tensor(tensor) => {
                let elements = tensor.shape.as_deref().and_then(elements);
                elements.is_some_and(|elements| elements > 1).then_some("a tensor")
            }
            _ => None,
        }
    }
}

fn arg_faults(
    sources: &dyn Sources,
    site: Option<LaunchSite>,
    launch: &ObservedLaunch,
    binding: &Binding<'_>,
    grid: &Value,
) -> Vec<ArgFault> {
    let wrapped = binding.kernel.decorators.iter().any(|d| matches!(d, Decorator::Other(_)));
    let params = &binding.kernel.function.params;
    let open = params.iter().any(|p| matches!(p.kind, ParamKind::VarArgs | ParamKind::KwArgs));
    if wrapped || open || !launch.complete {
        return Vec::new();
    }
    let mut faults = Vec::new();
    let kernel = binding.kernel.at;
    let is_wrapped = is_wrapped(sources, site, kernel);
    let is_followed = is_wrapped
        && files_of(site, kernel).all(|file| is_wrapped_by_known_calls(sources, file, kernel));
    // The text alone shows how many there are without a star, where it shows of which kernel.
    let hides = |site: LaunchSite| {
        let is_unnamed = !launch.is_one_of && !site.names(sources, binding.kernel.at);
        is_unnamed || is_followed || site.spreads(sources)
    };
    if site.is_some_and(|site| hides(site) && !site.gives_by_choice(sources)) {
        let positional = launch.args.iter().filter(|(name, _)| name.is_none()).count();
        let takes = params.iter().filter(|param| param.kind.is_positional()).count();
        if positional > takes {
            faults.push(ArgFault::Surplus { given: positional });
        } else if let Some(repeated) = repeated(params, launch, positional) {
            faults.push(ArgFault::Repeated(repeated));
        } else if !is_wrapped || is_followed && binding.is_made_known {
            let is_told = |name: &&Name| {
                site.is_some_and(|site| {
                    site.names(sources, kernel) && site.gives_by_name(sources, name)
                })
            };
            let unknown = unknown(launch, params);
            let lacks = !binding.missing.is_empty() && !has_rest(launch);
            if lacks && (!is_wrapped || unknown.is_none()) {
                faults.push(ArgFault::Missing(binding.missing.clone()));
            } else if let Some(unknown) = unknown.filter(|name| !is_told(name)) {
                faults.push(ArgFault::Unknown(unknown.clone()));
            }
        }
    }
    let named = launch.args.iter().enumerate().filter_map(|(at, (name, value))| match name {
        Some(name) => Some((params.iter().find(|param| param.name == *name)?, value)),
        None => Some((params.get(at)?, value)),
    });
    faults.extend(named.filter_map(|(param, value)| match value {
        Value::Tensor(_) if binding.extents.contains(&&param.name) => {
            Some(ArgFault::TensorExtent(param.name.clone()))
        }
        Value::Tensor(_) if binding.numbers.contains(&&param.name) => {
            Some(ArgFault::TensorNumber(param.name.clone()))
        }
        Value::Tensor(Tensor { dtype: Some(dtype), .. })
            if is_complex(dtype) && !binding.constexpr.contains(&param.name) =>
        {
            Some(ArgFault::Elements(param.name.clone(), dtype.clone()))
        }
        Value::Raises(misuse) => Some(ArgFault::Misuse(param.name.clone(), misuse.clone())),
        value if let Some(what) = binding.no_number(&param.name, value) => {
            Some(ArgFault::NoNumber(param.name.clone(), what))
        }
        value if !binding.constexpr.contains(&param.name) => {
            Some(ArgFault::Untyped(param.name.clone(), untyped(value)?))
        }
        _ => None,
    }));
    let extents = grid.elements().unwrap_or_else(|| vec![grid.clone()]);
    let raised = extents.into_iter().find_map(|extent| match extent {
        Value::Raises(misuse) => Some(misuse),
        _ => None,
    });
    faults.extend(raised.map(ArgFault::GridMisuse));
    faults.extend(computed_warps(sources, site, (launch, kernel)).map(ArgFault::Warps));
    faults
}

/// What a value is that has no type at run time (`native_specialize_impl` of Triton refuses it).
fn untyped(value: &Value) -> Option<&'static str> {
    match value {
        Value::Str(_) => Some("a string"),
        Value::DType(_) | Value::TorchDType(_) => Some("a dtype"),
        Value::List(_) => Some("a list"),
        Value::Dict(_) => Some("a dict"),
        _ => None,
    }
}

/// Whether a dict of which not everything is known gives arguments.
fn has_rest(launch: &ObservedLaunch) -> bool {
    launch.args.iter().any(|(name, _)| name.as_deref() == Some(REST))
}

/// The name of an argument that is for none of the parameters: it may be meant for one that lacks its own.
fn unknown<'l>(launch: &'l ObservedLaunch, params: &[Param]) -> Option<&'l Name> {
    let is_known = |name: &Name| {
        params.iter().any(|param| param.name == *name)
            || LAUNCH_OPTIONS.contains(&&**name)
            || **name == *REST
    };
    launch.args.iter().filter_map(|(name, _)| name.as_ref()).find(|name| !is_known(name))
}

/// Whether what is launched may be what a call made of the kernel.
fn is_wrapped(sources: &dyn Sources, site: Option<LaunchSite>, kernel: ItemRef) -> bool {
    files_of(site, kernel).any(|file| is_wrapped_by_call(sources, file, kernel))
}

/// The files in which something may be made of a kernel that is launched.
fn files_of(site: Option<LaunchSite>, kernel: ItemRef) -> impl Iterator<Item = FileId> {
    site.map(|site| site.file).into_iter().chain([kernel.file])
}

/// The `num_warps` of a launch where host code computes it and it is no power of two: what is
/// written as a number is looked at where it stands, if what stands there names the kernel.
fn computed_warps(
    sources: &dyn Sources,
    site: Option<LaunchSite>,
    (launch, kernel): (&ObservedLaunch, ItemRef),
) -> Option<i128> {
    let option = |(name, value): &(Option<Name>, Value)| match value {
        Value::Int(Some(warps)) if name.as_deref() == Some(WARPS) => Some(*warps),
        _ => None,
    };
    let warps = launch.args.iter().find_map(option)?;
    // Where the launch does not name it, it comes from a dict.
    let site = site?;
    let is_written = site.is_number(sources, WARPS).unwrap_or(false) && site.names(sources, kernel);
    (!is_written && no_power_of_two(WARPS, warps).is_some()).then_some(warps)
}

/// The first of so many parameters given by position that is given by name as well.
fn repeated(params: &[Param], launch: &ObservedLaunch, positional: usize) -> Option<Name> {
    let by_name: Vec<&Name> = launch.args.iter().filter_map(|(name, _)| name.as_ref()).collect();
    let is_by_position = |name: &Name| {
        let mut params = params.iter().filter(|param| param.kind.is_positional());
        params.position(|param| param.name == *name).is_some_and(|at| at < positional)
    };
    let mut named = by_name.iter().enumerate();
    let again = |(at, name): &(usize, &&Name)| {
        is_by_position(name) || (&****name != REST && by_name[..*at].contains(*name))
    };
    named.find(again).map(|(_, name)| Name::clone(name))
}

fn extents(grid: &Value) -> Option<[u32; 3]> {
    let given = match grid {
        Value::Int(_) => vec![grid.clone()],
        grid => grid.elements()?,
    };
    let mut extents = [1; 3];
    if given.is_empty() {
        return None;
    }
    // Triton ignores what comes after the third extent.
    for (axis, extent) in given.iter().take(extents.len()).enumerate() {
        let Value::Int(Some(extent)) = extent else { return None };
        let fits = (1..=i128::from(MAX_GRID[axis])).contains(extent);
        extents[axis] = u32::try_from(*extent).ok().filter(|_| fits)?;
    }
    Some(extents)
}

fn least_grid(grid: &Value) -> [u32; 3] {
    let mut least = [1; 3];
    let given = grid.elements().unwrap_or_default();
    for ((least, extent), most) in least.iter_mut().zip(given).zip(MAX_GRID) {
        if let Value::Int(Some(extent)) = extent {
            *least = u32::try_from(extent).ok().filter(|it| (1..=most).contains(it)).unwrap_or(1);
        }
    }
    least
}

fn open_axes(grid: &Value) -> [bool; 3] {
    let mut open = [false; 3];
    let given = grid.elements().unwrap_or_default();
    for (open, extent) in open.iter_mut().zip(given) {
        *open = matches!(extent, Value::Int(None) | Value::Unknown);
    }
    open
}

fn grid_fault(grid: &Value, origin: Origin) -> Option<GridFault> {
    if matches!(grid, Value::Int(_) | Value::Float(_)) {
        // Scenarios take a number for a grid of one axis.
        return (origin != Origin::Scenario).then_some(GridFault::Number);
    }
    let extents = grid.elements()?;
    extents.iter().take(3).enumerate().find_map(|(axis, extent)| match extent {
        Value::Float(_) => Some(GridFault::Fraction { axis }),
        Value::Str(_)
        | Value::None
        | Value::Tuple(_)
        | Value::List(_)
        | Value::Callable(Callable::Lambda { .. } | Callable::Closure { .. }) => {
            Some(GridFault::Other { axis })
        }
        Value::Int(Some(extent)) if *extent < 1 => Some(GridFault::Empty { axis }),
        Value::Int(Some(extent)) if *extent > i128::from(MAX_GRID[axis]) => {
            Some(GridFault::TooLarge { axis, extent: *extent, most: MAX_GRID[axis].into() })
        }
        _ => None,
    })
}

fn note_arg(name: &Name, spec: &ArgSpec, value: &Value, known: &mut Vec<(Name, KnownArg)>) {
    match (spec, value) {
        (ArgSpec::Tuple(tuple), Value::Tuple(items) | Value::Record { items, .. }) => {
            for (index, (spec, item)) in tuple.items.iter().zip(items).enumerate() {
                note_arg(&Arc::from(format!("{name}.{index}")), spec, item, known);
            }
        }
        (ArgSpec::Runtime { .. }, Value::Int(Some(value))) => {
            known.push((name.clone(), KnownArg::Int(*value)));
        }
        (ArgSpec::Runtime { .. }, Value::Bool(Some(value))) => {
            known.push((name.clone(), KnownArg::Int(i128::from(*value))));
        }
        (ArgSpec::Runtime { .. }, Value::Float(Some(value))) => {
            known.push((name.clone(), KnownArg::Float(value.to_bits())));
        }
        (ArgSpec::Runtime { signature, .. }, Value::Tensor(tensor)) => {
            if let Some(buffer) = buffer(signature, tensor) {
                known.push((name.clone(), KnownArg::Buffer(buffer)));
            }
        }
        (ArgSpec::Runtime { signature, .. }, Value::Descriptor(descriptor)) => {
            note_descriptor(name, signature, &descriptor.tensor, known);
        }
        _ => {}
    }
}

/// A descriptor is a base, extents and strides by themselves in the IR.
fn note_descriptor(
    name: &Name,
    signature: &str,
    tensor: &Tensor,
    known: &mut Vec<(Name, KnownArg)>,
) {
    let element = signature.strip_prefix("tensordesc<").and_then(|text| text.split_once('['));
    let Some((element, _)) = element else { return };
    if let Some(buffer) = buffer(&format!("*{element}"), tensor) {
        known.push((Arc::from(format!("{name}.base")), KnownArg::Buffer(buffer)));
    }
    let parts = [("shape", tensor.shape.clone()), ("stride", host::strides(tensor))];
    for (part, values) in parts {
        for (axis, value) in values.unwrap_or_default().into_iter().enumerate() {
            if let Value::Int(Some(value)) = value {
                let name = Arc::from(format!("{name}.{part}.{axis}"));
                known.push((name, KnownArg::Int(value)));
            }
        }
    }
}

/// Whether a conversion has made a tensor.
fn is_converted(value: &Value) -> bool {
    match value {
        Value::Tensor(tensor) => tensor.storage.as_ref().is_some_and(|it| it.is_converted),
        _ => false,
    }
}

/// The buffer behind a tensor whose elements are of the parameter's type.
fn buffer(signature: &str, tensor: &Tensor) -> Option<KnownBuffer> {
    let element = signature.strip_prefix('*')?.trim_start_matches('k');
    let Storage { id, elements, before, contents, .. } = tensor.storage.as_deref().cloned()?;
    let sizes = contiguous(tensor);
    let is_expanded = host::is_expanded(tensor);
    let buffer =
        KnownBuffer { id, elements, before, sizes, contents, is_expanded, converted: None };
    (tensor.dtype.as_deref() == Some(element)).then_some(buffer)
}

/// The sizes of a contiguous tensor of at least one dimension.
fn contiguous(tensor: &Tensor) -> Option<Vec<i128>> {
    let numbers = |values: Vec<Value>| -> Option<Vec<i128>> {
        let number = |value| match value {
            Value::Int(number) => number,
            _ => None,
        };
        values.into_iter().map(number).collect()
    };
    let shape = numbers(tensor.shape.clone()?).filter(|shape| !shape.is_empty())?;
    host::is_contiguous(tensor)?.then_some(shape)
}
