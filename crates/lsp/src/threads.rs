//! Asking the same of many things at once.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::db::{Database, Db};

/// How many threads the machine runs at once.
pub(crate) fn available() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Asks about all `items` on a thread for each of `states`; the answers in the order of the items.
/// Fewer than there are items where no thread could be started. What panics in one of them, panics
/// here: that an edit overtakes a query is told that way.
pub(crate) fn ask_with<I: Sync, S: Send, T: Send>(
    items: &[I],
    states: Vec<S>,
    ask: &(impl Fn(&S, &I) -> T + Sync),
) -> Vec<T> {
    let next = &AtomicUsize::new(0);
    let work = move |state: S| {
        let mut answers = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return answers };
            answers.push((index, ask(&state, item)));
        }
    };
    let mut answers: Vec<(usize, T)> = std::thread::scope(|scope| {
        let builder = || std::thread::Builder::new().stack_size(tile_compiler::eval::STACK_BYTES);
        let start = |state| builder().spawn_scoped(scope, move || work(state)).ok();
        let threads: Vec<_> = states.into_iter().map_while(start).collect();
        let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        let answers = ended.into_iter().map(|ended| match ended {
            Ok(answers) => answers,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        answers.flatten().collect()
    });
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Asks a snapshot of `db` about all `items`, on as many threads as the machine runs at once; the
/// answers in the order of the items.
pub(crate) fn ask_all<I: Sync, T: Send>(
    db: &dyn Db,
    items: &[I],
    ask: impl Fn(&dyn Db, &I) -> T + Sync,
) -> Vec<T> {
    let threads = available().min(items.len());
    if threads > 1 {
        let snapshots = (0..threads).map(|_| db.snapshot()).collect();
        let answers = ask_with(items, snapshots, &|db: &Database, item| ask(db, item));
        if answers.len() == items.len() {
            return answers;
        }
    }
    items.iter().map(|item| ask(db, item)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..1000).collect();
        let answers = ask_with(&items, vec![1, 1, 1], &|add, item| item + add);
        assert_eq!(answers, (1..=1000).collect::<Vec<_>>());
    }

    #[test]
    fn what_unwinds_on_a_thread_unwinds_here() {
        let ask = |(): &(), item: &usize| {
            if *item == 7 {
                std::panic::resume_unwind(Box::new("overtaken"));
            }
        };
        let items: Vec<usize> = (0..20).collect();
        let ended = std::panic::catch_unwind(|| ask_with(&items, vec![(), ()], &ask));
        let panic = ended.expect_err("the seventh unwinds");
        assert_eq!(panic.downcast_ref(), Some(&"overtaken"));
    }
}
