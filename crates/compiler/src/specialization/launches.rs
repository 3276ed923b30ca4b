//! The launches of a kernel, as scenarios and host code show them. Nothing is executed: see
//! [`super::host`].

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::Origin;
use super::host::value::{Descriptor, Value};
use super::host::{Host, ObservedLaunch, Options};
use crate::hir::{Body, Expr, ItemKind, Launch, MainBlock, Module, Name};
use crate::project::{
    ItemRef, Kernel, Resolution, Scope, Sources, is_expected_to_fail, is_jit, launch_scope,
    launching_item, never_runs, resolve_expr, resolve_item,
};
use crate::source::{FileId, FileRange, TextRange};

/// Launches of `kernel` with what is known of their arguments: scenarios first.
pub(super) fn launches(sources: &dyn Sources, kernel: &Kernel) -> Vec<(Origin, ObservedLaunch)> {
    let mut host = Host::new(sources);
    let file = kernel.at.file;
    let Some(module) = sources.module(file) else { return Vec::new() };
    for scenario in &module.scenarios {
        host.run_scenario(file, scenario);
    }
    let mut found = take_launches(&mut host, kernel, Origin::Scenario);
    let mut files = vec![file];
    files.extend(sources.importers(file));
    for file in files {
        for open_flags in [false, true] {
            let options = Options { open_flags, one_run: false };
            let (mut launches, joined) = run_host_code(sources, file, kernel, options);
            if joined && launches.iter().any(|(_, launch)| is_open(launch)) {
                let options = Options { one_run: true, ..options };
                let (examples, _) = run_host_code(sources, file, kernel, options);
                launches.iter_mut().for_each(|(_, launch)| add_example(launch, &examples));
            }
            found.extend(launches);
            // A launch that the defaults of the functions around it do not reach.
            if !found.is_empty() {
                break;
            }
        }
    }
    found
}

fn take_launches(
    host: &mut Host<'_>,
    kernel: &Kernel,
    origin: Origin,
) -> Vec<(Origin, ObservedLaunch)> {
    let wanted = Value::Named(Resolution::Jit(kernel.at));
    let launches = std::mem::take(&mut host.launches).into_iter();
    launches.filter(|launch| launch.kernel == wanted).map(|launch| (origin, launch)).collect()
}

/// True when a launch shows too little of an argument to compile for it.
fn is_open(launch: &ObservedLaunch) -> bool {
    let open = |value: &Value| match value {
        Value::Unknown
        | Value::OneOf(_)
        | Value::Bool(None)
        | Value::Int(None)
        | Value::Float(None) => true,
        Value::Tensor(tensor) | Value::Descriptor(Descriptor { tensor, .. }) => {
            tensor.dtype.is_none()
        }
        _ => false,
    };
    launch.args.iter().any(|(_, value)| open(value))
}

