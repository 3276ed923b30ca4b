//! What is wrong with launches whatever their arguments are: names, counts, options, the grid's
//! shape, and decorators that name parameters which do not exist.

use rustc_hash::FxHashSet;

use crate::diagnostic::{Code, Diagnostic, Severity, TextEdit};
use crate::hir::{
    Arg, ArgKind, BinaryOp, Expr, ExprId, Item, ItemKind, Launch, Literal, Module, Name, ParamKind,
};
use crate::project::{
    Decorator, Kernel, Resolution, Scope, Sources, kernel, launch_scope, resolve_expr,
};
use crate::source::{FileId, FileRange, TextRange};
use crate::specialization::{Tuning, tuning};

/// Keywords of a launch that are no parameters: Triton's own options, and those of the back ends
/// that share its launches.
const OPTIONS: &[&str] = &[
    "num_warps",
    "num_stages",
    "num_ctas",
    "maxnreg",
    "enable_fp_fusion",
    "debug",
    "grid",
    "warmup",
    "launch_cooperative_grid",
    "launch_pdl",
    "ptx_version",
    "ptx_options",
    "ir_override",
    "sanitize_overflow",
    "arch",
    "backend_name",
    "extern_libs",
    "cluster_dims",
    "warp_size",
    "supported_fp8_dtypes",
    "deprecated_fp8_dot_operand_dtypes",
    "default_dot_input_precision",
    "allowed_dot_input_precisions",
    "max_num_imprecise_acc_default",
    "instrumentation_mode",
    "clc",
    "enable_reflect_ftz",
    "fpsan_homomorphic_casts",
    "llvm_fn_attrs",
    "min_shared_mem",
    "sched4reg",
    "allow_fp8e4nv",
    "allow_fp8e4b15",
    "minRegAutoWS",
    "maxRegAutoWS",
    "pingpongAutoWS",
    "enable_warp_specialization",
    "num_buffers_warp_spec",
    "num_consumer_groups",
    "reg_dec_producer",
    "reg_inc_consumer",
    "optimize_epilogue",
    "enable_persistent",
    "stream",
    "device",
    "device_type",
    // AMD
    "waves_per_eu",
    "wgp_cu_mode",
    "matrix_instr_nonkdim",
    "kpack",
    "instruction_sched_variant",
    "schedule_hint",
    "allow_flush_denorm",
    "cluster_size",
    // Intel
    "grf_mode",
    "threads_per_warp",
    "one_matrix_per_load_for_bt",
    "split_barriers_scope",
    // Ascend
    "multibuffer",
    "unit_flag",
    "limit_auto_multi_buffer_only_for_local_buffer",
    "set_workspace_multibuffer",
    "tile_mix_vector_loop",
    "tile_mix_cube_loop",
    "enable_auto_bind_sub_block",
    "enable_hivm_auto_cv_balance",
    "sync_solver",
    "mix_mode",
    "enable_ubuf_saving",
    "optimize_dynamic_offset",
    "bisheng_options",
];

/// The most axes that a grid has.
const MAX_RANK: usize = 3;

/// Findings about the launches in `file`, and about the decorators of its kernels.
pub fn check_launches(sources: &dyn Sources, file: FileId) -> Vec<Diagnostic> {
    let Some(module) = sources.module(file) else { return Vec::new() };
    let mut found = Vec::new();
    for launch in &module.launches {
        let path = launch_scope(&module, launch);
        let scope = Scope { file, path: &path };
        let Resolution::Jit(at) = resolve_expr(sources, scope, &launch.body, launch.kernel) else {
            continue;
        };
        let Some(kernel) = kernel(sources, at) else { continue };
        let site = Site { sources, file, module: &module, launch, scope, kernel: &kernel };
        found.extend(site.check(&tuning(sources, &kernel)));
    }
    for at in crate::project::kernels(sources, file) {
        found
            .extend(kernel(sources, at).into_iter().flat_map(|kernel| decorated(sources, &kernel)));
    }
    found
}

fn imports(item: &Item) -> bool {
    matches!(item.kind, ItemKind::Import { .. } | ItemKind::ImportFrom { .. })
}

/// One launch of one kernel.
struct Site<'a> {
    sources: &'a dyn Sources,
    file: FileId,
    module: &'a Module,
    launch: &'a Launch,
    scope: Scope<'a>,
    kernel: &'a Kernel,
}

