// The external scanner: everything in Python's lexical structure that depends on context.
//
// It keeps two stacks, as Python's own tokenizer does: the widths of the open indentation
// levels, and the open contexts (brackets, strings, replacement fields, a scenario line).
// Because it alone produces brackets and string delimiters, the context is known from the
// text and does not have to be guessed from what the parser expects.
//
// Line ends are zero-width tokens placed before the line break:
//
// - NEWLINE ends a statement. It is also produced where the parser does not expect it, as
//   in `x =`, so that a broken statement ends with its line.
// - INDENT and DEDENT follow the indentation of the next line of code. Comments do not
//   count, except that a comment as deep as the block it follows stays in the block.
//
// A scenario line, `# tile: STATEMENT`, lies between SCENARIO_START and SCENARIO_END, or
// UNFINISHED. The latter are produced at the end of the line whatever the parser expects,
// so a malformed statement never reaches into the next line.

#include "tree_sitter/parser.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// In the order of `externals` in grammar.js.
enum TokenType {
    NEWLINE,
    INDENT,
    DEDENT,
    STRING_START,
    STRING_CONTENT,
    ESCAPE_INTERPOLATION,
    STRING_END,
    FORMAT_TEXT,
    COMMENT,
    SCENARIO_START,
    SCENARIO_END,
    UNFINISHED,
    ALLOW,
    DIAGNOSTIC_CODE,
    OPEN_PAREN,
    CLOSE_PAREN,
    OPEN_BRACKET,
    CLOSE_BRACKET,
    OPEN_BRACE,
    CLOSE_BRACE,
    STATEMENT_START,
    COLON,
    COMMA,
    ERROR_SENTINEL,
};

// A context is one byte: its kind in the low bits, a string's properties above.
typedef uint8_t Context;

enum {
    PAREN,
    BRACKET,
    BRACE,
    FIELD, // the braces of a replacement field in a format string
    STRING,
    SCENARIO,
    SCENARIO_CODES,      // a scenario line after `allow`
    SCENARIO_UNFINISHED, // a scenario line that ended inside brackets or a string
    KIND_MASK = 7,

    DOUBLE_QUOTED = 1 << 3,
    TRIPLE = 1 << 4,
    RAW = 1 << 5,
    BYTES = 1 << 6,
    FORMAT = 1 << 7,
};

// Python allows 200 open brackets and 100 levels of indentation. What is deeper is not
// recorded, which bounds the serialized state.
enum { MAX_CONTEXTS = 200, MAX_INDENTS = 200 };

enum { TAB_WIDTH = 8, MAX_WORD = 64, MAX_PREFIX = 2, MAX_FIELD_LOOKAHEAD = 1000 };

typedef struct {
    // Indentation of the next line of code plus one, known from the last line end until
    // that line; 0 when unknown. It saves looking past a run of comments at each of them.
    uint16_t code_indent;
    // Column plus one of the last NEWLINE that the parser had not asked for, so that it is
    // not produced again and again at the same place; 0 when there is none.
    uint16_t forced_column;
    uint8_t context_count;
    uint8_t indent_count;
    Context contexts[MAX_CONTEXTS];
    uint16_t indents[MAX_INDENTS];
} Scanner;

_Static_assert(
    6 + MAX_CONTEXTS + 2 * MAX_INDENTS <= TREE_SITTER_SERIALIZATION_BUFFER_SIZE,
    "the serialized state fits"
);

static void advance(TSLexer *lexer) { lexer->advance(lexer, false); }

static void skip(TSLexer *lexer) { lexer->advance(lexer, true); }

// The lexer is asked only where the text can end: it shows NUL there.
static bool at_eof(TSLexer *lexer) { return lexer->lookahead == 0 && lexer->eof(lexer); }

static bool at_line_break(TSLexer *lexer) {
    return lexer->lookahead == '\n' || lexer->lookahead == '\r';
}

static bool at_line_end(TSLexer *lexer) { return at_line_break(lexer) || at_eof(lexer); }

