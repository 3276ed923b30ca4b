//! The editor queries compile and capture what they promise.

use std::fmt::Write;

use tree_sitter::{Language, Query, QueryCursor, StreamingIterator};
use tree_sitter_tile::{FOLDS_QUERY, HIGHLIGHTS_QUERY, LOCALS_QUERY, TAGS_QUERY};

use crate::parse;

fn query(text: &str) -> Query {
    Query::new(&Language::new(tree_sitter_tile::LANGUAGE), text).unwrap_or_else(|e| panic!("{e}"))
}

/// The last capture of each node with its text, in text order.
fn captures(query_text: &str, source: &str) -> String {
    let (query, tree) = (query(query_text), parse(source));
    let mut cursor = QueryCursor::new();
    let mut matches = cursor.captures(&query, tree.root_node(), source.as_bytes());
    let mut found: Vec<(std::ops::Range<usize>, &str)> = Vec::new();
    while let Some((matched, index)) = matches.next() {
        let capture = matched.captures[*index];
        let name = query.capture_names()[capture.index as usize];
        found.retain(|(range, _)| *range != capture.node.byte_range());
        found.push((capture.node.byte_range(), name));
    }
    found.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    found.into_iter().fold(String::new(), |mut out, (range, name)| {
        let text = source[range].lines().next().unwrap_or_default();
        writeln!(out, "{name:<24} {text}").expect("writing to a string");
        out
    })
}

const KERNEL: &str = r#"
import triton.language as tl

# tile: n = 1024  # elements
# tile: add[(cdiv(n, 64),)](randn(n), n, BLOCK=64)
# tile: assert allclose(out, 1.0)
# tile: allow mask/other-without-mask
@triton.jit
def add(x_ptr, n, BLOCK: tl.constexpr):
    """Adds."""
    pid = tl.program_id(axis=0)
    x = tl.load(x_ptr + pid, mask=pid < n, other=None)
    helper(f"{x:>3}\n")
"#;

