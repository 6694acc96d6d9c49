//! Signals that ask us to end.

/// Resolves when the process is asked to end: SIGTERM, SIGINT or SIGHUP; Ctrl-C where there are no
/// signals. From the call on, these signals no longer kill the process by themselves.
pub fn terminate() -> impl Future<Output = ()> {
    let mut requests = Requests::listen();
    async move {
        requests.next().await;
    }
}

/// What a person asked of a program in a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Ctrl-C: end what is running, and perhaps the program.
    Interrupt,
    /// The program shall end; with this exit code, by the shell's convention.
    End(i32),
}

/// Hears the signals of a terminal. While it lives, they do not kill the process by themselves.
#[derive(Debug)]
pub struct Requests {
    #[cfg(unix)]
    streams: Vec<(tokio::signal::unix::Signal, Asked)>,
    #[cfg(windows)]
    interrupts: Option<tokio::signal::windows::CtrlC>,
}

impl Requests {
    /// Listens from this call on. Needs a runtime.
    pub fn listen() -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let kinds = [
                (SignalKind::interrupt(), Asked::Interrupt),
                (SignalKind::terminate(), Asked::End(143)),
                (SignalKind::hangup(), Asked::End(129)),
            ];
            let hear = |(kind, asked)| Some((signal(kind).ok()?, asked));
            Self { streams: kinds.into_iter().filter_map(hear).collect() }
        }
        #[cfg(windows)]
        Self { interrupts: tokio::signal::windows::ctrl_c().ok() }
    }

    /// The next request; dropping the future loses none. Without handlers it never comes: the signals end the
    /// process the hard way then, which is still an end.
    pub async fn next(&mut self) -> Asked {
        #[cfg(unix)]
        {
            std::future::poll_fn(|context| {
                let came = |(stream, asked): &mut (tokio::signal::unix::Signal, Asked)| {
                    matches!(stream.poll_recv(context), std::task::Poll::Ready(Some(()))).then_some(*asked)
                };
                self.streams.iter_mut().find_map(came).map_or(std::task::Poll::Pending, std::task::Poll::Ready)
            })
            .await
        }
        #[cfg(windows)]
        match async { self.interrupts.as_mut()?.recv().await }.await {
            Some(()) => Asked::Interrupt,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use rustix::process::{Signal, getpid, kill_process};

    /// A signal reaches every test of this process.
    static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

    #[tokio::test]
    async fn each_of_the_signals_resolves_it() {
        let _alone = ALONE.lock().await;
        for wanted in [Signal::TERM, Signal::INT, Signal::HUP] {
            let mut asked = std::pin::pin!(terminate());
            // The first poll installs the handlers; before it, the signal would end the test.
            assert!(futures_util::poll!(asked.as_mut()).is_pending());
            kill_process(getpid(), wanted).unwrap();
            asked.await;
        }
    }

    #[tokio::test]
    async fn an_interrupt_is_told_apart_from_an_end() {
        let _alone = ALONE.lock().await;
        let mut requests = Requests::listen();
        for (signal, asked) in [(Signal::TERM, Asked::End(143)), (Signal::HUP, Asked::End(129))] {
            kill_process(getpid(), signal).unwrap();
            assert_eq!(requests.next().await, asked);
        }
        for _ in 0..2 {
            kill_process(getpid(), Signal::INT).unwrap();
            assert_eq!(requests.next().await, Asked::Interrupt);
        }
    }
}
