//! The form of the lines, what is filtered, and that nothing ever waits for a stuck reader.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use super::*;

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// A sink whose every write waits for a permit; without a permit-giver it is stuck until dropped.
struct Gated {
    entered: Sender<()>,
    permits: Receiver<()>,
    out: Shared,
}

impl Write for Gated {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = self.entered.send(());
        let _ = self.permits.recv();
        self.out.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn gated() -> (Gated, Receiver<()>, Sender<()>, Shared) {
    let ((entered, has_entered), (permit, permits)) = (channel(), channel());
    let out = Shared::default();
    (Gated { entered, permits, out: out.clone() }, has_entered, permit, out)
}

/// Waits for what is queued as long as it takes: how fast this machine is must not decide a test.
fn flush(guard: &LogGuard) {
    queue::flush(&guard.queues, Instant::now() + Duration::from_secs(20));
}

/// What is logged by `action`, without the times.
fn logged(options: LogOptions, action: impl FnOnce()) -> Vec<String> {
    let out = Shared::default();
    let (subscriber, guard) = build(&options, vec![Box::new(out.clone())]);
    tracing::subscriber::with_default(subscriber, action);
    flush(&guard);
    out.text().lines().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
}

#[test]
fn one_record_is_one_line_of_the_known_form() {
    let lines = logged(LogOptions::default(), || {
        tracing::info!("plain");
        tracing::warn!(chat = "c1", count = 3, name = "n", error = %"e", "with fields");
        tracing::info_span!("turn", chat = "outer").in_scope(|| {
            tracing::info!("in span");
            tracing::info_span!("inner").in_scope(|| tracing::error!("deeper"));
            tracing::info_span!("inner", chat = ?"c2").in_scope(|| tracing::info!("nearest"));
        });
        let late = tracing::info_span!("late", chat = tracing::field::Empty);
        late.record("chat", "c3");
        late.in_scope(|| tracing::info!("recorded"));
        tracing::info!("two\nlines \u{1b}[31mred\ttab é");
        tracing::info!(only = "fields");
        tracing::debug!("not at this level");
    });
    assert_eq!(
        lines,
        [
            "INFO plain",
            "WARN [chat=c1] with fields count=3 name=n error=e",
            "INFO [chat=outer] in span",
            "ERROR [chat=outer] deeper",
            "INFO [chat=c2] nearest",
            "INFO [chat=c3] recorded",
            "INFO two\\nlines \\u{1b}[31mred\ttab é",
            "INFO only=fields",
        ]
    );
}

#[test]
fn the_time_is_the_time_of_day_and_long_lines_are_cut() {
    assert_eq!(layer::line(0, "INFO", None, "x"), "00:00:00.000 INFO x\n");
    let ms = 1_700_000_000_123; // 2023-11-14T22:13:20.123Z
    assert_eq!(layer::line(ms, "WARN", Some("c"), "x"), "22:13:20.123 WARN [chat=c] x\n");
    assert_eq!(layer::line(-1, "INFO", None, ""), "23:59:59.999 INFO \n");
    let long = "é".repeat(layer::MAX_LINE_BYTES);
    let line = layer::line(0, "INFO", None, &long);
    assert!(line.len() < layer::MAX_LINE_BYTES + 100);
    assert!(line.ends_with("é… (32768 bytes more)\n"));
}

#[test]
fn levels_and_targets() {
    let say = || {
        tracing::debug!("d");
        tracing::info!("i");
        tracing::warn!("w");
        tracing::error!("e");
        tracing::info!(target: "hyper::client", "third info");
        tracing::warn!(target: "hyper::client", "third warn");
        tracing::info!(target: TRAFFIC_TARGET, "traffic");
    };
    for (level, verbose, expected) in [
        (LogLevel::Debug, false, "d i w e third warn"),
        (LogLevel::Info, false, "i w e third warn"),
        (LogLevel::Warn, false, "w e third warn"),
        (LogLevel::Error, false, "e"),
        (LogLevel::Info, true, "i w e third warn traffic"),
        (LogLevel::Error, true, "e traffic"),
    ] {
        let lines = logged(LogOptions { level, verbose, log_file: None }, say);
        let texts: Vec<_> = lines.iter().map(|line| line.split_once(' ').unwrap().1).collect();
        assert_eq!(texts.join(" "), expected, "{level:?} {verbose}");
    }
}

#[test]
fn level_names() {
    for (name, level) in
        [("error", LogLevel::Error), ("warn", LogLevel::Warn), ("INFO", LogLevel::Info), ("debug", LogLevel::Debug)]
    {
        assert_eq!(name.parse(), Ok(level));
    }
    for name in ["", "trace", "warning", " info"] {
        assert_eq!(name.parse::<LogLevel>(), Err(UnknownLogLevel), "{name:?}");
    }
}

#[test]
fn lines_that_find_no_room_are_counted_and_reported() {
    let (sink, has_entered, permit, out) = gated();
    let (subscriber, guard) = build(&LogOptions::default(), vec![Box::new(sink)]);
    tracing::subscriber::with_default(subscriber, || {
        tracing::info!("first");
        has_entered.recv().unwrap();
        for _ in 0..queue::CAPACITY + 7 {
            tracing::info!("more");
        }
    });
    drop(permit);
    flush(&guard);
    let text = out.text();
    assert_eq!(text.lines().filter(|line| line.ends_with(" INFO more")).count(), queue::CAPACITY);
    let reports: Vec<_> = text.lines().filter(|line| line.contains("dropped")).collect();
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert!(reports[0].ends_with(" WARN 7 log lines dropped"), "{reports:?}");
}

#[test]
fn a_stuck_reader_stops_neither_logging_nor_the_end_nor_the_other_sink() {
    let (sink, has_entered, permit, _out) = gated();
    let file = Shared::default();
    let (subscriber, guard) = build(&LogOptions::default(), vec![Box::new(sink), Box::new(file.clone())]);
    tracing::subscriber::with_default(subscriber, || {
        tracing::info!("first");
        has_entered.recv().unwrap();
        for _ in 0..queue::CAPACITY - 2 {
            tracing::info!("more");
        }
        tracing::info!("last");
        for _ in 0..queue::CAPACITY {
            tracing::info!("too many");
        }
    });
    let file_queue = guard.queues[1].clone();
    let started = Instant::now();
    drop(guard);
    // The bound of the guard is 200 ms; the rest is for a busy machine.
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    queue::flush(&[file_queue], Instant::now() + Duration::from_secs(20));
    assert!(file.text().contains("INFO last"));
    drop(permit);
}

#[test]
fn a_reader_that_went_away_is_harmless() {
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
    }
    let (subscriber, guard) = build(&LogOptions::default(), vec![Box::new(Gone)]);
    tracing::subscriber::with_default(subscriber, || tracing::info!("into the void"));
    drop(guard);
}
