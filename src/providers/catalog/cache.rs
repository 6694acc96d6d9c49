//! The catalogue on disk: our own copy, and the one that the public server keeps, if it is there.
//!
//! Ours begins with one line about itself (when it was fetched, its tag); the rest is the body as
//! it came. It is replaced whole, so that two servers on one machine cannot mix theirs. The public
//! server's file is only ever read.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::{Catalog, MAX_BYTES, Wanted};

const OWN_FILE: &str = "models-dev.cache";
const PUBLIC_FILE: &str = "models-dev.json";
const FRESH_MS: i64 = 24 * 60 * 60 * 1000;
const MAX_HEADER: usize = 1024;

/// What the disk had.
#[derive(Debug, Clone, PartialEq)]
pub struct Cached {
    pub catalog: Catalog,
    pub fetched_at: i64,
    /// Only our own copy has one.
    pub etag: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    fetched_at: i64,
    etag: Option<String>,
}

struct Copy {
    body: Vec<u8>,
    fetched_at: i64,
    etag: Option<String>,
}

impl Cached {
    /// Whether there is no reason to ask again. A copy from the future has a wrong clock behind it.
    pub fn is_fresh(&self, now_ms: i64) -> bool {
        (0..FRESH_MS).contains(&(now_ms - self.fetched_at))
    }
}

/// The newest copy that can be read. Blocks.
pub fn load(directory: &Path, wanted: &[Wanted]) -> Option<Cached> {
    let mut copies: Vec<Copy> = [own_copy(directory), public_copy(directory)].into_iter().flatten().collect();
    copies.sort_by_key(|copy| std::cmp::Reverse(copy.fetched_at));
    copies.into_iter().find_map(|copy| match Catalog::from_body(&copy.body, wanted) {
        Ok(catalog) => Some(Cached { catalog, fetched_at: copy.fetched_at, etag: copy.etag }),
        Err(error) => {
            tracing::debug!(error, "a cached catalogue cannot be used");
            None
        }
    })
}

/// Keeps `body` for the next start. Blocks.
pub fn store(directory: &Path, body: &[u8], etag: Option<&str>, now_ms: i64) -> io::Result<()> {
    let header = Header { fetched_at: now_ms, etag: etag.map(str::to_owned) };
    let mut content = serde_json::to_vec(&header)?;
    content.push(b'\n');
    content.extend_from_slice(body);
    fs::create_dir_all(directory)?;
    // Another server may be writing its own copy at this moment.
    let temporary = directory.join(format!("{OWN_FILE}.{}", std::process::id()));
    let written = File::create(&temporary).and_then(|mut file| file.write_all(&content));
    let replaced = written.and_then(|()| fs::rename(&temporary, directory.join(OWN_FILE)));
    if replaced.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    replaced
}

/// Our own copy is as good as one fetched now. Blocks.
pub fn touch(directory: &Path, now_ms: i64) -> io::Result<()> {
    match own_copy(directory) {
        Some(copy) => store(directory, &copy.body, copy.etag.as_deref(), now_ms),
        None => Ok(()),
    }
}

fn own_copy(directory: &Path) -> Option<Copy> {
    let mut content = read(&directory.join(OWN_FILE), MAX_BYTES + MAX_HEADER)?;
    let end = content.iter().take(MAX_HEADER).position(|byte| *byte == b'\n')?;
    let header: Header = serde_json::from_slice(&content[..end]).ok()?;
    content.drain(..=end);
    Some(Copy { body: content, fetched_at: header.fetched_at, etag: header.etag })
}

fn public_copy(directory: &Path) -> Option<Copy> {
    let path: PathBuf = directory.join(PUBLIC_FILE);
    let modified = fs::metadata(&path).and_then(|data| data.modified()).ok()?;
    let since = modified.duration_since(UNIX_EPOCH).ok()?;
    let fetched_at = i64::try_from(since.as_millis()).ok()?;
    Some(Copy { body: read(&path, MAX_BYTES)?, fetched_at, etag: None })
}

fn read(path: &Path, max: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(max as u64 + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() <= max).then_some(bytes)
}
