//! Random well-typed tile IR.

use tile_compiler::ir::{
    self, Atomic, AtomicOp, Attrs, Axis, Bins, Builder, CacheModifier, Dot, DotPrecision,
    DotScaled, Elem, Eviction, Facts, FloatCompare, FloatPredicate, Function, IntCompare,
    IntPredicate, Level, LoadHints, Longs, Loop, MemoryOrder, MemoryScope, NanRule, Opcode, Order,
    Pack, Param, Range, Reshape, Round, Rounding, Scalar, ScaledFormat, Scan, Sort, StoreHints,
    Type, Value,
};

/// Elements of each input buffer, and of each place that a value is stored to.
pub const PLACE: usize = 256;
/// Places that each program may store values of one type to.
pub const PLACES: usize = 8;
/// The most elements of a tile.
const MOST: usize = PLACE;

const SHAPES: &[&[u32]] =
    &[&[], &[1], &[8], &[32], &[4, 8], &[8, 4], &[1, 8], &[8, 1], &[2, 4, 4], &[16, 16]];

const INT_BINARY: &[Opcode] = &[
    Opcode::Add,
    Opcode::Sub,
    Opcode::Mul,
    Opcode::DivS,
    Opcode::DivU,
    Opcode::RemS,
    Opcode::RemU,
    Opcode::MulHighU,
    Opcode::And,
    Opcode::Or,
    Opcode::Xor,
    Opcode::Shl,
    Opcode::ShrS,
    Opcode::ShrU,
    Opcode::MinS,
    Opcode::MaxS,
    Opcode::MinU,
    Opcode::MaxU,
];

const FLOAT_BINARY: &[Opcode] = &[
    Opcode::FAdd,
    Opcode::FSub,
    Opcode::FMul,
    Opcode::FDiv,
    Opcode::FDivRn,
    Opcode::FRem,
    Opcode::FMin,
    Opcode::FMax,
];

const FLOAT_UNARY: &[Opcode] = &[
    Opcode::FNeg,
    Opcode::FAbs,
    Opcode::Exp,
    Opcode::Exp2,
    Opcode::Log,
    Opcode::Log2,
    Opcode::Sin,
    Opcode::Cos,
    Opcode::Sqrt,
    Opcode::SqrtRn,
    Opcode::Rsqrt,
    Opcode::Erf,
    Opcode::Floor,
    Opcode::Ceil,
];

/// Random numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// Bits of a number, often special ones.
    pub fn bits(&mut self, scalar: Scalar) -> u64 {
        let mask = u64::MAX >> (64 - scalar.bits());
        let high = 1u64 << (scalar.bits() - 1);
        let bits = match self.below(8) {
            0 => 0,
            1 => 1,
            2 => u64::MAX,
            3 => high,
            4 => high - 1,
            5 => self.next(),
            _ if scalar.is_float() => {
                let value = (self.below(4000) as f64 - 2000.0) / 256.0;
                tile_executor::number::encode(scalar, value)
            }
            _ => self.below(100) as u64,
        };
        bits & mask
    }
}

struct Generator<'f> {
    builder: Builder<'f>,
    random: Random,
    /// Values that may be used here, the oldest first.
    visible: Vec<Value>,
    /// Input and output pointers, by the order of [`Scalar::ALL`].
    pointers: Vec<[Value; 2]>,
    /// Places stored to so far.
    stored: usize,
    depth: usize,
    /// True in regions that are applied to elements.
    elementwise: bool,
}

/// A kernel of about `steps` operations. Its parameters are, for each of [`Scalar::ALL`], an input
/// and an output; a program stores to its own `PLACES * PLACE` elements of the outputs.
pub fn generate(seed: u64, steps: usize) -> Function {
    let mut func = Function::new("random", Level::Tile, Default::default());
    let pointer = |func: &mut Function, name: String, scalar: Scalar| {
        let param = Param { name: name.into(), signature: "".into(), divisibility: 16 };
        func.add_param(param, Type::Scalar(Elem::Ptr(scalar)))
    };
    let pointers = Scalar::ALL
        .iter()
        .map(|&scalar| {
            [format!("in_{scalar}"), format!("out_{scalar}")]
                .map(|name| pointer(&mut func, name, scalar))
        })
        .collect();
    let body = func.body;
    let builder = Builder::new(&mut func, body);
    let mut generator = Generator {
        builder,
        random: Random(seed),
        visible: Vec::new(),
        pointers,
        stored: 0,
        depth: 0,
        elementwise: false,
    };
    generator.steps(steps);
    for _ in 0..6 {
        generator.store();
    }
    generator.builder.emit_effect(Opcode::Return, [], Attrs::None);
    func
}

