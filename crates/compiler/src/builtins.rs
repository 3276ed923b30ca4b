//! The one table of the language's builtins.
//!
//! Evaluation, completion, hover and signature help read it. A row gives a name, the module it
//! lives in, its parameters as Python writes them, the rule that evaluates it, whether it is also
//! a method of tensors, the Triton versions that have it, and documentation.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::ir::{AtomicOp, Opcode};

pub mod attributes;
pub(crate) mod classes;
mod debug;
mod foreign;
mod host;
mod launch;
mod libdevice;
mod math;
mod memory;
pub(crate) mod options;
mod profiler;
mod programming;
mod random;
mod reduction;
mod scenario;
mod shape;
mod signature;
mod text;
pub(crate) mod torch;
mod version;

pub use foreign::instead;
pub(crate) use foreign::is_shared;
pub(crate) use launch::LAUNCH_OPTIONS;
pub(crate) use libdevice::LIBDEVICE_FUNCTIONS;
pub use libdevice::{LibdeviceFunction, LibdeviceType};
pub use options::Choice;
pub use scenario::{SCENARIO_FUNCTIONS, ScenarioFunction, scenario_function};
pub use signature::{Parameter, ParameterKind};
pub use version::TritonVersion;

/// Members of `triton.language` that only forks of Triton have, with the fork. Kernels written
/// for those devices are not broken, so the names are worth a warning, not an error.
pub(crate) const FORK_MEMBERS: &[(&str, &str)] = &[
    ("extract_slice", "the fork for Ascend devices"),
    ("insert_slice", "the fork for Ascend devices"),
];

/// Dotted path of the language's module.
pub const LANGUAGE: &str = "triton.language";

/// What kernels use of Triton's profiler.
pub(crate) const PROFILER: &str = "triton.profiler.language";
/// Dotted path of the part of the language that the compiler itself provides.
pub(crate) const CORE: &str = "triton.language.core";
/// Dotted path of the language's math module.
pub(crate) const MATH: &str = "triton.language.math";
/// Dotted path of the module of what depends on the device: back ends bring modules of their own.
pub(crate) const EXTRA: &str = "triton.language.extra";
/// Dotted path of the device library's module.
pub(crate) const LIBDEVICE: &str = "triton.language.extra.libdevice";
/// Dotted path of the CUDA extension module.
pub const CUDA: &str = "triton.language.extra.cuda";
/// Dotted path of the module that describes the target.
pub(crate) const TARGET_INFO: &str = "triton.language.target_info";
/// Dotted path of Triton's host module.
pub const TRITON: &str = "triton";
/// Pseudo-module of the Python builtins that kernels may use.
pub const PYTHON: &str = "builtins";
/// Python's builtin names that host code may use and kernels may not.
pub(crate) const PYTHON_HOST: &str = "builtins, outside of kernels";
/// The module that imports modules by name.
pub(crate) const IMPORTLIB: &str = "importlib";
/// The part of [`IMPORTLIB`] that looks for modules.
pub(crate) const IMPORTLIB_UTIL: &str = "importlib.util";
/// PyTorch, of which constants of modules are made: types and their limits.
pub(crate) const TORCH: &str = "torch";
/// PyTorch's module of networks.
pub(crate) const TORCH_NN: &str = "torch.nn";
/// PyTorch's module of functions of networks.
pub(crate) const TORCH_FUNCTIONAL: &str = "torch.nn.functional";
/// NumPy.
pub(crate) const NUMPY: &str = "numpy";
/// The module that says what PyTorch was built for.
pub(crate) const TORCH_VERSION: &str = "torch.version";
/// Python's `math` module.
pub(crate) const PYTHON_MATH: &str = "math";

pub(crate) use text::{INTEGER, STRING};

