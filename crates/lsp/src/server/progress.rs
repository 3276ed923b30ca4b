//! Progress items that the client shows for work of the server's own.

use std::sync::atomic::{AtomicU64, Ordering};

use tower_lsp::ls_types::{NumberOrString, ProgressToken};

use crate::server::state::State;

/// A progress item of the server's own making, where the client shows such.
pub(crate) async fn create(state: &State) -> Option<ProgressToken> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    if !state.session()?.client.progress {
        return None;
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let token = NumberOrString::String(format!("tile/work/{number}"));
    state.client.create_work_done_progress(token.clone()).await.ok()?;
    Some(token)
}
