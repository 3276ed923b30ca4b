//! `workspace/executeCommand`.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use tile_compiler::specialization::scenario_variables;
use tile_worker::protocol::{Body, Device, RunRequest, SpecFlags, timing};
use tile_worker::{Cancel, WorkerError};
use tower_lsp::jsonrpc::{Error, ErrorCode, Result};
use tower_lsp::ls_types::{
    ExecuteCommandParams, MessageType, ProgressToken, ShowDocumentParams, Uri,
};

use crate::compile::{KernelKey, NO_WORKER};
use crate::db;
use crate::server::ext::{
    IrStage, KernelTarget, Resources, SpecializationId, ViewIrParams, command,
};
use crate::server::requests::{failed, kernels, view_ir};
use crate::server::state::State;
use crate::server::{background, blocking, progress, results};

/// Runs a command.
pub(crate) async fn execute(state: &Arc<State>, params: ExecuteCommandParams) -> Result<Value> {
    let token = params.work_done_progress_params.work_done_token;
    if params.command == command::RESTART {
        return restart(state);
    }
    let argument = params.arguments.into_iter().next().unwrap_or(Value::Null);
    let target = || target(&params.command, argument);
    match params.command.as_str() {
        command::RUN => run(state, target()?, false, token).await,
        command::BENCH => run(state, target()?, true, token).await,
        command::VIEW_IR => view(state, target()?).await,
        command::SELECT => select(state, target()?).await,
        command::MEASURE => measure(state, target()?).await,
        command::TUNE => tune(state, target()?, token).await,
        name => Err(failed(format!("there is no command `{name}`"))),
    }
}

/// A member of the argument of commands.
struct Member {
    name: &'static str,
    /// What it is, for the message about one that is something else.
    is: &'static str,
    fits: fn(&Value) -> bool,
}

/// The members that a command knows; the first two must be there.
fn members(name: &str) -> impl Iterator<Item = &'static Member> {
    const MEMBERS: &[Member] = &[
        Member { name: "uri", is: "the address of an open document", fits: is::<Uri> },
        Member { name: "kernel", is: "the name of a kernel", fits: Value::is_string },
        Member {
            name: "scenario",
            is: "the number of a scenario, from 1",
            fits: |value| value.as_u64().is_some_and(|number| number > 0),
        },
        Member {
            name: "device",
            is: "\"auto\", \"cpu\" or \"cuda:N\"",
            fits: |value| value.as_str().is_some_and(|text| text.parse::<Device>().is_ok()),
        },
        Member {
            name: "stage",
            is: "\"ast\", \"tile\", \"gpu\", \"llvm\", \"ptx\" or \"sass\"",
            fits: is::<IrStage>,
        },
        Member {
            name: "specialization",
            is: "a specialization's index or label",
            fits: is::<SpecializationId>,
        },
    ];
    let optional: &[&str] = match name {
        command::RUN | command::BENCH => &["scenario", "device"],
        command::TUNE => &["scenario"],
        command::VIEW_IR => &["stage", "specialization"],
        command::SELECT => &["specialization"],
        _ => &[],
    };
    let known =
        move |member: &&Member| REQUIRED.contains(&member.name) || optional.contains(&member.name);
    MEMBERS.iter().filter(known)
}

/// Members that every argument has.
const REQUIRED: [&str; 2] = ["uri", "kernel"];

fn is<T: serde::de::DeserializeOwned>(value: &Value) -> bool {
    T::deserialize(value).is_ok()
}

/// The kernel that a command is about, or a message that says what the command takes.
fn target(name: &str, argument: Value) -> Result<KernelTarget> {
    let wrong = members(name).find_map(|member| match argument.get(member.name) {
        None | Some(Value::Null) => {
            REQUIRED.contains(&member.name).then(|| format!("`{}` is missing", member.name))
        }
        Some(value) if !(member.fits)(value) => {
            Some(format!("`{}` is {value}, which is not {}", member.name, member.is))
        }
        Some(_) => None,
    });
    let wrong = match &argument {
        Value::Object(_) => wrong,
        Value::Null => Some("there is none".to_owned()),
        other => Some(format!("it is {other}")),
    };
    let refuse = |wrong: String| {
        let all: Vec<String> = members(name)
            .map(|member| {
                let optional = if REQUIRED.contains(&member.name) { "" } else { ", optional" };
                format!("`{}` ({}{optional})", member.name, member.is)
            })
            .collect();
        let message =
            format!("`{name}` takes one argument, an object with {}: {wrong}", all.join(", "));
        Error { message: message.into(), ..Error::new(ErrorCode::InvalidParams) }
    };
    match wrong {
        Some(wrong) => Err(refuse(wrong)),
        None => serde_json::from_value(argument).map_err(|error| refuse(error.to_string())),
    }
}

