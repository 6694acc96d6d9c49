//! How a limited room is shared: who needs little gets it all, and the rest is divided evenly.

/// What a message may grow by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    pub bytes: usize,
}

/// What a model of unknown size is assumed to take.
const ASSUMED_TOKENS: u64 = 128_000;
const BYTES_PER_TOKEN: u64 = 4;
const LEAST: u64 = 16 * 1024;
const MOST: u64 = 8 * 1024 * 1024;

impl Budget {
    /// The share of contexts in the context window of a model.
    pub const PERCENT: u64 = 40;

    /// As much as contexts should take of a model with this context window.
    pub fn of(context_limit: Option<u64>) -> Self {
        let tokens = context_limit.unwrap_or(ASSUMED_TOKENS).saturating_mul(Self::PERCENT) / 100;
        let bytes = tokens.saturating_mul(BYTES_PER_TOKEN).clamp(LEAST, MOST);
        Self { bytes: usize::try_from(bytes).unwrap_or(usize::MAX) }
    }
}

/// How much each gets of `room`.
pub(super) fn shares(needs: &[usize], room: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_unstable_by_key(|index| needs[*index]);
    let mut shares = vec![0; needs.len()];
    let mut left = room;
    for (served, index) in order.into_iter().enumerate() {
        shares[index] = needs[index].min(left / (needs.len() - served));
        left -= shares[index];
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_needs_are_met_and_large_ones_share() {
        for (needs, room, expected) in [
            (&[][..], 10, &[][..]),
            (&[3, 4], 10, &[3, 4]),
            (&[100, 2, 100], 22, &[10, 2, 10]),
            (&[100, 2, 7], 22, &[13, 2, 7]),
            (&[5, 5], 0, &[0, 0]),
        ] {
            assert_eq!(shares(needs, room), expected, "{needs:?} {room}");
        }
    }

    #[test]
    fn a_budget_follows_the_model() {
        assert_eq!(Budget::of(Some(200_000)).bytes, 320_000);
        assert_eq!(Budget::of(None).bytes, 204_800);
        assert_eq!(Budget::of(Some(1)).bytes, 16 * 1024);
        assert_eq!(Budget::of(Some(u64::MAX)).bytes, 8 * 1024 * 1024);
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_shared_that_is_not_there(needs in proptest::collection::vec(0usize..1_000, 0..20), room in 0usize..5_000) {
            let shares = shares(&needs, room);
            let total: usize = shares.iter().sum();
            proptest::prop_assert!(total <= room);
            proptest::prop_assert!(shares.iter().zip(&needs).all(|(share, need)| share <= need));
            // Nothing is left over while somebody needs more than what cannot be divided.
            let unmet = shares.iter().zip(&needs).any(|(share, need)| share < need);
            proptest::prop_assert!(!unmet || room - total < needs.len());
        }
    }
}
