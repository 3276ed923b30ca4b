//! The assembler: PTX to machine code, with a deadline, and what it reports.

use std::io::Read;
use std::iter::Sum;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use object::{Object, ObjectSection};
use thiserror::Error;
use tile_compiler::artifact::{LineMap, Resources};
use tile_compiler::gpu::limits::SmLimits;
use wait_timeout::ChildExt;

use crate::in_flight::{bytes_in_flight, bytes_loaded, writes_out_of_order};
use crate::loops::{self, Spent};

/// How long the assembler may take.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Why there is no machine code.
#[derive(Debug, Error)]
pub enum AssembleError {
    /// The assembler could not be started, or files could not be written.
    #[error("cannot run {}: {source}; check that it is executable, or run `tile doctor --fix`", path.display())]
    Io {
        /// The assembler.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It took longer than [`DEADLINE`].
    #[error("ptxas did not finish within {} s; a smaller tile compiles faster", DEADLINE.as_secs())]
    Timeout,
    /// It ended well and wrote nothing.
    #[error("{} wrote no machine code; check that it is NVIDIA's ptxas, or run `tile doctor --fix`", path.display())]
    Silent {
        /// The assembler.
        path: PathBuf,
    },
    /// It rejected the PTX.
    #[error("ptxas rejected the PTX for {arch}:\n{log}")]
    Rejected {
        /// The architecture.
        arch: String,
        /// Its messages.
        log: String,
    },
}

/// Machine code with the assembler's report.
#[derive(Debug, Clone)]
pub struct Assembled {
    /// The ELF image.
    pub cubin: Vec<u8>,
    /// The report.
    pub report: Report,
}

/// What `ptxas -v` reports of one entry function, per thread unless noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Registers.
    pub registers: u32,
    /// Bytes of stack frame.
    pub stack_bytes: u32,
    /// Bytes of spill stores.
    pub spill_store_bytes: u32,
    /// Bytes of spill loads.
    pub spill_load_bytes: u32,
    /// Bytes of static shared memory per CTA.
    pub static_shared_bytes: u32,
}

/// How much the assembler optimizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effort {
    /// Its default.
    Full,
    /// `-O1`: it schedules little, so that fewer values are in use at once.
    Little,
}

/// Lines of PTX from which on the assembler takes seconds, and may find no allocation of registers in the end.
const LONG: usize = 4000;

/// Assembles `ptx` for `arch` with line information. Where the assembler finds no allocation of
/// registers and keeps nearly everything in memory, the code is assembled with less optimization if
/// that spills less; what is long is assembled so beside the first attempt.
///
/// # Errors
/// When the assembler cannot be run, takes too long or rejects the text.
pub fn assemble(ptxas: &Path, ptx: &str, arch: &str) -> Result<Assembled, AssembleError> {
    let little = || assemble_with(ptxas, ptx, arch, Effort::Little);
    let is_long = ptx.lines().nth(LONG).is_some();
    std::thread::scope(|scope| {
        let beside = is_long.then(|| scope.spawn(little));
        let assembled = assemble_with(ptxas, ptx, arch, Effort::Full)?;
        if !assembled.report.is_without_allocation() {
            return Ok(assembled);
        }
        let other = match beside {
            Some(beside) => beside.join().unwrap_or_else(|panic| resume_unwind(panic)),
            None => little(),
        };
        match other {
            Ok(other) if other.report.spill_store_bytes < assembled.report.spill_store_bytes => {
                Ok(other)
            }
            _ => Ok(assembled),
        }
    })
}

