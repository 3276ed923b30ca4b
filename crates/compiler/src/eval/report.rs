//! Reporting: where a finding goes, what it names, and the reasons behind a value.

use super::display::{shape_text, type_text};
use super::value::{Origin, Shape, Value};
use super::{Evaluator, Failing, Frame, OriginKind, Remainder, Stop};
use crate::diagnostic::{Code, Diagnostic, Severity, TextEdit};
use crate::source::{FileRange, TextRange};

/// Reasons listed at most for one finding.
const MAX_REASONS: usize = 6;

impl Evaluator<'_> {
    /// Reports `diagnostic`, which is in terms of the text evaluated now. Inside an inlined
    /// helper the primary place becomes the outermost call.
    pub(super) fn emit_diagnostic(&mut self, mut diagnostic: Diagnostic) -> Stop {
        let is_silent = self.quiet > 0 || self.muted > 0;
        if is_silent || self.proves_nothing(diagnostic.code) {
            return Stop::Reported;
        }
        if self.is_left_open(diagnostic.code) {
            self.emitter = None;
            return Stop::Reported;
        }
        let is_error = diagnostic.severity == Severity::Error;
        if is_error && self.may_never_compile() {
            diagnostic.severity = Severity::Warning;
        }
        let inner = diagnostic.primary;
        if let Some(outer) = self.outermost_call() {
            let helper = self.frame().function.as_ref().map(|f| f.function.name.clone());
            let place = helper.map_or_else(String::new, |name| format!(" `{name}`"));
            diagnostic.related.insert(
                0,
                crate::diagnostic::Related {
                    at: inner,
                    message: format!("inside the inlined function{place}"),
                },
            );
            diagnostic.fixes.clear();
            diagnostic.primary = outer;
        }
        diagnostic.kernel = Some(self.kernel.to_string());
        diagnostic.specialization.clone_from(&self.label);
        if is_error {
            if !self.failed {
                self.steps_to_error = self.steps;
                let related = diagnostic.related.iter().map(|related| related.at);
                let related = related.filter(|at| at.file == inner.file && *at != inner);
                let related: Vec<_> = related.map(|at| at.range).collect();
                self.failing = self.failing_at(inner);
                if let Some(innermost) = self.failing.first_mut() {
                    innermost.related = related;
                }
            }
            self.failed = true;
            self.emitter = None;
            if self.ends_at_error {
                self.steps = u32::MAX;
            }
        }
        if self.reported.insert((diagnostic.code, diagnostic.primary, inner)) {
            self.diagnostics.push(diagnostic);
        }
        Stop::Reported
    }

    /// True when an error of `code` at `at` was reported before, from the same call: an unrolled
    /// loop meets it in every trip.
    pub(super) fn is_reported(&self, code: Code, at: FileRange) -> bool {
        let primary = self.outermost_call().unwrap_or(at);
        self.reported.contains(&(code, primary, at))
    }

    /// True for what is not understood where syntax errors leave values open: these are what is
    /// reported.
    fn is_left_open(&self, code: Code) -> bool {
        let is_broken = |frame: &Frame| {
            frame.function.as_ref().is_some_and(|it| it.function.body.broken.is_some())
        };
        code == Code::NotUnderstood && self.frames.iter().any(is_broken)
    }

    /// True for a finding about types where only some types get to.
    fn proves_nothing(&self, code: Code) -> bool {
        let refined = self.refined > 0
            || self.frames.iter().any(|frame| frame.remainder == Remainder::Refined);
        refined && !self.exact && !code.name().starts_with("name/")
    }

    /// True for a finding under a flag that nothing is known of: Triton refuses the kernel only if
    /// somebody sets it.
    fn may_never_compile(&self) -> bool {
        !self.exact && self.may_be_dead()
    }

    /// True where code may be dead at compile time.
    pub(super) fn may_be_dead(&self) -> bool {
        self.speculative > 0 || self.frames.iter().any(|frame| frame.remainder != Remainder::Live)
    }

    /// Reports an error without extras.
    pub(super) fn error(&mut self, code: Code, at: FileRange, message: impl Into<String>) -> Stop {
        self.emit_diagnostic(Diagnostic::new(code, at, message))
    }

    /// The user's own call, when the text evaluated now was inlined.
    pub(super) fn outermost_call(&self) -> Option<FileRange> {
        let inlined = self
            .frames
            .iter()
            .position(|frame| frame.call != FileRange::default() && frame.function.is_some())?;
        Some(self.frames[inlined].call)
    }

    /// What fails at `at`, and the calls that led there, innermost first.
    fn failing_at(&self, at: FileRange) -> Vec<Failing> {
        let mut found = Vec::new();
        let mut at = at.range;
        for frame in self.frames.iter().rev() {
            if let Some(function) = &frame.function {
                found.push(Failing {
                    function: function.function.clone(),
                    at,
                    related: Vec::new(),
                });
            }
            if frame.call != FileRange::default() {
                at = frame.call.range;
            }
        }
        found
    }

    /// Adds why `origin` is not a compile-time value, nearest reason first, and a fix where an
    /// annotation would make it one.
    pub(super) fn with_reasons(&self, mut diagnostic: Diagnostic, origin: Origin) -> Diagnostic {
        let mut next = origin;
        // What a call makes of an argument exists at run time whatever the argument is.
        let mut is_direct = true;
        for _ in 0..MAX_REASONS {
            let Some(data) = self.origins.get(next.0 as usize) else { break };
            match &data.kind {
                OriginKind::Argument(name) => {
                    diagnostic =
                        diagnostic.with_related(data.at, format!("`{name}` is a runtime argument"));
                    if is_direct {
                        let edit = self.constexpr_annotation(data.at);
                        let title = format!("Make `{name}` a `tl.constexpr`");
                        diagnostic = diagnostic.with_fix(title, vec![edit]);
                    }
                }
                OriginKind::Literal(name) if self.is_own_param(name) => {
                    diagnostic = diagnostic.with_related(
                        data.at,
                        format!("this assignment makes a run-time value of the parameter `{name}`: bind the result to another name, annotated with `tl.constexpr`"),
                    );
                }
                OriginKind::Literal(name) => {
                    diagnostic = diagnostic.with_related(
                        data.at,
                        format!("this assignment turns the literal into a tensor; annotate `{name}: tl.constexpr`"),
                    );
                    let insert = FileRange {
                        file: data.at.file,
                        range: TextRange::empty(data.at.range.end as usize),
                    };
                    let edit = TextEdit { at: insert, text: ": tl.constexpr".to_owned() };
                    diagnostic = diagnostic
                        .with_fix(format!("Annotate `{name}` as `tl.constexpr`"), vec![edit]);
                }
                OriginKind::Call(name) => {
                    diagnostic = diagnostic.with_related(
                        data.at,
                        format!("the result of `{name}` exists at run time"),
                    );
                    is_direct = false;
                }
                OriginKind::LoopIndex | OriginKind::AfterLoop(_) => {
                    diagnostic = diagnostic.with_related(
                        data.at,
                        "the index of a run-time loop; `tl.static_range` makes it a constexpr",
                    );
                }
            }
            next = data.parent;
        }
        diagnostic
    }

    /// Whether the function that is evaluated has a parameter of this name.
    fn is_own_param(&self, name: &crate::hir::Name) -> bool {
        let function = self.frame().function.as_ref();
        function.is_some_and(|of| of.function.params.iter().any(|param| param.name == *name))
    }

    /// The edit that annotates the parameter whose name stands at `at`, in place of what it is
    /// annotated with.
    fn constexpr_annotation(&self, at: FileRange) -> TextEdit {
        let functions = self.frames.iter().filter_map(|frame| frame.function.as_ref());
        let annotation = functions.filter(|known| known.file == at.file).find_map(|known| {
            let mut params = known.function.params.iter();
            let param = params.find(|param| param.range == at.range)?;
            Some(known.function.map.exprs[param.annotation?])
        });
        let end = annotation.map_or(at.range.end, |annotation| annotation.end);
        let range = TextRange::new(at.range.end as usize, end as usize);
        TextEdit { at: FileRange { file: at.file, range }, text: ": tl.constexpr".to_owned() }
    }

    /// The error that `what` must be a compile-time value but `value` is not.
    pub(super) fn not_constexpr(
        &mut self,
        code: Code,
        what: &str,
        value: &Value,
        at: FileRange,
    ) -> Stop {
        match self.why_not_constexpr(code, what, value, at) {
            Some(diagnostic) => self.emit_diagnostic(diagnostic),
            None => Stop::Unknown,
        }
    }

    /// What [`Self::not_constexpr`] reports; `None` where the value may be a constexpr.
    pub(super) fn why_not_constexpr(
        &self,
        code: Code,
        what: &str,
        value: &Value,
        at: FileRange,
    ) -> Option<Diagnostic> {
        let origin = match value {
            Value::Unknown => return None,
            // What a helper is given may be a constexpr.
            Value::Tensor(tensor) if tensor.shape.rank().is_none() => return None,
            Value::Tensor(tensor) => tensor.origin,
            _ => Origin::NONE,
        };
        let message = format!("{what} must be a compile-time value, but this is {}", a(value));
        let diagnostic = Diagnostic::new(code, at, message);
        Some(self.with_reasons(diagnostic, origin))
    }
}

/// `a fp32 scalar`, `a tile<4 x int32>`, `a tuple`.
pub(super) fn a(value: &Value) -> String {
    match value {
        Value::Tensor(tensor) if tensor.elem.is_unknown() => "a run-time value".to_owned(),
        Value::Tensor(tensor) if tensor.is_scalar() => format!("a run-time `{}`", tensor.elem),
        other => format!("`{}`", type_text(other)),
    }
}

/// `[4, 8]` of a tensor.
pub(super) fn extents(shape: &Shape) -> String {
    shape_text(shape)
}
