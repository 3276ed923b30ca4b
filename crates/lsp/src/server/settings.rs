//! Settings: one table, read from whatever the client or a project file says.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tile_compiler::analysis::Lints;
use tile_compiler::builtins::TritonVersion;
use tile_compiler::diagnostic::{Code, Severity};
use tile_compiler::eval::Rules;
use tile_compiler::gpu::arch::Arch;
use tile_worker::protocol::Device;

/// What the user chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Target architecture; `None` asks the local device.
    pub(crate) arch: Option<String>,
    /// Whose rules hold.
    pub(crate) triton: Rules,
    /// Where kernels run.
    pub(crate) device: Device,
    /// The assembler; `None` searches.
    pub(crate) ptxas: Option<PathBuf>,
    /// A Python interpreter or environment; `None` searches.
    pub(crate) python: Option<PathBuf>,
    /// Shape and dtype after assignments.
    pub(crate) type_hints: bool,
    /// Values after constexpr parameters.
    pub(crate) constexpr_hints: bool,
    /// Names of parameters before arguments.
    pub(crate) parameter_hints: bool,
    /// Lenses that run and time.
    pub(crate) run_lenses: bool,
    /// The lens that shows PTX.
    pub(crate) ir_lens: bool,
    /// The lens that shows resources.
    pub(crate) resources_lens: bool,
    /// The lens that shows the active specialization.
    pub(crate) specialization_lens: bool,
    /// Imports of which files are edited when the files move.
    pub(crate) moved_imports: MovedImports,
    /// Findings are told of files that are not open, where the client asks.
    pub(crate) workspace_diagnostics: bool,
    /// Levels of diagnostics.
    pub(crate) lints: Lints,
}

/// Files whose imports are edited when they move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum MovedImports {
    /// `.tile` files: no Python server knows them.
    #[default]
    Tile,
    /// Python files as well.
    All,
    /// None.
    Off,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            arch: None,
            triton: Rules::default(),
            device: Device::Auto,
            ptxas: None,
            python: None,
            type_hints: true,
            constexpr_hints: true,
            parameter_hints: true,
            run_lenses: true,
            ir_lens: true,
            resources_lens: true,
            specialization_lens: true,
            moved_imports: MovedImports::default(),
            workspace_diagnostics: true,
            lints: Lints::default(),
        }
    }
}

/// One setting: what it means, what it takes, and how it is taken over. Documentation and the
/// extension's settings are made from this table.
#[derive(Debug)]
pub struct Setting {
    /// Its name, with a dot between levels.
    pub name: &'static str,
    /// What it does, for people, in Markdown.
    pub doc: &'static str,
    /// What values it takes, for the message about a wrong one.
    takes: &'static str,
    /// The form of its values.
    form: Form,
    /// It names something on one machine, so workspaces that are shared do not set it.
    of_machine: bool,
    /// Takes a value over; `None` when it is wrong.
    set: fn(&mut Settings, &Value) -> Option<()>,
}

/// The form of a setting's values.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// On or off; the default.
    Switch(bool),
    /// A text with a default; the pattern that it fits, and what to say of one that does not.
    Text(&'static str, (&'static str, &'static str)),
    /// The path of a file or folder, or the name of a program; empty for none.
    Path,
    /// One of these; the first is the default, and empty for none of them.
    Choice(&'static [&'static str]),
    /// Levels of diagnostics by code.
    Levels,
}

/// A setting that is on unless it is switched off.
macro_rules! switch {
    ($name:literal, $doc:literal, $field:ident) => {
        Setting {
            name: $name,
            doc: $doc,
            takes: "true or false",
            form: Form::Switch(true),
            of_machine: false,
            set: |settings, value| {
                settings.$field = value.as_bool()?;
                Some(())
            },
        }
    };
}