/// Notes the arguments of the same launch in one possible run, which must be those that are known.
fn add_example(launch: &mut ObservedLaunch, examples: &[(Origin, ObservedLaunch)]) {
    let agrees = |example: &ObservedLaunch| {
        let names = |launch: &ObservedLaunch| {
            launch.args.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        let mut pairs = launch.args.iter().zip(&example.args);
        example.at == launch.at
            && example.complete == launch.complete
            && names(example) == names(launch)
            && pairs.all(|((_, known), (_, shown))| {
                known.to_const().is_none_or(|known| shown.to_const() == Some(known))
            })
    };
    if let Some((_, example)) = examples.iter().find(|(_, example)| agrees(example)) {
        launch.example.clone_from(&example.args);
    }
}

/// What launches `kernel` when the host code of `file` runs that launches it, names it, or
/// mentions functions that do; and whether branches left something unknown.
fn run_host_code(
    sources: &dyn Sources,
    file: FileId,
    kernel: &Kernel,
    options: Options,
) -> (Vec<(Origin, ObservedLaunch)>, bool) {
    let Some(module) = sources.module(file) else { return (Vec::new(), false) };
    let mut host = Host::with(sources, options);
    let launches: Vec<&Launch> = module
        .launches
        .iter()
        .zip(launched(sources, file, &module).iter())
        .filter(|(launch, named)| may_launch(launch, named, kernel.at))
        .map(|(launch, _)| launch)
        .filter(|launch| !is_expected_to_fail(sources, file, launch.range))
        .collect();
    let launching = launching_items(sources, file, &module, &launches, kernel.at);
    let names = launcher_names(&module, &launching);
    for (index, item) in module.items.iter().enumerate() {
        let at = ItemRef { file, index: index as u32 };
        if item.guard.is_some() && never_runs(sources, None, at) {
            continue;
        }
        match &item.kind {
            // What runs as a program runs below, in order.
            ItemKind::Assign { .. } if in_main(&module, item.range) => {}
            ItemKind::Assign { body, map, value, .. } if mentions(body, &names) => {
                host.module_expr(file, &item.scope, (body, map), *value);
            }
            ItemKind::Function(function)
                if launching.contains(&(index as u32)) || mentions(&function.body, &names) =>
            {
                host.run_function(file, &item.scope, function);
            }
            _ => {}
        }
    }
    if !module.mains.is_empty() {
        let mut reaching = reaching_names(&module, &names);
        reaching.extend(kernel_names(sources, file, &module, kernel.at));
        let runs = |main: &MainBlock| {
            let mut launches = launches.iter();
            let launches_here = launches.any(|launch| main.range.contains_range(launch.range));
            launches_here || mentions(&main.body, &reaching)
        };
        if module.mains.iter().any(runs) {
            host.run_mains(file, &module.mains);
        }
    }
    for launch in launches {
        let in_scenario = module.scenarios.iter().any(|s| s.range.contains_range(launch.range));
        let at = FileRange { file, range: launch.map.exprs[launch.kernel] };
        // What is run in order may end before it comes to the launch.
        let met = || host.launches.iter().any(|known| known.at == Some(at));
        if launch.host.is_none() && !in_scenario && !met() {
            host.observe(file, launch);
        }
    }
    (take_launches(&mut host, kernel, Origin::Launch), host.joined)
}

/// Functions of host code that launch the kernel themselves, or name it: they may launch it in
/// another way.
fn launching_items(
    sources: &dyn Sources,
    file: FileId,
    module: &Module,
    launches: &[&Launch],
    kernel: ItemRef,
) -> Vec<u32> {
    let mut found: Vec<u32> =
        launches.iter().filter_map(|launch| launching_item(module, launch)).collect();
    let names = kernel_names(sources, file, module, kernel);
    for (index, item) in module.items.iter().enumerate() {
        let at = ItemRef { file, index: index as u32 };
        if let ItemKind::Function(function) = &item.kind
            && !found.contains(&at.index)
            && mentions(&function.body, &names)
            && !is_jit(sources, at)
        {
            found.push(at.index);
        }
    }
    found
}

/// The names that a kernel has in a file.
fn kernel_names(
    sources: &dyn Sources,
    file: FileId,
    module: &Module,
    kernel: ItemRef,
) -> FxHashSet<Name> {
    let find = || {
        let items = (0..module.items.len() as u32).map(|index| ItemRef { file, index });
        items.map(|at| resolve_item(sources, at)).collect()
    };
    let meant = match sources.facts() {
        Some(facts) => facts.items.get(file, find),
        None => find(),
    };
    let items = module.items.iter().zip(meant.iter());
    let items = items.filter(|(_, meant)| **meant == Resolution::Jit(kernel));
    items.map(|(item, _)| item.name.clone()).collect()
}

fn in_main(module: &Module, range: TextRange) -> bool {
    module.mains.iter().any(|main| main.range.contains_range(range))
}

/// Names through which host code reaches the functions at `launching`: their own, their
/// classes', and those of module-level values made from these.
fn launcher_names(module: &Module, launching: &[u32]) -> FxHashSet<Name> {
    let items = launching.iter().map(|index| &module.items[*index as usize]);
    let mut names: FxHashSet<Name> =
        items.map(|item| item.scope.first().unwrap_or(&item.name).clone()).collect();
    for item in &module.items {
        if let ItemKind::Assign { body, .. } = &item.kind
            && mentions(body, &names)
        {
            names.insert(item.name.clone());
        }
    }
    names
}

/// `names` and the names of functions that reach one of them through others.
fn reaching_names(module: &Module, names: &FxHashSet<Name>) -> FxHashSet<Name> {
    let mut reaching = names.clone();
    loop {
        let before = reaching.len();
        for item in &module.items {
            if let ItemKind::Function(function) = &item.kind
                && mentions(&function.body, &reaching)
            {
                reaching.insert(item.scope.first().unwrap_or(&item.name).clone());
            }
        }
        if reaching.len() == before {
            return reaching;
        }
    }
}

fn mentions(body: &Body, names: &FxHashSet<Name>) -> bool {
    let is_name = |expr: &Expr| matches!(expr, Expr::Name(name) if names.contains(name));
    !names.is_empty() && body.exprs.values().any(is_name)
}

/// What each launch in a file names.
fn launched(sources: &dyn Sources, file: FileId, module: &Module) -> Arc<[Resolution]> {
    let named = |launch: &Launch| {
        let path = launch_scope(module, launch);
        resolve_expr(sources, Scope { file, path: &path }, &launch.body, launch.kernel)
    };
    let find = || module.launches.iter().map(named).collect();
    match sources.facts() {
        Some(facts) => facts.launched.get(file, find),
        None => find(),
    }
}

/// True when a launch may be of `kernel`: what it names is it, or a variable that may hold it.
fn may_launch(launch: &Launch, named: &Resolution, kernel: ItemRef) -> bool {
    match named {
        Resolution::Jit(at) => *at == kernel,
        Resolution::Undefined => launch.host.is_some(),
        _ => false,
    }
}
