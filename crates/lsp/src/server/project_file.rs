//! Project files: what `tile.toml`, or the table `[tool.tile]` of `pyproject.toml`, says, and where.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tile_compiler::analysis::Lints;
use tile_compiler::builtins::TritonVersion;
use tile_compiler::diagnostic::Severity;
use tile_compiler::source::{LineIndex, TextRange};
use tile_worker::ptxas;
use toml::de::{DeTable, DeValue};

use crate::environment;
use crate::files::{Disk, FileSystem, source_text};
use crate::server::settings::{self, Settings, Wrong};

/// Something wrong with settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where a project file says it; `None` for what the editor says.
    pub(crate) place: Option<Place>,
    /// An error when nothing of the file counts, else a warning.
    pub(crate) severity: Severity,
    /// What is wrong and what to do, in a sentence.
    pub(crate) message: String,
}

/// A stretch of a project file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    /// The whole text of the file.
    pub(crate) text: Arc<str>,
    pub(crate) range: TextRange,
}

impl Problem {
    /// Where it stands: by file and place, what has none first.
    fn sort_key(&self) -> Option<(&Path, u32)> {
        self.place.as_ref().map(|place| (&*place.path, place.range.start))
    }

    /// Sorts problems, and keeps each once: what holds in several folders is read for each of them.
    pub(crate) fn settle(problems: &mut Vec<Problem>) {
        problems.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
        problems.dedup();
    }

    /// The message after its place, lines and columns from 1, as somebody in `folder` names it.
    pub fn seen_from(&self, folder: &Path) -> String {
        let Some(Place { path, text, range }) = &self.place else { return self.message.clone() };
        let path = path.strip_prefix(folder).unwrap_or(path).display();
        let at = LineIndex::new(text).line_col(text, range.start);
        format!("{path}:{}:{}: {}", at.line + 1, at.col + 1, self.message)
    }
}

/// What a project file says of Tile.
#[derive(Debug, Clone)]
pub(crate) struct ProjectFile {
    path: PathBuf,
    text: Arc<str>,
    /// Settings by name; nothing when the file is broken.
    pub(crate) said: Value,
    /// Where keys and values stand, by dotted name.
    places: BTreeMap<String, Entry>,
    /// What is wrong with it as a file, and what it has that is no setting.
    pub(crate) problems: Vec<Problem>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    key: TextRange,
    value: TextRange,
}

impl ProjectFile {
    /// The file in `folder` that counts: `tile.toml`, else `pyproject.toml` if it speaks of Tile.
    pub(crate) fn in_folder(files: &dyn FileSystem, folder: &Path) -> Option<ProjectFile> {
        let shared = ProjectFile::shared(files, folder.join("pyproject.toml"));
        let Some(mut own) = ProjectFile::own(files, folder.join("tile.toml")) else {
            return shared;
        };
        own.problems.extend(shared.and_then(|shared| shared.overruled()));
        Some(own)
    }

    /// The nearest one in `folder` or above, and the folder that it is in.
    pub(crate) fn nearest(files: &dyn FileSystem, folder: &Path) -> Option<(PathBuf, ProjectFile)> {
        let mut folders = folder.ancestors();
        folders.find_map(|at| Some((at.to_owned(), ProjectFile::in_folder(files, at)?)))
    }

    /// A `tile.toml`, all of which is about Tile.
    fn own(files: &dyn FileSystem, path: PathBuf) -> Option<ProjectFile> {
        let bytes = match files.bytes(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => {
                let mut file = ProjectFile::empty(path, "");
                file.add_unreadable(0, &format!("it cannot be read: {error}"));
                return Some(file);
            }
        };
        let read = ProjectFile::parsed(path, bytes, |file, mut root| {
            for table in ["tool", "tile"] {
                let Some((key, _)) = root.remove_entry(table) else { continue };
                let message = format!(
                    "`{table}` is no setting: in tile.toml, settings stand at the top level, without [tool.tile]"
                );
                file.add(range(&key.span()), Severity::Warning, message);
            }
            file.take(&root);
        });
        Some(read.unwrap_or_else(|broken| *broken))
    }

