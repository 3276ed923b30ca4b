//! Pure path logic of Python imports, for whoever owns the files. Paths use `/`.

use crate::hir::Name;

/// Extensions of files that hold kernels, in the order in which an import prefers them.
pub const EXTENSIONS: [&str; 2] = ["py", "tile"];

/// True for `.tile` files, in which `tl` and `triton` are in scope without imports.
pub fn is_tile(path: &str) -> bool {
    path.ends_with(".tile")
}

/// True when a file may have to do with kernels by what stands in it: a `.tile` file, and Python
/// that speaks of Triton and either of its `jit` or, in the shape of a launch, of what it calls.
pub fn may_concern_kernels(path: &str, text: &str) -> bool {
    let speaks = || text.contains("triton") && (text.contains("jit") || text.contains("]("));
    is_tile(path) || speaks()
}

/// True when a file may have to do with kernels, launch those of other files, or be a program, a test or a
/// benchmark that calls functions of other files which launch them: with tensors of PyTorch, or by way of
/// what it imports of its project. `is_own` says which modules, by the first parts of their names, are there.
pub fn may_run_kernels(path: &str, text: &str, is_own: &dyn Fn(&str) -> bool) -> bool {
    let has_tensors = || text.contains("torch") && (text.contains("](") || runs(text));
    let comes_by_others = || text.lines().any(|line| imports_own(line, is_own)) && runs(text);
    may_concern_kernels(path, text) || has_tensors() || comes_by_others()
}

/// Whether a file looks like a program, a test or a benchmark.
fn runs(text: &str) -> bool {
    RUNS.iter().any(|word| text.contains(word)) || text.lines().any(is_script_line)
}

/// Whether a line imports from a module of the project.
fn imports_own(line: &str, is_own: &dyn Fn(&str) -> bool) -> bool {
    let line = line.trim_start();
    let Some(from) = line.strip_prefix("from ").or_else(|| line.strip_prefix("import ")) else {
        return false;
    };
    let first = from.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    // What begins with a dot is of the same package.
    first.is_empty() || is_own(first)
}

/// Whether a line is an outermost statement as scripts have them and modules seldom do: a call, a loop or
/// an assertion.
fn is_script_line(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.'));
    let calls = rest.starts_with('(') && rest.len() < line.len();
    calls || line.starts_with("for ") || line.starts_with("assert ")
}

/// True when a file may launch kernels of other files, itself or by their functions: it has the shape of a
/// launch, or [runs by itself](may_run_kernels).
pub fn may_launch_others(path: &str, text: &str) -> bool {
    text.contains("](") || runs(text) || may_concern_kernels(path, text)
}

/// True when a file may come to launch kernels of other files: it [may launch](may_launch_others), or calls
/// functions of other files.
pub fn may_call_others(path: &str, text: &str) -> bool {
    text.contains("import ") || may_launch_others(path, text)
}

/// What stands in programs, tests and benchmarks.
const RUNS: &[&str] = &["def test", "__main__", "def bench"];

/// The directory that `level` leading dots mean in the file `path`: one dot is the file's own
/// package, each further dot the one around it. `None` when the dots lead out of the path.
pub(crate) fn relative_base(path: &str, level: u32) -> Option<String> {
    let mut directory = parent(path)?;
    for _ in 1..level {
        directory = parent(directory)?;
    }
    Some(directory.to_owned())
}

/// Files that may be the module `module` below `directory`, best first.
pub(crate) fn module_files(directory: &str, module: &[Name]) -> Vec<String> {
    let mut stem = directory.trim_end_matches('/').to_owned();
    for name in module {
        if !stem.is_empty() || directory.starts_with('/') {
            stem.push('/');
        }
        stem.push_str(name);
    }
    let init =
        if stem.is_empty() { "__init__.py".to_owned() } else { format!("{stem}/__init__.py") };
    let mut files = vec![init];
    if !module.is_empty() {
        files.extend(EXTENSIONS.iter().map(|extension| format!("{stem}.{extension}")));
    }
    files
}

/// The directories from which absolute imports of the file `path` may start, nearest first: the
/// file's own directory, the directory above its outermost package, and that directory's parents
/// up to `root`, each also with `src`. `exists` says whether a file is there.
pub fn import_roots(path: &str, root: &str, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut roots = Vec::new();
    let Some(own) = parent(path) else { return roots };
    roots.push(own.to_owned());
    let mut directory = own;
    while exists(&join(directory, "__init__.py")) {
        match parent(directory) {
            Some(up) => directory = up,
            None => break,
        }
    }
    loop {
        for candidate in [directory.to_owned(), join(directory, "src")] {
            if !roots.contains(&candidate) {
                roots.push(candidate);
            }
        }
        if directory == root || directory.is_empty() {
            return roots;
        }
        match parent(directory) {
            Some(up) if up.len() >= root.len() => directory = up,
            _ => return roots,
        }
    }
}