static bool is_letter(int32_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(int32_t c) { return c >= '0' && c <= '9'; }

static bool is_code_char(int32_t c) {
    return is_letter(c) || is_digit(c) || c == '/' || c == '-' || c == '*';
}

static uint16_t saturate(uint32_t value) {
    return value < UINT16_MAX ? (uint16_t)value : UINT16_MAX - 1;
}

static bool emit(TSLexer *lexer, enum TokenType token) {
    lexer->result_symbol = token;
    return true;
}

// Contexts

static unsigned kind(Context context) { return context & KIND_MASK; }

static bool top_is(const Scanner *scanner, unsigned wanted) {
    return scanner->context_count > 0 &&
        kind(scanner->contexts[scanner->context_count - 1]) == wanted;
}

static bool push(Scanner *scanner, Context context) {
    if (scanner->context_count == MAX_CONTEXTS) return false;
    scanner->contexts[scanner->context_count++] = context;
    return true;
}

// The innermost context of a scenario line, or -1 outside of one.
static int scenario_index(const Scanner *scanner) {
    for (int i = scanner->context_count - 1; i >= 0; i--) {
        if (kind(scanner->contexts[i]) >= SCENARIO) return i;
    }
    return -1;
}

// Closes the innermost bracket of the kind and what is open inside it. A bracket that
// closes nothing leaves the contexts alone.
static void close_bracket(Scanner *scanner, unsigned closed) {
    for (int i = scanner->context_count - 1; i >= 0; i--) {
        unsigned k = kind(scanner->contexts[i]);
        if (k == closed || (k == FIELD && closed == BRACE)) {
            scanner->context_count = (uint8_t)i;
            return;
        }
        if (k >= FIELD) return;
    }
}

// Closes contexts until no string that must end on its line is left open.
static void close_line_strings(Scanner *scanner) {
    for (int i = 0; i < scanner->context_count; i++) {
        Context context = scanner->contexts[i];
        if (kind(context) == STRING && !(context & TRIPLE)) {
            scanner->context_count = (uint8_t)i;
            return;
        }
    }
}

static bool in_triple_string(const Scanner *scanner) {
    for (int i = 0; i < scanner->context_count; i++) {
        Context context = scanner->contexts[i];
        if (kind(context) == STRING && context & TRIPLE) return true;
    }
    return false;
}

// The token that closes a context.
static enum TokenType closer(Context context) {
    switch (kind(context)) {
        case PAREN:
            return CLOSE_PAREN;
        case BRACKET:
            return CLOSE_BRACKET;
        case BRACE:
        case FIELD:
            return CLOSE_BRACE;
        case STRING:
            return STRING_END;
        default:
            return SCENARIO_END;
    }
}

static uint16_t current_indent(const Scanner *scanner) {
    return scanner->indent_count > 0 ? scanner->indents[scanner->indent_count - 1] : 0;
}

// Line structure

static bool emit_newline(Scanner *scanner, TSLexer *lexer, uint16_t indent) {
    scanner->context_count = 0;
    scanner->forced_column = 0;
    scanner->code_indent = indent + 1;
    return emit(lexer, NEWLINE);
}

static bool emit_forced_newline(
    Scanner *scanner, TSLexer *lexer, uint16_t indent, uint16_t column
) {
    emit_newline(scanner, lexer, indent);
    scanner->forced_column = column + 1;
    return true;
}

static bool emit_indent(Scanner *scanner, TSLexer *lexer, uint16_t indent) {
    if (scanner->indent_count == MAX_INDENTS) return emit_newline(scanner, lexer, indent);
    // Code that is not deeper leaves the suite empty: the level ends where it begins.
    uint16_t current = current_indent(scanner);
    uint16_t level = indent > current ? indent : saturate((uint32_t)current + 1);
    scanner->context_count = 0;
    scanner->forced_column = 0;
    scanner->code_indent = indent + 1;
    scanner->indents[scanner->indent_count++] = level;
    return emit(lexer, INDENT);
}

static bool emit_dedent(Scanner *scanner, TSLexer *lexer, uint16_t indent) {
    scanner->context_count = 0;
    scanner->forced_column = 0;
    scanner->code_indent = indent + 1;
    if (scanner->indent_count > 0) scanner->indent_count--;
    return emit(lexer, DEDENT);
}

// The end of a scenario line. What is open inside it is closed first, each with an empty
// token, so that the statement has its nodes; the last token tells that this happened.
static bool scan_scenario_end(Scanner *scanner, TSLexer *lexer, int scenario) {
    Context *line = &scanner->contexts[scenario];
    if (scanner->context_count > scenario + 1) {
        *line = SCENARIO_UNFINISHED;
        return emit(lexer, closer(scanner->contexts[--scanner->context_count]));
    }
    bool unfinished = kind(*line) == SCENARIO_UNFINISHED;
    scanner->context_count--;
    return emit(lexer, unfinished ? UNFINISHED : SCENARIO_END);
}

// Skips white space within a line and returns the column that Python's rules give.
static uint32_t skip_blanks(TSLexer *lexer, uint32_t column) {
    for (;;) {
        switch (lexer->lookahead) {
            case ' ':
                column++;
                break;
            case '\t':
                column += TAB_WIDTH - column % TAB_WIDTH;
                break;
            case '\f':
                column = 0;
                break;
            case 0xFEFF:
            case 0x2060:
            case 0x200B:
                break;
            default:
                return column;
        }
        skip(lexer);
    }
}

// Skips the rest of the line, the line break and all blank lines that follow.
static uint32_t skip_to_text(TSLexer *lexer) {
    uint32_t column = 0;
    while (at_line_break(lexer)) {
        skip(lexer);
        column = skip_blanks(lexer, 0);
    }
    return at_eof(lexer) ? 0 : column;
}

// Skips blank lines and comments, and returns the indentation of the next line of code.
static uint32_t skip_to_code(TSLexer *lexer, uint32_t column) {
    while (lexer->lookahead == '#') {
        while (!at_line_end(lexer)) skip(lexer);
        column = skip_to_text(lexer);
    }
    return at_eof(lexer) ? 0 : column;
}

// Decides which token, if any, the end of a line outside of brackets is. The lexer is at
// the next line with any text, `indent` is where that text begins.
static bool scan_line_end(
    Scanner *scanner, TSLexer *lexer, const bool *valid, uint16_t indent, uint16_t column
) {
    bool recovering = valid[ERROR_SENTINEL];
    bool at_comment = lexer->lookahead == '#';
    bool asked = !recovering && (valid[NEWLINE] || valid[INDENT]);
    bool between = !recovering && !asked && (valid[STATEMENT_START] || valid[DEDENT]);
    bool known = at_comment && scanner->code_indent > 0;
    bool again = recovering && scanner->forced_column == column + 1;

    uint16_t current = current_indent(scanner);
    bool comment_stays = at_comment && indent >= current;
    uint16_t code_indent = indent;
    if (between || again) {
        if (comment_stays) return false;
        if (known) code_indent = scanner->code_indent - 1;
        else if (current > 0) code_indent = saturate(skip_to_code(lexer, indent));
    } else {
        code_indent = saturate(skip_to_code(lexer, indent));
    }

    if (asked) {
        if (valid[INDENT]) return emit_indent(scanner, lexer, code_indent);
        return emit_newline(scanner, lexer, code_indent);
    }
    if (between) {
        // The parser can be left in a block that the scanner has closed.
        bool orphan = valid[DEDENT] && scanner->indent_count == 0 && code_indent == 0;
        if (code_indent < current || orphan) return emit_dedent(scanner, lexer, code_indent);
        return false;
    }
    if (recovering && code_indent < current) return emit_dedent(scanner, lexer, code_indent);
    if (again || (recovering && at_eof(lexer))) return false;
    // A header without its colon still has a suite.
    bool header = !recovering && valid[COLON] && !valid[COMMA];
    if (header && code_indent > current) return emit_indent(scanner, lexer, code_indent);
    return emit_forced_newline(scanner, lexer, code_indent, column);
}

// Ends a statement whose brackets were left open, at a line that begins the next one. Each
// call closes one bracket with an empty token. The outermost one is left to the parser,
// which then reports it as missing. That works where nothing else is missing: where the
// bracket is one of several things that could follow, not the only one or none of them.
static bool scan_unclosed(
    Scanner *scanner, TSLexer *lexer, const bool *valid, uint16_t indent
) {
    enum TokenType token = closer(scanner->contexts[scanner->context_count - 1]);
    bool outermost = scanner->context_count == 1;
    bool only_missing = valid[token] && (valid[COMMA] || valid[STRING_START]);
    if (valid[ERROR_SENTINEL] || (outermost && only_missing)) {
        return emit_newline(scanner, lexer, saturate(skip_to_code(lexer, indent)));
    }
    scanner->context_count--;
    return emit(lexer, token);
}

// The innermost string around the lexer, or 0 if it is in none.
static Context innermost_string(const Scanner *scanner) {
    for (int i = scanner->context_count - 1; i >= 0; i--) {
        if (kind(scanner->contexts[i]) == STRING) return scanner->contexts[i];
    }
    return 0;
}

// Strings

// The properties of a string with this prefix, or -1 if there is no such prefix.
static int string_prefix(const char *word, unsigned length) {
    static const struct {
        const char *prefix;
        int flags;
    } table[] = {
        {"", 0},
        {"u", 0},
        {"r", RAW},
        {"b", BYTES},
        {"br", BYTES | RAW},
        {"rb", BYTES | RAW},
        {"f", FORMAT},
        {"fr", FORMAT | RAW},
        {"rf", FORMAT | RAW},
        {"t", FORMAT},
        {"tr", FORMAT | RAW},
        {"rt", FORMAT | RAW},
    };
    if (length > MAX_PREFIX) return -1;
    char lower[MAX_PREFIX + 1] = {0};
    for (unsigned i = 0; i < length; i++) lower[i] = (char)(word[i] | 0x20);
    for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(lower, table[i].prefix) == 0) return table[i].flags;
    }
    return -1;
}

