//! Resolution across files.

use super::*;

/// What `name` means at module level of the last of `files`.
fn meaning(files: &[(&str, &str)], name: &str) -> String {
    let mut sources = MemorySources::new(vec![String::new()]);
    let mut last = FileId(0);
    for (path, text) in files {
        last = sources.add(path, text);
    }
    let body = crate::hir::lower_expression(name).expect("an expression");
    let scope = Scope { file: last, path: &[] };
    let describe = |at: ItemRef| {
        let item = item(&sources, at).expect("an item");
        format!("{}::{}", sources.path(at.file), item.name)
    };
    match resolve_expr(&sources, scope, &body.0, body.2) {
        Resolution::TritonModule(path) => format!("triton module {path:?}"),
        Resolution::Triton(path) => format!("triton {path}"),
        Resolution::Jit(at) => format!("jit {}", describe(at)),
        Resolution::ConstexprFunction(at) => format!("constexpr function {}", describe(at)),
        Resolution::Function(at) => format!("function {}", describe(at)),
        Resolution::Class(at) => format!("class {}", describe(at)),
        Resolution::Constexpr(at) => format!("constexpr {}", describe(at)),
        Resolution::Constant(at) => format!("constant {}", describe(at)),
        Resolution::File(file) => format!("file {}", sources.path(file)),
        Resolution::Folder(_, path) => format!("folder {}", path.join(".")),
        Resolution::External(path) => format!("external {}", path.join(".")),
        Resolution::Unknown => "unknown".to_owned(),
        Resolution::Undefined => "undefined".to_owned(),
    }
}

#[test]
fn every_spelling_of_triton_means_the_same() {
    let load = "triton language.load";
    assert_eq!(meaning(&[("a.py", "import triton.language as tl")], "tl.load"), load);
    assert_eq!(meaning(&[("a.py", "from triton import language as tl")], "tl.load"), load);
    assert_eq!(meaning(&[("a.py", "from triton.language import load as l")], "l"), load);
    assert_eq!(meaning(&[("a.py", "import triton")], "triton.language.load"), load);
    assert_eq!(meaning(&[("a.py", "import triton.language")], "triton.language.load"), load);
    assert_eq!(meaning(&[("a.py", "from triton.language import *")], "load"), load);
    assert_eq!(meaning(&[("a.py", "from triton.language.core import load")], "load"), load);
    assert_eq!(meaning(&[("a.tile", "")], "tl.load"), load);
    assert_eq!(meaning(&[("a.py", "")], "tl.load"), "undefined");
    assert_eq!(
        meaning(&[("a.py", "import triton.language as tl")], "tl.math"),
        "triton module \"language.math\""
    );
    let rsqrt = "triton language.extra.libdevice.rsqrt";
    assert_eq!(
        meaning(&[("a.py", "import triton.language as tl")], "tl.extra.cuda.libdevice.rsqrt"),
        rsqrt
    );
}

#[test]
fn a_failing_import_falls_back() {
    let text = "\
try:
    from triton.language.extra.libdevice import rsqrt
except ModuleNotFoundError:
    from triton.language.math import rsqrt
try:
    import triton.language.extra.libdevice as dev
except ImportError:
    from elsewhere import dev
try:
    from k import kernel
except ImportError:
    kernel = None
";
    let kernel = "import triton\n@triton.jit\ndef kernel(x): pass\n";
    let files = [("k.py", kernel), ("a.py", text)];
    assert_eq!(meaning(&files, "rsqrt"), "triton language.extra.libdevice.rsqrt");
    assert_eq!(meaning(&files, "dev"), "triton module \"language.extra.libdevice\"");
    assert_eq!(meaning(&files, "kernel"), "jit k.py::kernel");
}

#[test]
fn what_stands_in_for_triton_counts_only_without_it() {
    let compat = "\
try:
    import triton
except ImportError:
    triton = None
if triton is not None:
    import triton.language as tl
    try:
        from triton.language.extra import libdevice
        libdevice = tl.extra.libdevice
        math = tl.math
    except ImportError:
        if hasattr(tl.extra, 'intel'):
            libdevice = tl.extra.intel.libdevice
        else:
            libdevice = tl.math
            math = tl
    try:
        from triton.language.standard import _log2
    except ImportError:
        def _log2(x):
            raise NotImplementedError
else:
    def _missing(*args):
        raise RuntimeError
    libdevice = None
    math = None
    _log2 = _missing
    class triton:
        @staticmethod
        def jit(*args):
            return _missing
    class tl:
        tensor = object
";
    let user = "import math as pymath\nfrom .compat import _log2, libdevice, math, tl, triton\n\
                exp = math.exp\n@triton.jit\ndef f(x): return x\n";
    let files = [("p/compat.py", compat), ("p/user.py", user), ("a.py", "from p import user")];
    assert_eq!(meaning(&files, "user.tl"), "triton module \"language\"");
    assert_eq!(meaning(&files, "user.math"), "triton module \"language.math\"");
    assert_eq!(meaning(&files, "user.libdevice.tanh"), "triton language.extra.libdevice.tanh");
    assert_eq!(meaning(&files, "user._log2"), "triton language._log2");
    assert_eq!(meaning(&files, "user.exp"), "triton language.math.exp");
    assert_eq!(meaning(&files, "user.f"), "jit p/user.py::f");
    let shadowed = "from triton.language import exp\nif FAST:\n    exp = 1\nexp = print\n";
    assert_eq!(meaning(&[("a.py", shadowed)], "exp"), "constant a.py::exp");
}

