//! Laws of the algebra on random layouts.

use std::collections::HashSet;

use proptest::collection::vec;
use proptest::prelude::*;
use smallvec::SmallVec;

use crate::layout::*;

/// A tensor shape of at most 2^10 elements.
pub(super) fn shapes() -> impl Strategy<Value = Vec<usize>> {
    vec(0u32..=5, 1..=3).prop_map(|bits| {
        let mut left = 10;
        let cap = |bits: u32| {
            let taken = bits.min(left);
            left -= taken;
            1 << taken
        };
        bits.into_iter().map(cap).collect()
    })
}

/// A blocked layout with 32 lanes and 4 warps for tensors of `rank` axes.
pub(super) fn blocked(rank: usize) -> impl Strategy<Value = BlockedLayout> {
    let order = Just((0..rank).collect::<Vec<_>>()).prop_shuffle();
    let deal = |bits: usize| vec(0..rank, bits);
    let per_thread = (0..=3usize).prop_flat_map(move |bits| vec(0..rank, bits));
    (order, per_thread, deal(5), deal(2)).prop_map(move |(order, per_thread, lanes, warps)| {
        let sizes = |dealt: Vec<usize>| {
            let mut sizes: SmallVec<[usize; 4]> = SmallVec::from_elem(1, rank);
            dealt.into_iter().for_each(|axis| sizes[axis] *= 2);
            sizes
        };
        BlockedLayout {
            size_per_thread: sizes(per_thread),
            threads_per_warp: sizes(lanes),
            warps_per_cta: sizes(warps),
            order: order.into(),
        }
    })
}

pub(super) fn shaped_blocked() -> impl Strategy<Value = (Vec<usize>, BlockedLayout)> {
    shapes().prop_flat_map(|shape| {
        let rank = shape.len();
        (Just(shape), blocked(rank))
    })
}

/// Any map from registers, lanes and warps to a tensor of two axes, injective or not.
fn arbitrary() -> impl Strategy<Value = LinearLayout> {
    (0u32..5, 0u32..5).prop_flat_map(|(rows, columns)| arbitrary_to(rows, columns))
}

fn arbitrary_to(rows: u32, columns: u32) -> impl Strategy<Value = LinearLayout> {
    (0u32..4, 0u32..6, 0u32..3).prop_flat_map(move |(registers, lanes, warps)| {
        let count = (registers + lanes + warps) as usize;
        vec(0..1u64 << (rows + columns), count).prop_map(move |bases| {
            LinearLayout::new(
                &[(Dim::Register, registers), (Dim::Lane, lanes), (Dim::Warp, warps)],
                &[(Dim::Axis(1), columns), (Dim::Axis(0), rows)],
                bases,
            )
            .unwrap()
        })
    })
}

/// A bijection of registers and lanes with a tensor of two axes: unit bases in random order, mixed
/// by random additions of one to another.
pub(super) fn bijections(
    registers: u32,
    lanes: u32,
    warps: u32,
    columns: u32,
) -> impl Strategy<Value = LinearLayout> {
    let total = registers + lanes + warps;
    let units = Just((0..total).map(|bit| 1u64 << bit).collect::<Vec<_>>()).prop_shuffle();
    let mixes = vec((0..total as usize, 0..total as usize), 0..8);
    (units, mixes).prop_map(move |(mut bases, mixes)| {
        for (from, to) in mixes {
            if from != to {
                bases[to] ^= bases[from];
            }
        }
        LinearLayout::new(
            &[(Dim::Register, registers), (Dim::Lane, lanes), (Dim::Warp, warps)],
            &[(Dim::Axis(1), columns), (Dim::Axis(0), total - columns)],
            bases,
        )
        .unwrap()
    })
}

pub(super) fn places(layout: &LinearLayout) -> impl Iterator<Item = HardwarePoint> + use<> {
    let [registers, lanes, warps] =
        [Dim::Register, Dim::Lane, Dim::Warp].map(|dim| 1 << layout.input_bits(dim));
    let total: usize = registers * lanes * warps;
    (0..total).map(move |index| HardwarePoint {
        register: (index % registers) as u32,
        lane: (index / registers % lanes) as u32,
        warp: (index / registers / lanes) as u32,
        cta: 0,
    })
}

/// Whether a place has none of the bits set by which others repeat its element.
fn is_owner(duplicates: PlaceMasks, place: HardwarePoint) -> bool {
    (duplicates.register & place.register)
        | (duplicates.lane & place.lane)
        | (duplicates.warp & place.warp)
        | (duplicates.cta & place.cta)
        == 0
}

fn is_identity(layout: &LinearLayout) -> bool {
    (0..1 << layout.packed_bases().len()).all(|index| layout.apply_packed(index) == index)
}

