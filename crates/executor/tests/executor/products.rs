//! Matrix products.

use super::*;

#[test]
fn matrices_multiply() {
    let dot = |ty: &str, acc: &str| {
        format!(
            "%x = reshape %a {{reorder=false}} : tile<4x4x{ty}>
             %y = reshape %b {{reorder=false}} : tile<4x4x{ty}>
             %z = constant {{bits=0x0}} : tile<4x4x{acc}>
             %d = dot %x, %y, %z {{precision=tf32, max_imprecise=0}} : tile<4x4x{acc}>
             %r = reshape %d {{reorder=false}} : tile<16x{acc}>"
        )
    };
    let a: Vec<i32> = (0..16).map(|i| i % 5 - 2).collect();
    let b: Vec<i32> = (0..16).map(|i| i % 7 - 3).collect();
    let expected: Vec<i32> =
        (0..16).map(|at| (0..4).map(|k| a[at / 4 * 4 + k] * b[k * 4 + at % 4]).sum()).collect();
    let floats = |values: &[i32]| values.iter().map(|&v| v as f32).collect::<Vec<f32>>();
    let (fa, fb) = (floats(&a), floats(&b));
    assert_eq!(
        apply::<f32, f32>(("f32", "f32"), &[&fa, &fb], &dot("f32", "f32")),
        floats(&expected)
    );
    let halves = |values: &[i32]| {
        values.iter().map(|&v| half::f16::from_f32(v as f32).to_bits()).collect::<Vec<u16>>()
    };
    let (ha, hb) = (halves(&a), halves(&b));
    assert_eq!(
        apply::<u16, f32>(("f16", "f32"), &[&ha, &hb], &dot("f16", "f32")),
        floats(&expected)
    );
    assert_eq!(
        apply::<u16, u16>(("f16", "f16"), &[&ha, &hb], &dot("f16", "f16")),
        halves(&expected)
    );
    let bytes = |values: &[i32]| values.iter().map(|&v| v as i8).collect::<Vec<i8>>();
    let (ba, bb) = (bytes(&a), bytes(&b));
    assert_eq!(apply::<i8, i32>(("i8", "i32"), &[&ba, &bb], &dot("i8", "i32")), expected);
}

/// An element of the product of two 16 by 16 matrices: every row of the left one starts with the
/// first two numbers, every column of the right one with the other two; zeros follow.
fn product(precision: &str, [first, second]: [f32; 2], [row, next]: [f32; 2]) -> f32 {
    let mut a = vec![0.0f32; 256];
    let mut b = vec![0.0f32; 256];
    for at in 0..16 {
        a[at * 16] = first;
        a[at * 16 + 1] = second;
        b[at] = row;
        b[16 + at] = next;
    }
    let c = vec![0.0f32; 256];
    let body = format!(
        "%x = reshape %a {{reorder=false}} : tile<16x16xf32>
         %y = reshape %b {{reorder=false}} : tile<16x16xf32>
         %z = reshape %c {{reorder=false}} : tile<16x16xf32>
         %d = dot %x, %y, %z {{precision={precision}, max_imprecise=0}} : tile<16x16xf32>
         %r = reshape %d {{reorder=false}} : tile<Nxf32>"
    );
    let results: Vec<f32> = apply(("f32", "f32"), &[&a, &b, &c], &body);
    assert!(results.iter().all(|result| result.to_bits() == results[0].to_bits()));
    results[0]
}

#[test]
fn single_precision_products_lose_what_their_precision_drops() {
    let ulp = |bits: i32| 2f32.powi(-bits);
    // TF32 keeps 10 bits of fraction and drops the rest without rounding.
    let long = 1.0 + ulp(10) + ulp(11) + ulp(23);
    assert_eq!(product("ieee", [long, 0.0], [1.0, 0.0]), long);
    assert_eq!(product("tf32", [long, 0.0], [1.0, 0.0]), 1.0 + ulp(10));
    assert_eq!(product("tf32", [-long, 0.0], [1.0, 0.0]), -1.0 - ulp(10));
    // The rest of it loses its own low digits.
    assert_eq!(product("tf32x3", [long, 0.0], [1.0, 0.0]), long - ulp(23));
    // Two parts of bf16 hold 16 digits, three all 24.
    let long = 1.0 + ulp(9) + ulp(23);
    assert_eq!(product("bf16x3", [long, 0.0], [1.0, 0.0]), long - ulp(23));
    assert_eq!(product("bf16x6", [long, 0.0], [1.0, 0.0]), long);
    // The second product fuses with the sum: its low digits are not rounded away before.
    let (a, b) = (1.0 + ulp(12), 1.0 - ulp(12));
    assert_eq!(product("ieee", [-1.0, a], [1.0, b]), -ulp(24));
    // Infinities stay infinite in products of parts, and NaN stays NaN.
    for precision in ["tf32", "tf32x3", "bf16x3", "bf16x6", "ieee"] {
        assert_eq!(product(precision, [f32::INFINITY, 0.0], [2.0, 0.0]), f32::INFINITY);
        let nan = f32::from_bits(0x7f80_0001);
        assert!(product(precision, [nan, 0.0], [2.0, 0.0]).is_nan(), "{precision}");
    }
}

