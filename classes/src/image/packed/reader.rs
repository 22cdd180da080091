//! Reads at any place: finds the section, and has it decoded as far as needed, by one thread at a
//! time for each section.

use super::section::{Damage, Decoder, Sections};
use super::store::{Key, Memory, Spill, read_back};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use ugeom_machine::mutex::{Condvar, Mutex};

/// The unit of decoding and keeping, bytes.
pub(super) const PIECE_BYTES: usize = if cfg!(test) { 16 << 10 } else { 256 << 10 };
/// A section longer than this is kept in a file, if it has no checkpoints: decoding it again for
/// each read takes too long.
const SPILLED_FROM_BYTES: u64 = if cfg!(test) { 1 << 20 } else { 32 << 20 };
/// Decoders that wait in their sections for the next read.
const IDLE: usize = 8;

/// A decoder, and how far it is in its section.
struct Running {
    decoder: Box<dyn Decoder>,
    at: u64,
}

#[derive(Default)]
struct State {
    memory: Memory,
    /// Sections that a thread decodes.
    busy: HashSet<usize>,
    /// Decoders at rest, the one used last at the end.
    idle: Vec<(usize, Running)>,
    spill: Option<Spill>,
    spill_failed: bool,
    /// How far sections have been spilled.
    spilled: HashMap<usize, u64>,
    /// Where sections are damaged: nothing behind that place can be read.
    damaged: HashMap<usize, (u64, Damage)>,
}

/// The data of a compressed file.
pub(super) struct Reader {
    sections: Sections,
    /// Where each section begins and how long it is: known once all are measured.
    places: OnceLock<Vec<(u64, u64)>>,
    decoders: usize,
    state: Mutex<State>,
    changed: Condvar,
    /// The spill file for reading.
    spill: OnceLock<File>,
}

/// A section that this thread decodes; dropping it lets others do so.
struct Turn<'a> {
    reader: &'a Reader,
    section: usize,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.reader.state.lock().busy.remove(&self.section);
        self.reader.changed.notify_all();
    }
}

impl Reader {
    pub fn new(sections: Sections) -> Self {
        Self {
            decoders: sections.decoders(),
            sections,
            places: OnceLock::new(),
            state: Mutex::default(),
            changed: Condvar::new(),
            spill: OnceLock::new(),
        }
    }

    /// Finds the length of each section: those that state none are decoded.
    ///
    /// # Errors
    /// Such a section is damaged.
    pub fn measure(&self) -> Result<(), Damage> {
        let mut places = Vec::with_capacity(self.sections.list.len());
        let mut at = 0;
        for (number, section) in self.sections.list.iter().enumerate() {
            let length = match section.length {
                Some(length) => length,
                None => self.decode_all(number, at)?,
            };
            places.push((at, length));
            at += length;
        }
        // It is measured once, before anything is read.
        let _ = self.places.set(places);
        Ok(())
    }

    /// Decodes a section whose length is unknown; returns its length.
    fn decode_all(&self, section: usize, disk_at: u64) -> Result<u64, Damage> {
        let mut decoder = self.sections.list[section].start.decoder()?;
        let mut piece = vec![0; PIECE_BYTES];
        let mut at = 0;
        loop {
            let count = decode(&mut *decoder, &mut piece).map_err(|damage| Damage {
                disk_at: Some(disk_at + at + damage.disk_at.unwrap_or(0)),
                ..damage
            })?;
            self.spill(
                &mut self.state.lock(),
                section,
                (disk_at, at),
                &piece[..count],
            );
            at += count as u64;
            if count < piece.len() {
                return Ok(at);
            }
        }
    }

    fn places(&self) -> &[(u64, u64)] {
        self.places.get().map_or(&[], Vec::as_slice)
    }

    pub fn size_bytes(&self) -> u64 {
        self.places().last().map_or(0, |(at, length)| at + length)
    }

    /// Reads at an offset of the disk, zeroes past its end.
    ///
    /// # Errors
    /// The data is damaged there, or before it in the same section.
    pub fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Damage> {
        let (mut at, mut out) = (offset, out);
        while !out.is_empty() {
            let places = self.places();
            let section = places.partition_point(|(start, _)| *start <= at);
            let found = section
                .checked_sub(1)
                .map(|number| (number, places[number]));
            let Some((section, (start, length))) = found.filter(|(_, it)| at < it.0 + it.1) else {
                out.fill(0);
                return Ok(());
            };
            let within = at - start;
            let number = within / PIECE_BYTES as u64;
            let piece = self.piece((section, number), (start, length))?;
            let skipped = (within - number * PIECE_BYTES as u64) as usize;
            let count = out.len().min(piece.len() - skipped);
            out[..count].copy_from_slice(&piece[skipped..skipped + count]);
            out = &mut out[count..];
            at += count as u64;
        }
        Ok(())
    }

