//! How close a mistyped model name is to a known one.

use crate::base::text::edit_distance;

/// How far a known id is from a wanted name; `None` when they have nothing in common.
pub(super) fn dissimilarity(wanted: &str, id: &str) -> Option<usize> {
    let name = id.split_once('/').map_or(id, |(_, model)| model);
    if id.contains(wanted) || wanted.contains(name) {
        return Some(0);
    }
    let distance = edit_distance(wanted, name).min(edit_distance(wanted, id));
    (distance * 3 <= wanted.chars().count()).then_some(distance)
}