fn assemble_with(
    ptxas: &Path,
    ptx: &str,
    arch: &str,
    effort: Effort,
) -> Result<Assembled, AssembleError> {
    let io = |source| AssembleError::Io { path: ptxas.to_owned(), source };
    let folder = tempfile::tempdir().map_err(io)?;
    let (input, output) = (folder.path().join("kernel.ptx"), folder.path().join("kernel.cubin"));
    std::fs::write(&input, ptx).map_err(io)?;
    let mut command = Command::new(ptxas);
    end_with_caller(&mut command);
    let mut child = command
        .args(["-lineinfo", "-v", "--gpu-name", arch])
        .args((effort == Effort::Little).then_some("-O1"))
        .arg(&input)
        .arg("-o")
        .arg(&output)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(io)?;
    let stderr = child.stderr.take();
    // Read while it runs: a full pipe would block it.
    let reader = std::thread::spawn(move || {
        let mut log = Vec::new();
        stderr.map(|mut stderr| stderr.read_to_end(&mut log));
        String::from_utf8_lossy(&log).into_owned()
    });
    let Some(status) = child.wait_timeout(DEADLINE).map_err(io)? else {
        // It may end by itself in between; there is nothing more to do about it either way.
        let _ = child.kill();
        let _ = child.wait();
        return Err(AssembleError::Timeout);
    };
    let log = reader.join().unwrap_or_default();
    if !status.success() {
        let log = match log.trim() {
            "" => format!("{} said nothing and ended with {status}", ptxas.display()),
            log => log.replace(&*input.to_string_lossy(), "kernel.ptx"),
        };
        return Err(AssembleError::Rejected { arch: arch.to_owned(), log });
    }
    let silent = |_| AssembleError::Silent { path: ptxas.to_owned() };
    let cubin = std::fs::read(&output).map_err(silent)?;
    Ok(Assembled { cubin, report: Report::parse(&log) })
}

impl AssembleError {
    /// With the messages about lines of the PTX that come from the source, under those lines, if
    /// there are any.
    pub(crate) fn at_sources(self, map: &LineMap) -> AssembleError {
        match self {
            AssembleError::Rejected { arch, log } => {
                let said: Vec<String> =
                    log.lines().filter_map(|line| at_source(line, map)).collect();
                let log = if said.is_empty() { log } else { said.join("\n") };
                AssembleError::Rejected { arch, log }
            }
            other => other,
        }
    }
}

/// A message such as `ptxas kernel.ptx, line 21; error   : ...` under the user's line.
fn at_source(message: &str, map: &LineMap) -> Option<String> {
    let (_, rest) = message.split_once(".ptx, line ")?;
    let (number, rest) = rest.split_once(';')?;
    let number: u32 = number.parse().ok()?;
    let (severity, text) = rest.split_once(':')?;
    let frame = map.frames(number.checked_sub(1)?).first()?;
    Some(format!(
        "line {}: {}: {} (line {number} of the PTX)",
        frame.line,
        severity.trim(),
        text.trim()
    ))
}

impl Assembled {
    /// Bytes of instructions, padding included; `None` when the image is no ELF file.
    pub(crate) fn code_bytes(&self) -> Option<u64> {
        let image = object::File::parse(&*self.cubin).ok()?;
        Some(code(&image).map(|section| section.size()).sum())
    }

    /// The instructions that a warp issues, by [`loops::work`]; `None` when the image is no ELF file.
    pub(crate) fn work(&self, capability: u32) -> Option<Spent> {
        self.summed(|code| loops::work(code, capability))
    }

    /// The cycles that a warp takes, by [`loops::cycles`]; `None` when the image is no ELF file.
    pub(crate) fn cycles(&self, capability: u32) -> Option<Spent> {
        self.summed(|code| loops::cycles(code, capability))
    }

    /// The sum of what `count` makes of each section of instructions.
    fn summed<T: Sum>(&self, count: impl Fn(&[u8]) -> T) -> Option<T> {
        let image = object::File::parse(&*self.cubin).ok()?;
        let of_section = |section: object::Section<'_, '_>| section.data().map(&count);
        Some(code(&image).filter_map(|section| of_section(section).ok()).sum())
    }

    /// The most bytes that loads of one thread have on their way at once; `None` when the image is no
    /// ELF file.
    pub(crate) fn bytes_in_flight(&self) -> Option<u32> {
        let image = object::File::parse(&*self.cubin).ok()?;
        let of_section = |section: object::Section<'_, '_>| section.data().map(bytes_in_flight);
        code(&image).filter_map(|section| of_section(section).ok()).max()
    }

    /// Narrow writes in another order than memory has, by [`writes_out_of_order`]; `None` when the image is no ELF file.
    pub(crate) fn writes_out_of_order(&self) -> Option<u32> {
        self.summed(writes_out_of_order)
    }

