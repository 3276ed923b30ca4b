//! What a client asks for goes before what it did not ask for.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Editors ask this soon after an edit, or after an answer, for what they ask next.
const PAUSE: Duration = Duration::from_millis(1);

/// A request that takes longer, as one that runs a kernel does, holds up nothing.
const PATIENCE: Duration = Duration::from_millis(20);

/// The requests of a session.
#[derive(Debug, Default)]
pub(crate) struct Answering(watch::Sender<Requests>);

/// How many requests there are.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Requests {
    begun: u64,
    ended: u64,
}

/// A request that is being answered; until it is dropped.
#[derive(Debug)]
pub(crate) struct Answer(watch::Sender<Requests>);

impl Answering {
    /// Counts one more.
    pub(crate) fn begin(&self) -> Answer {
        self.0.send_modify(|requests| requests.begun += 1);
        Answer(self.0.clone())
    }

    /// Waits until the requests that follow an edit are answered.
    pub(crate) async fn go_first(&self) {
        // To be out of patience is no error.
        let _ = timeout(PATIENCE, self.pause()).await;
    }

    /// Waits for a time in which nothing is asked.
    async fn pause(&self) {
        let mut requests = self.0.subscribe();
        loop {
            let all_ended = |requests: &Requests| requests.begun == requests.ended;
            let Ok(before) = requests.wait_for(all_ended).await.map(|requests| *requests) else {
                return;
            };
            sleep(PAUSE).await;
            if *requests.borrow() == before {
                return;
            }
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.0.send_modify(|requests| requests.ended += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_waits_goes_on_in_a_pause_between_requests() {
        let answering = Answering::default();
        let first = answering.begin();
        let requests = async {
            sleep(PAUSE * 3).await;
            drop(first);
            let second = answering.begin();
            sleep(PAUSE * 3).await;
            drop(second);
        };
        let start = tokio::time::Instant::now();
        tokio::join!(answering.go_first(), requests);
        assert_eq!(start.elapsed(), PAUSE * 7);
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_request_is_not_waited_for() {
        let answering = Answering::default();
        let _long = answering.begin();
        let start = tokio::time::Instant::now();
        answering.go_first().await;
        assert_eq!(start.elapsed(), PATIENCE);
    }
}
