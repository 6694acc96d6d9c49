//! Completion in a workspace of a hundred thousand files: the first question, any later one, and
//! one that grows letter by letter.

use std::path::Path;
use std::time::{Duration, Instant};

use eca::config::IndexConfig;
use eca::context::Places;
use eca::context::index::Index;
use eca::context::query::{Query, contexts};

use crate::Outcome;
use crate::report::Row;

const DIRECTORIES: usize = 2_000;
const FILES_IN_EACH: usize = 50;
const ROUNDS: usize = 20;
const LIMIT: usize = 100;
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

pub(crate) fn queries() -> Outcome<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    make_tree(folder.path())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure(folder.path()))
}

async fn measure(root: &Path) -> Outcome<Vec<Row>> {
    let places = Places { roots: vec![root.to_owned()], home: None };
    let ask = async |index: &Index, text: &str| {
        let started = Instant::now();
        let found = contexts(index, Query { text, limit: LIMIT, places: &places }, &[], &[]).await;
        (started.elapsed(), found.len())
    };
    let mut first = Vec::new();
    for _ in 0..3 {
        let index = Index::new([root.to_owned()], &IndexConfig::default());
        first.push(ask(&index, "chtprm").await.0);
    }
    let index = Index::new([root.to_owned()], &IndexConfig::default());
    while !index.query("", 1).await.is_complete {}
    if ask(&index, "").await.1 < LIMIT {
        return Err("the index is empty".into());
    }
    let mut warm = Vec::new();
    let mut growing = Vec::new();
    for _ in 0..ROUNDS {
        for question in QUESTIONS {
            warm.push(ask(&index, question).await.0);
        }
        for question in GROWING {
            for end in 1..=question.len() {
                let (time, _) = ask(&index, &question[..end]).await;
                // The first letter has nothing before it.
                growing.extend((end > 1).then_some(time));
            }
        }
    }
    Ok(vec![
        row("first query of 100,000 files, walk included", first, 300.0),
        row("a query in 100,000 files", warm, 40.0),
        row("the same while it grows letter by letter", growing, 20.0),
    ])
}

fn row(figure: &str, mut times: Vec<Duration>, most: f64) -> Row {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
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