/// A member of the language.
#[derive(Debug)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// Dotted path of the module it lives in.
    pub module: &'static str,
    /// Parameters as Python writes them, in Triton 3.6.
    pub signature: &'static str,
    /// Parameters in Triton 3.9 where they differ.
    pub signature_3_9: Option<&'static str>,
    /// True when it is also a method of tensors, with the first parameter as receiver.
    pub method: bool,
    /// True when it is only a method, and no member of a module.
    pub only_method: bool,
    /// True when `triton.language.math` has it too.
    pub in_math: bool,
    /// The first version that has it.
    pub since: TritonVersion,
    /// The last version that has it.
    pub until: TritonVersion,
    /// The first version in which `triton.language` itself has it, and not only the module inside
    /// of it that defines it.
    pub exported: TritonVersion,
    /// What to use instead, a sentence, where it should not be used any more.
    pub deprecated: Option<&'static str>,
    /// Why its result must be used, a sentence, where dropping it is an error. Methods may be called
    /// for nothing.
    pub must_use: Option<&'static str>,
    /// How it is evaluated.
    pub rule: Rule,
    /// What it does, its shape and type rule, in Markdown.
    pub doc: &'static str,
}

/// How a builtin is evaluated; `eval::builtins` has the code of each rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the builtins'")]
pub enum Rule {
    ProgramId,
    NumPrograms,
    Arange,
    Full,
    Zeros,
    ZerosLike,
    ToTensor,
    Broadcast,
    BroadcastTo,
    ExpandDims,
    Squeeze,
    Unsqueeze,
    Reshape,
    View,
    Ravel,
    Item,
    Trans,
    Permute,
    Join,
    Split,
    Interleave,
    Cat,
    Flip,
    Gather,
    Where,
    Arithmetic(crate::hir::BinaryOp),
    Logical {
        and: bool,
    },
    /// A function of Triton's library that combines two elements by an operator.
    CombineOperator(crate::hir::BinaryOp),
    CombineExtremum {
        max: bool,
    },
    /// As [`Rule::CombineExtremum`], of elements with their positions.
    CombineIndexed {
        max: bool,
        tie_left: bool,
    },
    Extremum {
        max: bool,
    },
    Clamp,
    PythonExtremum {
        max: bool,
    },
    Abs,
    UMulHi,
    Fma,
    Unary(Opcode),
    SqrtRn,
    DivRn,
    FDiv,
    CDiv,
    Sigmoid,
    Softmax,
    Swizzle2d,
    Cast,
    Reduce,
    Sum,
    ReduceExtremum {
        max: bool,
    },
    ArgExtremum {
        max: bool,
    },
    XorSum,
    ReduceOr,
    AssociativeScan,
    CumSum,
    CumProd,
    Sort,
    TopK,
    BitonicMerge,
    Histogram,
    MapElementwise,
    InlineAsm,
    Dot,
    DotScaled,
    Load,
    Store,
    MakeBlockPtr,
    Advance,
    MakeDescriptor,
    DescriptorLoad,
    DescriptorStore,
    DescriptorGather,
    DescriptorScatter,
    DescriptorAtomic(AtomicOp),
    AtomicRmw(AtomicOp),
    AtomicCas,
    AtomicLoad,
    AtomicStore,
    AtomicPoll,
    DebugBarrier,
    ProfilerMark,
    MultipleOf,
    MaxContiguous,
    MaxConstancy,
    Assume,
    StaticAssert,
    StaticPrint,
    DevicePrint,
    DeviceAssert,
    Constexpr,
    Condition,
    StaticRange,
    Range,
    PhiloxImpl,
    Philox,
    RandInt,
    RandInt4x,
    Rand,
    Rand4x,
    Randn,
    Randn4x,
    UniformFloat,
    PairNormal,
    /// Does nothing and gives `None`.
    NoValue,
    /// A class that serves `isinstance` and annotations alone.
    Class,
    IntDType,
    PointerType,
    BlockTypeClass,
    DTypeClass,
    PythonLen,
    PythonInt,
    PythonFloat,
    PythonRange,
    TypeLimits,
    /// A module by its dotted path, at compile time.
    ImportModule,
    PythonBool,
    PythonSum,
    /// A method of Python's strings.
    PythonString,
    PythonBitLength,
    PythonList,
    PythonIsInstance,
    PythonGetAttr,
    PythonHasAttr,
    /// A function of Python's `math` on compile-time numbers.
    PythonMath,
    HostCDiv,
    HostNextPowerOf2,
    HostLog2,
    /// A function of the device library.
    Libdevice,
    /// A register or clock of the device.
    Special,
    TargetQuery,
    /// Gives its receiver.
    Answer,
    /// `_make` of a named tuple's class.
    NamedTupleOf,
    /// Known by name; its result is not followed.
    Opaque,
}

