//! Wall-clock time in the one unit the store and the wire use.

use std::time::{SystemTime, UNIX_EPOCH};

/// A time for people and for programs: ISO 8601, in UTC.
pub fn iso8601(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).unwrap_or_default().to_string()
}

/// Milliseconds since the Unix epoch.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