#[test]
fn names_are_followed_through_packages() {
    let files = [
        (
            "p/__init__.py",
            "from .inner import *\nfrom . import other as renamed\nfrom . import same\n",
        ),
        ("p/same.py", "SIZE = 8\n"),
        ("p/inner.py", "from triton import jit\nimport torch\n@jit\ndef helper(x): pass\nN = 4\n"),
        ("p/other.py", "import triton.language as tl\nB = tl.constexpr(64)\nexp = tl.exp\n"),
        ("a.py", "import p\nfrom p import helper as h, missing\nimport p.other\nloop = loop\n"),
    ];
    assert_eq!(meaning(&files, "h"), "jit p/inner.py::helper");
    assert_eq!(meaning(&files, "p.N"), "constant p/inner.py::N");
    assert_eq!(meaning(&files, "p.renamed.B"), "constexpr p/other.py::B");
    assert_eq!(meaning(&files, "p.other.exp"), "triton language.exp");
    assert_eq!(meaning(&files, "p.same.SIZE"), "constant p/same.py::SIZE");
    assert_eq!(meaning(&files, "p.torch.float16"), "external torch.float16");
    assert_eq!(meaning(&files, "missing"), "external p.missing");
    assert_eq!(meaning(&files, "loop"), "constant a.py::loop");
    assert_eq!(meaning(&files, "nothing"), "undefined");
}

#[test]
fn import_cycles_end() {
    let files = [
        ("b.py", "from a import *\nfrom a import x\n"),
        ("a.py", "from b import *\nfrom b import x\n"),
    ];
    assert_eq!(meaning(&files, "x"), "unknown");
    assert_eq!(meaning(&files, "y"), "unknown");
}

#[test]
fn definitions_under_conditions() {
    let of = |condition: &str| {
        let text = format!(
            "import functools, os, sys, torch, triton\nimport triton.language as tl\nfrom packaging import version\n\
             @functools.cache\ndef backend():\n    try:\n        target = triton.runtime.driver.active.get_current_target()\n        \
             return target.backend\n    except Exception:\n        return 'cpu'\n\
             def capability(device=0):\n    major, minor = torch.cuda.get_device_capability(device)\n    \
             if major > 99:\n        return 0\n    return int(major) * 10 + minor\n\
             PLATFORM = backend()\nON = True\ntry:\n    import other\n    HAS = True\nexcept ImportError:\n    HAS = False\n\
             if {condition}:\n    @triton.jit\n    def f(): pass\n\
             elif ON:\n    def f(): pass\nelse:\n    f = 1\n"
        );
        meaning(&[("a.py", &text)], "f")
    };
    for known in [
        "True",
        "not False",
        "ON is not None",
        "hasattr(tl, 'dot')",
        "triton.__version__ >= '3.0.0'",
        "version.parse(triton.__version__) > version.parse('3.1.0')",
        "sys.version_info >= (3, 9)",
        "sys.version_info[0] == 3",
        "torch.cuda.is_available()",
        "'X' not in os.environ and sys.platform == 'linux'",
        "torch.version.hip is None",
        "torch.cuda.get_device_capability() == (9, 0)",
        "torch.cuda.get_device_capability(0)[0] in (9, 10)",
        "torch.cuda.get_device_properties(0).major >= 9",
        "triton.runtime.driver.active.get_current_target().arch == 90",
        "PLATFORM == 'cuda'",
        "PLATFORM == 'cuda' and ('H100' in torch.cuda.get_device_name(0) or capability() >= 90)",
        "capability(device=1) == 90",
    ] {
        assert_eq!(of(known), "jit a.py::f", "{known}");
        assert_eq!(of(&format!("not ({known})")), "function a.py::f", "not {known}");
    }
    for open in [
        "HAS",
        "other()",
        "triton.__version__ >= '3.8'",
        "hasattr(tl, 'unheard')",
        "os.environ.get('X', '0') == '0'",
        "'H100' in torch.cuda.get_device_name(0)",
        "torch.cuda.get_device_properties(0).multi_processor_count > 100",
    ] {
        assert_eq!(of(open), of("unknown"), "{open}");
    }
}