    /// The bytes of a thread's loads that begin only when others have arrived, in code without loops.
    pub(crate) fn bytes_left_for_later(&self) -> u32 {
        let loaded = self.summed(bytes_loaded).unwrap_or(0);
        loaded.saturating_sub(self.bytes_in_flight().unwrap_or(loaded))
    }
}

/// The sections that hold instructions.
fn code<'i>(image: &'i object::File<'_>) -> impl Iterator<Item = object::Section<'i, 'i>> {
    let is_code = |section: &object::Section<'_, '_>| {
        section.name().is_ok_and(|name| name.starts_with(".text."))
    };
    image.sections().filter(is_code)
}

/// Has the system end the process with the thread that starts it: a worker that is killed leaves
/// no assembler behind that runs on.
#[cfg(target_os = "linux")]
fn end_with_caller(command: &mut Command) {
    use std::os::unix::process::CommandExt;

    let caller = rustix::process::getpid();
    // SAFETY: between fork and exec this makes system calls, which neither allocate nor lock.
    unsafe {
        command.pre_exec(move || {
            let signal = rustix::process::Signal::KILL;
            rustix::process::set_parent_process_death_signal(Some(signal))?;
            // Who died before is not waited for.
            match rustix::process::getppid() == Some(caller) {
                true => Ok(()),
                false => Err(std::io::ErrorKind::BrokenPipe.into()),
            }
        });
    }
}

#[cfg(not(target_os = "linux"))]
fn end_with_caller(_: &mut Command) {}

impl Report {
    /// Whether it spills no more bytes than `other`, by stores and by loads.
    pub(crate) fn spills_no_more_than(&self, other: &Report) -> bool {
        self.spill_store_bytes <= other.spill_store_bytes
            && self.spill_load_bytes <= other.spill_load_bytes
    }

    /// Whether the assembler's search for registers failed: it then leaves each thread no more than
    /// what calls need, although there are more, and spills the rest.
    fn is_without_allocation(&self) -> bool {
        /// The registers that are left.
        const FEWEST: u32 = 32;
        self.registers <= FEWEST && self.spill_store_bytes > 0
    }

    /// Reads the log of `ptxas -v`. Where several functions are listed, the entry's numbers and
    /// the largest of the others count.
    pub fn parse(log: &str) -> Report {
        let mut report = Report::default();
        for line in log.lines() {
            let number = |suffix: &str| number_before(line, suffix).unwrap_or(0);
            let raise = |field: &mut u32, value: u32| *field = (*field).max(value);
            raise(&mut report.registers, number(" registers"));
            raise(&mut report.stack_bytes, number(" bytes stack frame"));
            raise(&mut report.spill_store_bytes, number(" bytes spill stores"));
            raise(&mut report.spill_load_bytes, number(" bytes spill loads"));
            raise(&mut report.static_shared_bytes, number(" bytes smem"));
        }
        report
    }

    /// The report as resources of a kernel of `num_warps` warps that asks for `dynamic_shared`
    /// bytes at launch.
    pub fn resources(
        &self,
        ptxas: &Path,
        arch: &str,
        num_warps: u32,
        dynamic_shared: u32,
    ) -> Option<Resources> {
        let shared_bytes = self.static_shared_bytes + dynamic_shared;
        let limits = SmLimits::of(arch)?;
        let (occupancy, limited_by) = limits.occupancy(num_warps, self.registers, shared_bytes);
        Some(Resources {
            registers: self.registers,
            shared_bytes,
            spill_load_bytes: self.spill_load_bytes,
            spill_store_bytes: self.spill_store_bytes,
            stack_bytes: self.stack_bytes,
            occupancy,
            limited_by,
            source: version(ptxas),
        })
    }
}

fn number_before(line: &str, suffix: &str) -> Option<u32> {
    let front = &line[..line.find(suffix)?];
    let digits = front.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    front[digits..].parse().ok()
}

