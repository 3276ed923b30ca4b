//! Modules that are imported as members of a package, `from package import module`, and move to
//! another package: the statement gives them up, and one that names their new package takes over.

use rustc_hash::FxHashSet;
use tile_compiler::source::TextRange;
use tree_sitter::Node;

use super::{Moves, imported, renamed};
use crate::ide::symbol::Semantics;
use crate::ide::tree::{range, walk};

/// What departures of a file change.
#[derive(Debug, Default)]
pub(super) struct Departures {
    /// What stands where instead.
    pub(super) edits: Vec<(TextRange, String)>,
    /// Nodes, by id, that need no other edit.
    pub(super) settled: FxHashSet<usize>,
}

/// A member of an import statement.
struct Member<'t> {
    /// The name, with its alias.
    whole: Node<'t>,
    /// The name.
    name: Node<'t>,
    /// Its new package and name, where it departs.
    departs: Option<(String, String)>,
}

/// What changes in the imports of a file because members leave packages.
pub(super) fn departures(semantics: &Semantics<'_>, moves: &Moves) -> Departures {
    let mut found = Departures::default();
    walk(semantics.root(), &mut |statement| {
        if statement.kind() == "import_from_statement" {
            found.depart(semantics, moves, statement);
        }
    });
    found
}

impl Departures {
    fn depart(&mut self, semantics: &Semantics<'_>, moves: &Moves, statement: Node<'_>) {
        let Some(package) = statement.child_by_field_name("module_name") else { return };
        let mut cursor = statement.walk();
        let members = statement.children_by_field_name("name", &mut cursor).map(|whole| {
            let name = whole.child_by_field_name("name").unwrap_or(whole);
            let names = (semantics.text_of(package), semantics.text_of(name));
            Member { whole, name, departs: new_place(semantics, names, moves) }
        });
        let members: Vec<Member<'_>> = members.collect();
        let departing: Vec<&Member<'_>> =
            members.iter().filter(|member| member.departs.is_some()).collect();
        let Some(first) = departing.first() else { return };
        self.settled.extend(departing.iter().map(|member| member.name.id()));
        let to = |member: &Member<'_>| member.departs.clone().map(|(package, _)| package);
        let together = departing.len() == members.len()
            && departing.iter().all(|member| to(member) == to(first));
        match &first.departs {
            Some((new_package, _)) if together && !new_package.is_empty() => {
                self.settled.insert(package.id());
                self.edits.push((range(package), new_package.clone()));
                for member in departing {
                    if let Some((_, name)) = &member.departs
                        && name != semantics.text_of(member.name)
                    {
                        self.edits.push((range(member.name), name.clone()));
                    }
                }
            }
            _ => self.split(semantics, statement, &members),
        }
    }

    /// Gives members that depart statements of their own, after the one that they stand in.
    fn split(&mut self, semantics: &Semantics<'_>, statement: Node<'_>, members: &[Member<'_>]) {
        let text = semantics.text;
        let own = members.iter().filter_map(|member| {
            let (package, name) = member.departs.as_ref()?;
            let alias = member.whole.child_by_field_name("alias");
            let alias = alias.map(|alias| format!(" as {}", semantics.text_of(alias)));
            let alias = alias.unwrap_or_default();
            Some(match package.is_empty() {
                true => format!("import {name}{alias}"),
                false => format!("from {package} import {name}{alias}"),
            })
        });
        let own: Vec<String> = own.collect();
        let at = range(statement);
        let before = &text[..at.start as usize];
        let indent = &before[before.rfind(['\n', '\r']).map_or(0, |end| end + 1)..];
        let line_end = if text[at.end as usize..].starts_with("\r\n") { "\r\n" } else { "\n" };
        let separator = match indent.trim().is_empty() {
            true => format!("{line_end}{indent}"),
            // Another statement stands before it.
            false => "; ".to_owned(),
        };
        let Some(first_kept) = members.iter().position(|member| member.departs.is_none()) else {
            self.settled.extend(statement.child_by_field_name("module_name").map(|node| node.id()));
            self.edits.push((at, own.join(&separator)));
            return;
        };
        let start = range(members[0].whole).start;
        let kept = range(members[first_kept].whole).start;
        if first_kept > 0 {
            self.edits.push((TextRange { start, end: kept }, String::new()));
        }
        for pair in members[first_kept..].windows(2) {
            if pair[1].departs.is_some() {
                let (start, end) = (range(pair[0].whole).end, range(pair[1].whole).end);
                self.edits.push((TextRange { start, end }, String::new()));
            }
        }
        let end = TextRange { start: at.end, end: at.end };
        self.edits.push((end, format!("{separator}{}", own.join(&separator))));
    }
}

/// The package and the name that the module `package.name` gets, where it leaves the package.
fn new_place(
    semantics: &Semantics<'_>,
    (package, name): (&str, &str),
    moves: &Moves,
) -> Option<(String, String)> {
    let (db, file) = (semantics.db, semantics.file);
    let whole = |package: &str| match package.ends_with('.') {
        true => format!("{package}{name}"),
        false => format!("{package}.{name}"),
    };
    imported(db, file, &whole(package))?;
    let new = renamed(db, file, &whole(package), moves)?;
    let start = new.rfind('.').map_or(0, |dot| dot + 1);
    let (new_package, new_name) = new.split_at(start);
    // The dots of a relative name lead it; the one between package and name belongs to neither.
    let is_relative = new_package.bytes().all(|byte| byte == b'.');
    let new_package = if is_relative { new_package } else { new_package.trim_end_matches('.') };
    let stays = renamed(db, file, package, moves).unwrap_or_else(|| package.to_owned());
    (!new_name.is_empty() && new_package != stays)
        .then(|| (new_package.to_owned(), new_name.to_owned()))
}