static bool scan_string_start(Scanner *scanner, TSLexer *lexer, int flags) {
    int32_t quote = lexer->lookahead;
    Context context = (Context)(STRING | flags | (quote == '"' ? DOUBLE_QUOTED : 0));
    advance(lexer);
    lexer->mark_end(lexer);
    if (lexer->lookahead == quote) {
        advance(lexer);
        if (lexer->lookahead == quote) {
            advance(lexer);
            lexer->mark_end(lexer);
            context |= TRIPLE;
        }
    }
    return push(scanner, context) && emit(lexer, STRING_START);
}

// Ends a string that its line or the file leaves open. The lexer is at that end.
static bool scan_unterminated(Scanner *scanner, TSLexer *lexer) {
    int scenario = scenario_index(scanner);
    if (scenario >= 0) return scan_scenario_end(scanner, lexer, scenario);
    if (at_eof(lexer)) return emit_newline(scanner, lexer, 0);
    close_line_strings(scanner);
    uint16_t indent = saturate(skip_to_text(lexer));
    indent = saturate(skip_to_code(lexer, indent));
    // Inside brackets or a longer string, deeper lines belong to the same statement.
    bool goes_on = in_triple_string(scanner) ||
        (scanner->context_count > 0 && indent > current_indent(scanner));
    if (goes_on) return emit(lexer, ERROR_SENTINEL);
    return emit_newline(scanner, lexer, indent);
}

