//! `tile info`.

use std::time::Instant;

use comfy_table::{Table, presets};
use indexmap::IndexSet;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tile_compiler::artifact::{Artifact, Keep};
use tile_compiler::diagnostic::Diagnostic;
use tile_compiler::specialization::{
    ArgSpec, ConstArg, Origin, Previewed, Specialization, preview,
};

use tile_worker::protocol::Residency;

use crate::analysis::{self, Opened, Selected};
use crate::cli::{Format, InfoArgs};
use crate::{CommandError, Exit, output};

/// What one kernel under one specialization takes.
#[derive(Debug, Serialize)]
struct Info {
    kernel: String,
    specialization: Map<String, Value>,
    /// What each parameter is compiled for, and what compiles anew.
    specialized_on: Map<String, Value>,
    origin: Origin,
    arch: String,
    registers: u32,
    shared_bytes: u32,
    spill_load_bytes: u32,
    spill_store_bytes: u32,
    stack_bytes: u32,
    /// From what the assembler reports and the architecture's published limits.
    occupancy: f64,
    limited_by: &'static str,
    /// What the driver of the device says, where there is one of this architecture.
    driver_occupancy: Option<Residency>,
    ptx_bytes: usize,
    ms: Milliseconds,
    source: String,
}

/// Time spent per stage.
#[derive(Debug, Serialize)]
struct Milliseconds {
    front: f64,
    passes: f64,
    llvm: f64,
    ptxas: f64,
}

/// Compiles every kernel that is meant under each of its specializations.
pub(crate) fn run(arguments: &InfoArgs) -> Result<Exit, CommandError> {
    let flags = arguments.spec.flags();
    let opened = Opened::new(&arguments.target, &arguments.input, &flags)?;
    let kernels = opened.select_all(arguments.target.kernel.as_deref())?;
    let compiler = opened.compiler()?;
    compiler.needs_assembler()?;
    let (mut infos, mut artifacts) = (Vec::new(), Vec::new());
    let (mut failed, mut unknown) = (false, false);
    let mut told = IndexSet::new();
    for selected in kernels {
        let start = Instant::now();
        let function = match opened.lower(&selected) {
            Ok(function) => function,
            // What is assumed proves nothing about the kernel.
            Err(diagnostics) if !selected.spec.assumed.is_empty() => {
                if told.insert(selected.name.clone()) {
                    assumed_wrongly(&opened, &selected, &diagnostics);
                }
                unknown = true;
                continue;
            }
            Err(diagnostics) => {
                failed = true;
                analysis::print_to_stderr(&opened.workspace, &diagnostics)?;
                continue;
            }
        };
        let front = start.elapsed().as_secs_f64() * 1e3;
        match compiler.compile(&function, Keep::default()) {
            Ok(artifact) => {
                infos.push(Info {
                    specialized_on: specialized_on(&opened, &selected),
                    ..info(&selected.name, &selected.spec, &artifact, front)
                });
                artifacts.push(artifact);
            }
            Err(error) if error.exit == Exit::Compile => {
                let spec = &selected.spec;
                let label = label(&specialization(spec));
                let message = format!("{} for {}: {}", selected.name, label.trim(), error.message);
                // Tuning passes over what does not fit, and what is assumed proves nothing.
                if spec.origin == Origin::Autotune || !spec.assumed.is_empty() {
                    unknown = true;
                    output::note(&message);
                } else {
                    failed = true;
                    output::error(&message);
                }
            }
            Err(error) => return Err(error),
        }
    }
    failed |= unknown && infos.is_empty();
    // Of all kernels at once: opening a device takes longer than asking.
    let residency = compiler.residency(artifacts)?.unwrap_or_default();
    for (info, residency) in infos.iter_mut().zip(residency) {
        info.driver_occupancy = Some(residency);
    }
    match arguments.format {
        Format::Json => infos.iter().try_for_each(output::json)?,
        Format::Human => print(&infos)?,
    }
    Ok(if failed { Exit::Compile } else { Exit::Success })
}