/// `ptxas 12.9.86`: asked for once per process and assembler.
pub fn version(ptxas: &Path) -> String {
    static KNOWN: OnceLock<(PathBuf, String)> = OnceLock::new();
    let ask = || {
        let output = Command::new(ptxas).arg("--version").stdin(Stdio::null()).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let text = text.unwrap_or_default();
        let version = text.lines().find_map(|line| line.split(", V").nth(1));
        format!("ptxas {}", version.unwrap_or("of unknown version").trim())
    };
    let (path, version) = KNOWN.get_or_init(|| (ptxas.to_owned(), ask()));
    if path == ptxas { version.clone() } else { ask() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_assembler_ends_with_its_caller() {
        let caller = std::thread::spawn(|| {
            let mut command = Command::new("sleep");
            end_with_caller(&mut command);
            command.arg("60").spawn().expect("`sleep` runs")
        });
        let mut child = caller.join().expect("the caller does not panic");
        let ended =
            child.wait_timeout(Duration::from_secs(10)).expect("the child can be waited for");
        assert!(ended.is_some_and(|status| !status.success()), "{ended:?}");
    }

    #[test]
    fn the_report_is_read() {
        let log = "ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'softmax' for 'sm_90a'
ptxas info    : Function properties for softmax
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 53 registers, used 1 barriers, 16 bytes cumulative stack size, 32 bytes smem
ptxas info    : Compile time = 9.1 ms
";
        let expected = Report {
            registers: 53,
            stack_bytes: 16,
            spill_store_bytes: 8,
            spill_load_bytes: 12,
            static_shared_bytes: 32,
        };
        assert_eq!(Report::parse(log), expected);
    }

    /// What is assembled of PTX by a program that reports `full` of its usual effort and `little` of
    /// `-O1`, and fails where there is nothing to report. The code is the effort's name.
    #[cfg(unix)]
    fn assembled(full: &str, little: &str) -> Result<String, AssembleError> {
        let stand_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptxas.sh");
        let report = |effort: &str, said: &str| match said {
            "" => String::new(),
            said => format!("// {effort}: {said}\n"),
        };
        let ptx = report("full", full) + &report("little", little);
        let assembled = assemble(&stand_in, &ptx, "sm_90a")?;
        Ok(String::from_utf8_lossy(&assembled.cubin).into_owned())
    }

    #[test]
    #[cfg(unix)]
    fn what_is_long_is_assembled_with_less_effort_too() {
        let lines = "\n".repeat(LONG);
        let starved = format!("Used 32 registers, 4096 bytes spill stores{lines}");
        let little = "Used 255 registers, 16 bytes spill stores";
        assert_eq!(assembled(&starved, little).expect("both are there"), "little");
        let fits = format!("Used 200 registers{lines}");
        assert_eq!(assembled(&fits, little).expect("both are there"), "full");
    }

    #[test]
    #[cfg(unix)]
    fn less_effort_is_taken_where_registers_are_not_allocated_and_it_spills_less() {
        let starved = "Used 32 registers, 4096 bytes spill stores";
        let spilling = "Used 255 registers, 64 bytes spill stores";
        let better = assembled(starved, spilling).expect("both efforts end well");
        assert_eq!(better, "little");
        for (full, little) in [
            (starved, starved),
            (starved, ""),
            (spilling, "Used 255 registers, 0 bytes spill stores"),
            ("Used 32 registers, 0 bytes spill stores", "Used 24 registers"),
        ] {
            let taken = assembled(full, little).expect("the usual effort ends well");
            assert_eq!(taken, "full", "{full}; {little}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn what_is_no_assembler_is_told_from_rejected_text() {
        let ended = assembled("", "").expect_err("the program fails");
        assert!(ended.to_string().contains("said nothing and ended with exit status"), "{ended}");
        let silent =
            assemble(Path::new("/bin/true"), "", "sm_90a").expect_err("nothing is written");
        assert!(silent.to_string().contains("wrote no machine code"), "{silent}");
    }

    #[test]
    fn a_missing_assembler_is_an_error_that_says_what_to_do() {
        let error = assemble(Path::new("/nonexistent/ptxas"), "", "sm_90a").unwrap_err();
        assert!(error.to_string().contains("tile doctor --fix"), "{error}");
    }
}