/// The definition of a blocked layout in divisions and remainders, for tensors no smaller than the
/// tile: where a place's element is.
fn blocked_by_division(layout: &BlockedLayout, shape: &[usize], place: HardwarePoint) -> Vec<u32> {
    let rank = shape.len();
    let mut indices = vec![0; rank];
    let mut register = place.register as usize;
    let mut lane = place.lane as usize;
    let mut warp = place.warp as usize;
    let mut deal = |sizes: &dyn Fn(usize) -> usize, number: &mut usize, scale: &mut [usize]| {
        for &axis in &layout.order {
            indices[axis] += *number % sizes(axis) * scale[axis];
            *number /= sizes(axis);
            scale[axis] *= sizes(axis);
        }
    };
    let mut scale = vec![1; rank];
    deal(&|axis| layout.size_per_thread[axis], &mut register, &mut scale);
    deal(&|axis| layout.threads_per_warp[axis], &mut lane, &mut scale);
    deal(&|axis| layout.warps_per_cta[axis], &mut warp, &mut scale);
    let tile = scale.clone();
    deal(&|axis| shape[axis] / tile[axis], &mut register, &mut scale);
    indices.into_iter().map(|index| index as u32).collect()
}

proptest! {
    #[test]
    fn an_inverse_undoes_its_layout(layout in bijections(3, 5, 2, 4)) {
        let inverse = layout.invert().unwrap();
        prop_assert!(is_identity(&layout.then(&inverse).unwrap()));
        prop_assert!(is_identity(&inverse.then(&layout).unwrap()));
        prop_assert_eq!(inverse.invert().unwrap(), layout);
    }

    #[test]
    fn products_are_associative(a in arbitrary(), b in arbitrary(), c in arbitrary()) {
        let left = a.product(&b).unwrap().product(&c).unwrap();
        let right = a.product(&b.product(&c).unwrap()).unwrap();
        prop_assert_eq!(left, right);
        prop_assert_eq!(&LinearLayout::empty().product(&a).unwrap(), &a);
    }

    #[test]
    fn division_undoes_a_product(a in arbitrary(), b in arbitrary()) {
        let product = a.product(&b).unwrap();
        prop_assert_eq!(product.divide_right(&b), Some(a));
    }

    #[test]
    fn composition_is_application_in_turn(a in arbitrary_to(2, 4), b in bijections(1, 3, 2, 3)) {
        // Composition goes by name, so `next` may list its inputs in any order.
        let inputs = [(Dim::Axis(0), 2), (Dim::Axis(1), 4)];
        let outputs: Vec<(Dim, u32)> = b.outputs().iter().map(|out| (out.dim, out.bits)).collect();
        let next = LinearLayout::new(&inputs, &outputs, b.packed_bases().to_vec()).unwrap();
        let both = a.then(&next).unwrap();
        for index in 0..1 << a.packed_bases().len() {
            let middle = a.apply_packed(index);
            let swapped = middle >> 4 | (middle & 0b1111) << 2;
            prop_assert_eq!(both.apply_packed(index), next.apply_packed(swapped));
        }
    }

    #[test]
    fn owners_reach_every_element_of_the_image_once(layout in arbitrary()) {
        let duplicates = layout.duplicates();
        let mut owned = vec![0; 1 << layout.total_output_bits()];
        let mut image = vec![false; owned.len()];
        for place in places(&layout) {
            let element = layout.element(place) as usize;
            image[element] = true;
            owned[element] += usize::from(is_owner(duplicates, place));
        }
        for (count, reached) in owned.into_iter().zip(image) {
            prop_assert_eq!(count, usize::from(reached));
        }
    }

    #[test]
    fn a_right_inverse_names_the_owner((shape, layout) in shaped_blocked()) {
        let layout = layout.to_linear(&shape).unwrap();
        let inverse = layout.pseudo_invert().unwrap();
        prop_assert!(is_identity(&inverse.then(&layout).unwrap()));
        prop_assert_eq!(inverse.output_bits(Dim::Lane), layout.input_bits(Dim::Lane));
    }

    #[test]
    fn blocked_layouts_are_what_division_says((shape, layout) in shaped_blocked()) {
        let shape: Vec<_> = (0..shape.len())
            .map(|axis| {
                let tile = layout.size_per_thread[axis]
                    * layout.threads_per_warp[axis]
                    * layout.warps_per_cta[axis];
                shape[axis].max(tile)
            })
            .collect();
        let linear = layout.to_linear(&shape).unwrap();
        prop_assert!(linear.is_injective() && linear.is_surjective());
        for place in places(&linear) {
            let expected = blocked_by_division(&layout, &shape, place);
            prop_assert_eq!(linear.coordinates(place).to_vec(), expected);
        }
    }

    #[test]
    fn coordinates_are_the_xor_of_the_parts((shape, layout) in shaped_blocked()) {
        let layout = layout.to_linear(&shape).unwrap();
        let part = |bases: &[u32], index: u32| {
            (0..bases.len()).filter(|bit| index >> bit & 1 != 0).fold(0, |x, bit| x ^ bases[bit])
        };
        for place in places(&layout) {
            let constant = layout.offset_for_register(place.register as usize);
            for axis in 0..shape.len() {
                let index = constant[axis]
                    ^ part(&layout.lane_bases(axis), place.lane)
                    ^ part(&layout.warp_bases(axis), place.warp);
                prop_assert_eq!(index, layout.coordinates(place)[axis]);
            }
            let named = [
                (Dim::Register, place.register as usize),
                (Dim::Lane, place.lane as usize),
                (Dim::Warp, place.warp as usize),
            ];
            for (dim, index) in layout.apply(&named) {
                let axis = dim.axis().unwrap();
                prop_assert_eq!(index as u32, layout.coordinates(place)[axis]);
            }
        }
    }

    #[test]
    fn transposed_and_reshaped_tensors_keep_their_elements_in_place(
        (shape, layout) in shaped_blocked(),
    ) {
        let layout = layout.to_linear(&shape).unwrap();
        let perm: Vec<_> = (0..shape.len()).rev().collect();
        let transposed = layout.transpose(&perm).unwrap();
        let flat = layout.reshape(&[shape.iter().product()]).unwrap();
        let expanded = layout.expand_dims(1).unwrap();
        prop_assert_eq!(&expanded.remove_axis(1).unwrap(), &layout);
        for place in places(&layout) {
            let from = layout.coordinates(place);
            let to = transposed.coordinates(place);
            prop_assert!(perm.iter().zip(&to).all(|(&axis, &index)| from[axis] == index));
            prop_assert_eq!(u64::from(flat.coordinates(place)[0]), layout.element(place));
        }
    }

    #[test]
    fn reduction_bits_combine_each_element_of_the_axis_once(
        (shape, layout) in shaped_blocked(),
        axis in 0usize..3,
    ) {
        let axis = axis % shape.len();
        let layout = layout.to_linear(&shape).unwrap();
        let bits = layout.reduction_bits(axis).unwrap();
        let inside = |mask: u32, index: u32| mask & index == index;
        for start in places(&layout).step_by(7) {
            let mut seen = vec![0; shape[axis]];
            for step in places(&layout) {
                let reached = inside(bits.register, step.register)
                    && inside(bits.lane, step.lane)
                    && inside(bits.warp, step.warp);
                if reached {
                    let partner = HardwarePoint {
                        register: start.register ^ step.register,
                        lane: start.lane ^ step.lane,
                        warp: start.warp ^ step.warp,
                        cta: 0,
                    };
                    let mut moved = layout.coordinates(partner);
                    seen[moved[axis] as usize] += 1;
                    moved[axis] = layout.coordinates(start)[axis];
                    prop_assert_eq!(moved, layout.coordinates(start));
                }
            }
            prop_assert!(seen.iter().all(|&count| count == 1), "{seen:?}");
        }
    }

    #[test]
    fn vectors_are_aligned_runs((shape, layout) in shaped_blocked(), axis in 0usize..3) {
        let axis = axis % shape.len();
        let layout = layout.to_linear(&shape).unwrap();
        let bits = layout.vector_bits(axis);
        let mask = bits.iter().fold(0, |mask, bit| mask | 1u32 << bit);
        for place in places(&layout).filter(|place| place.register & mask == 0) {
            let first = layout.coordinates(place);
            prop_assert!((first[axis] as usize).is_multiple_of(layout.contiguous_per_thread(axis)));
            for member in 0..1u32 << bits.len() {
                let spread = (0..bits.len()).map(|at| (member >> at & 1) << bits[at]).sum::<u32>();
                let register = place.register | spread;
                let mut expected = first.clone();
                expected[axis] += member;
                prop_assert_eq!(layout.coordinates(HardwarePoint { register, ..place }), expected);
            }
        }
    }

    #[test]
    fn bank_conflicts_are_counted_as_by_hand(
        offsets in bijections(4, 5, 1, 3),
        log_bytes in 0u32..4,
    ) {
        let offsets = offsets.reshape_outputs(&[(Dim::Axis(0), 10)]).unwrap();
        let bytes = 1usize << log_bytes;
        let mut vector = offsets.vector_bits(0);
        vector.truncate((16 / bytes).ilog2() as usize);
        let mask = vector.iter().fold(0, |mask, bit| mask | 1u32 << bit);
        let cost = SharedAccess::of(&offsets, bytes, 1 << vector.len());

        let words_per_thread = ((bytes << vector.len()) / 4).max(1);
        let lanes_per_pass = 32 / words_per_thread as u32;
        for warp in 0..2 {
            let mut wavefronts = 0;
            for pass in 0..32 / lanes_per_pass {
                let mut banks = vec![HashSet::new(); 32];
                for place in places(&offsets) {
                    if place.warp != warp
                        || place.lane / lanes_per_pass != pass
                        || place.register & !mask != 0
                    {
                        continue;
                    }
                    let start = offsets.element(place) as usize * bytes;
                    for byte in start..start + bytes {
                        banks[byte / 4 % 32].insert(byte / 4);
                    }
                }
                wavefronts += banks.iter().map(|words| words.len()).max().unwrap();
            }
            prop_assert_eq!(cost.wavefronts, wavefronts);
        }
    }
}
