//! Integers over symbols: what is known of shapes before the constexpr parameters have values.
//!
//! A [`Sym`] is an integer or a polynomial with integer coefficients over [`Atom`]s. An atom is a
//! constexpr parameter (`BLOCK_M`), an expression that polynomials cannot hold (`BLOCK_M // 2`,
//! identified by its text), or a value of which nothing is known (`?3`, each one distinct).

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

/// A symbol, identified by its text.
pub type Atom = Arc<str>;

/// Product of atoms, each with its exponent, sorted by atom. Empty for the constant term.
type Monomial = SmallVec<[(Atom, u32); 2]>;

/// An integer, or a polynomial over symbols.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Sym {
    /// A known integer.
    Int(i128),
    /// A polynomial that is not constant.
    Poly(Arc<Poly>),
}

/// A polynomial: monomials with non-zero coefficients, sorted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Poly {
    terms: Vec<(Monomial, i128)>,
}

/// Polynomials with more terms than this become a single atom.
const MAX_TERMS: usize = 16;

impl Sym {
    /// The symbol `name`.
    pub fn atom(name: impl Into<Atom>) -> Sym {
        let monomial = SmallVec::from_iter([(name.into(), 1)]);
        Sym::Poly(Arc::new(Poly { terms: vec![(monomial, 1)] }))
    }

    /// The integer, if it is known.
    pub fn int(&self) -> Option<i128> {
        match self {
            Sym::Int(value) => Some(*value),
            Sym::Poly(_) => None,
        }
    }

    /// The atom, if it is exactly one.
    pub(crate) fn as_atom(&self) -> Option<&Atom> {
        match self {
            Sym::Poly(poly) => match poly.terms.as_slice() {
                [(monomial, 1)] => match monomial.as_slice() {
                    [(atom, 1)] => Some(atom),
                    _ => None,
                },
                _ => None,
            },
            Sym::Int(_) => None,
        }
    }

    /// True when a value of which nothing is known takes part.
    pub(crate) fn is_opaque(&self) -> bool {
        match self {
            Sym::Int(_) => false,
            Sym::Poly(poly) => poly.atoms().any(|atom| atom.starts_with('?')),
        }
    }

    /// Every atom that takes part.
    pub(crate) fn atoms(&self) -> Vec<Atom> {
        match self {
            Sym::Int(_) => Vec::new(),
            Sym::Poly(poly) => poly.atoms().cloned().collect(),
        }
    }

    fn terms(&self) -> Vec<(Monomial, i128)> {
        match self {
            Sym::Int(0) => Vec::new(),
            Sym::Int(value) => vec![(Monomial::new(), *value)],
            Sym::Poly(poly) => poly.terms.clone(),
        }
    }

    fn from_terms(mut terms: Vec<(Monomial, i128)>) -> Option<Sym> {
        terms.sort_by(|a, b| a.0.cmp(&b.0));
        let mut merged: Vec<(Monomial, i128)> = Vec::with_capacity(terms.len());
        for (monomial, coefficient) in terms {
            match merged.last_mut() {
                Some((last, sum)) if *last == monomial => *sum = sum.checked_add(coefficient)?,
                _ => merged.push((monomial, coefficient)),
            }
        }
        merged.retain(|(_, coefficient)| *coefficient != 0);
        Some(match merged.as_slice() {
            [] => Sym::Int(0),
            [(monomial, value)] if monomial.is_empty() => Sym::Int(*value),
            _ if merged.len() > MAX_TERMS => return None,
            _ => Sym::Poly(Arc::new(Poly { terms: merged })),
        })
    }

    /// `self + other`.
    pub fn add(&self, other: &Sym) -> Sym {
        let mut terms = self.terms();
        terms.extend(other.terms());
        Sym::from_terms(terms).unwrap_or_else(|| self.opaque("+", other))
    }

    /// `self - other`.
    pub fn sub(&self, other: &Sym) -> Sym {
        self.add(&other.mul(&Sym::Int(-1)))
    }

