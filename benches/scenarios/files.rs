//! Completion in a workspace of a hundred thousand files: the first question, any later one, and
//! one that grows letter by letter; and what knowing the files costs.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::client::Server;
use crate::support::report::Row;
use crate::support::{Outcome, proc};

const DIRECTORIES: usize = 2_000;
const FILES_IN_EACH: usize = 50;
const ROUNDS: usize = 10;
const PATIENCE: Duration = Duration::from_secs(30);
/// None of them begins with another one, so that none is helped by what another one found.
const QUESTIONS: [&str; 10] =
    ["eoe", "sr", "rrr", "context/render", "handlersindex", "prompt.rs", "zzz", "chtprm", "layout button", "x7"];
const GROWING: [&str; 3] = ["srccontextrender", "providerindex12.rs", "engine/session"];
const WORDS: [&str; 20] = [
    "src",
    "chat",
    "prompt",
    "engine",
    "context",
    "handlers",
    "provider",
    "index",
    "watch",
    "components",
    "utils",
    "network",
    "session",
    "dialect",
    "stream",
    "render",
    "button",
    "layout",
    "model",
    "service",
];

const MOST_FIRST: f64 = 300.0;
const MOST_WARM: f64 = 40.0;
const MOST_GROWING: f64 = 20.0;
const MOST_MEBIBYTES: f64 = 25.0;

pub(crate) fn run() -> Outcome<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    make_tree(folder.path())?;
    let home = tempfile::tempdir()?;
    let mut server = Server::in_folder(home.path(), folder.path())?;
    let memory = proc::pss_mib(server.pid())?;
    let started = Instant::now();
    ask(&mut server, "chtprm")?;
    let first = started.elapsed().as_secs_f64() * 1e3;
    // Whatever the first answer left out is known once nothing changes any more.
    let patient = Instant::now();
    while ask(&mut server, "")?.1 < 100 || server.settled_cpu()? != server.settled_cpu()? {
        if patient.elapsed() > PATIENCE {
            return Err("the index is not complete".into());
        }
    }
    let mut warm = Vec::new();
    let mut growing = Vec::new();
    for _ in 0..ROUNDS {
        for question in QUESTIONS {
            warm.push(ask(&mut server, question)?.0);
        }
        for question in GROWING {
            for end in 1..=question.len() {
                let (cpu, _) = ask(&mut server, &question[..end])?;
                // The first letter has nothing before it.
                growing.extend((end > 1).then_some(cpu));
            }
        }
    }
    let grown = proc::pss_mib(server.pid())? - memory;
    Ok(vec![
        Row::at_most(
            "first queryContext in 100,000 files, walk included, until it is answered",
            first,
            MOST_FIRST,
            "ms",
            format!("{first:.0} ms"),
        ),
        row("queryContext in 100,000 files, CPU", warm, MOST_WARM),
        row("the same while the query grows letter by letter, CPU", growing, MOST_GROWING),
        Row::at_most(
            "memory for the index of 100,000 files (growth of PSS)",
            grown,
            MOST_MEBIBYTES,
            "MiB",
            format!("{grown:.1} MiB"),
        ),
    ])
}

/// Milliseconds of CPU in all threads of the server, and how much was offered.
fn ask(server: &mut Server, query: &str) -> Outcome<(f64, usize)> {
    let before = server.settled_cpu()?;
    let result = server.result_of("chat/queryContext", &json!({"query": query, "contexts": []}))?;
    let offered = result["contexts"].as_array().ok_or("no list of contexts")?.len();
    Ok(((server.settled_cpu()? - before) as f64 / 1e6, offered))
}

fn row(figure: &str, mut times: Vec<f64>, most: f64) -> Row {
    times.sort_by(f64::total_cmp);
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    let text = format!("p50 {:.1} ms, p99 {:.1} ms of {}", at(50), at(99), times.len());
    Row::at_most(figure, at(99), most, "ms", text)
}

fn make_tree(root: &Path) -> Outcome<()> {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut word = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        WORDS[usize::try_from(seed % 20).unwrap_or_default()]
    };
    for directory in 0..DIRECTORIES {
        let path = root.join(format!("{}/{}/{}_{directory}", word(), word(), word()));
        std::fs::create_dir_all(&path)?;
        for file in 0..FILES_IN_EACH {
            std::fs::File::create(path.join(format!("{}_{}{file}.rs", word(), word())))?;
        }
    }
    Ok(())
}
