//! `tile/viewIr`: the text of one stage of one kernel.

use std::sync::Arc;

use tile_compiler::artifact::{Artifact, Frame, Keep, LineMap, Listing};
use tile_compiler::hir::pretty;
use tile_compiler::specialization::Origin;
use tile_compiler::{ir, passes};
use tile_worker::protocol::Depth;
use tile_worker::{Cancel, CompileOptions, ptxas};
use tower_lsp::jsonrpc::{Error, Result};

use crate::compile::{Compiled, Compiler, KernelKey, NO_WORKER, Stage, Wish};
use crate::db::anchored::Anchors;
use crate::db::{self, Kernel, SourceFile, labels};
use crate::server::background::wish;
use crate::server::blocking;
use crate::server::ext::{
    IrStage, LineMapEntry, Resources, SourceLine, ViewIrParams, ViewIrResult,
};
use crate::server::requests::{failed, kernels};
use crate::server::state::{Snapshot, State};

/// What is asked for, as of one moment.
struct Target {
    key: KernelKey,
    label: String,
    origin: Origin,
    /// The specialization is the active one, which is compiled in the background.
    active: bool,
    wish: Wish,
    /// The syntax tree's meaning, and how its lines belong to source lines.
    ast: (String, Vec<LineMapEntry>),
}

/// A text and what is to be said of it.
#[derive(Default)]
struct View {
    listing: Listing,
    stale: bool,
    error: Option<String>,
    resources: Option<Resources>,
    /// What the locations of the listing count from.
    anchors: Arc<Anchors>,
}

impl View {
    fn nothing(error: impl Into<String>) -> View {
        View { error: Some(error.into()), ..View::default() }
    }
}

/// Answers `tile/viewIr`.
pub(crate) async fn view_ir(state: &Arc<State>, params: ViewIrParams) -> Result<ViewIrResult> {
    let asked = params.clone();
    let target =
        blocking(state, move |state| state.read(|snapshot| target(state, snapshot, &asked))?);
    let target = target.await?;
    let view = view(state, &target, &params).await?;
    let (map, anchors) = (view.listing.line_map, view.anchors);
    let mapped =
        blocking(
            state,
            move |state| Ok(state.read(|snapshot| line_map(snapshot, &map, &anchors))?),
        );
    let line_map = match params.stage {
        IrStage::Ast => target.ast.1,
        _ => mapped.await?,
    };
    Ok(ViewIrResult {
        kernel: target.key.kernel.to_string(),
        specialization: target.label,
        origin: labels::origin(target.origin),
        stage: params.stage,
        language_id: params.stage.language(),
        text: view.listing.text,
        line_map,
        stale: view.stale,
        error: view.error,
        resources: view.resources,
    })
}

fn target(state: &State, snapshot: &Snapshot, params: &ViewIrParams) -> Result<Target> {
    let (file, kernel) = asked_kernel(snapshot, params)?;
    let index = kernels::specialization(snapshot, kernel, params.specialization.as_ref())?;
    let labelled = kernel.specialization(&snapshot.db, index);
    let labelled = labelled.ok_or_else(|| failed("the kernel is gone"))?;
    Ok(Target {
        key: KernelKey { file: file.id(&snapshot.db), kernel: kernel.name.clone() },
        origin: labelled.spec.origin,
        label: labelled.label,
        active: index == kernel.active(&snapshot.db),
        wish: wish(state, snapshot, kernel, index),
        ast: (pretty::function(&kernel.function), ast_lines(snapshot, file, kernel)),
    })
}

/// Where the statements of the kernel's text stand in the source.
fn ast_lines(snapshot: &Snapshot, file: SourceFile, kernel: &Kernel) -> Vec<LineMapEntry> {
    let Some(uri) = snapshot.uri(file.id(&snapshot.db)) else { return Vec::new() };
    let lines = db::line_index(&snapshot.db, file);
    let statements = pretty::statement_lines(&kernel.function).into_iter();
    let entry = |(start, stmt)| {
        let line = lines.line(kernel.function.map.stmts[stmt].start);
        LineMapEntry { source: SourceLine { uri: uri.clone(), line }, start, end: start + 1 }
    };
    statements.map(entry).collect()
}

fn asked_kernel<'s>(
    snapshot: &'s Snapshot,
    params: &ViewIrParams,
) -> Result<(SourceFile, &'s Kernel)> {
    let uri = &params.text_document.uri;
    if let Some(name) = &params.kernel {
        return kernels::find(snapshot, uri, name);
    }
    let open = snapshot.document(uri);
    let file = open.ok_or_else(|| failed(format!("{} is not open", uri.as_str())))?.file;
    let offset = params.position.map(|position| snapshot.offset(file, position));
    let kernel = offset.and_then(|offset| db::kernel_at(&snapshot.db, file, offset));
    let kernel = kernel.ok_or_else(|| failed("there is no kernel at this position"))?;
    Ok((file, kernel))
}

