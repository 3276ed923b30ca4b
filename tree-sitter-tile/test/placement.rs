//! A scenario line is a comment wherever it stands: it never changes what is around it.

use tree_sitter::Node;

use crate::{
    corpus::cases,
    parse,
    shape::{shape, shape_of},
};

/// Scenario lines that are well formed, unfinished, malformed or no statement at all.
const LINES: [&str; 14] = [
    "# tile: n = 98_432",
    "#tile:kernel[(1,)](x)",
    "# tile: allow mask/other-without-mask",
    "# tile:",
    "# tile: foo(",
    "# tile: s = \"abc",
    "# tile: kernel[(1,)](x, y=[a +",
    "# tile: x =",
    "# tile: assert",
    "# tile: x = = )]}",
    "# tile: \"\"\"open",
    "# tile: f\"{x",
    "# tile: back \\",
    "# tile: the block of the matrix, then if: else",
];

/// The tree without comments and scenario lines.
fn code_shape(source: &str) -> String {
    let tree = parse(source);
    shape_of(tree.root_node(), &|node: Node| !matches!(node.kind(), "comment" | "scenario_line"))
}

/// The source with `line` inserted at every place where a comment can stand, one each.
fn placements<'a>(source: &'a str, line: &'a str) -> impl Iterator<Item = String> + 'a {
    let lines: Vec<&str> = source.lines().collect();
    (0..lines.len()).flat_map(move |index| {
        let lines = lines.clone();
        ["", "  ", "    ", "        "].into_iter().map(Some).chain([None]).map(move |indent| {
            let mut lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
            match indent {
                Some(indent) => lines.insert(index, format!("{indent}{line}")),
                None => lines[index] = format!("{} {line}", lines[index]),
            }
            lines.join("\n") + "\n"
        })
    })
}

#[test]
fn scenario_lines_do_not_change_the_code_around_them() {
    let sources = cases().into_iter().filter(|case| matches!(&*case.file, "kernels.txt"));
    for case in sources {
        for line in LINES {
            let comments = placements(&case.source, "# a comment");
            for (with_line, with_comment) in placements(&case.source, line).zip(comments) {
                let expected = code_shape(&with_comment);
                assert_eq!(code_shape(&with_line), expected, "{}:\n{with_line}", case.title);
            }
        }
    }
}

#[test]
fn errors_stay_within_the_scenario_line() {
    let pairs = LINES.iter().flat_map(|&first| LINES.map(|second| (first, second)));
    for (first, second, third) in pairs.flat_map(|(a, b)| LINES.map(|third| (a, b, third))) {
        let source = format!("x = 1\n{first}\n{second}\n{third}\ny = 2\n");
        let tree = parse(&source);
        let lines: Vec<_> = tree
            .root_node()
            .children(&mut tree.walk())
            .map(|child| (child.kind(), &source[child.byte_range()]))
            .collect();
        assert_eq!(
            lines,
            [
                ("expression_statement", "x = 1"),
                ("scenario_line", first),
                ("scenario_line", second),
                ("scenario_line", third),
                ("expression_statement", "y = 2"),
            ],
            "{}",
            shape(tree.root_node())
        );
    }
}
