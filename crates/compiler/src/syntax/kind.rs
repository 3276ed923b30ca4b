//! Node kinds and fields of the grammar as small integers, looked up once per process.

use std::num::NonZeroU16;
use std::sync::LazyLock;

use tree_sitter::{Language, Node};

macro_rules! kinds {
    ($($variant:ident = $name:literal,)*) => {
        /// Kind of a named syntax node.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Kind {
            /// Text that did not parse.
            Error,
            /// A keyword or punctuation, or a named node that no stage asks for.
            Other,
            $( $variant, )*
        }

        impl Kind {
            fn from_name(name: &str) -> Kind {
                match name {
                    $( $name => Kind::$variant, )*
                    _ => Kind::Other,
                }
            }
        }
    };
}

kinds! {
    AliasedImport = "aliased_import",
    Allow = "allow",
    ArgumentList = "argument_list",
    AsPattern = "as_pattern",
    AsPatternTarget = "as_pattern_target",
    AssertStatement = "assert_statement",
    Assignment = "assignment",
    Attribute = "attribute",
    AugmentedAssignment = "augmented_assignment",
    Await = "await",
    BinaryOperator = "binary_operator",
    Block = "block",
    BooleanOperator = "boolean_operator",
    BreakStatement = "break_statement",
    Call = "call",
    ClassDefinition = "class_definition",
    Comment = "comment",
    ComparisonOperator = "comparison_operator",
    ConcatenatedString = "concatenated_string",
    ConditionalExpression = "conditional_expression",
    ContinueStatement = "continue_statement",
    DecoratedDefinition = "decorated_definition",
    Decorator = "decorator",
    DefaultParameter = "default_parameter",
    DeleteStatement = "delete_statement",
    DiagnosticCode = "diagnostic_code",
    Dictionary = "dictionary",
    DictionaryComprehension = "dictionary_comprehension",
    DictionarySplat = "dictionary_splat",
    DictionarySplatPattern = "dictionary_splat_pattern",
    DottedName = "dotted_name",
    ElifClause = "elif_clause",
    Ellipsis = "ellipsis",
    ElseClause = "else_clause",
    ExceptClause = "except_clause",
    ExecStatement = "exec_statement",
    ExpressionList = "expression_list",
    ExpressionStatement = "expression_statement",
    False = "false",
    FinallyClause = "finally_clause",
    Float = "float",
    ForInClause = "for_in_clause",
    ForStatement = "for_statement",
    FunctionDefinition = "function_definition",
    FutureImportStatement = "future_import_statement",
    GeneratorExpression = "generator_expression",
    GenericType = "generic_type",
    GlobalStatement = "global_statement",
    Identifier = "identifier",
    IfClause = "if_clause",
    IfStatement = "if_statement",
    ImportFromStatement = "import_from_statement",
    ImportPrefix = "import_prefix",
    ImportStatement = "import_statement",
    Integer = "integer",
    Interpolation = "interpolation",
    FormatExpression = "format_expression",
    KeywordArgument = "keyword_argument",
    KeywordSeparator = "keyword_separator",
    Lambda = "lambda",
    LambdaParameters = "lambda_parameters",
    LineContinuation = "line_continuation",
    List = "list",
    ListComprehension = "list_comprehension",
    ListPattern = "list_pattern",
    ListSplat = "list_splat",
    ListSplatPattern = "list_splat_pattern",
    MatchStatement = "match_statement",
    CaseClause = "case_clause",
    CasePattern = "case_pattern",
    Module = "module",
    NamedExpression = "named_expression",
    None = "none",
    NonlocalStatement = "nonlocal_statement",
    NotOperator = "not_operator",
    Pair = "pair",
    Parameters = "parameters",
    ParenthesizedExpression = "parenthesized_expression",
    ParenthesizedListSplat = "parenthesized_list_splat",
    PassStatement = "pass_statement",
    PatternList = "pattern_list",
    PositionalSeparator = "positional_separator",
    PrintStatement = "print_statement",
    RaiseStatement = "raise_statement",
    RelativeImport = "relative_import",
    ReturnStatement = "return_statement",
    ScenarioFor = "scenario_for",
    ScenarioLine = "scenario_line",
    Set = "set",
    SetComprehension = "set_comprehension",
    Slice = "slice",
    SplatType = "splat_type",
    String = "string",
    StringContent = "string_content",
    StringEnd = "string_end",
    StringStart = "string_start",
    Subscript = "subscript",
    True = "true",
    TryStatement = "try_statement",
    Tuple = "tuple",
    TuplePattern = "tuple_pattern",
    Type = "type",
    TypeAliasStatement = "type_alias_statement",
    TypeParameter = "type_parameter",
    TypedDefaultParameter = "typed_default_parameter",
    TypedParameter = "typed_parameter",
    UnaryOperator = "unary_operator",
    Unfinished = "unfinished",
    UnionPattern = "union_pattern",
    ConstrainedType = "constrained_type",
    WhileStatement = "while_statement",
    WildcardImport = "wildcard_import",
    WithClause = "with_clause",
    WithItem = "with_item",
    WithStatement = "with_statement",
    Yield = "yield",
}

