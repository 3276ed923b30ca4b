//! Random numbers: Philox, bit for bit.

use super::{Builtin, Rule};

const SEEDED: &str = "seed, offset, n_rounds: constexpr = 10";

pub(super) const ROWS: &[Builtin] = &[
    Builtin::tl(
        "philox_impl",
        "c0, c1, c2, c3, k0, k1, n_rounds: constexpr = 10",
        Rule::PhiloxImpl,
        "Runs rounds of Philox on the counter `(c0, c1, c2, c3)` with the key `(k0, k1)`.",
    ),
    Builtin::tl(
        "philox",
        "seed, c0, c1, c2, c3, n_rounds: constexpr = 10",
        Rule::Philox,
        "Four tiles of random unsigned integers for the counter `(c0, c1, c2, c3)`.",
    ),
    Builtin::tl(
        "randint",
        SEEDED,
        Rule::RandInt,
        "A random `uint32` for each element of `offset`. Equal seeds and offsets give equal numbers.",
    ),
    Builtin::tl(
        "randint4x",
        SEEDED,
        Rule::RandInt4x,
        "Four tiles of random `uint32`, at the cost of one.",
    ),
    Builtin::tl(
        "rand",
        SEEDED,
        Rule::Rand,
        "A random `fp32` in `[0, 1)` for each element of `offset`.",
    ),
    Builtin::tl(
        "rand4x",
        "seed, offsets, n_rounds: constexpr = 10",
        Rule::Rand4x,
        "Four tiles of random `fp32` in `[0, 1)`, at the cost of one.",
    ),
    Builtin::tl(
        "randn",
        SEEDED,
        Rule::Randn,
        "A random `fp32` of the standard normal distribution for each element of `offset`.",
    ),
    Builtin::tl(
        "randn4x",
        SEEDED,
        Rule::Randn4x,
        "Four tiles of random `fp32` of the standard normal distribution, at the cost of one.",
    ),
    Builtin::tl(
        "uint_to_uniform_float",
        "x",
        Rule::UniformFloat,
        "Turns random 32- or 64-bit integers into floats in `[0, 1)`.",
    ),
    Builtin::tl(
        "pair_uniform_to_normal",
        "u1, u2",
        Rule::PairNormal,
        "Turns two uniform tiles into two normal ones (Box-Muller).",
    ),
];