// Advances over the closing delimiter if the lexer is at one. Without one it may have
// advanced over quotes that belong to the string.
static bool advance_delimiter(TSLexer *lexer, Context string, bool *moved) {
    int32_t quote = string & DOUBLE_QUOTED ? '"' : '\'';
    *moved = false;
    for (int i = 0; i < (string & TRIPLE ? 3 : 1); i++) {
        if (lexer->lookahead != quote) return false;
        advance(lexer);
        *moved = true;
    }
    return true;
}

// A brace in a format string: doubled it is text, single it delimits a field.
static bool scan_string_brace(Scanner *scanner, TSLexer *lexer) {
    int32_t brace = lexer->lookahead;
    advance(lexer);
    if (lexer->lookahead == brace) {
        advance(lexer);
        lexer->mark_end(lexer);
        return emit(lexer, ESCAPE_INTERPOLATION);
    }
    lexer->mark_end(lexer);
    if (brace == '}') return emit(lexer, CLOSE_BRACE);
    return push(scanner, FIELD) && emit(lexer, OPEN_BRACE);
}

// Advances over characters that are nothing but text in every string.
static void skip_string_text(TSLexer *lexer) {
    int32_t c = lexer->lookahead;
    while (c == ' ' || (c > '\'' && c != '\\' && c != '{' && c != '}')) {
        advance(lexer);
        c = lexer->lookahead;
    }
}

