//! What a worker does for a run: the scenarios of a file, or one launch that flags describe.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;
use tile_codegen::Target;
use tile_compiler::analysis::check_launches;
use tile_compiler::diagnostic::Code;
use tile_compiler::hir::{Expr, Module, Name, Scenario, pretty};
use tile_compiler::ir::Function;
use tile_compiler::project::{self, ItemRef, Resolution, Scope};
use tile_compiler::specialization::{
    ArgSpec, ConstArg, Passed, Specialization, TupleNames, annotated, discover, heuristics,
    parse_value, tuning,
};
use tile_runner::launch::{CompiledKernel, KernelCompiler, Session, SessionOptions};
use tile_runner::report::{BenchResult, RunResult};
use tile_runner::scenario::{
    self, KernelInfo, KernelParam, LaunchFailure, Outcome, ScenarioError, ScenarioOptions, Value,
};
use tile_worker::protocol::{Body, Failure, FailureKind, RunRequest};

use crate::analysis::{Opened, check_flags, no_such_kernel};
use crate::failure::{codegen_failure, command_failure, launch_failure, usage};
use crate::{render, workspace};

pub(crate) mod as_launched;
mod auto;
pub(crate) mod device;
pub(crate) mod text;

/// How long one launch may take.
const LAUNCH_DEADLINE: Duration = Duration::from_secs(240);

/// Runs what the request asks for and reports each scenario as it ends.
pub(crate) fn run(request: &RunRequest, report: &mut dyn FnMut(Body)) -> Result<(), Failure> {
    let text = match &request.text {
        Some(text) => text.clone(),
        None => workspace::read(&request.path).map_err(|error| usage(error.message))?,
    };
    let written = open(request, text)?;
    let request = completed(request, &written, report)?;
    let as_launched = as_launched::requests(&request, &written, report);
    if as_launched.is_empty() {
        return run_scenarios(&request, &written, report);
    }
    as_launched.iter().try_for_each(|request| run_scenarios(request, &written, report))
}

/// Runs scenarios of the file, or the one that flags describe.
fn run_scenarios(
    request: &RunRequest,
    written: &Opened,
    report: &mut dyn FnMut(Body),
) -> Result<(), Failure> {
    check_flags(&written.workspace, kernels(request, written), &written.options)
        .map_err(command_failure)?;
    let edited = text::with_arguments(request, written)?;
    let opened = open(request, edited.text.clone())?;
    let module = opened.module();
    let scenarios = match edited.own(&module) {
        Some(scenario) => vec![scenario],
        None => {
            refuse_tuned_arguments(request, written)?;
            chosen(request, &opened, &module)?
        }
    };
    for scenario in scenarios {
        report(Body::Result(run_scenario(request, (&opened, &edited), &module, scenario)?));
    }
    Ok(())
}

/// Refuses scenarios that give what the tuner sets, as Triton does. Flags may give it: they try one
/// configuration.
fn refuse_tuned_arguments(request: &RunRequest, opened: &Opened) -> Result<(), Failure> {
    let module = opened.module();
    let asked = |scenario: &&Scenario| match &request.kernel {
        Some(kernel) => launches(&module, scenario, kernel),
        None => true,
    };
    let asked = module.scenarios.iter().filter(asked).enumerate();
    let asked = asked.filter(|(index, _)| request.scenario.is_none_or(|number| number == *index));
    let asked: Vec<&Scenario> = asked.map(|(_, scenario)| scenario).collect();
    let found = check_launches(&opened.workspace, opened.file).into_iter().find(|finding| {
        finding.code == Code::TunedArgument
            && asked.iter().any(|scenario| scenario.range.contains_range(finding.primary.range))
    });
    let Some(found) = found else { return Ok(()) };
    let line = render::Files::lines(&opened.workspace.table(), opened.file)
        .line(found.primary.range.start)
        + 1;
    Err(usage(format!("{}:{line}: {}", opened.name(), found.message)))
}

/// The kernels that may be run.
fn kernels(request: &RunRequest, opened: &Opened) -> Vec<ItemRef> {
    match &request.kernel {
        Some(name) => opened.jit_function(name).into_iter().collect(),
        None => project::jit_functions(&opened.workspace, opened.file),
    }
}

