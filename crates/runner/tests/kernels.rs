//! Kernels from source through the front end to the CPU executor, checked by their scenarios:
//! every assertion holds, and sanitizing finds nothing.

use std::fmt::Write;
use std::path::Path;

use tile_compiler::eval::lower_kernel;
use tile_compiler::hir::ParamKind;
use tile_compiler::ir::Function;
use tile_compiler::project::{MemorySources, Sources, function, item, jit_functions};
use tile_compiler::source::{FileId, LineIndex};
use tile_compiler::specialization::{ArgSpec, Specialization, TritonVersion};
use tile_runner::cpu::CpuDevice;
use tile_runner::launch::{
    CompiledKernel, KernelCompiler, LaunchRecord, Session, SessionOptions, count_flops,
};
use tile_runner::report::RunResult;
use tile_runner::scenario::{
    self, KernelInfo, KernelParam, LaunchFailure, Outcome, ScenarioOptions, Value,
};

/// The front end, for one file.
struct FrontEnd {
    sources: MemorySources,
    file: FileId,
}

impl KernelCompiler for FrontEnd {
    fn kernel(&mut self, name: &str) -> Result<KernelInfo, LaunchFailure> {
        let mut functions = jit_functions(&self.sources, self.file).into_iter();
        let at = functions
            .find(|at| item(&self.sources, *at).is_some_and(|item| &*item.name == name))
            .ok_or_else(|| LaunchFailure::Usage(format!("no kernel `{name}`")))?;
        let function = function(&self.sources, at).expect("a jit function is a function");
        let params = function.params.iter().filter(|param| param.kind != ParamKind::KwArgs);
        let constexpr = |param: &tile_compiler::hir::Param| {
            let text = |id| tile_compiler::hir::pretty::expr(&function.body, id);
            param.annotation.is_some_and(|id| text(id).ends_with("constexpr"))
        };
        let params = params.map(|param| KernelParam {
            name: param.name.clone(),
            constexpr: constexpr(param),
            annotation: None,
            specialize: true,
            specialize_alignment: true,
            default: None,
        });
        Ok(KernelInfo { params: params.collect(), ..KernelInfo::default() })
    }

    fn tile_ir(&mut self, kernel: &str, spec: &Specialization) -> Result<Function, LaunchFailure> {
        let lowered =
            lower_kernel(&self.sources, self.file, kernel, spec, TritonVersion::default());
        lowered.function.ok_or_else(|| {
            let messages = lowered.diagnostics.iter().map(|found| found.message.clone());
            LaunchFailure::Compile(messages.collect::<Vec<_>>().join("; "))
        })
    }

    fn cubin(&mut self, _: &Function, arch: &str) -> Result<CompiledKernel, LaunchFailure> {
        Err(LaunchFailure::Compile(format!("no code for {arch}")))
    }
}

fn front_end(text: &str) -> FrontEnd {
    let mut sources = MemorySources::new(Vec::new());
    let file = sources.add("kernels.tile", text);
    FrontEnd { sources, file }
}

/// The operations of a launch's matrix products, counted without running it.
fn count(front_end: &mut FrontEnd, record: &LaunchRecord, outcome: &Outcome) -> Option<u64> {
    let func = front_end.tile_ir(&record.kernel, &record.specialization).ok()?;
    let launch = outcome.launches.iter().find(|launch| *launch.kernel == record.kernel)?;
    let runtime = launch.args.iter().zip(record.specialization.args.values());
    let bits = runtime.filter(|(_, spec)| matches!(spec, ArgSpec::Runtime { .. }));
    let bits: Vec<u64> = bits
        .map(|(arg, _)| match arg.value {
            Value::Int(value) => value as u64,
            _ => 0,
        })
        .collect();
    count_flops(&func, &bits, record.grid)
}

/// Runs every scenario of a file; what is wrong, one line each.
fn check(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("the file is there");
    let mut compiler = front_end(&text);
    let module = compiler.sources.module(compiler.file).expect("the file was added");
    let lines = LineIndex::new(&text);
    let mut wrong = String::new();
    for scenario in &module.scenarios {
        let line = lines.line(scenario.range.start) + 1;
        let mut device = CpuDevice::new();
        let options = SessionOptions { sanitize: true, ..SessionOptions::default() };
        let mut session = Session::new(&mut compiler, &mut device, options);
        match scenario::run(&module, scenario, &mut session, &ScenarioOptions::default()) {
            Ok(outcome) => {
                let result = RunResult::new("cpu", session.records(), &outcome, &lines);
                let asserts = result.asserts.iter().filter(|assert| !assert.ok);
                assert!(!result.asserts.is_empty(), "line {line} asserts nothing");
                for assert in asserts {
                    let _ = writeln!(wrong, "line {}: {:?}", assert.line, assert);
                }
                for record in session.records() {
                    let executed = record.report.flops;
                    let counted = count(&mut front_end(&text), record, &outcome);
                    if executed != counted {
                        let _ = writeln!(
                            wrong,
                            "line {line}: {executed:?} operations, counted {counted:?}"
                        );
                    }
                }
                for found in &result.findings {
                    let _ = writeln!(wrong, "line {}: {}", found.place.line, found.message);
                }
            }
            Err(error) => {
                let line = lines.line(error.at.start) + 1;
                let _ = writeln!(wrong, "line {line}: {error}");
            }
        }
    }
    assert!(!module.scenarios.is_empty(), "{} has no scenarios", path.display());
    wrong
}

fn check_file(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels").join(name);
    let wrong = check(&path);
    assert!(wrong.is_empty(), "{name}:\n{wrong}");
}

#[test]
fn pointwise() {
    check_file("pointwise.tile");
}

#[test]
fn rows() {
    check_file("rows.tile");
}

#[test]
fn matrices() {
    check_file("matrices.tile");
}
