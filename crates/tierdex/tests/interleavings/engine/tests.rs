use super::ticket::{Reply, Ticket};
use super::{current::Current, request::Hits};
use crate::error::Error;
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An integer of loom, whose accesses are interleaved too.
type Newest = loom::sync::atomic::AtomicUsize;

/// Runs `caller` with a ticket, while another thread runs `answer` with its reply.
fn run_beside(answer: fn(Reply), caller: fn(Ticket)) {
    loom::model(move || {
        let (ticket, reply) = Ticket::new(None);
        let thread = thread::spawn(move || answer(reply));
        caller(ticket);
        thread.join().unwrap();
    });
}

#[test]
fn an_answer_is_waited_for() {
    run_beside(|reply| reply.send(Ok(Hits(5))), |ticket| assert_eq!(ticket.wait().unwrap(), Hits(5)));
}

#[test]
fn a_reply_that_is_dropped_is_an_error() {
    run_beside(drop, |ticket| assert!(matches!(ticket.wait(), Err(Error::Failed(_)))));
}

#[test]
fn a_callback_is_called_once() {
    loom::model(|| {
        let (ticket, reply) = Ticket::new(None);
        let calls = Arc::new(AtomicUsize::new(0));
        let thread = thread::spawn(move || reply.send(Ok(Hits(5))));
        let counted = calls.clone();
        ticket.on_ready(move |answer| {
            assert_eq!(answer.unwrap(), Hits(5));
            counted.fetch_add(1, Ordering::Relaxed);
        });
        thread.join().unwrap();
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_ticket_that_is_dropped_cancels() {
    loom::model(|| {
        let (ticket, reply) = Ticket::new(None);
        let cancelled = reply.cancel_handle();
        let thread = thread::spawn(move || reply.send(Ok(Hits(5))));
        drop(ticket);
        assert!(cancelled.is_cancelled());
        thread.join().unwrap();
    });
}

#[test]
fn an_answer_that_is_polled_is_taken_once() {
    run_beside(
        |reply| reply.send(Ok(Hits(5))),
        |ticket| {
            let polled = ticket.poll();
            match polled {
                Some(answer) => {
                    assert_eq!(answer.unwrap(), Hits(5));
                    assert!(matches!(ticket.wait(), Err(Error::Usage(_))));
                }
                None => assert_eq!(ticket.wait().unwrap(), Hits(5)),
            }
        },
    );
}

#[test]
fn a_newer_value_is_never_replaced_by_an_older_one() {
    loom::model(|| {
        let current = Arc::new(Current::new(0));
        let newest = Arc::new(Newest::new(2));
        let refresh = |current: &Current<usize>, newest: &Newest| {
            // Another thread may replace the value while the newest is looked up.
            let newer = |old: &usize| {
                let new = newest.load(Ordering::SeqCst);
                Ok::<_, ()>((new > *old).then_some(new))
            };
            current.replace(newer).unwrap();
        };
        let other = {
            let (current, newest) = (current.clone(), newest.clone());
            thread::spawn(move || {
                newest.store(3, Ordering::SeqCst);
                refresh(&current, &newest);
            })
        };
        let first = *current.get();
        refresh(&current, &newest);
        let second = *current.get();
        other.join().unwrap();
        assert!(first <= second && second <= *current.get());
        assert_eq!(*current.get(), 3);
    });
}
