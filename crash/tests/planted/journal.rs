//! A small journal: each transaction changes two blocks, and both or none must survive a crash.
//!
//! ```text
//! 0        checkpoint: the last transaction whose blocks are in their places
//! 4096     commit records, one a slot: number, targets, CRC
//! 65536    payload, two blocks a slot
//! 262144   blocks, each with its number and version, and filled with it
//! ```
//! A transaction: payload, flush, commit record, flush, promise, blocks in their places. Each third
//! one: flush, checkpoint. Recovery replays all commit records behind the checkpoint, in order.

use std::io;
use ugeom_crash::Disk;

pub const SIZE_BYTES: u64 = 1 << 20;
const BLOCK: usize = 4096;
const SLOTS: u64 = 8;
const BLOCKS: u64 = 5;
/// How many transactions share a checkpoint.
const CHECKPOINT_EVERY: u64 = 3;

/// The defects of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    NoFlushBeforeCommit,
    NoFlushAfterCommit,
    PromiseBeforeCommit,
    CommitBeforePayload,
    BlocksBeforeCommit,
    ChecksumNotChecked,
    ChecksumOfTheFirstSector,
    NoFlushBeforeCheckpoint,
    ReplayInSlotOrder,
    ReplayMissesOne,
    FuaTakenForABarrier,
    HalfOfItJournaled,
}

impl Bug {
    pub const ALL: [Self; 12] = [
        Self::NoFlushBeforeCommit,
        Self::NoFlushAfterCommit,
        Self::PromiseBeforeCommit,
        Self::CommitBeforePayload,
        Self::BlocksBeforeCommit,
        Self::ChecksumNotChecked,
        Self::ChecksumOfTheFirstSector,
        Self::NoFlushBeforeCheckpoint,
        Self::ReplayInSlotOrder,
        Self::ReplayMissesOne,
        Self::FuaTakenForABarrier,
        Self::HalfOfItJournaled,
    ];
}

const fn record_at(slot: u64) -> u64 {
    4096 + slot * BLOCK as u64
}

const fn payload_at(slot: u64, index: u64) -> u64 {
    65536 + (slot * 2 + index) * BLOCK as u64
}

const fn block_at(number: u64) -> u64 {
    262_144 + number * BLOCK as u64
}

/// FNV-1a, which is enough against accidents.
fn sum(bytes: &[u8]) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold)
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn get(bytes: &[u8], at: usize) -> u64 {
    let word: [u8; 8] = bytes[at..at + 8].try_into().expect("eight bytes");
    u64::from_le_bytes(word)
}

/// A block with that number and version, filled with it.
fn block(number: u64, version: u64) -> Vec<u8> {
    let mut bytes = vec![version as u8 ^ 0x5a; BLOCK];
    put(&mut bytes, 0, number);
    put(&mut bytes, 8, version);
    bytes
}

/// The version of a block, if all of it is of one version.
fn version(number: u64, bytes: &[u8]) -> Option<u64> {
    let version = get(bytes, 8);
    (bytes == block(number, version)).then_some(version)
}

/// The blocks that a transaction changes: one that all change, and one of four.
const fn targets(transaction: u64) -> [u64; 2] {
    [0, 1 + transaction % (BLOCKS - 1)]
}

pub struct Journal {
    disk: Disk,
    bug: Option<Bug>,
    next: u64,
}