/// Every setting.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "arch",
        doc: "Architecture that kernels are compiled for, such as `sm_90a`. Empty: that of the local GPU, else `sm_90a`.",
        takes: "an architecture that is supported (sm_75 and later), such as \"sm_90a\", or \"\"",
        form: Form::Text(
            "",
            (
                "^(sm_(7[5-9]|8[0-9]|(9|1[0-9])[0-9]a?))?$",
                "An architecture from sm_75 on, such as sm_90a, or nothing for the local device's.",
            ),
        ),
        of_machine: false,
        set: |settings, value| {
            let arch: Arch = value.as_str()?.parse().ok()?;
            settings.arch = Some(arch.to_string());
            Some(())
        },
    },
    Setting {
        name: "triton",
        doc: "Version of Triton whose rules hold. Empty: the newest, and the one before for a kernel that only it accepts.",
        takes: "\"3.6\" or \"3.9\", in quotes",
        form: Form::Choice(&["", "3.6", "3.9"]),
        of_machine: false,
        set: |settings, value| {
            settings.triton = Rules::Only(TritonVersion::from_name(value.as_str()?)?);
            Some(())
        },
    },
    Setting {
        name: "device",
        doc: "Where kernels run: `auto`, `cpu` or `cuda:N`.",
        takes: "\"auto\", \"cpu\" or \"cuda:N\"",
        form: Form::Text("auto", ("^(auto|cpu|cuda:[0-9]+)$", "auto, cpu or cuda:N")),
        of_machine: true,
        set: |settings, value| {
            settings.device = value.as_str()?.parse().ok()?;
            Some(())
        },
    },
    Setting {
        name: "ptxas",
        doc: "Path of NVIDIA's assembler `ptxas`. Empty: searched on `PATH`, in `CUDA_HOME` and in the Python environment.",
        takes: "a path, or \"\"",
        form: Form::Path,
        of_machine: true,
        set: |settings, value| {
            settings.ptxas = Some(PathBuf::from(value.as_str()?));
            Some(())
        },
    },
    Setting {
        name: "python",
        doc: "Python interpreter or environment whose packages are read (never run) to resolve imports. Empty: searched.",
        takes: "a path, or \"\"",
        form: Form::Path,
        of_machine: true,
        set: |settings, value| {
            settings.python = Some(PathBuf::from(value.as_str()?));
            Some(())
        },
    },
    switch!("inlayHints.types", "Show shape and dtype after assignments in kernels.", type_hints),
    switch!(
        "inlayHints.constexprs",
        "Show the active specialization's value after a constexpr parameter.",
        constexpr_hints
    ),
    switch!(
        "inlayHints.parameterNames",
        "Show the names of parameters before literals that are passed by position.",
        parameter_hints
    ),
    switch!("codeLens.run", "Show Run, Bench and Tune above kernels and scenarios.", run_lenses),
    switch!("codeLens.ir", "Show PTX above kernels.", ir_lens),
    switch!(
        "codeLens.resources",
        "Show registers, shared memory, spills and occupancy above kernels, and how they changed with the last edit.",
        resources_lens
    ),
    switch!(
        "codeLens.specialization",
        "Show above kernels what they are looked at for: values of constexpr parameters, and where those come from.",
        specialization_lens
    ),
    Setting {
        name: "imports.onMove",
        doc: "Which files keep their imports right when the editor moves or renames them: `tile` for `.tile` files alone, since many Python servers look after Python files, `all`, or `off`.",
        takes: "\"tile\", \"all\" or \"off\"",
        form: Form::Choice(&["tile", "all", "off"]),
        of_machine: false,
        set: |settings, value| {
            settings.moved_imports = match value.as_str()? {
                "tile" => MovedImports::Tile,
                "all" => MovedImports::All,
                "off" => MovedImports::Off,
                _ => return None,
            };
            Some(())
        },
    },
    switch!(
        "diagnostics.workspace",
        "Check kernels of the whole workspace, not of open files alone, where the editor asks for them.",
        workspace_diagnostics
    ),
    Setting {
        name: "lints",
        doc: "Levels of diagnostics by code or family, for example `{ \"perf/uncoalesced\": \"off\" }`.",
        takes: "an object from codes to \"error\", \"warning\", \"info\", \"hint\" or \"off\"",
        form: Form::Levels,
        of_machine: false,
        set: |settings, value| {
            for (code, level) in value.as_object()? {
                if let Some(level) = wanted_level(code, level) {
                    settings.lints.set(code.clone(), level);
                }
            }
            Some(())
        },
    },
];