impl Builtin {
    const fn new(
        module: &'static str,
        name: &'static str,
        signature: &'static str,
        rule: Rule,
        doc: &'static str,
    ) -> Builtin {
        Builtin {
            name,
            module,
            signature,
            signature_3_9: None,
            method: false,
            only_method: false,
            in_math: false,
            since: TritonVersion::V3_6,
            until: TritonVersion::V3_9,
            exported: TritonVersion::V3_6,
            deprecated: None,
            must_use: None,
            rule,
            doc,
        }
    }

    const fn tl(
        name: &'static str,
        signature: &'static str,
        rule: Rule,
        doc: &'static str,
    ) -> Builtin {
        Builtin::new(LANGUAGE, name, signature, rule, doc)
    }

    /// Whether it builds a kernel's code, which only what is compiled with a kernel can: neither host
    /// code nor what runs at compile time. Classes and what asks about targets do not.
    pub fn needs_kernel(&self) -> bool {
        [LANGUAGE, MATH].contains(&self.module)
            && !matches!(
                self.rule,
                Rule::Constexpr
                    | Rule::PointerType
                    | Rule::BlockTypeClass
                    | Rule::DTypeClass
                    | Rule::IntDType
                    | Rule::Class
                    | Rule::Opaque
                    | Rule::Condition
                    | Rule::StaticRange
                    | Rule::Range
                    | Rule::HostLog2
                    | Rule::TargetQuery
                    | Rule::Answer
                    | Rule::PythonList
            )
    }

    /// True when Triton itself has it as a jit function, which may combine elements.
    pub fn is_jit(&self) -> bool {
        const WRITTEN_IN_TRITON: &[&str] = &[
            "argmax",
            "argmin",
            "bitonic_merge",
            "cdiv",
            "cumprod",
            "cumsum",
            "flip",
            "interleave",
            "max",
            "min",
            "pair_uniform_to_normal",
            "philox",
            "philox_impl",
            "rand",
            "rand4x",
            "randint",
            "randint4x",
            "randn",
            "randn4x",
            "ravel",
            "reduce_or",
            "sigmoid",
            "softmax",
            "sort",
            "squeeze",
            "sum",
            "swizzle2d",
            "topk",
            "uint_to_uniform_float",
            "unsqueeze",
            "xor_sum",
            "zeros",
            "zeros_like",
        ];
        let combines = matches!(
            self.rule,
            Rule::CombineOperator(_) | Rule::CombineExtremum { .. } | Rule::CombineIndexed { .. }
        );
        self.module == LANGUAGE && (combines || WRITTEN_IN_TRITON.contains(&self.name))
    }

    const fn method(mut self) -> Builtin {
        self.method = true;
        self
    }

    const fn only_method(mut self) -> Builtin {
        self.method = true;
        self.only_method = true;
        self
    }

    const fn math(mut self) -> Builtin {
        self.in_math = true;
        self
    }

    const fn in_3_9(mut self, signature: &'static str) -> Builtin {
        self.signature_3_9 = Some(signature);
        self
    }

    const fn since_3_9(mut self) -> Builtin {
        self.since = TritonVersion::V3_9;
        self
    }

    const fn exported_since_3_9(mut self) -> Builtin {
        self.exported = TritonVersion::V3_9;
        self
    }

    const fn until_3_6(mut self) -> Builtin {
        self.until = TritonVersion::V3_6;
        self
    }

    const fn must_use(mut self, because: &'static str) -> Builtin {
        self.must_use = Some(because);
        self
    }

    const fn deprecated(mut self, instead: &'static str) -> Builtin {
        self.deprecated = Some(instead);
        self
    }

    /// The parameters in `version`.
    pub fn parameters(&'static self, version: TritonVersion) -> &'static [Parameter] {
        signature::parameters(self.signature_text(version))
    }

    /// The parameters in `version` as Python writes them.
    pub(crate) fn signature_text(&self, version: TritonVersion) -> &'static str {
        match (version, self.signature_3_9) {
            (TritonVersion::V3_9, Some(signature)) => signature,
            _ => self.signature,
        }
    }