impl Site<'_> {
    fn check(&self, tuning: &Tuning) -> Vec<Diagnostic> {
        let mut found: Vec<Diagnostic> = self.grid().into_iter().collect();
        found.extend(self.options());
        let wrapped = self.kernel.decorators.iter().any(|d| matches!(d, Decorator::Other(_)));
        let params = &self.kernel.function.params;
        let open = params.iter().any(|p| matches!(p.kind, ParamKind::VarArgs | ParamKind::KwArgs));
        if wrapped || open || !self.is_direct() {
            return found;
        }
        let args = &self.launch.args;
        let starred = args.iter().any(|arg| arg.kind == ArgKind::Star);
        let spread = args.iter().any(|arg| arg.kind == ArgKind::DoubleStar);
        found.extend(self.keywords());
        if !starred {
            found.extend(self.surplus());
            found.extend(self.repeated());
            found.extend(self.tuned(tuning));
        }
        if !starred && !spread && tuning.complete && found.is_empty() {
            found.extend(self.missing(tuning));
        }
        found
    }

    /// True when the launch is of the function itself. Where a call made what is launched from it,
    /// as in `tuned = autotune(...)(kernel)`, the call may give arguments.
    fn is_direct(&self) -> bool {
        let (Expr::Name(name) | Expr::Attribute { attr: name, .. }) =
            &self.launch.body.exprs[self.launch.kernel]
        else {
            return false;
        };
        let Some(home) = self.sources.module(self.kernel.at.file) else { return false };
        let own = &self.kernel.item.name;
        let renamed = |item: &Item| matches!(&item.kind, ItemKind::ImportFrom { member, .. } if member == own);
        let mut bound =
            self.module.items_named(name).map(|index| &self.module.items[index as usize]);
        let defined = |item: &Item| matches!(item.kind, ItemKind::Function(_));
        bound.all(|item| if name == own { defined(item) || imports(item) } else { renamed(item) })
            && home.items_named(own).all(|index| defined(&home.items[index as usize]))
            && (name == own || self.module.items_named(name).next().is_some())
    }

    fn finding(&self, code: Code, range: TextRange, message: String) -> Diagnostic {
        let at = FileRange { file: self.file, range };
        let mut found = Diagnostic::new(code, at, message);
        found.kernel = Some(self.kernel.item.name.to_string());
        let defined = FileRange { file: self.kernel.at.file, range: self.kernel.item.name_range };
        found.with_related(defined, "the kernel is defined here")
    }

    fn range(&self, expr: ExprId) -> TextRange {
        self.launch.map.exprs[expr]
    }

    fn positional(&self) -> impl Iterator<Item = &Arg> {
        self.launch.args.iter().filter(|arg| arg.kind == ArgKind::Positional)
    }

    fn keyword_args(&self) -> impl Iterator<Item = (&Name, ExprId)> {
        self.launch.args.iter().filter_map(|arg| match &arg.kind {
            ArgKind::Keyword(name) => Some((name, arg.value)),
            _ => None,
        })
    }

    fn is_param(&self, name: &str) -> bool {
        self.kernel.function.params.iter().any(|param| &*param.name == name)
    }

    /// Keywords that are neither parameters nor options.
    fn keywords(&self) -> Vec<Diagnostic> {
        let unknown = self
            .keyword_args()
            .filter(|(name, _)| !self.is_param(name) && !OPTIONS.contains(&&***name));
        let finding = |(name, value): (&Name, ExprId)| {
            let message = format!("`{}` has no parameter `{name}`", self.kernel.item.name);
            let range = self.keyword_range(name, value).unwrap_or_else(|| self.range(value));
            let found = self.finding(Code::UnknownArgument, range, message);
            let names = self.kernel.function.params.iter().map(|param| &*param.name);
            let best = names
                .chain(OPTIONS[..4].iter().copied())
                .map(|known| {
                    (strsim::jaro_winkler(&name.to_lowercase(), &known.to_lowercase()), known)
                })
                .filter(|(score, _)| *score > 0.85)
                .max_by(|a, b| a.0.total_cmp(&b.0));
            match best {
                Some((_, known)) if self.keyword_range(name, value).is_some() => {
                    let at = FileRange { file: self.file, range };
                    let edit = TextEdit { at, text: known.to_owned() };
                    found.with_fix(format!("did you mean `{known}`?"), vec![edit])
                }
                Some(_) => found,
                // It may be an option of a back end or a version that is not known here.
                None => Diagnostic { severity: Severity::Warning, ..found },
            }
        };
        unknown.map(finding).collect()
    }

    /// Where the name of a keyword argument stands.
    fn keyword_range(&self, name: &str, value: ExprId) -> Option<TextRange> {
        let text = self.sources.text(self.file)?;
        let before = text.get(..self.range(value).start as usize)?;
        let before = before.trim_end_matches(|c: char| c.is_whitespace() || c == '(');
        let before = before.strip_suffix('=')?.trim_end();
        let start = before.strip_suffix(name)?.len();
        Some(TextRange::new(start, start + name.len()))
    }

    /// Positional arguments beyond the parameters.
    fn surplus(&self) -> Option<Diagnostic> {
        let params = &self.kernel.function.params;
        let takes = params.iter().filter(|param| param.kind == ParamKind::Normal).count();
        let first = self.positional().nth(takes)?;
        let given = self.positional().count();
        let message = format!(
            "`{}` takes {takes} arguments by position, but this launch gives {given}",
            self.kernel.item.name
        );
        Some(self.finding(Code::SurplusArgument, self.range(first.value), message))
    }

    /// Parameters given both by position and by name.
    fn repeated(&self) -> Option<Diagnostic> {
        let given = self.positional().count();
        let by_position: FxHashSet<&Name> =
            self.kernel.function.params.iter().take(given).map(|param| &param.name).collect();
        let (name, value) = self.keyword_args().find(|(name, _)| by_position.contains(name))?;
        let range = self.keyword_range(name, value).unwrap_or_else(|| self.range(value));
        let message = format!("`{name}` is given by position already");
        Some(self.finding(Code::RepeatedArgument, range, message))
    }

    /// Parameters given although autotuning sets them.
    fn tuned(&self, tuning: &Tuning) -> Option<Diagnostic> {
        let sets = |name: &Name| {
            !tuning.configs.is_empty()
                && tuning
                    .configs
                    .iter()
                    .all(|config| config.kwargs.iter().any(|(known, _)| known == name))
        };
        let (name, value) = self.keyword_args().find(|(name, _)| sets(name))?;
        let range = self.keyword_range(name, value).unwrap_or_else(|| self.range(value));
        let message = format!("`{name}` is set by `@triton.autotune`, so a launch cannot give it");
        Some(self.finding(Code::TunedArgument, range, message))
    }

    /// Parameters without a value.
    fn missing(&self, tuning: &Tuning) -> Option<Diagnostic> {
        let given = self.positional().count();
        let params = self.kernel.function.params.iter().enumerate();
        let missing: Vec<&str> = params
            .filter(|(index, param)| {
                let by_position = *index < given && param.kind == ParamKind::Normal;
                let by_name = self.keyword_args().any(|(name, _)| *name == param.name);
                let by_config = tuning
                    .configs
                    .iter()
                    .any(|config| config.kwargs.iter().any(|(name, _)| *name == param.name));
                let by_heuristics = tuning.heuristics.contains(&param.name);
                // Configurations may set options that the kernel takes as parameters.
                let by_option = OPTIONS[..4].contains(&&*param.name) && !tuning.configs.is_empty();
                param.default.is_none()
                    && !(by_position || by_name || by_config || by_heuristics || by_option)
            })
            .map(|(_, param)| &*param.name)
            .collect();
        if missing.is_empty() {
            return None;
        }
        let names: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
        let many = if names.len() == 1 { "argument" } else { "arguments" };
        let message = format!(
            "this launch of `{}` lacks the {many} {}",
            self.kernel.item.name,
            names.join(", ")
        );
        let range = self.range(self.launch.kernel).cover(self.range(self.launch.grid));
        Some(self.finding(Code::MissingLaunchArgument, range, message))
    }

    /// Options with values that they do not have.
    fn options(&self) -> Option<Diagnostic> {
        let (_, value) = self.keyword_args().find(|(name, _)| &***name == "num_warps")?;
        let Expr::Literal(Literal::Int(warps)) = self.launch.body.exprs[value] else { return None };
        if warps > 0 && warps & (warps - 1) == 0 {
            return None;
        }
        let message = format!("`num_warps` is a power of two, not {warps}");
        Some(self.finding(Code::WarpCount, self.range(value), message))
    }

    /// A grid that is a number, or has too many axes.
    fn grid(&self) -> Option<Diagnostic> {
        let grid = self.launch.grid;
        let range = self.range(grid);
        match &self.launch.body.exprs[grid] {
            Expr::Tuple(extents) | Expr::List(extents) => {
                let starred = extents
                    .iter()
                    .any(|extent| matches!(self.launch.body.exprs[*extent], Expr::Starred(_)));
                if starred || (1..=MAX_RANK).contains(&extents.len()) {
                    return None;
                }
                let message = format!("a grid has 1 to 3 extents, not {}", extents.len());
                Some(self.finding(Code::GridShape, range, message))
            }
            Expr::Literal(Literal::Float(_) | Literal::Str(_) | Literal::None) => {
                let message = "a grid is a tuple of integers, or a function that gives one";
                Some(self.finding(Code::GridShape, range, message.to_owned()))
            }
            // Scenarios take a number for a grid of one axis.
            _ if self.in_scenario() || !self.is_integer(grid) => None,
            _ => {
                let message = "a grid is a tuple: a number alone has no length".to_owned();
                let found = self.finding(Code::GridShape, range, message);
                let at = |offset: u32| FileRange {
                    file: self.file,
                    range: TextRange::empty(offset as usize),
                };
                let edits = vec![
                    TextEdit { at: at(range.start), text: "(".into() },
                    TextEdit { at: at(range.end), text: ",)".into() },
                ];
                Some(found.with_fix("make it a tuple", edits))
            }
        }
    }

    fn in_scenario(&self) -> bool {
        let mut scenarios = self.module.scenarios.iter();
        scenarios.any(|scenario| scenario.range.contains_range(self.launch.range))
    }

    /// True for what is certainly an integer.
    fn is_integer(&self, expr: ExprId) -> bool {
        match &self.launch.body.exprs[expr] {
            Expr::Literal(Literal::Int(_)) => true,
            Expr::Binary {
                op: BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::FloorDiv,
                lhs,
                rhs,
            } => self.is_integer(*lhs) && self.is_integer(*rhs),
            Expr::Call { callee, .. } => {
                let found = resolve_expr(self.sources, self.scope, &self.launch.body, *callee);
                found == Resolution::Triton("cdiv".into())
            }
            _ => false,
        }
    }
}

