//! Counts checks, keeps going after a failure, and ends with the one line that says it all.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use xshell::Cmd;

/// What one check counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

impl Counts {
    /// Counts a test.
    pub(crate) fn add(&mut self, passed: bool) {
        self.failed += usize::from(!passed);
        self.passed += usize::from(passed);
    }
}

/// The checks that have run.
pub(crate) struct Suite<'a> {
    only: Option<&'a str>,
    counts: Counts,
    failures: Vec<String>,
}

impl<'a> Suite<'a> {
    /// A suite that runs the checks whose name contains `only`.
    pub(crate) fn new(only: Option<&'a str>) -> Suite<'a> {
        Suite { only, counts: Counts::default(), failures: Vec::new() }
    }

    /// Whether a check of this name is wanted.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_none_or(|only| name.contains(only))
    }

    /// A check that passes or fails as a whole.
    pub(crate) fn check(&mut self, name: &str, check: impl FnOnce() -> Result<()>) {
        self.counted(name, || check().map(|()| Counts { passed: 1, failed: 0 }));
    }

    /// A check that counts its own tests; an error counts as one failure.
    pub(crate) fn counted(&mut self, name: &str, check: impl FnOnce() -> Result<Counts>) {
        if !self.wants(name) {
            return;
        }
        println!("\n=== {name}");
        let start = Instant::now();
        let counts = match check() {
            Ok(counts) => counts,
            Err(error) => {
                println!("{error:#}");
                Counts { passed: 0, failed: 1 }
            }
        };
        self.counts.passed += counts.passed;
        self.counts.failed += counts.failed;
        let seconds = start.elapsed().as_secs_f64();
        let Counts { passed, failed } = counts;
        if failed > 0 {
            self.failures.push(name.to_owned());
        }
        println!("--- {name}: {passed} ok, {failed} not ok, {seconds:.1} s");
    }

    /// Prints the closing line.
    pub(crate) fn finish(self) -> ExitCode {
        println!();
        for failure in &self.failures {
            println!("FAILED {failure}");
        }
        println!("{} passed, {} failed", self.counts.passed, self.counts.failed);
        if self.counts.failed == 0 && self.counts.passed > 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

/// Runs a command whose output is shown and kept; its status is left to the reader of the output.
pub(crate) fn tee(command: Cmd<'_>) -> Result<String> {
    let output = command.quiet().ignore_status().output()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    println!("{}", text.trim_end());
    Ok(text)
}