    /// A call with all parameters, such as `tl.load(pointer, mask=None)`; as a method of `receiver`,
    /// `x.to(dtype, bitcast: constexpr = False)`.
    pub fn call_text(&self, receiver: Option<&str>, version: TritonVersion) -> String {
        let parameters = self.signature_text(version);
        match receiver {
            None => format!("{}({parameters})", self.display_name()),
            Some(receiver) => {
                // The first parameter is the receiver.
                let (_, others) = parameters.split_once(',').unwrap_or_default();
                format!("{receiver}.{}({})", self.name, others.trim_start())
            }
        }
    }

    /// True when `version` has it.
    pub fn exists_in(&self, version: TritonVersion) -> bool {
        (self.since..=self.until).contains(&version)
    }

    /// `tl.load`, `libdevice.tanh`, `len`: as kernels usually write it.
    pub fn display_name(&self) -> String {
        match self.module {
            LANGUAGE => format!("tl.{}", self.name),
            MATH => format!("tl.math.{}", self.name),
            LIBDEVICE => format!("libdevice.{}", self.name),
            PYTHON => self.name.to_owned(),
            module => format!("{}.{}", module.rsplit('.').next().unwrap_or(module), self.name),
        }
    }
}

/// Every builtin, by topic.
pub fn all() -> impl Iterator<Item = &'static Builtin> {
    [
        programming::ROWS,
        shape::ROWS,
        math::ROWS,
        reduction::ROWS,
        text::ROWS,
        memory::ROWS,
        debug::ROWS,
        profiler::ROWS,
        random::ROWS,
        host::ROWS,
    ]
    .into_iter()
    .flatten()
    .chain(libdevice::rows())
}

static BY_MODULE: LazyLock<FxHashMap<(&'static str, &'static str), &'static Builtin>> =
    LazyLock::new(|| {
        let mut map = FxHashMap::default();
        for builtin in all().filter(|builtin| !builtin.only_method) {
            map.insert((builtin.module, builtin.name), builtin);
            if builtin.in_math {
                map.insert((MATH, builtin.name), builtin);
            }
        }
        map
    });

static METHODS: LazyLock<FxHashMap<&'static str, &'static Builtin>> = LazyLock::new(|| {
    all().filter(|builtin| builtin.method).map(|builtin| (builtin.name, builtin)).collect()
});

/// The member `name` of the module with dotted path `module`, in any version.
pub fn member(module: &str, name: &str) -> Option<&'static Builtin> {
    let canonical = canonical_module(module);
    let (_, builtin) = BY_MODULE.get_key_value(&(canonical, name))?;
    Some(builtin)
}

/// The method `name` of tensors, in any version.
pub fn method(name: &str) -> Option<&'static Builtin> {
    METHODS.get(name).copied()
}

/// The method `name` of tensor descriptors.
pub(crate) fn descriptor_method(name: &str) -> Option<&'static Builtin> {
    memory::DESCRIPTOR_METHODS.iter().find(|builtin| builtin.name == name)
}

/// The builtin behind methods without parameters whose answer is known where the method is named,
/// such as `dtype.is_int`: it gives its receiver.
pub fn answer() -> &'static Builtin {
    static ANSWER: Builtin = Builtin::tl("answer", "value", Rule::Answer, "The receiver itself.");
    &ANSWER
}

/// The method by which a named tuple's class makes one of a tuple.
pub fn make() -> &'static Builtin {
    static MAKE: Builtin =
        Builtin::tl("_make", "cls, iterable", Rule::NamedTupleOf, "A named tuple of the elements.");
    &MAKE
}

/// Every method of tensor descriptors.
pub fn descriptor_methods() -> &'static [Builtin] {
    memory::DESCRIPTOR_METHODS
}

/// Every member of the module with dotted path `module`.
pub fn members(module: &str) -> Vec<&'static Builtin> {
    let canonical = canonical_module(module);
    let mut members: Vec<_> =
        BY_MODULE.iter().filter(|((home, _), _)| *home == canonical).map(|(_, b)| *b).collect();
    members.sort_by_key(|builtin| builtin.name);
    members
}

/// Every method of tensors.
pub fn methods() -> Vec<&'static Builtin> {
    let mut methods: Vec<_> = METHODS.values().copied().collect();
    methods.sort_by_key(|builtin| builtin.name);
    methods
}

