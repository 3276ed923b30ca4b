//! What is wrong with the decorators of a kernel, whoever launches it.

use super::meta::{asked, is_known};
use super::options::{WARP_SIZE, warp_count_fault};
use crate::builtins::LAUNCH_OPTIONS;
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::hir::{Expr, Literal, Name, ParamKind};
use crate::project::{Decorator, Kernel, Sources};
use crate::source::FileRange;
use crate::specialization::{Tuning, called_tunings, decorated_tuning};

/// What is wrong with what tunes a kernel: its decorators, and calls of modules that are given it.
pub(super) fn decorated(sources: &dyn Sources, kernel: &Kernel) -> Vec<Diagnostic> {
    let tuning = decorated_tuning(sources, kernel);
    let open = kernel.function.params.iter().any(|param| param.kind == ParamKind::KwArgs);
    if open || tuning.wrapped {
        return Vec::new();
    }
    let mut found = asked_by_heuristics(kernel, &tuning);
    for tuning in [tuning].into_iter().chain(called_tunings(sources, kernel)) {
        for finding in tuned(kernel, &tuning) {
            if !found.contains(&finding) {
                found.push(finding);
            }
        }
    }
    found
}

/// What is wrong with what one decorator or call says, and those around it.
fn tuned(kernel: &Kernel, tuning: &Tuning) -> Vec<Diagnostic> {
    let mut found = unknown_names(kernel, tuning);
    found.extend(tuning.uncallable.iter().map(|name| uncallable(kernel, name)));
    found.extend(warp_counts(kernel, tuning).filter(|_| !tuning.one_run));
    found.extend(choices(kernel, tuning));
    found.extend(lacking(kernel, tuning));
    found.extend(tuning.dicts.iter().map(|dict| plain_dict(kernel, *dict)));
    found
}

/// Names that configurations or heuristics set and that are no parameters.
fn unknown_names(kernel: &Kernel, tuning: &Tuning) -> Vec<Diagnostic> {
    let configs = tuning.configs.iter().filter(|_| !tuning.one_run);
    let configured = configs.flat_map(|config| {
        let names = config.kwargs.iter().map(|(name, _)| name);
        names.map(move |name| (name, config.at, "a configuration sets"))
    });
    let computed =
        tuning.heuristics.iter().map(|name| (name, None, "`@triton.heuristics` computes"));
    let is_param = |name: &Name| kernel.function.params.iter().any(|param| param.name == *name);
    let unknown = configured
        .chain(computed)
        .filter(|(name, ..)| !is_param(name) && !LAUNCH_OPTIONS.contains(&&***name));
    let finding = |(name, at, what): (&Name, Option<FileRange>, &str)| {
        let message = format!("`{}` has no parameter `{name}`, which {what}", kernel.item.name);
        let at = mentioned(kernel, name).or(at.filter(|at| at.file == kernel.at.file));
        let at = at.unwrap_or_else(|| name_of(kernel));
        let mut found = Diagnostic::new(Code::TuningName, at, message);
        found.kernel = Some(kernel.item.name.to_string());
        found
    };
    unknown.map(finding).collect()
}

/// Dicts in the place of configurations, of which Triton asks attributes when it tunes
/// (`Autotuner.run` in `runtime/autotuner.py`).
fn plain_dict(kernel: &Kernel, at: FileRange) -> Diagnostic {
    let message = "a configuration is a `triton.Config`, but this is a dict";
    let mut found = Diagnostic::new(Code::ArgumentType, at, message).with_note(
        "write `triton.Config({...}, num_warps=4)`: options of the launch stand outside of the dict",
    );
    found.kernel = Some(kernel.item.name.to_string());
    found
}

/// A value in the place of the function that computes a parameter.
fn uncallable(kernel: &Kernel, name: &Name) -> Diagnostic {
    let message =
        format!("`@triton.heuristics` calls what it has for `{name}`, but this is no function");
    let mut found = Diagnostic::new(Code::ArgumentType, mention(kernel, name), message)
        .with_note("write a function of the launch's arguments: `lambda args: ...`");
    found.kernel = Some(kernel.item.name.to_string());
    found
}

/// A configuration that leaves a parameter without a value which others give one: no launch may give
/// it then. What chooses among configurations may leave it out.
fn lacking(kernel: &Kernel, tuning: &Tuning) -> Option<Diagnostic> {
    if !tuning.complete || tuning.one_run || tuning.prunes() {
        return None;
    }
    let params = &kernel.function.params;
    let needed = params.iter().filter(|param| {
        let is_set = tuning.configs.iter().any(|config| config.value(&param.name).is_some());
        is_set && param.default.is_none() && !tuning.heuristics.contains(&param.name)
    });
    let (config, param) = needed.into_iter().find_map(|param| {
        let mut configs = tuning.configs.iter();
        Some((configs.find(|config| config.value(&param.name).is_none())?, param))
    })?;
    let name = name_of(kernel);
    let at = config.at.filter(|at| at.file == kernel.at.file).unwrap_or(name);
    let message = format!("this configuration lacks `{}`, which others set", param.name);
    let mut found = Diagnostic::new(Code::MissingLaunchArgument, at, message);
    found.kernel = Some(kernel.item.name.to_string());
    Some(found.with_related(name, "the kernel is defined here"))
}