#[test]
fn integer_products_wrap() {
    let ones = vec![-128i8; 256];
    let body = "%x = reshape %a {reorder=false} : tile<16x16xi8>
         %y = reshape %b {reorder=false} : tile<16x16xi8>
         %most = constant {bits=0x7fffffff} : tile<16x16xi32>
         %d = dot %x, %y, %most {precision=tf32, max_imprecise=0} : tile<16x16xi32>
         %r = reshape %d {reorder=false} : tile<Nxi32>";
    let results: Vec<i32> = apply(("i8", "i32"), &[&ones, &ones], body);
    assert!(results.iter().all(|&result| result == i32::MAX.wrapping_add(16 * 128 * 128)));
}

#[test]
fn large_matrices_multiply_as_small_ones() {
    // 32 x 16 by 16 x 32 takes the blocked way.
    let body = "
        %x = reshape %a {reorder=false} : tile<32x16xf32>
        %y = reshape %b {reorder=false} : tile<16x32xf32>
        %z = constant {bits=0x3f800000} : tile<32x32xf32>
        %d = dot %x, %y, %z {precision=ieee, max_imprecise=0} : tile<32x32xf32>
        %s = reduce %d {axis=1} : tile<32xf32> @1 { |%p: f32, %q: f32|
        %u = fadd %p, %q : f32
        yield %u
        }
        %e = expand_dims %s {axis=1} : tile<32x1xf32>
        %w = broadcast %e : tile<32x16xf32>
        %r = reshape %w {reorder=false} : tile<512xf32>";
    let a: Vec<f32> = (0..512).map(|i| (i % 3) as f32).collect();
    let b: Vec<f32> = (0..512).map(|i| (i % 4) as f32).collect();
    let found = apply::<f32, f32>(("f32", "f32"), &[&a, &b], body);
    for row in 0..32 {
        let sum: f32 =
            (0..16).map(|k| a[row * 16 + k] * b[k * 32..(k + 1) * 32].iter().sum::<f32>()).sum();
        assert_eq!(found[row * 16], sum + 32.0, "row {row}");
    }
}

#[test]
fn scaled_products_unpack_four_bit_floats() {
    // 1 x 32 values of e2m1, two to a byte, each 2.0 (0x4) and -0.5 (0x9); scale 2^1.
    let kernel = kernel(
        "pa: ptr<i8>, ps: ptr<i8>, pb: ptr<f8e5>, po: ptr<f32>",
        "%ia = arange {start=0, end=16} : tile<16xi32>
         %sa = splat %pa : tile<16xptr<i8>>
         %qa = ptr_add %sa, %ia : tile<16xptr<i8>>
         %va = load %qa LOAD : tile<16xi8>
         %a = reshape %va {reorder=false} : tile<1x16xi8>
         %vs = load %ps LOAD : i8
         %s = splat %vs : tile<1x1xi8>
         %ib = arange {start=0, end=32} : tile<32xi32>
         %sb = splat %pb : tile<32xptr<f8e5>>
         %qb = ptr_add %sb, %ib : tile<32xptr<f8e5>>
         %vb = load %qb LOAD : tile<32xf8e5>
         %b = reshape %vb {reorder=false} : tile<32x1xf8e5>
         %z = constant {bits=0x0} : tile<1x1xf32>
         %d = dot_scaled %a, lhs_scale=%s, %b, %z {lhs=e2m1, rhs=e5m2, lhs_k_pack=true, rhs_k_pack=true} : tile<1x1xf32>
         %u = unsplat %d : f32
         store %po, %u STORE",
    );
    let mut buffers = Buffers::new();
    let ids = [
        buffers.add("a", Scalar::I8, &[0x94; 16]),
        buffers.add("s", Scalar::I8, &[128]),
        buffers.add("b", Scalar::F8E5, &[0x3c; 32]),
        buffers.add("o", Scalar::F32, &[0; 4]),
    ];
    let args = ids.map(|id| Arg::Pointer(buffers.address(id)));
    let report = launch(&kernel, &mut buffers, &args, 1, &Options::default());
    assert_eq!(report.findings, []);
    assert_eq!(read::<f32>(&buffers, ids[3]), [16.0 * 2.0 * (2.0 - 0.5)]);
    assert_eq!(report.flops, 64);
}