#[test]
fn jit_functions_in_every_guise() {
    let text = "\
import functools
import triton
import triton as t
from triton import jit
from triton.runtime.jit import jit as runtime_jit
from numba import jit as other_jit
from wrap import libentry, fast_jit

@triton.jit
def a(x): tl.store(x, 1)
@libentry()
@triton.autotune(configs=[], key=['n'])
@t.jit(do_not_specialize=['n'])
def b(x, n): pass
@runtime_jit
def c(x): return x
@other_jit
def not_d(x): pass
def e(x): pass
e2 = triton.jit(e)
@fast_jit
def f(x): c(x)
if True:
    @jit
    def g(x): pass
def factory(n):
    @jit
    def h(x): pass
    return h
@triton.constexpr_function
def not_i(x): pass
class C:
    @staticmethod
    @jit
    def m(x): pass
def host(x):
    e2[(1,)](x)
    g[1](x)
";
    let wrap = "import triton\ndef fast_jit(f): return triton.jit(f, debug=True)\n";
    let mut sources = MemorySources::new(vec![]);
    sources.add("wrap.py", wrap);
    let file = sources.add("a.py", text);
    let names = |found: Vec<ItemRef>| {
        let names = found.iter().map(|at| item(&sources, *at).expect("an item").name.to_string());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(jit_functions(&sources, file)), "a b c e f g h m");
    assert_eq!(names(kernels(&sources, file)), "a b e g");
}

#[test]
fn a_variable_and_the_function_that_makes_it_may_name_each_other() {
    let text = "
import triton
def make(f): return made.wrap(f)
made = make(make)
@made
def kernel(x): pass
@make
def other(x): pass
";
    assert_eq!(meaning(&[("a.py", text)], "made"), "constant a.py::made");
    assert_eq!(meaning(&[("a.py", text)], "kernel"), "function a.py::kernel");
    assert_eq!(meaning(&[("a.py", text)], "other"), "function a.py::other");
}

#[test]
fn placeholders_where_triton_is_missing() {
    let importing = "\
from importlib.util import find_spec
HAS_TRITON = find_spec('triton') is not None or find_spec('other') is not None
if HAS_TRITON:
    try:
        from triton.backends import backends
        active = [driver for driver in backends if driver]
        if other('cpu'):
            if 'cpu' in backends:
                HAS_TRITON = True
                if len(active) == 0:
                    active.append(backends['cpu'])
            else:
                HAS_TRITON = False
        devices = 'A' if other() else 'B'
        distributed = devices is not None and len(devices) == 0
        if distributed and len(active) == 0:
            log('no driver')
        elif not distributed and len(active) != 1:
            HAS_TRITON = False
    except ImportError:
        HAS_TRITON = False
    except Exception:
        HAS_TRITON = False
if not HAS_TRITON:
    log('no Triton')
class Placeholder: pass
";
    let package = "\
from typing import TYPE_CHECKING
from package.importing import HAS_TRITON, Placeholder
if TYPE_CHECKING or HAS_TRITON:
    import triton
    import triton.language as tl
else:
    triton = Placeholder()
    tl = Placeholder()
__all__ = ['triton', 'tl']
";
    let files = [
        ("package/importing.py", importing),
        ("package/utils/__init__.py", package),
        ("package/__init__.py", ""),
        ("package/a.py", "from package.utils import tl, triton\n@triton.jit\ndef f(): pass\n"),
    ];
    assert_eq!(meaning(&files, "triton"), "triton module \"\"");
    assert_eq!(meaning(&files, "f"), "jit package/a.py::f");
}

#[test]
fn what_is_kept_of_files_ends_when_one_changes() {
    let operations = "\
import triton
@triton.jit
def kernel(x):
    pass
def run(x):
    kernel[(1,)](x)
";
    let mut sources = MemorySources::new(vec![String::new()]);
    let host = sources.add("operations.py", operations);
    let test =
        sources.add("test_run.py", "from operations import run\ndef test_run():\n    run(1)\n");
    assert_eq!(used_files(&sources, test), [host]);
    assert_eq!(sources.importers(host), [test]);
    sources.add("operations.py", "def run(x):\n    pass\n");
    assert_eq!(used_files(&sources, test), []);
    sources.add("operations.py", operations);
    sources.add("test_run.py", "def test_run():\n    pass\n");
    assert_eq!(used_files(&sources, test), []);
}
