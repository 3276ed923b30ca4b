//! `tile compare`: the same specializations through an installed Triton, side by side.
//!
//! This is the one command that runs Python, and with it the file's own top level: Triton compiles
//! functions that Python has defined.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use comfy_table::{Table, presets};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tile_compiler::artifact::{Keep, Resources};
use tile_compiler::specialization::{ArgSpec, ConstArg};
use tile_worker::protocol::AssembleRequest;

use crate::analysis::{self, Opened, Selected};
use crate::cli::{CompareArgs, Format, InputArgs};
use crate::compile::{Compiler, worker_error};
use crate::info::specialization;
use crate::{CommandError, Exit, output};

/// The program that drives Triton.
const DRIVER: &str = include_str!("compare.py");

/// One compiler's result.
#[derive(Debug, Serialize)]
struct Side {
    compiler: String,
    registers: u32,
    shared_bytes: u32,
    spill_bytes: u32,
    occupancy: f64,
    ptx_bytes: usize,
    ms: f64,
}

/// What the driver answers.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Answer {
    Compiled { version: String, ptx: String, shared_bytes: u32, ms: f64 },
    Failed { error: String },
}

/// Compiles each kernel that is meant twice and prints the two results.
pub(crate) fn run(arguments: &CompareArgs) -> Result<Exit, CommandError> {
    let flags = arguments.spec.flags();
    let opened = Opened::new(&arguments.target, &InputArgs::default(), &flags)?;
    let compiler = opened.compiler()?;
    compiler.needs_assembler()?;
    let mut driver = Driver::start(&arguments.python)?;
    let mut worst = Exit::Success;
    for selected in opened.select_all(arguments.target.kernel.as_deref())? {
        let ours = tile_side(&opened, &compiler, &selected);
        let theirs = driver
            .ask(&request(&arguments.target.path, &selected, &compiler.arch))
            .and_then(|answer| triton_side(answer, &compiler, &selected));
        for error in [&ours, &theirs].into_iter().filter_map(|side| side.as_ref().err()) {
            output::error(&format!("{}: {}", selected.name, error.message));
            worst = if worst == Exit::Success { error.exit } else { worst };
        }
        let sides: Vec<&Side> = [&ours, &theirs].into_iter().flatten().collect();
        match arguments.format {
            Format::Json => output::json(&json!({
                "kernel": selected.name,
                "specialization": specialization(&selected.spec),
                "arch": compiler.arch,
                "compilers": sides,
            }))?,
            Format::Human => {
                output::text_line(&format!("{} {}", selected.name, selected.spec))?;
                output::text_line(&table(&sides).to_string())?;
            }
        }
    }
    Ok(worst)
}

fn tile_side(
    opened: &Opened,
    compiler: &Compiler,
    selected: &Selected,
) -> Result<Side, CommandError> {
    let start = std::time::Instant::now();
    let function = opened.lower(selected).map_err(|diagnostics| {
        // The findings are shown in full; the summary says why there is no result.
        let _ = analysis::print_to_stderr(&opened.workspace, &diagnostics);
        CommandError::compile("does not compile")
    })?;
    let front = start.elapsed().as_secs_f64() * 1e3;
    let artifact = compiler.compile(&function, Keep::default())?;
    let ms = front + artifact.timings.passes + artifact.timings.llvm + artifact.timings.ptxas;
    let resources =
        artifact.resources.ok_or_else(|| CommandError::device("the assembler gave no report"))?;
    let name = format!("tile {}", env!("CARGO_PKG_VERSION"));
    Ok(side(name, &resources, artifact.ptx.len(), ms))
}

fn triton_side(
    answer: Answer,
    compiler: &Compiler,
    selected: &Selected,
) -> Result<Side, CommandError> {
    let (version, ptx, shared_bytes, ms) = match answer {
        Answer::Failed { error } => return Err(CommandError::device(format!("Triton: {error}"))),
        Answer::Compiled { version, ptx, shared_bytes, ms } => (version, ptx, shared_bytes, ms),
    };
    let Some(ptxas) = compiler.ptxas.clone() else {
        return Err(CommandError::device(tile_worker::ptxas::missing()));
    };
    let ptx_bytes = ptx.len();
    let num_warps = selected.spec.options.num_warps;
    let arch = compiler.arch.clone();
    let request = AssembleRequest { ptx, arch, num_warps, shared_bytes, ptxas };
    let resources = compiler.pool.assemble(&request).map_err(worker_error)?;
    Ok(side(format!("triton {version}"), &resources, ptx_bytes, ms))
}

