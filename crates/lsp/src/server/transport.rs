//! Messages in, messages out.
//!
//! Each message is handed to the service in the order in which it came; each handler then runs as
//! a task of its own. A message that cannot be read is answered with an error and skipped: a
//! client's mistake does not end the session.

use std::io::{ErrorKind, Read, Write};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::{FutureExt, SinkExt, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, ReadBuf,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tower::Service;
use tower_lsp::ClientSocket;
use tower_lsp::jsonrpc::{Error, ErrorCode, Id, Request, Response};

use crate::server::internal;
use crate::server::state::panic_text;

/// A message beyond this size is a mistake; the session ends rather than take the memory.
const MAX_MESSAGE_BYTES: u64 = 256 << 20;

/// Serves until the client says `exit` or hangs up.
pub(crate) async fn serve<I, O, S>(input: I, output: O, mut service: S, socket: ClientSocket)
where
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin + Send + 'static,
    S: Service<Request, Response = Option<Response>>,
    S::Future: Send + 'static,
    S::Error: std::fmt::Display + Send + 'static,
{
    let (outgoing, queue) = unbounded_channel();
    let mut tasks = JoinSet::new();
    let (mut to_client, mut from_client) = socket.split();
    let requests = outgoing.clone();
    tasks.spawn(async move {
        while let Some(request) = to_client.next().await {
            send(&requests, &request);
        }
    });
    let writer = tokio::spawn(write(output, queue));
    let mut input = BufReader::with_capacity(1 << 16, input);
    while let Some(length) = read_header(&mut input).await {
        if length > MAX_MESSAGE_BYTES {
            tracing::error!(length, "a message is too large");
            let text = format!("{length} bytes are over the limit of {MAX_MESSAGE_BYTES}");
            send(&outgoing, &Response::from_error(Id::Null, invalid(text)));
            break;
        }
        let mut body = vec![0; length as usize];
        if input.read_exact(&mut body).await.is_err() {
            break;
        }
        match parse(&body) {
            Ok(Incoming::Response(response)) => {
                // Fails when nobody waits for it any more.
                let _ = from_client.send(response).await;
            }
            Ok(Incoming::Request(request)) => {
                if let Some(refused) = refusal(&request) {
                    send(&outgoing, &refused);
                    continue;
                }
                let ends = request.method() == "exit";
                // What follows may rely on what was agreed, and must not overtake the end.
                let in_order = matches!(request.method(), "initialize" | "shutdown");
                let id = request.id().cloned();
                let mut handled = Box::pin(answer(id, service.call(request), outgoing.clone()));
                // Begun here, so that whoever works on it need not wait for another thread to wake.
                if in_order {
                    handled.await;
                } else if futures_util::poll!(&mut handled).is_pending() {
                    tasks.spawn(handled);
                }
                if ends {
                    break;
                }
            }
            Err(error) => send(&outgoing, &Response::from_error(Id::Null, error)),
        }
        while tasks.try_join_next().is_some() {}
    }
    tasks.shutdown().await;
    drop(outgoing);
    // The writer ends when the queue does, or failed because the client is gone.
    let _ = writer.await;
}

/// The answer to a request that the service drops in silence: names with a dollar are those of
/// notifications that may be ignored, which a request may not.
fn refusal(request: &Request) -> Option<Response> {
    let id = request.id().filter(|_| request.method().starts_with("$/"))?;
    Some(Response::from_error(id.clone(), Error::method_not_found()))
}

/// Sends what a handler answers. One that panics ends with its own message.
async fn answer<E: std::fmt::Display>(
    id: Option<Id>,
    handled: impl Future<Output = Result<Option<Response>, E>>,
    outgoing: UnboundedSender<String>,
) {
    match AssertUnwindSafe(handled).catch_unwind().await {
        Ok(Ok(Some(response))) => send(&outgoing, &response),
        Ok(Ok(None)) => {}
        Ok(Err(error)) => tracing::error!(%error, "a message was not handled"),
        Err(payload) => {
            let error = internal(&panic_text(&*payload));
            if let Some(id) = id {
                send(&outgoing, &Response::from_error(id, error));
            }
        }
    }
}

fn send(outgoing: &UnboundedSender<String>, message: &impl Serialize) {
    match serde_json::to_string(message) {
        // A queue that is closed belongs to a session that is over.
        Ok(body) => drop(outgoing.send(body)),
        Err(error) => tracing::error!(%error, "a message cannot be written"),
    }
}

async fn write(mut output: impl AsyncWrite + Unpin, mut queue: UnboundedReceiver<String>) {
    while let Some(body) = queue.recv().await {
        // Standard output passes on whole lines: with one more, which JSON allows, a message goes out at
        // once instead of its header first.
        let message = format!("Content-Length: {}\r\n\r\n{body}\n", body.len() + 1);
        let written = output.write_all(message.as_bytes()).await;
        let flushed = if queue.is_empty() { output.flush().await } else { Ok(()) };
        if let Err(error) = written.and(flushed) {
            tracing::warn!(%error, "the client does not listen any more");
            return;
        }
    }
}

/// Standard input, read where messages are begun: whoever reads it through tokio waits for a thread to
/// wake for every few bytes. Reads block their thread, which must have nothing else to do.
#[derive(Debug)]
pub(crate) struct DirectStdin(pub(crate) std::io::Stdin);

impl AsyncRead for DirectStdin {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        loop {
            match self.0.read(buffer.initialize_unfilled()) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => return Poll::Ready(read.map(|count| buffer.advance(count))),
            }
        }
    }
}

/// Standard output, written where a message is ready: through threads for what blocks, as tokio's is, a
/// message waits for two of them to wake. A client that does not read holds up the other answers, never
/// what it sends.
#[derive(Debug)]
pub(crate) struct DirectStdout(pub(crate) std::io::Stdout);

impl AsyncWrite for DirectStdout {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Poll::Ready(self.0.write(bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(self.0.flush())
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        self.poll_flush(context)
    }
}

/// Longest line of a header, in bytes.
const MAX_HEADER_BYTES: u64 = 1 << 16;

/// The length of the next message in bytes, headers without one skipped; `None` at the end of the
/// input.
async fn read_header(input: &mut (impl AsyncBufReadExt + Unpin)) -> Option<u64> {
    let mut length = None;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input.take(MAX_HEADER_BYTES).read_until(b'\n', &mut line).await;
        if !matches!(read, Ok(1..)) {
            return None;
        }
        let header = String::from_utf8_lossy(&line);
        let header = header.trim();
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<u64>().ok();
        }
        if header.is_empty() && length.is_some() {
            return length;
        }
    }
}

enum Incoming {
    Request(Request),
    Response(Response),
}

fn parse(body: &[u8]) -> Result<Incoming, Error> {
    let value: Value = serde_json::from_slice(body).map_err(|error| {
        tracing::warn!(%error, "a message is not JSON");
        Error::parse_error()
    })?;
    let incoming = if value.get("method").is_some() {
        Request::deserialize(value).map(Incoming::Request)
    } else {
        Response::deserialize(value).map(Incoming::Response)
    };
    incoming.map_err(|error| invalid(format!("not a message of JSON-RPC 2.0: {error}")))
}

fn invalid(message: String) -> Error {
    Error { code: ErrorCode::InvalidRequest, message: message.into(), data: None }
}
