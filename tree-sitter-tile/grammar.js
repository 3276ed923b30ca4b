/**
 * @file The grammar of tile kernel files: Python, and scenario lines.
 *
 * Python's rules come from the published grammar. Besides mistakes in it, three things differ:
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

/**
 * The rule without the choices that are, or wrap, one of the named symbols or strings.
 *
 * @param {any} rule
 * @param {string[]} dropped
 */
function without(rule, dropped) {
  const isDropped = member =>
    dropped.includes(member.type === 'ALIAS' ? member.value : member.name ?? member.value);
  return {
    ...rule,
    ...(rule.members && {
      members: rule.members.filter(member => !isDropped(member)).map(member => without(member, dropped)),
    }),
    ...(rule.content && {content: without(rule.content, dropped)}),
  };
}

/** One or more, separated by commas, with an optional comma at the end. */
function commaSeparated(rule) {
  return seq(rule, repeat(seq(',', rule)), optional(','));
}

/**
 * The rules of all statements with a suite, with a rule for the colon in front of it. The
 * parser inserts a missing token only where a rule ends, so this lets it go on after a
 * header without its colon.
 */
const statementsWithSuite = Object.fromEntries([
  'if_statement',
  'elif_clause',
  'else_clause',
  'match_statement',
  'case_clause',
  'for_statement',
  'while_statement',
  'try_statement',
  'except_clause',
  'finally_clause',
  'with_statement',
  'function_definition',
  'class_definition',
].map(name => [name, ($, inherited) => ({
  ...inherited,
  members: inherited.members.map(member => member.value === ':' ? $._suite_colon : member),
})]));

/** Rules of Python 2, which their words and conflicts leave together with. */
const PYTHON_2 = ['print_statement', 'exec_statement'];

module.exports = grammar(python, {
  name: 'tile',

  extras: ($, inherited) => [...inherited, $.scenario_line],

  conflicts: ($, inherited) => [
    ...inherited.filter(set => !set.some(symbol => PYTHON_2.includes(symbol.name))),
  ],

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
    $.unfinished,
    $._allow,
    $.diagnostic_code,

    // The scanner follows brackets by itself, so it alone produces them.
    '(',
    ')',
    '[',
    ']',
    '{',
    '}',

    // Never produced. That they are valid tells the scanner where it is: 'class' where a
    // statement may begin, ':' where a header lacks its suite, ',' after an element.
    'class',
    ':',
    ',',

    // In no rule, so valid only during error recovery. Produced for text that cannot
    // continue a scenario line, to start a recovery.
    $._error_sentinel,
  ],

  rules: {
    ...statementsWithSuite,

    _suite_colon: _ => ':',

    // A suite without statements is an empty block; the scanner indents it all the same.
    _suite: $ => choice(
      alias($._simple_statements, $.block),
      seq($._indent, $.block),
    ),

    _match_block: $ => seq(
      $._indent,
      repeat(field('alternative', $.case_clause)),
      $._dedent,
    ),

    _simple_statement: (_, inherited) => without(inherited, PYTHON_2),

    raise_statement: $ => seq(
      'raise',
      optional(seq($.expression, optional(seq('from', field('cause', $.expression))))),
    ),

    parameter: (_, inherited) => without(inherited, ['tuple_pattern']),

    default_parameter: (_, inherited) => without(inherited, ['tuple_pattern']),

    // `as` belongs to `with` and `except` alone, and what is unpacked is any expression.
    expression: $ => choice(
      $.comparison_operator,
      $.not_operator,
      $.boolean_operator,
      $.lambda,
      $.primary_expression,
      $.conditional_expression,
      $.named_expression,
      $.list_splat,
    ),

    primary_expression: (_, inherited) => without(inherited, ['list_splat']),

    list_splat: $ => prec(python.PREC.lambda, seq('*', $.expression)),

    _collection_elements: (_, inherited) =>
      without(inherited, ['list_splat', 'parenthesized_list_splat']),

    with_item: $ => prec.dynamic(1, field('value', choice($.expression, $.as_pattern))),

    // A list of values is an `expression_list`, also where it looks like a list of targets.
    _right_hand_side: (_, inherited) => without(inherited, ['pattern_list']),

    _f_expression: (_, inherited) => without(inherited, ['pattern_list']),

    // An annotation is an expression like another. What else the published grammar takes for one
    // keeps `a: list[int][0]` and `a: array[:, 2]` from being read.
    type: $ => choice($.expression, $.splat_type),

    // Type parameters can have bounds and defaults.
    type_parameter: $ => seq(
      '[',
      commaSeparated(seq(
        choice($.type, alias($._bounded_type, $.type)),
        optional(seq('=', field('default', $.type))),
      )),
      ']',
    ),

    _bounded_type: $ => $.constrained_type,

    type_alias_statement: $ => prec.dynamic(1, seq(
      'type',
      field('left', choice($.type, alias($._generic_name, $.type))),
      '=',
      field('right', $.type),
    )),

    _generic_name: $ => $.generic_type,

    // `&` binds tighter than `^`; the published grammar has it the other way round.
    binary_operator: (_, inherited) => ({
      ...inherited,
      members: inherited.members.map(member => {
        const operator = member.content.members[1].content.value;
        const value = {'^': python.PREC.bitwise_and, '&': python.PREC.xor}[operator];
        return {...member, value: value ?? member.value};
      }),
    }),

    comparison_operator: (_, inherited) => without(inherited, ['<>']),

    // A comma needs an argument before it.
    argument_list: $ => seq(
      '(',
      optional(commaSeparated(choice(
        $.expression,
        $.dictionary_splat,
        $.keyword_argument,
      ))),
      ')',
    ),

    dictionary: $ => seq(
      '{',
      optional(commaSeparated(choice($.pair, $.dictionary_splat))),
      '}',
    ),

    // Words that are keywords in some places only.
    keyword_identifier: $ => alias(choice('type', 'match'), $.identifier),

    integer: _ => token(choice(
      /0[xX](_?[0-9a-fA-F])+/,
      /0[oO](_?[0-7])+/,
      /0[bB](_?[01])+/,
      /[0-9](_?[0-9])*[jJ]?/,
    )),

    // The parser of Python, though not its compiler, takes `from __future__ import *`.
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
      optional($._scenario_statements),
      choice(
        $._scenario_end,
        // An empty node: the line ended inside brackets or a string.
        $.unfinished,
      ),
    ),

    // As in Python, `;` separates statements, and all that follow a loop's `:` are its body.
    _scenario_statements: $ => choice(
      seq(
        field('statement', $._scenario_simple_statement),
        repeat(seq(';', field('statement', $._scenario_simple_statement))),
        optional(';'),
      ),
      field('statement', $.scenario_for),
      field('statement', $.allow),
    ),

    // A launch is the call of a subscript, as in host code. Another expression alone means
    // nothing in a scenario; it parses so that the message about it can be about its meaning.
    _scenario_simple_statement: $ => choice(
      $.assignment,
      $.augmented_assignment,
      $.assert_statement,
      $.expression,
    ),

    scenario_for: $ => seq(
      'for',
      field('left', $._left_hand_side),
      'in',
      field('right', $.expression),
      ':',
      field('body', $._scenario_simple_statement),
      repeat(seq(';', field('body', $._scenario_simple_statement))),
      optional(';'),
    ),

    allow: $ => seq(
      alias($._allow, 'allow'),
      commaSeparated(field('code', $.diagnostic_code)),
    ),
  },
});