/// Files that an import in `path` may mean, best first. `roots` are where absolute imports
/// start: [`import_roots`], then the directories of the Python environment.
pub fn candidates(path: &str, roots: &[String], level: u32, module: &[Name]) -> Vec<String> {
    if level > 0 {
        let base = relative_base(path, level);
        return base.map(|base| module_files(&base, module)).unwrap_or_default();
    }
    if module.is_empty() {
        return Vec::new();
    }
    let is_installed = INSTALLED.contains(&&*module[0]);
    let own = own_package(path, &module[0]).filter(|_| !is_installed);
    let own = own.filter(|own| !roots.iter().any(|root| root == own));
    // Beside a file of a package there are parts of the package.
    let beside = parent(path).filter(|_| is_installed);
    let roots = roots.iter().map(String::as_str).filter(|root| Some(*root) != beside).chain(own);
    let files = roots.flat_map(|root| module_files(root, module));
    // A file does not mean itself: of two modules of one name, a package's own is not the outer one.
    files.filter(|file| file != path).collect()
}

/// Packages whose names projects also give to their parts, as `layers/torch`: what is imported by such a name
/// is the installed package.
const INSTALLED: &[&str] = &["jax", "numpy", "torch", "triton"];

/// The directory that holds the package `name` which the file `path` is part of. A package that was
/// copied into another one still imports itself by its own name.
fn own_package<'p>(path: &'p str, name: &str) -> Option<&'p str> {
    let mut directory = parent(path)?;
    loop {
        let up = parent(directory)?;
        if directory.strip_prefix(up)?.trim_start_matches('/') == name {
            return Some(up);
        }
        directory = up;
    }
}

/// The directory of `path`; the empty path is the directory of a bare file name.
fn parent(path: &str) -> Option<&str> {
    if path.is_empty() || path == "/" {
        return None;
    }
    match path.rfind('/') {
        Some(0) => Some("/"),
        Some(at) => Some(&path[..at]),
        None => Some(""),
    }
}

fn join(directory: &str, name: &str) -> String {
    match directory {
        "" => name.to_owned(),
        _ if directory.ends_with('/') => format!("{directory}{name}"),
        _ => format!("{directory}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str) -> Vec<Name> {
        path.split('.').filter(|name| !name.is_empty()).map(Name::from).collect()
    }

    #[test]
    fn relative_imports_start_at_the_package() {
        let files = candidates("a/b/c.py", &[], 2, &names("d"));
        assert_eq!(files, ["a/d/__init__.py", "a/d.py", "a/d.tile"]);
        assert_eq!(candidates("a/b/c.py", &[], 1, &names("")), ["a/b/__init__.py"]);
        assert_eq!(candidates("c.py", &[], 1, &names("d")), ["d/__init__.py", "d.py", "d.tile"]);
        assert!(candidates("c.py", &[], 3, &names("d")).is_empty());
    }

    #[test]
    fn a_copied_package_imports_itself() {
        let files = candidates("a/copies/b/c/d.py", &[], 0, &names("b.e"));
        assert_eq!(files, ["a/copies/b/e/__init__.py", "a/copies/b/e.py", "a/copies/b/e.tile"]);
        assert!(candidates("a/copies/b/c/d.py", &[], 0, &names("f.e")).is_empty());
    }

    #[test]
    fn a_part_does_not_import_itself_by_the_name_of_an_installed_package() {
        assert!(candidates("layers/torch/norm.py", &[], 0, &names("torch")).is_empty());
        assert!(candidates("layers/triton/norm.py", &[], 0, &names("triton.language")).is_empty());
    }

    #[test]
    fn a_file_does_not_import_itself() {
        let roots = ["/w/p".to_owned()];
        let files = candidates("/w/p/iris.py", &roots, 0, &names("iris"));
        assert_eq!(files, ["/w/p/iris/__init__.py", "/w/p/iris.tile"]);
    }

    #[test]
    fn absolute_imports_start_above_the_outermost_package() {
        let exists = |path: &str| matches!(path, "/w/src/p/__init__.py" | "/w/src/p/q/__init__.py");
        let roots = import_roots("/w/src/p/q/m.py", "/w", &exists);
        assert_eq!(roots, ["/w/src/p/q", "/w/src", "/w/src/src", "/w"]);
        let files = candidates("/w/src/p/q/m.py", &roots[1..2], 0, &names("p.k"));
        assert_eq!(files, ["/w/src/p/k/__init__.py", "/w/src/p/k.py", "/w/src/p/k.tile"]);
    }
}
