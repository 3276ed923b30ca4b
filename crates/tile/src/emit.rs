//! `tile emit`.

use std::path::Path;

use tile_compiler::artifact::{Artifact, Frame, Keep, LineMap, Listing};
use tile_compiler::hir::pretty;
use tile_compiler::passes;

use crate::analysis::{self, Opened, Selected};
use crate::cli::{EmitArgs, Stage};
use crate::{CommandError, Exit, output};

/// Prints one stage of one kernel under one specialization.
pub(crate) fn run(arguments: &EmitArgs) -> Result<Exit, CommandError> {
    let flags = arguments.spec.flags();
    let opened = Opened::new(&arguments.target, &arguments.input, &flags)?;
    let selected = opened.select_one(arguments.target.kernel.as_deref())?;
    let output = arguments.output.as_deref();
    if arguments.stage == Stage::Ast {
        return text(output, &pretty::function(&selected.function));
    }
    let mut function = match opened.lower(&selected) {
        Ok(function) => function,
        Err(diagnostics) => {
            analysis::print_to_stderr(&opened.workspace, &diagnostics)?;
            return Ok(Exit::Compile);
        }
    };
    if arguments.stage == Stage::Tile {
        passes::optimize(&mut function).map_err(|(pass, errors)| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            CommandError::device(format!(
                "the compiler is at fault, in {pass}: {}",
                errors.join("; ")
            ))
        })?;
        return text(output, &function.to_string());
    }
    let compiler = opened.compiler()?;
    if matches!(arguments.stage, Stage::Sass | Stage::Cubin) {
        compiler.needs_assembler()?;
    }
    let keep = Keep {
        gpu: arguments.stage == Stage::Gpu,
        llvm: arguments.stage == Stage::Llvm,
        sass: arguments.stage == Stage::Sass,
    };
    let artifact = compiler.compile(&function, keep)?;
    write_stage(arguments, &opened, &selected, &artifact)
}

fn write_stage(
    arguments: &EmitArgs,
    opened: &Opened,
    selected: &Selected,
    artifact: &Artifact,
) -> Result<Exit, CommandError> {
    let out = arguments.output.as_deref();
    let listing = match arguments.stage {
        Stage::Ptx => Listing { text: artifact.ptx.clone(), line_map: artifact.line_map.clone() },
        Stage::Gpu => Listing { text: artifact.gpu_ir.clone(), line_map: LineMap::default() },
        Stage::Llvm => {
            Listing { text: artifact.llvm_ir.clone(), line_map: artifact.llvm_line_map.clone() }
        }
        Stage::Sass => match &artifact.sass {
            Some(sass) => Listing { text: sass.text.clone(), line_map: sass.line_map.clone() },
            None => {
                return Err(CommandError::device(
                    "there is no nvdisasm to disassemble with; `tile doctor --fix` fetches it",
                ));
            }
        },
        Stage::Cubin => return cubin(out, selected, artifact),
        Stage::Ast | Stage::Tile => Listing::default(),
    };
    let written = match arguments.annotate {
        true => annotated(arguments.stage, opened, listing),
        false => listing.text,
    };
    let exit = text(out, &written)?;
    if arguments.stage == Stage::Ptx {
        write_manifest(out, artifact)?;
    }
    Ok(exit)
}

fn annotated(stage: Stage, opened: &Opened, listing: Listing) -> String {
    let readable = match stage {
        Stage::Ptx => Listing::ptx(&listing.text, &listing.line_map),
        Stage::Llvm => Listing::llvm(&listing.text, &listing.line_map),
        _ => listing,
    };
    let comment = if stage == Stage::Llvm { ";" } else { "//" };
    readable.annotated(comment, &|frame: &Frame| opened.source_line(frame))
}

fn cubin(
    out: Option<&Path>,
    selected: &Selected,
    artifact: &Artifact,
) -> Result<Exit, CommandError> {
    let Some(cubin) = &artifact.cubin else {
        let message = format!("{} has no machine code", selected.name);
        return Err(CommandError::device(message));
    };
    let Some(path) = out else {
        output::write_all(cubin)?;
        return Ok(Exit::Success);
    };
    write(path, cubin)?;
    write_manifest(out, artifact)?;
    Ok(Exit::Success)
}

/// `OUT.json`, from which anyone can launch the code with the CUDA driver alone.
fn write_manifest(out: Option<&Path>, artifact: &Artifact) -> Result<(), CommandError> {
    let Some(out) = out else { return Ok(()) };
    let mut path = out.as_os_str().to_owned();
    path.push(".json");
    let text = serde_json::to_string_pretty(&artifact.manifest)
        .map_err(|error| CommandError::usage(format!("cannot write the manifest: {error}")))?;
    write(Path::new(&path), text.as_bytes())
}

fn text(out: Option<&Path>, text: &str) -> Result<Exit, CommandError> {
    match out {
        Some(path) => write(path, text.as_bytes())?,
        None => output::text_line(text.trim_end())?,
    }
    Ok(Exit::Success)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    std::fs::write(path, bytes).map_err(|error| {
        let why = match error.kind() {
            std::io::ErrorKind::NotFound => "its folder does not exist".to_owned(),
            _ => error.to_string(),
        };
        CommandError::usage(format!("cannot write {}: {why}", path.display()))
    })
}
