[
  (function_definition)
  (class_definition)
  (if_statement)
  (elif_clause)
  (else_clause)
  (for_statement)
  (while_statement)
  (with_statement)
  (try_statement)
  (except_clause)
  (finally_clause)
  (match_statement)
  (case_clause)
  (argument_list)
  (parameters)
  (list)
  (tuple)
  (dictionary)
  (set)
  (list_comprehension)
  (string)
] @fold

[
  (import_statement)
  (import_from_statement)
]+ @fold

(comment)+ @fold

(scenario_line)+ @fold
