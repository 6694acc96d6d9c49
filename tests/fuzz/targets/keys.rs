//! Respelling the keys of a message: once is enough, nothing is invented, the user's data stays.

#![no_main]

use custom_methods::normalise_keys;
use serde_json::Value;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(sent) = serde_json::from_slice::<Value>(data) else { return };
    let mut once = sent.clone();
    normalise_keys("chat/prompt", &mut once);
    let mut twice = once.clone();
    normalise_keys("chat/prompt", &mut twice);
    assert_eq!(once, twice);
    assert!(leaves(&once) <= leaves(&sent));
    for key in ["env", "headers"] {
        assert!(sent.get(key).is_none_or(|value| once.get(key) == Some(value)));
    }
    let mut foreign = sent.clone();
    normalise_keys("not/ours", &mut foreign);
    assert_eq!(foreign, sent);
});

fn leaves(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(leaves).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(leaves).sum::<usize>(),
        _ => 1,
    }
}
