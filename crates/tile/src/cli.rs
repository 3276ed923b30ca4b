//! The command line.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tile_compiler::diagnostic::Severity;
use tile_compiler::gpu::arch::{Arch, ArchError};
use tile_worker::protocol::{Device, SpecFlags};

/// Language server, compiler and runner for tile kernels (GPU kernels in Triton's language).
///
/// Exit codes: 0 all well; 1 findings; 2 usage or input/output; 3 the kernel does not compile;
/// 4 device or worker failure.
#[derive(Debug, Parser)]
#[command(name = "tile", version, propagate_version = false)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find errors in kernels without running anything.
    Check(CheckArgs),
    /// Print one stage of a kernel's compilation.
    Emit(EmitArgs),
    /// Registers, shared memory, spills and occupancy, as measured by the assembler.
    Info(InfoArgs),
    /// Run kernels through their scenarios, else as host code launches them, on a GPU or on the CPU.
    Run(RunArgs),
    /// Time kernels through their scenarios, else as host code launches them.
    Bench(BenchArgs),
    /// Try values of constexpr parameters and launch options, fastest first.
    Tune(TuneArgs),
    /// Compile the same specialization with an installed Triton and show both side by side.
    Compare(CompareArgs),
    /// Explain a diagnostic code.
    Explain(ExplainArgs),
    /// Speak the language server protocol over standard input and output.
    Lsp(LspArgs),
    /// Compile and run on behalf of another `tile` process.
    #[command(hide = true)]
    Worker,
    /// Tell what Tile found on this machine, and mend what is missing.
    Doctor(DoctorArgs),
}

/// Arguments of `tile check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Files, folders, or `-` for standard input; `FILE::KERNEL` checks one kernel. Of a single file,
    /// launches in the project around it count too.
    #[arg(required = true, value_name = "PATH[::KERNEL]", value_parser = without_scenario)]
    pub(crate) paths: Vec<Target>,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: CheckFormat,
    /// The mildest level that makes the exit code 1.
    #[arg(long, value_enum, default_value_t = Level::Error, value_name = "LEVEL")]
    pub(crate) deny: Level,
    /// Also compile every configuration that is known, and tell what it takes: shared memory that
    /// does not fit, spills and occupancy. Takes as long as compiling does.
    #[arg(long)]
    pub(crate) compile: bool,
    /// Check every file, also those that were checked before and read as they did.
    #[arg(long)]
    pub(crate) no_cache: bool,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) spec: SpecArgs,
}

/// Arguments of `tile emit`.
#[derive(Debug, Args)]
pub(crate) struct EmitArgs {
    /// The kernel; may be left out when the file has one kernel.
    #[arg(value_name = "FILE[::KERNEL]", value_parser = without_scenario)]
    pub(crate) target: Target,
    /// Which stage.
    #[arg(long, value_enum)]
    pub(crate) stage: Stage,
    /// Write to this file. With ptx and cubin, also writes OUT.json, the launch manifest.
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Show the source line above the lines that it became (gpu, llvm, ptx, sass).
    #[arg(long)]
    pub(crate) annotate: bool,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) spec: SpecArgs,
}

/// Arguments of `tile info`.
#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// The kernel; without one, every kernel of the file.
    #[arg(value_name = "FILE[::KERNEL]", value_parser = without_scenario)]
    pub(crate) target: Target,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) spec: SpecArgs,
}

/// Arguments of `tile run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The kernel and, after `#`, which of its scenarios, from 1; without them, all of the file's.
    #[arg(value_name = "FILE[::KERNEL[#N]]")]
    pub(crate) target: Target,
    /// auto, cpu or cuda:N.
    #[arg(long, default_value = "auto")]
    pub(crate) device: Device,
    /// Check the address of every lane, overlapping stores and uninitialized reads (CPU).
    #[arg(long)]
    pub(crate) sanitize: bool,
    /// Also time the launches.
    #[arg(long)]
    pub(crate) bench: bool,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
    /// Write a tensor after the run.
    #[arg(long = "save", value_name = "NAME=FILE.npy", value_parser = pair)]
    pub(crate) save: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) spec: SpecArgs,
}