// The next part of the string that is open. Returns false at an escape sequence, which is
// an internal token.
static bool scan_string(Scanner *scanner, TSLexer *lexer) {
    Context string = scanner->contexts[scanner->context_count - 1];
    bool in_scenario = scenario_index(scanner) >= 0;
    bool content = false;
    for (;;) {
        lexer->mark_end(lexer);
        bool breaks = at_line_break(lexer) && (in_scenario || !(string & TRIPLE));
        if (breaks || at_eof(lexer)) {
            return content ? emit(lexer, STRING_CONTENT) : scan_unterminated(scanner, lexer);
        }
        int32_t c = lexer->lookahead;
        if ((c == '{' || c == '}') && string & FORMAT) {
            return content ? emit(lexer, STRING_CONTENT) : scan_string_brace(scanner, lexer);
        }
        if (c == '\\') {
            advance(lexer);
            bool line_break = at_line_break(lexer);
            if (in_scenario && line_break) {
                content = true;
                continue;
            }
            bool text = string & RAW ||
                (string & BYTES && (lexer->lookahead == 'N' || lexer->lookahead == 'u' ||
                                    lexer->lookahead == 'U'));
            if (!text) return content && emit(lexer, STRING_CONTENT);
            bool escaped = lexer->lookahead == '\\' || lexer->lookahead == '\'' ||
                lexer->lookahead == '"' || line_break;
            if (escaped && !at_eof(lexer)) {
                bool carriage_return = lexer->lookahead == '\r';
                advance(lexer);
                if (carriage_return && lexer->lookahead == '\n') advance(lexer);
            }
            content = true;
            continue;
        }
        bool moved;
        if (advance_delimiter(lexer, string, &moved)) {
            if (content) return emit(lexer, STRING_CONTENT);
            lexer->mark_end(lexer);
            scanner->context_count--;
            return emit(lexer, STRING_END);
        }
        if (!moved) advance(lexer);
        skip_string_text(lexer);
        content = true;
    }
}

// The text of a format specifier, up to a brace, the end of the string or of the line.
static bool scan_format_text(Scanner *scanner, TSLexer *lexer, bool *done) {
    Context string = innermost_string(scanner);
    if (string == 0) return false;
    bool in_scenario = scenario_index(scanner) >= 0;
    bool content = false;
    *done = true;
    for (;;) {
        lexer->mark_end(lexer);
        bool breaks = at_line_break(lexer) && (in_scenario || !(string & TRIPLE));
        if (breaks || at_eof(lexer) || lexer->lookahead == '{' || lexer->lookahead == '}') {
            *done = content;
            return content && emit(lexer, FORMAT_TEXT);
        }
        bool moved;
        if (advance_delimiter(lexer, string, &moved)) {
            if (content) return emit(lexer, FORMAT_TEXT);
            // The field was left open: an empty brace closes it in front of the quote.
            scanner->context_count--;
            return emit(lexer, CLOSE_BRACE);
        }
        if (!moved) advance(lexer);
        content = true;
    }
}

// Whether a replacement field that reaches the left edge of its statement was left open.
// Python allows line breaks in it, but a field that meets its string's quote before its
// brace is broken. Looks ahead only where an internal token or a comment may follow.
static bool field_left_open(TSLexer *lexer, Context string) {
    int32_t quote = string & DOUBLE_QUOTED ? '"' : '\'';
    if (lexer->lookahead == '#') return true;
    int depth = 0;
    for (int i = 0; i < MAX_FIELD_LOOKAHEAD && !at_eof(lexer); i++) {
        if (lexer->lookahead == quote) return true;
        if (lexer->lookahead == '{') depth++;
        if (lexer->lookahead == '}' && depth-- == 0) return false;
        advance(lexer);
    }
    return true;
}

static bool at_bracket_or_quote(TSLexer *lexer) {
    return lexer->lookahead != 0 && lexer->lookahead < 0x80 &&
        strchr("()[]{}'\"", (char)lexer->lookahead) != NULL;
}

// Comments, brackets and words

