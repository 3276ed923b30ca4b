//! Random well-typed tile IR gives the same results, bit for bit, before and after every pass, and
//! survives its text form.
//!
//! `TILE_FUZZ_KERNELS=N` runs that many kernels, `TILE_FUZZ_SEED=S` starts at another seed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tile_compiler::gpu::{GpuTarget, precision, scaled};
use tile_compiler::ir::{self, Constant, Function, Opcode, Scalar};
use tile_compiler::passes;
use tile_executor::number::{decode, encode};
use tile_executor::{Arg, Buffers, Kernel, Options};

#[path = "passes/generate.rs"]
mod generate;

use generate::{PLACE, PLACES, Random, generate};

const PROGRAMS: usize = 2;

/// What every program left in the outputs, each NaN the same; or why it did not run.
fn execute(func: &Function) -> Result<Vec<Vec<u64>>, String> {
    if let Err(errors) = ir::verify(func) {
        return Err(format!("malformed: {errors:?}"));
    }
    let kernel = Kernel::compile(func).map_err(|error| error.to_string())?;
    let mut buffers = Buffers::new();
    let mut args = Vec::new();
    let mut outputs = Vec::new();
    for scalar in Scalar::ALL {
        let mut random = Random(u64::from(scalar.bits()));
        let bytes = scalar.bytes() as usize;
        let element = |_| random.bits(scalar).to_le_bytes()[..bytes].to_vec();
        let input: Vec<u8> = (0..PLACE).flat_map(element).collect();
        let input = buffers.add(format!("in_{scalar}"), scalar, &input);
        let zeros = vec![0; PROGRAMS * PLACES * PLACE * bytes];
        let output = buffers.add(format!("out_{scalar}"), scalar, &zeros);
        args.extend([input, output].map(|id| Arg::Pointer(buffers.address(id))));
        outputs.push((scalar, output));
    }
    let options = Options { deadline: Some(Duration::from_secs(20)), ..Options::default() };
    let report = kernel
        .launch(&mut buffers, &args, [PROGRAMS as u32, 1, 1], &options)
        .map_err(|error| error.to_string())?;
    if let Some(found) = report.findings.first() {
        return Err(found.message.clone());
    }
    let read = |(scalar, id): (Scalar, _)| {
        let bytes = buffers.bytes(id);
        let elements = bytes.chunks(scalar.bytes() as usize).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            canonical(scalar, u64::from_le_bytes(word))
        });
        elements.collect()
    };
    Ok(outputs.into_iter().map(read).collect())
}

fn canonical(scalar: Scalar, bits: u64) -> u64 {
    let nan = scalar.is_float() && decode(scalar, bits).is_nan();
    if nan { encode(scalar, f64::NAN) } else { bits }
}

type Change = (&'static str, fn(&mut Function));

/// Everything that rewrites tile IR.
fn changes() -> Vec<Change> {
    let mut changes: Vec<Change> = vec![
        ("the text form", |func| {
            *func = ir::parse(&func.to_string()).unwrap_or_else(|error| panic!("{error}"));
        }),
        ("scaled", scaled::expand),
        ("precision for sm_80", |func| {
            precision::expand(func, GpuTarget { capability: 80, has_warp_groups: false })
        }),
        ("precision for sm_90", |func| {
            precision::expand(func, GpuTarget { capability: 90, has_warp_groups: true })
        }),
        ("the pipeline", |func| {
            passes::optimize(func).unwrap_or_else(|(pass, errors)| panic!("{pass}: {errors:?}"));
        }),
        ("the pipeline twice", |func| {
            for _ in 0..2 {
                passes::optimize(func)
                    .unwrap_or_else(|(pass, errors)| panic!("{pass}: {errors:?}"));
            }
        }),
    ];
    changes.extend(passes::PIPELINE);
    changes.extend(passes::FOR_ANALYSES);
    changes
}

/// What is wrong with some pass on a kernel.
fn wrong(func: &Function) -> Option<String> {
    let attempt = |run: &mut dyn FnMut() -> Result<Vec<Vec<u64>>, String>| {
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("a panic".to_owned()))
    };
    let expected = match attempt(&mut || execute(func)) {
        Ok(expected) => expected,
        Err(error) => return Some(format!("it does not run: {error}")),
    };
    changes().into_iter().find_map(|(name, change)| {
        let found = attempt(&mut || {
            let mut changed = func.clone();
            change(&mut changed);
            execute(&changed)
        });
        match found {
            Err(error) => Some(format!("after {name} it does not run: {error}")),
            Ok(found) if found != expected => Some(format!("{name} changes results")),
            Ok(_) => None,
        }
    })
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn random_kernels_execute_the_same_before_and_after_every_pass() {
    let first = number("TILE_FUZZ_SEED", 1);
    for seed in first..first + number("TILE_FUZZ_KERNELS", 60) {
        let steps = 4 + (seed % 40) as usize;
        if wrong(&generate(seed, steps)).is_none() {
            continue;
        }
        let func = shrink(generate(seed, steps));
        let wrong = wrong(&func).expect("shrinking keeps what is wrong");
        panic!("seed {seed}: {wrong}\n{func}");
    }
}

/// A smaller kernel with which something is wrong as well.
fn shrink(mut func: Function) -> Function {
    loop {
        let before = func.walk().len();
        for inst in func.walk().into_iter().rev() {
            if !func.walk().contains(&inst) {
                continue;
            }
            let mut smaller = func.clone();
            simplify(&mut smaller, inst);
            passes::eliminate_dead_code(&mut smaller);
            if smaller.walk().len() < func.walk().len() && wrong(&smaller).is_some() {
                func = smaller;
            }
        }
        if func.walk().len() == before {
            return func;
        }
    }
}

/// Makes an instruction a constant, or removes it if it only has effects.
fn simplify(func: &mut Function, inst: ir::Inst) {
    let results = func.insts[inst].results.clone();
    match results.as_slice() {
        [] if !func.insts[inst].opcode.is_terminator() => {
            for region in func.regions.keys().collect::<Vec<_>>() {
                func.regions[region].insts.retain(|&kept| kept != inst);
            }
        }
        &[result] if func.ty(result).number().is_some() => {
            let data = &mut func.insts[inst];
            data.opcode = Opcode::Constant;
            data.operands.clear();
            data.regions.clear();
            data.attrs = Constant { bits: 1 }.into();
        }
        _ => {}
    }
}
