//! Applies document changes in the order in which they arrive.
//!
//! tower-lsp runs handlers concurrently, so two `didChange` handlers may be polled in either
//! order. But it *calls* the service once per message, in order, before any handler runs. This
//! layer applies notifications that change state right there; the handlers that run later find
//! them applied.

use std::task::{Context, Poll};

use tower::Service;
use tower_lsp::jsonrpc::{Request, Response};

/// Whatever keeps the state that notifications change.
pub(crate) trait ApplyInOrder {
    /// Applies the notification if it is one that changes state. Must not wait for anything.
    fn apply(&self, method: &str, params: Option<&serde_json::Value>);
}

/// A service that lets `state` see every message before `inner` does.
#[derive(Debug)]
pub(crate) struct Ordered<S, T> {
    inner: S,
    state: T,
}

impl<S, T> Ordered<S, T> {
    /// Wraps `inner`.
    pub(crate) fn new(inner: S, state: T) -> Ordered<S, T> {
        Ordered { inner, state }
    }
}

impl<S, T> Service<Request> for Ordered<S, T>
where
    S: Service<Request, Response = Option<Response>>,
    T: ApplyInOrder,
{
    type Response = Option<Response>;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> S::Future {
        if request.id().is_none() {
            self.state.apply(request.method(), request.params());
        }
        self.inner.call(request)
    }
}
