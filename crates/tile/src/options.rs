//! What holds for a whole command: from its flags, the project's file and the environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tile_compiler::analysis::Lints;
use tile_compiler::builtins::TritonVersion;
use tile_compiler::eval::Rules;
use tile_compiler::specialization::Flags;
use tile_lsp::{Problem, ProjectRules};
use tile_worker::protocol::SpecFlags;

use crate::{CommandError, output, workspace};

/// Choices that hold for a whole command: flags, else the project's file, else the environment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    /// Whose rules hold.
    pub(crate) rules: Rules,
    /// Changes to specializations.
    pub(crate) flags: Flags,
    /// Levels of diagnostics.
    pub(crate) lints: Lints,
    /// The project's architecture.
    pub(crate) arch: Option<String>,
    /// The project's assembler.
    pub(crate) ptxas: Option<PathBuf>,
}

impl Options {
    /// For files in `folder`, whose Python environment has these site-packages. What is wrong with
    /// the project's file is told.
    pub(crate) fn new(
        spec: &SpecFlags,
        folder: &Path,
        site_packages: Option<&Path>,
    ) -> Result<Options, CommandError> {
        let project = tile_lsp::project_rules(folder);
        project.problems.iter().for_each(output::problem);
        Options::of(spec, &project, site_packages)
    }

    /// What holds for files in each of these folders, and what holds for all of them alike, which
    /// the first folder says: kernels are looked at for one architecture at a time.
    pub(crate) fn by_folder<'f>(
        spec: &SpecFlags,
        folders: impl Iterator<Item = &'f Path>,
        site_packages: Option<&Path>,
    ) -> Result<(Options, BTreeMap<PathBuf, Options>), CommandError> {
        let mut first: Option<Options> = None;
        let mut by_folder = BTreeMap::new();
        let mut told: Vec<Problem> = Vec::new();
        for folder in folders {
            if by_folder.contains_key(folder) {
                continue;
            }
            let project = tile_lsp::project_rules(folder);
            for problem in &project.problems {
                if !told.contains(problem) {
                    output::problem(problem);
                    told.push(problem.clone());
                }
            }
            let mut options = Options::of(spec, &project, site_packages)?;
            let common = first.get_or_insert_with(|| options.clone());
            if options.arch != common.arch {
                let name = |arch: &Option<String>| {
                    arch.clone().unwrap_or("the default architecture".into())
                };
                let (own, common) = (name(&options.arch), name(&common.arch));
                output::warning(&format!(
                    "{} is looked at for {common}, not {own}; check it by itself",
                    folder.display()
                ));
            }
            options.arch = common.arch.clone();
            by_folder.insert(folder.to_owned(), options);
        }
        let first = first.unwrap_or_default();
        Ok((first, by_folder))
    }

    /// For files of a project.
    fn of(
        spec: &SpecFlags,
        project: &ProjectRules,
        site_packages: Option<&Path>,
    ) -> Result<Options, CommandError> {
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
        let arch = spec.arch.clone().or_else(|| project.arch.clone());
        Ok(Options {
            rules,
            flags,
            lints: project.lints.clone(),
            arch,
            ptxas: project.ptxas.clone(),
        })
    }
}
