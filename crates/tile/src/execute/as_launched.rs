//! Runs of kernels without scenarios: as host code launches them.

use tile_compiler::hir::{Expr, Name};
use tile_compiler::project::{ItemRef, called_from_jit, function, item};
use tile_compiler::specialization::{
    Flags, LaunchGap, LaunchSite, WrittenLaunch, discover, tuned_launches, written_launches,
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
                    let described = request.as_launched(&kernel, &launch);
                    let shown = auto::describe(&kernel, &described);
                    requests.push(described);
                    format!("as launched{}: {shown}", place(opened, launch.site))
                }
                Err(gap) => unknown(opened, &kernel, gap),
            }));
        }
    }
    requests
}

/// The launch of the kernel `at` to time under each autotune configuration, by the configuration's
/// position.
///
/// # Errors
/// What is not known of the launch; `None` where host code has none.
pub(crate) fn tuned(
    opened: &Opened,
    at: ItemRef,
    kernel: &str,
) -> Result<Vec<(usize, WrittenLaunch)>, Option<String>> {
    let is_doubted = makes_pointers(opened, at);
    let told = |gap| Some(unknown(opened, kernel, gap));
    let found = discover(&opened.workspace, at, &Flags::default());
    match tuned_launches(&opened.workspace, at, &found) {
        Ok(launches) => {
            let known = |(config, launch)| Ok((config, known(Ok(launch), is_doubted)?));
            launches.into_iter().map(known).collect::<Result<_, _>>().map_err(told)
        }
        Err(gap) => Err(gap.and_then(|gap| known(Err(gap), is_doubted).err()).and_then(told)),
    }
}

fn unknown(opened: &Opened, kernel: &str, (site, what): (LaunchSite, String)) -> String {
    let place = place(opened, site);
    format!("the launch of {kernel}{place} cannot be repeated: {what} is not known")
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
pub(crate) fn place(opened: &Opened, site: LaunchSite) -> String {
    let workspace = &opened.workspace;
    let Some(at) = site.place(workspace) else { return String::new() };
    let files = workspace.table();
    let line = files.lines(at.file).line(at.range.start) + 1;
    format!(" at {}:{line}", files.name(at.file))
}
