//! Which names somebody means who typed a few of their characters.

/// True when `name` has the characters of `query` in their order, whatever their case.
pub(crate) fn matches(name: &str, query: &str) -> bool {
    let mut rest = name.chars().flat_map(char::to_lowercase);
    query.chars().flat_map(char::to_lowercase).all(|wanted| rest.any(|c| c == wanted))
}
