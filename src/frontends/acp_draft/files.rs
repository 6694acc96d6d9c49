//! The files of the workspace, for clients that ask us for them: nothing outside of its folders, and
//! a version with everything that is read.

mod glob;
mod versions;

#[cfg(test)]
mod tests;

use std::collections::hash_map::RandomState;
use std::fs::{File, OpenOptions};
use std::hash::BuildHasher;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::digest::{Context, SHA256};
use serde_json::{Value, json};

use super::failure::{bad_params, failed};
use super::params::{FileCall, Part};
use crate::base::task;
use crate::transport::ResponseError;
use crate::workspace::{Workspace, path_from_uri};
use glob::GlobError;
pub(super) use versions::Digest;
use versions::Versions;

/// A larger text comes in pieces, as bytes. Escaped, this still fits into a line.
const MOST_TEXT: u64 = 8 * 1024 * 1024;
/// So many bytes at once.
const MOST_BYTES: u64 = 16 * 1024 * 1024;
/// All of a file is looked at to know its version.
const LARGEST_FILE: u64 = 1024 * 1024 * 1024;
const LOCKS: usize = 16;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Files {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    workspace: Arc<Workspace>,
    versions: Mutex<Versions>,
    /// One file is read by one call at a time, so that a later version is a later content.
    locks: [Mutex<()>; LOCKS],
    hashes: RandomState,
}

/// A file that is read as a whole, of which a part is kept.
struct Seen {
    version: u64,
    kept: Vec<u8>,
    length: u64,
}

impl Files {
    pub(super) fn new(workspace: Arc<Workspace>) -> Self {
        let (versions, locks, hashes) = (Mutex::default(), Default::default(), RandomState::new());
        Self { shared: Arc::new(Shared { workspace, versions, locks, hashes }) }
    }

    pub(super) async fn answer(&self, call: FileCall) -> Result<Value, ResponseError> {
        let files = self.clone();
        let work = task::blocking(move || files.shared.look(&call));
        work.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a file could not be looked at");
            Err(failed("something went wrong inside; the log has the details"))
        })
    }
}

impl Shared {
    fn look(&self, call: &FileCall) -> Result<Value, ResponseError> {
        match call {
            FileCall::ReadText { path, part } => self.read_text(path, *part),
            FileCall::ReadBinary { path, part } => self.read_binary(path, *part),
            FileCall::Stat { path } => {
                let metadata = self.locate(path)?.real.map(|real| real.metadata());
                match metadata {
                    Some(Ok(metadata)) => Ok(json!({"exists": true, "isDirectory": metadata.is_dir()})),
                    None => Ok(json!({"exists": false, "isDirectory": false})),
                    Some(Err(error)) if is_nothing(&error) => Ok(json!({"exists": false, "isDirectory": false})),
                    Some(Err(error)) => Err(failed(format!("{path}: {error}"))),
                }
            }
            FileCall::Glob { pattern } => {
                let roots: Vec<PathBuf> = self.workspace.roots().iter().map(|root| root.path.clone()).collect();
                let found = glob::search(&roots, pattern).map_err(|error| match error {
                    GlobError::Pattern(problem) => bad_params(format!("params.pattern: {problem}")),
                    GlobError::TooMany(problem) => failed(problem),
                })?;
                let matches: Vec<_> = found.iter().map(|path| path.to_string_lossy()).collect();
                Ok(json!({"matches": matches}))
            }
        }
    }

    fn read_text(&self, path: &str, part: Part) -> Result<Value, ResponseError> {
        let whole = Part { offset: 0, limit: Some(MOST_TEXT) };
        let seen = self.see(path, whole)?;
        if seen.length > MOST_TEXT {
            return Err(failed(format!("{path} is larger than {MOST_TEXT} bytes; readBinaryFile reads it in pieces")));
        }
        let text = String::from_utf8(seen.kept)
            .map_err(|_| failed(format!("{path} is not UTF-8 text; readBinaryFile reads it")))?;
        Ok(json!({"version": seen.version, "content": lines(&text, part)}))
    }

    fn read_binary(&self, path: &str, part: Part) -> Result<Value, ResponseError> {
        let limit = part.limit.unwrap_or(MOST_BYTES).min(MOST_BYTES);
        let seen = self.see(path, Part { limit: Some(limit), ..part })?;
        let wanted = seen.length.saturating_sub(part.offset).min(part.limit.unwrap_or(u64::MAX));
        if wanted > MOST_BYTES {
            return Err(failed(format!(
                "{path}: at most {MOST_BYTES} bytes at once; byteOffset and byteLimit say which"
            )));
        }
        Ok(json!({"version": seen.version, "content": BASE64_STANDARD.encode(seen.kept)}))
    }

