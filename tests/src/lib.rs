//! The filetest engine.
//!
//! A filetest is a text file. Its first lines say what to do, `; test COMMAND ARGS`; then comes the
//! program; then, after a line `; ===`, what the command must give, each line after `; `.
//! `TILE_BLESS=1` writes what it gives instead.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Conclusion, Failed, Trial};

const MARKER: &str = "; ===";

/// One command that filetests may name: arguments and program in, text out.
pub type Command = fn(args: &[&str], program: &str) -> String;

/// Runs every file with `extension` under `root` with the commands given.
pub fn run(
    root: &Path,
    extension: &str,
    commands: &'static [(&'static str, Command)],
) -> Conclusion {
    let args = Arguments::from_args();
    let trials = files_below(root, extension).into_iter().map(|file| {
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        Trial::test(name, move || run_file(&file, commands))
    });
    libtest_mimic::run(&args, trials.collect())
}

/// The files with an extension below a folder, by name.
pub fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    collect(folder, extension, &mut files);
    files.sort();
    files
}

fn collect(folder: &Path, extension: &str, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, extension, files);
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
}

fn run_file(file: &Path, commands: &[(&str, Command)]) -> Result<(), Failed> {
    let text = fs::read_to_string(file)?;
    let (program, expected) = match text.split_once(MARKER) {
        Some((program, expected)) => (program, expected.trim_start_matches('\n')),
        None => (text.as_str(), ""),
    };
    let header = program
        .lines()
        .find_map(|line| line.strip_prefix("; test "))
        .ok_or("the file needs a line `; test COMMAND`")?;
    let words: Vec<&str> = header.split_whitespace().collect();
    let (name, args) = words.split_first().ok_or("`; test` needs a command")?;
    let command = commands.iter().find(|(known, _)| known == name);
    let (_, command) = command.ok_or_else(|| format!("no command `{name}`"))?;
    let found = comment(&command(args, program));
    if found == expected {
        return Ok(());
    }
    if std::env::var_os("TILE_BLESS").is_some() {
        fs::write(file, format!("{}{MARKER}\n{found}", program.trim_end().to_owned() + "\n"))?;
        return Ok(());
    }
    Err(format!("expected:\n{expected}\nfound:\n{found}\n(TILE_BLESS=1 accepts it)").into())
}

fn comment(text: &str) -> String {
    let lines = text.trim_end().lines();
    lines.map(|line| format!("; {line}").trim_end().to_owned() + "\n").collect()
}
