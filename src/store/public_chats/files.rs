//! Finds the public server's files of a workspace, by its rules for their names.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ring::digest::{SHA256, digest};

use super::{ImportReport, PublicChats};

/// A file of one chat, or of all chats of a workspace, may be so large.
const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// Files looked at in one folder.
const MOST_FILES: usize = 100_000;

const INDEX: &str = "index.transit.json";
const ENDING: &str = ".transit.json";
const ALL_IN_ONE: &str = "db.transit.json";

/// What may be imported, and what is known of it already.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) candidates: Vec<Candidate>,
    pub(super) report: ImportReport,
}

/// One file to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) file: PathBuf,
    pub(super) layout: Layout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    OneChat,
    /// The older form.
    AllChats,
}

/// The files that may hold chats that are not known yet. The index is not needed: it repeats what
/// is in the files.
pub(super) fn find(source: &PublicChats, known: &HashSet<String>) -> Found {
    let mut found = Found::default();
    let known_names: HashSet<String> = known.iter().map(|id| file_name(id)).collect();
    let hashes: HashSet<String> = source.path_keys.iter().map(|key| hash(key)).collect();
    let mut newest: BTreeMap<String, (Option<SystemTime>, PathBuf)> = BTreeMap::new();
    for folder in source.places.iter().flat_map(|place| folders(place, &hashes)) {
        let all = folder.join(ALL_IN_ONE);
        // With an index beside it, all of its chats have files of their own.
        if all.is_file() && !folder.join("chats").join(INDEX).exists() {
            found.candidates.push(Candidate { file: all, layout: Layout::AllChats });
        }
        for file in entries(&folder.join("chats")) {
            let Some(name) = file.file_name().and_then(|name| name.to_str()) else { continue };
            if !name.ends_with(ENDING) || name == INDEX {
                continue;
            }
            if known_names.contains(name) {
                found.report.skipped += 1;
                continue;
            }
            // The same chat may lie in several folders, left behind by older versions.
            let modified = std::fs::metadata(&file).and_then(|metadata| metadata.modified()).ok();
            let name = name.to_owned();
            if newest.get(&name).is_none_or(|(before, _)| *before < modified) {
                newest.insert(name, (modified, file));
            }
        }
    }
    let files = newest.into_values().map(|(_, file)| Candidate { file, layout: Layout::OneChat });
    // Files of their own first: where a chat is in both, they are the newer ones.
    found.candidates.splice(0..0, files);
    found
}

/// Tells one state of a file from another.
pub(super) fn state_of(file: &Path) -> Option<i64> {
    let metadata = std::fs::metadata(file).ok()?;
    let modified = metadata.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let (millis, bytes) = (i64::try_from(modified.as_millis()).ok()?, i64::try_from(metadata.len()).ok()?);
    Some(millis.wrapping_mul(31).wrapping_add(bytes))
}

/// The folders of a workspace: named by the hash, with or without a name in front of it.
fn folders(place: &Path, hashes: &HashSet<String>) -> Vec<PathBuf> {
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        hashes
            .iter()
            .any(|hash| name.strip_suffix(hash.as_str()).is_some_and(|front| front.is_empty() || front.ends_with('_')))
    };
    entries(place).into_iter().filter(is_ours).filter(|path| path.is_dir()).collect()
}

/// In a fixed order.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_FILES);
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The content of a file, bounded.
pub(super) fn read(file: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    // A pipe would keep us waiting for ever.
    if !std::fs::metadata(file).map_err(|error| error.to_string())?.is_file() {
        return Err("it is not a file".to_owned());
    }
    let opened = std::fs::File::open(file).map_err(|error| error.to_string())?;
    opened.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("it is larger than {} MiB", MOST_BYTES >> 20));
    }
    Ok(bytes)
}

/// The name of a chat's file: its id, if that can be a name on every system, and else a hash.
fn file_name(id: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = id.as_bytes();
    let fits = (8..=128).contains(&bytes.len())
        && bytes.first().is_some_and(|first| is_plain(*first))
        && bytes.iter().all(|byte| is_plain(*byte) || matches!(byte, b'_' | b'-'))
        && !id.starts_with("index");
    let mut name = if fits { id.to_owned() } else { String::new() };
    if !fits {
        for byte in digest(&SHA256, bytes).as_ref() {
            let _ = write!(name, "{byte:02x}");
        }
    }
    name + ENDING
}

/// The first eight characters of the hash in base64url.
fn hash(path_key: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digest = digest(&SHA256, path_key.as_bytes());
    let bits = digest.as_ref().iter().take(6).fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
    (0..8).rev().map(|place| char::from(DIGITS[(bits >> (6 * place) & 63) as usize])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_public_servers() {
        // Worked out with `printf %s /home/u/p | openssl dgst -sha256 -binary | basenc --base64url`.
        assert_eq!(hash("/home/u/p"), "YK1wb-Uz");
        assert_eq!(hash(""), "47DEQpj8");
        for id in ["3f2a9c1e-0000-4000-8000-000000000000", "abcdefg1", "0_______"] {
            assert_eq!(file_name(id), format!("{id}.transit.json"));
        }
        for id in ["short", "Uppercase-Id", "-begins-wrong", "has space", "a/b/c/d/e", "index-of-things", "é-éééééé"]
        {
            let name = file_name(id);
            assert_eq!(name.len(), 64 + ENDING.len(), "{id}");
        }
        let of_empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855.transit.json";
        assert_eq!(file_name(""), of_empty);
    }

    #[test]
    fn folders_are_found_by_their_hash() {
        let place = tempfile::tempdir().unwrap();
        let own = hash("/w");
        for name in [own.clone(), format!("w_{own}"), format!("x{own}"), format!("w_{own}x"), "other".into()] {
            std::fs::create_dir(place.path().join(name)).unwrap();
        }
        std::fs::write(place.path().join(format!("file_{own}")), "").unwrap();
        let found = folders(place.path(), &HashSet::from([own.clone()]));
        let names: HashSet<&str> = found.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        assert_eq!(names, HashSet::from([own.as_str(), &format!("w_{own}")]));
        assert!(folders(Path::new("/nowhere/at/all"), &HashSet::new()).is_empty());
    }
}