impl Setting {
    /// Its default.
    pub fn default_value(&self) -> Value {
        match self.form {
            Form::Switch(on) => json!(on),
            Form::Text(text, _) => json!(text),
            Form::Path => json!(""),
            Form::Choice(choices) => json!(choices.first()),
            Form::Levels => json!({}),
        }
    }

    /// How Visual Studio Code describes it.
    pub fn property(&self) -> Value {
        let kind = match self.form {
            Form::Switch(_) => "boolean",
            Form::Text(..) | Form::Path | Form::Choice(_) => "string",
            Form::Levels => "object",
        };
        let mut property = json!({ "type": kind, "default": self.default_value() });
        match self.form {
            Form::Text(_, (pattern, otherwise)) => {
                property["pattern"] = json!(pattern);
                property["patternErrorMessage"] = json!(otherwise);
            }
            Form::Choice(choices) => property["enum"] = json!(choices),
            Form::Levels => {
                property["additionalProperties"] = json!({ "enum": LEVELS });
            }
            _ => {}
        }
        let scope = if self.of_machine { "machine-overridable" } else { "resource" };
        property["scope"] = json!(scope);
        property["markdownDescription"] = json!(self.doc);
        property
    }

    /// What is wrong with members of a value that is right otherwise.
    fn wrong_members(&self, value: &Value) -> Vec<Wrong> {
        let members = match self.form {
            Form::Levels => value.as_object(),
            _ => None,
        };
        let wrong = members.into_iter().flatten().filter_map(|(code, level)| {
            let (setting, name) = (self.name, format!("{}.{code}", self.name));
            if !Code::is_any_called(code) {
                let known = Code::ALL.iter().map(|code| code.name());
                let hint = similar(code, known).map(|known| format!("; did you mean `{known}`?"));
                let hint = hint.unwrap_or_default();
                let message = format!(
                    "the setting tile.{setting} has `{code}`, which is no code or family{hint}"
                );
                return Some(Wrong { is_key: true, ..Wrong::new(name, message) });
            }
            let is_wrong = wanted_level(code, level).is_none();
            let levels = LEVELS.join(", ");
            let message = format!(
                "the setting tile.{setting} has {level} for `{code}`, which is not one of {levels}"
            );
            is_wrong.then(|| Wrong::new(name, message))
        });
        wrong.collect()
    }

    /// Its row in the documentation: name, default, meaning.
    pub fn row(&self) -> String {
        format!("| `{}` | `{}` | {} |", self.name, self.default_value(), self.doc)
    }
}

/// What levels of diagnostics are called.
const LEVELS: [&str; 5] = ["error", "warning", "info", "hint", "off"];

/// The level that a code is to have, where both are right.
fn wanted_level(code: &str, value: &Value) -> Option<Option<Severity>> {
    level(value.as_str()?).filter(|_| Code::is_any_called(code))
}

/// The name most like `name`, if one is close.
fn similar<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let scored = known.map(|known| (strsim::jaro_winkler(name, known), known));
    let close = scored.filter(|(score, _)| *score > 0.85);
    close.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}

/// Something wrong with what one source of settings says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// Which source, of those that were read.
    pub(crate) source: usize,
    /// The setting, or the member of one, by its dotted name; empty for all of the source.
    pub(crate) name: String,
    /// The name itself is wrong, not the value.
    pub(crate) is_key: bool,
    /// What is wrong and what to do, in a sentence.
    pub(crate) message: String,
}

impl Wrong {
    /// A wrong value of the first source.
    fn new(name: impl Into<String>, message: String) -> Wrong {
        Wrong { source: 0, name: name.into(), is_key: false, message }
    }
}

/// What a source of settings has that is no setting.
pub(crate) fn unknown(source: &Value) -> Vec<Wrong> {
    let mut found = Vec::new();
    add_unknown(source, "", &mut found);
    found
}

/// As [`unknown`], of an editor, whose settings may hold some of its extension's own: only what
/// reads like a setting.
pub(crate) fn misspelt(editor: &Value) -> Vec<Wrong> {
    let mut found = unknown(editor);
    found.retain(|wrong| similar(&wrong.name, names()).is_some());
    found
}

