//! Signals that ask us to end.

/// Resolves when the process is asked to end: SIGTERM, SIGINT or SIGHUP; Ctrl-C where there are no
/// signals. From the first poll on, these signals no longer kill the process by themselves.
pub async fn terminate() {
    #[cfg(unix)]
    {
        use futures_util::future::select_all;
        use tokio::signal::unix::{SignalKind, signal};
        let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
        let streams: Vec<_> = kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect();
        if streams.is_empty() {
            // Without handlers the signals end the process the hard way, which is still an end.
            return std::future::pending().await;
        }
        let waits = streams.into_iter().map(|mut stream| Box::pin(async move { stream.recv().await }));
        select_all(waits).await;
    }
    #[cfg(not(unix))]
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use rustix::process::{Signal, getpid, kill_process};

    #[tokio::test]
    async fn each_of_the_signals_resolves_it() {
        for wanted in [Signal::TERM, Signal::INT, Signal::HUP] {
            let mut asked = std::pin::pin!(terminate());
            // The first poll installs the handlers; before it, the signal would end the test.
            assert!(futures_util::poll!(asked.as_mut()).is_pending());
            kill_process(getpid(), wanted).unwrap();
            asked.await;
        }
    }
}