    /// `self * other`.
    pub fn mul(&self, other: &Sym) -> Sym {
        let mut terms = Vec::new();
        for (left, a) in self.terms() {
            for (right, b) in other.terms() {
                let Some(product) = a.checked_mul(b) else { return self.opaque("*", other) };
                terms.push((multiply(&left, &right), product));
            }
        }
        Sym::from_terms(terms).unwrap_or_else(|| self.opaque("*", other))
    }

    /// An atom that stands for `self op other`: equal texts are equal values. What nobody would read
    /// is known by the digest of its text, since each atom holds the texts of those within.
    pub(crate) fn opaque(&self, op: &str, other: &Sym) -> Sym {
        const MAX_TEXT: usize = 1024;
        let text = format!("({} {op} {})", Nested(self), Nested(other));
        match text.len() {
            ..=MAX_TEXT => Sym::atom(text),
            _ => Sym::atom(format!("?{}", blake3::hash(text.as_bytes()).to_hex())),
        }
    }

    /// `self // other`, rounding down; exact where the division is certain to be exact.
    pub fn floor_div(&self, other: &Sym) -> Option<Sym> {
        match (self, other) {
            (_, Sym::Int(0)) => None,
            (Sym::Int(a), Sym::Int(b)) => Some(Sym::Int(floor_div(*a, *b))),
            _ if self == other => Some(Sym::Int(1)),
            (_, Sym::Int(b)) if self.terms().iter().all(|(_, c)| c % b == 0) => {
                let terms = self.terms().into_iter().map(|(m, c)| (m, c / b)).collect();
                Sym::from_terms(terms)
            }
            _ => Some(self.divide_monomial(other).unwrap_or_else(|| self.opaque("//", other))),
        }
    }

    /// Quotient by a single monomial that divides every term.
    fn divide_monomial(&self, other: &Sym) -> Option<Sym> {
        let divisor = other.terms();
        let [(monomial, coefficient)] = divisor.as_slice() else { return None };
        let mut terms = Vec::new();
        for (mut term, c) in self.terms() {
            if c % coefficient != 0 {
                return None;
            }
            for (atom, exponent) in monomial {
                let found = term.iter_mut().find(|(known, _)| known == atom)?;
                found.1 = found.1.checked_sub(*exponent)?;
            }
            term.retain(|(_, exponent)| *exponent > 0);
            terms.push((term, c / coefficient));
        }
        Sym::from_terms(terms)
    }

    /// True when the two differ whatever positive values the atoms have.
    pub(crate) fn certainly_differs(&self, other: &Sym) -> bool {
        match self.sub(other) {
            Sym::Int(difference) => difference != 0,
            difference @ Sym::Poly(_) => {
                let terms = difference.terms();
                terms.iter().all(|(_, c)| *c > 0) || terms.iter().all(|(_, c)| *c < 0)
            }
        }
    }

    /// True when it exceeds one whatever positive values the atoms have.
    pub(crate) fn certainly_exceeds_one(&self) -> bool {
        match self {
            Sym::Int(value) => *value > 1,
            Sym::Poly(poly) => {
                poly.terms.iter().all(|(_, c)| *c > 0)
                    && poly.terms.iter().map(|(_, c)| *c).sum::<i128>() > 1
            }
        }
    }
}

/// `a // b` rounding toward negative infinity, as Python does; `b` is not zero.
pub fn floor_div(a: i128, b: i128) -> i128 {
    let quotient = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && ((a < 0) != (b < 0)) { quotient - 1 } else { quotient }
}

fn multiply(left: &Monomial, right: &Monomial) -> Monomial {
    let mut product = left.clone();
    for (atom, exponent) in right {
        match product.iter_mut().find(|(known, _)| known == atom) {
            Some(found) => found.1 += exponent,
            None => product.push((atom.clone(), *exponent)),
        }
    }
    product.sort();
    product
}

