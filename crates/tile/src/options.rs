//! What holds for a whole command: from its flags, the project's file and the environment.

use std::path::Path;

use tile_compiler::diagnostic::Lints;
use tile_compiler::eval::Rules;
use tile_compiler::specialization::{Flags, TritonVersion};
use tile_worker::protocol::SpecFlags;

use crate::{CommandError, output, workspace};

/// Choices that hold for a whole command: flags, else the project's file, else the environment.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Whose rules hold.
    pub(crate) rules: Rules,
    /// Changes to specializations.
    pub(crate) flags: Flags,
    /// Levels of diagnostics.
    pub(crate) lints: Lints,
    /// The project's architecture.
    pub(crate) arch: Option<String>,
}

impl Options {
    /// For files in `folder`, whose Python environment has these site-packages.
    pub(crate) fn new(
        spec: &SpecFlags,
        folder: &Path,
        site_packages: Option<&Path>,
    ) -> Result<Options, CommandError> {
        let project = tile_lsp::project_rules(folder);
        if let Some(problem) = project.problems.first() {
            output::note(problem);
        }
        let installed = || {
            let version = workspace::package_version(site_packages?, "triton")?;
            TritonVersion::from_name(version.rsplit_once('.')?.0)
        };
        let rules = match spec.triton.as_deref() {
            None => project.triton.or_else(installed).map_or(Rules::Any, Rules::Only),
            Some(name) => Rules::Only(
                TritonVersion::from_name(name)
                    .ok_or_else(|| CommandError::usage(format!("Triton {name} is not known")))?,
            ),
        };
        let wrong = |flag: &str, given: &str, why: &str| {
            CommandError::usage(format!("--{flag} {given}: {why}"))
        };
        let mut flags =
            Flags { num_warps: spec.num_warps, num_stages: spec.num_stages, ..Flags::default() };
        for (name, ty) in &spec.types {
            let given = format!("{name}={ty}");
            flags.add_type(&given).map_err(|why| wrong("type", &given, &why))?;
        }
        for (name, value) in &spec.values {
            let given = format!("{name}={value}");
            flags.add_value(&given).map_err(|why| wrong("set", &given, &why))?;
        }
        let arch = spec.arch.clone().or(project.arch);
        Ok(Options { rules, flags, lints: project.lints, arch })
    }
}
