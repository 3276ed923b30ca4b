//! Paths of files as texts, and modules that code loads by them: `importlib.util.spec_from_file_location`.

use crate::hir::Name;
use crate::host::Host;
use crate::host::code::arguments::Args;
use crate::host::value::Value;
use crate::project::Resolution;
use crate::source::FileId;

/// How the names of files of Python end.
const ENDING: &str = ".py";

/// The attribute of what is to be loaded that says where it is.
const ORIGIN: &str = "origin";

impl Host<'_> {
    /// `__file__` in a file.
    pub(crate) fn path_of(&self, file: FileId) -> Value {
        Value::Str(self.sources.path(file).into())
    }

    /// What a function of `os.path` makes of texts, or one that loads modules by their paths, in a file; `None` for
    /// others.
    pub(crate) fn of_paths(
        &mut self,
        file: FileId,
        path: &[Name],
        args: &Args<'_>,
    ) -> Option<Value> {
        let path: Vec<&str> = path.iter().map(|name| &**name).collect();
        match path[..] {
            ["os", "path", name] => {
                let text = |value: &&Value| match value {
                    Value::Str(text) => Some(Name::clone(text)),
                    _ => None,
                };
                let texts: Option<Vec<Name>> = args.positional().iter().map(text).collect();
                made_of(name, &texts?)
            }
            ["importlib", "util", "spec_from_file_location"] => {
                let origin = args.get(1, "location")?.clone();
                let made = self.object();
                if let Value::Object(spec) = made {
                    self.replace_attribute(spec, &ORIGIN.into(), origin);
                    self.replace_attribute(spec, &"name".into(), args.get(0, "name")?.clone());
                }
                Some(made)
            }
            ["importlib", "util", "module_from_spec"] => {
                let Value::Object(spec) = args.get(0, "spec")? else { return None };
                let Value::Str(origin) = self.object_attribute(*spec, ORIGIN) else { return None };
                let found = self.file_at(file, &origin)?;
                Some(Value::Named(Resolution::File(found)))
            }
            _ => None,
        }
    }

    /// The file at a path, by where it lies from another one.
    fn file_at(&self, from: FileId, path: &str) -> Option<FileId> {
        let here = self.sources.path(from);
        let here: Vec<&str> = parts(&here).collect();
        let folder = here.split_last()?.1;
        let there: Vec<&str> = parts(path.strip_suffix(ENDING)?).collect();
        let shared = folder.iter().zip(&there).take_while(|(here, there)| here == there).count();
        let level = u32::try_from(folder.len() - shared + 1).ok()?;
        let rest: Vec<Name> = there[shared..].iter().map(|part| Name::from(*part)).collect();
        self.sources.import(from, level, &rest)
    }
}

/// What a function of `os.path` makes of paths. Those that are not absolute stay so: they lie where the code runs.
fn made_of(name: &str, paths: &[Name]) -> Option<Value> {
    let text = |text: String| Value::Str(text.into());
    match (name, paths) {
        ("abspath" | "normpath" | "realpath", [path]) => Some(Value::Str(path.clone())),
        ("basename", [path]) => Some(text(path.rsplit('/').next()?.to_owned())),
        ("dirname", [path]) => {
            Some(text(path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned()))
        }
        ("join", [first, rest @ ..]) => {
            let joined = rest.iter().fold(first.to_string(), |joined, part| {
                match part.starts_with('/') || joined.is_empty() {
                    true => part.to_string(),
                    false => format!("{}/{part}", joined.trim_end_matches('/')),
                }
            });
            Some(text(joined))
        }
        _ => None,
    }
}

/// The names in a path.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}
