//! What loads read of memory whose contents the launch shows.
//!
//! Random integers are variables: one read may give any of them, and each is an example. What is read
//! twice at one place is the same, which a search for an example need not heed, so that what it
//! finds is looked at again ([`Elements::agrees`]).

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Element, Elements, Index, UnknownKey};
use crate::analysis::terms::{AtomKind, Cond, Domain, Interval, Linear, Operation, Terms, Var};
use crate::analysis::written::written_params;
use crate::host::value::contents::Region;
use crate::host::{Contents, repeats};
use crate::ir::{InstData, Value};
use crate::specialization::{KnownArg, KnownBuffer};

/// Numbers of a list that a read chooses from, one after another.
const MAX_CHOICES: usize = 32;

/// Parts of memory that are told apart from the rest.
const MAX_PARTS: usize = 8;

/// A read of a random integer.
#[derive(Debug, Clone)]
pub(in crate::analysis) struct RandomRead {
    /// What it gives.
    pub(in crate::analysis) var: Var,
    /// The parameter that points to the memory.
    pub(in crate::analysis) param: usize,
    /// The position of what is read.
    pub(in crate::analysis) offset: Linear,
}

impl<'f> Elements<'f> {
    /// Variables that stand for random integers that were read so far.
    pub(in crate::analysis) fn drawn(&self) -> impl Iterator<Item = Var> {
        self.random.iter().map(|read| read.var)
    }

    /// The integer in a lane of a load.
    pub(super) fn loaded(&mut self, value: Value, data: &InstData, index: &Index) -> Element {
        let bits = self.func.ty(value).number().map_or(64, |number| number.bits());
        let known = match self.element(data.operand(0), index) {
            Element::Pointer(param, offset) => self.held(param, &offset, bits),
            _ => None,
        };
        let read = match known {
            Some(read) => read,
            None if bits == 1 => return self.unknown(value, index),
            None => self.unknown_int(value, index),
        };
        let Some(mask) = data.operand_opt(1) else { return Element::Int(read) };
        let mask = self.truth(mask, index);
        let other = match data.operand_opt(2) {
            Some(other) => self.int(other, index),
            None => self.unknown_int(value, index),
        };
        Element::Int(self.terms.choose(mask, &read, &other))
    }

    /// What memory holds at a position.
    fn held(&mut self, param: usize, offset: &Linear, bits: u32) -> Option<Linear> {
        self.numbers(self.contents(param)?, param, offset, bits)
    }

    /// What memory that holds `contents` has at a position.
    fn numbers(
        &mut self,
        contents: &Contents,
        param: usize,
        offset: &Linear,
        bits: u32,
    ) -> Option<Linear> {
        let fits = |lo, hi| Interval::new(lo, hi).within(Interval::signed(bits));
        match contents {
            Contents::Unknown
            | Contents::Uninitialized
            | Contents::Partly(_)
            | Contents::Signed
            | Contents::Floats(_) => None,
            Contents::Progression { start, step } => {
                let moved = self.terms.binary(Operation::Mul, offset, &Linear::constant(*step));
                let term = moved.offset(*start);
                let range = self.terms.range(&term);
                fits(range.lo, range.hi).then_some(term)
            }
            Contents::Listed(numbers) => {
                let (lo, hi) = (numbers.iter().min()?, numbers.iter().max()?);
                fits(*lo, *hi).then(|| self.listed(numbers, param, offset, bits))
            }
            Contents::Random { lo, hi } | Contents::Distinct { lo, hi } if fits(*lo, *hi) => {
                let key = UnknownKey::Read(param, offset.clone(), bits);
                if let Some(known) = self.unknown_memo.get(&key) {
                    return Some(known.clone());
                }
                let var = self.terms.var(Interval::new(*lo, *hi));
                self.random.push(RandomRead { var, param, offset: offset.clone() });
                let term = self.terms.var_term(var);
                self.unknown_memo.insert(key, term.clone());
                Some(term)
            }
            Contents::Random { .. } | Contents::Distinct { .. } => None,
            Contents::Except { of, parts } => {
                let runs = merged(parts.iter().flat_map(Region::runs).collect());
                let range = self.terms.range(offset);
                let last = self.buffer(param)?.elements - 1;
                let read = (range.lo.max(0), range.hi.min(last));
                let is_all = |(start, end): &(i128, i128)| *start <= read.0 && read.1 < *end;
                if runs.len() > MAX_PARTS || runs.iter().any(is_all) {
                    return None;
                }
                let mut number = self.numbers(of, param, offset, bits)?;
                let key = UnknownKey::Part(param, offset.clone(), bits);
                let other = self.keyed(key, Interval::signed(bits));
                for (start, end) in runs {
                    let inside = self.within(offset, start, end);
                    number = self.terms.choose(inside, &other, &number);
                }
                Some(number)
            }
        }
    }

