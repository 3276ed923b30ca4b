//! Runs the text suites of code generation. Every module passes LLVM's verifier, and the
//! assembler's where one is found.

use std::path::Path;
use std::process::ExitCode;

use tile_codegen::{CodegenError, Options, Target, compile};
use tile_compiler::artifact::{Artifact, Keep};
use tile_compiler::ir;
use tile_tests::Command;

const COMMANDS: &[(&str, Command)] = &[
    ("gpu", gpu),
    ("ptx", ptx),
    ("assemble", assemble),
    ("fits", fits),
    ("blocks", blocks),
    ("together", together),
    ("quotients", quotients),
];

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    tile_tests::run(&root, "tir", COMMANDS).exit_code()
}

/// GPU IR for the architecture given.
fn gpu(args: &[&str], program: &str) -> String {
    compiled(args, program, None).map_or_else(|error| error, |artifact| artifact.gpu_ir)
}

/// PTX for the architecture given, and the shared memory that it needs.
fn ptx(args: &[&str], program: &str) -> String {
    let shown = |artifact: Artifact| {
        format!("{}shared bytes: {}", artifact.ptx, artifact.manifest.shared_bytes)
    };
    compiled(args, program, None).map_or_else(|error| error, shown)
}

/// Assembles for each architecture given; says so where there is no assembler.
fn assemble(args: &[&str], program: &str) -> String {
    let assembler = tile_worker::ptxas::find(None, None);
    if assembler.is_none() {
        eprintln!("skipped: {}", tile_worker::ptxas::missing());
    }
    let lines = args.iter().map(|arch| {
        let result = compiled(&[arch], program, assembler.clone());
        format!("{arch}: {}\n", result.map_or_else(|error| error, |_| "assembles".to_owned()))
    });
    lines.collect()
}

/// Assembles for each architecture after the first argument, which is the most registers that a
/// thread may take; spills are not allowed. Also tells the shared memory.
fn fits(args: &[&str], program: &str) -> String {
    let assembler = tile_worker::ptxas::find(None, None);
    if assembler.is_none() {
        eprintln!("skipped: {}", tile_worker::ptxas::missing());
    }
    let Some((limit, archs)) = args.split_first() else {
        return "`fits` needs the number of registers".to_owned();
    };
    let most: u32 = limit.parse().unwrap_or(0);
    let lines = archs.iter().map(|arch| {
        let artifact = match compiled(&[arch], program, assembler.clone()) {
            Ok(artifact) => artifact,
            Err(error) => return format!("{arch}: {error}\n"),
        };
        let shared = artifact.manifest.shared_bytes;
        match artifact.resources {
            Some(found) if found.registers > most || found.spill_store_bytes > 0 => format!(
                "{arch}: {} registers, {} bytes spilled\n",
                found.registers, found.spill_store_bytes
            ),
            _ => format!("{arch}: at most {most} registers, {shared} bytes of shared memory\n"),
        }
    });
    lines.collect()
}

/// Whether what was assembled asks for a number of CTAs on each multiprocessor; it is taken not to where there is no
/// assembler.
fn blocks(args: &[&str], program: &str) -> String {
    let assembler = tile_worker::ptxas::find(None, None);
    if assembler.is_none() {
        eprintln!("skipped: {}", tile_worker::ptxas::missing());
    }
    let lines = args.iter().map(|arch| {
        let found = compiled(&[arch], program, assembler.clone()).map(|artifact| {
            match artifact.ptx.split_once(".minnctapersm ") {
                Some((_, rest)) => format!("{} CTAs", rest.lines().next().unwrap_or("no")),
                None => "any number of CTAs".to_owned(),
            }
        });
        format!("{arch}: {}\n", found.unwrap_or_else(|error| error))
    });
    lines.collect()
}

/// Whether quotients by one number share its reciprocal in what was assembled; they are taken to do that where there
/// is no assembler.
fn quotients(args: &[&str], program: &str) -> String {
    let assembler = tile_worker::ptxas::find(None, None);
    if assembler.is_none() {
        eprintln!("skipped: {}", tile_worker::ptxas::missing());
    }
    let lines = args.iter().map(|arch| {
        let found = compiled(&[arch], program, assembler.clone()).map(|artifact| {
            let is_shared = assembler.is_none() || !artifact.ptx.contains("div.full");
            if is_shared { "quotients share a reciprocal" } else { "quotients are apart" }
        });
        format!("{arch}: {}\n", found.map_or_else(|error| error, str::to_owned))
    });
    lines.collect()
}

/// Whether what was assembled has a barrier in front of its first write; it is taken to have it where
/// there is no assembler.
fn together(args: &[&str], program: &str) -> String {
    let assembler = tile_worker::ptxas::find(None, None);
    if assembler.is_none() {
        eprintln!("skipped: {}", tile_worker::ptxas::missing());
    }
    let is_there = assembler.is_some();
    let lines = args.iter().map(|arch| match compiled(&[arch], program, assembler.clone()) {
        Ok(artifact) => {
            let write = artifact.ptx.lines().find(|line| line.contains("st.global"));
            let waits = write.is_some_and(|line| line.starts_with("\tbar.sync 0; "));
            let how = if waits || !is_there { "together" } else { "each by itself" };
            format!("{arch}: warps write {how}\n")
        }
        Err(error) => format!("{arch}: {error}\n"),
    });
    lines.collect()
}

fn compiled(
    args: &[&str],
    program: &str,
    ptxas: Option<std::path::PathBuf>,
) -> Result<Artifact, String> {
    let arch = args.first().copied().unwrap_or("sm_90a");
    let func = ir::parse(program).map_err(|error| format!("parse error: {error}"))?;
    let target: Target = arch.parse().map_err(|error: CodegenError| error.to_string())?;
    let keep = Keep { gpu: true, ..Keep::default() };
    let options = Options { keep, ptxas, nvdisasm: None };
    compile(&func, target, &options).map_err(|error| error.to_string())
}
