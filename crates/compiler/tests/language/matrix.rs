//! A matrix of result types as a block with one line per cell.
//!
//! ````text
//! ```matrix y=()
//! x + y
//! x - y
//!
//! x \ y : i8   fp16
//! i8    : i8   fp16
//! 2**31 : r    fp16
//! fp8e5 : !/fp32 fp16
//! ! = type/operand
//! r = type/integer-range
//! ```
//! ````
//!
//! Above the table stand expressions in `x` and `y`; rows give `x`, columns `y`. Where there are
//! none, the rows are expressions in `y`. An operand is a type in Triton's spelling (a tile of four
//! zeros; `x=()` and `y=16x32` in the fence give another shape, `()` a run-time scalar; `y=dtype`
//! is the type itself), `*` and a type (a tile of four pointers), or anything else, which is put in
//! place. A cell is the type of the result's elements, `ok` where there is nothing to look at, or a
//! mark that the legend explains: the code of the error. `a/b` is `a` in Triton 3.6 and `b` in 3.9.
//! A module's text may stand first; it ends with a line `---`.
//!
//! `tests/triton/matrix.py` has the same rules.

use std::collections::BTreeMap;
use std::fmt::Write;

use tile_compiler::builtins::TritonVersion;
use tile_compiler::diagnostic::Code;

/// The lines of a matrix by what they are.
struct Matrix<'a> {
    module: &'a str,
    expressions: Vec<&'a str>,
    columns: Vec<&'a str>,
    rows: Vec<(&'a str, Vec<&'a str>)>,
    /// Errors by their marks.
    marks: BTreeMap<&'a str, String>,
}

impl<'a> Matrix<'a> {
    fn parse(text: &'a str) -> Matrix<'a> {
        let (module, table) = match text.find("---\n") {
            Some(end) => (&text[..end], &text[end + 4..]),
            None => ("", text),
        };
        let (mut expressions, mut rows, mut marks) = (Vec::new(), Vec::new(), BTreeMap::new());
        for line in table.lines() {
            if let Some((mark, code)) = line.split_once(" = ").filter(|(_, code)| is_code(code)) {
                marks.insert(mark, stated_error(code));
            } else if let Some((label, cells)) = line.rsplit_once(" : ") {
                rows.push((label.trim(), cells.split_whitespace().collect()));
            } else if !line.trim().is_empty() {
                expressions.push(line.trim());
            }
        }
        assert!(!rows.is_empty(), "a matrix has a table: {text}");
        let (_, columns) = rows.remove(0);
        Matrix { module, expressions, columns, rows, marks }
    }

    /// What a cell states of its line in `version`, and whether the line has a result.
    fn stated(&self, cell: &str, version: TritonVersion) -> (bool, String) {
        let cell = match (cell.split_once('/'), version) {
            (Some((old, _)), TritonVersion::V3_6) => old,
            (Some((_, new)), TritonVersion::V3_9) => new,
            (None, _) => cell,
        };
        match self.marks.get(cell) {
            Some(error) => (true, format!("  # {error}")),
            None if cell == "ok" => (false, String::new()),
            None => (true, format!("  # reveals: {}", element(cell))),
        }
    }
}

fn is_code(text: &str) -> bool {
    Code::from_name(text.trim_start_matches("launch ")).is_some()
}

/// An error of the legend as blocks state it.
fn stated_error(text: &str) -> String {
    match text.strip_prefix("launch ") {
        Some(code) => format!("launch error: {code}"),
        None => format!("error: {text}"),
    }
}

/// The type of elements as the evaluator names it.
fn element(cell: &str) -> String {
    match cell.split_at(1) {
        ("i", bits) => format!("int{bits}"),
        ("u", bits) => format!("uint{bits}"),
        _ => cell.to_owned(),
    }
}

/// The name of a type in `tl`, when `text` is the signature spelling of one.
fn dtype(text: &str) -> Option<String> {
    let number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    match text {
        "bf16" => Some("bfloat16".to_owned()),
        _ if text.starts_with("fp8e") => Some(format!("float8{}", &text[3..])),
        _ => {
            let (kind, digits) = text.split_at(text.find(|c: char| c.is_ascii_digit())?);
            let kind = match kind {
                "i" => "int",
                "u" => "uint",
                "fp" => "float",
                _ => return None,
            };
            number(digits).then(|| format!("{kind}{digits}"))
        }
    }
}

/// The expression of an operand of the table.
fn operand(text: &str, shape: Option<&str>) -> String {
    match (dtype(text), text.strip_prefix('*').and_then(dtype)) {
        (Some(dtype), _) if shape == Some("dtype") => format!("tl.{dtype}"),
        (Some(dtype), _) => {
            let extents = match shape.unwrap_or("4") {
                "()" => String::new(),
                shape => format!("{},", shape.replace('x', ", ")),
            };
            format!("tl.zeros(({extents}), tl.{dtype})")
        }
        (_, Some(dtype)) => {
            format!("(x_ptr.to(tl.pointer_type(tl.{dtype}), bitcast=True) + tl.arange(0, 4))")
        }
        _ => format!("({text})"),
    }
}

/// `expression` with its operands in the places of the names `x` and `y`.
fn substitute(expression: &str, x: &str, y: &str) -> String {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::new();
    let mut rest = expression;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| !word(c)).unwrap_or(rest.len()).max(first.len_utf8());
        match &rest[..end] {
            "x" => out.push_str(x),
            "y" => out.push_str(y),
            other => out.push_str(other),
        }
        rest = &rest[end..];
    }
    out
}

/// The text of the block that the matrix stands for.
pub(crate) fn expand(info: &str, text: &str, version: TritonVersion) -> String {
    let shapes: BTreeMap<&str, &str> =
        info.split_whitespace().filter_map(|word| word.split_once('=')).collect();
    let matrix = Matrix::parse(text);
    let mut out = matrix.module.to_owned();
    let indent = if out.is_empty() { "" } else { "    " };
    if !out.is_empty() {
        out.push_str("\n@triton.jit\ndef kernel(x_ptr, n):\n");
    }
    let expressions = match matrix.expressions.as_slice() {
        [] => vec![None],
        some => some.iter().copied().map(Some).collect(),
    };
    for expression in expressions {
        for (label, cells) in &matrix.rows {
            assert_eq!(cells.len(), matrix.columns.len(), "cells of `{label}`");
            for (column, cell) in matrix.columns.iter().zip(cells) {
                let y = operand(column, shapes.get("y").copied());
                let x = operand(label, shapes.get("x").copied());
                let line = substitute(expression.unwrap_or(label), &x, &y);
                let (result, stated) = matrix.stated(cell, version);
                let name = if result { "z = " } else { "" };
                let _ = writeln!(out, "{indent}{name}{line}{stated}");
            }
        }
    }
    out
}