    fn see(&self, path: &str, keep: Part) -> Result<Seen, ResponseError> {
        let real = self.locate(path)?.real.ok_or_else(|| failed(format!("{path} does not exist")))?;
        let unreadable = |error: io::Error| failed(format!("{path} cannot be read: {error}"));
        let lock = self.hashes.hash_one(&real) as usize % LOCKS;
        let _alone = self.locks[lock].lock().unwrap_or_else(PoisonError::into_inner);
        let file = open(&real).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(failed(format!("{path} is not a file")));
        }
        if metadata.len() > LARGEST_FILE {
            return Err(failed(format!("{path} is too large")));
        }
        let (digest, kept, length) = scan(file.take(LARGEST_FILE), keep).map_err(unreadable)?;
        let version = self.versions.lock().unwrap_or_else(PoisonError::into_inner).of(&real, digest);
        Ok(Seen { version, kept, length })
    }

    /// What a client means by a path, if that is inside of the workspace.
    fn locate(&self, path: &str) -> Result<Located, ResponseError> {
        let roots = self.workspace.roots();
        let place = match path_from_uri(path) {
            Ok(absolute) => absolute,
            Err(_) if Path::new(path).is_absolute() || path.is_empty() || path.contains('\0') => {
                return Err(bad_params("params.path: not a path"));
            }
            Err(_) => {
                let below = roots.iter().map(|root| root.path.join(path));
                let there = below.clone().find(|candidate| candidate.symlink_metadata().is_ok());
                there.or_else(|| below.clone().next()).ok_or_else(outside)?
            }
        };
        let (nearest, real) = match dunce::canonicalize(&place) {
            Ok(real) => (real.clone(), Some(real)),
            Err(error) if is_nothing(&error) => (nearest_folder(&place), None),
            Err(error) => return Err(failed(format!("{path}: {error}"))),
        };
        let is_inside =
            roots.iter().filter_map(|root| dunce::canonicalize(&root.path).ok()).any(|root| nearest.starts_with(root));
        if is_inside { Ok(Located { real }) } else { Err(outside()) }
    }
}

struct Located {
    /// With all links followed; `None` where there is nothing.
    real: Option<PathBuf>,
}

fn outside() -> ResponseError {
    bad_params("params.path: it is outside of the workspace")
}

fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The folder that something would be in, as far as it exists.
fn nearest_folder(path: &Path) -> PathBuf {
    path.ancestors().skip(1).find_map(|folder| dunce::canonicalize(folder).ok()).unwrap_or_default()
}

/// Opens for reading without waiting for anybody, whatever it is.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.union(rustix::fs::OFlags::NOCTTY).bits() as i32);
    }
    options.open(path)
}

/// Reads to the end: what identifies the whole, the part that is to be kept, and the length.
fn scan(mut source: impl Read, keep: Part) -> io::Result<(Digest, Vec<u8>, u64)> {
    let mut context = Context::new(&SHA256);
    let (mut kept, mut at) = (Vec::new(), 0_u64);
    let end = keep.limit.map_or(u64::MAX, |limit| keep.offset.saturating_add(limit));
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let read = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => &buffer[..read],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        context.update(read);
        let inside =
            |position: u64| usize::try_from(position.saturating_sub(at)).map_or(read.len(), |p| p.min(read.len()));
        kept.extend_from_slice(&read[inside(keep.offset)..inside(end)]);
        at += read.len() as u64;
    }
    let mut digest = Digest::default();
    digest.copy_from_slice(context.finish().as_ref());
    Ok((digest, kept, at))
}

/// What identifies a text that was read elsewhere.
pub(super) fn digest_of(text: &str) -> Digest {
    let mut digest = Digest::default();
    digest.copy_from_slice(ring::digest::digest(&SHA256, text.as_bytes()).as_ref());
    digest
}

/// Some lines of a text, with their ends.
fn lines(text: &str, part: Part) -> &str {
    let start_of = |from: usize, count: u64| -> usize {
        let mut at = from;
        for _ in 0..count {
            match memchr::memchr(b'\n', text.as_bytes().get(at..).unwrap_or_default()) {
                Some(length) => at += length + 1,
                None => return text.len(),
            }
        }
        at
    };
    let start = start_of(0, part.offset);
    let end = part.limit.map_or(text.len(), |limit| start_of(start, limit));
    text.get(start..end).unwrap_or_default()
}
