//! Conversion plans, carried out on every hardware place as generated code would.

use expect_test::expect;
use proptest::prelude::*;
use smallvec::smallvec;

use super::properties::{bijections, blocked, places, shapes};
use crate::layout::convert::{plan_shared_conversion, plan_shuffle_conversion};
use crate::layout::*;

/// A tensor in registers: the element numbers by warp, lane and register.
struct Registers {
    values: Vec<u64>,
    registers: usize,
    lanes: usize,
}

impl Registers {
    fn holding(layout: &LinearLayout) -> Self {
        Self {
            values: places(layout).map(|place| layout.element(place)).collect(),
            registers: layout.elements_per_thread(),
            lanes: 1 << layout.input_bits(Dim::Lane),
        }
    }

    fn at(&self, register: u32, lane: u32, warp: u32) -> u64 {
        let thread = warp as usize * self.lanes + lane as usize;
        self.values[thread * self.registers + register as usize]
    }
}

/// Carries out `conversion` and returns the value at every destination place.
fn execute(conversion: &Conversion, from: &LinearLayout, to: &LinearLayout) -> Vec<u64> {
    let source = Registers::holding(from);
    match conversion {
        Conversion::Identity => source.values,
        Conversion::RegisterPermutation(registers) => places(to)
            .map(|place| source.at(registers[place.register as usize], place.lane, place.warp))
            .collect(),
        Conversion::WarpShuffle(plan) => places(to)
            .map(|place| {
                let step = plan.results[place.register as usize].at(place.lane, place.warp);
                let step = &plan.steps[step as usize];
                let lane = step.source_lane.at(place.lane, place.warp);
                assert!(plan.moves_lanes || lane == place.lane);
                source.at(step.source_register.at(lane, place.warp), lane, place.warp)
            })
            .collect(),
        Conversion::SharedMemory(plan) => through_memory(plan, from, to, 1),
    }
}

fn through_memory(
    plan: &SharedConversion,
    from: &LinearLayout,
    to: &LinearLayout,
    element_bytes: usize,
) -> Vec<u64> {
    let source = Registers::holding(from);
    let spell = |round: usize, bit: &dyn Fn(&RoundBits) -> u32| {
        let turns = plan.round_bits.iter().enumerate();
        turns.fold((0, 0), |(mask, value), (at, bits)| {
            (mask | 1u32 << bit(bits), value | ((round >> at & 1) as u32) << bit(bits))
        })
    };
    let mut received = vec![None; places(to).count()];
    for round in 0..plan.rounds() {
        let mut buffer = vec![None; plan.bytes / element_bytes];
        let (mask, turn) = spell(round, &|bits| bits.source);
        for place in places(from).filter(|place| place.register & mask == turn) {
            let value = source.at(place.register, place.lane, place.warp);
            let slot = &mut buffer[plan.store.offsets.element(place) as usize];
            assert!(slot.is_none_or(|earlier| earlier == value), "two elements in one slot");
            *slot = Some(value);
        }
        let (mask, turn) = spell(round, &|bits| bits.destination);
        for (at, place) in places(to).enumerate() {
            if place.register & mask == turn {
                received[at] = buffer[plan.load.offsets.element(place) as usize];
            }
        }
    }
    received.into_iter().map(|value| value.expect("every place is loaded")).collect()
}

fn check_vectors(access: &VectorAccess) {
    let mut seen = vec![false; access.offsets.elements_per_thread()];
    for registers in access.instructions() {
        for place in places(&access.offsets).filter(|place| place.register == registers[0]) {
            let first = access.offsets.element(place);
            assert!(first.is_multiple_of(registers.len() as u64), "unaligned vector");
            for (at, &register) in registers.iter().enumerate() {
                let element = access.offsets.element(HardwarePoint { register, ..place });
                assert_eq!(element, first + at as u64);
            }
        }
        registers.iter().for_each(|&register| seen[register as usize] = true);
    }
    assert!(seen.into_iter().all(|seen| seen), "a register is never moved");
}

fn check(from: &LinearLayout, to: &LinearLayout, element_bits: usize) -> Conversion {
    let conversion = plan_conversion(from, to, element_bits).unwrap();
    let expected = Registers::holding(to).values;
    let moved = match &conversion {
        Conversion::SharedMemory(plan) => through_memory(plan, from, to, element_bits.div_ceil(8)),
        other => execute(other, from, to),
    };
    assert_eq!(moved, expected, "{conversion:?}");
    conversion
}

