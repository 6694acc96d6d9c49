//! How long a provider asks to wait, out of the many headers it may say that in.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::HeaderMap;

/// In order: an exact wait, the vendor's overall reset, then the buckets. Of the buckets the
/// latest exhausted one counts, or the earliest when none says it is exhausted.
pub(super) fn from_headers(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let milliseconds = text("retry-after-ms").and_then(|value| value.parse::<f64>().ok());
    if let Some(wait) = milliseconds.and_then(|value| seconds(value / 1000.0)) {
        return Some(wait);
    }
    for name in ["retry-after", "anthropic-ratelimit-unified-reset"] {
        if let Some(wait) = text(name).and_then(|value| parse(value, now)) {
            return Some(wait);
        }
    }
    let mut exhausted: Option<Duration> = None;
    let mut earliest: Option<Duration> = None;
    for (name, value) in headers {
        let name = name.as_str();
        if !(name.contains("ratelimit") && name.contains("reset")) {
            continue;
        }
        let Some(wait) = value.to_str().ok().and_then(|value| parse(value.trim(), now)) else { continue };
        if text(&name.replace("reset", "remaining")).and_then(|left| left.parse::<f64>().ok()) == Some(0.0) {
            exhausted = Some(exhausted.map_or(wait, |other| other.max(wait)));
        }
        earliest = Some(earliest.map_or(wait, |other| other.min(wait)));
    }
    exhausted.or(earliest)
}

/// Seconds, a moment since the epoch (seconds or milliseconds), a date of HTTP or RFC 3339, or a
/// duration such as `1m30.5s`.
fn parse(value: &str, now: Timestamp) -> Option<Duration> {
    const LATEST_PLAIN_SECONDS: f64 = 1e9;
    const LATEST_EPOCH_SECONDS: f64 = 1e11;
    if let Ok(number) = value.parse::<f64>() {
        if !number.is_finite() {
            return None;
        }
        let now = now.as_millisecond() as f64 / 1000.0;
        return if number < LATEST_PLAIN_SECONDS {
            seconds(number)
        } else if number < LATEST_EPOCH_SECONDS {
            seconds((number - now).max(0.0))
        } else {
            seconds((number / 1000.0 - now).max(0.0))
        };
    }
    let moment = value.parse::<Timestamp>().ok();
    let moment = moment.or_else(|| jiff::fmt::rfc2822::parse(value).ok().map(|date| date.timestamp()));
    if let Some(moment) = moment {
        return Some(Duration::try_from(moment.duration_since(now)).unwrap_or_default());
    }
    go_duration(value)
}

fn go_duration(value: &str) -> Option<Duration> {
    let mut total = 0.0;
    let mut rest = value;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let unit_end = rest[end..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| end + at);
        total += number
            * match &rest[end..unit_end] {
                "d" => 86_400.0,
                "h" => 3600.0,
                "m" => 60.0,
                "s" => 1.0,
                "ms" => 0.001,
                "us" | "µs" => 1e-6,
                "ns" => 1e-9,
                _ => return None,
            };
        rest = &rest[unit_end..];
    }
    if value.is_empty() { None } else { seconds(total) }
}

fn seconds(value: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderName, HeaderValue};

    fn wait(headers: &[(&'static str, &'static str)]) -> Option<Duration> {
        let now: Timestamp = "2025-01-01T00:00:00Z".parse().unwrap();
        let map = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        from_headers(&map, now)
    }

    #[test]
    fn every_way_of_saying_it() {
        type Case<'a> = (&'a [(&'static str, &'static str)], Option<f64>);
        let cases: [Case<'_>; 19] = [
            (&[("retry-after", "7")], Some(7.0)),
            (&[("retry-after", "1.5")], Some(1.5)),
            (&[("retry-after", "Wed, 01 Jan 2025 00:00:30 GMT")], Some(30.0)),
            (&[("retry-after", "Tue, 31 Dec 2024 00:00:00 GMT")], Some(0.0)),
            (&[("retry-after", "soon")], None),
            (&[("retry-after", "-5")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "")], None),
            (&[("retry-after-ms", "250"), ("retry-after", "9")], Some(0.25)),
            (&[("x-ratelimit-reset", "1735689660")], Some(60.0)),
            (&[("x-ratelimit-reset", "1735689660000")], Some(60.0)),
            (&[("x-ratelimit-reset", "2025-01-01T00:01:00Z")], Some(60.0)),
            (&[("x-ratelimit-reset-requests", "1m30.5s")], Some(90.5)),
            (&[("x-ratelimit-reset-requests", "120ms")], Some(0.12)),
            (&[("x-ratelimit-reset-requests", "5x")], None),
            (&[("x-ratelimit-reset-requests", "30s"), ("x-ratelimit-reset-tokens", "5s")], Some(5.0)),
            (
                &[
                    ("x-ratelimit-reset-requests", "30s"),
                    ("x-ratelimit-remaining-requests", "0"),
                    ("x-ratelimit-reset-tokens", "5s"),
                    ("x-ratelimit-remaining-tokens", "100"),
                ],
                Some(30.0),
            ),
            (&[("anthropic-ratelimit-unified-reset", "1735689610"), ("x-ratelimit-reset", "1s")], Some(10.0)),
            (&[("content-type", "text/plain")], None),
        ];
        for (headers, expected) in cases {
            assert_eq!(wait(headers).map(|wait| wait.as_secs_f64()), expected, "{headers:?}");
        }
    }
}
