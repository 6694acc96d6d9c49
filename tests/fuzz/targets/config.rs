//! A configuration file: read twice it says the same, and a comment changes nothing.

#![no_main]

use std::collections::BTreeMap;
use std::path::PathBuf;

use eca::config::Dirs;
use eca::config::commands::Memory;
use eca::config::load::{Loaded, Sources, load};

libfuzzer_sys::fuzz_target!(|text: &str| {
    // What a file on this machine says is no part of the input.
    if text.contains("file:") || text.contains("netrc:") || text.contains("configPath") || text.contains("File") {
        return;
    }
    let plain = read(text);
    assert!(plain == read(text));
    // A byte order mark is one only at the very start.
    if text.starts_with('\u{feff}') {
        return;
    }
    // Only before it: one that follows could close what the text leaves open.
    let commented = read(&format!("/* A comment. */ // Another one.\n{text}"));
    assert!(plain.config == commented.config);
    assert_eq!(plain.problems.len(), commented.problems.len());
});

fn read(text: &str) -> Loaded {
    let nowhere = PathBuf::from("/nowhere");
    load(&Sources {
        initialization_options: None,
        eca_config: Some(text.to_owned()),
        config_file: None,
        workspace_roots: Vec::new(),
        trusted: BTreeMap::new(),
        memory: &Memory::default(),
        dirs: Dirs { config: nowhere.clone(), data: nowhere.clone(), cache: nowhere },
        env: &|name| (name == "A_KEY").then(|| "value".to_owned()),
    })
}