/// The request with its only possible kernel named, and with `--arg auto` spelled out.
fn completed(
    request: &RunRequest,
    opened: &Opened,
    report: &mut dyn FnMut(Body),
) -> Result<RunRequest, Failure> {
    let mut request = request.clone();
    let names = opened.kernel_names();
    let describes = !request.args.is_empty() || request.grid.is_some();
    if let ([only], None, true) = (&names[..], &request.kernel, describes) {
        request.kernel = Some(only.clone());
    }
    if request.args.iter().any(|(name, text)| name == "auto" && text.is_empty()) {
        let Some(kernel) = request.kernel.clone() else {
            return Err(usage("--arg auto needs one kernel: FILE::KERNEL"));
        };
        request.args.retain(|(_, text)| !text.is_empty());
        let module = opened.module();
        if module.scenarios.iter().any(|scenario| launches(&module, scenario, &kernel)) {
            let kept = format!("{kernel} has a scenario, so --arg auto has nothing to choose");
            report(Body::Progress(kept));
            return Ok(request);
        }
        let (args, grid) = auto::complete(&request, opened, &kernel)?;
        (request.args, request.grid) = (args, Some(grid));
        let chosen = auto::describe(&kernel, &request);
        report(Body::Progress(format!("--arg auto chose {chosen}")));
    }
    Ok(request)
}

fn open(request: &RunRequest, text: String) -> Result<Opened, Failure> {
    Opened::with_text(&request.path, Some(text), &request.spec).map_err(command_failure)
}

/// The scenarios that the request means; never empty.
fn chosen<'m>(
    request: &RunRequest,
    opened: &Opened,
    module: &'m Module,
) -> Result<Vec<&'m Scenario>, Failure> {
    let Some(kernel) = request.kernel.as_deref() else {
        let all: Vec<&Scenario> = module.scenarios.iter().collect();
        opened.well_formed().map_err(command_failure)?;
        return if all.is_empty() {
            Err(usage(format!(
                "{} has no scenarios, nor a launch in host code that is known in full; {HOW}",
                opened.name()
            )))
        } else {
            Ok(all)
        };
    };
    opened.named(kernel).map_err(command_failure)?;
    let own: Vec<&Scenario> =
        module.scenarios.iter().filter(|scenario| launches(module, scenario, kernel)).collect();
    match request.scenario {
        None if own.is_empty() => Err(usage(format!(
            "{kernel} has no scenario, nor a launch in host code that is known in full; {HOW}"
        ))),
        None => Ok(own),
        Some(number) => match own.get(number) {
            Some(scenario) => Ok(vec![scenario]),
            None => Err(usage(format!(
                "{kernel} has no scenario #{}; it has {}",
                number + 1,
                own.len()
            ))),
        },
    }
}

/// How to run a kernel without a scenario.
const HOW: &str = "give every argument with --arg NAME=EXPR and the grid with --grid EXPR, or \
                   write `# tile:` lines below the kernel";

/// Whether a scenario belongs to a kernel: its first launch is of that kernel.
pub(crate) fn launches(module: &Module, scenario: &Scenario, kernel: &str) -> bool {
    let mut inside =
        module.launches.iter().filter(|launch| scenario.range.contains_range(launch.range));
    inside.any(
        |launch| matches!(&launch.body.exprs[launch.kernel], Expr::Name(name) if &**name == kernel),
    )
}

fn run_scenario(
    request: &RunRequest,
    (opened, edited): (&Opened, &text::Edited),
    module: &Module,
    scenario: &Scenario,
) -> Result<Json, Failure> {
    let folder = request.path.parent().unwrap_or(Path::new("")).to_owned();
    let mut options = ScenarioOptions {
        folder,
        num_warps: request.spec.num_warps,
        num_stages: request.spec.num_stages,
        ..ScenarioOptions::default()
    };
    for (name, text) in &request.spec.values {
        let value = parse_value(text).map_err(usage)?;
        options.arguments.push((name.clone(), Value::from(&value)));
    }
    let mut device = device::open(request.device)?;
    let own = device.arch();
    if let Some(arch) = request.spec.arch.as_deref().or(own.as_deref()) {
        opened.workspace.lower_for(arch);
    }
    let mut compiler = FrontEnd { opened, request };
    let session_options = SessionOptions {
        sanitize: request.sanitize,
        bench: request.bench,
        deadline: Some(LAUNCH_DEADLINE),
    };
    let mut session = Session::new(&mut compiler, &mut *device, session_options);
    let outcome = scenario::run(module, scenario, &mut session, &options)
        .map_err(|error| scenario_failure(opened, edited, &error))?;
    save(request, &outcome)?;
    result(opened, &session, &outcome)
}