// A comment, or the marker of a scenario line. During error recovery the whole line is a
// token to skip: as an extra it would cost nothing, and recovery would prefer to go on.
static bool scan_comment(Scanner *scanner, TSLexer *lexer, bool recovering) {
    advance(lexer);
    enum TokenType token = COMMENT;
    if (scenario_index(scanner) < 0) {
        while (lexer->lookahead == ' ' || lexer->lookahead == '\t') advance(lexer);
        const char *marker = "tile:";
        while (*marker != '\0' && lexer->lookahead == *marker) {
            advance(lexer);
            marker++;
        }
        bool is_scenario = *marker == '\0';
        if (is_scenario && recovering) token = ERROR_SENTINEL;
        if (is_scenario && !recovering && push(scanner, SCENARIO)) {
            lexer->mark_end(lexer);
            return emit(lexer, SCENARIO_START);
        }
    }
    while (!at_line_end(lexer)) advance(lexer);
    lexer->mark_end(lexer);
    return emit(lexer, token);
}

static bool scan_bracket(Scanner *scanner, TSLexer *lexer) {
    enum TokenType token;
    switch (lexer->lookahead) {
        case '(':
            push(scanner, PAREN);
            token = OPEN_PAREN;
            break;
        case '[':
            push(scanner, BRACKET);
            token = OPEN_BRACKET;
            break;
        case '{':
            push(scanner, BRACE);
            token = OPEN_BRACE;
            break;
        case ')':
            close_bracket(scanner, PAREN);
            token = CLOSE_PAREN;
            break;
        case ']':
            close_bracket(scanner, BRACKET);
            token = CLOSE_BRACKET;
            break;
        case '}':
            close_bracket(scanner, BRACE);
            token = CLOSE_BRACE;
            break;
        default:
            return false;
    }
    advance(lexer);
    lexer->mark_end(lexer);
    return emit(lexer, token);
}

// Whether a table, which a null pointer ends, has this word.
static bool is_among(const char *word, const char *const *table) {
    while (*table != NULL && strcmp(word, *table) != 0) table++;
    return *table != NULL;
}

// Whether a line that begins with this word begins a statement, even if a bracket before
// it is still open.
static bool is_statement_keyword(const char *word) {
    static const char *const table[] = {
        "assert", "break",  "class",  "continue", "def",  "del",   "elif",   "except", "finally",
        "global", "import", "nonlocal", "pass",   "raise", "return", "try",  "while",  "with",
        NULL,
    };
    return is_among(word, table);
}

// Whether this word can follow an operand inside brackets.
static bool goes_on_after_operand(const char *word) {
    static const char *const table[] = {
        "and", "as", "async", "else", "for", "if", "in", "is", "not", "or", NULL,
    };
    return is_among(word, table);
}

// Whether the parser is behind an operand inside brackets: it could be called, subscripted or
// followed by another element, and no other operand can begin.
static bool after_operand(const bool *valid) {
    return valid[OPEN_PAREN] && valid[COMMA] && !valid[OPEN_BRACE];
}

static bool scan_diagnostic_code(TSLexer *lexer) {
    while (is_code_char(lexer->lookahead)) advance(lexer);
    lexer->mark_end(lexer);
    return emit(lexer, DIAGNOSTIC_CODE);
}

// Whether the rest of a line ends with a comma, or closes a bracket that it did not open: then
// what it begins with is a parameter's annotation, and its default value follows.
static bool ends_as_parameter(TSLexer *lexer) {
    int32_t last = 0, quote = 0;
    unsigned depth = 0;
    for (; !at_line_end(lexer); advance(lexer)) {
        int32_t c = lexer->lookahead;
        if (quote != 0) {
            if (c == quote) quote = 0;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '(' || c == '[' || c == '{') {
            depth++;
        } else if (c == ')' || c == ']' || c == '}') {
            if (depth == 0) return true;
            depth--;
        } else if (c == '#') {
            break;
        }
        if (c != ' ' && c != '\t') last = c;
    }
    return last == ',' && depth == 0;
}

// Whether the lexer, after a word that begins a line inside brackets, is at the operator of
// an assignment, where neither a keyword argument nor a default value can stand.
static bool at_assignment(const Scanner *scanner, TSLexer *lexer, const bool *valid) {
    bool after_element = valid[COMMA];
    bool in_arguments = !after_element && valid[CLOSE_PAREN];
    bool in_lambda = !after_element && valid[COLON];
    if (valid[ERROR_SENTINEL] || in_arguments || in_lambda) return false;
    while (lexer->lookahead == ' ' || lexer->lookahead == '\t') advance(lexer);
    if (lexer->lookahead != '=') return false;
    advance(lexer);
    if (lexer->lookahead == '=') return false;
    return after_element || !top_is(scanner, PAREN) || !ends_as_parameter(lexer);
}

