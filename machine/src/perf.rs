//! Events of tracepoints by perf_event_open(2), in a ring of each processor.
//!
//! Sources: perf_event_open(2), include/uapi/linux/perf_event.h.

use crate::call::done;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

/// `struct perf_event_attr` up to `sig_data`, 5.13; older kernels accept it while the rest is 0.
const ATTRIBUTE_BYTES: usize = 128;
const TYPE_TRACEPOINT: u32 = 2;
/// `PERF_SAMPLE_TID`, `_TIME`, `_CPU`, `_RAW`: a sample has them in this order.
const SAMPLE: u64 = 1 << 1 | 1 << 2 | 1 << 7 | 1 << 10;
/// `PERF_FORMAT_LOST` (Linux 6.0): a read reports lost events.
const FORMAT_LOST: u64 = 1 << 4;
/// The bits `disabled` and `use_clockid`.
const FLAGS: u64 = 1 | 1 << 25;
/// `PERF_FLAG_FD_CLOEXEC`: children do not inherit the descriptor.
const FLAG_CLOEXEC: libc::c_ulong = 8;
const IOC_ENABLE: libc::c_ulong = 0x2400;
const IOC_DISABLE: libc::c_ulong = 0x2401;
const IOC_SET_OUTPUT: libc::c_ulong = 0x2405;
const IOC_SET_FILTER: libc::c_ulong = 0x4008_2406;
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;
/// Where the first page of a ring has them.
const HEAD_AT: usize = 1024;
const TAIL_AT: usize = 1032;

/// One tracepoint on one processor.
pub struct PerfEvent {
    descriptor: OwnedFd,
    counts_lost: bool,
}

impl PerfEvent {
    /// Opens the tracepoint with that number for all processes on a processor, disabled.
    ///
    /// # Errors
    /// EACCES and EPERM without CAP_PERFMON, ENOENT for a number that is none, EMFILE.
    pub fn open(tracepoint: u64, processor: usize) -> io::Result<Self> {
        let open = |format: u64| {
            let mut attributes = [0_u8; ATTRIBUTE_BYTES];
            let mut put = |at: usize, bytes: &[u8]| {
                attributes[at..at + bytes.len()].copy_from_slice(bytes);
            };
            put(0, &TYPE_TRACEPOINT.to_ne_bytes());
            put(4, &(ATTRIBUTE_BYTES as u32).to_ne_bytes());
            put(8, &tracepoint.to_ne_bytes());
            // Each event is a sample.
            put(16, &1_u64.to_ne_bytes());
            put(24, &SAMPLE.to_ne_bytes());
            put(32, &format.to_ne_bytes());
            put(40, &FLAGS.to_ne_bytes());
            put(92, &libc::CLOCK_MONOTONIC.to_ne_bytes());
            // SAFETY: the attributes are as long as they say and outlive the call; -1 are all
            // processes, and no group.
            let result = unsafe {
                libc::syscall(
                    libc::SYS_perf_event_open,
                    attributes.as_ptr(),
                    -1,
                    processor as libc::c_int,
                    -1,
                    FLAG_CLOEXEC,
                )
            };
            match i32::try_from(result) {
                // SAFETY: a descriptor that the kernel made for this call, and that nothing else
                // owns.
                Ok(result) if result >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(result) }),
                _ => Err(io::Error::last_os_error()),
            }
        };
        match open(FORMAT_LOST) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(Self {
                descriptor: open(0)?,
                counts_lost: false,
            }),
            opened => Ok(Self {
                descriptor: opened?,
                counts_lost: true,
            }),
        }
    }

    /// Only events of which this condition holds, as tracefs takes it.
    ///
    /// # Errors
    /// EINVAL for a condition that the tracepoint's fields do not allow.
    pub fn filter(&self, condition: &str) -> io::Result<()> {
        let condition = CString::new(condition).map_err(io::Error::other)?;
        // SAFETY: the text ends with a zero and outlives the call.
        let result = unsafe {
            libc::ioctl(
                self.descriptor.as_raw_fd(),
                IOC_SET_FILTER as _,
                condition.as_ptr(),
            )
        };
        done(result)
    }

    /// Its samples go to the ring of that event, which is of the same processor.
    ///
    /// # Errors
    /// EINVAL when it is not.
    pub fn join(&self, ring: &PerfRing) -> io::Result<()> {
        // SAFETY: no memory of this process is involved.
        let result = unsafe {
            libc::ioctl(
                self.descriptor.as_raw_fd(),
                IOC_SET_OUTPUT as _,
                ring.event.descriptor.as_raw_fd(),
            )
        };
        done(result)
    }

    /// Lets it happen, or not.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn enable(&self, enabled: bool) -> io::Result<()> {
        let request = if enabled { IOC_ENABLE } else { IOC_DISABLE };
        // SAFETY: no memory of this process is involved.
        done(unsafe { libc::ioctl(self.descriptor.as_raw_fd(), request as _, 0) })
    }

    /// Events for which the ring had no room; none where the kernel does not count them.
    pub fn lost(&self) -> Option<u64> {
        let mut words = [0_u8; 16];
        let read = rustix::io::read(&self.descriptor, &mut words).ok()?;
        let lost = u64::from_ne_bytes(*words[8..].first_chunk()?);
        (self.counts_lost && read == words.len()).then_some(lost)
    }
}

/// A record PERF_RECORD_SAMPLE of perf_event_open(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfSample<'a> {
    /// When it was taken: CLOCK_MONOTONIC, nanoseconds.
    pub time_ns: u64,
    /// The process that ran.
    pub pid: u32,
    /// Thread id in which the event took place.
    pub tid: u32,
    /// Number of the processor on which it took place.
    pub cpu: u32,
    /// The fields of the tracepoint, as its `format` describes them.
    pub data: &'a [u8],
}