impl Journal {
    /// An empty journal with blocks of version 0.
    pub fn create(disk: Disk, bug: Option<Bug>) -> io::Result<Self> {
        for number in 0..BLOCKS {
            disk.write(block_at(number), &block(number, 0))?;
        }
        disk.flush()?;
        let next = 1;
        Ok(Self { disk, bug, next })
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    pub fn commit(&mut self, mut promise: impl FnMut(&str)) -> io::Result<()> {
        let number = self.next;
        self.next += 1;
        if self.has(Bug::CommitBeforePayload) {
            self.record(number)?;
            self.disk.flush()?;
            self.payload(number)?;
        } else {
            self.payload(number)?;
        }
        if !self.has(Bug::NoFlushBeforeCommit) && !self.has(Bug::FuaTakenForABarrier) {
            self.disk.flush()?;
        }
        if self.has(Bug::PromiseBeforeCommit) {
            Self::promised(number, &mut promise);
        }
        if self.has(Bug::BlocksBeforeCommit) {
            self.blocks(number)?;
        }
        if !self.has(Bug::CommitBeforePayload) {
            self.record(number)?;
        }
        if !self.has(Bug::NoFlushAfterCommit) && !self.has(Bug::FuaTakenForABarrier) {
            self.disk.flush()?;
        }
        if !self.has(Bug::PromiseBeforeCommit) {
            Self::promised(number, &mut promise);
        }
        self.blocks(number)?;
        if number.is_multiple_of(CHECKPOINT_EVERY) {
            if !self.has(Bug::NoFlushBeforeCheckpoint) {
                self.disk.flush()?;
            }
            let mut checkpoint = vec![0; 512];
            put(&mut checkpoint, 0, number);
            self.disk.write(0, &checkpoint)?;
        }
        Ok(())
    }

    fn promised(number: u64, promise: &mut impl FnMut(&str)) {
        for target in targets(number) {
            promise(&format!("t{number}/{target}"));
        }
    }

    fn payload(&self, number: u64) -> io::Result<()> {
        let slot = number % SLOTS;
        for (index, target) in targets(number).into_iter().enumerate() {
            let data = block(target, number);
            let at = if index == 1 && self.has(Bug::HalfOfItJournaled) {
                block_at(target)
            } else {
                payload_at(slot, index as u64)
            };
            self.disk.write(at, &data)?;
        }
        Ok(())
    }

    fn record(&self, number: u64) -> io::Result<()> {
        let slot = number % SLOTS;
        let mut record = vec![0; BLOCK];
        put(&mut record, 0, number);
        // In other sectors than the number, so that a torn record has one without the other.
        for (index, target) in targets(number).into_iter().enumerate() {
            put(&mut record, 1024 * (index + 1), target + 1);
        }
        let covered = covered(self.bug);
        let crc = sum(&record[..covered]);
        put(&mut record, BLOCK - 8, if covered == 512 { 0 } else { crc });
        put(&mut record, 504, if covered == 512 { crc } else { 0 });
        let at = record_at(slot);
        if self.has(Bug::FuaTakenForABarrier) {
            return self.disk.write_durably(at, &record);
        }
        self.disk.write(at, &record)
    }

    fn blocks(&self, number: u64) -> io::Result<()> {
        for target in targets(number) {
            self.disk.write(block_at(target), &block(target, number))?;
        }
        Ok(())
    }
}

/// The bytes of a commit record that its checksum covers.
fn covered(bug: Option<Bug>) -> usize {
    if bug == Some(Bug::ChecksumOfTheFirstSector) {
        512
    } else {
        BLOCK - 8
    }
}

/// True when the checksum of a commit record fits.
fn is_sound(record: &[u8], bug: Option<Bug>) -> bool {
    if bug == Some(Bug::ChecksumNotChecked) {
        return true;
    }
    let covered = covered(bug);
    let at = if covered == 512 { 504 } else { BLOCK - 8 };
    let mut without = record.to_vec();
    put(&mut without, at, 0);
    get(record, at) == sum(&without[..covered])
}

/// The recovery of the journal after a crash: the keys that it finds.
pub fn recover(disk: &Disk, bug: Option<Bug>) -> Result<Vec<String>, String> {
    let has = |wanted: Bug| bug == Some(wanted);
    let read = |at: u64| {
        let mut bytes = vec![0; BLOCK];
        let read = disk.read(at, &mut bytes);
        read.map(|()| bytes).map_err(|error| error.to_string())
    };
    let done = get(&read(0)?, 0) + u64::from(has(Bug::ReplayMissesOne));
    let mut found = Vec::new();
    for slot in 0..SLOTS {
        let record = read(record_at(slot))?;
        let number = get(&record, 0);
        if number > done && number % SLOTS == slot && is_sound(&record, bug) {
            found.push((number, slot, record));
        }
    }
    if !has(Bug::ReplayInSlotOrder) {
        found.sort_by_key(|(number, ..)| *number);
    }
    for (_, slot, record) in found {
        for index in 0..2 {
            let target = get(&record, 1024 * (index as usize + 1));
            let journaled = index == 0 || !has(Bug::HalfOfItJournaled);
            if journaled && (1..=BLOCKS).contains(&target) {
                let data = read(payload_at(slot, index))?;
                disk.write(block_at(target - 1), &data)
                    .map_err(|error| error.to_string())?;
            }
        }
    }
    let mut keys = Vec::new();
    let mut versions = Vec::new();
    for number in 0..BLOCKS {
        let version = version(number, &read(block_at(number))?);
        versions.push(version.ok_or_else(|| format!("block {number} is damaged"))?);
    }
    for transaction in 1..=versions.iter().copied().max().unwrap_or(0) {
        for target in targets(transaction) {
            if versions[target as usize] >= transaction {
                keys.push(format!("t{transaction}/{target}"));
            }
        }
    }
    Ok(keys)
}