/// The grammar's names of kinds, by their numbers.
static SPELLINGS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let language = Language::from(tree_sitter_tile::LANGUAGE);
    let count = u16::try_from(language.node_kind_count()).unwrap_or(u16::MAX);
    (0..count).map(|id| language.node_kind_for_id(id).unwrap_or_default()).collect()
});

/// The grammar's name of the kind with this number; of keywords and punctuation, their text.
pub(super) fn spelling(id: u16) -> &'static str {
    SPELLINGS.get(usize::from(id)).copied().unwrap_or_default()
}

static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let language = Language::from(tree_sitter_tile::LANGUAGE);
    let count = u16::try_from(language.node_kind_count()).unwrap_or(u16::MAX);
    let kind = |id| match (language.node_kind_is_named(id), language.node_kind_for_id(id)) {
        (true, Some(name)) => Kind::from_name(name),
        _ => Kind::Other,
    };
    (0..count).map(kind).collect()
});

impl Kind {
    /// The kind of `node`.
    pub(super) fn of(node: Node<'_>) -> Kind {
        Kind::numbered(node.kind_id())
    }

    /// The kind of this number; those that the grammar does not have are tree-sitter's, for errors.
    pub(super) fn numbered(id: u16) -> Kind {
        KINDS.get(usize::from(id)).copied().unwrap_or(Kind::Error)
    }

    /// True for compound statements and what they are made of.
    pub(super) fn is_compound(self) -> bool {
        matches!(
            self,
            Kind::Block
                | Kind::CaseClause
                | Kind::ClassDefinition
                | Kind::DecoratedDefinition
                | Kind::ElifClause
                | Kind::ElseClause
                | Kind::ExceptClause
                | Kind::FinallyClause
                | Kind::ForStatement
                | Kind::FunctionDefinition
                | Kind::IfStatement
                | Kind::MatchStatement
                | Kind::TryStatement
                | Kind::WhileStatement
                | Kind::WithStatement
        )
    }

    /// True for comments, scenario lines and line continuations, which stand anywhere.
    pub(crate) fn is_extra(self) -> bool {
        matches!(self, Kind::Comment | Kind::ScenarioLine | Kind::LineContinuation)
    }
}

macro_rules! fields {
    ($($variant:ident = $name:literal,)*) => {
        /// Field of a syntax node.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Field {
            $( $variant, )*
        }

        const FIELD_NAMES: &[&str] = &[ $( $name, )* ];
        const ALL_FIELDS: &[Field] = &[ $( Field::$variant, )* ];
    };
}

fields! {
    Alias = "alias",
    Alternative = "alternative",
    Argument = "argument",
    Arguments = "arguments",
    Attribute = "attribute",
    Body = "body",
    Code = "code",
    Condition = "condition",
    Consequence = "consequence",
    Definition = "definition",
    Expression = "expression",
    Function = "function",
    Guard = "guard",
    Key = "key",
    Left = "left",
    ModuleName = "module_name",
    Name = "name",
    Object = "object",
    Operator = "operator",
    Parameters = "parameters",
    ReturnType = "return_type",
    Right = "right",
    Statement = "statement",
    Subject = "subject",
    Subscript = "subscript",
    Superclasses = "superclasses",
    Type = "type",
    Value = "value",
}

static FIELDS: LazyLock<Vec<Option<NonZeroU16>>> = LazyLock::new(|| {
    let language = Language::from(tree_sitter_tile::LANGUAGE);
    FIELD_NAMES.iter().map(|name| language.field_id_for_name(name)).collect()
});

/// Fields by the grammar's numbers.
static FIELDS_BY_ID: LazyLock<Vec<Option<Field>>> = LazyLock::new(|| {
    let language = Language::from(tree_sitter_tile::LANGUAGE);
    let numbered = |id: usize| ALL_FIELDS.iter().copied().find(|field| field.is_number(id));
    (0..=language.field_count()).map(numbered).collect()
});

impl Field {
    fn is_number(self, id: usize) -> bool {
        self.id().is_some_and(|known| usize::from(known.get()) == id)
    }

    /// The grammar's number of the field.
    fn id(self) -> Option<NonZeroU16> {
        FIELDS[self as usize]
    }

    /// The field of this number, if any stage asks for it.
    pub(super) fn from_id(id: NonZeroU16) -> Option<Field> {
        FIELDS_BY_ID.get(usize::from(id.get())).copied().flatten()
    }

    /// The first child of `node` in this field.
    pub(super) fn of(self, node: Node<'_>) -> Option<Node<'_>> {
        node.child_by_field_id(self.id()?.get())
    }
}
