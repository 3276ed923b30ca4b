//! The front end for a file, as a compiler of its scenarios' kernels.

use std::path::Path;

use tile_compiler::builtins::TritonVersion;
use tile_compiler::eval::lower_kernel;
use tile_compiler::hir::ParamKind;
use tile_compiler::ir::Function;
use tile_compiler::project::{MemorySources, constexpr_params, function, item, jit_functions};
use tile_compiler::source::FileId;
use tile_compiler::specialization::{ArgSpec, Flags, Specialization, discover};
use tile_runner::launch::{CompiledKernel, KernelCompiler};
use tile_runner::scenario::{KernelInfo, KernelParam, LaunchFailure, Value};

/// The front end, for one file and those around it.
pub struct FrontEnd {
    pub sources: MemorySources,
    pub file: FileId,
}

impl KernelCompiler for FrontEnd {
    fn kernel(&mut self, name: &str) -> Result<KernelInfo, LaunchFailure> {
        let mut functions = jit_functions(&self.sources, self.file).into_iter();
        let at = functions
            .find(|at| item(&self.sources, *at).is_some_and(|item| &*item.name == name))
            .ok_or_else(|| LaunchFailure::Usage(format!("no kernel `{name}`")))?;
        let function = function(&self.sources, at).expect("a jit function is a function");
        let params = function.params.iter().filter(|param| param.kind != ParamKind::KwArgs);
        let constexpr = constexpr_params(&self.sources, at);
        let found = discover(&self.sources, at, &Flags::default()).into_iter().next();
        let params = params.map(|param| {
            let found = found.as_ref().and_then(|found| found.args.get(&param.name));
            KernelParam {
                name: param.name.clone(),
                constexpr: constexpr.contains(&param.name),
                annotation: None,
                specialize: true,
                specialize_alignment: true,
                default: match param.default.and(found) {
                    Some(ArgSpec::Constexpr(value)) => Some(Value::from(value)),
                    _ => None,
                },
                computed: false,
            }
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

/// The front end for a file, with the other files of its directory to import from.
pub fn front_end(path: &Path, text: &str) -> FrontEnd {
    let mut sources = MemorySources::new(Vec::new());
    let around = path.parent().and_then(|directory| std::fs::read_dir(directory).ok());
    for entry in around.into_iter().flatten().flatten() {
        if let Ok(text) = std::fs::read_to_string(entry.path()) {
            sources.add(&entry.path().to_string_lossy(), &text);
        }
    }
    let file = sources.add(&path.to_string_lossy(), text);
    FrontEnd { sources, file }
}
