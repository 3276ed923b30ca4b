//! Settings: one table, read from whatever the client or a project file says.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tile_compiler::diagnostic::{Code, Lints, Severity};
use tile_compiler::eval::Rules;
use tile_compiler::specialization::TritonVersion;
use tile_worker::protocol::Device;

use crate::files::FileSystem;

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
    /// Lenses that run and time.
    pub(crate) run_lenses: bool,
    /// The lens that shows PTX.
    pub(crate) ir_lens: bool,
    /// The lens that shows resources.
    pub(crate) resources_lens: bool,
    /// Levels of diagnostics.
    pub(crate) lints: Lints,
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
            run_lenses: true,
            ir_lens: true,
            resources_lens: true,
            lints: Lints::default(),
        }
    }
}

/// One setting.
pub(crate) struct Setting {
    /// Its name, with a dot between levels.
    pub(crate) name: &'static str,
    /// What values it takes, for the message about a wrong one.
    takes: &'static str,
    /// Takes a value over; `None` when it is wrong.
    set: fn(&mut Settings, &Value) -> Option<()>,
}

/// Every setting.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        name: "arch",
        takes: "an architecture such as \"sm_90a\", or \"\"",
        set: |settings, value| {
            let text = value.as_str()?;
            let number = text.strip_prefix("sm_").unwrap_or_default();
            let is_arch = number.starts_with(|c: char| c.is_ascii_digit());
            settings.arch = Some(text.to_owned());
            is_arch.then_some(())
        },
    },
    Setting {
        name: "triton",
        takes: "\"3.6\" or \"3.9\"",
        set: |settings, value| {
            settings.triton = Rules::Only(TritonVersion::from_name(value.as_str()?)?);
            Some(())
        },
    },
    Setting {
        name: "device",
        takes: "\"auto\", \"cpu\" or \"cuda:N\"",
        set: |settings, value| {
            settings.device = value.as_str()?.parse().ok()?;
            Some(())
        },
    },
    Setting {
        name: "ptxas",
        takes: "a path, or \"\"",
        set: |settings, value| {
            settings.ptxas = Some(PathBuf::from(value.as_str()?));
            Some(())
        },
    },
    Setting {
        name: "python",
        takes: "a path, or \"\"",
        set: |settings, value| {
            settings.python = Some(PathBuf::from(value.as_str()?));
            Some(())
        },
    },
    Setting {
        name: "inlayHints.types",
        takes: "true or false",
        set: |settings, value| {
            settings.type_hints = value.as_bool()?;
            Some(())
        },
    },
    Setting {
        name: "inlayHints.constexprs",
        takes: "true or false",
        set: |settings, value| {
            settings.constexpr_hints = value.as_bool()?;
            Some(())
        },
    },
    Setting {
        name: "codeLens.run",
        takes: "true or false",
        set: |settings, value| {
            settings.run_lenses = value.as_bool()?;
            Some(())
        },
    },
    Setting {
        name: "codeLens.ir",
        takes: "true or false",
        set: |settings, value| {
            settings.ir_lens = value.as_bool()?;
            Some(())
        },
    },
    Setting {
        name: "codeLens.resources",
        takes: "true or false",
        set: |settings, value| {
            settings.resources_lens = value.as_bool()?;
            Some(())
        },
    },
    Setting {
        name: "lints",
        takes: "an object from codes to \"error\", \"warning\", \"info\", \"hint\" or \"off\"",
        set: |settings, value| {
            for (code, level) in value.as_object()? {
                let family = |known: &Code| known.name().split('/').next() == Some(code.as_str());
                if Code::from_name(code).is_none() && !Code::ALL.iter().any(family) {
                    return None;
                }
                settings.lints.set(code.clone(), self::level(level.as_str()?)?);
            }
            Some(())
        },
    },
];

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
    /// Settings of which later sources override earlier ones, and what is wrong with them, one
    /// sentence each. Editors send the defaults of what nobody set, so an empty text counts as
    /// absent, and levels of diagnostics add up.
    pub(crate) fn read<'v>(
        sources: impl IntoIterator<Item = &'v Value>,
    ) -> (Settings, Vec<String>) {
        let mut settings = Settings::default();
        let mut problems = Vec::new();
        for source in sources {
            for setting in SETTINGS {
                let Some(value) = member(source, setting.name) else { continue };
                let mut changed = settings.clone();
                match (setting.set)(&mut changed, value) {
                    Some(()) => settings = changed,
                    None => problems.push(format!(
                        "the setting tile.{} is {value}, which is not {}; the default is used",
                        setting.name, setting.takes
                    )),
                }
            }
        }
        (settings, problems)
    }
}