/// Arguments of `tile bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// The kernel and, after `#`, which of its scenarios, from 1; without them, all of the file's.
    #[arg(value_name = "FILE[::KERNEL[#N]]")]
    pub(crate) target: Target,
    /// auto, cpu or cuda:N.
    #[arg(long, default_value = "auto")]
    pub(crate) device: Device,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) spec: SpecArgs,
}

/// Arguments of `tile tune`.
#[derive(Debug, Args)]
pub(crate) struct TuneArgs {
    /// The kernel, which may be left out when the file has one kernel, and, after `#`, which of its
    /// scenarios, from 1.
    #[arg(value_name = "FILE[::KERNEL[#N]]")]
    pub(crate) target: Target,
    /// Values to try for a constexpr parameter, `num_warps` or `num_stages`; without any, the
    /// kernel's autotune configurations.
    #[arg(long = "set", value_name = "NAME=V1,V2,...", value_parser = pair)]
    pub(crate) sets: Vec<(String, String)>,
    /// Write the fastest values into the file's scenario.
    #[arg(long)]
    pub(crate) apply: bool,
    /// auto, cpu or cuda:N.
    #[arg(long, default_value = "auto")]
    pub(crate) device: Device,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
    #[command(flatten)]
    pub(crate) common: CommonSpecArgs,
}

/// Arguments of `tile compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The kernel; without one, every kernel of the file.
    #[arg(value_name = "FILE[::KERNEL]", value_parser = without_scenario)]
    pub(crate) target: Target,
    /// The interpreter that has Triton.
    #[arg(long, default_value = "python3", value_name = "PROGRAM")]
    pub(crate) python: PathBuf,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) spec: SpecArgs,
}

/// Arguments of `tile explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// `family/name`, or `family` for all of a family; without one, every code.
    pub(crate) code: Option<String>,
}

/// Arguments of `tile lsp`.
#[derive(Debug, Args)]
pub(crate) struct LspArgs {
    /// Accepted for clients that pass it; standard input and output are always used.
    #[arg(long, hide = true)]
    pub(crate) stdio: bool,
}

/// Arguments of `tile doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Fetch the assembler and the disassembler from PyPI into the user's cache if missing.
    #[arg(long)]
    pub(crate) fix: bool,
}

/// How source text is found.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct InputArgs {
    /// What to call standard input; its folder is where its imports are looked up.
    #[arg(long, value_name = "NAME")]
    pub(crate) stdin_name: Option<PathBuf>,
}

/// How a launch without a scenario is described, or a scenario changed.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LaunchArgs {
    /// An argument of a kernel without a scenario, or a scenario's variable, as an expression of
    /// scenarios; `auto` sizes the buffers that are not given.
    #[arg(long = "arg", value_name = "NAME=EXPR", value_parser = argument)]
    pub(crate) args: Vec<(String, String)>,
    /// The grid of a kernel without a scenario.
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    pub(crate) grid: Option<String>,
}

/// What holds for any specialization.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CommonSpecArgs {
    /// Version of Triton whose rules hold.
    #[arg(long, value_name = "3.6|3.9", value_parser = ["3.6", "3.9"])]
    pub(crate) triton: Option<String>,
    /// Target architecture, such as sm_90a.
    #[arg(long, value_name = "ARCH", value_parser = architecture)]
    pub(crate) arch: Option<String>,
}

/// What a kernel is compiled for.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SpecArgs {
    #[command(flatten)]
    pub(crate) common: CommonSpecArgs,
    /// Type of a parameter in Triton's spelling: *fp16, i32, fp32, ...; suffix :16 for
    /// divisibility, :1 for equal to one.
    #[arg(long = "type", value_name = "NAME=TYPE", value_parser = pair)]
    pub(crate) types: Vec<(String, String)>,
    /// Value of a constexpr parameter.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) values: Vec<(String, String)>,
    /// Warps per CTA, a power of two.
    #[arg(long, value_name = "N", value_parser = warps, allow_negative_numbers = true)]
    pub(crate) num_warps: Option<u32>,
    /// Pipeline depth of loops; 0 and 1 for none.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=32), allow_negative_numbers = true)]
    pub(crate) num_stages: Option<u32>,
}

