//! Properties of the algebra, checked against exhaustive enumeration, and tables of known layouts.

use expect_test::{Expect, expect};
use smallvec::smallvec;

use super::*;

fn check_table(layout: &LinearLayout, table: Expect) {
    table.assert_eq(&layout.to_string());
}

fn worked_example() -> LinearLayout {
    let layout = BlockedLayout {
        size_per_thread: smallvec![1, 2],
        threads_per_warp: smallvec![2, 4],
        warps_per_cta: smallvec![1, 1],
        order: smallvec![1, 0],
    };
    layout.to_linear(&[4, 8]).unwrap()
}

#[test]
fn the_worked_table_of_the_module_header_holds() {
    let layout = worked_example();
    check_table(
        &layout,
        expect![[r#"
        register    1 -> (0, 1)
        register    2 -> (2, 0)
        lane        1 -> (0, 2)
        lane        2 -> (0, 4)
        lane        4 -> (1, 0)
        warp     (one value)
        to axis0 of 4, axis1 of 8"#]],
    );
    let point = HardwarePoint { register: 3, lane: 6, ..HardwarePoint::default() };
    assert_eq!(layout.coordinates(point).as_slice(), [3, 5]);
}

#[test]
fn matmul_load_layout_gives_each_thread_sixteen_bytes_of_a_row() {
    let layout = BlockedLayout {
        size_per_thread: smallvec![1, 8],
        threads_per_warp: smallvec![4, 8],
        warps_per_cta: smallvec![8, 1],
        order: smallvec![1, 0],
    };
    check_table(
        &layout.to_linear(&[128, 64]).unwrap(),
        expect![[r#"
        register    1 -> (0, 1)
        register    2 -> (0, 2)
        register    4 -> (0, 4)
        register    8 -> (32, 0)
        register   16 -> (64, 0)
        lane        1 -> (0, 8)
        lane        2 -> (0, 16)
        lane        4 -> (0, 32)
        lane        8 -> (1, 0)
        lane       16 -> (2, 0)
        warp        1 -> (4, 0)
        warp        2 -> (8, 0)
        warp        4 -> (16, 0)
        to axis0 of 128, axis1 of 64"#]],
    );
}

#[test]
fn a_small_tensor_repeats_over_lanes_and_warps_but_not_registers() {
    let layout = BlockedLayout {
        size_per_thread: smallvec![8],
        threads_per_warp: smallvec![32],
        warps_per_cta: smallvec![4],
        order: smallvec![0],
    };
    let layout = layout.to_linear(&[4]).unwrap();
    assert_eq!(layout.elements_per_thread(), 4);
    assert_eq!(layout.free_bits(Dim::Register), 0);
    assert_eq!(layout.free_bits(Dim::Lane), 0b11111);
    assert_eq!(layout.free_bits(Dim::Warp), 0b11);
}
