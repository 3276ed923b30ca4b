//! What was probably meant by a name that nothing has.

/// Names that are more alike than this are close.
const CLOSE: f64 = 0.85;

/// The candidate most like `name`, if one is close enough.
pub(crate) fn suggest<'n>(
    name: &str,
    candidates: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    candidates
        .into_iter()
        .filter(|candidate| !candidate.is_empty() && *candidate != name)
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(score, candidate)| {
            *score > CLOSE || strsim::damerau_levenshtein(name, candidate) <= name.len() / 4
        })
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)))
        .map(|(_, candidate)| candidate)
}

/// The candidate most like `name` in letters of either case, if one is close: `block` for `BLOCK`.
pub(crate) fn suggest_in_any_case<'n>(
    name: &str,
    candidates: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    let name = name.to_lowercase();
    candidates
        .into_iter()
        .map(|known| (strsim::jaro_winkler(&name, &known.to_lowercase()), known))
        .filter(|(score, _)| *score > CLOSE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}
