//! `textDocument/codeLens`.

use serde_json::{Value, json};
use tower_lsp::ls_types::{CodeLens, Command, Uri};

use crate::ide::lenses::{Action, StatusOf, Wanted, lenses};
use crate::server::ext::command;
use crate::server::state::{Snapshot, State};

/// The lenses of a document.
pub(crate) fn code_lenses(state: &State, snapshot: &Snapshot, uri: &Uri) -> Vec<CodeLens> {
    let Some(open) = snapshot.document(uri) else { return Vec::new() };
    let configuration = snapshot.configuration(state, open);
    let settings = &configuration.settings;
    let wanted = Wanted {
        run: settings.run_lenses,
        ir: settings.ir_lens,
        resources: settings.resources_lens,
        specialization: settings.specialization_lens,
    };
    let status = |key: &_| state.compiler()?.status(key);
    let status: Option<StatusOf<'_>> = state.compiler().is_some().then_some(&status);
    let lenses = lenses(&snapshot.db, open.file, wanted, status);
    lenses
        .into_iter()
        .map(|lens| {
            let (name, argument) = command(uri, &lens.kernel, lens.action);
            let command = Command::new(lens.title, name.to_owned(), Some(vec![argument]));
            CodeLens {
                range: snapshot.range(open.file, lens.range),
                command: Some(command),
                data: None,
            }
        })
        .collect()
}

/// The command of an action and its argument.
pub(crate) fn command(uri: &Uri, kernel: &str, action: Action) -> (&'static str, Value) {
    match action {
        Action::Run(None) => (command::RUN, json!({ "uri": uri, "kernel": kernel })),
        Action::Run(Some(number)) => {
            (command::RUN, json!({ "uri": uri, "kernel": kernel, "scenario": number }))
        }
        Action::Bench => (command::BENCH, json!({ "uri": uri, "kernel": kernel })),
        Action::ShowPtx => {
            (command::VIEW_IR, json!({ "uri": uri, "kernel": kernel, "stage": "ptx" }))
        }
        Action::Measure => (command::MEASURE, json!({ "uri": uri, "kernel": kernel })),
        Action::Tune => (command::TUNE, json!({ "uri": uri, "kernel": kernel })),
        Action::Select => (command::SELECT, json!({ "uri": uri, "kernel": kernel })),
    }
}
