//! What all workers of a launch share.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tile_compiler::ir::Loc;

use super::compile::Compiled;
use super::finding::{Access, Event, FindingKind, Log, unravel};
use super::frame::Frame;
use super::memory::{BufferId, Buffers};

/// How a launch is run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Look for races, reads of uninitialized memory and births of NaN. Bounds are always
    /// checked.
    pub sanitize: bool,
    /// Count the distinct elements that the launch reads and writes.
    pub trace: bool,
    /// Let every access outside a buffer read zeros and write nothing without a finding, and
    /// report how far each buffer is accessed ([`super::RunReport::extents`]).
    pub probe: bool,
    /// Start programs from the last to the first: what a launch leaves may depend on their order
    /// only if programs race.
    pub backwards: bool,
    /// How long the launch may take.
    pub deadline: Option<Duration>,
    /// How much work the launch may be, in elements that operations go through. Programs run one
    /// after the other then, so that it always ends at the same place.
    pub work: Option<u64>,
    /// Stops the launch when set.
    pub cancel: Option<Arc<AtomicBool>>,
}

/// Why a program ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// An assertion failed: this program alone ends.
    Program,
    /// Some program could not go on, or was told to stop: the launch ends.
    Launch,
}

pub(super) type Flow = Result<(), Stop>;

/// What all workers of a launch share.
#[derive(Debug)]
pub(super) struct Machine<'b> {
    pub buffers: &'b Buffers,
    pub options: &'b Options,
    pub grid: [u32; 3],
    pub log: Log,
    /// Set when the launch ends early.
    pub stopped: AtomicBool,
    /// Set when it ended because it had done all the work that it may.
    pub worked: AtomicBool,
    /// Set when it ended for want of time.
    pub timed_out: AtomicBool,
    /// Set when a loop had a zero step.
    pub zero_step: AtomicBool,
    until: Option<Instant>,
    /// For each buffer and element, the last program that wrote it, plus one. Empty unless
    /// sanitizing.
    writers: Vec<Vec<AtomicU32>>,
    /// For each buffer and element, the first program that read it, plus one, and [`SEVERAL`] if
    /// others did too. Empty unless sanitizing a kernel without atomics.
    readers: Vec<Vec<AtomicU32>>,
    /// Whether all programs do the same.
    alike: bool,
    /// Held while an element is stored and that is noted, so that both are one step.
    turns: Vec<Mutex<()>>,
    /// For each buffer, the first and last byte accessed. Empty unless probing.
    pub extents: Vec<(AtomicI64, AtomicI64)>,
}

/// Set in a program's number when other programs read the element as well.
const SEVERAL: u32 = 1 << 31;

/// Locks that stores take in turn, by address, while sanitizing.
const TURNS: usize = 64;

/// How an element is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Write {
    /// By a store.
    Plain,
    /// By a store of what is there already.
    Same,
    /// By an atomic, in order with other programs'.
    Atomic,
}

/// Loop iterations between two looks at the clock.
const TICKS: u32 = 64;

