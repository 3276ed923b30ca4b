//! What host code finds out about where it runs: PyTorch with CUDA, a Python that Triton supports,
//! and the GPU that kernels are compiled for.

/// A value of module-level code, as far as conditions need it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fact {
    /// `None`.
    None,
    /// A bool.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// A string.
    Text(String),
    /// A version, or another tuple of integers.
    Numbers(Vec<i128>),
    /// `sys.version_info`.
    Python,
    /// `os.environ`, in which nothing is set unless somebody sets it.
    Environment,
    /// What Triton says of the GPU that it compiles for.
    Target,
    /// What PyTorch says of that GPU.
    Device,
    /// A module, function or class.
    Object,
}

/// The function that gives [`Fact::Target`], by its path in the `triton` package.
pub(crate) const CURRENT_TARGET: &str = "runtime.driver.active.get_current_target";

/// What tells whether Triton interprets kernels, by its path in the `triton` package.
pub(crate) const INTERPRETS: &str = "knobs.runtime.interpret";

/// What something outside of the project holds.
pub(crate) fn named(path: &[&str]) -> Option<Fact> {
    Some(match path {
        ["sys", "version_info"] => Fact::Python,
        ["sys", "platform"] => Fact::Text("linux".into()),
        ["os", "name"] => Fact::Text("posix".into()),
        ["os", "environ"] => Fact::Environment,
        ["typing", "TYPE_CHECKING"] => Fact::Bool(false),
        ["torch", "version", "hip" | "xpu"] => Fact::None,
        ["torch", "version", "cuda"] => Fact::Text("12.8".into()),
        _ => return None,
    })
}

/// What a function outside of the project gives where kernels are compiled for this compute
/// capability, whatever its arguments are.
pub(crate) fn called(path: &[&str], capability: u32) -> Option<Fact> {
    Some(match path {
        ["torch", "cuda", "is_available"]
        | ["torch", "utils", "_triton", "has_triton" | "has_triton_package"] => Fact::Bool(true),
        // Where CUDA is, no other accelerators are.
        ["torch", "hpu" | "mps" | "mtia" | "npu" | "xpu", "is_available"]
        | ["torch", "backends", "mps", "is_available" | "is_built"] => Fact::Bool(false),
        ["platform", "system"] => Fact::Text("Linux".into()),
        ["torch", "cuda", "is_bf16_supported"] => Fact::Bool(capability >= 80),
        ["torch", "cuda", "get_device_capability"] => Fact::Numbers(version(capability).into()),
        ["torch", "cuda", "get_device_properties"] => Fact::Device,
        ["torch", "cuda", "current_device"] => Fact::Int(0),
        _ => return None,
    })
}

impl Fact {
    /// An attribute of what is known of a GPU. How many multiprocessors it has, or its name, GPUs
    /// of one compute capability differ in.
    pub(crate) fn attribute(&self, name: &str, capability: u32) -> Option<Fact> {
        let [major, minor] = version(capability);
        Some(match (self, name) {
            (Fact::Target, "backend") => Fact::Text("cuda".into()),
            (Fact::Target, "arch") => Fact::Int(capability.into()),
            (Fact::Target | Fact::Device, "warp_size") => Fact::Int(32),
            (Fact::Device, "major") => Fact::Int(major),
            (Fact::Device, "minor") => Fact::Int(minor),
            _ => return None,
        })
    }

    /// Python's truth value.
    pub(crate) fn truth(&self) -> Option<bool> {
        match self {
            Fact::None => Some(false),
            Fact::Bool(value) => Some(*value),
            Fact::Int(value) => Some(*value != 0),
            Fact::Text(text) => Some(!text.is_empty()),
            Fact::Numbers(numbers) => Some(!numbers.is_empty()),
            Fact::Python | Fact::Target | Fact::Device | Fact::Object => Some(true),
            Fact::Environment => None,
        }
    }
}

/// A compute capability as PyTorch gives it: `[9, 0]` of 90.
fn version(capability: u32) -> [i128; 2] {
    [i128::from(capability / 10), i128::from(capability % 10)]
}

#[cfg(test)]
mod tests {
    use crate::builtins::TritonVersion;
    use crate::eval::lower_kernel;
    use crate::project::MemorySources;
    use crate::specialization::{Origin, Specialization};

    /// What a kernel prints of the constants of its module.
    fn printed(module: &str, value: &str) -> Vec<String> {
        let text = format!(
            "import torch, triton\nimport triton.language as tl\n{module}\n\n\n@triton.jit\ndef kernel():\n    tl.static_print({value})\n"
        );
        let mut sources = MemorySources::default();
        let file = sources.add("kernel.py", &text);
        let spec = Specialization::new(Origin::Flags, Default::default());
        let result = lower_kernel(&sources, file, "kernel", &spec, TritonVersion::V3_9);
        result.prints.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn constants_of_kernels_follow_the_gpu() {
        let module = "CAPABILITY = torch.cuda.get_device_capability()\n\
            PROPERTIES = torch.cuda.get_device_properties(0)\n\
            if CAPABILITY[0] >= 9:\n    PRECISION = tl.constexpr('tf32')\n\
            else:\n    PRECISION = tl.constexpr('ieee')\n\
            MAJOR = tl.constexpr(PROPERTIES.major)\nIS_NEW = tl.constexpr(CAPABILITY >= (10, 0))";
        assert_eq!(printed(module, "PRECISION, MAJOR, IS_NEW"), ["tf32 9 False"]);
    }

    #[test]
    fn numbers_of_modules_are_those_of_python() {
        let found = printed("import math\nimport numpy as np", "-torch.inf, np.pi == math.pi");
        assert_eq!(found, ["-inf True"]);
    }

    #[test]
    fn what_gpus_of_one_kind_differ_in_stays_open() {
        let module = "PROPERTIES = torch.cuda.get_device_properties(0)\n\
            COUNT = tl.constexpr(PROPERTIES.multi_processor_count)";
        assert_ne!(printed(module, "COUNT"), ["132"]);
    }
}
