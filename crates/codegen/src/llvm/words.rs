//! Elements of 8 and 16 bits within warps: several travel as one word.
//!
//! In conversions, which of a lane's elements make up a word that it offers or takes follows from a few bits
//! of the thread's number. Where threads differ by whole words, words are selected. Where all that any thread puts
//! into a word lies in two others, one instruction picks its bytes, by a selector that each thread makes once.

use smallvec::SmallVec;
use tile_compiler::layout::{ShufflePlan, ThreadIndex};

use super::Emitter;
use super::memory::Words;
use super::text::{Ty, Val};

const WORD: Ty = Ty::Int(32);
const WORD_BYTES: usize = 4;

/// Elements of a thread, by themselves and as words.
pub(super) struct Elements {
    ty: Ty,
    pub(super) values: Vec<Val>,
    pub(super) words: Vec<Val>,
}

impl Elements {
    fn per_word(&self) -> usize {
        WORD.bits() as usize / self.ty.bits() as usize
    }

    /// The word that has just the elements at `places`.
    fn whole_word(&self, places: &[usize]) -> Option<Val> {
        let word = places[0] / self.per_word();
        let is_next = |(at, &place): (usize, &usize)| place == word * self.per_word() + at;
        places.iter().enumerate().all(is_next).then(|| self.words[word])
    }

    /// The two words that have all elements at `places`, if no more have.
    fn two_words(&self, places: impl Iterator<Item = usize>) -> Option<[usize; 2]> {
        let mut words: SmallVec<[usize; 4]> = places.map(|place| place / self.per_word()).collect();
        words.sort_unstable();
        words.dedup();
        match words[..] {
            [one] => Some([one, one]),
            [one, other] => Some([one, other]),
            _ => None,
        }
    }

    /// What picks the bytes of the elements at `places` from two words: the number of a byte in each four bits.
    fn selector(&self, places: &[usize], words: [usize; 2]) -> u32 {
        let bytes = WORD_BYTES / self.per_word();
        let byte_of = |at: usize| {
            let place = places[at / bytes];
            let word = usize::from(place / self.per_word() != words[0]);
            word * WORD_BYTES + place % self.per_word() * bytes + at % bytes
        };
        (0..places.len() * bytes)
            .fold(0, |selector, at| selector | (byte_of(at) as u32) << (4 * at))
    }
}