impl<'b> Machine<'b> {
    /// `atomics` tells that the kernel has atomics, which may order its programs, and `alike` that
    /// its programs do not ask for their position: all of them store the same in the end.
    pub fn new(
        buffers: &'b Buffers,
        options: &'b Options,
        grid: [u32; 3],
        Compiled { atomics, alike, .. }: &Compiled,
    ) -> Machine<'b> {
        let nobody = |(_, buffer): (BufferId, &super::Buffer)| {
            (0..buffer.elements()).map(|_| AtomicU32::new(0)).collect()
        };
        let programs = |wanted| if wanted { buffers.iter().map(nobody).collect() } else { vec![] };
        let extent = |_| (AtomicI64::new(i64::MAX), AtomicI64::new(i64::MIN));
        Machine {
            buffers,
            options,
            grid,
            log: Log::default(),
            stopped: AtomicBool::new(false),
            worked: AtomicBool::new(false),
            timed_out: AtomicBool::new(false),
            zero_step: AtomicBool::new(false),
            until: options.deadline.map(|deadline| Instant::now() + deadline),
            writers: programs(options.sanitize),
            readers: programs(options.sanitize && !atomics),
            alike: *alike,
            turns: (0..TURNS).map(|_| Mutex::new(())).collect(),
            extents: if options.probe { buffers.iter().map(extent).collect() } else { vec![] },
        }
    }

    /// Called at each loop iteration and each program: ends the launch when it should.
    #[inline]
    pub(crate) fn tick(&self, frame: &mut Frame) -> Flow {
        frame.ticks += 1;
        // A loop without operations has to end as well.
        frame.elements += 1;
        if self.options.work.is_some_and(|most| frame.work() > most) {
            self.worked.store(true, Ordering::Relaxed);
            self.stop();
            return Err(Stop::Launch);
        }
        if frame.ticks >= TICKS {
            frame.ticks = 0;
            return self.check_time();
        }
        Ok(())
    }

    #[cold]
    pub(crate) fn check_time(&self) -> Flow {
        if self.until.is_some_and(|until| Instant::now() > until) {
            self.timed_out.store(true, Ordering::Relaxed);
            self.stop();
        }
        if self.options.cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            self.stop();
        }
        if self.stopped.load(Ordering::Relaxed) { Err(Stop::Launch) } else { Ok(()) }
    }

    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// True when accesses are recorded one by one.
    pub fn records(&self) -> bool {
        self.options.sanitize || self.options.trace
    }

    /// An active lane's access of `size` bytes at `address` misses every buffer.
    #[cold]
    pub fn miss(&self, frame: &Frame, site: &Site, lane: usize, address: u64, write: bool) {
        let located = self.buffers.locate(address);
        if self.options.probe {
            if let Some((id, offset)) = located {
                self.extend(id, offset, site.size);
            }
            return;
        }
        let verb = if write { "store to" } else { "load from" };
        let Some((id, offset)) = located else {
            let access = Access { buffer: None, address, element: 0, elements: 0 };
            let message = format!("{verb} address {address:#x}, which is in no buffer");
            self.report(frame, site, FindingKind::OutOfBounds, lane, Some(access), message);
            return;
        };
        let buffer = self.buffers.get(id);
        let unit = i64::from(buffer.dtype.bytes());
        let access = Access {
            buffer: Some(buffer.name.clone()),
            address,
            element: offset.div_euclid(unit),
            elements: buffer.elements() as u64,
        };
        let inside = offset >= 0 && offset as u64 + site.size as u64 <= buffer.len() as u64;
        let (kind, message) = if inside {
            let message = format!(
                "{verb} byte {offset} of `{}`, which is not a multiple of {} bytes",
                buffer.name, site.size
            );
            (FindingKind::Misaligned, message)
        } else {
            let message = format!(
                "{verb} element {} of `{}`, which has {} elements",
                access.element,
                buffer.name,
                buffer.elements()
            );
            (FindingKind::OutOfBounds, message)
        };
        self.report(frame, site, kind, lane, Some(access), message);
    }

    /// Reports a finding of the running program.
    pub fn report(
        &self,
        frame: &Frame,
        site: &Site,
        kind: FindingKind,
        lane: usize,
        access: Option<Access>,
        message: String,
    ) {
        self.log.report(event(frame, site, kind, lane, access, message));
    }

    /// Reports that two programs, or two lanes, store to one element.
    fn report_stores(
        &self,
        frame: &Frame,
        site: &Site,
        lane: usize,
        access: Access,
        message: String,
    ) {
        let event = event(frame, site, FindingKind::Race, lane, Some(access), message);
        self.log.report(Event { both_store: true, ..event });
    }

    /// Reports that two programs store to one element.
    fn report_writer(&self, frame: &Frame, site: &Site, lane: usize, access: Access, other: u32) {
        let message = format!(
            "programs {} and {} both store to element {} of `{}`",
            show_program(u64::from(other), self.grid),
            show_program(frame.linear, self.grid),
            access.element,
            access.buffer.as_deref().unwrap_or_default(),
        );
        self.report_stores(frame, site, lane, access, message);
    }

    fn extend(&self, id: BufferId, offset: i64, size: usize) {
        let (first, last) = &self.extents[id.index()];
        first.fetch_min(offset, Ordering::Relaxed);
        last.fetch_max(offset + size as i64 - 1, Ordering::Relaxed);
    }

    /// Notes the read of one element, and finds what sanitizing finds.
    #[cold]
    pub(crate) fn note_read(&self, frame: &Frame, site: &Site, lane: usize, address: u64) {
        let Some((id, range)) = self.granules(address, site.size) else { return };
        let fresh = self.buffers.get(id).mark_read(range.clone());
        if fresh && self.options.sanitize {
            let access = self.access(id, address);
            let message = format!(
                "load from element {} of `{}`, which nothing has written",
                access.element,
                self.buffers.get(id).name
            );
            self.report(frame, site, FindingKind::Uninitialized, lane, Some(access), message);
        }
        let Some(readers) = self.readers.get(id.index()) else { return };
        let program = frame.linear as u32 + 1;
        // Whatever the order, one of a reader and a writer sees the other, and never both do.
        let _turn = self.turn(address);
        for at in range {
            let first =
                readers[at].compare_exchange(0, program, Ordering::SeqCst, Ordering::SeqCst);
            if first.is_err_and(|first| first & !SEVERAL != program) {
                readers[at].fetch_or(SEVERAL, Ordering::SeqCst);
            }
            let writer = self.writers[id.index()][at].load(Ordering::SeqCst);
            if writer != 0 && writer != program {
                let reader = show_program(frame.linear, self.grid);
                let writer = show_program(u64::from(writer - 1), self.grid);
                self.report_reader(frame, site, lane, (id, address), [&reader, &writer]);
                return;
            }
        }
    }

    /// Reports that one program reads what another writes.
    fn report_reader(
        &self,
        frame: &Frame,
        site: &Site,
        lane: usize,
        (id, address): (BufferId, u64),
        [reader, writer]: [&str; 2],
    ) {
        let access = self.access(id, address);
        let message = format!(
            "program {writer} stores to element {} of `{}`, which program {reader} loads, in any \
             order",
            access.element,
            self.buffers.get(id).name,
        );
        self.report(frame, site, FindingKind::Race, lane, Some(access), message);
    }

    /// The turn of an access to `address`, while sanitizing. A store holds it until it is noted.
    pub fn turn(&self, address: u64) -> Option<MutexGuard<'_, ()>> {
        let turn = &self.turns[(address >> 3) as usize % TURNS];
        let wanted = self.options.sanitize;
        wanted.then(|| turn.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reports two lanes of one store that write different values to one address.
    #[cold]
    pub(crate) fn report_overlap(
        &self,
        frame: &Frame,
        site: &Site,
        lanes: [usize; 2],
        address: u64,
    ) {
        let Some((id, _)) = self.granules(address, site.size) else { return };
        let access = self.access(id, address);
        let [first, second] = lanes.map(|lane| unravel(lane, &site.shape));
        let message = format!(
            "lanes {first:?} and {second:?} of this store write different values to element {} of \
             `{}`",
            access.element,
            self.buffers.get(id).name,
        );
        self.report_stores(frame, site, lanes[1], access, message);
    }

    /// Notes the write of one element, and finds what sanitizing finds. Stores of one value by
    /// several programs leave that value, whatever their order.
    #[cold]
    pub fn note_write(&self, frame: &Frame, site: &Site, lane: usize, address: u64, write: Write) {
        let Some((id, range)) = self.granules(address, site.size) else { return };
        self.buffers.get(id).mark_written(range.clone());
        if !self.options.sanitize || write == Write::Atomic || frame.synchronized {
            return;
        }
        let program = frame.linear as u32 + 1;
        let writers = &self.writers[id.index()][range.clone()];
        let other = writers.iter().find_map(|writer| {
            let last = writer.swap(program, Ordering::SeqCst);
            (last != 0 && last != program).then(|| last - 1)
        });
        if let Some(other) = other.filter(|_| write != Write::Same && !self.alike) {
            self.report_writer(frame, site, lane, self.access(id, address), other);
            return;
        }
        let readers = self.readers.get(id.index()).map_or(&[][..], |readers| &readers[range]);
        let reader = readers
            .iter()
            .map(|reader| reader.load(Ordering::SeqCst))
            .find(|&reader| reader != 0 && reader != program);
        if let Some(reader) = reader {
            let writer = show_program(frame.linear, self.grid);
            let reader = match reader & !SEVERAL {
                first if first == program => "of another number".to_owned(),
                first => show_program(u64::from(first - 1), self.grid),
            };
            self.report_reader(frame, site, lane, (id, address), [&reader, &writer]);
        }
    }

    fn access(&self, id: BufferId, address: u64) -> Access {
        let buffer = self.buffers.get(id);
        let offset = address.wrapping_sub(self.buffers.address(id)) as i64;
        Access {
            buffer: Some(buffer.name.clone()),
            address,
            element: offset.div_euclid(i64::from(buffer.dtype.bytes())),
            elements: buffer.elements() as u64,
        }
    }

    /// The elements of the buffer that an access inside it touches.
    fn granules(&self, address: u64, size: usize) -> Option<(BufferId, std::ops::Range<usize>)> {
        let (id, offset) = self.buffers.locate(address)?;
        let unit = self.buffers.get(id).dtype.bytes() as usize;
        let start = usize::try_from(offset).ok()?;
        let end = (start + size).div_ceil(unit).min(self.buffers.get(id).elements());
        (start / unit < end).then_some((id, start / unit..end))
    }
}

fn event(
    frame: &Frame,
    site: &Site,
    kind: FindingKind,
    lane: usize,
    access: Option<Access>,
    message: String,
) -> Event {
    Event {
        kind,
        both_store: false,
        loc: site.loc,
        linear: frame.linear,
        program: frame.program,
        lane,
        shape: site.shape.clone(),
        access,
        message,
    }
}

/// The position of a program by its number.
pub(super) fn position(linear: u64, grid: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = grid.map(u64::from);
    [(linear % x) as u32, (linear / x % y) as u32, (linear / x / y) as u32]
}

fn show_program(linear: u64, grid: [u32; 3]) -> String {
    let [x, y, z] = position(linear, grid);
    format!("({x}, {y}, {z})")
}

/// An operation that accesses memory or may report findings.
#[derive(Debug, Clone)]
pub(super) struct Site {
    pub loc: Loc,
    /// Extents of its tile; empty for scalars.
    pub shape: Vec<u32>,
    /// Bytes of one element.
    pub size: usize,
}
