//! `tile worker`: compiles and runs on behalf of another `tile` process.
//!
//! Requests come as lines on standard input, one at a time; see [`tile_worker::protocol`]. The
//! process ends when its input does, and so with the process that started it.

use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use tile_worker::protocol::{Body, Failure, FailureKind, Request, Response, Task};

use crate::Exit;

/// Serves requests until standard input ends.
pub(crate) fn run() -> Exit {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if line.trim().is_empty() {
            continue;
        }
        let (id, body) = match serde_json::from_str::<Request>(&line) {
            Ok(request) => (request.id, answer(request)),
            Err(error) => {
                let message = format!("a request could not be read: {error}");
                (0, Body::Failed(Failure::new(FailureKind::Internal, message)))
            }
        };
        if send(id, body).is_err() {
            break;
        }
    }
    Exit::Success
}

/// Does the work; a panic in it is an answer too.
fn answer(request: Request) -> Body {
    let id = request.id;
    let mut report = |body: Body| {
        // A client that is gone is noticed at the end.
        let _ = send(id, body);
    };
    let work = AssertUnwindSafe(|| perform(request.task, &mut report));
    match catch_unwind(work) {
        Ok(Ok(body)) => body,
        Ok(Err(failure)) => Body::Failed(failure),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("no message");
            let message = format!("the compiler is at fault: {text}");
            Body::Failed(Failure::new(FailureKind::Internal, message))
        }
    }
}

fn send(id: u64, body: Body) -> std::io::Result<()> {
    let line = serde_json::to_string(&Response { id, body })?;
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}