impl SpecArgs {
    /// As the worker takes it.
    pub(crate) fn flags(&self) -> SpecFlags {
        SpecFlags {
            types: self.types.clone(),
            values: self.values.clone(),
            num_warps: self.num_warps,
            num_stages: self.num_stages,
            ..self.common.flags()
        }
    }
}

impl CommonSpecArgs {
    /// As the worker takes it.
    pub(crate) fn flags(&self) -> SpecFlags {
        SpecFlags { triton: self.triton.clone(), arch: self.arch.clone(), ..SpecFlags::default() }
    }
}

/// Output for people or for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// Text.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// Output of `tile check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum CheckFormat {
    /// Source excerpts.
    #[default]
    Human,
    /// One JSON object a line, a summary last.
    Json,
    /// SARIF 2.1.0.
    Sarif,
}

/// A level of severity on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    /// Errors alone.
    Error,
    /// Warnings and errors.
    Warning,
    /// Everything but hints.
    Info,
    /// Everything.
    Hint,
}

impl Level {
    /// As diagnostics have it.
    pub(crate) fn severity(self) -> Severity {
        match self {
            Level::Error => Severity::Error,
            Level::Warning => Severity::Warning,
            Level::Info => Severity::Info,
            Level::Hint => Severity::Hint,
        }
    }
}

/// A stage of compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stage {
    /// The syntax tree's meaning, before types.
    Ast,
    /// Tile IR.
    Tile,
    /// GPU IR: layouts, shared memory, asynchrony.
    Gpu,
    /// LLVM IR.
    Llvm,
    /// PTX.
    Ptx,
    /// Disassembled machine code.
    Sass,
    /// Machine code.
    Cubin,
}

/// `PATH[::KERNEL[#N]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The file or folder; `-` is standard input.
    pub(crate) path: PathBuf,
    /// The kernel's name.
    pub(crate) kernel: Option<String>,
    /// Which scenario, from 0.
    pub(crate) scenario: Option<usize>,
}

/// A kernel, of which no scenario is chosen.
fn without_scenario(text: &str) -> Result<Target, String> {
    match text.parse::<Target>()? {
        Target { scenario: Some(_), .. } => {
            Err("only `run`, `bench` and `tune` take the number of a scenario".to_owned())
        }
        target => Ok(target),
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        if text.is_empty() {
            return Err("write the path of a file, or `-`".to_owned());
        }
        let Some((path, rest)) = text.rsplit_once("::") else {
            return Ok(Target { path: text.into(), kernel: None, scenario: None });
        };
        let (kernel, scenario) = match rest.split_once('#') {
            None => (rest, None),
            Some((kernel, number)) => {
                let number: usize = number.parse().ok().filter(|&n| n > 0).ok_or_else(|| {
                    format!("`#{number}` is not the number of a scenario; they count from 1")
                })?;
                (kernel, Some(number - 1))
            }
        };
        if path.is_empty() || kernel.is_empty() {
            return Err("write FILE::KERNEL".to_owned());
        }
        Ok(Target { path: path.into(), kernel: Some(kernel.to_owned()), scenario })
    }
}

/// `NAME=VALUE`.
fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

/// `NAME=EXPR`, or `auto` for every argument that is not given; it stands as a pair without value.
fn argument(text: &str) -> Result<(String, String), String> {
    if text == "auto" { Ok((text.to_owned(), String::new())) } else { pair(text) }
}

fn warps(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(n) if n.is_power_of_two() && n <= 32 => Ok(n),
        _ => Err("the number of warps is 1, 2, 4, 8, 16 or 32".to_owned()),
    }
}

fn architecture(text: &str) -> Result<String, ArchError> {
    text.parse::<Arch>().map(|arch| arch.to_string())
}

#[cfg(test)]
mod reference;

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn targets_name_a_kernel_and_a_scenario() {
        let parse = |text: &str| text.parse::<Target>();
        let target = parse("a/b.py::add#2").unwrap();
        assert_eq!(target.path, PathBuf::from("a/b.py"));
        assert_eq!((target.kernel.as_deref(), target.scenario), (Some("add"), Some(1)));
        assert_eq!(parse("a#1.py").unwrap().kernel, None);
        assert!(parse("a.py::add#0").unwrap_err().contains("count from 1"));
        assert!(parse("a.py::").is_err());
    }
}
