//! When a failed model call is tried again, and what the user reads meanwhile.
//!
//! Pure arithmetic: the engine owns the clock, the random number and the decision that an error
//! may be retried at all ([`ErrorClass::is_transient`], nothing shown yet).

use std::time::Duration;

use crate::config::RetryConfig;
use crate::llm::ErrorClass;

/// A provider that asks for more patience than this is given up, so that the user learns about it
/// instead of watching a chat that seems to hang.
pub const MAX_RATE_LIMIT_WAIT: Duration = Duration::from_secs(60);

/// An answer that stopped before it began rarely gets better by asking many times.
const PREMATURE_STOP_MAX_RETRIES: u32 = 3;

/// Added to the wait a provider asks for, because its clock and ours differ.
const RETRY_AFTER_MARGIN: Duration = Duration::from_secs(1);

/// How many retries an error of this class gets; none when it is not transient.
pub fn max_retries(config: &RetryConfig, class: ErrorClass) -> u32 {
    match class {
        ErrorClass::PrematureStop => config.max_retries.min(PREMATURE_STOP_MAX_RETRIES),
        class if class.is_transient() => config.max_retries,
        _ => 0,
    }
}

/// How long to wait before retry number `attempt` (the first retry is 1); `None` means give up.
///
/// `jitter01` is a random number from 0 to 1 that spreads clients over half to one and a half
/// times the computed delay. A wait that the provider named is kept exactly, plus a margin.
pub fn delay(config: &RetryConfig, attempt: u32, retry_after: Option<Duration>, jitter01: f64) -> Option<Duration> {
    if attempt > config.max_retries {
        return None;
    }
    if let Some(asked) = retry_after {
        return (asked <= MAX_RATE_LIMIT_WAIT).then(|| asked + RETRY_AFTER_MARGIN);
    }
    let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
    let grown = config.base_delay.as_secs_f64() * config.backoff_multiplier.powi(exponent);
    let longest = config.max_delay.as_secs_f64();
    // `min` also turns a multiplier that is not a number into the longest delay.
    let capped = grown.min(longest).max(0.0);
    let jitter = if jitter01.is_finite() { jitter01.clamp(0.0, 1.0) } else { 0.5 };
    Some(Duration::try_from_secs_f64(capped * (0.5 + jitter)).unwrap_or(config.max_delay))
}

/// The progress label while waiting, in the form every client already shows.
pub fn progress_text(class: ErrorClass, delay: Duration, attempt: u32, max: u32) -> String {
    let reason = match class {
        ErrorClass::RateLimited => "Rate limited",
        ErrorClass::Overloaded => "Provider overloaded",
        ErrorClass::Network => "Network issues",
        ErrorClass::PrematureStop => "Empty response",
        _ => "Transient error",
    };
    let seconds = (delay.as_secs_f64().round() as u64).max(1);
    format!("⏳ {reason}. Retrying in {seconds}s (attempt {attempt}/{max})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn middle(attempt: u32) -> Option<Duration> {
        delay(&RetryConfig::default(), attempt, None, 0.5)
    }

    #[test]
    fn the_delay_doubles_up_to_the_longest() {
        let seconds: Vec<_> = (1..=7).map(|n| middle(n).map(|d| d.as_secs())).collect();
        assert_eq!(seconds, [2, 4, 8, 16, 32, 60, 60].map(Some));
    }

    #[test]
    fn attempts_run_out() {
        assert!(middle(10).is_some());
        assert_eq!(middle(11), None);
        let never = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        assert_eq!(delay(&never, 1, None, 0.5), None);
        assert_eq!(delay(&never, 1, Some(Duration::from_secs(1)), 0.5), None);
    }

    #[test]
    fn jitter_spreads_from_half_to_one_and_a_half() {
        let config = RetryConfig::default();
        assert_eq!(delay(&config, 1, None, 0.0), Some(Duration::from_secs(1)));
        assert_eq!(delay(&config, 1, None, 1.0), Some(Duration::from_secs(3)));
        assert_eq!(delay(&config, 1, None, 7.0), Some(Duration::from_secs(3)));
        assert_eq!(delay(&config, 1, None, f64::NAN), Some(Duration::from_secs(2)));
    }

    #[test]
    fn what_the_provider_asks_for_wins_unless_it_is_too_long() {
        let config = RetryConfig::default();
        assert_eq!(delay(&config, 5, Some(Duration::from_secs(7)), 0.0), Some(Duration::from_secs(8)));
        assert_eq!(delay(&config, 1, Some(Duration::from_secs(60)), 0.0), Some(Duration::from_secs(61)));
        assert_eq!(delay(&config, 1, Some(Duration::from_secs(61)), 0.0), None);
    }

    #[test]
    fn odd_numbers_in_the_configuration_do_no_harm() {
        for backoff_multiplier in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -3.0, 0.0, 1e300] {
            let config = RetryConfig { backoff_multiplier, ..RetryConfig::default() };
            for attempt in [0, 1, 2, 3, 10] {
                let got = delay(&config, attempt, None, 1.0).expect("attempts are left");
                assert!(got <= Duration::from_secs(90), "{backoff_multiplier} {attempt} {got:?}");
            }
        }
    }

    #[test]
    fn an_empty_answer_gets_fewer_tries_and_a_wrong_key_none() {
        let config = RetryConfig::default();
        assert_eq!(max_retries(&config, ErrorClass::RateLimited), 10);
        assert_eq!(max_retries(&config, ErrorClass::PrematureStop), 3);
        assert_eq!(max_retries(&config, ErrorClass::Auth), 0);
    }

    #[test]
    fn progress_has_the_public_form() {
        let two = Duration::from_millis(2_100);
        assert_eq!(
            progress_text(ErrorClass::RateLimited, two, 1, 10),
            "⏳ Rate limited. Retrying in 2s (attempt 1/10)"
        );
        for (class, reason) in [
            (ErrorClass::Overloaded, "Provider overloaded"),
            (ErrorClass::Network, "Network issues"),
            (ErrorClass::PrematureStop, "Empty response"),
            (ErrorClass::Unknown, "Transient error"),
        ] {
            let text = progress_text(class, Duration::ZERO, 2, 3);
            assert_eq!(text, format!("⏳ {reason}. Retrying in 1s (attempt 2/3)"));
        }
    }
}
