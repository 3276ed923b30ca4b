//! What was probably meant by a name that nothing has.

/// Names that are more alike than this are close.
const CLOSE: f64 = 0.85;

/// The candidate most like `name`, if one is close enough. A single letter is too much like others.
pub(crate) fn suggest<'n>(
    name: &str,
    candidates: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    candidates
        .into_iter()
        .filter(|candidate| !candidate.is_empty() && name.len() > 1 && *candidate != name)
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

/// Shorter names are too like others to be misspellings of them.
const LEAST_LETTERS: usize = 3;

/// Names of so many letters may have two wrong ones.
const LONG: usize = 8;

/// The candidate that `name` is with a letter or two wrong, left out, added or exchanged. Unlike
/// [`suggest`] it is for names that may well be right where a candidate is not that near.
pub(crate) fn misspelled<'n>(
    name: &str,
    candidates: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    let most = if name.len() < LONG { 1 } else { 2 };
    let has = letters(name);
    let near = |candidate: &'n str| {
        // One wrong letter takes one from a name and brings another.
        let is_comparable = candidate.len().max(name.len()) >= LEAST_LETTERS
            && candidate.len().abs_diff(name.len()) <= most
            && (letters(candidate) ^ has).count_ones() as usize <= 2 * most;
        let wrong = is_comparable.then(|| strsim::damerau_levenshtein(name, candidate))?;
        // Who leaves out a letter hardly means what works in place.
        let key = (wrong, candidate.ends_with('_') && !name.ends_with('_'), candidate);
        (1..=most).contains(&wrong).then_some(key)
    };
    let found = candidates.into_iter().filter_map(near).min();
    found.map(|(.., candidate)| candidate)
}

/// The candidate that `name` is but for its last word: `empty_like` for `empty_as`, where `empty` is one as well.
pub(crate) fn other_ending<'n>(
    name: &str,
    candidates: impl IntoIterator<Item = &'n str> + Clone,
) -> Option<&'n str> {
    let (stem, word) = name.rsplit_once('_').filter(|(_, word)| word.len() > 1)?;
    let is_stem = candidates.clone().into_iter().any(|candidate| candidate == stem);
    let ends = |candidate: &&str| {
        let word = candidate.strip_prefix(stem).and_then(|end| end.strip_prefix('_'));
        word.is_some_and(|word| !word.is_empty() && !word.contains('_'))
    };
    let found = candidates.into_iter().filter(ends).map(|candidate| {
        let far = strsim::damerau_levenshtein(word, &candidate[stem.len() + 1..]);
        (far, candidate)
    });
    found.min().filter(|_| is_stem).map(|(_, candidate)| candidate)
}

/// Which letters a name has, as bits: names that differ in many of them are far apart, which takes
/// long to find out otherwise.
fn letters(name: &str) -> u64 {
    name.bytes().fold(0, |has, letter| has | 1 << (letter % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_meant_that_are_a_letter_or_two_away() {
        let known = ["contiguous", "stride", "empty_like", "empty"];
        assert_eq!(misspelled("contigous", known), Some("contiguous"));
        assert_eq!(misspelled("contgiuos", known), Some("contiguous"));
        assert_eq!(misspelled("emtpy_like", known), Some("empty_like"));
        assert_eq!(misspelled("strid", known), Some("stride"));
        assert_eq!(misspelled("stride", known), None);
        assert_eq!(misspelled("shape", known), None);
    }

    #[test]
    fn a_last_word_is_meant_that_others_of_the_stem_have() {
        let known = ["empty", "empty_like", "empty_strided", "index_copy", "view"];
        assert_eq!(other_ending("empty_as", known), Some("empty_like"));
        assert_eq!(other_ending("index_put", known), None);
        assert_eq!(other_ending("view_as", known), None);
        assert_eq!(other_ending("empty_", known), None);
    }

    #[test]
    fn a_single_letter_stands_for_no_name() {
        assert_eq!(suggest("B", ["BD", "b_ptr"]), None);
        assert_eq!(suggest("BLOK", ["BLOCK", "b_ptr"]), Some("BLOCK"));
    }
}
