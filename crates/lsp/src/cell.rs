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
/// stood: magics (`%time`), commands of the shell (`!pip`), questions (`x?`), and whole cells in other
/// languages (`%%bash`).
pub(crate) fn without_magics(text: &str) -> String {
    let magic = text.trim_start().strip_prefix("%%");
    let name = magic.and_then(|magic| magic.split_whitespace().next());
    let is_foreign = name.is_some_and(|name| !PYTHON_CELLS.contains(&name));
    let mut python = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let code = line.trim_start();
        let first = code.chars().next().filter(|_| is_foreign || is_own(code.trim_end()));
        match first {
            Some(first) => {
                python.push_str(&line[..line.len() - code.len()]);
                python.push('#');
                python.extend(std::iter::repeat_n(' ', first.len_utf8() - 1));
                python.push_str(&code[first.len_utf8()..]);
            }
            None => python.push_str(line),
        }
    }
    python
}

/// Whether a line is IPython's own.
fn is_own(line: &str) -> bool {
    let is_magic = line.strip_prefix('%').is_some_and(|rest| {
        rest.trim_start_matches('%').starts_with(|c: char| c.is_ascii_alphabetic())
    });
    let is_command = line.starts_with('!') && !line.starts_with("!=");
    let is_question = line.strip_suffix('?').is_some_and(|asked| {
        let asked = asked.trim_end_matches('?');
        asked.chars().all(|c| c == '_' || c == '.' || c.is_alphanumeric())
    });
    is_magic || is_command || is_question || line.starts_with('?')
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
}