    /// A `pyproject.toml`; `None` when it does not speak of Tile.
    fn shared(files: &dyn FileSystem, path: PathBuf) -> Option<ProjectFile> {
        let bytes = files.bytes(&path).ok()?;
        let read = ProjectFile::parsed(path, bytes, |file, root| {
            if let Some((key, _)) = root.get_key_value("tile") {
                let message =
                    "nothing reads the table `tile` of pyproject.toml; name it [tool.tile]";
                file.add(range(&key.span()), Severity::Warning, message.to_owned());
            }
            let tool = root.get("tool").and_then(|tool| tool.get_ref().as_table());
            let Some((key, value)) = tool.and_then(|tool| tool.get_key_value("tile")) else {
                return;
            };
            file.places.insert(String::new(), Entry::new(&key.span(), &value.span()));
            match value.get_ref().as_table() {
                Some(table) => file.take(table),
                None => {
                    let message = "`tool.tile` is a table of settings, [tool.tile]".to_owned();
                    file.add(range(&value.span()), Severity::Warning, message);
                }
            }
        });
        // What others say there is not for us to judge.
        match read {
            Ok(file) => (!file.places.is_empty() || !file.problems.is_empty()).then_some(file),
            Err(broken) => {
                let mut lines = broken.text.lines().map(str::trim_start);
                lines.any(|line| line.starts_with("[tool.tile")).then_some(*broken)
            }
        }
    }

    /// The file with what `read` makes of its root; as an error, one that is no text or no TOML.
    fn parsed(
        path: PathBuf,
        bytes: Vec<u8>,
        read: impl FnOnce(&mut ProjectFile, DeTable<'_>),
    ) -> Result<ProjectFile, Box<ProjectFile>> {
        let (mut file, text) = ProjectFile::decoded(path, bytes)?;
        let (root, errors) = DeTable::parse_recoverable(&text);
        if let Some(error) = errors.first() {
            file.add_broken(error);
            return Err(file.into());
        }
        read(&mut file, root.into_inner());
        Ok(file)
    }

    fn empty(path: PathBuf, text: &str) -> ProjectFile {
        let (places, problems) = Default::default();
        ProjectFile { path, text: text.into(), said: Value::Null, places, problems }
    }

    /// The file and its text; as an error, the file that cannot be read as text.
    fn decoded(path: PathBuf, bytes: Vec<u8>) -> Result<(ProjectFile, String), Box<ProjectFile>> {
        let valid = std::str::from_utf8(&bytes).map_or_else(|error| error.valid_up_to(), str::len);
        let shown = String::from_utf8_lossy(&bytes).into_owned();
        let mut file = ProjectFile::empty(path, &shown);
        match source_text(bytes) {
            Ok(text) => Ok((file, text)),
            Err(why) => {
                file.add_unreadable(valid, &why);
                Err(file.into())
            }
        }
    }

    fn add_unreadable(&mut self, at: usize, why: &str) {
        let message = format!("{why}; none of its settings count");
        self.add(TextRange::new(at, at), Severity::Error, message);
    }

    fn add_broken(&mut self, error: &toml::de::Error) {
        let at = error.span().map(|span| range(&span)).unwrap_or_default();
        let message = format!("no valid TOML: {}; none of its settings count", error.message());
        self.add(at, Severity::Error, message);
    }

    fn add(&mut self, range: TextRange, severity: Severity, message: String) {
        let place = Some(Place { path: self.path.clone(), text: self.text.clone(), range });
        self.problems.push(Problem { place, severity, message });
    }

    /// Takes over the settings in a table.
    fn take(&mut self, table: &DeTable<'_>) {
        self.said = table_value(table, "", &mut self.places);
        let folder = self.path.parent().map(Path::to_owned).unwrap_or_default();
        settings::resolve_paths(&mut self.said, &folder);
        for wrong in settings::unknown(&self.said) {
            self.problems.push(self.problem(wrong));
        }
    }

    /// Something that is wrong with one of its settings, at its place.
    pub(crate) fn problem(&self, wrong: Wrong) -> Problem {
        let entry = self.places.get(&wrong.name);
        let range = entry.map(|entry| if wrong.is_key { entry.key } else { entry.value });
        let (path, text) = (self.path.clone(), self.text.clone());
        let place = Place { path, text, range: range.unwrap_or_default() };
        Problem { place: Some(place), severity: Severity::Warning, message: wrong.message }
    }

    /// What is wrong with a `pyproject.toml` whose settings do not count, since there is a
    /// `tile.toml`.
    fn overruled(self) -> Option<Problem> {
        let table = self.places.get("")?;
        let message = "the settings of tile.toml beside this file count instead; move these there";
        let place = Place { path: self.path, text: self.text, range: table.key };
        let message = message.to_owned();
        Some(Problem { place: Some(place), severity: Severity::Warning, message })
    }
}

impl Entry {
    fn new(key: &std::ops::Range<usize>, value: &std::ops::Range<usize>) -> Entry {
        Entry { key: range(key), value: range(value) }
    }
}

fn range(span: &std::ops::Range<usize>) -> TextRange {
    TextRange::new(span.start, span.end)
}

/// A table as settings have it; notes where its members stand.
fn table_value(table: &DeTable<'_>, name: &str, places: &mut BTreeMap<String, Entry>) -> Value {
    let members = table.iter().map(|(key, value)| {
        let member = key.get_ref().as_ref();
        let name = if name.is_empty() { member.to_owned() } else { format!("{name}.{member}") };
        places.insert(name.clone(), Entry::new(&key.span(), &value.span()));
        (member.to_owned(), plain_value(value.get_ref(), &name, places))
    });
    Value::Object(members.collect::<Map<_, _>>())
}

fn plain_value(value: &DeValue<'_>, name: &str, places: &mut BTreeMap<String, Entry>) -> Value {
    match value {
        DeValue::Table(table) => table_value(table, name, places),
        DeValue::Array(items) => {
            items.iter().map(|item| plain_value(item.get_ref(), name, places)).collect()
        }
        DeValue::String(text) => json!(text.as_ref()),
        DeValue::Boolean(on) => json!(on),
        // What JSON has no number for is a wrong value all the same, and is shown as it is written.
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| json!(number.as_str()), |number| json!(number)),
        DeValue::Float(number) => match number.as_str().parse::<f64>() {
            Ok(finite) if finite.is_finite() => json!(finite),
            _ => json!(number.as_str()),
        },
        DeValue::Datetime(at) => json!(at.to_string()),
    }
}