impl Poly {
    fn atoms(&self) -> impl Iterator<Item = &Atom> {
        self.terms.iter().flat_map(|(monomial, _)| monomial.iter().map(|(atom, _)| atom))
    }
}

impl From<i128> for Sym {
    fn from(value: i128) -> Sym {
        Sym::Int(value)
    }
}

impl fmt::Display for Sym {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sym::Int(value) => write!(f, "{value}"),
            Sym::Poly(poly) => write!(f, "{poly}"),
        }
    }
}

impl fmt::Display for Poly {
    /// Products first, the constant last, as people write them: `2*BLOCK_M + 1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (constant, products): (Vec<_>, Vec<_>) =
            self.terms.iter().partition(|(monomial, _)| monomial.is_empty());
        for (at, (monomial, coefficient)) in products.into_iter().chain(constant).enumerate() {
            let sign = if *coefficient < 0 { "-" } else { "+" };
            match (at, sign) {
                (0, "+") => {}
                (0, _) => f.write_str("-")?,
                _ => write!(f, " {sign} ")?,
            }
            write_monomial(f, monomial, coefficient.unsigned_abs())?;
        }
        Ok(())
    }
}

fn write_monomial(f: &mut fmt::Formatter<'_>, monomial: &Monomial, factor: u128) -> fmt::Result {
    if monomial.is_empty() || factor != 1 {
        write!(f, "{factor}")?;
        if !monomial.is_empty() {
            f.write_str("*")?;
        }
    }
    for (at, (atom, exponent)) in monomial.iter().enumerate() {
        let shown = if atom.starts_with('?') { "?" } else { atom };
        let separator = if at == 0 { "" } else { "*" };
        write!(f, "{separator}{shown}")?;
        for _ in 1..*exponent {
            write!(f, "*{shown}")?;
        }
    }
    Ok(())
}

/// An operand inside the text of an atom. Unlike display, it keeps unknown values apart.
struct Nested<'a>(&'a Sym);

impl fmt::Display for Nested<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Sym::Int(value) => write!(f, "{value}"),
            Sym::Poly(_) => match self.0.as_atom() {
                Some(atom) => f.write_str(atom),
                None if self.0.is_opaque() => write!(f, "?[{}]", self.0.atoms().join(", ")),
                None => write!(f, "({})", self.0),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_normalize_and_print() {
        let (m, n) = (Sym::atom("M"), Sym::atom("N"));
        let sum = m.add(&n).mul(&m.sub(&n));
        assert_eq!(sum, m.mul(&m).sub(&n.mul(&n)));
        assert_eq!(sum.to_string(), "M*M - N*N");
        assert_eq!(m.add(&Sym::Int(1)).sub(&m), Sym::Int(1));
        assert_eq!(m.mul(&Sym::Int(2)).add(&Sym::Int(3)).to_string(), "2*M + 3");
    }

    #[test]
    fn division_is_exact_where_it_can_be() {
        let m = Sym::atom("M");
        assert_eq!(m.mul(&Sym::Int(4)).floor_div(&Sym::Int(2)), Some(m.mul(&Sym::Int(2))));
        assert_eq!(m.mul(&Sym::atom("N")).floor_div(&Sym::atom("N")), Some(m.clone()));
        let half = m.floor_div(&Sym::Int(2)).expect("not by zero");
        assert_eq!(half.to_string(), "(M // 2)");
        assert_eq!(half, m.floor_div(&Sym::Int(2)).expect("not by zero"));
        assert_eq!(floor_div(-7, 2), -4);
    }

    #[test]
    fn certain_differences() {
        let m = Sym::atom("M");
        assert!(m.certainly_differs(&m.mul(&Sym::Int(2))));
        assert!(!m.certainly_differs(&Sym::atom("N")));
        assert!(!m.certainly_differs(&Sym::Int(4)));
        assert!(m.mul(&Sym::Int(2)).certainly_exceeds_one());
        assert!(!m.certainly_exceeds_one());
    }
}
