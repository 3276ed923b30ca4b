//! What the executor finds wrong with a kernel at run time.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tile_compiler::ir::{Function, Loc};
use tile_compiler::source::FileRange;

/// A place in the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The file's path, when the IR names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line, from 1; 0 when unknown.
    pub line: u32,
    /// Column in characters, from 1; 0 when unknown.
    pub col: u32,
    /// The function whose text this is.
    pub function: String,
    /// The bytes of the text.
    #[serde(skip)]
    pub at: FileRange,
}

impl Place {
    /// The user's own line for `loc`, and the place inside inlined helpers where they differ.
    pub fn of(func: &Function, loc: Loc) -> (Place, Option<Place>) {
        let place = |loc: Loc| {
            let data = &func.locs[loc];
            let function = data.function.to_string();
            let file = func.files.get(&data.at.file).map(|path| path.to_string());
            Place { file, line: data.line, col: data.col, function, at: data.at }
        };
        let user = func.user_loc(loc);
        (place(user), (user != loc).then(|| place(loc)))
    }
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// An active lane reads or writes outside every buffer.
    OutOfBounds,
    /// An address is not a multiple of the element's size.
    Misaligned,
    /// Two programs of one launch, or two lanes of one store, write different values to one
    /// element, or one program reads what another writes, and nothing orders them.
    Race,
    /// An element is read that nothing has written.
    Uninitialized,
    /// Numbers became NaN, which was then stored.
    NanBirth,
    /// A `tl.device_assert` does not hold.
    Assert,
}

/// Something wrong at one place of a kernel, with the first program that showed it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// What is wrong.
    pub kind: FindingKind,
    /// One line that stands alone.
    pub message: String,
    /// Whether two programs or two lanes store, where it is a race: they may do it in any order.
    #[serde(skip)]
    pub both_store: bool,
    /// Where the IR says that it is.
    #[serde(skip)]
    pub loc: Loc,
    /// The user's line.
    #[serde(flatten)]
    pub place: Place,
    /// The line inside an inlined helper, where that is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inlined: Option<Place>,
    /// The first program that showed it.
    pub program: [u32; 3],
    /// Index of the first lane, in the tile that the operation works on.
    pub index: Vec<u32>,
    /// The buffer concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// How many lanes of all programs showed it.
    pub count: u64,
}

/// A memory access that went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Access {
    /// Name of the buffer, which is the argument's; `None` when the address is in no buffer's
    /// reach.
    pub buffer: Option<String>,
    /// The address, in the executor's address space.
    pub address: u64,
    /// The element accessed, counted from the buffer's first.
    pub element: i64,
    /// Size of the buffer in elements.
    pub elements: u64,
}

/// What a worker reports: [`Finding`] without what follows from the place.
#[derive(Debug)]
pub(super) struct Event {
    pub kind: FindingKind,
    pub both_store: bool,
    pub loc: Loc,
    pub linear: u64,
    pub program: [u32; 3],
    pub lane: usize,
    pub shape: Vec<u32>,
    pub access: Option<Access>,
    pub message: String,
}

/// The event that is kept of each kind, place and buffer, with how many there were.
type Events = BTreeMap<(FindingKind, Loc, Option<String>), (Event, u64)>;

/// Findings of all workers: one for each kind and place, the earliest program and lane kept, of races one
/// of two programs that store before others.
#[derive(Debug, Default)]
pub(super) struct Log {
    events: Mutex<Events>,
}

impl Log {
    pub fn report(&self, event: Event) {
        let buffer = event.access.as_ref().and_then(|access| access.buffer.clone());
        let mut events = self.lock();
        let (kept, count) = match events.entry((event.kind, event.loc, buffer)) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert((event, 1));
                return;
            }
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
        };
        *count += 1;
        // Two programs that store are the greater mistake.
        let rank = |event: &Event| (!event.both_store, event.linear, event.lane);
        if rank(&event) < rank(kept) {
            *kept = event;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The findings, by line.
    pub fn finish(&self, func: &FunctionPlaces) -> Vec<Finding> {
        let events = std::mem::take(&mut *self.lock());
        let mut findings: Vec<Finding> = events
            .into_values()
            .map(|(event, count)| {
                let (place, inlined) = func.of(event.loc);
                Finding {
                    kind: event.kind,
                    message: event.message,
                    both_store: event.both_store,
                    loc: event.loc,
                    place,
                    inlined,
                    program: event.program,
                    index: unravel(event.lane, &event.shape),
                    access: event.access,
                    count,
                }
            })
            .collect();
        findings.sort_by_key(|finding| (finding.place.line, finding.place.col, finding.kind));
        findings
    }
}

/// The places of a function's locations, kept by what outlives the function.
#[derive(Debug, Clone)]
pub(super) struct FunctionPlaces(Vec<(Place, Option<Place>)>);

impl FunctionPlaces {
    pub fn new(func: &Function) -> FunctionPlaces {
        FunctionPlaces(func.locs.keys().map(|loc| Place::of(func, loc)).collect())
    }

    pub fn of(&self, loc: Loc) -> (Place, Option<Place>) {
        self.0[loc.as_u32() as usize].clone()
    }
}

/// The index of row-major element `lane` of a tile.
pub(super) fn unravel(lane: usize, shape: &[u32]) -> Vec<u32> {
    let mut rest = lane;
    let mut index = vec![0; shape.len()];
    for (at, &extent) in index.iter_mut().zip(shape).rev() {
        *at = (rest % extent as usize) as u32;
        rest /= extent as usize;
    }
    index
}