    /// One piece, from memory, from the spill file, or decoded.
    fn piece(&self, key: Key, (start, length): (u64, u64)) -> Result<Arc<[u8]>, Damage> {
        let (section, number) = key;
        let from = number * PIECE_BYTES as u64;
        let bytes = (length - from).min(PIECE_BYTES as u64) as usize;
        let mut state = self.state.lock();
        loop {
            if let Some(piece) = state.memory.get(key) {
                return Ok(piece);
            }
            let spilled = state.spilled.get(&section).copied().unwrap_or(0);
            if spilled >= from + bytes as u64
                && let Some(file) = self.spill.get()
            {
                drop(state);
                let read = read_back(file, start + from, bytes);
                let piece = read.map_err(|error| Damage::new(0, format!("the copy: {error}")))?;
                self.state.lock().memory.put(key, Arc::clone(&piece));
                return Ok(piece);
            }
            if let Some((_, damage)) = state.damaged.get(&section).filter(|(at, _)| *at <= from) {
                let is_first = false;
                return Err(Damage {
                    is_first,
                    ..damage.clone()
                });
            }
            if state.busy.contains(&section) || state.busy.len() >= self.decoders {
                state = self.changed.wait(state);
                continue;
            }
            break;
        }
        state.busy.insert(section);
        let resting = state
            .idle
            .iter()
            .position(|(it, running)| *it == section && running.at <= from);
        let running = resting.map(|place| state.idle.remove(place).1);
        // A decoder that has passed the place is of no more use.
        state.idle.retain(|(it, _)| *it != section);
        drop(state);
        let _turn = Turn {
            reader: self,
            section,
        };
        self.advance(key, running, (start, length))
    }

    /// Decodes a section up to a piece of it.
    fn advance(
        &self,
        key: Key,
        running: Option<Running>,
        (start, length): (u64, u64),
    ) -> Result<Arc<[u8]>, Damage> {
        let (section, wanted) = key;
        let mut running = match running {
            Some(running) => running,
            None => Running {
                decoder: self.sections.list[section].start.decoder()?,
                at: 0,
            },
        };
        loop {
            let at = running.at;
            let number = at / PIECE_BYTES as u64;
            let piece = next_piece(&mut running, length).map_err(|damage| {
                let disk_at = Some(start + at + damage.disk_at.unwrap_or(0));
                let damage = Damage { disk_at, ..damage };
                let kept = (at, damage.clone());
                self.state.lock().damaged.insert(section, kept);
                damage
            })?;
            let mut state = self.state.lock();
            state.memory.put((section, number), Arc::clone(&piece));
            if length > SPILLED_FROM_BYTES {
                self.spill(&mut state, section, (start, at), &piece);
            }
            if number == wanted {
                if running.at < length {
                    state.idle.push((section, running));
                    if state.idle.len() > IDLE.min(self.decoders) {
                        state.idle.remove(0);
                    }
                }
                return Ok(piece);
            }
        }
    }

    /// Keeps a piece in the file, if it is the next one of its section there.
    fn spill(&self, state: &mut State, section: usize, (start, at): (u64, u64), piece: &[u8]) {
        let spilled = state.spilled.get(&section).copied().unwrap_or(0);
        if !self.sections.spills || state.spill_failed || spilled != at {
            return;
        }
        let written = self
            .spill_file(state)
            .and_then(|spill| spill.write(start + at, piece));
        match written {
            Ok(()) => {
                state.spilled.insert(section, at + piece.len() as u64);
            }
            Err(error) => {
                log::warn!(
                    "no room for decompressed data in TMPDIR, or /var/tmp: {error}; reading \
                     backwards will take long"
                );
                state.spill_failed = true;
            }
        }
    }

    fn spill_file<'a>(&self, state: &'a mut State) -> std::io::Result<&'a mut Spill> {
        let spill = match state.spill.take() {
            Some(spill) => spill,
            None => {
                let spill = Spill::new()?;
                // The file is made once.
                let _ = self.spill.set(spill.reader()?);
                spill
            }
        };
        Ok(state.spill.insert(spill))
    }
}

/// The next piece; at the end of the section also its trailer.
fn next_piece(running: &mut Running, length: u64) -> Result<Arc<[u8]>, Damage> {
    let left = length - running.at;
    let mut piece = vec![0; left.min(PIECE_BYTES as u64) as usize];
    let count = decode(&mut *running.decoder, &mut piece)?;
    running.at += count as u64;
    let differs = |more: &str| {
        let at = Some(count as u64);
        let reason = format!("its data has {more} than the {length} bytes that it states");
        let damage = Damage::new(0, reason);
        Damage {
            disk_at: at,
            ..damage
        }
    };
    if count < piece.len() {
        return Err(differs("less"));
    }
    if running.at == length && decode(&mut *running.decoder, &mut [0])? > 0 {
        return Err(differs("more"));
    }
    Ok(piece.into())
}

/// A panic of a decoder is damage, too.
fn decode(decoder: &mut dyn Decoder, out: &mut [u8]) -> Result<usize, Damage> {
    let done = catch_unwind(AssertUnwindSafe(|| decoder.decode(out)));
    done.unwrap_or_else(|_| Err(Damage::new(0, "the decoder gave up")))
}