// Tokens that begin with a letter: prefixed strings, `allow`, and keywords that show that
// brackets were left open.
static bool scan_word(
    Scanner *scanner, TSLexer *lexer, const bool *valid, bool may_close, uint16_t indent
) {
    bool may_allow = valid[ALLOW] && top_is(scanner, SCENARIO);
    // Most words stand where no more than the prefix of a string can matter.
    unsigned longest = may_close || may_allow ? MAX_WORD : MAX_PREFIX;
    char word[MAX_WORD + 1];
    unsigned length = 0;
    while (is_letter(lexer->lookahead) || is_digit(lexer->lookahead)) {
        if (length == longest) return false;
        word[length++] = (char)lexer->lookahead;
        advance(lexer);
    }
    word[length] = '\0';
    if (lexer->lookahead == '"' || lexer->lookahead == '\'') {
        int flags = string_prefix(word, length);
        return flags >= 0 && scan_string_start(scanner, lexer, flags);
    }
    if (lexer->lookahead >= 0x80) return false;
    if (may_close) {
        // Two operands in a row are wrong in any case. Where the second is deeper than the
        // statement, rather a comma is missing.
        bool beside = after_operand(valid) && indent <= current_indent(scanner);
        bool begins = is_statement_keyword(word) || (beside && !goes_on_after_operand(word));
        if (begins || at_assignment(scanner, lexer, valid)) {
            return scan_unclosed(scanner, lexer, valid, indent);
        }
    }
    if (may_allow && strcmp(word, "allow") == 0) {
        lexer->mark_end(lexer);
        while (lexer->lookahead == ' ' || lexer->lookahead == '\t') advance(lexer);
        if (!is_letter(lexer->lookahead) && !at_line_end(lexer)) return false;
        scanner->contexts[scanner->context_count - 1] = SCENARIO_CODES;
        return emit(lexer, ALLOW);
    }
    return false;
}

// A decorator that follows brackets left open. Python would read a matrix product, which
// nobody writes at the left edge of a statement and without a space.
static bool scan_decorator(
    Scanner *scanner, TSLexer *lexer, const bool *valid, uint16_t indent
) {
    advance(lexer);
    if (indent > current_indent(scanner) || !is_letter(lexer->lookahead)) return false;
    return scan_unclosed(scanner, lexer, valid, indent);
}

// The end of a line inside a replacement field. Returns whether `found` holds the answer;
// if not, the token after the line break follows.
static bool scan_line_end_in_field(
    Scanner *scanner, TSLexer *lexer, Context string, uint16_t indent, bool *found
) {
    *found = false;
    bool inside = string & TRIPLE || indent > current_indent(scanner);
    if (!at_eof(lexer) && (inside || at_bracket_or_quote(lexer))) return false;
    if (at_eof(lexer) || field_left_open(lexer, string)) {
        Context open = scanner->contexts[--scanner->context_count];
        *found = emit(lexer, closer(open));
    }
    return true;
}

// The token at the lexer, where white space is already skipped. After the end of a line,
// `may_close` tells whether open brackets can turn out to have been left open.
static bool scan_token(
    Scanner *scanner, TSLexer *lexer, const bool *valid, bool may_close, uint16_t indent
) {
    int32_t c = lexer->lookahead;
    if (c == '#') return scan_comment(scanner, lexer, valid[ERROR_SENTINEL]);
    if (c == '"' || c == '\'') return scan_string_start(scanner, lexer, 0);
    if (c == '\\' && scenario_index(scanner) >= 0) {
        advance(lexer);
        lexer->mark_end(lexer);
        return at_line_end(lexer) && emit(lexer, ERROR_SENTINEL);
    }
    if (c == ':' && top_is(scanner, FIELD)) {
        // A format specifier may begin with `=`, so this is never `:=`.
        advance(lexer);
        lexer->mark_end(lexer);
        return emit(lexer, COLON);
    }
    if (c == '@' && may_close) return scan_decorator(scanner, lexer, valid, indent);
    if (is_code_char(c) && top_is(scanner, SCENARIO_CODES)) return scan_diagnostic_code(lexer);
    if (is_letter(c)) return scan_word(scanner, lexer, valid, may_close, indent);
    return scan_bracket(scanner, lexer);
}