fn names() -> impl Iterator<Item = &'static str> + Clone {
    SETTINGS.iter().map(|setting| setting.name)
}

fn add_unknown(value: &Value, around: &str, found: &mut Vec<Wrong>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let name = if around.is_empty() { key.clone() } else { format!("{around}.{key}") };
        if names().any(|known| known == name) {
            continue;
        }
        let inside = names()
            .filter(|known| known.strip_prefix(&*name).is_some_and(|rest| rest.starts_with('.')));
        let inside: Vec<&str> = inside.collect();
        if !inside.is_empty() {
            match value {
                Value::Object(_) => add_unknown(value, &name, found),
                Value::Null => {}
                other => {
                    let members = inside.join(", ");
                    let message =
                        format!("tile.{name} is {other}, which sets nothing; there are {members}");
                    found.push(Wrong::new(name, message));
                }
            }
            continue;
        }
        let hint = match similar(&name, names()) {
            Some(known) => format!("did you mean tile.{known}?"),
            None => format!("there are {}", names().collect::<Vec<_>>().join(", ")),
        };
        let message = format!("there is no setting tile.{name}; {hint}");
        found.push(Wrong { is_key: true, ..Wrong::new(name, message) });
    }
}

/// Makes relative paths of files and folders that lie below `folder` absolute.
pub(crate) fn resolve_paths(source: &mut Value, folder: &Path) {
    for setting in SETTINGS.iter().filter(|setting| matches!(setting.form, Form::Path)) {
        let Some(value) = source.get_mut(setting.name) else { continue };
        let path = value.as_str().filter(|text| !text.is_empty()).map(|text| folder.join(text));
        if let Some(path) = path.filter(|path| path.exists()) {
            *value = json!(path);
        }
    }
}

fn level(text: &str) -> Option<Option<Severity>> {
    Some(match text {
        "error" => Some(Severity::Error),
        "warning" => Some(Severity::Warning),
        "info" => Some(Severity::Info),
        "hint" => Some(Severity::Hint),
        "off" => None,
        _ => return None,
    })
}

impl Settings {
    /// Settings of which later sources override earlier ones, and what is wrong with them. Editors
    /// send the defaults of what nobody set, so an empty text counts as absent, and levels of
    /// diagnostics add up.
    pub(crate) fn read<'v>(sources: impl IntoIterator<Item = &'v Value>) -> (Settings, Vec<Wrong>) {
        let mut settings = Settings::default();
        let mut problems = Vec::new();
        for (number, source) in sources.into_iter().enumerate() {
            let (known, mut wrong) = (problems.len(), Vec::new());
            if says_something(source) && !source.is_object() {
                let message = format!(
                    "the settings of tile are {source}, which is no object with members such as \
                     \"arch\"; the defaults are used"
                );
                wrong.push(Wrong::new("", message));
            }
            for setting in SETTINGS {
                let Some(value) = member(source, setting.name) else { continue };
                let mut changed = settings.clone();
                match (setting.set)(&mut changed, value) {
                    Some(()) => {
                        settings = changed;
                        wrong.extend(setting.wrong_members(value));
                    }
                    None => {
                        let (name, takes) = (setting.name, setting.takes);
                        let message = format!(
                            "the setting tile.{name} is {value}, which is not {takes}; the default \
                             is used"
                        );
                        wrong.push(Wrong::new(name, message));
                    }
                }
            }
            problems.extend(wrong);
            problems[known..].iter_mut().for_each(|wrong| wrong.source = number);
        }
        (settings, problems)
    }

    /// What the settings of these sources name that is not on this machine; `site_packages` and
    /// `ptxas` are what was found for them.
    pub(crate) fn missing(
        &self,
        sources: &[&Value],
        site_packages: Option<&Path>,
        ptxas: Option<&Path>,
    ) -> Vec<Wrong> {
        let named = [
            ("python", &self.python, site_packages, "where no packages of Python lie"),
            ("ptxas", &self.ptxas, ptxas, "which is no program"),
        ];
        let missing = named.into_iter().filter_map(|(name, chosen, found, what)| {
            let chosen = chosen.as_ref().filter(|_| found.is_none())?;
            let source = sources.iter().rposition(|source| member(source, name).is_some())?;
            let shown = chosen.display();
            let message = format!("the setting tile.{name} is \"{shown}\", {what}");
            Some(Wrong { source, ..Wrong::new(name, message) })
        });
        missing.collect()
    }
}

