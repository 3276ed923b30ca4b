//! The device library: one row per function, with the symbol for each combination of types.

use std::sync::LazyLock;

use super::{Builtin, LIBDEVICE, Rule};

/// A type in the table of the device library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the types'")]
pub enum LibdeviceType {
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

/// A function of the device library.
#[derive(Debug)]
pub struct LibdeviceFunction {
    /// Its name.
    pub name: &'static str,
    /// Number of arguments.
    pub arity: usize,
    /// Overloads: argument types, then the result type, `=`, and the symbol without its prefix,
    /// separated by blanks. Types are `i u l U f d` for int32, uint32, int64, uint64, fp32, fp64.
    overloads: &'static str,
}

impl LibdeviceFunction {
    /// Argument types, result type and symbol of each overload.
    pub(crate) fn overloads(
        &self,
    ) -> impl Iterator<Item = (Vec<LibdeviceType>, LibdeviceType, &'static str)> {
        self.overloads.split_whitespace().filter_map(|overload| {
            let (types, symbol) = overload.split_once('=')?;
            let mut types: Vec<LibdeviceType> = types.chars().filter_map(type_of).collect();
            let result = types.pop()?;
            Some((types, result, symbol))
        })
    }

    /// True for predicates, whose `int32` result becomes an `int1`.
    pub(crate) fn is_predicate(&self) -> bool {
        matches!(self.name, "isnan" | "isinf" | "finitef" | "isfinited")
    }
}

fn type_of(letter: char) -> Option<LibdeviceType> {
    Some(match letter {
        'i' => LibdeviceType::I32,
        'u' => LibdeviceType::U32,
        'l' => LibdeviceType::I64,
        'U' => LibdeviceType::U64,
        'f' => LibdeviceType::F32,
        'd' => LibdeviceType::F64,
        _ => return None,
    })
}

const fn row(name: &'static str, arity: usize, overloads: &'static str) -> LibdeviceFunction {
    LibdeviceFunction { name, arity, overloads }
}

/// Every function of the device library.
pub(crate) static LIBDEVICE_FUNCTIONS: &[LibdeviceFunction] = &[
    row("clz", 1, "ii=clz li=clzll"),
    row("popc", 1, "ii=popc li=popcll"),
    row("byte_perm", 3, "iiii=byte_perm"),
    row("mulhi", 2, "iii=mulhi uuu=umulhi lll=mul64hi UUU=umul64hi"),
    row("mul24", 2, "iii=mul24 uuu=umul24"),
    row("brev", 1, "ii=brev ll=brevll"),
    row("sad", 3, "iiui=sad uuuu=usad"),
    row("abs", 1, "ii=abs ll=llabs ff=fabsf dd=fabs"),
    row("floor", 1, "ff=floorf dd=floor"),
    row("rcp64h", 1, "dd=rcp64h"),
    row("rsqrt", 1, "ff=rsqrtf dd=rsqrt"),
    row("ceil", 1, "dd=ceil ff=ceilf"),
    row("trunc", 1, "dd=trunc ff=truncf"),
    row("exp2", 1, "ff=exp2f dd=exp2"),
    row("saturatef", 1, "ff=saturatef"),
    row("fma_rn", 3, "ffff=fmaf_rn dddd=fma_rn"),
    row("fma_rz", 3, "ffff=fmaf_rz dddd=fma_rz"),
    row("fma_rd", 3, "ffff=fmaf_rd dddd=fma_rd"),
    row("fma_ru", 3, "ffff=fmaf_ru dddd=fma_ru"),
    row("fast_dividef", 2, "fff=fast_fdividef"),
    row("div_rn", 2, "fff=fdiv_rn ddd=ddiv_rn"),
    row("div_rz", 2, "fff=fdiv_rz ddd=ddiv_rz"),
    row("div_rd", 2, "fff=fdiv_rd ddd=ddiv_rd"),
    row("div_ru", 2, "fff=fdiv_ru ddd=ddiv_ru"),
    row("rcp_rn", 1, "ff=frcp_rn dd=drcp_rn"),
    row("rcp_rz", 1, "ff=frcp_rz dd=drcp_rz"),
    row("rcp_rd", 1, "ff=frcp_rd dd=drcp_rd"),
    row("rcp_ru", 1, "ff=frcp_ru dd=drcp_ru"),
    row("sqrt_rn", 1, "ff=fsqrt_rn dd=dsqrt_rn"),
    row("sqrt_rz", 1, "ff=fsqrt_rz dd=dsqrt_rz"),
    row("sqrt_rd", 1, "ff=fsqrt_rd dd=dsqrt_rd"),
    row("sqrt_ru", 1, "ff=fsqrt_ru dd=dsqrt_ru"),
    row("sqrt", 1, "ff=sqrtf dd=sqrt"),
    row("add_rn", 2, "ddd=dadd_rn fff=fadd_rn"),
    row("add_rz", 2, "ddd=dadd_rz fff=fadd_rz"),
    row("add_rd", 2, "ddd=dadd_rd fff=fadd_rd"),
    row("add_ru", 2, "ddd=dadd_ru fff=fadd_ru"),
    row("mul_rn", 2, "ddd=dmul_rn fff=fmul_rn"),
    row("mul_rz", 2, "ddd=dmul_rz fff=fmul_rz"),
    row("mul_rd", 2, "ddd=dmul_rd fff=fmul_rd"),
    row("mul_ru", 2, "fff=fmul_ru ddd=dmul_ru"),
    row("double2float_rn", 1, "df=double2float_rn"),
    row("double2float_rz", 1, "df=double2float_rz"),
    row("double2float_rd", 1, "df=double2float_rd"),
    row("double2float_ru", 1, "df=double2float_ru"),
    row("double2int_rn", 1, "di=double2int_rn"),
    row("double2int_rz", 1, "di=double2int_rz"),
    row("double2int_rd", 1, "di=double2int_rd"),
    row("double2int_ru", 1, "di=double2int_ru"),
    row("double2uint_rn", 1, "di=double2uint_rn"),
    row("double2uint_rz", 1, "di=double2uint_rz"),
    row("double2uint_rd", 1, "di=double2uint_rd"),
    row("double2uint_ru", 1, "di=double2uint_ru"),
    row("int2double_rn", 1, "id=int2double_rn"),
    row("uint2double_rn", 1, "ud=uint2double_rn"),
    row("float2int_rn", 1, "fi=float2int_rn"),
    row("float2int_rz", 1, "fi=float2int_rz"),
    row("float2int_rd", 1, "fi=float2int_rd"),
    row("float2int_ru", 1, "fi=float2int_ru"),
    row("float2uint_rn", 1, "fi=float2uint_rn"),
    row("float2uint_rz", 1, "fi=float2uint_rz"),
    row("float2uint_rd", 1, "fi=float2uint_rd"),
    row("float2uint_ru", 1, "fi=float2uint_ru"),
    row("int2float_rn", 1, "if=int2float_rn"),
    row("int2float_rz", 1, "if=int2float_rz"),
    row("int2float_rd", 1, "if=int2float_rd"),
    row("int2float_ru", 1, "if=int2float_ru"),
    row("uint2float_rn", 1, "uf=uint2float_rn"),
    row("uint2float_rz", 1, "uf=uint2float_rz"),
    row("uint2float_rd", 1, "uf=uint2float_rd"),
    row("uint2float_ru", 1, "uf=uint2float_ru"),
    row("hiloint2double", 2, "iid=hiloint2double"),
    row("double2loint", 1, "di=double2loint"),
    row("double2hiint", 1, "di=double2hiint"),
    row("float2ll_rn", 1, "fl=float2ll_rn"),
    row("float2ll_rz", 1, "fl=float2ll_rz"),
    row("float2ll_rd", 1, "fl=float2ll_rd"),
    row("float2ll_ru", 1, "fl=float2ll_ru"),
    row("float2ull_rn", 1, "fl=float2ull_rn"),
    row("float2ull_rz", 1, "fl=float2ull_rz"),
    row("float2ull_rd", 1, "fl=float2ull_rd"),
    row("float2ull_ru", 1, "fl=float2ull_ru"),
    row("double2ll_rn", 1, "dl=double2ll_rn"),
    row("double2ll_rz", 1, "dl=double2ll_rz"),
    row("double2ll_rd", 1, "dl=double2ll_rd"),
    row("double2ll_ru", 1, "dl=double2ll_ru"),
    row("double2ull_rn", 1, "dl=double2ull_rn"),
    row("double2ull_rz", 1, "dl=double2ull_rz"),
    row("double2ull_rd", 1, "dl=double2ull_rd"),
    row("double2ull_ru", 1, "dl=double2ull_ru"),
    row("ll2float_rn", 1, "lf=ll2float_rn"),
    row("ll2float_rz", 1, "lf=ll2float_rz"),
    row("ll2float_rd", 1, "lf=ll2float_rd"),
    row("ll2float_ru", 1, "lf=ll2float_ru"),
    row("ull2float_rn", 1, "Uf=ull2float_rn"),
    row("ull2float_rz", 1, "Uf=ull2float_rz"),
    row("ull2float_rd", 1, "Uf=ull2float_rd"),
    row("ull2float_ru", 1, "Uf=ull2float_ru"),
    row("ll2double_rn", 1, "ld=ll2double_rn"),
    row("ll2double_rz", 1, "ld=ll2double_rz"),
    row("ll2double_rd", 1, "ld=ll2double_rd"),
    row("ll2double_ru", 1, "ld=ll2double_ru"),
    row("ull2double_rn", 1, "Ud=ull2double_rn"),
    row("ull2double_rz", 1, "Ud=ull2double_rz"),
    row("ull2double_rd", 1, "Ud=ull2double_rd"),
    row("ull2double_ru", 1, "Ud=ull2double_ru"),
    row("int_as_float", 1, "if=int_as_float"),
    row("float_as_int", 1, "fi=float_as_int"),
    row("uint_as_float", 1, "uf=uint_as_float"),
    row("float_as_uint", 1, "fi=float_as_uint"),
    row("longlong_as_double", 1, "ld=longlong_as_double"),
    row("double_as_longlong", 1, "dl=double_as_longlong"),
    row("fast_sinf", 1, "ff=fast_sinf"),
    row("fast_cosf", 1, "ff=fast_cosf"),
    row("fast_log2f", 1, "ff=fast_log2f"),
    row("fast_logf", 1, "ff=fast_logf"),
    row("fast_expf", 1, "ff=fast_expf"),
    row("fast_tanf", 1, "ff=fast_tanf"),
    row("fast_exp10f", 1, "ff=fast_exp10f"),
    row("fast_log10f", 1, "ff=fast_log10f"),
    row("fast_powf", 2, "fff=fast_powf"),
    row("hadd", 2, "iii=hadd uuu=uhadd"),
    row("rhadd", 2, "iii=rhadd uuu=urhadd"),
    row("sub_rn", 2, "fff=fsub_rn ddd=dsub_rn"),
    row("sub_rz", 2, "fff=fsub_rz ddd=dsub_rz"),
    row("sub_rd", 2, "fff=fsub_rd ddd=dsub_rd"),
    row("sub_ru", 2, "fff=fsub_ru ddd=dsub_ru"),
    row("rsqrt_rn", 1, "ff=frsqrt_rn"),
    row("ffs", 1, "ii=ffs li=ffsll"),
    row("rint", 1, "ff=rintf dd=rint"),
    row("llrint", 1, "fl=llrintf dl=llrint"),
    row("nearbyint", 1, "ff=nearbyintf dd=nearbyint"),
    row("isnan", 1, "fi=isnanf di=isnand"),
    row("signbit", 1, "fi=signbitf di=signbitd"),
    row("copysign", 2, "fff=copysignf ddd=copysign"),
    row("finitef", 1, "fi=finitef"),
    row("isinf", 1, "fi=isinff di=isinfd"),
    row("nextafter", 2, "fff=nextafterf ddd=nextafter"),
    row("sin", 1, "ff=sinf dd=sin"),
    row("cos", 1, "ff=cosf dd=cos"),
    row("sinpi", 1, "ff=sinpif dd=sinpi"),
    row("cospi", 1, "ff=cospif dd=cospi"),
    row("tan", 1, "ff=tanf dd=tan"),
    row("log2", 1, "ff=log2f dd=log2"),
    row("exp", 1, "ff=expf dd=exp"),
    row("exp10", 1, "ff=exp10f dd=exp10"),
    row("cosh", 1, "ff=coshf dd=cosh"),
    row("sinh", 1, "ff=sinhf dd=sinh"),
    row("tanh", 1, "ff=tanhf dd=tanh"),
    row("atan2", 2, "fff=atan2f ddd=atan2"),
    row("atan", 1, "ff=atanf dd=atan"),
    row("asin", 1, "ff=asinf dd=asin"),
    row("acos", 1, "ff=acosf dd=acos"),
    row("log", 1, "ff=logf dd=log"),
    row("log10", 1, "ff=log10f dd=log10"),
    row("log1p", 1, "ff=log1pf dd=log1p"),
    row("acosh", 1, "ff=acoshf dd=acosh"),
    row("asinh", 1, "ff=asinhf dd=asinh"),
    row("atanh", 1, "ff=atanhf dd=atanh"),
    row("expm1", 1, "ff=expm1f dd=expm1"),
    row("hypot", 2, "fff=hypotf ddd=hypot"),
    row("rhypot", 2, "fff=rhypotf ddd=rhypot"),
    row("norm3d", 3, "ffff=norm3df dddd=norm3d"),
    row("rnorm3d", 3, "ffff=rnorm3df dddd=rnorm3d"),
    row("norm4d", 4, "fffff=norm4df ddddd=norm4d"),
    row("rnorm4d", 4, "fffff=rnorm4df ddddd=rnorm4d"),
    row("cbrt", 1, "ff=cbrtf dd=cbrt"),
    row("rcbrt", 1, "ff=rcbrtf dd=rcbrt"),
    row("j0", 1, "ff=j0f dd=j0"),
    row("j1", 1, "ff=j1f dd=j1"),
    row("y0", 1, "ff=y0f dd=y0"),
    row("y1", 1, "ff=y1f dd=y1"),
    row("yn", 2, "iff=ynf idd=yn"),
    row("jn", 2, "iff=jnf idd=jn"),
    row("cyl_bessel_i0", 1, "ff=cyl_bessel_i0f dd=cyl_bessel_i0"),
    row("cyl_bessel_i1", 1, "ff=cyl_bessel_i1f dd=cyl_bessel_i1"),
    row("erf", 1, "ff=erff dd=erf"),
    row("erfinv", 1, "ff=erfinvf dd=erfinv"),
    row("erfc", 1, "ff=erfcf dd=erfc"),
    row("erfcx", 1, "ff=erfcxf dd=erfcx"),
    row("erfcinv", 1, "ff=erfcinvf dd=erfcinv"),
    row("normcdfinv", 1, "ff=normcdfinvf dd=normcdfinv"),
    row("normcdf", 1, "ff=normcdff dd=normcdf"),
    row("lgamma", 1, "ff=lgammaf dd=lgamma"),
    row("ldexp", 2, "fif=ldexpf did=ldexp"),
    row("scalbn", 2, "fif=scalbnf did=scalbn"),
    row("fmod", 2, "fff=fmodf ddd=fmod"),
    row("remainder", 2, "fff=remainderf ddd=remainder"),
    row("fma", 3, "ffff=fmaf dddd=fma"),
    row("pow", 2, "fif=powif did=powi fff=powf ddd=pow"),
    row("tgamma", 1, "ff=tgammaf dd=tgamma"),
    row("round", 1, "ff=roundf dd=round"),
    row("llround", 1, "fl=llroundf dl=llround"),
    row("fdim", 2, "fff=fdimf ddd=fdim"),
    row("ilogb", 1, "fi=ilogbf di=ilogb"),
    row("logb", 1, "ff=logbf dd=logb"),
    row("isfinited", 1, "di=isfinited"),
];

static ROWS: LazyLock<Vec<Builtin>> = LazyLock::new(|| {
    LIBDEVICE_FUNCTIONS
        .iter()
        .map(|function| {
            let signature = match function.arity {
                1 => "arg0",
                2 => "arg0, arg1",
                3 => "arg0, arg1, arg2",
                _ => "arg0, arg1, arg2, arg3",
            };
            let doc = "A function of the CUDA device library, elementwise. Arguments are promoted \
                       to one of the types it is defined for, usually `fp32` or `fp64`.";
            Builtin::new(LIBDEVICE, function.name, signature, Rule::Libdevice, doc)
        })
        .chain([Builtin::new(
            LIBDEVICE,
            "fast_tanhf",
            "arg0",
            Rule::Opaque,
            "Fast hyperbolic tangent of HIP devices; CUDA devices do not have it.",
        )])
        .collect()
});

/// The device library as builtins.
pub(super) fn rows() -> impl Iterator<Item = &'static Builtin> {
    ROWS.iter()
}