    /// Whether a position is in `start..end`.
    fn within(&mut self, offset: &Linear, start: i128, end: i128) -> Cond {
        let after = self.terms.at_most(&Linear::constant(start), offset);
        let before = self.terms.less(offset, &Linear::constant(end));
        self.terms.and(after, before)
    }

    fn listed(&mut self, numbers: &[i128], param: usize, offset: &Linear, bits: u32) -> Linear {
        let range = self.terms.range(offset);
        let last = numbers.len() as i128 - 1;
        let (first, last) = (range.lo.max(0), range.hi.min(last));
        let mut chosen = match range.lo >= 0 && range.hi == last && first <= last {
            true => Linear::constant(numbers[last as usize]),
            // What is outside of the list is outside of memory.
            false => {
                let key = UnknownKey::Read(param, offset.clone(), bits);
                self.keyed(key, Interval::signed(bits))
            }
        };
        let here = match first <= last {
            true => &numbers[first as usize..=last as usize],
            false => &[],
        };
        let runs: Vec<&[i128]> = here.chunk_by(|a, b| a == b).collect();
        if runs.len() > MAX_CHOICES {
            let (lo, hi) = (here.iter().min().copied(), here.iter().max().copied());
            let range = Interval::new(lo.unwrap_or_default(), hi.unwrap_or_default());
            return self.keyed(UnknownKey::Read(param, offset.clone(), bits), range);
        }
        // Where equal numbers begin.
        let mut start = first;
        for run in runs {
            let end = start + run.len() as i128;
            let inside = self.within(offset, start, end);
            chosen = self.terms.choose(inside, &Linear::constant(run[0]), &chosen);
            start = end;
        }
        chosen
    }