fn side(compiler: String, resources: &Resources, ptx_bytes: usize, ms: f64) -> Side {
    Side {
        compiler,
        registers: resources.registers,
        shared_bytes: resources.shared_bytes,
        spill_bytes: resources.spill_load_bytes + resources.spill_store_bytes,
        occupancy: resources.occupancy,
        ptx_bytes,
        ms,
    }
}

fn table(sides: &[&Side]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["", "registers", "shared", "spills", "occupancy", "PTX", "compile"]);
    for side in sides {
        table.add_row([
            side.compiler.clone(),
            side.registers.to_string(),
            format!("{} B", side.shared_bytes),
            format!("{} B", side.spill_bytes),
            format!("{:.2}", side.occupancy),
            format!("{} B", side.ptx_bytes),
            format!("{:.0} ms", side.ms),
        ]);
    }
    table
}

fn request(path: &Path, selected: &Selected, arch: &str) -> Value {
    let (mut signature, mut constexprs) = (Map::new(), Map::new());
    let mut divisible: Vec<&str> = Vec::new();
    for (name, arg) in &selected.spec.args {
        match arg {
            ArgSpec::Runtime { signature: ty, divisible_by_16 } => {
                signature.insert(name.to_string(), ty.to_string().into());
                divisible.extend(divisible_by_16.then_some(&**name));
            }
            ArgSpec::Constexpr(value) => {
                constexprs.insert(name.to_string(), constant(value));
            }
            ArgSpec::Tuple(_) => {
                signature.insert(name.to_string(), arg.to_string().into());
            }
        }
    }
    let capability: String = arch.chars().filter(char::is_ascii_digit).collect();
    json!({
        "file": path,
        "kernel": selected.name,
        "signature": signature,
        "constexprs": constexprs,
        "divisible": divisible,
        "capability": capability.parse::<u32>().unwrap_or(90),
        "num_warps": selected.spec.options.num_warps,
        "num_stages": selected.spec.options.num_stages,
    })
}

/// A constant with its kind, as the driver reads it.
fn constant(value: &ConstArg) -> Value {
    match value {
        ConstArg::None => json!(["none", null]),
        ConstArg::Bool(value) => json!(["bool", value]),
        ConstArg::Int(value) => match i64::try_from(*value) {
            Ok(value) => json!(["int", value]),
            Err(_) => json!(["int", u64::try_from(*value).ok()]),
        },
        ConstArg::Float(bits) => json!(["float", f64::from_bits(*bits)]),
        ConstArg::Str(text) => json!(["str", &**text]),
        ConstArg::DType(name) => json!(["dtype", &**name]),
        ConstArg::TorchDType(_) => {
            json!(["torch", value.to_string().trim_start_matches("torch.")])
        }
        ConstArg::Function(name) => json!(["function", &**name]),
        ConstArg::Member(member) => json!(["member", [&*member.class_name, &*member.name]]),
        ConstArg::Tuple(items) => json!(["tuple", items.iter().map(constant).collect::<Value>()]),
    }
}

/// A Python process that compiles with Triton; ended when dropped.
struct Driver {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Driver {
    fn start(python: &Path) -> Result<Driver, CommandError> {
        let mut child = Command::new(python)
            .args(["-c", DRIVER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| {
                CommandError::device(format!(
                    "cannot start {}: {error}; name a Python that has Triton with --python",
                    python.display()
                ))
            })?;
        let Some(stdout) = child.stdout.take() else {
            return Err(CommandError::device("the Python process has no output"));
        };
        Ok(Driver { child, answers: BufReader::new(stdout) })
    }

    fn ask(&mut self, request: &Value) -> Result<Answer, CommandError> {
        let ended = || CommandError::device("the Python process ended without an answer");
        let stdin = self.child.stdin.as_mut().ok_or_else(ended)?;
        writeln!(stdin, "{request}").and_then(|()| stdin.flush()).map_err(|_| ended())?;
        // Modules may print while they are loaded.
        for line in self.answers.by_ref().lines() {
            let line = line.map_err(|_| ended())?;
            if let Ok(answer) = serde_json::from_str(&line) {
                return Ok(answer);
            }
        }
        Err(ended())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Both fail only when the child is already gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
