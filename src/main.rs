//! Entry point: parse the command line, start logging and the runtime, run one front end.

use std::process::ExitCode;

fn main() -> ExitCode {
    eca::run()
}