fn restart(state: &State) -> Result<Value> {
    if let Some(compiler) = state.compiler() {
        compiler.restart();
        state.cancel_runs();
        state.mark_all_dirty();
    }
    Ok(Value::Null)
}

/// Ends the work when the request is dropped because it was cancelled.
struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

async fn run(
    state: &Arc<State>,
    target: KernelTarget,
    bench: bool,
    token: Option<ProgressToken>,
) -> Result<Value> {
    let (uri, kernel) = (target.uri.clone(), target.kernel.clone());
    let request = blocking(state, move |state| run_request(state, target, bench)).await?;
    let title = if bench { format!("Timing {kernel}") } else { format!("Running {kernel}") };
    let guard = CancelOnDrop(Cancel::default());
    let cancel = guard.0.clone();
    // A task of its own, so that its progress ends even when the request is dropped.
    let runner = state.clone();
    let task =
        tokio::spawn(
            async move { run_with_progress(&runner, request, cancel, title, token).await },
        );
    let found = task.await.map_err(|error| failed(error.to_string()))?;
    drop(guard);
    let mut found = found?;
    state.keep_run(uri, kernel, &found);
    if bench {
        found.iter_mut().for_each(|result| *result = timing(result));
    }
    if state.session().is_some_and(|session| !session.client.shows_results) {
        results::show(&state.client, &found, bench).await;
    }
    Ok(Value::Array(found))
}

fn run_request(state: &State, target: KernelTarget, bench: bool) -> Result<RunRequest> {
    let scenario = match target.scenario {
        None => None,
        Some(0) => return Err(failed("scenarios count from 1")),
        Some(number) => Some(number - 1),
    };
    state.read(|snapshot| {
        let (file, kernel) = kernels::find(snapshot, &target.uri, &target.kernel)?;
        let count = kernel.scenarios.len();
        if !kernel.can_run(&snapshot.db) {
            let name = &kernel.name;
            return Err(failed(format!(
                "`{name}` has no scenario, and no launch in host code is known in full; add lines `# tile: ...` that launch it, such as \
                 `# tile: {name}[(1,)](...)`"
            )));
        }
        if scenario.is_some_and(|index| index >= count) {
            return Err(failed(format!("`{}` has {count} scenarios", kernel.name)));
        }
        let text = file.text(&snapshot.db).as_ref().map(|text| text.text().to_string());
        let path = file.path(&snapshot.db);
        let configuration = state.configuration(path);
        let settings = &configuration.settings;
        let device = match &target.device {
            Some(text) => text.parse().map_err(failed)?,
            None => settings.device,
        };
        Ok(RunRequest {
            path: path.to_path_buf(),
            text,
            kernel: Some(target.kernel.clone()),
            scenario,
            device,
            bench,
            spec: SpecFlags {
                triton: settings.triton.only().map(|version| version.to_string()),
                arch: settings.arch.clone(),
                ..SpecFlags::default()
            },
            ptxas: configuration.compile.ptxas.clone(),
            site_packages: configuration.site_packages.clone(),
            ..RunRequest::default()
        })
    })?
}

async fn run_with_progress(
    state: &Arc<State>,
    request: RunRequest,
    cancel: Cancel,
    title: String,
    token: Option<ProgressToken>,
) -> Result<Vec<Value>> {
    let token = match token {
        Some(token) => Some(token),
        None => progress::create(state).await,
    };
    let watched = state.watch_run(token.as_ref(), cancel.clone());
    let progress = match token {
        Some(token) => {
            let progress = state.client.progress(token, title).with_cancel_button();
            Some(progress.begin().await)
        }
        None => None,
    };
    let worker = state.clone();
    let found = tokio::task::spawn_blocking(move || work(&worker, &request, &cancel)).await;
    state.forget_run(watched);
    if let Some(progress) = progress {
        progress.finish().await;
    }
    found.map_err(|error| failed(error.to_string()))?
}

fn work(state: &State, request: &RunRequest, cancel: &Cancel) -> Result<Vec<Value>> {
    let compiler = state.compiler().ok_or_else(|| failed(NO_WORKER))?;
    let mut found = Vec::new();
    let mut on_event = |body: Body| {
        if let Body::Result(value) = body {
            found.push(value);
        }
    };
    let ended = compiler.pool().run(request, cancel, &mut on_event);
    compiler.report_deaths();
    match ended {
        Ok(()) => Ok(found),
        Err(WorkerError::Cancelled) => Err(Error::new(ErrorCode::RequestCancelled)),
        Err(error) => Err(failed(error.to_string())),
    }
}