/// Keys by which heuristics ask for arguments that the kernel does not have.
fn asked_by_heuristics(kernel: &Kernel, tuning: &Tuning) -> Vec<Diagnostic> {
    let function = &kernel.function;
    let configured = tuning.configs.iter().flat_map(|config| &config.kwargs);
    let params = function.params.iter().map(|param| &param.name);
    let known: Vec<&Name> = params.chain(configured.map(|(name, _)| name)).collect();
    let heuristics = kernel.decorators.iter().filter_map(|decorator| match decorator {
        Decorator::Heuristics(id) => Some(function.map.exprs[*id]),
        _ => None,
    });
    let mut found = Vec::new();
    for decorator in heuristics.filter(|_| tuning.complete) {
        for (id, expr) in function.body.exprs.iter() {
            let Expr::Lambda { params, body } = expr else { continue };
            let ([args], true) = (&**params, decorator.contains_range(function.map.exprs[id]))
            else {
                continue;
            };
            let range = |id| function.map.exprs[id];
            for (key, range) in asked(&function.body, &args.name, range(*body), range).keys {
                if !is_known(&key, &known) {
                    let message = format!(
                        "`{}` has no parameter `{key}`, which `@triton.heuristics` asks for",
                        kernel.item.name
                    );
                    let at = FileRange { file: kernel.at.file, range };
                    let mut finding = Diagnostic::new(Code::TuningName, at, message);
                    finding.kernel = Some(kernel.item.name.to_string());
                    found.push(finding);
                }
            }
        }
    }
    found
}

/// Numbers of warps of configurations that no device runs. A configuration with too many is passed
/// over while there are others.
fn warp_counts(kernel: &Kernel, tuning: &Tuning) -> Option<Diagnostic> {
    let (config, warps, fault) = tuning.configs.iter().find_map(|config| {
        let warps = config.num_warps?;
        Some((config, warps, warp_count_fault(warps.into(), Some(WARP_SIZE))?))
    })?;
    let at = config.at.filter(|at| at.file == kernel.at.file);
    let found = Diagnostic::new(Code::WarpCount, at.unwrap_or_else(|| name_of(kernel)), fault);
    Some(match warps.is_power_of_two() && tuning.configs.len() > 1 {
        true => Diagnostic { severity: Severity::Warning, ..found },
        false => found,
    })
}

/// Names that the choice of a configuration depends on, or that tuning restores, and that are no
/// parameters.
fn choices(kernel: &Kernel, tuning: &Tuning) -> Vec<Diagnostic> {
    let is_param = |name: &Name| kernel.function.params.iter().any(|param| param.name == *name);
    let lists = [("key", &tuning.key), ("reset_to_zero or restore_value", &tuning.restored)];
    let unknown = lists.into_iter().flat_map(|(list, names)| {
        names.iter().filter(|name| !is_param(name)).map(move |name| (list, name))
    });
    let finding = |(list, name): (&str, &Name)| {
        let message = format!(
            "`{}` has no parameter `{name}`, which `{list}` of `@triton.autotune` names",
            kernel.item.name
        );
        let mut found = Diagnostic::new(Code::TuningName, mention(kernel, name), message)
            .with_note("Triton 3.9 refuses the decorator; versions before 3.9 pass over the name");
        found.kernel = Some(kernel.item.name.to_string());
        Diagnostic { severity: Severity::Warning, ..found }
    };
    unknown.map(finding).collect()
}

/// Where a decorator mentions a name as a string, else the kernel's name.
fn mention(kernel: &Kernel, name: &Name) -> FileRange {
    mentioned(kernel, name).unwrap_or_else(|| name_of(kernel))
}

/// Where a decorator mentions a name as a string.
fn mentioned(kernel: &Kernel, name: &Name) -> Option<FileRange> {
    let end = kernel.item.name_range.start;
    let mut exprs = kernel.function.body.exprs.iter();
    let (id, _) = exprs.find(|(id, expr)| {
        let before = kernel.function.map.exprs[*id].end <= end;
        before && matches!(expr, Expr::Literal(Literal::Str(text)) if text == name)
    })?;
    Some(FileRange { file: kernel.at.file, range: kernel.function.map.exprs[id] })
}

/// Where the kernel's name stands.
fn name_of(kernel: &Kernel) -> FileRange {
    FileRange { file: kernel.at.file, range: kernel.item.name_range }
}