/// The result of a scenario: that of `tile run`, with that of `tile bench` when it was timed.
fn result(opened: &Opened, session: &Session<'_>, outcome: &Outcome) -> Result<Json, Failure> {
    let device = session.device_name();
    let lines = opened.workspace.table();
    let run = RunResult::new(
        &device,
        session.records(),
        outcome,
        render::Files::lines(&lines, opened.file),
    );
    let mut object = serde_json::to_value(run).map_err(internal)?;
    let timed = session.records().iter().find_map(|record| {
        BenchResult::new(&device, record, session.device().resources(record.id), None)
    });
    if let Some(timed) = timed {
        let timed = serde_json::to_value(timed).map_err(internal)?;
        object["bench"] = timed["ms"].clone();
        for key in ["specialization", "registers", "shared_bytes"] {
            object[key] = timed[key].clone();
        }
    }
    Ok(object)
}

/// Writes the tensors that were asked for.
fn save(request: &RunRequest, outcome: &Outcome) -> Result<(), Failure> {
    for (name, path) in &request.save {
        let array = match outcome.variables.get(name) {
            Some(Value::Tensor(tensor)) => outcome.store.read(tensor),
            Some(Value::Array(array)) => (**array).clone(),
            _ => match outcome.tensors().find(|(known, _)| known == name) {
                Some((_, tensor)) => outcome.store.read(tensor),
                None => return Err(no_such_tensor(name, outcome)),
            },
        };
        scenario::save_npy(path, &array).map_err(usage)?;
    }
    Ok(())
}

fn no_such_tensor(name: &str, outcome: &Outcome) -> Failure {
    let mut names: Vec<&str> = outcome.tensors().map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    let names = names.join(", ");
    usage(format!("--save {name}: the scenario has no such tensor; its tensors are {names}"))
}

/// Compiles kernels of the file for the runner.
struct FrontEnd<'a> {
    opened: &'a Opened,
    request: &'a RunRequest,
}

impl KernelCompiler for FrontEnd<'_> {
    fn kernel(&mut self, name: &str) -> Result<KernelInfo, LaunchFailure> {
        let Some(at) = self.opened.jit_function(name) else {
            let names = self.opened.kernel_names();
            return Err(LaunchFailure::Usage(no_such_kernel(name, &names)));
        };
        kernel_info(self.opened, at)
            .ok_or_else(|| LaunchFailure::Usage(format!("{name} cannot be launched")))
    }

    fn heuristics(&mut self, kernel: &str, args: &[(Name, Value)]) -> Vec<(Name, Value)> {
        let Some(at) = self.opened.jit_function(kernel) else { return Vec::new() };
        let passed = args.iter().filter_map(|(name, value)| Some((name.clone(), passed(value)?)));
        let passed: Vec<(Name, Passed)> = passed.collect();
        let set = heuristics(&self.opened.workspace, at, &passed);
        set.into_iter().map(|(name, value)| (name, Value::from(&value))).collect()
    }

    fn record(&mut self, name: &str) -> Option<Arc<TupleNames>> {
        let sources = &self.opened.workspace;
        let scope = Scope { file: self.opened.file, path: &[] };
        let Resolution::Class(at) = project::resolve(sources, scope, name) else { return None };
        let class = project::class(sources, at)?;
        let fields = project::named_tuple_fields(&class)?;
        let fields = fields.into_iter().map(|(name, ..)| name).collect();
        Some(Arc::new(TupleNames { class: class.name.clone(), fields }))
    }

    fn tile_ir(&mut self, kernel: &str, spec: &Specialization) -> Result<Function, LaunchFailure> {
        let Some(at) = self.opened.jit_function(kernel) else {
            let names = self.opened.kernel_names();
            return Err(LaunchFailure::Usage(no_such_kernel(kernel, &names)));
        };
        self.opened.lower_as(at, spec).map_err(|diagnostics| {
            let files = self.opened.workspace.table();
            let shown = diagnostics.iter().map(|found| render::human(&files, found, false));
            let shown = shown.collect::<Vec<_>>().join("\n\n");
            LaunchFailure::Compile(format!("`{kernel}` does not compile\n\n{shown}"))
        })
    }

    fn cubin(&mut self, function: &Function, arch: &str) -> Result<CompiledKernel, LaunchFailure> {
        let arch = self.request.spec.arch.as_deref().unwrap_or(arch);
        let failed = |error: tile_codegen::CodegenError| {
            let failure = codegen_failure(error);
            match failure.kind {
                FailureKind::Compile => LaunchFailure::Compile(failure.message),
                FailureKind::Usage => LaunchFailure::Usage(failure.message),
                FailureKind::Device | FailureKind::Internal => {
                    LaunchFailure::Device(failure.message)
                }
            }
        };
        let target: Target = arch.parse().map_err(failed)?;
        let options =
            tile_codegen::Options { ptxas: self.request.ptxas.clone(), ..Default::default() };
        let artifact = tile_codegen::compile(function, target, &options).map_err(failed)?;
        let cubin =
            artifact.cubin.ok_or_else(|| LaunchFailure::Device(tile_worker::ptxas::missing()))?;
        let (manifest, resources) = (artifact.manifest, artifact.resources);
        Ok(CompiledKernel { cubin, manifest, resources })
    }
}

