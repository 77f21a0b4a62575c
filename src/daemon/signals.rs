//! The daemon's door for signals: the only file here that names signal-hook.
//!
//! It turns signals into events on a channel and knows nothing of what a stop means. SIGPIPE is
//! ignored from the start by Rust's runtime and SIGCHLD is tokio's.

use std::ffi::c_int;
use std::thread::JoinHandle;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use tokio::sync::mpsc;

/// Signals that wait for the loop. Further ones wait in the kernel, where equal ones fold.
const QUEUE: usize = 8;

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalEvent {
    /// TERM or INT, the first time: stop as configured (`onStop`).
    Stop,
    /// TERM or INT again: stop now, wait for nothing more.
    StopNow,
    /// HUP: read the definitions again.
    Reload,
}

/// Why signals cannot be heard.
#[derive(Debug, thiserror::Error)]
pub enum SignalError {
    /// The handlers cannot be set.
    #[error("cannot set the handlers of TERM, INT and HUP")]
    Register(#[source] std::io::Error),
    /// No thread can be had.
    #[error("cannot start the thread that waits for signals")]
    Thread(#[source] std::io::Error),
}

/// The thread that waits for signals.
#[derive(Debug)]
pub struct SignalThread {
    handle: Handle,
    thread: JoinHandle<()>,
}

/// Sets the handlers and starts the thread. Call it before anything that takes time, so that an
/// early TERM is a stop and not a death.
///
/// # Errors
/// [`SignalError`].
pub fn listen() -> Result<(SignalThread, mpsc::Receiver<SignalEvent>), SignalError> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(SignalError::Register)?;
    let handle = signals.handle();
    let (events, receiver) = mpsc::channel(QUEUE);
    let thread = std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let mut stops = 0;
            for signal in signals.forever() {
                if events.blocking_send(meaning(signal, &mut stops)).is_err() {
                    return;
                }
            }
        })
        .map_err(SignalError::Thread)?;
    Ok((SignalThread { handle, thread }, receiver))
}

fn meaning(signal: c_int, stops: &mut u32) -> SignalEvent {
    if signal == SIGHUP {
        return SignalEvent::Reload;
    }
    *stops = stops.saturating_add(1);
    if *stops == 1 { SignalEvent::Stop } else { SignalEvent::StopNow }
}

impl SignalThread {
    /// Ends the thread and waits for it. Drop the receiver first: a thread that waits for room
    /// in the channel is freed by that.
    pub fn close(self) {
        self.handle.close();
        if self.thread.join().is_err() {
            ::tracing::warn!("the signal thread had panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_term_or_int_stops_and_any_further_one_hurries() {
        let mut stops = 0;
        let meanings: Vec<_> = [SIGHUP, SIGINT, SIGHUP, SIGTERM, SIGINT]
            .into_iter()
            .map(|signal| meaning(signal, &mut stops))
            .collect();
        use SignalEvent::{Reload, Stop, StopNow};
        assert_eq!(meanings, [Reload, Stop, Reload, StopNow, StopNow]);
    }

    #[test]
    fn a_real_hup_arrives_and_the_thread_ends_when_closed() {
        let (thread, mut events) = listen().unwrap();
        signal_hook::low_level::raise(SIGHUP).unwrap();
        assert_eq!(events.blocking_recv(), Some(SignalEvent::Reload));
        drop(events);
        thread.close();
    }
}
