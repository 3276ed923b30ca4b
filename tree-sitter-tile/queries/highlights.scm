; Later patterns win over earlier ones.

; Names

(identifier) @variable
(attribute attribute: (identifier) @property)
((identifier) @constant (#match? @constant "^_*[A-Z][A-Z\\d_]*$"))
((identifier) @type (#match? @type "^_*[A-Z][A-Za-z\\d]*[a-z]"))
((identifier) @variable.builtin (#any-of? @variable.builtin "self" "cls"))

(parameters (identifier) @variable.parameter)
(lambda_parameters (identifier) @variable.parameter)
(typed_parameter (identifier) @variable.parameter)
(default_parameter name: (identifier) @variable.parameter)
(typed_default_parameter name: (identifier) @variable.parameter)
(keyword_argument name: (identifier) @variable.parameter)

(type (identifier) @type)
(type (attribute attribute: (identifier) @type))
(class_definition name: (identifier) @type)

(dotted_name (identifier) @module)
(aliased_import alias: (identifier) @module)
(import_from_statement name: (dotted_name (identifier) @variable))

(call function: (identifier) @function.call)
(call function: (attribute attribute: (identifier) @function.method.call))
(function_definition name: (identifier) @function)

((call function: (identifier) @function.builtin)
  (#any-of? @function.builtin
    "abs" "all" "any" "bool" "dict" "enumerate" "float" "getattr" "int" "isinstance" "len" "list"
    "max" "min" "print" "range" "reversed" "round" "set" "sorted" "str" "sum" "tuple" "type"
    "zip"))

; The tile language

((identifier) @module (#any-of? @module "tl" "triton" "gl" "gluon" "libdevice"))

((call
  function: (attribute
    object: (identifier) @module
    attribute: (identifier) @function.builtin))
  (#any-of? @module "tl" "libdevice"))
((call
  function: (attribute
    object: (attribute object: (identifier) @module)
    attribute: (identifier) @function.builtin))
  (#eq? @module "tl"))

((attribute object: (identifier) @module attribute: (identifier) @type.builtin)
  (#eq? @module "tl")
  (#match? @type.builtin
    "^(u?int(1|8|16|32|64)|b?float(8.*|16|32|64)|void|dtype|constexpr|const|tensor|pointer_type|block_type)$"))

((type (attribute object: (identifier) @module attribute: (identifier) @type.qualifier))
  (#eq? @module "tl")
  (#eq? @type.qualifier "constexpr"))
((type (identifier) @type.qualifier) (#eq? @type.qualifier "constexpr"))

; Decorators

(decorator "@" @attribute)
(decorator (identifier) @attribute)
(decorator (attribute attribute: (identifier) @attribute))
(decorator (call function: (identifier) @attribute))
(decorator (call function: (attribute attribute: (identifier) @attribute)))

; Literals

[(true) (false) (none)] @constant.builtin
(ellipsis) @constant.builtin
(integer) @number
(float) @number.float
(string) @string
[(escape_sequence) (escape_interpolation)] @string.escape
[(type_conversion) (format_specifier)] @string.special
(expression_statement (string) @string.documentation)
(comment) @comment

; Keywords and operators

[
  "as" "assert" "async" "await" "case" "class" "def" "del" "global" "lambda" "match" "nonlocal"
  "type" "with"
] @keyword
[(pass_statement) (break_statement) (continue_statement)] @keyword
["import" "from" "__future__"] @keyword.import
["return" "yield"] @keyword.return
["if" "elif" "else"] @keyword.conditional
["for" "while"] @keyword.repeat
["try" "except" "finally" "raise"] @keyword.exception
["and" "in" "is" "not" "or" "is not" "not in"] @keyword.operator
[
  "-" "-=" ":=" "!=" "*" "**" "**=" "*=" "/" "//" "//=" "/=" "&" "&=" "%" "%=" "^" "^=" "+" "+="
  "->" "<" "<<" "<<=" "<=" "=" "==" ">" ">=" ">>" ">>=" "|" "|=" "~" "@="
] @operator
(binary_operator operator: "@" @operator)
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ":" ";" "."] @punctuation.delimiter
(interpolation ["{" "}"] @punctuation.special) @none
(format_expression ["{" "}"] @punctuation.special)

; Scenario lines

(scenario_line) @comment.documentation
(scenario_line (call function: (subscript value: (identifier) @function.call)))
(scenario_line
  (call function: (subscript value: (attribute attribute: (identifier) @function.call))))
(scenario_line (assert_statement "assert" @keyword))
(scenario_line
  (assert_statement (call function: (identifier) @function.builtin))
  (#eq? @function.builtin "allclose"))
((scenario_line (assignment right: (_ (call function: (identifier) @function.builtin))))
  (#any-of? @function.builtin
    "randn" "rand" "randint" "arange" "zeros" "ones" "full" "empty" "load"))
((scenario_line (assignment right: (call function: (identifier) @function.builtin)))
  (#any-of? @function.builtin
    "randn" "rand" "randint" "arange" "zeros" "ones" "full" "empty" "load"))
(allow "allow" @keyword)
(diagnostic_code) @label
