//! Compiles tile IR text: `cargo run -p tile-codegen --example compile -- FILE.tir [ARCH] [STAGE]`.
//!
//! STAGE is `gpu`, `llvm`, `ptx` or `info` (the default). `TILE_PTXAS` names the assembler.

use std::path::PathBuf;
use std::process::ExitCode;

use tile_codegen::{Options, Target, compile};
use tile_compiler::artifact::Keep;
use tile_compiler::ir;

fn main() -> ExitCode {
    match run() {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, String> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("usage: compile FILE.tir [ARCH] [gpu|llvm|ptx|info]")?;
    let arch = args.next().unwrap_or_else(|| "sm_90a".to_owned());
    let stage = args.next().unwrap_or_else(|| "info".to_owned());
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let func = ir::parse(&text).map_err(|error| format!("{path}: {error}"))?;
    let target: Target = arch.parse().map_err(|error| format!("{error}"))?;
    let keep = Keep { gpu: true, llvm: true, sass: false };
    let ptxas = std::env::var_os("TILE_PTXAS").map(PathBuf::from);
    let options = Options { keep, ptxas, nvdisasm: None };
    let artifact = compile(&func, target, &options).map_err(|error| error.to_string())?;
    Ok(match stage.as_str() {
        "gpu" => artifact.gpu_ir,
        "llvm" => artifact.llvm_ir,
        "ptx" => artifact.ptx,
        _ => format!(
            "{:#?}\n{:#?}\n{:#?}\n{} bytes of machine code",
            artifact.manifest,
            artifact.resources,
            artifact.timings,
            artifact.cubin.map_or(0, |cubin| cubin.len())
        ),
    })
}