fn check_shared(from: &LinearLayout, to: &LinearLayout, element_bits: usize, max_bytes: usize) {
    let plan = plan_shared_conversion(from, to, element_bits, max_bytes).unwrap();
    let bytes = element_bits / 8;
    assert_eq!(through_memory(&plan, from, to, bytes), Registers::holding(to).values);
    let mut passes = [0, 0];
    for access in [&plan.store, &plan.load] {
        check_vectors(access);
        assert!(bytes < 4 || access.cost.conflict_degree() == 1, "{plan:?}");
        passes[0] += access.cost.wavefronts * access.instructions().len();
        passes[1] += access.offsets.elements_per_thread() * bytes.div_ceil(4);
    }
    assert!(passes[0] <= passes[1], "one pass per register and bank width always suffices");
    assert_eq!((plan.bytes * plan.rounds()) / bytes, 1 << from.total_output_bits());
}

fn two_blocked() -> impl Strategy<Value = (LinearLayout, LinearLayout)> {
    shapes().prop_flat_map(|shape| {
        let rank = shape.len();
        (blocked(rank), blocked(rank)).prop_map(move |(from, to)| {
            (from.to_linear(&shape).unwrap(), to.to_linear(&shape).unwrap())
        })
    })
}

/// Two layouts with the same warps, so that a conversion stays within them, with repetition when
/// `crop` is not zero.
fn within_warps() -> impl Strategy<Value = (LinearLayout, LinearLayout)> {
    let pair = (bijections(3, 5, 0, 4), bijections(3, 5, 0, 4), 0u32..3);
    pair.prop_map(|(from, to, crop)| {
        let warps = LinearLayout::identity1d(4, Dim::Warp, Dim::Axis(0)).unwrap();
        let finish = |layout: LinearLayout| {
            let cropped = layout.crop_outputs(&[(Dim::Axis(1), 4 - crop), (Dim::Axis(0), 4)]);
            cropped.unwrap().product(&warps).unwrap()
        };
        (finish(from), finish(to))
    })
}

proptest! {
    #[test]
    fn conversions_between_blocked_layouts_deliver((from, to) in two_blocked(), log in 0u32..4) {
        check(&from, &to, 8 << log);
    }

    #[test]
    fn conversions_within_warps_deliver((from, to) in within_warps()) {
        check(&from, &to, 32);
        if let Some(plan) = plan_shuffle_conversion(&from, &to).unwrap() {
            let moved = execute(&Conversion::WarpShuffle(plan), &from, &to);
            prop_assert_eq!(moved, Registers::holding(&to).values);
        }
    }

    #[test]
    fn every_bijection_within_warps_is_one_shuffle_per_register(
        from in bijections(3, 5, 0, 4),
        to in bijections(3, 5, 0, 4),
    ) {
        let plan = plan_shuffle_conversion(&from, &to).unwrap().unwrap();
        prop_assert_eq!(plan.steps.len(), 8);
        let moved = execute(&Conversion::WarpShuffle(plan), &from, &to);
        prop_assert_eq!(moved, Registers::holding(&to).values);
    }

    #[test]
    fn conversions_between_arbitrary_bijections_deliver(
        from in bijections(3, 5, 1, 4),
        to in bijections(3, 5, 1, 4),
    ) {
        check(&from, &to, 16);
    }

    #[test]
    fn shared_memory_conversions_have_no_conflicts(
        (from, to) in two_blocked(),
        log in 0u32..4,
        limit in 4u32..12,
    ) {
        check_shared(&from, &to, 8 << log, 1 << limit);
    }

    #[test]
    fn shared_memory_conversions_of_swizzled_layouts_have_no_conflicts(
        from in bijections(4, 5, 2, 5),
        to in bijections(4, 5, 2, 5),
        log in 0u32..4,
    ) {
        check_shared(&from, &to, 8 << log, usize::MAX);
    }
}

fn row_major() -> LinearLayout {
    BlockedLayout::default_for(&[64, 64], 4, 32, &[1, 0], 4).unwrap().to_linear(&[64, 64]).unwrap()
}

#[test]
fn a_conversion_to_the_same_layout_is_nothing() {
    assert_eq!(check(&row_major(), &row_major(), 32), Conversion::Identity);
}

#[test]
fn registers_in_another_order_are_renamed() {
    let layout = |order| BlockedLayout {
        size_per_thread: smallvec![2, 2],
        threads_per_warp: smallvec![8, 4],
        warps_per_cta: smallvec![1, 1],
        order,
    };
    // Lanes along one axis only, so that `order` matters for registers alone.
    let one = |order| BlockedLayout { threads_per_warp: smallvec![1, 32], ..layout(order) };
    let from = one(smallvec![0, 1]).to_linear(&[2, 64]).unwrap();
    let to = one(smallvec![1, 0]).to_linear(&[2, 64]).unwrap();
    assert_eq!(check(&from, &to, 32), Conversion::RegisterPermutation(vec![0, 2, 1, 3]));
}

