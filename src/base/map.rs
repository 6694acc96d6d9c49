//! Maps that many tasks use at once.

use std::hash::Hash;

use dashmap::DashMap;

/// Each has a lock of its own. Two threads serve everything, so few are enough; the library would read
/// the machine's size from half a dozen files at every start.
const PARTS: usize = 8;

pub fn shared_map<K: Eq + Hash, V>() -> DashMap<K, V> {
    DashMap::with_shard_amount(PARTS)
}
