/**
 * @file The grammar of tile kernel files: Python, and scenario lines.
 *
 * Python's rules come from the published grammar. Three things differ:
 *
 * - The external scanner (src/scanner.c) is a full tokenizer of Python's context: it
 *   follows brackets, strings and replacement fields as well as indentation. Brackets,
 *   comments and the text of format specifiers are therefore external tokens.
 * - A comment that begins `# tile:` is a `scenario_line` whose statement has nodes of its
 *   own. It is an extra, as a comment is, so it never changes the structure around it.
 * - Statements of Python 2 are left out.
 */

/// <reference types="tree-sitter-cli/dsl" />
// @ts-check

const python = require('tree-sitter-python/grammar');

module.exports = grammar(python, {
  name: 'tile',

  extras: ($, inherited) => [...inherited, $.scenario_line],

  conflicts: ($, inherited) => [...inherited, [$.launch, $.subscript]],

  externals: $ => [
    $._newline,
    $._indent,
    $._dedent,
    $.string_start,
    $._string_content,
    $.escape_interpolation,
    $.string_end,
    $._format_text,
    $.comment,
    $._scenario_start,
    $._scenario_end,
    $._allow,
    $.diagnostic_code,

    // The scanner follows brackets by itself, so it alone produces them.
    '(',
    ')',
    '[',
    ']',
    '{',
    '}',

    // Never produced: valid exactly where a statement may begin, which tells the scanner
    // that an end of line there does not end anything.
    'class',

    // In no rule, so valid only during error recovery. Produced for text that cannot
    // continue a scenario line, to start a recovery.
    $._error_sentinel,
  ],

  rules: {
    future_import_statement: $ => seq(
      'from',
      '__future__',
      'import',
      choice(
        $.wildcard_import,
        $._import_list,
        seq('(', $._import_list, ')'),
      ),
    ),

    format_specifier: $ => seq(
      ':',
      repeat(choice(
        $._format_text,
        alias($.interpolation, $.format_expression),
      )),
    ),

    // Scenario lines

    scenario_line: $ => seq(
      $._scenario_start,
      field('statement', optional($._scenario_statement)),
      $._scenario_end,
    ),

    _scenario_statement: $ => choice(
      $._scenario_simple_statement,
      $.scenario_for,
      $.allow,
    ),

    // An expression alone means nothing in a scenario. It parses so that the message about
    // it can be about its meaning.
    _scenario_simple_statement: $ => choice(
      $.assignment,
      $.augmented_assignment,
      $.assert_statement,
      $.launch,
      $.expression,
    ),

    launch: $ => prec.dynamic(1, prec(python.PREC.call, seq(
      field('kernel', $.primary_expression),
      '[',
      field('grid', $.expression),
      repeat(seq(',', field('grid', $.expression))),
      optional(','),
      ']',
      field('arguments', $.argument_list),
    ))),

    scenario_for: $ => seq(
      'for',
      field('left', $._left_hand_side),
      'in',
      field('right', $.expression),
      ':',
      field('body', $._scenario_simple_statement),
    ),

    allow: $ => seq(
      alias($._allow, 'allow'),
      field('code', $.diagnostic_code),
      repeat(seq(',', field('code', $.diagnostic_code))),
    ),
  },
});
