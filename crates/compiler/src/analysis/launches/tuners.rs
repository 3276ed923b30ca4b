//! Decorators that fail where a function is defined, before anything is launched: those that tune what
//! is no kernel, and calls of them that lack an argument.

use crate::builtins::{self, TRITON, TritonVersion};
use crate::diagnostic::{Code, Diagnostic, TextEdit};
use crate::hir::{Arg, ArgKind, Expr, ExprId, Function, Item, ItemKind, Module};
use crate::project::{
    Decorator, ItemRef, Sources, callee, calls_plainly, decorators, is_expected_to_fail,
};
use crate::source::{FileId, FileRange, TextRange};

/// What is wrong with `@triton.autotune` and `@triton.heuristics` of the functions of `file`.
pub(super) fn check(sources: &dyn Sources, file: FileId, module: &Module) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (index, item) in module.items.iter().enumerate() {
        let ItemKind::Function(function) = &item.kind else { continue };
        if function.decorators.is_empty() {
            continue;
        }
        let at = ItemRef { file, index: index as u32 };
        let decorators = decorators(sources, at);
        let tuners = decorators.iter().enumerate().filter_map(|(position, decorator)| {
            let (id, name) = match decorator {
                Decorator::Autotune(id) => (*id, "autotune"),
                Decorator::Heuristics(id) => (*id, "heuristics"),
                _ => return None,
            };
            let (above, rest) = decorators.split_at(position);
            Some(Tuner { file, item, function, id, name, above, below: &rest[1..] })
        });
        found.extend(tuners.filter_map(|tuner| tuner.lacking().or_else(|| tuner.unmade(sources))));
    }
    found.retain(|found| !is_expected_to_fail(sources, file, found.primary.range));
    found
}

/// A decorator of a function that tunes it.
struct Tuner<'a> {
    file: FileId,
    item: &'a Item,
    function: &'a Function,
    id: ExprId,
    name: &'static str,
    /// The decorators that come after it.
    above: &'a [Decorator],
    /// Those that have made something of the function before.
    below: &'a [Decorator],
}

impl Tuner<'_> {
    fn finding(&self, code: Code, message: String) -> Diagnostic {
        let range = self.function.map.exprs[callee(&self.function.body, self.id)];
        Diagnostic::new(code, FileRange { file: self.file, range }, message)
    }

    /// A call without an argument that it must have; a decorator that is not called has the function
    /// for its first.
    fn lacking(&self) -> Option<Diagnostic> {
        let args: &[Arg] = match &self.function.body.exprs[self.id] {
            Expr::Call { args, .. } => args,
            _ => return None,
        };
        if !calls_plainly(&self.function.body, self.id, self.name) {
            return None;
        }
        let positional = args.iter().filter(|arg| arg.kind == ArgKind::Positional).count();
        let is_named = |name: &str| {
            args.iter().any(|arg| matches!(&arg.kind, ArgKind::Keyword(given) if &**given == name))
        };
        let builtin = builtins::member(TRITON, self.name)?;
        let mut params = builtin.parameters(TritonVersion::V3_9).iter().skip(positional);
        let missing = params.find(|param| param.default.is_none() && !is_named(param.name))?;
        let message = format!("`triton.{}` is called without `{}`", self.name, missing.name);
        Some(self.finding(Code::MissingArgument, message))
    }

    /// A function that nothing has made a kernel of: what tunes asks a kernel for its parameters.
    fn unmade(&self, sources: &dyn Sources) -> Option<Diagnostic> {
        let is_tuner =
            |found: &Decorator| matches!(found, Decorator::Autotune(_) | Decorator::Heuristics(_));
        if !self.below.iter().all(is_tuner) {
            return None;
        }
        let message = format!(
            "`@triton.{}` needs a kernel, but `{}` is a plain Python function here",
            self.name, self.function.name
        );
        let found = self.finding(Code::HostFunction, message);
        if self.above.iter().any(|found| matches!(found, Decorator::Jit(_))) {
            return Some(found.with_note("`@triton.jit` comes first: it stands below all others"));
        }
        Some(found.with_fix("Make a kernel of it", vec![self.made(sources)?]))
    }

    /// The edit that makes a kernel of the function.
    fn made(&self, sources: &dyn Sources) -> Option<TextEdit> {
        let text = sources.text(self.file)?;
        let start = self.item.range.start as usize;
        let line = text.get(..start)?.rfind('\n').map_or(0, |end| end + 1);
        let last = self.function.map.exprs[*self.function.decorators.last()?].end;
        let at = FileRange { file: self.file, range: TextRange::empty(last as usize) };
        Some(TextEdit { at, text: format!("\n{}@triton.jit", text.get(line..start)?) })
    }
}
