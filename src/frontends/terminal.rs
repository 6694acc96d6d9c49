//! (placeholder)
use crate::cli::ChatArgs;
use crate::config::load::ProcessEnvironment;

pub async fn run(_: ChatArgs, _: ProcessEnvironment) -> i32 {
    0
}
