//! Compiles the generated parser and the external scanner.

use std::path::Path;

fn main() {
    let sources = Path::new("src");
    let files = ["parser.c", "scanner.c"].map(|name| sources.join(name));
    cc::Build::new()
        .std("c11")
        .include(sources)
        .opt_level(2)
        .flag_if_supported("-Wno-unused-value")
        .flag_if_supported("-Wno-unused-parameter")
        .flag_if_supported("-Wno-unused-but-set-variable")
        .files(&files)
        .compile("tree-sitter-tile");
    for file in files {
        println!("cargo::rerun-if-changed={}", file.display());
    }
}
