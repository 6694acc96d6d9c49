//! Order statistics: on a busy machine only the minimum and the median mean anything.

use std::time::Duration;

/// Samples of one quantity, sorted.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    pub(crate) fn of_durations(durations: impl IntoIterator<Item = Duration>) -> Self {
        Self::new(durations.into_iter().map(|duration| duration.as_secs_f64() * 1e3).collect())
    }

    pub(crate) fn min(&self) -> f64 {
        self.0.first().copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn p50(&self) -> f64 {
        self.0.get(self.0.len() / 2).copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn max(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }
}
