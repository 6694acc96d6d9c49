//! When a failed model call is tried again, and what the user reads meanwhile.
//!
//! Pure arithmetic: the engine owns the clock, the random number and the decision that an error
//! may be retried at all ([`ErrorClass::is_transient`], nothing shown yet).

use std::time::Duration;

use fancy_regex::RegexBuilder;

use crate::config::{RetryConfig, RetryRule};
use crate::llm::{ErrorClass, LlmError};

/// Added to the wait a provider asks for, because its clock and ours differ.
const RETRY_AFTER_MARGIN: Duration = Duration::from_secs(1);

/// A pattern may try so many ways to match before it counts as not matching.
const MOST_BACKTRACKING: usize = 100_000;

/// How many retries an error gets; none when it is not worth another try.
pub fn max_retries(config: &RetryConfig, error: &LlmError) -> u32 {
    match error.class {
        _ if rule(config, error).is_some() => config.max_retries,
        // An answer that stopped before it began rarely gets better by asking many times.
        ErrorClass::PrematureStop => config.max_retries.min(config.premature_stop_max_retries),
        class if class.is_transient() => config.max_retries,
        _ => 0,
    }
}

/// Whether the same request may succeed later, also by the user's own rules.
pub fn is_worthwhile(config: &RetryConfig, error: &LlmError) -> bool {
    error.class.is_transient() || rule(config, error).is_some()
}

/// The first of the user's rules that is about this error.
fn rule<'a>(config: &'a RetryConfig, error: &LlmError) -> Option<&'a RetryRule> {
    let says = |pattern: &str| {
        let pattern = RegexBuilder::new(pattern).case_insensitive(true).backtrack_limit(MOST_BACKTRACKING).build();
        // The configuration has reported a pattern that is none.
        pattern.is_ok_and(|pattern| pattern.is_match(&error.user_text).unwrap_or(false))
    };
    config.rules.iter().find(|rule| {
        rule.status.is_none_or(|status| error.status == Some(status)) && rule.error_pattern.as_deref().is_none_or(says)
    })
}

/// What to add to an error whose provider wants to be left alone for longer than the user would
/// wait, so that the user learns about it instead of watching a chat that seems to hang.
pub fn too_long(config: &RetryConfig, error: &LlmError) -> Option<String> {
    let asked = error.retry_after.filter(|asked| *asked > config.rate_limit_max_wait)?;
    let (count, unit) = match asked.as_secs() {
        seconds @ ..=119 => (seconds, "seconds"),
        seconds @ ..=7_199 => (seconds.div_ceil(60), "minutes"),
        seconds => (seconds.div_ceil(3600), "hours"),
    };
    Some(format!("It asks to wait for {count} {unit}."))
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
        return (asked <= config.rate_limit_max_wait).then(|| asked + RETRY_AFTER_MARGIN);
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
pub fn progress_text(config: &RetryConfig, error: &LlmError, delay: Duration, attempt: u32, max: u32) -> String {
    let own = rule(config, error).map(|rule| rule.label.as_deref().unwrap_or("Transient error"));
    let usual = || match error.class {
        ErrorClass::RateLimited => "Rate limited",
        ErrorClass::Overloaded => "Provider overloaded",
        ErrorClass::Network => "Network issues",
        ErrorClass::PrematureStop => "Empty response",
        _ => "Transient error",
    };
    let reason = own.unwrap_or_else(usual);
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

    fn error(class: ErrorClass, status: Option<u16>, text: &str) -> LlmError {
        LlmError { class, status, provider: "p".into(), retry_after: None, user_text: text.into() }
    }

    #[test]
    fn an_empty_answer_gets_fewer_tries_and_a_wrong_key_none() {
        let config = RetryConfig::default();
        let max = |class| max_retries(&config, &error(class, None, ""));
        assert_eq!(max(ErrorClass::RateLimited), 10);
        assert_eq!(max(ErrorClass::PrematureStop), 3);
        assert_eq!(max(ErrorClass::Auth), 0);
    }

    #[test]
    fn the_users_rules_come_first() {
        let rule = |status: Option<u16>, pattern: Option<&str>, label: Option<&str>| RetryRule {
            status,
            error_pattern: pattern.map(str::to_owned),
            label: label.map(str::to_owned),
        };
        let rules = vec![
            rule(Some(418), None, Some("Teapot")),
            rule(Some(400), Some("try (?!never).*again"), None),
            rule(None, Some("("), None),
        ];
        let config = RetryConfig { rules, ..RetryConfig::default() };
        let second = Duration::from_secs(1);
        for (class, status, text, label) in [
            (ErrorClass::BadRequest, Some(418), "no coffee", Some("Teapot")),
            (ErrorClass::BadRequest, Some(400), "Please TRY it again", Some("Transient error")),
            (ErrorClass::BadRequest, Some(400), "try never again", None),
            (ErrorClass::BadRequest, Some(401), "try again", None),
            (ErrorClass::BadRequest, None, "no coffee", None),
        ] {
            let error = error(class, status, text);
            assert_eq!(max_retries(&config, &error), if label.is_some() { 10 } else { 0 }, "{error:?}");
            assert_eq!(is_worthwhile(&config, &error), label.is_some());
            let shown = progress_text(&config, &error, second, 1, 10);
            assert!(shown.contains(label.unwrap_or("Transient error")), "{shown}");
        }
    }

    #[test]
    fn a_wait_that_is_too_long_is_told() {
        let wait = |seconds| {
            let asked = Some(Duration::from_secs(seconds));
            too_long(
                &RetryConfig::default(),
                &LlmError { retry_after: asked, ..error(ErrorClass::RateLimited, None, "") },
            )
        };
        assert_eq!(wait(60), None);
        for (seconds, words) in [(61, "61 seconds"), (121, "3 minutes"), (7_200, "2 hours")] {
            assert!(wait(seconds).is_some_and(|text| text.contains(words)), "{seconds}");
        }
        assert_eq!(too_long(&RetryConfig::default(), &error(ErrorClass::RateLimited, None, "")), None);
    }

    #[test]
    fn progress_has_the_public_form() {
        let two = Duration::from_millis(2_100);
        assert_eq!(
            progress_text(&RetryConfig::default(), &error(ErrorClass::RateLimited, None, ""), two, 1, 10),
            "⏳ Rate limited. Retrying in 2s (attempt 1/10)"
        );
        for (class, reason) in [
            (ErrorClass::Overloaded, "Provider overloaded"),
            (ErrorClass::Network, "Network issues"),
            (ErrorClass::PrematureStop, "Empty response"),
            (ErrorClass::Unknown, "Transient error"),
        ] {
            let text = progress_text(&RetryConfig::default(), &error(class, None, ""), Duration::ZERO, 2, 3);
            assert_eq!(text, format!("⏳ {reason}. Retrying in 1s (attempt 2/3)"));
        }
    }
}