async fn view(state: &Arc<State>, target: KernelTarget) -> Result<Value> {
    let stage = target.stage.unwrap_or(IrStage::Ptx);
    let params = ViewIrParams {
        text_document: tower_lsp::ls_types::TextDocumentIdentifier { uri: target.uri.clone() },
        kernel: Some(target.kernel.clone()),
        position: None,
        stage,
        specialization: target.specialization.flatten(),
        raw: false,
    };
    let result = view_ir::view_ir(state, params).await?;
    if result.text.is_empty()
        && let Some(error) = result.error
    {
        return Err(failed(format!("`{}` has no text at this stage: {error}", target.kernel)));
    }
    let place = view_place(&target.uri, &target.kernel, stage);
    let path = blocking(state, move |state| {
        let wrote = state.write_view(&place, &result.text);
        wrote.map_err(|error| failed(format!("cannot write {}: {error}", place.display())))
    })
    .await?;
    show(state, &path).await;
    Ok(json!({ "path": path }))
}

/// Where a text lies below the folder of views: the same document, kernel and stage give the same
/// place.
fn view_place(uri: &Uri, kernel: &str, stage: IrStage) -> PathBuf {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    uri.as_str().hash(&mut hasher);
    let folder = format!("{:016x}", hasher.finish());
    PathBuf::from(folder).join(format!("{kernel}.{}", stage.extension()))
}

async fn show(state: &State, path: &std::path::Path) {
    let Some(session) = state.session() else { return };
    if session.client.shows_results || !session.client.shows_documents {
        return;
    }
    let Some(uri) = Uri::from_file_path(path) else { return };
    let params =
        ShowDocumentParams { uri, external: None, take_focus: Some(true), selection: None };
    if let Err(error) = state.client.show_document(params).await {
        let text = format!("the client did not open {}: {error}", path.display());
        state.client.log_message(MessageType::INFO, text).await;
    }
}

async fn select(state: &Arc<State>, target: KernelTarget) -> Result<Value> {
    let described = blocking(state, move |state| {
        if let Some(wanted) = &target.specialization {
            let choice = state.read(|snapshot| {
                let (file, kernel) = kernels::find(snapshot, &target.uri, &target.kernel)?;
                let label = match wanted {
                    None => None,
                    Some(id) => {
                        let index = kernels::specialization(snapshot, kernel, Some(id))?;
                        let settled = kernel.settled(&snapshot.db);
                        settled.get(index).map(|labelled| labelled.label.clone())
                    }
                };
                Ok::<_, Error>(((file.id(&snapshot.db), kernel.name.clone()), label))
            })??;
            state.choose(choice.0, choice.1);
            background::refresh_views(state);
        }
        state.read(|snapshot| {
            let (file, kernel) = kernels::find(snapshot, &target.uri, &target.kernel)?;
            Ok(kernels::describe(snapshot, file, kernel))
        })?
    });
    serde_json::to_value(described.await?).map_err(|error| failed(error.to_string()))
}

/// Compiles every specialization of a kernel and tells what each takes.
async fn measure(state: &Arc<State>, target: KernelTarget) -> Result<Value> {
    let guard = CancelOnDrop(Cancel::default());
    let cancel = guard.0.clone();
    let rows = blocking(state, move |state| {
        let compiler = state.compiler().ok_or_else(|| failed(NO_WORKER))?;
        let (key, active, wishes) = state.read(|snapshot| {
            let (file, kernel) = kernels::find(snapshot, &target.uri, &target.kernel)?;
            let key = KernelKey { file: file.id(&snapshot.db), kernel: kernel.name.clone() };
            let count = kernel.specializations.len();
            let wishes: Vec<_> =
                (0..count).map(|index| background::wish(state, snapshot, kernel, index)).collect();
            Ok::<_, Error>((key, kernel.active(&snapshot.db), wishes))
        })??;
        let mut rows = Vec::new();
        for (index, wish) in wishes.into_iter().enumerate() {
            let mut row = json!({ "specialization": wish.label, "active": index == active });
            let outcome = compiler.compile(&wish, &cancel);
            compiler.note(&key, &wish, &outcome);
            match outcome {
                Ok(artifact) => {
                    let found = artifact.resources.as_ref();
                    let found = found.map(|found| Resources::new(found, &wish.options.arch));
                    row["resources"] = json!(found);
                }
                Err(WorkerError::Cancelled) => return Err(Error::new(ErrorCode::RequestCancelled)),
                Err(error) => row["error"] = json!(error.to_string()),
            }
            rows.push(row);
        }
        state.changed.notify_one();
        Ok(rows)
    });
    let rows = rows.await?;
    drop(guard);
    if state.session().is_some_and(|session| !session.client.shows_results) {
        results::show_measured(&state.client, &rows).await;
    }
    Ok(Value::Array(rows))
}

