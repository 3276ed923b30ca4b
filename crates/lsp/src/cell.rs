//! Cells of notebooks: Python with lines that are IPython's own.

use std::path::Path;

/// Cell magics whose cells hold Python.
const PYTHON_CELLS: [&str; 5] = ["capture", "prun", "python", "time", "timeit"];

/// Whether the document with this address as its path is a cell: clients name a cell by its notebook
/// and a fragment.
pub(crate) fn is_cell(path: &Path) -> bool {
    path.to_string_lossy().split('#').next().is_some_and(|notebook| notebook.ends_with(".ipynb"))
}

/// The text of a cell in which what is IPython's own is a comment, so that all else stands where it
/// stood: magics (`%time`), commands of the shell (`!pip`), questions (`x?`), lines that go on with
/// them after a backslash, and whole cells in other languages (`%%bash`). Where their outcome is a
/// value (`files = !ls`), a name stands that nothing is known of.
pub(crate) fn without_magics(text: &str) -> String {
    let magic = text.trim_start().strip_prefix("%%");
    let name = magic.and_then(|magic| magic.split_whitespace().next());
    let is_foreign = name.is_some_and(|name| !PYTHON_CELLS.contains(&name));
    let mut python = String::with_capacity(text.len());
    let mut goes_on = false;
    for line in text.split_inclusive('\n') {
        let blank = line.len() - line.trim_start().len();
        let own = match is_foreign || goes_on || is_own(line.trim()) {
            true => Some((blank, "#")),
            false => own_value(line).map(|at| (at, "_#")),
        };
        match own {
            Some((at, instead)) => {
                python.push_str(&line[..at]);
                put_instead(&mut python, &line[at..], instead);
            }
            None => python.push_str(line),
        }
        goes_on = own.is_some() && line.trim_end().ends_with('\\');
    }
    python
}

/// Adds `line` with `instead` in place of as many of its first characters, in as many bytes.
fn put_instead(python: &mut String, line: &str, instead: &str) {
    let mut rest = line;
    for new in instead.chars() {
        let Some(old) = rest.chars().next().filter(|old| !matches!(old, '\r' | '\n')) else {
            break;
        };
        python.push(new);
        python.extend(std::iter::repeat_n(' ', old.len_utf8() - 1));
        rest = &rest[old.len_utf8()..];
    }
    python.push_str(rest);
}

/// Whether a line is IPython's own.
fn is_own(line: &str) -> bool {
    let is_question = line.strip_suffix('?').is_some_and(|asked| {
        let asked = asked.trim_end_matches('?');
        asked.chars().all(|c| c == '_' || c == '.' || c.is_alphanumeric())
    });
    let magic = line.strip_prefix('%').filter(|rest| rest.starts_with('%')).unwrap_or(line);
    is_magic(magic) || is_command(line) || is_question || line.starts_with('?')
}

/// Where a magic or a command stands in a line, the outcome of which is given to variables.
fn own_value(line: &str) -> Option<usize> {
    let (targets, value) = line.split_once('=')?;
    let is_target = |c: char| c.is_alphanumeric() || "_.,[] \t".contains(c);
    let own = value.trim_start_matches([' ', '\t']);
    let is_value = is_magic(own) || is_command(own);
    (is_value && !targets.trim().is_empty() && targets.chars().all(is_target))
        .then(|| line.len() - own.len())
}

/// `%name`.
fn is_magic(code: &str) -> bool {
    code.strip_prefix('%').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// `!command`.
fn is_command(code: &str) -> bool {
    code.starts_with('!') && !code.starts_with("!=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_told_by_their_notebooks() {
        assert!(is_cell(Path::new("vscode-notebook-cell:/work/nb.ipynb#W0sZmls")));
        assert!(!is_cell(Path::new("/work/nb.py")) && !is_cell(Path::new("untitled:a.ipynb.py")));
    }

    #[test]
    fn only_what_is_not_python_becomes_a_comment() {
        let cell = "\
%%time
  %matplotlib inline
!pip install triton
kernel.run??
x = (a
    % b
    != c)  # right?
f\"{x!r}\"
";
        let python = cell.replace("%%", "#%").replace("%m", "#m").replace("!p", "#p");
        assert_eq!(without_magics(cell), python.replace("kernel.run", "#ernel.run"));
        assert_eq!(without_magics("%%bash\nls | wc\néa\n"), "#%bash\n#s | wc\n# a\n");
    }

    #[test]
    fn what_goes_on_after_a_backslash_is_no_python_either() {
        let cell = "!pip install \\\n    triton \\\n    torch\nx = 1 + \\\n    2\n";
        let python = "#pip install \\\n    #riton \\\n    #orch\nx = 1 + \\\n    2\n";
        assert_eq!(without_magics(cell), python);
    }

    #[test]
    fn outcomes_of_commands_are_values() {
        assert_eq!(without_magics("files = !ls -l\n"), "files = _#s -l\n");
        assert_eq!(without_magics("a, b[0] = %env HOME"), "a, b[0] = _#nv HOME");
        assert_eq!(without_magics("x =!é\n"), "x =_# \n");
        for python in ["x = y % z\n", "x != !y\n", "f(a = !b)\n", "x = (a\n  % b)\n", "x == %y\n"] {
            assert_eq!(without_magics(python), python);
        }
    }
}
