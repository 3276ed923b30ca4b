//! `tile/kernels`.

use tower_lsp::jsonrpc::Error;
use tower_lsp::ls_types::Uri;

use crate::db::{self, Kernel, SourceFile, labels};
use crate::server::ext::{self, SpecializationId};
use crate::server::requests::failed;
use crate::server::state::Snapshot;

/// The kernels of a document, in order.
pub(crate) fn kernels(snapshot: &Snapshot, uri: &Uri) -> Vec<ext::Kernel> {
    let Some(open) = snapshot.document(uri) else { return Vec::new() };
    let kernels = db::kernels(&snapshot.db, open.file).iter();
    kernels.map(|kernel| describe(snapshot, open.file, kernel)).collect()
}

/// A kernel as the protocol has it.
pub(crate) fn describe(snapshot: &Snapshot, file: SourceFile, kernel: &Kernel) -> ext::Kernel {
    let db = &snapshot.db;
    let active = kernel.active(db);
    // What is active was lowered, so more is known of it.
    let exact = kernel.specialization(db, active);
    let specializations = kernel.settled(db).iter().enumerate();
    ext::Kernel {
        name: kernel.name.to_string(),
        range: snapshot.range(file, kernel.range),
        selection_range: snapshot.range(file, kernel.name_range),
        specializations: specializations
            .map(|(index, labelled)| {
                let exact = exact.as_ref().filter(|_| index == active).unwrap_or(labelled);
                ext::Specialization {
                    label: exact.label.clone(),
                    origin: labels::origin(exact.spec.origin),
                    active: index == active,
                    repaired: exact.repairs.clone(),
                }
            })
            .collect(),
    }
}

/// The kernel of this name in an open document.
///
/// # Errors
/// When there is none; the message names those there are.
pub(crate) fn find<'s>(
    snapshot: &'s Snapshot,
    uri: &Uri,
    name: &str,
) -> Result<(SourceFile, &'s Kernel), Error> {
    let open = snapshot.document(uri);
    let file = open.ok_or_else(|| failed(format!("{} is not open", uri.as_str())))?.file;
    let found = db::kernel(&snapshot.db, file, name).map(|kernel| (file, kernel));
    found.ok_or_else(|| {
        let kernels = db::kernels(&snapshot.db, file).iter();
        let names: Vec<&str> = kernels.map(|kernel| &*kernel.name).collect();
        failed(match names.as_slice() {
            [] => format!("there is no kernel `{name}`: the file has none"),
            _ => format!("there is no kernel `{name}`; the kernels are {}", names.join(", ")),
        })
    })
}

/// Index of the specialization that `id` means; the active one without it.
///
/// # Errors
/// When the kernel has no such specialization.
pub(crate) fn specialization(
    snapshot: &Snapshot,
    kernel: &Kernel,
    id: Option<&SpecializationId>,
) -> Result<usize, Error> {
    let all = kernel.settled(&snapshot.db);
    let found = match id {
        None => Some(kernel.active(&snapshot.db)),
        Some(SpecializationId::Index(index)) => Some(*index).filter(|index| *index < all.len()),
        Some(SpecializationId::Label(label)) => {
            let active = kernel.active(&snapshot.db);
            let is_active = |exact: &db::Labelled| exact.label == *label;
            let named = all.iter().position(|labelled| labelled.label == *label);
            named.or_else(|| {
                kernel.specialization(&snapshot.db, active).filter(is_active).map(|_| active)
            })
        }
    };
    found.ok_or_else(|| failed(format!("`{}` has no such specialization", kernel.name)))
}