    /// What the launch shows of the memory that a parameter points to, where the kernel writes none
    /// of it. Where variables stand for memory, numbers that are told one by one count all the same:
    /// what they have to do with each other holds for all that may be there instead.
    fn contents(&self, param: usize) -> Option<&'f Contents> {
        let buffer = self.buffer(param)?;
        let is_shown = match &buffer.contents {
            Contents::Unknown => false,
            Contents::Progression { .. } | Contents::Listed(_) => true,
            _ => !self.free,
        };
        (is_shown && !self.may_write(param, buffer)).then_some(&buffer.contents)
    }

    /// Whether the memory that a parameter points to holds numbers of either sign, whatever the kernel
    /// has written when it reads them.
    pub(in crate::analysis) fn is_signed(&self, param: usize) -> bool {
        let buffer = self.buffer(param).filter(|buffer| buffer.contents == Contents::Signed);
        buffer.is_some_and(|buffer| !self.may_write(param, buffer))
    }

    fn buffer(&self, param: usize) -> Option<&'f KnownBuffer> {
        match self.launch?.arg(&self.func.params[param].name)? {
            KnownArg::Buffer(buffer) => Some(buffer),
            KnownArg::Int(_) | KnownArg::Float(_) => None,
        }
    }

    fn may_write(&self, param: usize, buffer: &KnownBuffer) -> bool {
        let written = self.written.get_or_init(|| written_params(self.func));
        let Some(written) = written else { return true };
        written.iter().any(|written_param| match self.buffer(*written_param) {
            _ if *written_param == param => true,
            // A part is in memory of which it is not known which it is.
            Some(other) if buffer.before > 0 && buffer.id.is_none() => {
                let signature = |param: usize| &self.func.params[param].signature;
                signature(*written_param) == signature(param) || other.id.is_none()
            }
            Some(other) => other.id.is_none() || other.id == buffer.id,
            None => self.func.params[*written_param].signature == self.func.params[param].signature,
        })
    }

    /// Whether each place in memory has one value in an example, of which these are the conditions
    /// and positions, by point.
    pub(in crate::analysis) fn agrees(&self, example: &[(&[Cond], &Linear, &[i128])]) -> bool {
        let reads =
            example.iter().flat_map(|(conds, offset, point)| self.reads_of(conds, offset, point));
        self.is_consistent(reads.collect())
    }

    fn is_consistent(&self, reads: Vec<(&RandomRead, i128, i128)>) -> bool {
        let mut held = FxHashMap::default();
        let mut places = FxHashMap::default();
        reads.into_iter().all(|(read, at, value)| {
            let place = self.place(read, at);
            let (memory, param, _) = place;
            let drawn_from = match self.part_of(read) {
                Some(permutation) => (None, Some(permutation)),
                None => (Some((memory, param)), None),
            };
            let alone =
                self.repeats(read) || *places.entry((drawn_from, value)).or_insert(place) == place;
            alone && *held.entry(place).or_insert(value) == value
        })
    }

    /// The numbers of the permutation of which a buffer has a part: the others may have other parts of it.
    fn part_of(&self, read: &RandomRead) -> Option<(i128, i128)> {
        let buffer = self.buffer(read.param)?;
        match buffer.contents {
            Contents::Distinct { lo, hi } if buffer.elements <= hi - lo => Some((lo, hi)),
            _ => None,
        }
    }

    /// Whether so many numbers are drawn that some are bound to be equal. Those of a permutation
    /// differ.
    fn repeats(&self, read: &RandomRead) -> bool {
        let Some(buffer) = self.buffer(read.param) else { return false };
        if matches!(buffer.contents, Contents::Distinct { .. }) {
            return false;
        }
        let range = self.terms.var_ranges()[read.var.0 as usize];
        repeats(buffer.elements, range.hi.saturating_sub(range.lo).saturating_add(1))
    }

    /// Gives random reads of two programs that an example leaves open values by their places, so
    /// that what is computed from them is not taken for the same. `used` are those that it does not
    /// leave open.
    pub(in crate::analysis) fn tell_apart(
        &self,
        used: &FxHashSet<Var>,
        (first, second): &mut (Vec<i128>, Vec<i128>),
    ) {
        let mut held = FxHashMap::default();
        for (read, at, value) in
            [&*first, &*second].into_iter().flat_map(|p| self.reads_at(used, p))
        {
            held.insert(self.place(read, at), value);
        }
        for point in [first, second] {
            for read in self.random.iter().filter(|read| !used.contains(&read.var)) {
                let whole = self.terms.padded(point);
                let Some(at) = Domain::at(&self.terms, &whole).value(&read.offset) else {
                    continue;
                };
                let any = self.any_number(read, at);
                if let Some(value) = point.get_mut(read.var.0 as usize) {
                    *value = *held.entry(self.place(read, at)).or_insert(any);
                }
            }
        }
    }

    /// A number that a read of the element `at` may give, which has nothing to do with those of
    /// other elements.
    fn any_number(&self, read: &RandomRead, at: i128) -> i128 {
        let range = self.terms.var_ranges()[read.var.0 as usize];
        range.lo + i128::from(scattered(at as u64)).rem_euclid(range.hi - range.lo + 1)
    }

    /// Gives the random reads of a point that are `wanted` numbers by their places.
    pub(in crate::analysis) fn place_random(
        &self,
        point: &mut [i128],
        wanted: impl Fn(&Var) -> bool,
    ) {
        for read in self.random.iter().filter(|read| wanted(&read.var)) {
            if let Some(at) = Domain::at(&self.terms, point).value(&read.offset) {
                point[read.var.0 as usize] = self.any_number(read, at);
            }
        }
    }

    /// Which memory a read is of, and which element of it.
    fn place(&self, read: &RandomRead, at: i128) -> (Option<u32>, usize, i128) {
        match self.buffer(read.param).and_then(|buffer| buffer.id) {
            Some(id) => (Some(id), 0, at),
            None => (None, read.param, at),
        }
    }

    /// The random reads that conditions and a position depend on, each with its place and what it
    /// gives at a point.
    pub(in crate::analysis) fn reads_of(
        &self,
        conds: &[Cond],
        offset: &Linear,
        point: &[i128],
    ) -> Vec<(&RandomRead, i128, i128)> {
        if self.random.is_empty() {
            return Vec::new();
        }
        let mut used = FxHashSet::default();
        let mut note = |_, kind: &AtomKind| {
            if let AtomKind::Var(var) = kind {
                used.insert(*var);
            }
        };
        conds.iter().for_each(|cond| self.terms.visit_cond(*cond, &mut note));
        self.terms.visit(offset, &mut note);
        self.reads_at(&used, point)
    }

    /// The random reads that give these variables.
    fn reads_at(&self, used: &FxHashSet<Var>, point: &[i128]) -> Vec<(&RandomRead, i128, i128)> {
        let point = self.terms.padded(point);
        let mut domain = Domain::at(&self.terms, &point);
        let reads = self.random.iter().filter(|read| used.contains(&read.var));
        let placed = reads.filter_map(|read| {
            Some((read, domain.value(&read.offset)?, *point.get(read.var.0 as usize)?))
        });
        placed.collect()
    }

    /// What of random memory an example says, in words.
    pub(in crate::analysis) fn random_example(
        &self,
        conds: &[Cond],
        offset: &Linear,
        point: &[i128],
    ) -> Option<String> {
        let reads = self.reads_of(conds, offset, point);
        let parts: Vec<String> = reads
            .into_iter()
            .map(|(read, at, value)| {
                format!("{value} at element {at} of `{}`", self.param_name(read.param))
            })
            .collect();
        (!parts.is_empty()).then(|| format!("random numbers may well be {}", parts.join(" and ")))
    }

    /// The conditions that two programs read the same where they read at one place, and different
    /// numbers elsewhere if few are drawn.
    pub(in crate::analysis) fn same_reads(
        &mut self,
        moved: &mut crate::analysis::terms::Substitution,
    ) -> Vec<(Var, Cond)> {
        let reads = self.random.clone();
        let mut same = Vec::new();
        for read in reads {
            let repeats = self.repeats(&read);
            let terms: &mut Terms = &mut self.terms;
            let (value, there) = (terms.var_term(read.var), moved.term(terms, &read.offset));
            let elsewhere = terms.equal(&read.offset, &there);
            let elsewhere = terms.not(elsewhere);
            let other = moved.term(terms, &value);
            let equal = terms.equal(&value, &other);
            let mut cond = terms.or(elsewhere, equal);
            if !repeats {
                let (here, differs) = (terms.not(elsewhere), terms.not(equal));
                let apart = terms.or(here, differs);
                cond = terms.and(cond, apart);
            }
            same.push((read.var, cond));
        }
        same
    }
}

/// The same ranges with those joined that touch each other.
fn merged(mut ranges: Vec<(i128, i128)>) -> Vec<(i128, i128)> {
    ranges.sort_unstable();
    ranges.dedup_by(|next, range| {
        let touches = next.0 <= range.1;
        if touches {
            range.1 = range.1.max(next.1);
        }
        touches
    });
    ranges
}

/// A number that shares no pattern with `at`: the generator SplitMix64.
fn scattered(at: u64) -> u64 {
    let mixed = at.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
