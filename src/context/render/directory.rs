//! All files below a directory, as far as there is room for them.

use std::path::Path;
use std::time::{Duration, Instant};

use super::file_block;
use super::fit::{Item, NO_ROOM};
use crate::context::files;
use crate::context::index::walk_builder;

/// So many files are read.
const MOST_FILES: usize = 256;
/// So many are named or counted at all.
const MOST_SEEN: usize = 5_000;
/// One file contributes at most so much.
const MAX_FILE: usize = 256 * 1024;
const PATIENCE: Duration = Duration::from_secs(5);

/// Reads the files in the order of their names, by the rules of the index, up to `max` bytes.
pub(super) fn read(directory: &Path, ignores: bool, max: usize) -> Result<Item, String> {
    let metadata = std::fs::metadata(directory).map_err(|error| files::reason(&error))?;
    if !metadata.is_dir() {
        return Err("is no directory".to_owned());
    }
    let mut item = Item { name: directory.display().to_string(), ..Item::default() };
    let started = Instant::now();
    let mut left = max;
    let mut builder = walk_builder(directory, ignores);
    builder.sort_by_file_name(Ord::cmp).filter_entry(|entry| entry.file_name() != ".git");
    let is_file = |entry: &ignore::DirEntry| entry.file_type().is_some_and(|kind| kind.is_file() || kind.is_symlink());
    for entry in builder.build().flatten().filter(is_file) {
        if item.blocks.len() + item.others.len() >= MOST_SEEN || started.elapsed() > PATIENCE {
            // How many more there are is not worth walking for.
            item.has_more = true;
            break;
        }
        let path = entry.path();
        let name = path.display().to_string();
        // A link to a directory is not followed.
        if path.is_dir() {
            continue;
        }
        if files::is_image(path) {
            item.others.push((name, "is an image".to_owned()));
        } else if item.blocks.len() >= MOST_FILES || left == 0 {
            item.others.push((name, NO_ROOM.to_owned()));
        } else {
            match file_block(path, None, MAX_FILE.min(left)) {
                Ok(block) => {
                    left = left.saturating_sub(block.length());
                    item.blocks.push(block);
                }
                Err(problem) => item.others.push((name, problem)),
            }
        }
    }
    if item.blocks.is_empty() && item.others.is_empty() {
        return Err("there are no files in it".to_owned());
    }
    Ok(item)
}