async fn view(state: &Arc<State>, target: &Target, params: &ViewIrParams) -> Result<View> {
    if params.stage == IrStage::Ast {
        let listing = Listing { text: target.ast.0.clone(), line_map: LineMap::default() };
        return Ok(View { listing, ..View::default() });
    }
    let Some(compiler) = state.compiler() else {
        return Ok(View::nothing(NO_WORKER));
    };
    let (good, error) = newest(compiler, target).await;
    let Some(good) = good else { return Ok(View { error, ..View::default() }) };
    let (stage, raw, stale) = (params.stage, params.raw, error.is_some());
    let anchors = good.wish().anchors.clone();
    if stage == IrStage::Tile {
        let listing = blocking(state, move |_| tile_listing(good.wish(), raw)).await?;
        return Ok(View { listing, stale, error, anchors, ..View::default() });
    }
    let arch = good.options().arch.clone();
    let shown = blocking(state, move |state| {
        let compiler = state.compiler().ok_or(NO_WORKER.to_owned());
        Ok(compiler.and_then(|compiler| {
            if let (IrStage::Ptx, Good::Compiled(compiled)) = (stage, &good) {
                return Ok((ptx_listing(compiled.ptx(), raw), compiled.resources.clone()));
            }
            let artifact = complete(compiler, good, stage)?;
            let resources = artifact.resources.clone();
            Ok((listing(artifact, stage, raw)?, resources))
        }))
    });
    Ok(match shown.await? {
        Ok((listing, resources)) => {
            let resources = resources.as_ref().map(|found| Resources::new(found, &arch));
            View { listing, stale, error, resources, anchors }
        }
        Err(message) => View::nothing(message),
    })
}

/// A wish that can be shown, compiled already or not.
enum Good {
    Compiled(Arc<Compiled>),
    Wish(Box<Wish>),
}

impl Good {
    fn wish(&self) -> &Wish {
        match self {
            Good::Compiled(compiled) => &compiled.wish,
            Good::Wish(wish) => wish,
        }
    }

    fn options(&self) -> &CompileOptions {
        &self.wish().options
    }
}

/// The newest state that compiles, and why the very newest does not.
async fn newest(compiler: &Arc<Compiler>, target: &Target) -> (Option<Good>, Option<String>) {
    if !target.active {
        return match &target.wish.ir {
            Ok(_) => (Some(Good::Wish(Box::new(target.wish.clone()))), None),
            Err(message) => (None, Some(message.clone())),
        };
    }
    compiler.want(&target.key, target.wish.clone());
    let Some(status) = compiler.settled(&target.key).await else {
        return (None, Some("the kernel is gone".to_owned()));
    };
    match status.stage {
        Stage::Ready(compiled) => (Some(Good::Compiled(compiled)), None),
        Stage::Compiling => (None, Some("the kernel is still being compiled".to_owned())),
        Stage::Failed(message) | Stage::Unknown(message) => {
            (status.last_good.map(Good::Compiled), Some(message))
        }
    }
}

/// The artifact with the text of `stage` in it.
fn complete(
    compiler: &Compiler,
    good: Good,
    stage: IrStage,
) -> std::result::Result<Artifact, String> {
    let keep = Keep {
        gpu: stage == IrStage::Gpu,
        llvm: stage == IrStage::Llvm,
        sass: stage == IrStage::Sass,
    };
    let mut wish = good.wish().clone();
    wish.options.keep = keep;
    if keep.gpu {
        wish.options.depth = Depth::Gpu;
    }
    if keep.sass {
        wish.options.nvdisasm = ptxas::find_disassembler(wish.options.ptxas.as_deref(), None);
    }
    compiler.compile(&wish, &Cancel::default()).map_err(|error| error.to_string())
}

fn listing(artifact: Artifact, stage: IrStage, raw: bool) -> std::result::Result<Listing, String> {
    Ok(match stage {
        IrStage::Gpu => Listing::ir(&artifact.gpu_ir, raw),
        IrStage::Llvm if raw => {
            Listing { text: artifact.llvm_ir, line_map: artifact.llvm_line_map }
        }
        IrStage::Llvm => Listing::llvm(&artifact.llvm_ir, &artifact.llvm_line_map),
        IrStage::Sass => match artifact.sass {
            Some(sass) => Listing { text: sass.text, line_map: sass.line_map },
            None => return Err("there is no nvdisasm; `tile doctor --fix` fetches it".to_owned()),
        },
        _ => ptx_listing(Listing { text: artifact.ptx, line_map: artifact.line_map }, raw),
    })
}

/// PTX with all directives, or what a reader wants of it.
fn ptx_listing(ptx: Listing, raw: bool) -> Listing {
    if raw { ptx } else { Listing::ptx(&ptx.text, &ptx.line_map) }
}

/// Tile IR after its passes, as the back end takes it.
fn tile_listing(wish: &Wish, raw: bool) -> Result<Listing> {
    let text = wish.ir.as_ref().map_err(|message| failed(message.clone()))?;
    let defect = |text: String| -> Error { failed(format!("the compiler is at fault: {text}")) };
    let mut function = ir::parse(&text.get()).map_err(|error| defect(error.to_string()))?;
    passes::optimize(&mut function).map_err(|(pass, errors)| {
        defect(format!("{pass}: {}", errors.first().map(ToString::to_string).unwrap_or_default()))
    })?;
    Ok(Listing::ir(&function.to_string(), raw))
}

fn line_map(snapshot: &Snapshot, map: &LineMap, anchors: &Anchors) -> Vec<LineMapEntry> {
    let mut places = rustc_hash::FxHashMap::default();
    let mut entries = Vec::new();
    for run in &map.runs {
        for Frame { file, line, .. } in &run.frames {
            let place = places.entry((*file, *line)).or_insert_with(|| {
                let (file, line) = anchors.find_line(&snapshot.db, *file, *line)?;
                Some(SourceLine { uri: snapshot.uri(file)?, line: line.saturating_sub(1) })
            });
            let Some(source) = place.clone() else { continue };
            entries.push(LineMapEntry { source, start: run.start, end: run.end });
        }
    }
    entries
}