/// Submodules that a known module has, as (name, dotted path).
pub fn submodules(module: &str) -> &'static [(&'static str, &'static str)] {
    match canonical_module(module) {
        TRITON => &[("language", LANGUAGE)],
        LANGUAGE => &[
            ("math", MATH),
            ("core", CORE),
            ("standard", "triton.language.standard"),
            ("random", "triton.language.random"),
            ("extra", EXTRA),
            ("target_info", TARGET_INFO),
        ],
        EXTRA => &[("libdevice", LIBDEVICE), ("cuda", CUDA), ("hip", "triton.language.extra.hip")],
        CUDA | "triton.language.extra.hip" => &[("libdevice", LIBDEVICE)],
        // What kernels that PyTorch generates import from it.
        "torch._inductor.runtime.triton_helpers" | "torch._inductor.triton_helpers" => {
            &[("libdevice", LIBDEVICE), ("math", MATH)]
        }
        IMPORTLIB => &[("util", IMPORTLIB_UTIL)],
        _ => &[],
    }
}

/// What a module of the `triton` package is for, and where its documentation is published.
pub fn module_doc(module: &str) -> Option<(&'static str, &'static str)> {
    const ABOUT_LANGUAGE: &str = "https://triton-lang.org/main/python-api/triton.language.html";
    Some(match canonical_module(module) {
        TRITON => (
            "The host side: what marks functions as kernels, tunes and launches them.",
            "https://triton-lang.org/main/python-api/triton.html",
        ),
        LANGUAGE => ("What kernels are written in: tiles, memory, arithmetic.", ABOUT_LANGUAGE),
        MATH => (
            "Mathematical functions of tiles.",
            "https://triton-lang.org/main/python-api/triton.language.html#math-ops",
        ),
        LIBDEVICE => (
            "Functions of the device library, which NVIDIA and AMD provide.",
            "https://docs.nvidia.com/cuda/libdevice-users-guide/index.html",
        ),
        TARGET_INFO => ("What the kernel is compiled for.", ABOUT_LANGUAGE),
        CUDA => ("What only NVIDIA's devices have.", ABOUT_LANGUAGE),
        "triton.language.extra.hip" => ("What only AMD's devices have.", ABOUT_LANGUAGE),
        EXTRA => ("What depends on the device.", ABOUT_LANGUAGE),
        _ => return None,
    })
}

/// True for modules whose members the table lists completely.
pub(crate) fn is_known_module(module: &str) -> bool {
    matches!(
        canonical_module(module),
        LANGUAGE
            | MATH
            | LIBDEVICE
            | CUDA
            | TARGET_INFO
            | TRITON
            | PYTHON_MATH
            | EXTRA
            | "triton.language.extra.hip"
    )
}

/// Whether the part `module` of the language has the builtin. The core has neither what is written
/// in the language itself nor mathematics.
pub fn defines(module: &str, builtin: &Builtin) -> bool {
    module != CORE || !(builtin.is_jit() || member(MATH, builtin.name).is_some())
}

/// Modules that are spelled in several ways have one canonical path.
pub(crate) fn canonical_module(module: &str) -> &str {
    match module {
        CORE | "triton.language.standard" | "triton.language.random" => LANGUAGE,
        "triton.language.extra.cuda.libdevice"
        | "triton.language.extra.hip.libdevice"
        | "triton.language.libdevice" => LIBDEVICE,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_parameters_and_documentation() {
        for builtin in all() {
            assert!(!builtin.doc.trim().is_empty(), "{} lacks documentation", builtin.name);
            for version in [TritonVersion::V3_6, TritonVersion::V3_9] {
                let parameters = builtin.parameters(version);
                assert!(parameters.iter().all(|p| !p.name.is_empty()), "{}", builtin.name);
            }
        }
    }

    #[test]
    fn members_and_methods_are_found() {
        assert_eq!(member("triton.language", "load").map(|b| b.rule), Some(Rule::Load));
        assert_eq!(member("triton.language.core", "load").map(|b| b.rule), Some(Rule::Load));
        assert_eq!(method("to").map(|b| b.rule), Some(Rule::Cast));
        assert!(member("triton.language.math", "exp2").is_some());
        assert!(member(LIBDEVICE, "tanh").is_some());
    }
}