/// The member that a dotted name means; `null` and empty texts count as absent.
fn member<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    let nested = || name.split('.').try_fold(value, |value, part| value.get(part));
    let found = value.get(name).or_else(nested)?;
    Some(found).filter(|value| !value.is_null() && value.as_str() != Some(""))
}

/// What `tile.toml`, or else `pyproject.toml`, says in this folder; problems are sentences.
pub(crate) fn of_project(files: &dyn FileSystem, folder: &Path) -> Result<Option<Value>, String> {
    let tile = folder.join("tile.toml");
    if let Some(text) = files.read(&tile) {
        return parse(&tile, &text).map(Some);
    }
    let pyproject = folder.join("pyproject.toml");
    let Some(text) = files.read(&pyproject) else { return Ok(None) };
    if !text.contains("tool.tile") {
        return Ok(None);
    }
    let value = parse(&pyproject, &text)?;
    Ok(value.get("tool").and_then(|tool| tool.get("tile")).cloned())
}

/// What a project's file says that holds for the command line too.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectRules {
    /// Target architecture.
    pub arch: Option<String>,
    /// Whose rules hold.
    pub triton: Option<TritonVersion>,
    /// Levels of diagnostics.
    pub lints: Lints,
    /// What is wrong with the file, one sentence each.
    pub problems: Vec<String>,
}

/// The rules of the project around `folder`: of the nearest `tile.toml` or `pyproject.toml` with
/// a table for Tile, there or above.
pub fn project_rules(folder: &Path) -> ProjectRules {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    for folder in folder.ancestors() {
        match of_project(&crate::Disk, folder) {
            Ok(None) => {}
            Err(problem) => {
                return ProjectRules { problems: vec![problem], ..ProjectRules::default() };
            }
            Ok(Some(value)) => {
                let (settings, problems) = Settings::read([&value]);
                return ProjectRules {
                    arch: settings.arch,
                    triton: settings.triton.only(),
                    lints: settings.lints,
                    problems,
                };
            }
        }
    }
    ProjectRules::default()
}

fn parse(path: &Path, text: &str) -> Result<Value, String> {
    let failed = |error: String| format!("{} cannot be read: {error}", path.display());
    let value: toml::Value = toml::from_str(text).map_err(|error| failed(error.to_string()))?;
    serde_json::to_value(value).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn later_sources_override_and_wrong_values_are_named() {
        let project = json!({ "arch": "sm_80", "lints": { "name": "off" } });
        let editor = json!({ "arch": "", "triton": 7, "codeLens": { "run": false } });
        let (settings, problems) = Settings::read([&project, &editor]);
        assert_eq!(settings.arch.as_deref(), Some("sm_80"), "an empty text sets nothing");
        assert!(!settings.run_lenses);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].contains("tile.triton is 7"), "{problems:?}");
    }

    #[test]
    fn the_protocol_lists_every_setting() {
        let page = include_str!("../../../../docs/protocol.md");
        for setting in SETTINGS {
            let last = setting.name.rsplit('.').next().unwrap();
            assert!(
                page.contains(&format!("`{}`", setting.name))
                    || page.contains(&format!("`.{last}`")),
                "{} is not described",
                setting.name
            );
        }
    }
}