/// What a project's file says that holds for the command line too.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectRules {
    /// Target architecture.
    pub arch: Option<String>,
    /// Whose rules hold.
    pub triton: Option<TritonVersion>,
    /// A Python interpreter or environment.
    pub python: Option<PathBuf>,
    /// The assembler.
    pub ptxas: Option<PathBuf>,
    /// Levels of diagnostics.
    pub lints: Lints,
    /// What is wrong with the file.
    pub problems: Vec<Problem>,
}

/// The rules of the project around `folder`: of the nearest `tile.toml` or `pyproject.toml` with
/// a table for Tile, there or above.
pub fn project_rules(folder: &Path) -> ProjectRules {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let Some((_, file)) = ProjectFile::nearest(&Disk, &folder) else {
        return ProjectRules::default();
    };
    let (settings, mut wrong) = Settings::read([&file.said]);
    let around = [folder];
    let site_packages = environment::site_packages(settings.python.as_deref(), &around);
    let ptxas = settings.ptxas.as_deref();
    let found = ptxas.and_then(|chosen| ptxas::find(Some(chosen), site_packages.as_deref()));
    wrong.extend(settings.missing(&[&file.said], site_packages.as_deref(), found.as_deref()));
    let mut problems = file.problems.clone();
    problems.extend(wrong.into_iter().map(|wrong| file.problem(wrong)));
    Problem::settle(&mut problems);
    ProjectRules {
        arch: settings.arch,
        triton: settings.triton.only(),
        python: settings.python,
        ptxas: settings.ptxas,
        lints: settings.lints,
        problems,
    }
}