/// Whether a source says anything. Some editors send an empty list for an empty table.
pub(crate) fn says_something(source: &Value) -> bool {
    !source.is_null() && source.as_array().is_none_or(|items| !items.is_empty())
}

/// The member that a dotted name means; `null` and empty texts count as absent.
fn member<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    let nested = || name.split('.').try_fold(value, |value, part| value.get(part));
    let found = value.get(name).or_else(nested)?;
    Some(found).filter(|value| !value.is_null() && value.as_str() != Some(""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sentences(wrong: &[Wrong]) -> String {
        let sentences: Vec<&str> = wrong.iter().map(|wrong| &*wrong.message).collect();
        sentences.join("\n")
    }

    #[test]
    fn an_editor_may_have_settings_of_its_own() {
        let editor = json!({
            "server": { "path": "tile", "env": {} },
            "trace": { "server": "off" },
            "inlayHints": { "type": true },
            "codeLens": true,
        });
        expect_test::expect![[r#"
            there is no setting tile.inlayHints.type; did you mean tile.inlayHints.types?
            tile.codeLens is true, which sets nothing; there are codeLens.run, codeLens.ir, codeLens.resources, codeLens.specialization"#]]
        .assert_eq(&sentences(&misspelt(&editor)));
    }

    #[test]
    fn later_sources_override_and_wrong_values_are_named() {
        let project = json!({ "arch": "sm_80", "lints": { "name": "off" } });
        let editor = json!({ "arch": "", "triton": 7, "codeLens": { "run": false } });
        let (settings, problems) = Settings::read([&project, &editor]);
        assert_eq!(settings.arch.as_deref(), Some("sm_80"), "an empty text sets nothing");
        assert!(!settings.run_lenses);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].message.contains("tile.triton is 7"), "{problems:?}");
        assert_eq!((problems[0].source, &*problems[0].name), (1, "triton"));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_right() {
        let wrong = json!({
            "arch": "sm_ninety",
            "device": "gpu",
            "codeLens": { "run": "no" },
            "lints": { "perf/uncoalessed": "off", "mask": "loud", "race": "off" },
        });
        let (settings, problems) = Settings::read([&wrong]);
        expect_test::expect![[r#"
            the setting tile.arch is "sm_ninety", which is not an architecture that is supported (sm_75 and later), such as "sm_90a", or ""; the default is used
            the setting tile.device is "gpu", which is not "auto", "cpu" or "cuda:N"; the default is used
            the setting tile.codeLens.run is "no", which is not true or false; the default is used
            the setting tile.lints has `perf/uncoalessed`, which is no code or family; did you mean `perf/uncoalesced`?
            the setting tile.lints has "loud" for `mask`, which is not one of error, warning, info, hint, off"#]]
        .assert_eq(&sentences(&problems));
        let mut race = Lints::default();
        race.set("race", None);
        assert_eq!(settings.lints, race, "what is right holds all the same");
    }

    #[test]
    fn what_is_no_setting_is_told_of_project_files() {
        let known =
            json!({ "arch": "sm_80", "inlayHints": { "types": false }, "codeLens.run": true });
        assert!(unknown(&known).is_empty());
        let project = json!({ "archh": "sm_80", "inlayHints": { "type": false }, "q": 1 });
        expect_test::expect![[r#"
            there is no setting tile.archh; did you mean tile.arch?
            there is no setting tile.inlayHints.type; did you mean tile.inlayHints.types?
            there is no setting tile.q; there are arch, triton, device, ptxas, python, inlayHints.types, inlayHints.constexprs, inlayHints.parameterNames, codeLens.run, codeLens.ir, codeLens.resources, codeLens.specialization, imports.onMove, diagnostics.workspace, lints"#]]
        .assert_eq(&sentences(&unknown(&project)));
    }
}
