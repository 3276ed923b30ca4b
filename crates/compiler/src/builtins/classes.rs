//! Python's own classes, and what their values have.

/// Attributes that values have, by class.
const METHODS: &[(&str, &[&str])] = &[
    (
        "str",
        &[
            "capitalize",
            "casefold",
            "center",
            "count",
            "encode",
            "endswith",
            "expandtabs",
            "find",
            "format",
            "format_map",
            "index",
            "isalnum",
            "isalpha",
            "isascii",
            "isdecimal",
            "isdigit",
            "isidentifier",
            "islower",
            "isnumeric",
            "isprintable",
            "isspace",
            "istitle",
            "isupper",
            "join",
            "ljust",
            "lower",
            "lstrip",
            "maketrans",
            "partition",
            "removeprefix",
            "removesuffix",
            "replace",
            "rfind",
            "rindex",
            "rjust",
            "rpartition",
            "rsplit",
            "rstrip",
            "split",
            "splitlines",
            "startswith",
            "strip",
            "swapcase",
            "title",
            "translate",
            "upper",
            "zfill",
        ],
    ),
    ("int", INTEGER),
    ("bool", INTEGER),
    ("float", &["as_integer_ratio", "conjugate", "fromhex", "hex", "imag", "is_integer", "real"]),
    ("NoneType", &[]),
    ("tuple", &["count", "index"]),
    (
        "list",
        &[
            "append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove",
            "reverse", "sort",
        ],
    ),
    (
        "dict",
        &[
            "clear",
            "copy",
            "fromkeys",
            "get",
            "items",
            "keys",
            "pop",
            "popitem",
            "setdefault",
            "update",
            "values",
        ],
    ),
    (
        "set",
        &[
            "add",
            "clear",
            "copy",
            "difference",
            "difference_update",
            "discard",
            "intersection",
            "intersection_update",
            "isdisjoint",
            "issubset",
            "issuperset",
            "pop",
            "remove",
            "symmetric_difference",
            "symmetric_difference_update",
            "union",
            "update",
        ],
    ),
];

const INTEGER: &[&str] = &[
    "as_integer_ratio",
    "bit_count",
    "bit_length",
    "conjugate",
    "denominator",
    "from_bytes",
    "imag",
    "is_integer",
    "numerator",
    "real",
    "to_bytes",
];

/// Whether all attributes of a class are listed.
pub(crate) fn is_listed(class: &str) -> bool {
    METHODS.iter().any(|(listed, _)| *listed == class)
}

/// Whether values of a class have an attribute.
pub(crate) fn exists(class: &str, attr: &str) -> bool {
    METHODS.iter().any(|(listed, attrs)| *listed == class && attrs.contains(&attr))
}