/// The ring of a processor, with the event that it belongs to.
pub struct PerfRing {
    event: PerfEvent,
    memory: NonNull<u8>,
    page_bytes: usize,
    data_bytes: usize,
    record: Vec<u8>,
    /// Events that records say were lost.
    told_lost: u64,
}

// SAFETY: the memory is reached through this value only, and lives as long as it.
unsafe impl Send for PerfRing {}

impl PerfRing {
    /// Makes a ring of so many bytes, a power of two of pages.
    ///
    /// # Errors
    /// EPERM when it is more than kernel.perf_event_mlock_kb and RLIMIT_MEMLOCK allow.
    pub fn new(event: PerfEvent, data_bytes: usize) -> io::Result<Self> {
        let page_bytes = rustix::param::page_size();
        if !data_bytes.is_power_of_two() || data_bytes < page_bytes {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: a new mapping at an address of the kernel's choice, of an event of this process.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                page_bytes + data_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.descriptor.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            event,
            memory: NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?,
            page_bytes,
            data_bytes,
            record: Vec::new(),
            told_lost: 0,
        })
    }

    /// The event that it belongs to.
    pub fn event(&self) -> &PerfEvent {
        &self.event
    }

    /// Events that its records say were lost.
    pub fn told_lost(&self) -> u64 {
        self.told_lost
    }

    /// A word of the first page.
    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the place lies in the first page, is aligned, and lives as long as the borrow;
        // the kernel and this process change it as a whole.
        unsafe { &*self.memory.as_ptr().add(at).cast::<AtomicU64>() }
    }

    /// Copies bytes of the ring, which may go over its end to its beginning.
    fn copy(&self, from: u64, into: &mut [u8]) {
        let at = from as usize & (self.data_bytes - 1);
        let first = into.len().min(self.data_bytes - at);
        let data = self.memory.as_ptr().wrapping_add(self.page_bytes);
        let (head, tail) = into.split_at_mut(first);
        // SAFETY: both pieces lie in the mapping: the first ends at its end at the latest, and no
        // record is longer than the ring. The kernel writes nothing between tail and head.
        unsafe {
            ptr::copy_nonoverlapping(data.add(at), head.as_mut_ptr(), head.len());
            ptr::copy_nonoverlapping(data, tail.as_mut_ptr(), tail.len());
        }
    }

    /// Calls `each` with the samples since the last call.
    ///
    /// # Errors
    /// A record that is damaged; the ring is empty then.
    pub fn read(&mut self, each: &mut dyn FnMut(PerfSample<'_>)) -> io::Result<()> {
        let head = self.word(HEAD_AT).load(Ordering::Acquire);
        let mut tail = self.word(TAIL_AT).load(Ordering::Relaxed);
        let mut record = std::mem::take(&mut self.record);
        let mut damaged = false;
        while tail < head {
            let mut header = [0; 8];
            self.copy(tail, &mut header);
            let [a, b, c, d, _, _, low, high] = header;
            let length = usize::from(u16::from_le_bytes([low, high]));
            if length < header.len() || length > self.data_bytes {
                damaged = true;
                break;
            }
            record.resize(length, 0);
            self.copy(tail, &mut record);
            match u32::from_le_bytes([a, b, c, d]) {
                RECORD_SAMPLE => sample(&record).into_iter().for_each(&mut *each),
                RECORD_LOST => {
                    let lost = record.get(16..24).and_then(|bytes| bytes.first_chunk());
                    self.told_lost += lost.map_or(0, |lost| u64::from_ne_bytes(*lost));
                }
                _ => {}
            }
            tail += length as u64;
        }
        self.record = record;
        self.word(TAIL_AT).store(head, Ordering::Release);
        match damaged {
            true => Err(io::Error::other("a record of perf's ring is damaged")),
            false => Ok(()),
        }
    }
}

impl Drop for PerfRing {
    fn drop(&mut self) {
        let bytes = self.page_bytes + self.data_bytes;
        // SAFETY: the mapping was made by `new` with this length, and no reference to it outlives
        // the value.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), bytes) };
    }
}

/// A record of the type sample; none when it is too short.
fn sample(record: &[u8]) -> Option<PerfSample<'_>> {
    let half = |at: usize| Some(u32::from_ne_bytes(*record.get(at..)?.first_chunk()?));
    let data = record.get(36..)?.get(..half(32)? as usize)?;
    Some(PerfSample {
        time_ns: u64::from_ne_bytes(*record.get(16..)?.first_chunk()?),
        pid: half(8)?,
        tid: half(12)?,
        cpu: half(24)?,
        data,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_its_fields_where_the_kernel_puts_them() {
        let mut record = vec![0; 44];
        record[8..12].copy_from_slice(&5_u32.to_ne_bytes());
        record[12..16].copy_from_slice(&6_u32.to_ne_bytes());
        record[16..24].copy_from_slice(&7_u64.to_ne_bytes());
        record[24..28].copy_from_slice(&1_u32.to_ne_bytes());
        record[32..36].copy_from_slice(&8_u32.to_ne_bytes());
        let found = sample(&record).unwrap();
        assert_eq!((found.pid, found.tid, found.time_ns), (5, 6, 7));
        assert_eq!((found.cpu, found.data.len()), (1, 8));
        assert_eq!(sample(&record[..43]), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no perf_event_open(2)")]
    fn a_tracepoint_that_is_none_is_an_error() {
        assert!(PerfEvent::open(u64::MAX, 0).is_err());
    }
}
