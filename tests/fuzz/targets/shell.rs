//! A command line: taken apart twice it comes to the same, and what follows a line that is certain
//! cannot hide behind it.

#![no_main]

use eca::approval::shell::parse;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let parsed = parse(text);
    assert!(parsed.units.len() <= 129);
    assert!(parsed == parse(text) || parsed.doubt.is_some());
    if parsed.doubt.is_none() {
        let longer = parse(&format!("{text}\nzz 1"));
        let is_seen = longer.units.iter().any(|unit| unit.flat == "zz 1");
        assert!(is_seen || longer.doubt.is_some(), "{longer:?}");
    }
});