/// Says that a kernel does not compile for what had to be assumed of its arguments.
fn assumed_wrongly(opened: &Opened, selected: &Selected, diagnostics: &[Diagnostic]) {
    let assumed: Vec<String> =
        selected.spec.assumed.iter().map(|name| format!("`{name}`")).collect();
    let why = diagnostics.first().map_or_else(String::new, |found| {
        let file = opened.workspace.file(found.primary.file);
        let line = file.map_or(0, |file| file.lines().line(found.primary.range.start) + 1);
        format!(" (line {line}: {})", found.message)
    });
    output::note(&format!(
        "{} was not compiled: nothing shows {}, and what is assumed of them does not fit{why}; \
         give them with --type, --set or a scenario",
        selected.name,
        assumed.join(", "),
    ));
}

/// A table of all, then what the parameters of each kernel are compiled for.
fn print(infos: &[Info]) -> Result<(), CommandError> {
    if infos.is_empty() {
        return Ok(());
    }
    output::text_line(&table(infos).to_string())?;
    for kernel in infos.chunk_by(|a, b| a.kernel == b.kernel) {
        output::text_line(&format!("\n{} is compiled for", kernel[0].kernel))?;
        for name in kernel[0].specialized_on.keys() {
            output::text_line(&parameter_line(name, kernel))?;
        }
    }
    Ok(())
}

fn info(kernel: &str, spec: &Specialization, artifact: &Artifact, front: f64) -> Info {
    let resources = artifact.resources.as_ref();
    let number = |of: fn(&tile_compiler::artifact::Resources) -> u32| resources.map_or(0, of);
    Info {
        kernel: kernel.to_owned(),
        specialization: specialization(spec),
        specialized_on: Map::new(),
        origin: spec.origin,
        arch: artifact.manifest.arch.clone(),
        registers: number(|r| r.registers),
        shared_bytes: number(|r| r.shared_bytes),
        spill_load_bytes: number(|r| r.spill_load_bytes),
        spill_store_bytes: number(|r| r.spill_store_bytes),
        stack_bytes: number(|r| r.stack_bytes),
        occupancy: resources.map_or(0.0, |r| r.occupancy),
        limited_by: resources.map_or("", |r| r.limited_by.name()),
        driver_occupancy: None,
        ptx_bytes: artifact.ptx.len(),
        ms: Milliseconds {
            front,
            passes: artifact.timings.passes,
            llvm: artifact.timings.llvm,
            ptxas: artifact.timings.ptxas,
        },
        source: resources.map_or_else(String::new, |r| r.source.clone()),
    }
}

/// What each parameter is compiled for, by name.
fn specialized_on(opened: &Opened, selected: &Selected) -> Map<String, Value> {
    let Some(at) = opened.jit_function(&selected.name) else { return Map::new() };
    let parameters = preview(&opened.workspace, at, &selected.spec).into_iter();
    parameters
        .map(|Previewed { name, known, anew, assumed }| {
            (name.to_string(), json!({ "known": known, "anew": anew, "assumed": assumed }))
        })
        .collect()
}

/// `  n: int32; a value equal to 1, or beyond 32 bits compiles anew`: what a parameter is compiled for
/// in the specializations of one kernel, each way once.
fn parameter_line(name: &str, infos: &[Info]) -> String {
    let known = infos.iter().filter_map(|info| {
        let parameter = info.specialized_on.get(name)?;
        let assumed = if parameter["assumed"] == true { " (assumed)" } else { "" };
        Some(format!("{}{assumed}", parameter["known"].as_str()?))
    });
    let known: IndexSet<String> = known.collect();
    let known = known.into_iter().collect::<Vec<_>>().join(" | ");
    let anew = infos[0].specialized_on.get(name).and_then(|parameter| parameter["anew"].as_str());
    let anew = anew.map(|anew| format!("; {anew} compiles anew")).unwrap_or_default();
    format!("  {name}: {known}{anew}")
}

