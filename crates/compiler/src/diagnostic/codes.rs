//! The table of diagnostic codes. `tile explain`, the documentation and the editor read it.

use super::Severity;

/// What the table says of one code.
#[derive(Debug)]
pub struct CodeInfo {
    /// `family/name`, as users write it.
    pub name: &'static str,
    /// Default severity.
    pub level: Severity,
    /// One line: what the code means.
    pub summary: &'static str,
    /// The explanation page in Markdown: why it matters, a wrong example, a right one.
    pub explanation: &'static str,
}

macro_rules! codes {
    ($( $variant:ident = $name:literal, $level:ident, $summary:literal, $explanation:expr; )*) => {
        /// A diagnostic code: one row of the table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $( #[doc = $summary] $variant, )*
        }

        impl Code {
            /// Every code, in the table's order.
            pub const ALL: &'static [Code] = &[ $( Code::$variant, )* ];

            /// The code's row.
            pub fn info(self) -> &'static CodeInfo {
                match self {
                    $( Code::$variant => &CodeInfo {
                        name: $name,
                        level: Severity::$level,
                        summary: $summary,
                        explanation: $explanation,
                    }, )*
                }
            }
        }
    };
}

impl Code {
    /// The code called `name` (`family/name`), if there is one.
    pub fn from_name(name: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.info().name == name)
    }

    /// `family/name`.
    pub fn name(self) -> &'static str {
        self.info().name
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

codes! {
    SyntaxError = "syntax/error", Error, "the text is not valid Python",
        include_str!("explain/syntax-error.md");
    Unreadable = "syntax/unreadable", Error, "the file cannot be read as source text",
        include_str!("explain/syntax-unreadable.md");
    UndefinedName = "name/undefined", Error, "a name that nothing defines",
        include_str!("explain/name-undefined.md");
}