fn hints() -> LoadHints {
    LoadHints { cache: CacheModifier::Default, evict: Eviction::Normal, volatile: false }
}

fn facts() -> Facts {
    let none = Longs::default();
    Facts { divisibility: none.clone(), contiguity: none.clone(), constancy: none }
}

impl Generator<'_> {
    fn ty(&self, value: Value) -> Type {
        self.builder.func.ty(value).clone()
    }

    fn keep(&mut self, value: Value) {
        self.visible.push(value);
    }

    fn scalar_type(&mut self) -> Scalar {
        self.random.pick(&Scalar::ALL)
    }

    fn shape(&mut self) -> &'static [u32] {
        if self.elementwise { &[] } else { self.random.pick(SHAPES) }
    }

    fn random_type(&mut self) -> Type {
        let scalar = self.scalar_type();
        Type::of(scalar, self.shape())
    }

    /// A visible value for which `suits` holds.
    fn known(&mut self, suits: impl Fn(&Type) -> bool) -> Option<Value> {
        let func = &*self.builder.func;
        let suiting: Vec<Value> =
            self.visible.iter().copied().filter(|&value| suits(func.ty(value))).collect();
        // The newest are the likeliest, so that chains grow.
        let back = self.random.below(suiting.len()).min(self.random.below(suiting.len()));
        suiting.len().checked_sub(1 + back).map(|at| suiting[at])
    }

    /// A value of a number type.
    fn value(&mut self, ty: &Type) -> Value {
        if !self.random.once_in(6)
            && let Some(value) = self.known(|known| known == ty)
        {
            return value;
        }
        let scalar = ty.number().expect("a number type");
        match self.random.below(3) {
            0 if ty.is_tile() => {
                let element = self.value(&Type::scalar(scalar));
                self.builder.emit_typed(Opcode::Splat, &[element], Attrs::None, ty.clone())
            }
            1 if !self.elementwise => self.load(ty),
            _ => {
                let bits = self.random.bits(scalar);
                self.builder.constant(ty.clone(), bits)
            }
        }
    }

    fn of(&mut self, scalar: Scalar, shape: &[u32]) -> Value {
        self.value(&Type::of(scalar, shape))
    }

    fn pointer(&self, scalar: Scalar, output: bool) -> Value {
        let at = Scalar::ALL.iter().position(|&known| known == scalar).expect("all are listed");
        self.pointers[at][usize::from(output)]
    }

    /// Pointers to `pointer + start + index`.
    fn pointers(&mut self, pointer: Value, start: Value, index: Option<Value>) -> Value {
        let base = self.builder.emit(Opcode::PtrAdd, &[pointer, start], Attrs::None);
        let Some(index) = index else { return base };
        let elem = self.ty(pointer).elem().expect("a pointer");
        let ty = self.ty(index).with_elem(elem);
        let tile = self.builder.emit_typed(Opcode::Splat, &[base], Attrs::None, ty);
        self.builder.emit(Opcode::PtrAdd, &[tile, index], Attrs::None)
    }

    /// A tile of the integers `0..PLACE`: in order, or any.
    fn index(&mut self, shape: &[u32], ordered: bool) -> Option<Value> {
        if shape.is_empty() {
            return None;
        }
        let ty = Type::of(Scalar::I32, shape);
        if !ordered && self.random.once_in(4) {
            let (any, mask) = (self.value(&ty), self.builder.constant(ty, PLACE as u64 - 1));
            return Some(self.builder.emit(Opcode::And, &[any, mask], Attrs::None));
        }
        let numel = ty.numel() as u32;
        let flat = Type::of(Scalar::I32, &[numel]);
        let range = Range { start: 0, end: i64::from(numel) };
        let flat = self.builder.emit_typed(Opcode::Arange, &[], range, flat);
        let reshape = Reshape { reorder: false };
        Some(self.builder.emit_typed(Opcode::Reshape, &[flat], reshape, ty))
    }

    fn mask(&mut self, shape: &[u32]) -> Option<Value> {
        self.random.once_in(2).then(|| self.of(Scalar::I1, shape))
    }

    fn load(&mut self, ty: &Type) -> Value {
        let scalar = ty.number().expect("a number type");
        let output = self.stored > 0 && self.random.once_in(4);
        let pointer = self.pointer(scalar, output);
        let start = if output { self.place() } else { self.builder.int(Scalar::I32, 0) };
        let index = self.index(ty.shape(), false);
        let ptr = self.pointers(pointer, start, index);
        let mask = self.mask(ty.shape());
        let other = (mask.is_some() && self.random.once_in(2)).then(|| self.value(ty));
        let operands = [Some(ptr), mask, other];
        let inst = self.builder.emit_inst(Opcode::Load, operands, hints(), [ty.clone()], []);
        self.builder.func.insts[inst].result()
    }

    /// Where some place of this program starts.
    fn place(&mut self) -> Value {
        let index = Type::scalar(Scalar::I32);
        let program = self.builder.emit_typed(Opcode::ProgramId, &[], Axis { axis: 0 }, index);
        let size = self.builder.int(Scalar::I32, (PLACES * PLACE) as i128);
        let first = self.builder.emit(Opcode::Mul, &[program, size], Attrs::None);
        let place = self.random.below(PLACES) * PLACE;
        let place = self.builder.int(Scalar::I32, place as i128);
        self.builder.emit(Opcode::Add, &[first, place], Attrs::None)
    }

    fn store(&mut self) {
        let value = self.known(|ty| ty.numel() <= MOST);
        let value = match value {
            Some(value) => value,
            None => self.of(Scalar::I32, &[8]),
        };
        let ty = self.ty(value);
        let scalar = ty.number().expect("only numbers are visible");
        let (pointer, start) = (self.pointer(scalar, true), self.place());
        let index = self.index(ty.shape(), true);
        let ptr = self.pointers(pointer, start, index);
        let mask = self.mask(ty.shape());
        let hints = StoreHints { cache: CacheModifier::Default, evict: Eviction::Normal };
        self.builder.emit_effect(Opcode::Store, [Some(ptr), Some(value), mask], hints);
        self.stored += 1;
    }

    fn atomic(&mut self) {
        let scalar = self.random.pick(&[Scalar::I32, Scalar::I64, Scalar::F32, Scalar::F16]);
        let shape = self.shape();
        let op = match scalar.is_float() {
            true => self.random.pick(&[AtomicOp::FAdd, AtomicOp::Exchange]),
            false => self.random.pick(&[AtomicOp::Add, AtomicOp::SMax, AtomicOp::Xor]),
        };
        let value = self.of(scalar, shape);
        let (pointer, start) = (self.pointer(scalar, true), self.place());
        let index = self.index(shape, false);
        let ptr = self.pointers(pointer, start, index);
        let mask = self.mask(shape);
        let attrs = Atomic { op, order: MemoryOrder::Relaxed, scope: MemoryScope::Gpu };
        let (operands, ty) = ([Some(ptr), Some(value), mask], Type::of(scalar, shape));
        let inst = self.builder.emit_inst(Opcode::AtomicRmw, operands, attrs, [ty], []);
        let old = self.builder.func.insts[inst].result();
        self.keep(old);
    }

    fn steps(&mut self, count: usize) {
        for _ in 0..count {
            self.step();
        }
    }

    fn step(&mut self) {
        let nested = self.depth < 3;
        match self.random.below(if self.elementwise { 14 } else { 30 }) {
            0..=3 => self.int_binary(),
            4..=6 => self.float_operation(),
            7 => self.compare(),
            8 => self.select(),
            9..=11 => self.cast(),
            12 if nested => self.counted_loop(),
            13 if nested => self.branch(),
            14 if nested => self.while_loop(),
            15..=18 => self.rearrange(),
            19 => self.reduce(),
            20 => self.scan(),
            21 => self.map_elements(),
            22 => self.order(),
            23 if self.random.once_in(3) => self.dot_scaled(),
            23 => self.dot(),
            24 => self.atomic(),
            25 | 26 => self.store(),
            _ if !self.elementwise => {
                let ty = self.random_type();
                let loaded = self.load(&ty);
                self.keep(loaded);
            }
            _ => self.int_binary(),
        }
    }

    fn int_binary(&mut self) {
        let ints = [Scalar::I1, Scalar::I8, Scalar::I16, Scalar::I32, Scalar::I64];
        let ty = Type::of(self.random.pick(&ints), self.shape());
        let (opcode, lhs, rhs) = (self.random.pick(INT_BINARY), self.value(&ty), self.value(&ty));
        let result = match self.random.below(12) {
            0 => self.builder.emit(Opcode::AbsS, &[lhs], Attrs::None),
            1 => self.builder.emit(Opcode::AssertFacts, &[lhs], facts()),
            _ => self.builder.emit(opcode, &[lhs, rhs], Attrs::None),
        };
        self.keep(result);
    }

    fn float_type(&mut self) -> Type {
        let floats: Vec<Scalar> = Scalar::ALL.into_iter().filter(|s| s.is_float()).collect();
        Type::of(self.random.pick(&floats), self.shape())
    }

    fn float_operation(&mut self) {
        let ty = self.float_type();
        let [a, b, c] = [(); 3].map(|()| self.value(&ty));
        let result = match self.random.below(4) {
            0 => {
                let opcode = self.random.pick(FLOAT_UNARY);
                self.builder.emit(opcode, &[a], Attrs::None)
            }
            1 if self.random.once_in(2) => self.builder.emit(Opcode::Fma, &[a, b, c], Attrs::None),
            _ => {
                let opcode = self.random.pick(FLOAT_BINARY);
                let attrs: Attrs = match opcode {
                    Opcode::FMin | Opcode::FMax => {
                        NanRule { propagate: self.random.once_in(2) }.into()
                    }
                    _ => Attrs::None,
                };
                self.builder.emit(opcode, &[a, b], attrs)
            }
        };
        self.keep(result);
    }

    fn compare(&mut self) {
        let ty = self.random_type();
        let (lhs, rhs) = (self.value(&ty), self.value(&ty));
        let result = if ty.number().is_some_and(Scalar::is_float) {
            let predicate = self.random.pick(FloatPredicate::ALL);
            self.builder.emit(Opcode::FCmp, &[lhs, rhs], FloatCompare { predicate })
        } else {
            let predicate = self.random.pick(IntPredicate::ALL);
            self.builder.emit(Opcode::Cmp, &[lhs, rhs], IntCompare { predicate })
        };
        self.keep(result);
    }

    fn select(&mut self) {
        let ty = self.random_type();
        let whole = self.random.once_in(3);
        let condition = self.of(Scalar::I1, if whole { &[] } else { ty.shape() });
        let (on_true, on_false) = (self.value(&ty), self.value(&ty));
        let result =
            self.builder.emit(Opcode::Select, &[condition, on_true, on_false], Attrs::None);
        self.keep(result);
    }

    fn cast(&mut self) {
        let (ty, to) = (self.random_type(), self.scalar_type());
        let from = ty.number().expect("a number type");
        let value = self.value(&ty);
        let signed = self.random.once_in(2);
        let mode = self.random.pick(&[Rounding::Nearest, Rounding::TowardZero]);
        let wider = to.bits() > from.bits();
        let (opcode, attrs): (Opcode, Attrs) = match (from.is_int(), to.is_int()) {
            _ if from.bits() == to.bits() && self.random.once_in(2) => {
                (Opcode::Bitcast, Attrs::None)
            }
            (true, true) if from == to => return,
            (true, true) if wider && signed => (Opcode::ExtS, Attrs::None),
            (true, true) if wider => (Opcode::ExtU, Attrs::None),
            (true, true) => (Opcode::Trunc, Attrs::None),
            (true, false) if signed => (Opcode::SToF, Attrs::None),
            (true, false) => (Opcode::UToF, Attrs::None),
            (false, true) if signed => (Opcode::FToS, Attrs::None),
            (false, true) => (Opcode::FToU, Attrs::None),
            (false, false) if from == to => return,
            (false, false) if wider => (Opcode::FExt, Attrs::None),
            (false, false) => (Opcode::FTrunc, Round { mode }.into()),
        };
        let result = self.builder.emit_typed(opcode, &[value], attrs, ty.with_elem(to));
        self.keep(result);
    }

    fn rearrange(&mut self) {
        let ty = self.random_type();
        let value = self.known(Type::is_tile).unwrap_or_else(|| self.value(&ty));
        let ty = self.ty(value);
        let (shape, numel) = (ty.shape().to_vec(), ty.numel());
        let plain = Attrs::None;
        let (opcode, operands, attrs, to): (_, Vec<Value>, Attrs, Vec<u32>) =
            match self.random.below(8) {
                0 => {
                    let fits = |to: &&[u32]| to.iter().product::<u32>() as usize == numel;
                    let shapes: Vec<&[u32]> = SHAPES.iter().copied().filter(fits).collect();
                    let Some(to) = (!shapes.is_empty()).then(|| self.random.pick(&shapes)) else {
                        return;
                    };
                    let reshape = Reshape { reorder: false };
                    (Opcode::Reshape, vec![value], reshape.into(), to.to_vec())
                }
                1 if !shape.is_empty() => {
                    let mut order: Vec<u32> = (0..shape.len() as u32).collect();
                    order.rotate_left(self.random.below(shape.len()));
                    let to = order.iter().map(|&axis| shape[axis as usize]).collect();
                    let order = Order { order: order.into_iter().collect() };
                    (Opcode::Permute, vec![value], order.into(), to)
                }
                2 => {
                    let axis = self.random.below(shape.len() + 1);
                    let mut to = shape;
                    to.insert(axis, 1);
                    (Opcode::ExpandDims, vec![value], Axis { axis: axis as u32 }.into(), to)
                }
                3 if shape.contains(&1) => {
                    let grow = |&extent: &u32| if extent == 1 { 4 } else { extent };
                    let to: Vec<u32> = shape.iter().map(grow).collect();
                    (Opcode::Broadcast, vec![value], plain, to)
                }
                4 => {
                    let other = self.value(&ty);
                    let mut to = shape;
                    to.push(2);
                    (Opcode::Join, vec![value, other], plain, to)
                }
                5 if !shape.is_empty() => {
                    let other = self.value(&ty);
                    let mut to = shape;
                    to[0] *= 2;
                    (Opcode::Cat, vec![value, other], plain, to)
                }
                6 if !shape.is_empty() => {
                    let axis = self.random.below(shape.len()) as u32;
                    let index = self.of(Scalar::I32, &shape);
                    (Opcode::Gather, vec![value, index], Axis { axis }.into(), shape)
                }
                _ if shape.last() == Some(&2) => return self.split(value),
                _ if numel == 1 && !shape.is_empty() => {
                    (Opcode::Unsplat, vec![value], plain, Vec::new())
                }
                _ => return,
            };
        if to.iter().product::<u32>() as usize <= MOST && to.len() <= 6 {
            let result = Type::of(ty.elem().expect("numbers"), &to);
            // A scalar has no shape to insert an axis into: it is spread instead.
            let opcode =
                if ty.is_tile() || opcode != Opcode::ExpandDims { opcode } else { Opcode::Splat };
            let attrs = if opcode == Opcode::Splat { Attrs::None } else { attrs };
            let result = self.builder.emit_typed(opcode, &operands, attrs, result);
            self.keep(result);
        }
    }

    fn split(&mut self, value: Value) {
        let ty = self.ty(value);
        let front = &ty.shape()[..ty.shape().len() - 1];
        let half = Type::of(ty.elem().expect("numbers"), front);
        let types = [half.clone(), half];
        let inst = self.builder.emit_inst(Opcode::Split, [Some(value)], Attrs::None, types, []);
        let results = self.builder.func.insts[inst].results.clone();
        results.into_iter().for_each(|result| self.keep(result));
    }

    fn order(&mut self) {
        let ty = self.random_type();
        let Some(value) = self.known(Type::is_tile) else {
            let value = self.value(&ty);
            return self.keep(value);
        };
        let ty = self.ty(value);
        let result = if ty.shape().len() == 1 && ty.elem().is_some_and(Elem::is_int) {
            let mask = self.mask(ty.shape());
            let bins = Type::of(Scalar::I32, &[8]);
            let operands = [Some(value), mask];
            let attrs = Bins { bins: 8 };
            let inst = self.builder.emit_inst(Opcode::Histogram, operands, attrs, [bins], []);
            self.builder.func.insts[inst].result()
        } else {
            let mut shape = ty.shape().to_vec();
            let last = shape.len() - 1;
            shape[last] >>= self.random.below(3).min(shape[last].ilog2() as usize);
            let keep = shape[last];
            let runs = 1 << self.random.below(keep.ilog2() as usize + 1);
            let attrs = Sort { runs, descending: self.random.once_in(2), keep };
            let kept = Type::of(ty.elem().expect("numbers"), &shape);
            self.builder.emit_typed(Opcode::Sort, &[value], attrs, kept)
        };
        self.keep(result);
    }

    fn dot(&mut self) {
        let operands = [
            (Scalar::F16, Scalar::F32),
            (Scalar::F16, Scalar::F16),
            (Scalar::BF16, Scalar::F32),
            (Scalar::F8E5, Scalar::F32),
            (Scalar::F8E4NV, Scalar::F32),
            (Scalar::F32, Scalar::F32),
            (Scalar::F32, Scalar::F32),
            (Scalar::F64, Scalar::F64),
            (Scalar::I8, Scalar::I32),
        ];
        let (from, to) = self.random.pick(&operands);
        let shape = self.random.pick::<&[u32]>(&[&[16, 16], &[4, 4]]);
        let [lhs, rhs] = [(); 2].map(|()| self.of(from, shape));
        let acc = self.of(to, shape);
        let precision = self.random.pick(DotPrecision::ALL);
        let attrs = Dot { precision, max_imprecise: 0 };
        let ty = Type::of(to, shape);
        let result = self.builder.emit_typed(Opcode::Dot, &[lhs, rhs, acc], attrs, ty);
        self.keep(result);
    }

    /// A product of 4 by 32 by 4 whose operands have scales, or not.
    fn dot_scaled(&mut self) {
        let formats = [
            (ScaledFormat::E2M1, Scalar::I8),
            (ScaledFormat::E4M3, Scalar::F8E4NV),
            (ScaledFormat::E5M2, Scalar::F8E5),
            (ScaledFormat::Bf16, Scalar::BF16),
            (ScaledFormat::Fp16, Scalar::F16),
        ];
        let mut operand = |shape: [u32; 2], along_k: usize| {
            let (format, scalar) = self.random.pick(&formats);
            let k_pack = self.random.once_in(2);
            let mut shape = shape;
            if format == ScaledFormat::E2M1 {
                shape[if k_pack { along_k } else { 1 - along_k }] /= 2;
            }
            let value = self.of(scalar, &shape);
            let scale = match self.random.below(3) {
                0 => None,
                1 => Some(self.of(Scalar::F8E4NV, &[4, 2])),
                _ => Some(self.of(Scalar::I8, &[4, 1])),
            };
            (value, scale, format, k_pack)
        };
        let (lhs, lhs_scale, lhs_format, lhs_k_pack) = operand([4, 32], 1);
        let (rhs, rhs_scale, rhs_format, rhs_k_pack) = operand([32, 4], 0);
        let ty = Type::of(Scalar::F32, &[4, 4]);
        let acc = self.value(&ty);
        let attrs = DotScaled { lhs: lhs_format, rhs: rhs_format, lhs_k_pack, rhs_k_pack };
        let operands = [Some(lhs), lhs_scale, Some(rhs), rhs_scale, Some(acc)];
        let inst = self.builder.emit_inst(Opcode::DotScaled, operands, attrs, [ty], []);
        self.keep_results(inst);
    }

    /// Fills a region by `fill`, which gives its terminator's operands.
    fn region(
        &mut self,
        args: &[Type],
        elementwise: bool,
        terminator: Opcode,
        fill: impl FnOnce(&mut Self, &[Value]) -> Vec<Value>,
    ) -> ir::Region {
        let region = self.builder.create_region();
        let args: Vec<Value> =
            args.iter().map(|ty| self.builder.func.add_argument(region, ty.clone())).collect();
        let outer = self.builder.switch_to(region);
        let (seen, was_elementwise) = (self.visible.len(), self.elementwise);
        self.visible.extend(&args);
        self.elementwise |= elementwise;
        self.depth += 1;
        let results = fill(self, &args);
        self.builder.emit_effect(terminator, results.into_iter().map(Some), Attrs::None);
        self.depth -= 1;
        self.elementwise = was_elementwise;
        self.visible.truncate(seen);
        self.builder.switch_to(outer);
        region
    }

    fn types(&mut self, most: usize) -> Vec<Type> {
        (0..self.random.below(most + 1)).map(|_| self.random_type()).collect()
    }

    fn keep_results(&mut self, inst: ir::Inst) {
        let results = self.builder.func.insts[inst].results.clone();
        results.into_iter().for_each(|result| self.keep(result));
    }

    /// A few operations, then values of these types.
    fn body(&mut self, types: &[Type]) -> Vec<Value> {
        let count = 1 + self.random.below(5);
        self.steps(count);
        types.iter().map(|ty| self.value(ty)).collect()
    }

    fn counted_loop(&mut self) {
        let scalar = self.random.pick(&[Scalar::I32, Scalar::I64]);
        let types = self.types(3);
        let [lower, step] = [self.random.below(3), 1 + self.random.below(2)]
            .map(|value| self.builder.int(scalar, value as i128));
        let (any, mask) = (self.of(scalar, &[]), self.builder.int(scalar, 3));
        let upper = self.builder.emit(Opcode::And, &[any, mask], Attrs::None);
        let inits: Vec<Value> = types.iter().map(|ty| self.value(ty)).collect();
        let mut args = vec![Type::scalar(scalar)];
        args.extend(types.iter().cloned());
        let region =
            self.region(&args, false, Opcode::Yield, |generator, _| generator.body(&types));
        let attrs = Loop { stages: 0, unroll: 0, flatten: false, warp_specialize: false };
        let operands = [lower, upper, step].into_iter().chain(inits).map(Some);
        let inst = self.builder.emit_inst(Opcode::For, operands, attrs, types, [region]);
        self.keep_results(inst);
    }

    fn while_loop(&mut self) {
        use IntPredicate::{Sge, Sgt, Sle, Slt};
        let mut types = vec![Type::scalar(Scalar::I32)];
        types.extend(self.types(2));
        let (falls, includes) = (self.random.once_in(2), self.random.once_in(2));
        let (first, last) =
            if falls { (self.random.below(4), 0) } else { (0, self.random.below(4)) };
        let [first, last] = [first as i128, last as i128];
        let step = 1 + self.random.below(2) as i128;
        let mut inits = vec![self.builder.int(Scalar::I32, first)];
        inits.extend(types[1..].iter().map(|ty| self.value(ty)).collect::<Vec<_>>());
        let (predicate, turned) = match (falls, includes) {
            (false, false) => (Slt, Sgt),
            (false, true) => (Sle, Sge),
            (true, false) => (Sgt, Slt),
            (true, true) => (Sge, Sle),
        };
        let is_turned = self.random.once_in(2);
        let before = self.region(&types, false, Opcode::Condition, |generator, args| {
            generator.steps(1);
            let end = generator.builder.int(Scalar::I32, last);
            let (operands, predicate) =
                if is_turned { ([end, args[0]], turned) } else { ([args[0], end], predicate) };
            let more = generator.builder.emit(Opcode::Cmp, &operands, IntCompare { predicate });
            [more].into_iter().chain(args.iter().copied()).collect()
        });
        let after = self.region(&types, false, Opcode::Yield, |generator, args| {
            let step = generator.builder.int(Scalar::I32, step);
            let opcode = if falls { Opcode::Sub } else { Opcode::Add };
            let next = generator.builder.emit(opcode, &[args[0], step], Attrs::None);
            let others = generator.body(&types[1..]);
            [next].into_iter().chain(others).collect()
        });
        let operands = inits.into_iter().map(Some);
        let inst =
            self.builder.emit_inst(Opcode::While, operands, Attrs::None, types, [before, after]);
        self.keep_results(inst);
    }

    fn branch(&mut self) {
        let types = self.types(2);
        let condition = self.of(Scalar::I1, &[]);
        let regions = [(); 2].map(|()| {
            self.region(&[], false, Opcode::Yield, |generator, _| generator.body(&types))
        });
        let operands = [Some(condition)];
        let inst = self.builder.emit_inst(Opcode::If, operands, Attrs::None, types, regions);
        self.keep_results(inst);
    }

    /// Tiles of one shape.
    fn inputs(&mut self) -> Option<(Vec<Value>, Vec<Scalar>, Vec<u32>)> {
        let first = self.known(Type::is_tile)?;
        let shape = self.ty(first).shape().to_vec();
        let mut inputs = vec![first];
        if self.random.once_in(2) {
            let scalar = self.scalar_type();
            inputs.push(self.of(scalar, &shape));
        }
        let scalars = inputs.iter().filter_map(|&value| self.ty(value).number()).collect();
        Some((inputs, scalars, shape))
    }

    /// A region that combines two elements of each input.
    fn combination(&mut self, scalars: &[Scalar]) -> ir::Region {
        let types: Vec<Type> = scalars.iter().map(|&scalar| Type::scalar(scalar)).collect();
        let args: Vec<Type> = types.iter().chain(&types).cloned().collect();
        let simple = self.random.once_in(2);
        self.region(&args, true, Opcode::Yield, |generator, args| {
            let known = match scalars {
                [scalar] if simple && scalar.is_int() => {
                    Some(generator.random.pick(&[Opcode::Add, Opcode::MaxS, Opcode::Xor]))
                }
                [_] if simple => Some(generator.random.pick(&[Opcode::FAdd, Opcode::FMul])),
                _ => None,
            };
            match known {
                Some(opcode) => vec![generator.builder.emit(opcode, args, Attrs::None)],
                None => generator.body(&types),
            }
        })
    }

    fn reduce(&mut self) {
        let Some((inputs, scalars, mut shape)) = self.inputs() else { return };
        let axis = self.random.below(shape.len());
        let region = self.combination(&scalars);
        shape.remove(axis);
        let types: Vec<Type> = scalars.iter().map(|&scalar| Type::of(scalar, &shape)).collect();
        let (operands, attrs) = (inputs.into_iter().map(Some), Axis { axis: axis as u32 });
        let inst = self.builder.emit_inst(Opcode::Reduce, operands, attrs, types, [region]);
        self.keep_results(inst);
    }

    fn scan(&mut self) {
        let Some((inputs, scalars, shape)) = self.inputs() else { return };
        let axis = self.random.below(shape.len()) as u32;
        let region = self.combination(&scalars);
        let types: Vec<Type> = scalars.iter().map(|&scalar| Type::of(scalar, &shape)).collect();
        let attrs = Scan { axis, reverse: self.random.once_in(2) };
        let operands = inputs.into_iter().map(Some);
        let inst = self.builder.emit_inst(Opcode::Scan, operands, attrs, types, [region]);
        self.keep_results(inst);
    }

    fn map_elements(&mut self) {
        let Some((inputs, scalars, shape)) = self.inputs() else { return };
        let even = shape.iter().product::<u32>() > 1;
        let pack = if even { 1 + self.random.below(2) } else { 1 };
        let results: Vec<Scalar> =
            (0..1 + self.random.below(2)).map(|_| self.scalar_type()).collect();
        let copies = |scalars: &[Scalar]| -> Vec<Type> {
            let each = |&scalar: &Scalar| vec![Type::scalar(scalar); pack];
            scalars.iter().flat_map(each).collect()
        };
        let yields = copies(&results);
        let region = self
            .region(&copies(&scalars), true, Opcode::Yield, |generator, _| generator.body(&yields));
        let types: Vec<Type> = results.iter().map(|&scalar| Type::of(scalar, &shape)).collect();
        let (operands, attrs) = (inputs.into_iter().map(Some), Pack { pack: pack as u32 });
        let inst = self.builder.emit_inst(Opcode::MapElements, operands, attrs, types, [region]);
        self.keep_results(inst);
    }
}