/// A specialization as data: parameters by name, and the launch options.
pub(crate) fn specialization(spec: &Specialization) -> Map<String, Value> {
    let mut map = Map::new();
    for (name, arg) in &spec.args {
        map.insert(name.to_string(), argument(arg));
    }
    map.insert("num_warps".to_owned(), spec.options.num_warps.into());
    map.insert("num_stages".to_owned(), spec.options.num_stages.into());
    map
}

fn argument(arg: &ArgSpec) -> Value {
    match arg {
        ArgSpec::Constexpr(constant) => constant_value(constant),
        ArgSpec::Tuple(tuple) => tuple.items.iter().map(argument).collect(),
        ArgSpec::Runtime { .. } => arg.to_string().into(),
    }
}

fn constant_value(constant: &ConstArg) -> Value {
    match constant {
        ConstArg::None => Value::Null,
        ConstArg::Bool(value) => (*value).into(),
        ConstArg::Int(value) => match i64::try_from(*value) {
            Ok(value) => value.into(),
            Err(_) => value.to_string().into(),
        },
        ConstArg::Float(bits) => f64::from_bits(*bits).into(),
        ConstArg::Str(text) => text.to_string().into(),
        ConstArg::Tuple(items) => items.iter().map(constant_value).collect(),
        ConstArg::DType(_)
        | ConstArg::TorchDType(_)
        | ConstArg::Function(_)
        | ConstArg::Member(_) => constant.to_string().into(),
    }
}

fn table(infos: &[Info]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header([
        "kernel",
        "for",
        "from",
        "registers",
        "shared",
        "spills",
        "occupancy",
        "limited by",
        "PTX",
        "ms",
    ]);
    for info in infos {
        let ms = &info.ms;
        table.add_row([
            info.kernel.clone(),
            label(&info.specialization),
            format!("{:?}", info.origin).to_lowercase(),
            info.registers.to_string(),
            format!("{} B", info.shared_bytes),
            format!("{} B", info.spill_load_bytes + info.spill_store_bytes),
            occupancy(info),
            info.limited_by.to_owned(),
            format!("{} B", info.ptx_bytes),
            format!("{:.1}", ms.front + ms.passes + ms.llvm + ms.ptxas),
        ]);
    }
    if let Some(first) = infos.first() {
        let shown = format!("({}, {})", first.arch, first.source);
        table.add_row([shown]);
        if let Some(driver) = &first.driver_occupancy {
            table.add_row([format!("(driver: {} of {})", driver.source, driver.device)]);
        }
    }
    table
}

/// The occupancy from published limits, and that of the driver: `0.50 (driver 0.50)`.
fn occupancy(info: &Info) -> String {
    match &info.driver_occupancy {
        Some(driver) => format!("{:.2} (driver {:.2})", info.occupancy, driver.occupancy),
        None => format!("{:.2}", info.occupancy),
    }
}

/// Types of pointers, each once, then `NAME=VALUE` of constants and options.
pub(crate) fn label(specialization: &Map<String, Value>) -> String {
    let (mut types, mut constants): (Vec<&str>, Vec<String>) = Default::default();
    for (name, value) in specialization {
        match value {
            Value::String(text) if text.starts_with('*') => {
                let ty = text.split(':').next().unwrap_or(text);
                if !types.contains(&ty) {
                    types.push(ty);
                }
            }
            Value::String(text) if is_scalar_type(text) => {}
            Value::String(text) => constants.push(format!("{name}={text}")),
            value => constants.push(format!("{name}={value}")),
        }
    }
    format!("{} {}", types.join(", "), constants.join(" "))
}

/// Whether this is a scalar argument's type, such as `i32:16` or `fp32`.
fn is_scalar_type(text: &str) -> bool {
    let name = text.split(':').next().unwrap_or(text);
    let bits = ["i", "u", "fp", "bf"].iter().find_map(|kind| name.strip_prefix(kind));
    bits.is_some_and(|bits| bits.parse::<u32>().is_ok())
}
