//! The guard as a program of its own, which the server starts before each program if it finds it
//! beside itself. It uses nothing of the server: it would take over its size.

use std::io::Write;

fn main() {
    std::process::exit(process_guard::run_if_asked(std::env::args_os(), std::env::temp_dir).unwrap_or_else(explain))
}

/// For people, and for scripts that look which version lies here.
fn explain() -> i32 {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == "--version") {
        return i32::from(writeln!(std::io::stdout(), "eca-guard {}", env!("CARGO_PKG_VERSION")).is_err());
    }
    let text = if cfg!(target_os = "linux") {
        "eca-guard is started by eca and watches over the programs that eca starts. It does nothing else."
    } else {
        "eca-guard is of use on Linux only; eca does not need it here."
    };
    let _ = writeln!(std::io::stderr(), "{text}");
    1
}
