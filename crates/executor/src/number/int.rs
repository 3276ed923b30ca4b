//! Integer operations, wrapping, with signedness in the operation.

use bytemuck::{Pod, Zeroable};

/// One bit in a byte, 0 or 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pod, Zeroable)]
#[repr(transparent)]
pub struct Bit(pub u8);

impl From<bool> for Bit {
    fn from(value: bool) -> Bit {
        Bit(u8::from(value))
    }
}

/// An integer that tiles can hold.
///
/// Where the language leaves a result undefined, it is what the hardware gives: quotients by zero
/// have all bits set, remainders by zero are the dividend, and shifts by the width or more shift
/// everything out.
#[allow(missing_docs, reason = "the names are those of the operations")]
pub trait Int: Pod + Send + Sync + PartialEq {
    /// Width in bits.
    const BITS: u32;

    /// The value, zero-extended.
    fn unsigned(self) -> u64;
    /// The value, sign-extended.
    fn signed(self) -> i64;
    /// The low bits of `value`.
    fn wrap(value: u64) -> Self;

    fn add(self, rhs: Self) -> Self;
    fn sub(self, rhs: Self) -> Self;
    fn mul(self, rhs: Self) -> Self;
    fn div_s(self, rhs: Self) -> Self;
    fn div_u(self, rhs: Self) -> Self;
    fn rem_s(self, rhs: Self) -> Self;
    fn rem_u(self, rhs: Self) -> Self;
    fn mul_high_u(self, rhs: Self) -> Self;
    fn and(self, rhs: Self) -> Self;
    fn or(self, rhs: Self) -> Self;
    fn xor(self, rhs: Self) -> Self;
    fn shl(self, rhs: Self) -> Self;
    fn shr_s(self, rhs: Self) -> Self;
    fn shr_u(self, rhs: Self) -> Self;
    fn min_s(self, rhs: Self) -> Self;
    fn max_s(self, rhs: Self) -> Self;
    fn min_u(self, rhs: Self) -> Self;
    fn max_u(self, rhs: Self) -> Self;
    fn abs_s(self) -> Self;
    fn lt_s(self, rhs: Self) -> bool;
    fn lt_u(self, rhs: Self) -> bool;
}

macro_rules! native_int {
    ($($unsigned:ident $signed:ident $double:ident),* $(,)?) => { $(
        impl Int for $unsigned {
            const BITS: u32 = $unsigned::BITS;

            #[inline(always)]
            fn unsigned(self) -> u64 { self as u64 }
            #[inline(always)]
            fn signed(self) -> i64 { self as $signed as i64 }
            #[inline(always)]
            fn wrap(value: u64) -> Self { value as $unsigned }
            #[inline(always)]
            fn add(self, rhs: Self) -> Self { self.wrapping_add(rhs) }
            #[inline(always)]
            fn sub(self, rhs: Self) -> Self { self.wrapping_sub(rhs) }
            #[inline(always)]
            fn mul(self, rhs: Self) -> Self { self.wrapping_mul(rhs) }
            #[inline(always)]
            fn div_s(self, rhs: Self) -> Self {
                if rhs == 0 { return $unsigned::MAX; }
                (self as $signed).wrapping_div(rhs as $signed) as $unsigned
            }
            #[inline(always)]
            fn div_u(self, rhs: Self) -> Self {
                self.checked_div(rhs).unwrap_or($unsigned::MAX)
            }
            #[inline(always)]
            fn rem_s(self, rhs: Self) -> Self {
                if rhs == 0 { return self; }
                (self as $signed).wrapping_rem(rhs as $signed) as $unsigned
            }
            #[inline(always)]
            fn rem_u(self, rhs: Self) -> Self { self.checked_rem(rhs).unwrap_or(self) }
            #[inline(always)]
            fn mul_high_u(self, rhs: Self) -> Self {
                ((self as $double * rhs as $double) >> $unsigned::BITS) as $unsigned
            }
            #[inline(always)]
            fn and(self, rhs: Self) -> Self { self & rhs }
            #[inline(always)]
            fn or(self, rhs: Self) -> Self { self | rhs }
            #[inline(always)]
            fn xor(self, rhs: Self) -> Self { self ^ rhs }
            #[inline(always)]
            fn shl(self, rhs: Self) -> Self {
                let inside = (rhs as u64) < u64::from($unsigned::BITS);
                if inside { self.wrapping_shl(rhs as u32) } else { 0 }
            }
            #[inline(always)]
            fn shr_s(self, rhs: Self) -> Self {
                let amount = (rhs as u64).min(u64::from($unsigned::BITS - 1)) as u32;
                (self as $signed).wrapping_shr(amount) as $unsigned
            }
            #[inline(always)]
            fn shr_u(self, rhs: Self) -> Self {
                let inside = (rhs as u64) < u64::from($unsigned::BITS);
                if inside { self.wrapping_shr(rhs as u32) } else { 0 }
            }
            #[inline(always)]
            fn min_s(self, rhs: Self) -> Self { (self as $signed).min(rhs as $signed) as $unsigned }
            #[inline(always)]
            fn max_s(self, rhs: Self) -> Self { (self as $signed).max(rhs as $signed) as $unsigned }
            #[inline(always)]
            fn min_u(self, rhs: Self) -> Self { self.min(rhs) }
            #[inline(always)]
            fn max_u(self, rhs: Self) -> Self { self.max(rhs) }
            #[inline(always)]
            fn abs_s(self) -> Self { (self as $signed).wrapping_abs() as $unsigned }
            #[inline(always)]
            fn lt_s(self, rhs: Self) -> bool { (self as $signed) < (rhs as $signed) }
            #[inline(always)]
            fn lt_u(self, rhs: Self) -> bool { self < rhs }
        }
    )* };
}

native_int!(u8 i8 u16, u16 i16 u32, u32 i32 u64, u64 i64 u128);

macro_rules! bit_ops {
    ($($name:ident)*) => { $(
        #[inline(always)]
        fn $name(self, rhs: Self) -> Self {
            Bit::wrap(u64::from(self.0).$name(u64::from(rhs.0)))
        }
    )* };
}

macro_rules! signed_bit_ops {
    ($($name:ident)*) => { $(
        #[inline(always)]
        fn $name(self, rhs: Self) -> Self {
            Bit::wrap((self.signed() as u64).$name(rhs.signed() as u64))
        }
    )* };
}

impl Int for Bit {
    const BITS: u32 = 1;

    #[inline(always)]
    fn unsigned(self) -> u64 {
        u64::from(self.0)
    }
    #[inline(always)]
    fn signed(self) -> i64 {
        -i64::from(self.0)
    }
    #[inline(always)]
    fn wrap(value: u64) -> Bit {
        Bit(value as u8 & 1)
    }
    bit_ops!(add sub mul div_u rem_u and or xor min_u max_u);
    signed_bit_ops!(div_s rem_s min_s max_s);
    fn mul_high_u(self, _: Bit) -> Bit {
        Bit(0)
    }
    fn shl(self, rhs: Bit) -> Bit {
        Bit(self.0 & !rhs.0 & 1)
    }
    fn shr_s(self, _: Bit) -> Bit {
        self
    }
    fn shr_u(self, rhs: Bit) -> Bit {
        Bit(self.0 & !rhs.0 & 1)
    }
    fn abs_s(self) -> Bit {
        self
    }
    fn lt_s(self, rhs: Bit) -> bool {
        self.signed() < rhs.signed()
    }
    fn lt_u(self, rhs: Bit) -> bool {
        self.0 < rhs.0
    }
}
