//! How close a mistyped model name is to a known one.

/// How far a known id is from a wanted name; `None` when they have nothing in common.
pub(super) fn dissimilarity(wanted: &str, id: &str) -> Option<usize> {
    let name = id.split_once('/').map_or(id, |(_, model)| model);
    if id.contains(wanted) || wanted.contains(name) {
        return Some(0);
    }
    let distance = edit_distance(wanted, name).min(edit_distance(wanted, id));
    (distance * 3 <= wanted.chars().count()).then_some(distance)
}

/// Levenshtein's distance in characters; both texts are short.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
