//! A workspace of 100,000 files with 2 GB in them that is cheap to make: a few hundred contents, each
//! under many names. To whoever reads it, it is as large as it looks.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::Outcome;

/// A build without optimisation is only tried out, and would take minutes for all of them.
pub(crate) const FILES: usize = if cfg!(debug_assertions) { 2_000 } else { 100_000 };
const FILE_BYTES: usize = 20_000;
const CONTENTS: usize = 500;
const FILES_IN_A_FOLDER: usize = 100;
/// Stands in the files of a few contents only.
pub(crate) const NEEDLE: &str = "needle_in_the_hay";
const WITH_NEEDLE: usize = 2;

/// Removed with its value.
pub(crate) struct Tree {
    folder: tempfile::TempDir,
}

impl Tree {
    pub(crate) fn grow() -> Outcome<Self> {
        let folder = tempfile::tempdir()?;
        let contents: Vec<PathBuf> =
            (0..CONTENTS).map(|number| folder.path().join(format!("content-{number}.rs"))).collect();
        for (number, path) in contents.iter().enumerate() {
            fs::write(path, content(number))?;
        }
        for at in 0..FILES / FILES_IN_A_FOLDER {
            let inside = folder.path().join(format!("crate-{}", at / 25)).join(format!("module-{at}"));
            fs::create_dir_all(&inside)?;
            for number in 0..FILES_IN_A_FOLDER {
                let which = (at * FILES_IN_A_FOLDER + number) % CONTENTS;
                let content = contents.get(which).ok_or("so many contents")?;
                fs::hard_link(content, inside.join(format!("file-{number}.rs")))?;
            }
        }
        for path in contents {
            fs::remove_file(path)?;
        }
        Ok(Self { folder })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// In how many files the needle is.
    pub(crate) fn needles(&self) -> usize {
        WITH_NEEDLE * FILES / CONTENTS
    }
}

fn content(number: usize) -> String {
    let mut text = String::with_capacity(FILE_BYTES + 100);
    let mut line = 0;
    while text.len() < FILE_BYTES {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "    let value_{line} = compute({number}, {line})?; // some words about it");
        line += 1;
        if line == 100 && number < WITH_NEEDLE {
            let _ = writeln!(text, "    let {NEEDLE} = true;");
        }
    }
    text
}
