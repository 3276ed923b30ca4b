//! Runs of kernels without scenarios: as host code launches them.

use tile_compiler::hir::{Expr, Name};
use tile_compiler::project::{ItemRef, called_from_jit, function, item};
use tile_compiler::specialization::{
    Flags, LaunchGap, LaunchSite, WrittenLaunch, discover, written_launches, written_options,
};
use tile_worker::protocol::{Body, RunRequest};

use super::{auto, launches};
use crate::analysis::Opened;
use crate::render::Files;

/// One request for each launch that host code shows of the kernels that are asked for, of which it
/// tells; none where there is a scenario to run, or flags describe a launch.
pub(super) fn requests(
    request: &RunRequest,
    opened: &Opened,
    report: &mut dyn FnMut(Body),
) -> Vec<RunRequest> {
    let module = opened.module();
    let has_own = match &request.kernel {
        Some(kernel) => module.scenarios.iter().any(|found| launches(&module, found, kernel)),
        None => !module.scenarios.is_empty(),
    };
    let describes = !request.args.is_empty() || request.grid.is_some();
    if has_own || request.scenario.is_some() || describes {
        return Vec::new();
    }
    if !request.spec.values.is_empty() || !request.spec.types.is_empty() {
        let told = "launches in host code are for their own values and types, so with --set and \
                    --type none of them is run";
        report(Body::Progress(told.to_owned()));
        return Vec::new();
    }
    let mut requests = Vec::new();
    for at in super::kernels(request, opened) {
        let Some(kernel) = item(&opened.workspace, at).map(|item| item.name) else { continue };
        let found = discover(&opened.workspace, at, &Flags::default());
        let is_doubted = request.sanitize || makes_pointers(opened, at);
        for launch in written_launches(&opened.workspace, at, &found) {
            report(Body::Progress(match known(launch, is_doubted) {
                Ok(launch) => {
                    let described = describing(request, &kernel, &launch);
                    let shown = auto::describe(&kernel, &described);
                    requests.push(described);
                    format!("as launched{}: {shown}", place(opened, launch.site))
                }
                Err((site, what)) => {
                    let place = place(opened, site);
                    format!("the launch of {kernel}{place} cannot be repeated: {what} is not known")
                }
            }));
        }
    }
    requests
}

/// The launch if all that a run of it needs is known, else where it is and what is not known. If
/// `is_doubted`, what is found may be due to integers that were made up.
fn known(
    launch: Result<WrittenLaunch, LaunchGap>,
    is_doubted: bool,
) -> Result<WrittenLaunch, (LaunchSite, String)> {
    let argument = |name: Option<Name>| name.map_or("the grid".to_owned(), |it| format!("`{it}`"));
    match launch.map_err(|gap| (gap.site, argument(gap.param)))? {
        doubtful if is_doubted && !doubtful.made_up.is_empty() => {
            Err((doubtful.site, format!("what `{}` holds", doubtful.made_up.join("`, `"))))
        }
        launch => Ok(launch),
    }
}

/// The request with the arguments, grid and options of a launch.
fn describing(request: &RunRequest, kernel: &str, launch: &WrittenLaunch) -> RunRequest {
    let args = launch.args.iter().map(|(name, text)| (name.to_string(), text.clone()));
    let given = |name: &str| match name {
        "num_warps" => request.spec.num_warps.is_some(),
        "num_stages" => request.spec.num_stages.is_some(),
        _ => false,
    };
    let options = written_options(&launch.options).into_iter().filter(|(name, _)| !given(name));
    let options = options.map(|(name, value)| (name.to_owned(), value.to_string()));
    RunRequest {
        kernel: Some(kernel.to_owned()),
        args: args.chain(options).collect(),
        grid: Some(launch.grid()),
        ..request.clone()
    }
}

/// Whether a kernel, or a function that it calls, makes pointers of integers, so that those in memory
/// may be addresses.
fn makes_pointers(opened: &Opened, kernel: ItemRef) -> bool {
    let workspace = &opened.workspace;
    let is_type = |expr: &Expr| match expr {
        Expr::Name(name) | Expr::Attribute { attr: name, .. } => &**name == "pointer_type",
        _ => false,
    };
    let mut reached = vec![kernel];
    let mut next = 0;
    while let Some(&at) = reached.get(next) {
        if function(workspace, at).is_some_and(|it| it.body.exprs.values().any(is_type)) {
            return true;
        }
        let called = called_from_jit(workspace, &[at]);
        reached.extend(called.into_iter().filter(|at| !reached.contains(at)).collect::<Vec<_>>());
        next += 1;
    }
    false
}

/// ` at FILE:LINE` of a launch in host code.
fn place(opened: &Opened, site: LaunchSite) -> String {
    let workspace = &opened.workspace;
    let Some(at) = site.place(workspace) else { return String::new() };
    let files = workspace.table();
    let line = files.lines(at.file).line(at.range.start) + 1;
    format!(" at {}:{line}", files.name(at.file))
}
