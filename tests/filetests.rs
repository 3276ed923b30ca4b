//! Runs the text suites that need neither LLVM nor a device.

use std::path::Path;
use std::process::ExitCode;

use tile_compiler::analysis::axis::AxisInfos;
use tile_compiler::gpu::{self, GpuTarget};
use tile_compiler::ir::{self, Function};
use tile_compiler::passes;
use tile_tests::Command;

const COMMANDS: &[(&str, Command)] = &[
    ("print", print),
    ("verify", verify),
    ("pass", run_passes),
    ("optimize", optimize),
    ("lower", lower),
    ("axis", axis),
];

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    tile_tests::run(&root, "tir", COMMANDS).exit_code()
}

/// Reads and prints; printing what was read back must give the same text.
fn print(_args: &[&str], program: &str) -> String {
    with_function(program, |func| {
        let text = func.to_string();
        match ir::parse(&text) {
            Ok(again) => assert_eq!(again.to_string(), text, "the text form does not round-trip"),
            Err(error) => panic!("the printed text does not parse: {error}\n{text}"),
        }
        text
    })
}

fn verify(_args: &[&str], program: &str) -> String {
    with_function(program, |func| verified(func).unwrap_or_else(|()| "well formed".to_owned()))
}

/// Runs the passes named by the arguments.
fn run_passes(args: &[&str], program: &str) -> String {
    with_function(program, |mut func| {
        for name in args {
            let mut known = passes::PIPELINE.iter().chain(passes::FOR_ANALYSES);
            let pass = known.find(|(known, _)| known == name);
            let Some((_, pass)) = pass else { return format!("no pass `{name}`") };
            pass(&mut func);
            if let Ok(errors) = verified(func.clone()) {
                return errors;
            }
        }
        func.to_string()
    })
}

fn optimize(_args: &[&str], program: &str) -> String {
    with_function(program, |mut func| match passes::optimize(&mut func) {
        Ok(()) => func.to_string(),
        Err((pass, errors)) => format!("{pass} broke the function: {errors:?}"),
    })
}

/// Optimizes and lowers to GPU IR for the compute capability named by the argument, with an `a`
/// after it where the instructions of that very architecture may be used.
fn lower(args: &[&str], program: &str) -> String {
    let arch = args.first().copied().unwrap_or("90a");
    let capability = arch.trim_end_matches('a').parse().unwrap_or(90);
    let has_warp_groups = capability == 90 && arch.ends_with('a');
    with_function(program, |mut func| {
        if let Err((pass, errors)) = passes::optimize(&mut func) {
            return format!("{pass} broke the function: {errors:?}");
        }
        let Ok(checked) = ir::verify(&func) else { return "not well formed".to_owned() };
        match gpu::lower(checked, GpuTarget { capability, has_warp_groups }) {
            Ok(lowered) => lowered.to_string(),
            Err(error) => error.to_string(),
        }
    })
}

/// Facts about integers, pointers and masks, one line per value that has any.
fn axis(_args: &[&str], program: &str) -> String {
    with_function(program, |func| {
        let infos = AxisInfos::of(&func);
        let mut out = String::new();
        for inst in func.walk() {
            for &value in &func.insts[inst].results {
                let elem = func.ty(value).elem();
                if !elem.is_some_and(|elem| elem.is_int() || elem.is_ptr()) {
                    continue;
                }
                let info = infos.get(&func, value);
                let constant = info.constant.map(|value| format!(" = {value}")).unwrap_or_default();
                let leading: Vec<i64> = (0..info.rank()).map(|axis| info.leading(axis)).collect();
                let leading = match leading == info.constancy.to_vec() {
                    true => String::new(),
                    false => format!(" leading {leading:?}"),
                };
                out += &format!(
                    "{value} contiguity {:?} divisibility {:?} constancy {:?}{leading}{constant}\n",
                    info.contiguity, info.divisibility, info.constancy
                );
            }
        }
        out
    })
}

fn with_function(program: &str, run: impl FnOnce(Function) -> String) -> String {
    match ir::parse(program) {
        Ok(func) => run(func),
        Err(error) => panic!("the program of a filetest does not parse: {error}"),
    }
}

/// The verifier's errors as text, or `Err` when there are none.
fn verified(func: Function) -> Result<String, ()> {
    match ir::verify(&func) {
        Ok(_) => Err(()),
        Err(errors) => Ok(errors.iter().map(|error| format!("{error}\n")).collect::<String>()),
    }
}
