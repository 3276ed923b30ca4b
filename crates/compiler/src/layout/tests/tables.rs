//! Tables of known layouts, and the formulas of the manuals.

use expect_test::{Expect, expect};
use smallvec::{SmallVec, smallvec};

use crate::layout::*;

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

fn at(register: u32, lane: u32, warp: u32) -> HardwarePoint {
    HardwarePoint { register, lane, warp, cta: 0 }
}

#[test]
fn the_default_layout_keeps_all_threads_busy_before_it_makes_vectors() {
    let table = |shape: &[usize], order: &[usize]| {
        let layout = BlockedLayout::default_for(shape, 4, 32, order, 4).unwrap();
        let list = |sizes: &[usize]| format!("{sizes:?}");
        [&layout.size_per_thread, &layout.threads_per_warp, &layout.warps_per_cta]
            .map(|sizes| list(sizes))
            .join(" ")
    };
    let tables = [
        table(&[1024], &[0]),
        table(&[128], &[0]),
        table(&[16], &[0]),
        table(&[64, 64], &[1, 0]),
        table(&[64, 64], &[0, 1]),
        table(&[1, 512], &[1, 0]),
        table(&[], &[]),
    ];
    expect![[r#"
        [4] [32] [4]
        [1] [32] [4]
        [1] [32] [4]
        [1, 4] [2, 16] [4, 1]
        [4, 1] [16, 2] [1, 4]
        [1, 4] [1, 32] [1, 4]
        [] [] []"#]]
    .assert_eq(&tables.join("\n"));
}

#[test]
fn mma_accumulators_follow_the_ptx_manual() {
    let layout = MmaLayout { version: MmaVersion::V2, warps_per_cta: smallvec![2, 2] };
    let layout = layout.to_linear(&[32, 16]).unwrap();
    for (register, lane, warp) in points(4, 32, 4) {
        let row = lane / 4 + if register < 2 { 0 } else { 8 } + warp / 2 * 16;
        let column = lane % 4 * 2 + register % 2 + warp % 2 * 8;
        assert_eq!(layout.coordinates(at(register, lane, warp)).as_slice(), [row, column]);
    }
}

#[test]
fn wgmma_accumulators_follow_the_ptx_manual() {
    let layout = MmaLayout::v3_for([128, 256], 8).unwrap();
    assert_eq!(layout.version, MmaVersion::V3 { columns: 256 });
    assert_eq!(layout.warps_per_cta.as_slice(), [8, 1]);
    let layout = layout.to_linear(&[128, 256]).unwrap();
    for (register, lane, warp) in points(128, 32, 8) {
        let row = warp * 16 + lane / 4 + 8 * (register / 2 % 2);
        let column = register / 4 * 8 + lane % 4 * 2 + register % 2;
        assert_eq!(layout.coordinates(at(register, lane, warp)).as_slice(), [row, column]);
    }
}

#[test]
fn half_precision_operands_follow_the_ptx_manual() {
    let parent = MmaLayout { version: MmaVersion::V2, warps_per_cta: smallvec![1, 1] };
    let operand = |operand, shape: &[usize]| {
        DotOperandLayout { operand, parent: parent.clone(), k_width: 2 }.to_linear(shape).unwrap()
    };
    let (left, right) = (operand(0, &[16, 16]), operand(1, &[16, 8]));
    for (register, lane, _) in points(8, 32, 1) {
        let row = lane / 4 + if matches!(register, 0 | 1 | 4 | 5) { 0 } else { 8 };
        let k = lane % 4 * 2 + register % 2 + if register < 4 { 0 } else { 8 };
        assert_eq!(left.coordinates(at(register, lane, 0)).as_slice(), [row, k]);
    }
    for (register, lane, _) in points(4, 32, 1) {
        let k = lane % 4 * 2 + register % 2 + if register < 2 { 0 } else { 8 };
        assert_eq!(right.coordinates(at(register, lane, 0)).as_slice(), [k, lane / 4]);
    }
}

#[test]
fn operands_repeat_over_the_warps_that_share_them() {
    let parent = MmaLayout::v2_for([64, 64], 4, false).unwrap();
    assert_eq!(parent.warps_per_cta.as_slice(), [2, 2]);
    let layout = DotOperandLayout { operand: 0, parent, k_width: 2 };
    let layout = layout.to_linear(&[64, 32]).unwrap();
    assert_eq!(layout.free_bits(Dim::Warp), 0b01);
    assert_eq!(layout.elements_per_thread(), 64 * 32 / (32 * 2));
}

#[test]
fn fragments_follow_from_the_accumulator() {
    for (shape, k, num_warps, k_width) in [
        (vec![128, 256], 64, 8, 2),
        (vec![16, 16], 16, 4, 2),
        (vec![64, 32], 32, 4, 1),
        (vec![32, 128], 64, 2, 4),
        (vec![4, 32, 64], 32, 4, 2),
    ] {
        let rank = shape.len();
        let matrix = MmaLayout::v2_for([shape[rank - 2], shape[rank - 1]], num_warps, false);
        let mut warps_per_cta: SmallVec<[usize; 4]> = SmallVec::from_elem(1, rank - 2);
        warps_per_cta.extend(matrix.unwrap().warps_per_cta);
        let parent = MmaLayout { version: MmaVersion::V2, warps_per_cta };
        let accumulator = parent.to_linear(&shape).unwrap();
        for operand in [0, 1] {
            let mut operand_shape = shape.clone();
            operand_shape[rank - 1 - operand] = k;
            let by_table = DotOperandLayout { operand, parent: parent.clone(), k_width };
            let by_table = by_table.to_linear(&operand_shape).unwrap();
            let derived = accumulator.mma_operand(operand, k_width, k).unwrap();
            let sorted = |layout: &LinearLayout| {
                let mut bases = layout.bases(Dim::Register).to_vec();
                bases.sort();
                bases
            };
            assert_eq!(sorted(&derived), sorted(&by_table));
            for input in [Dim::Lane, Dim::Warp] {
                assert_eq!(derived.bases(input), by_table.bases(input));
            }
            assert_eq!(derived.outputs(), by_table.outputs());
        }
    }
}

#[test]
fn without_matrix_units_a_thread_holds_whole_rows_and_columns() {
    let accumulator = BlockedLayout {
        size_per_thread: smallvec![2, 2],
        threads_per_warp: smallvec![4, 8],
        warps_per_cta: smallvec![2, 1],
        order: smallvec![1, 0],
    };
    let accumulator = accumulator.to_linear(&[16, 16]).unwrap();
    for operand in [0, 1] {
        let layout = accumulator.multiply_add_operand(operand, 32).unwrap();
        for (register, lane, warp) in points(2, 32, 2) {
            let point = HardwarePoint { register, lane, warp, cta: 0 };
            let needed = accumulator.coordinates(point)[operand];
            let held: std::collections::HashSet<Vec<u32>> = (0..64)
                .map(|register| layout.coordinates(HardwarePoint { register, ..point }).to_vec())
                .collect();
            let along = |k: u32| if operand == 0 { vec![needed, k] } else { vec![k, needed] };
            assert!((0..32).all(|k| held.contains(&along(k))));
        }
    }
}

#[test]
fn warps_split_rows_alone_for_a_chained_product() {
    let warps = |shape, keep_rows| MmaLayout::v2_for(shape, 8, keep_rows).unwrap().warps_per_cta;
    assert_eq!(warps([128, 64], true).as_slice(), [8, 1]);
    assert_eq!(warps([128, 64], false).as_slice(), [4, 2]);
    assert_eq!(warps([16, 256], true).as_slice(), [1, 8]);
}

#[test]
fn swizzled_storage_follows_its_formula() {
    for (vec, per_phase, max_phase) in [(1, 1, 1), (8, 1, 8), (4, 2, 4), (8, 4, 16)] {
        let layout = SwizzledSharedLayout { vec, per_phase, max_phase, order: smallvec![1, 0] };
        let layout = layout.to_linear(&[32, 64]).unwrap();
        assert!(layout.is_injective() && layout.is_surjective());
        for (row, column) in (0..32).flat_map(|row| (0..64).map(move |column| (row, column))) {
            let phase = row / per_phase % max_phase;
            let stored = (((column / vec) ^ phase) * vec + column % vec) % 64;
            let index = layout.unpack(layout.apply_packed((row * 64 + stored) as u64));
            assert_eq!(index.as_slice(), [row as u32, column as u32]);
        }
    }
}

#[test]
fn tensor_core_storage_xors_the_address_bits_that_the_hardware_does() {
    for (swizzle_bytes, xored_bits) in [(0, 0), (32, 1), (64, 2), (128, 3)] {
        let layout = NvmmaSharedLayout { swizzle_bytes, transposed: false, element_bits: 16 };
        let layout = layout.to_linear(&[64, 128]).unwrap();
        let width = swizzle_bytes.max(16) / 2;
        for offset in 0..64 * 128 {
            let (block, within) = (offset / (64 * width), offset % (64 * width));
            // Bits 7.. of the byte address are XORed into bits 4.. .
            let address = within * 2;
            let phase = (address >> 7) & ((1 << xored_bits) - 1);
            let logical = (address ^ (phase << 4)) / 2;
            let (row, column) = (logical / width, block * width + logical % width);
            let index = layout.unpack(layout.apply_packed(offset as u64));
            assert_eq!(index.as_slice(), [row as u32, column as u32], "{swizzle_bytes} {offset}");
        }
    }
}

#[test]
fn descriptor_strides_are_the_offsets_of_neighboring_blocks() {
    for swizzle_bytes in [0, 32, 64, 128] {
        let shared = NvmmaSharedLayout { swizzle_bytes, transposed: false, element_bits: 16 };
        let offsets = shared.to_linear(&[64, 128]).unwrap().invert().unwrap();
        let byte =
            |row: usize, column: usize| 2 * offsets.apply_packed((row * 128 + column) as u64);
        assert_eq!(byte(8, 0), shared.row_block_stride() as u64);
        let columns = swizzle_bytes.max(16) / 2;
        assert_eq!(byte(0, columns), shared.column_block_stride(64) as u64);
    }
}

#[test]
fn transposed_tensor_core_storage_is_the_storage_of_the_transpose() {
    let shared = |transposed, shape: &[usize]| {
        assert_eq!(NvmmaSharedLayout::widest_for(shape, transposed, 16).swizzle_bytes, 128);
        let layout = NvmmaSharedLayout { swizzle_bytes: 128, transposed, element_bits: 16 };
        layout.to_linear(shape).unwrap()
    };
    assert_eq!(shared(true, &[64, 32]), shared(false, &[32, 64]).transpose(&[1, 0]).unwrap());
}

#[test]
fn reading_columns_conflicts_in_plain_storage_and_not_in_swizzled_storage() {
    let columns = BlockedLayout::default_for(&[32, 32], 4, 32, &[0, 1], 1).unwrap();
    let columns = columns.to_linear(&[32, 32]).unwrap();
    let cost = |layout: SwizzledSharedLayout| {
        columns.shared_access(&layout.to_linear(&[32, 32]).unwrap(), 4).unwrap().1
    };
    assert_eq!(cost(SwizzledSharedLayout::plain(&[1, 0])).conflict_degree(), 32);
    let swizzled =
        SwizzledSharedLayout { vec: 1, per_phase: 1, max_phase: 32, order: smallvec![1, 0] };
    assert_eq!(cost(swizzled).conflict_degree(), 1);
}

#[test]
fn a_joined_tensor_splits_into_its_parts() {
    let layout = worked_example();
    let joined = layout.join_axis().unwrap();
    assert_eq!(joined.shape().as_slice(), [4, 8, 2]);
    assert_eq!(joined.offset_for_register(3).as_slice(), [0, 1, 1]);
    assert_eq!(joined.split_axis(), Some((0, layout)));
}

#[test]
fn pairs_across_lanes_change_places_with_the_farthest_registers() {
    let joined = worked_example().join_axis().unwrap();
    let lane = joined.bases(Dim::Lane)[0];
    let apart = joined.exchange_bases(0, joined.bases(Dim::Register).len());
    assert_eq!((apart.bases(Dim::Lane)[0], apart.bases(Dim::Register)[0]), (1, lane));
    assert_eq!(apart.split_axis(), None);
    let near = apart.with_pairs_in_registers().unwrap();
    let farthest = *apart.bases(Dim::Register).iter().max().unwrap();
    assert_eq!(near.bases(Dim::Lane)[0], farthest);
    assert!(near.split_axis().is_some());
    assert_eq!(joined.with_pairs_in_registers().unwrap().bases(Dim::Lane), joined.bases(Dim::Lane));
}

#[test]
fn a_row_reduction_combines_registers_then_lanes() {
    let layout = worked_example();
    let along_row = PlaceMasks { register: 0b01, lane: 0b011, ..PlaceMasks::default() };
    assert_eq!(layout.reduction_bits(1), Some(along_row));
    assert_eq!(layout.remove_axis(1).unwrap().duplicates(), along_row);
    assert_eq!(layout.reduction_bits(2), None);
}

#[test]
fn errors_say_what_to_change() {
    let layout = BlockedLayout {
        size_per_thread: smallvec![3],
        threads_per_warp: smallvec![32],
        warps_per_cta: smallvec![4],
        order: smallvec![0],
    };
    let wgmma = |warps: usize| MmaLayout {
        version: MmaVersion::V3 { columns: 64 },
        warps_per_cta: smallvec![warps, 1],
    };
    let linear = worked_example();
    let messages = [
        layout.to_linear(&[128]).unwrap_err(),
        layout.to_linear(&[128, 2]).unwrap_err(),
        wgmma(2).to_linear(&[64, 64]).unwrap_err(),
        linear.transpose(&[0, 0]).unwrap_err(),
        linear.reshape(&[4, 4]).unwrap_err(),
        linear.invert().and_then(|inverse| inverse.then(&inverse)).unwrap_err(),
        linear.remove_axis(1).unwrap().invert().unwrap_err(),
        LinearLayout::identity1d(1 << 40, Dim::Register, Dim::Axis(0)).unwrap_err(),
    ];
    expect![[r#"
        size_per_thread[0] is 3, but layouts need a power of two
        the permutation has 1 entries, but the tensor has 2 axes
        the number of warps along the rows is 2; wgmma needs a multiple of 4
        [0, 0] does not name each of its 2 axes once
        cannot reshape: 32 elements are needed, 16 are given
        the layout has no single dimension `axis1` to select
        the layout reaches an element twice, so it has no two-sided inverse
        an index of 40 bits is too large: at most 31 per dimension and 63 in total"#]]
    .assert_eq(&messages.map(|error| error.to_string()).join("\n"));
}

/// Executes every matrix load of `access` as the PTX manual defines it and compares each received
/// element with the offset at which the fragment has it.
fn check_matrix_loads(offsets: &LinearLayout, access: &MatrixAccess) {
    let packed = 1 << access.packed_bits.len();
    let xor_bases = |lane: u32| {
        let bases = access.row_bases.iter().enumerate();
        bases.filter(|(bit, _)| lane >> bit & 1 != 0).fold(0, |sum, (_, &basis)| sum ^ basis)
    };
    let mut moved = 0;
    for registers in access.instructions() {
        for warp in 0..1u32 << offsets.input_bits(Dim::Warp) {
            let first = offsets.element(at(registers[0], 0, warp));
            let row = |lane: u32| first ^ u64::from(xor_bases(lane));
            for (member, &register) in registers.iter().enumerate() {
                let (matrix, element) = (member as u32 / packed, member as u32 % packed);
                for lane in 0..32 {
                    let received = if access.transposed {
                        row(8 * matrix + lane % 4 * 2 + element) + u64::from(lane / 4)
                    } else {
                        row(8 * matrix + lane / 4) + u64::from(lane % 4 * packed + element)
                    };
                    assert_eq!(received, offsets.element(at(register, lane, warp)));
                    moved += 1;
                }
            }
        }
    }
    assert_eq!(moved, 1 << offsets.packed_bases().len());
}

#[test]
fn operands_are_loaded_as_matrices_whichever_axis_is_contiguous() {
    let parent = MmaLayout::v2_for([64, 64], 4, false).unwrap();
    let cases = [
        (0, 2, [64, 64], false, 16, Some(false)),
        (0, 2, [64, 64], true, 16, Some(true)),
        (1, 2, [64, 64], false, 16, Some(true)),
        (1, 2, [64, 64], true, 16, Some(false)),
        (0, 4, [64, 128], false, 8, Some(false)),
        (0, 4, [64, 128], true, 8, None),
        (0, 1, [64, 32], false, 32, Some(false)),
    ];
    for (operand, k_width, shape, shared_transposed, element_bits, expected) in cases {
        let layout = DotOperandLayout { operand, parent: parent.clone(), k_width };
        let storage = NvmmaSharedLayout::widest_for(&shape, shared_transposed, element_bits);
        let storage = storage.to_linear(&shape).unwrap();
        let offsets = layout.to_linear(&shape).unwrap().invert_and_compose(&storage).unwrap();
        let access = MatrixAccess::of(&offsets, element_bits / 8);
        assert_eq!(access.as_ref().map(|access| access.transposed), expected);
        if let Some(access) = access {
            assert_eq!((access.matrix_bits.len(), access.cost.conflict_degree()), (2, 1));
            check_matrix_loads(&offsets, &access);
        }
    }
}

#[test]
fn matrix_loads_from_plain_storage_conflict() {
    let parent = MmaLayout::v2_for([64, 64], 4, false).unwrap();
    let layout = DotOperandLayout { operand: 0, parent, k_width: 2 }.to_linear(&[64, 64]).unwrap();
    let storage = SwizzledSharedLayout::plain(&[1, 0]).to_linear(&[64, 64]).unwrap();
    let access = MatrixAccess::of(&layout.invert_and_compose(&storage).unwrap(), 2).unwrap();
    assert_eq!(access.cost, SharedAccess { wavefronts: 32, least_wavefronts: 4 });
}

#[test]
fn sorting_deals_the_last_axis_inward() {
    let inputs = [(Dim::Register, 2), (Dim::Lane, 2), (Dim::Warp, 1)];
    let dealt = |outputs: &[(Dim, u32)], bases: [u64; 5]| {
        let layout = LinearLayout::new(&inputs, outputs, bases).unwrap();
        layout.with_last_axis_inward().packed_bases().to_vec()
    };
    assert_eq!(dealt(&[(Dim::Axis(0), 5)], [8, 16, 1, 2, 4]), [1, 2, 4, 8, 16]);
    let plane = [(Dim::Axis(1), 3), (Dim::Axis(0), 1)];
    assert_eq!(dealt(&plane, [4, 8, 1, 0, 2]), [1, 8, 2, 0, 4], "rows stay, and so do repetitions");
    assert_eq!(dealt(&plane, [4, 8, 1, 3, 2]), [4, 8, 1, 3, 2], "a sum of bits cannot be dealt");
}

fn points(registers: u32, lanes: u32, warps: u32) -> impl Iterator<Item = (u32, u32, u32)> {
    (0..warps).flat_map(move |warp| {
        (0..lanes).flat_map(move |lane| (0..registers).map(move |register| (register, lane, warp)))
    })
}