#[test]
fn highlights() {
    expect_test::expect![[r#"
        keyword.import           import
        module                   triton
        punctuation.delimiter    .
        module                   language
        keyword                  as
        module                   tl
        comment.documentation    # tile: n = 1024  # elements
        variable                 n
        operator                 =
        number                   1024
        comment                  # elements
        comment.documentation    # tile: add[(cdiv(n, 64),)](randn(n), n, BLOCK=64)
        function.call            add
        punctuation.bracket      [
        punctuation.bracket      (
        function.call            cdiv
        punctuation.bracket      (
        variable                 n
        punctuation.delimiter    ,
        number                   64
        punctuation.bracket      )
        punctuation.delimiter    ,
        punctuation.bracket      )
        punctuation.bracket      ]
        punctuation.bracket      (
        function.call            randn
        punctuation.bracket      (
        variable                 n
        punctuation.bracket      )
        punctuation.delimiter    ,
        variable                 n
        punctuation.delimiter    ,
        variable.parameter       BLOCK
        operator                 =
        number                   64
        punctuation.bracket      )
        comment.documentation    # tile: assert allclose(out, 1.0)
        keyword                  assert
        function.builtin         allclose
        punctuation.bracket      (
        variable                 out
        punctuation.delimiter    ,
        number.float             1.0
        punctuation.bracket      )
        comment.documentation    # tile: allow mask/other-without-mask
        keyword                  allow
        label                    mask/other-without-mask
        attribute                @
        module                   triton
        punctuation.delimiter    .
        attribute                jit
        keyword                  def
        function                 add
        punctuation.bracket      (
        variable.parameter       x_ptr
        punctuation.delimiter    ,
        variable.parameter       n
        punctuation.delimiter    ,
        variable.parameter       BLOCK
        punctuation.delimiter    :
        module                   tl
        punctuation.delimiter    .
        type.qualifier           constexpr
        punctuation.bracket      )
        punctuation.delimiter    :
        string.documentation     """Adds."""
        variable                 pid
        operator                 =
        module                   tl
        punctuation.delimiter    .
        function.builtin         program_id
        punctuation.bracket      (
        variable.parameter       axis
        operator                 =
        number                   0
        punctuation.bracket      )
        variable                 x
        operator                 =
        module                   tl
        punctuation.delimiter    .
        function.builtin         load
        punctuation.bracket      (
        variable                 x_ptr
        operator                 +
        variable                 pid
        punctuation.delimiter    ,
        variable.parameter       mask
        operator                 =
        variable                 pid
        operator                 <
        variable                 n
        punctuation.delimiter    ,
        variable.parameter       other
        operator                 =
        constant.builtin         None
        punctuation.bracket      )
        function.call            helper
        punctuation.bracket      (
        string                   f"{x:>3}\n"
        none                     {x:>3}
        punctuation.special      {
        variable                 x
        string.special           :>3
        punctuation.delimiter    :
        punctuation.special      }
        string.escape            \n
        punctuation.bracket      )
    "#]]
    .assert_eq(&captures(HIGHLIGHTS_QUERY, KERNEL));
}

#[test]
fn locals() {
    expect_test::expect![[r#"
        local.scope              import triton.language as tl
        local.reference          triton
        local.reference          language
        local.definition.import  tl
        local.definition.var     n
        local.reference          add
        local.reference          cdiv
        local.reference          n
        local.reference          randn
        local.reference          n
        local.reference          n
        local.reference          BLOCK
        local.reference          allclose
        local.reference          out
        local.reference          triton
        local.reference          jit
        local.scope              def add(x_ptr, n, BLOCK: tl.constexpr):
        local.definition.function add
        local.definition.parameter x_ptr
        local.definition.parameter n
        local.definition.parameter BLOCK
        local.reference          tl
        local.reference          constexpr
        local.definition.var     pid
        local.reference          tl
        local.reference          program_id
        local.reference          axis
        local.definition.var     x
        local.reference          tl
        local.reference          load
        local.reference          x_ptr
        local.reference          pid
        local.reference          mask
        local.reference          pid
        local.reference          n
        local.reference          other
        local.reference          helper
        local.reference          x
    "#]]
    .assert_eq(&captures(LOCALS_QUERY, KERNEL));
}

#[test]
fn folds() {
    expect_test::expect![[r#"
        fold                     import triton.language as tl
        fold                     # tile: n = 1024  # elements
        fold                     # elements
        fold                     # tile: add[(cdiv(n, 64),)](randn(n), n, BLOCK=64)
        fold                     (cdiv(n, 64),)
        fold                     (n, 64)
        fold                     (randn(n), n, BLOCK=64)
        fold                     (n)
        fold                     # tile: assert allclose(out, 1.0)
        fold                     (out, 1.0)
        fold                     # tile: allow mask/other-without-mask
        fold                     def add(x_ptr, n, BLOCK: tl.constexpr):
        fold                     (x_ptr, n, BLOCK: tl.constexpr)
        fold                     """Adds."""
        fold                     (axis=0)
        fold                     (x_ptr + pid, mask=pid < n, other=None)
        fold                     (f"{x:>3}\n")
        fold                     f"{x:>3}\n"
    "#]]
    .assert_eq(&captures(FOLDS_QUERY, KERNEL));
}

#[test]
fn tags() {
    expect_test::expect![[r#"
        reference.call           add[(cdiv(n, 64),)](randn(n), n, BLOCK=64)
        name                     add
        reference.call           cdiv(n, 64)
        name                     cdiv
        reference.call           randn(n)
        name                     randn
        reference.call           allclose(out, 1.0)
        name                     allclose
        definition.function      def add(x_ptr, n, BLOCK: tl.constexpr):
        name                     add
        reference.call           tl.program_id(axis=0)
        name                     program_id
        reference.call           tl.load(x_ptr + pid, mask=pid < n, other=None)
        name                     load
        reference.call           helper(f"{x:>3}\n")
        name                     helper
    "#]]
    .assert_eq(&captures(TAGS_QUERY, KERNEL));
}
