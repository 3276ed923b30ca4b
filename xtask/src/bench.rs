//! Times the example kernels at the sizes of the published figures.

use anyhow::Result;
use xshell::{Shell, cmd};

/// Examples with the scenario variables that give their published sizes.
const SIZES: &[(&str, &[&str])] = &[
    ("examples/vector_add.py::add_kernel", &["n=67108864"]),
    ("examples/giou.py::giou_kernel#1", &["n=4194304"]),
    ("examples/giou.py::giou_kernel#2", &["n=4194304"]),
    ("examples/softmax.py::softmax_kernel", &["rows=8192", "cols=4096"]),
];

/// Runs `tile bench` with the release binary.
pub(crate) fn run(sh: &Shell) -> Result<()> {
    crate::setup::for_build(sh)?;
    cmd!(sh, "cargo build --quiet --release --package tile").run()?;
    let tile = crate::target().join("release/tile");
    cmd!(sh, "{tile} doctor --fix").quiet().run()?;
    for (kernel, sizes) in SIZES {
        let args = sizes.iter().flat_map(|size| ["--arg", size]);
        cmd!(sh, "{tile} bench {kernel} {args...}").run()?;
    }
    Ok(())
}