#[test]
fn neighbors_change_lanes_with_two_selects_and_a_shuffle() {
    let layout = |per_thread| BlockedLayout {
        size_per_thread: smallvec![per_thread],
        threads_per_warp: smallvec![32],
        warps_per_cta: smallvec![1],
        order: smallvec![0],
    };
    let (from, to) = (layout(1).to_linear(&[64]).unwrap(), layout(2).to_linear(&[64]).unwrap());
    let Conversion::WarpShuffle(plan) = check(&from, &to, 32) else { panic!("no shuffle") };
    assert_eq!(plan.steps.len(), 2);
    assert!(plan.steps.iter().all(|step| step.source_register.choices().len() <= 1));
}

#[test]
fn repetition_over_lanes_is_read_from_the_own_thread() {
    let layout = row_major().remove_axis(0).unwrap();
    let whole = layout.without_free_registers();
    assert!(matches!(check(&layout, &whole, 32), Conversion::RegisterPermutation(_)));
}

#[test]
fn a_transposition_goes_through_swizzled_memory() {
    let columns = BlockedLayout::default_for(&[64, 64], 4, 32, &[0, 1], 4).unwrap();
    let columns = columns.to_linear(&[64, 64]).unwrap();
    let Conversion::SharedMemory(plan) = check(&row_major(), &columns, 32) else {
        panic!("not through memory")
    };
    expect![[r#"
        offset      1 -> (0, 4)
        offset      2 -> (0, 8)
        offset      4 -> (0, 16)
        offset      8 -> (0, 32)
        offset     16 -> (1, 0)
        offset     32 -> (0, 2)
        offset     64 -> (2, 0)
        offset    128 -> (4, 4)
        offset    256 -> (8, 8)
        offset    512 -> (16, 16)
        offset   1024 -> (32, 32)
        offset   2048 -> (1, 1)
        to axis0 of 64, axis1 of 64
        16384 bytes, 1 elements per store, 1 per load"#]]
    .assert_eq(&format!(
        "{}\n{} bytes, {} elements per store, {} per load",
        plan.layout,
        plan.bytes,
        1 << plan.store.vector_bits.len(),
        1 << plan.load.vector_bits.len(),
    ));
}

#[test]
fn an_accumulator_reaches_the_layout_of_its_store_in_vectors() {
    let accumulator = MmaLayout::v3_for([128, 128], 8).unwrap().to_linear(&[128, 128]).unwrap();
    let rows = BlockedLayout::default_for(&[128, 128], 8, 32, &[1, 0], 8).unwrap();
    let rows = rows.to_linear(&[128, 128]).unwrap();
    let Conversion::SharedMemory(plan) = check(&accumulator, &rows, 16) else {
        panic!("not through memory")
    };
    // The store is stmatrix's pattern, which leaves whole vectors for the load.
    assert_eq!((plan.store.vector_bits.len(), plan.load.vector_bits.len()), (1, 3));
    let matrices = MatrixAccess::of(&plan.store.offsets, 2).unwrap();
    assert!(!matrices.transposed && matrices.cost.conflict_degree() == 1);
    assert_eq!((plan.rounds(), plan.bytes), (1, 32 << 10));
}

#[test]
fn registers_take_turns_in_a_buffer_that_is_too_small() {
    let accumulator = MmaLayout::v3_for([256, 128], 8).unwrap().to_linear(&[256, 128]).unwrap();
    let rows = BlockedLayout::default_for(&[256, 128], 8, 32, &[1, 0], 8).unwrap();
    let rows = rows.to_linear(&[256, 128]).unwrap();
    let halved = plan_shared_conversion(&accumulator, &rows, 16, 48 << 10).unwrap();
    assert_eq!((halved.rounds(), halved.bytes), (2, 32 << 10));
    check_shared(&accumulator, &rows, 16, 48 << 10);
}

#[test]
fn a_conversion_of_missing_elements_is_refused() {
    let all = row_major();
    let some = all.retain_input_bits(Dim::Warp, 0);
    let error = plan_conversion(&some, &all, 32).unwrap_err();
    assert_eq!(error, LayoutError::NotCovered);
    let error = plan_conversion(&all, &all.reshape(&[4096]).unwrap(), 32).unwrap_err();
    let shapes = LayoutError::ShapeMismatch { expected: vec![64, 64], actual: vec![4096] };
    assert_eq!(error, shapes);
}

#[test]
fn choices_tell_the_number_of_every_thread() {
    let index = ThreadIndex {
        constant: 9,
        lane_bases: smallvec![1, 6, 7, 0, 4],
        warp_bases: smallvec![8, 6],
    };
    let (choices, numbers) = (index.choices(), index.numbers());
    assert_eq!(numbers.len(), 1 << choices.len());
    for (lane, warp) in (0..32).flat_map(|lane| (0..4).map(move |warp| (lane, warp))) {
        let number = index.at(lane, warp);
        let set = |choice: &Choice| u32::from((number ^ index.constant) & choice.bit != 0);
        let place = choices.iter().rev().fold(0, |place, choice| place << 1 | set(choice));
        assert_eq!(numbers[place as usize], number, "lane {lane}, warp {warp}");
    }
}