/// Names in the decorators of a kernel that are no parameters.
fn decorated(sources: &dyn Sources, kernel: &Kernel) -> Vec<Diagnostic> {
    let tuning = tuning(sources, kernel);
    let is_param = |name: &Name| kernel.function.params.iter().any(|param| param.name == *name);
    let open = kernel.function.params.iter().any(|param| param.kind == ParamKind::KwArgs);
    if open || kernel.decorators.iter().any(|d| matches!(d, Decorator::Other(_))) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut report = |name: &Name, what: &str| {
        let message = format!("`{}` has no parameter `{name}`, which {what}", kernel.item.name);
        let at = mention(kernel, name);
        let mut finding = Diagnostic::new(Code::TuningName, at, message);
        finding.kernel = Some(kernel.item.name.to_string());
        if !found.contains(&finding) {
            found.push(finding);
        }
    };
    for config in &tuning.configs {
        for (name, _) in &config.kwargs {
            if !is_param(name) && !OPTIONS.contains(&&**name) {
                report(name, "a configuration sets");
            }
        }
    }
    for name in &tuning.heuristics {
        if !is_param(name) && !OPTIONS.contains(&&**name) {
            report(name, "`@triton.heuristics` computes");
        }
    }
    let odd = tuning.configs.iter().filter_map(|config| config.num_warps);
    if let Some(warps) = odd.into_iter().find(|warps| !warps.is_power_of_two()) {
        let message = format!("`num_warps` is a power of two, not {warps}");
        let at = FileRange { file: kernel.at.file, range: kernel.item.name_range };
        found.push(Diagnostic::new(Code::WarpCount, at, message));
    }
    found
}

/// Where a decorator mentions a name as a string, else the kernel's name.
fn mention(kernel: &Kernel, name: &Name) -> FileRange {
    let end = kernel.item.name_range.start;
    let mut exprs = kernel.function.body.exprs.iter();
    let literal = exprs.find(|(id, expr)| {
        let before = kernel.function.map.exprs[*id].end <= end;
        before && matches!(expr, Expr::Literal(Literal::Str(text)) if text == name)
    });
    let range = literal.map_or(kernel.item.name_range, |(id, _)| kernel.function.map.exprs[id]);
    FileRange { file: kernel.at.file, range }
}