/// Times the autotune configurations of a kernel, fastest first. One that fails its asserts does
/// not count.
async fn tune(
    state: &Arc<State>,
    target: KernelTarget,
    token: Option<ProgressToken>,
) -> Result<Value> {
    let (uri, kernel) = (target.uri.clone(), target.kernel.clone());
    let guard = CancelOnDrop(Cancel::default());
    let cancel = guard.0.clone();
    let asked = target.clone();
    let prepared = blocking(state, move |state| {
        let number = asked.scenario.unwrap_or(1).saturating_sub(1);
        let (configurations, variables, launches) = state.read(|snapshot| {
            let (file, kernel) = kernels::find(snapshot, &asked.uri, &asked.kernel)?;
            let configurations = db::configurations(&snapshot.db, file, kernel.at.index).clone();
            let variables =
                scenario_variables(db::module(&snapshot.db, file), &kernel.name, number);
            let launches = match kernel.scenarios.is_empty() {
                true => db::launched::tuned(&snapshot.db, file, kernel.at.index).clone(),
                false => Vec::new(),
            };
            Ok::<_, Error>((configurations, variables, launches))
        })??;
        if configurations.is_empty() {
            return Err(failed(format!(
                "`{}` has no autotune configurations; add `@triton.autotune(configs=[...], \
                 key=[...])` with the values to try",
                asked.kernel
            )));
        }
        let scenario = launches.is_empty().then_some(number + 1);
        let request = run_request(state, KernelTarget { scenario, ..asked }, true)?;
        Ok((request, configurations, variables, launches))
    });
    let (request, configurations, variables, launches) = prepared.await?;
    let mut timed: Vec<(Value, Vec<(String, String)>)> = Vec::new();
    let count = configurations.len();
    for (index, values) in configurations.into_iter().enumerate() {
        let mut request = configured(request.clone(), &values, &variables)?;
        if !launches.is_empty() {
            let launch = launches.iter().find(|(config, _)| *config == index);
            let Some((_, launch)) = launch else { continue };
            request = request.as_launched(&kernel, launch);
        }
        let title = format!("Tuning {kernel}, {} of {count}", index + 1);
        let found = run_with_progress(state, request, cancel.clone(), title, token.clone()).await;
        match found {
            Ok(found) => timed.extend(found.into_iter().map(|mut row| {
                let pairs = values.iter().map(|(name, value)| (name.clone(), json!(value)));
                row["values"] = Value::Object(pairs.collect());
                (row, values.clone())
            })),
            Err(error) if error.code == ErrorCode::RequestCancelled => return Err(error),
            // It does not compile, or an assert fails: the others may do.
            Err(error) => tracing::info!(?values, %error, "a configuration does not count"),
        }
    }
    drop(guard);
    timed.retain(|(row, _)| row["ok"] != false);
    let median = |row: &Value| row["ms"]["median"].as_f64().or(row["ms"].as_f64());
    timed.sort_by(|(a, _), (b, _)| {
        let time = |row| median(row).unwrap_or(f64::INFINITY);
        time(a).total_cmp(&time(b))
    });
    let Some((_, best)) = timed.first() else {
        return Err(failed(format!(
            "no configuration of `{kernel}` compiles and passes its asserts"
        )));
    };
    state.keep_fastest(uri, kernel, best.clone());
    let rows: Vec<Value> = timed.into_iter().map(|(row, _)| row).collect();
    if state.session().is_some_and(|session| !session.client.shows_results) {
        results::show(&state.client, &rows[..1], true).await;
    }
    Ok(Value::Array(rows))
}

/// A run with these values in place of the scenario's.
fn configured(
    mut request: RunRequest,
    values: &[(String, String)],
    variables: &[String],
) -> Result<RunRequest> {
    for (name, value) in values {
        let number = || value.parse::<u32>().map_err(|error| failed(format!("{name}: {error}")));
        match name.as_str() {
            "num_warps" => request.spec.num_warps = Some(number()?),
            "num_stages" => request.spec.num_stages = Some(number()?),
            _ if variables.contains(name) => request.args.push((name.clone(), value.clone())),
            _ => request.spec.values.push((name.clone(), value.clone())),
        }
    }
    Ok(request)
}