/// Parameters and defaults of a kernel: what autotuning, heuristics and signatures say.
fn kernel_info(opened: &Opened, at: ItemRef) -> Option<KernelInfo> {
    let kernel = project::kernel(&opened.workspace, at)?;
    let tuning = tuning(&opened.workspace, &kernel);
    let annotated = annotated(&opened.workspace, &kernel);
    let found = discover(&opened.workspace, at, &opened.options.flags).into_iter().next();
    // What was assumed is nothing that a launch may leave out.
    let known = |name: &str| match found.as_ref()?.args.get_key_value(name)? {
        (name, ArgSpec::Constexpr(value)) if !found.as_ref()?.assumed.contains(name) => {
            Some(Value::from(value))
        }
        _ => None,
    };
    let config = found.as_ref().and_then(|spec| tuning.configs.get(spec.config.as_ref()?.position));
    let configured = |name: &str| config?.value(name).map(Value::from);
    let function = &kernel.function;
    let params = function.params.iter().map(|param| {
        let text = |id| pretty::expr(&function.body, id);
        let constexpr = annotated.constexpr.contains(&param.name);
        let default = param.default.and_then(|id| parse_value(&text(id)).ok());
        let shown = if constexpr { known(&param.name) } else { configured(&param.name) };
        let default = shown.or_else(|| default.map(|value| Value::from(&value)));
        KernelParam {
            name: param.name.clone(),
            constexpr,
            annotation: annotated.types.get(&param.name).cloned(),
            specialize: tuning.specializes_on_value(&param.name),
            specialize_alignment: tuning.specializes_on_alignment(&param.name),
            default,
            computed: tuning.heuristics.contains(&param.name),
        }
    });
    let params = params.collect();
    Some(KernelInfo { params, options: found.map(|spec| spec.options).unwrap_or_default() })
}

/// An argument as heuristics see it; `None` for what they can do nothing with.
fn passed(value: &Value) -> Option<Passed> {
    let value = match value {
        Value::None => ConstArg::None,
        Value::Bool(value) => ConstArg::Bool(*value),
        Value::Int(value) => ConstArg::Int(*value),
        Value::Float(value) => ConstArg::Float(value.to_bits()),
        Value::Str(text) => ConstArg::Str(text.clone()),
        Value::DType(dtype) => ConstArg::DType(dtype.name().into()),
        Value::Tensor(tensor) => {
            let layout = &tensor.layout;
            return Some(Passed::Tensor {
                dtype: tensor.dtype.name().into(),
                shape: layout.shape.iter().map(|&size| size as i128).collect(),
                strides: layout.strides.iter().map(|&stride| stride as i128).collect(),
            });
        }
        _ => return None,
    };
    Some(Passed::Value(value))
}

fn scenario_failure(opened: &Opened, edited: &text::Edited, error: &ScenarioError) -> Failure {
    match (&error.launch, edited.flag_at(error.at)) {
        (Some(failure), _) => launch_failure(failure.clone()),
        // What flags give stands in no file.
        (None, Some(flag)) => usage(format!("{flag}: {}", error.message)),
        (None, None) => {
            let files = opened.workspace.table();
            let line = render::Files::lines(&files, opened.file).line(error.at.start) + 1;
            usage(format!("{}:{line}: {}", opened.name(), error.message))
        }
    }
}

fn internal(error: impl std::fmt::Display) -> Failure {
    Failure::new(FailureKind::Internal, error.to_string())
}
