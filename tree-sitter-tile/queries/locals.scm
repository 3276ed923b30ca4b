; Later patterns win over earlier ones, so a definition is no reference.

(identifier) @local.reference

; Scopes

(module) @local.scope
(function_definition) @local.scope
(class_definition) @local.scope
(lambda) @local.scope
[
  (list_comprehension)
  (set_comprehension)
  (dictionary_comprehension)
  (generator_expression)
] @local.scope

; Definitions

(function_definition name: (identifier) @local.definition.function)
(class_definition name: (identifier) @local.definition.type)

(parameters (identifier) @local.definition.parameter)
(lambda_parameters (identifier) @local.definition.parameter)
(typed_parameter . (identifier) @local.definition.parameter)
(typed_parameter . (list_splat_pattern (identifier) @local.definition.parameter))
(typed_parameter . (dictionary_splat_pattern (identifier) @local.definition.parameter))
(parameters (list_splat_pattern (identifier) @local.definition.parameter))
(parameters (dictionary_splat_pattern (identifier) @local.definition.parameter))
(default_parameter name: (identifier) @local.definition.parameter)
(typed_default_parameter name: (identifier) @local.definition.parameter)

(assignment left: (identifier) @local.definition.var)
(assignment left: (pattern_list (identifier) @local.definition.var))
(assignment left: (tuple_pattern (identifier) @local.definition.var))
(named_expression name: (identifier) @local.definition.var)
(for_statement left: (identifier) @local.definition.var)
(for_statement left: (pattern_list (identifier) @local.definition.var))
(for_in_clause left: (identifier) @local.definition.var)
(for_in_clause left: (pattern_list (identifier) @local.definition.var))
(scenario_for left: (identifier) @local.definition.var)
(as_pattern alias: (as_pattern_target (identifier) @local.definition.var))
(except_clause alias: (identifier) @local.definition.var)

(import_statement name: (dotted_name . (identifier) @local.definition.import))
(import_from_statement name: (dotted_name (identifier) @local.definition.import))
(aliased_import alias: (identifier) @local.definition.import)
