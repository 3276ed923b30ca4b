//! A scenario for a kernel that has none.

use std::fmt::Write;

use tile_compiler::diagnostic::Fix;
use tile_compiler::eval::dtype::DType;
use tile_compiler::project::{self, ItemRef};
use tile_compiler::source::TextRange;
use tile_compiler::specialization::{
    ArgSpec, KnownLaunch, Specialization, WrittenLaunch, tuning, written_options,
};

use super::insert;
use crate::db::{self, Analysis, Db, Kernel, SourceFile, launched};
use crate::ide::fixes::line_end;
use crate::ide::trial::adds_no_error;

/// Elements of the tensors of a scenario that is made up: enough for any small grid.
const ELEMENTS: u32 = 1 << 20;

/// What a scenario that is made up passes for integers.
const NUMBER: u32 = 1024;

/// A scenario after a kernel that has none: as host code launches it, where that is known, else its
/// active specialization with made-up tensors. It is kept, since it is offered everywhere in the
/// kernel.
#[salsa::tracked(returns(clone))]
pub(super) fn scenario(db: &dyn Db, file: SourceFile, item: u32) -> Option<Fix> {
    let kernel = db::kernels(db, file).iter().find(|kernel| kernel.at.index == item)?;
    let spec = kernel.specialization(db, kernel.active(db))?.spec;
    let shown = shown(db, file, kernel);
    let launch = NewLaunch::of(db, kernel.at, &spec, shown)?;
    let text = file.text(db).as_ref()?.text();
    let newline = line_end(text);
    let mut scenario = format!("{newline}{newline}");
    for (name, value) in launch.variables {
        let _ = write!(scenario, "# tile: {name} = {value}{newline}");
    }
    let grid = shown.map_or("(1,)".to_owned(), WrittenLaunch::grid);
    let _ = write!(scenario, "# tile: {}[{grid}]({})", kernel.name, launch.args.join(", "));
    // A comment may follow the kernel on its last line.
    let rest = text.get(kernel.range.end as usize..)?;
    let end = kernel.range.end as usize + rest.find(['\r', '\n']).unwrap_or(rest.len());
    let fix = Fix {
        title: format!("Add a scenario that launches `{}`", kernel.name),
        edits: vec![insert(db, file, TextRange::empty(end).start, scenario)],
    };
    adds_no_error(db, file, &fix).then_some(fix)
}

/// What host code shows of a launch of the kernel, whose grid is the same under each of its
/// specializations: a scenario is for all of them.
fn shown<'db>(db: &'db dyn Db, file: SourceFile, kernel: &Kernel) -> Option<&'db WrittenLaunch> {
    let written = launched::written(db, file, kernel.at.index).first()?;
    let mut launches = kernel.specializations.iter().flat_map(|known| &known.spec.launches);
    let is_same = |launch: &KnownLaunch| {
        launch.site != Some(written.site) || launch.grid == Some(written.grid)
    };
    launches.all(is_same).then_some(written)
}

/// A launch that a scenario is to make.
#[derive(Default)]
struct NewLaunch {
    /// Variables of the scenario with their values.
    variables: Vec<(String, String)>,
    /// The arguments as they are written.
    args: Vec<String>,
}

impl NewLaunch {
    /// A launch that `spec` is for, with the values of the one that is `shown`. `None` where an
    /// argument can neither be shown nor made up, or where it is not known what the decorators set.
    fn of(
        db: &dyn Db,
        at: ItemRef,
        spec: &Specialization,
        shown: Option<&WrittenLaunch>,
    ) -> Option<NewLaunch> {
        let sources = Analysis(db);
        let tuning = tuning(&sources, &project::kernel(&sources, at)?);
        if !tuning.complete && tuning.spelled.is_none() {
            return None;
        }
        let mut launch = NewLaunch::default();
        // What follows an argument by name, or one that the decorators set, is given by name.
        let mut by_position = true;
        for (name, arg) in &spec.args {
            let value = match arg {
                _ if tuning.may_set(name) => {
                    by_position = false;
                    continue;
                }
                ArgSpec::Constexpr(value) => {
                    by_position = false;
                    value.to_string()
                }
                ArgSpec::Runtime { signature, .. } => {
                    let known = shown.and_then(|launch| launch.arg(name).map(str::to_owned));
                    let value = known.or_else(|| made_up(name, signature))?;
                    launch.variables.push((name.to_string(), value));
                    name.to_string()
                }
                ArgSpec::Tuple(_) => return None,
            };
            launch.args.push(if by_position { value } else { format!("{name}={value}") });
        }
        if tuning.configs.is_empty() {
            let options = written_options(&spec.options).into_iter();
            launch.args.extend(options.map(|(name, value)| format!("{name}={value}")));
        }
        Some(launch)
    }
}

/// A value for a parameter of this type.
fn made_up(name: &str, signature: &str) -> Option<String> {
    let Some(element) = signature.strip_prefix('*') else {
        let is_float = signature.starts_with("fp") || signature.starts_with("bf");
        return (!signature.starts_with("tensordesc"))
            .then(|| if is_float { "1.0".to_owned() } else { NUMBER.to_string() });
    };
    let dtype = DType::from_signature(element.trim_start_matches('k'))?;
    let member = dtype.member();
    let suffix = if member == "float32" { String::new() } else { format!(", dtype={member}") };
    let is_output = name.starts_with("out") || name.contains("_out") || name.starts_with("o_");
    Some(match () {
        () if is_output => format!("empty({ELEMENTS}{suffix})"),
        () if member.contains("int") => format!("randint(0, 8, {ELEMENTS}{suffix})"),
        () => format!("randn({ELEMENTS}{suffix})"),
    })
}
