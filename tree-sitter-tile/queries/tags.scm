(function_definition name: (identifier) @name) @definition.function

(class_definition name: (identifier) @name) @definition.class

(module
  (expression_statement
    (assignment left: (identifier) @name)) @definition.constant)

(call function: (identifier) @name) @reference.call

(call function: (attribute attribute: (identifier) @name)) @reference.call

(call function: (subscript value: (identifier) @name)) @reference.call