impl Emitter<'_> {
    /// What the registers of the destination hold, of elements of `ty` in the registers of `source`.
    pub(super) fn shuffle_words(&mut self, plan: &ShufflePlan, ty: Ty, source: &[Val]) -> Vec<Val> {
        let source = self.elements(ty, source.to_vec());
        let groups = steps_of_words(plan, source.per_word());
        let offered: Vec<Val> = groups
            .iter()
            .map(|steps| {
                let indices = steps.iter().map(|&step| plan.steps[step].source_register.clone());
                self.pick(&indices.collect::<Vec<_>>(), &source, |place| place)
            })
            .collect();
        let mut places = vec![0; plan.steps.len()];
        let mut received = Vec::with_capacity(groups.len());
        for (word, (steps, offered)) in groups.iter().zip(offered).enumerate() {
            for (at, &step) in steps.iter().enumerate() {
                places[step] = word * source.per_word() + at;
            }
            received.push(self.brought(plan, steps[0], WORD, offered));
        }
        let received = self.elements_of_words(ty, received);
        let results = plan.results.chunks(source.per_word());
        let words: Vec<Val> =
            results.map(|word| self.pick(word, &received, |step| places[step])).collect();
        let mut values = self.elements_of_words(ty, words).values;
        values.truncate(plan.results.len());
        values
    }

    pub(super) fn elements(&mut self, ty: Ty, values: Vec<Val>) -> Elements {
        let per_word = (WORD.bits() / ty.bits()) as usize;
        let words = values.chunks(per_word).map(|chunk| self.word_of_few(ty, chunk)).collect();
        Elements { ty, values, words }
    }

    pub(super) fn elements_of_words(&mut self, ty: Ty, words: Vec<Val>) -> Elements {
        let raw = Ty::Int(ty.bits());
        let count = WORD.bits() / ty.bits();
        let mut values = Vec::with_capacity(words.len() * count as usize);
        for word in &words {
            let vector = self.text.op(format_args!("bitcast {WORD} {word} to <{count} x {raw}>"));
            values.extend((0..count).map(|at| {
                let list = format_args!("extractelement <{count} x {raw}> {vector}, i32 {at}");
                let value = self.text.op(list);
                self.text.bitcast(raw, value, ty)
            }));
        }
        Elements { ty, values, words }
    }

    /// At most as many elements as a word has, in its lowest bits.
    fn word_of_few(&mut self, ty: Ty, values: &[Val]) -> Val {
        let words = Words::new(ty.bits(), values.len());
        let word = self.pack(ty, words, values)[0];
        self.text.cast("zext", words.ty(), word, WORD)
    }

    /// The word of the elements that `indices` name in each thread, which depend on it alike; `place` says
    /// where in `elements` what they name is.
    fn pick(
        &mut self,
        indices: &[ThreadIndex],
        elements: &Elements,
        place: impl Fn(usize) -> usize,
    ) -> Val {
        let conditions = self.conditions(&indices[0]);
        let named: Vec<Vec<u32>> = indices.iter().map(ThreadIndex::numbers).collect();
        let ways: Vec<Vec<usize>> = (0..1 << conditions.len())
            .map(|way| named.iter().map(|numbers| place(numbers[way] as usize)).collect())
            .collect();
        self.pick_by(&conditions, &ways, elements)
    }

    /// The word of the elements at the places of one of `ways`: that whose number has the bits set whose
    /// `conditions` hold.
    fn pick_by(&mut self, conditions: &[Val], ways: &[Vec<usize>], elements: &Elements) -> Val {
        let whole: Option<Vec<Val>> = ways.iter().map(|way| elements.whole_word(way)).collect();
        if let Some(words) = whole {
            return self.select_by(conditions, WORD, &words);
        }
        let Some((&condition, others)) = conditions.split_last() else {
            let values: Vec<Val> = ways[0].iter().map(|&place| elements.values[place]).collect();
            return self.word_of_few(elements.ty, &values);
        };
        if let Some(words) = elements.two_words(ways.iter().flatten().copied()) {
            let selectors: Vec<Val> =
                ways.iter().map(|way| Val::Int(elements.selector(way, words).into())).collect();
            let selector = self.select_by(conditions, WORD, &selectors);
            let [one, other] = words.map(|word| (WORD, elements.words[word]));
            return self.text.call("llvm.nvvm.prmt", WORD, &[one, other, (WORD, selector)]);
        }
        let (low, high) = ways.split_at(ways.len() / 2);
        let [low, high] = [low, high].map(|ways| self.pick_by(others, ways, elements));
        self.text.select(condition, WORD, high, low)
    }

    /// Whether each of the bits on which a number depends is set in this thread.
    pub(super) fn conditions(&mut self, index: &ThreadIndex) -> Vec<Val> {
        let choices = index.choices();
        if choices.is_empty() {
            return Vec::new();
        }
        let number = self.thread_number(&ThreadIndex { constant: 0, ..index.clone() });
        choices
            .iter()
            .map(|choice| {
                let bit = Val::Int(choice.bit.into());
                let masked = self.text.binary("and", WORD, number, bit);
                self.text.op(format_args!("icmp ne {WORD} {masked}, 0"))
            })
            .collect()
    }

    /// The one of `values` whose number has the bits set whose `conditions` hold.
    pub(super) fn select_by(&mut self, conditions: &[Val], ty: Ty, values: &[Val]) -> Val {
        let Some((&condition, others)) = conditions.split_last() else { return values[0] };
        let (low, high) = values.split_at(values.len() / 2);
        let [low, high] = [low, high].map(|values| self.select_by(others, ty, values));
        if low == high { low } else { self.text.select(condition, ty, high, low) }
    }
}

/// Steps that bring elements from the same lane, so that these share a word: as many as fit one.
pub(super) fn steps_of_words(plan: &ShufflePlan, per_word: usize) -> Vec<Vec<usize>> {
    let mut lanes: Vec<(&ThreadIndex, Vec<usize>)> = Vec::new();
    for (at, step) in plan.steps.iter().enumerate() {
        match lanes.iter_mut().find(|(lane, _)| **lane == step.source_lane) {
            Some((_, steps)) => steps.push(at),
            None => lanes.push((&step.source_lane, vec![at])),
        }
    }
    lanes.iter().flat_map(|(_, steps)| steps.chunks(per_word).map(<[usize]>::to_vec)).collect()
}
