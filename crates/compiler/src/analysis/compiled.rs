//! What compiling a kernel under one specialization found, for its author: which configuration it
//! is, and where that stands.

use super::resources;
use crate::artifact::{Artifact, Resources};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::hir::Name;
use crate::project::{self, ItemRef, Sources};
use crate::source::FileRange;
use crate::specialization::{ArgSpec, Config, Specialization, tuning};

/// What a compilation yielded, as far as it concerns the author.
#[derive(Debug, Clone, Copy)]
pub struct CompiledKernel<'a> {
    /// Findings of the back end, their places already where they are now.
    pub findings: &'a [Diagnostic],
    /// What the assembler reports, where there is one.
    pub resources: Option<&'a Resources>,
    /// Whether it multiplies matrices.
    pub has_products: bool,
    /// The architecture.
    pub arch: &'a str,
}

impl<'a> CompiledKernel<'a> {
    /// What `artifact` says.
    pub fn new(artifact: &'a Artifact) -> CompiledKernel<'a> {
        CompiledKernel {
            findings: &[],
            resources: artifact.resources.as_ref(),
            has_products: artifact.has_products,
            arch: &artifact.manifest.arch,
        }
    }

    /// Nothing but findings, for a kernel that does not compile.
    pub fn failed(findings: &'a [Diagnostic], arch: &'a str) -> CompiledKernel<'a> {
        CompiledKernel { findings, resources: None, has_products: false, arch }
    }
}

/// The findings of one compilation of the kernel `at` under `spec`, with the configuration named
/// and placed. Empty when nothing is proved, because a guess stands in for something.
pub fn check_compiled(
    sources: &dyn Sources,
    at: ItemRef,
    spec: &Specialization,
    compiled: CompiledKernel<'_>,
) -> Vec<Diagnostic> {
    let Some(kernel) = project::kernel(sources, at) else { return Vec::new() };
    let mut found = compiled.findings.to_vec();
    if let Some(measured) = compiled.resources {
        let name = FileRange { file: at.file, range: kernel.item.name_range };
        let (arch, has_products) = (compiled.arch, compiled.has_products);
        found.extend(resources::measured(&kernel.item.name, name, measured, arch, has_products));
    }
    found.retain(|finding| spec.proves(finding.code));
    if found.is_empty() {
        return found;
    }
    let tuning = tuning(sources, &kernel);
    let config = spec.config.as_ref().and_then(|it| tuning.configs.get(it.position));
    let configuration = configuration(spec, config);
    let label = spec.to_string();
    for finding in &mut found {
        finding.specialization = Some(label.clone());
        if finding.code.is_resource() {
            let subject = format!("`{}`{configuration}", kernel.item.name);
            finding.message = format!("{subject} {}", finding.message);
        }
        if spec.config.as_ref().is_some_and(|it| it.of > 1) && finding.code == Code::SharedMemory {
            forgive(finding);
        }
        if let Some(Config { at: Some(at), .. }) = config {
            place_at_config(finding, *at);
        } else if let Some(site) = spec.launches.first().and_then(|launch| launch.site) {
            let Some(launch) = site.place(sources) else { continue };
            place_at_launch(finding, launch);
        }
    }
    found
}

/// Tuning leaves out a configuration that does not fit, so that one among several is no mistake.
fn forgive(finding: &mut Diagnostic) {
    finding.severity = Severity::Info;
    let note = "Triton's tuning passes over a configuration that does not fit, silently";
    finding.notes.push(note.to_owned());
}

fn place_at_config(finding: &mut Diagnostic, config: FileRange) {
    if finding.code == Code::SharedMemory {
        move_to(finding, config);
    } else {
        finding.related.push(related(config, "in this configuration"));
    }
}

fn place_at_launch(finding: &mut Diagnostic, launch: FileRange) {
    // What stands in another file is not shown there.
    if finding.code == Code::SharedMemory && launch.file == finding.primary.file {
        move_to(finding, launch);
    } else {
        finding.related.push(related(launch, "in this launch"));
    }
}

/// Makes `at` the place to look first.
fn move_to(finding: &mut Diagnostic, at: FileRange) {
    if finding.primary.file == at.file {
        finding.primary = at;
    } else {
        finding.related.insert(0, related(at, "this is what must change"));
    }
}

fn related(at: FileRange, message: &str) -> crate::diagnostic::Related {
    crate::diagnostic::Related { at, message: message.to_owned() }
}

/// ` with BLOCK=128, num_stages=4`: what the configuration sets, else every constant and the
/// launch options; empty when there is nothing to name.
fn configuration(spec: &Specialization, config: Option<&Config>) -> String {
    let mut values: Vec<(String, String)> = match config {
        Some(config) => config.values(),
        None => {
            let constants = |(name, arg): (&Name, &ArgSpec)| match arg {
                ArgSpec::Constexpr(value) => Some((name.to_string(), value.to_string())),
                _ => None,
            };
            spec.args.iter().filter_map(constants).collect()
        }
    };
    let options = [("num_warps", spec.options.num_warps), ("num_stages", spec.options.num_stages)];
    for (name, value) in options {
        if !values.iter().any(|(known, _)| known == name) {
            values.push((name.to_owned(), value.to_string()));
        }
    }
    let values: Vec<String> =
        values.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!(" with {}", values.join(", "))
}
