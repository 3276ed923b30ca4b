//! How large values may get that a kernel, or what runs while it is compiled, puts together.

/// Items of a tuple, a text or a value of Python with all its parts at most.
pub(super) const MAX_ITEMS: usize = 65_536;
/// How deep such values may lie in each other.
const MAX_LEVELS: usize = 64;

/// Items and letters of `value` and all its parts; `None` where these are more than [`MAX_ITEMS`],
/// or lie deeper in each other than [`MAX_LEVELS`]. `open` tells the letters and the parts of one
/// value.
pub(super) fn size_of<V>(value: V, open: impl Fn(&V) -> (usize, Vec<V>)) -> Option<usize> {
    let (mut size, mut waiting) = (0, vec![(value, 0)]);
    while let Some((value, level)) = waiting.pop() {
        let (letters, parts) = open(&value);
        size += letters + parts.len();
        if size > MAX_ITEMS || (!parts.is_empty() && level >= MAX_LEVELS) {
            return None;
        }
        waiting.extend(parts.into_iter().map(|part| (part, level + 1)));
    }
    Some(size)
}