static bool scan_after_line_end(Scanner *scanner, TSLexer *lexer, const bool *valid) {
    bool recovering = valid[ERROR_SENTINEL];
    bool asked = valid[NEWLINE] || valid[INDENT] || valid[STATEMENT_START];
    // The parser is right when it is not inside the brackets that the scanner has open.
    bool outside = scanner->context_count == 0 || (!recovering && asked);
    uint16_t column = 0;
    if (outside && (recovering || !asked)) column = saturate(lexer->get_column(lexer));
    uint16_t indent = saturate(skip_to_text(lexer));
    if (outside) {
        bool at_comment = lexer->lookahead == '#';
        if (scan_line_end(scanner, lexer, valid, indent, column)) return true;
        if (at_comment && lexer->lookahead != '#') return false;
        return scan_token(scanner, lexer, valid, false, indent);
    }
    Context string = innermost_string(scanner);
    if (string != 0) {
        bool found;
        if (scan_line_end_in_field(scanner, lexer, string, indent, &found)) return found;
        return scan_token(scanner, lexer, valid, false, indent);
    }
    bool outdented = recovering && indent <= current_indent(scanner);
    if (at_eof(lexer) || outdented) return scan_unclosed(scanner, lexer, valid, indent);
    return scan_token(scanner, lexer, valid, true, indent);
}

static bool scan(Scanner *scanner, TSLexer *lexer, const bool *valid) {
    if (top_is(scanner, STRING)) return scan_string(scanner, lexer);
    if (valid[FORMAT_TEXT] && !valid[ERROR_SENTINEL]) {
        bool done = false;
        bool found = scan_format_text(scanner, lexer, &done);
        if (done) return found;
    }
    lexer->mark_end(lexer);
    skip_blanks(lexer, 0);
    if (!at_line_end(lexer)) return scan_token(scanner, lexer, valid, false, 0);
    int scenario = scenario_index(scanner);
    if (scenario < 0) return scan_after_line_end(scanner, lexer, valid);
    lexer->mark_end(lexer);
    return scan_scenario_end(scanner, lexer, scenario);
}

void *tree_sitter_tile_external_scanner_create(void) { return calloc(1, sizeof(Scanner)); }

void tree_sitter_tile_external_scanner_destroy(void *payload) { free(payload); }

unsigned tree_sitter_tile_external_scanner_serialize(void *payload, char *buffer) {
    const Scanner *scanner = payload;
    unsigned size = 0;
    memcpy(buffer + size, &scanner->code_indent, 2);
    size += 2;
    memcpy(buffer + size, &scanner->forced_column, 2);
    size += 2;
    buffer[size++] = (char)scanner->context_count;
    buffer[size++] = (char)scanner->indent_count;
    memcpy(buffer + size, scanner->contexts, scanner->context_count);
    size += scanner->context_count;
    memcpy(buffer + size, scanner->indents, 2 * (unsigned)scanner->indent_count);
    size += 2 * (unsigned)scanner->indent_count;
    return size;
}

void tree_sitter_tile_external_scanner_deserialize(
    void *payload, const char *buffer, unsigned length
) {
    Scanner *scanner = payload;
    // What lies beyond the counts is never read.
    memset(scanner, 0, offsetof(Scanner, contexts));
    if (length < 6) return;
    unsigned contexts = (uint8_t)buffer[4];
    unsigned indents = (uint8_t)buffer[5];
    bool fits = contexts <= MAX_CONTEXTS && indents <= MAX_INDENTS;
    if (!fits || length != 6 + contexts + 2 * indents) return;
    memcpy(&scanner->code_indent, buffer, 2);
    memcpy(&scanner->forced_column, buffer + 2, 2);
    scanner->context_count = (uint8_t)contexts;
    scanner->indent_count = (uint8_t)indents;
    memcpy(scanner->contexts, buffer + 6, contexts);
    memcpy(scanner->indents, buffer + 6 + contexts, 2 * indents);
}

bool tree_sitter_tile_external_scanner_scan(
    void *payload, TSLexer *lexer, const bool *valid_symbols
) {
    return scan(payload, lexer, valid_symbols);
}
