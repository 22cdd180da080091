//! Requests in flight of each device, and the requests that wait for it.
//!
//! A driver's queue has room for so many requests (128 for a loop device and many virtual disks).
//! Beyond them io_uring hands a request to a thread of the kernel, which waits for room: several
//! microseconds of CPU time for each. So calls at an offset wait here while the queue of their
//! device is full, and other calls pass them. Not so when the program submits more than that
//! without a fetch: it may be long before it comes back to hand on the rest.
//!
//! A device that is busy ([`Device::busy`]) gets requests in batches: one io_uring_enter(2) hands
//! over a batch, and wakes the device's thread once.
//!
//! The device behind a descriptor is looked up once and then every [`LOOKUPS`] requests: a
//! descriptor that was opened anew meanwhile only has the limit of another device.

use std::collections::VecDeque;
use std::os::fd::RawFd;

use ugeom_machine::block_device;

use crate::queue::Entry;

/// Calls until devices are looked up anew.
const LOOKUPS: u32 = 4096;

/// Descriptors whose devices are remembered: those below this number.
const FILES_MAX: usize = 4096;

/// The largest batch for a busy device.
const BATCH_MAX: u32 = 12;
/// A batch is at most this part of the device's limit.
const BATCH_PART: u32 = 8;

/// A device among those that are known.
pub(super) type DeviceNumber = u8;

/// The device of calls that have no limit, or an unknown one.
const NONE: DeviceNumber = 0;

/// The known devices.
pub(super) struct Devices {
    /// The first stands for all without a limit.
    devices: Vec<Device>,
    /// The device of each descriptor, by its number.
    of_file: Vec<Option<DeviceNumber>>,
    /// By slot, for requests that the kernel has.
    of_slot: Vec<DeviceNumber>,
    lookups: u32,
    waiting: usize,
    /// How many requests were submitted since the last fetch.
    since_fetch: u32,
}

#[derive(Default)]
struct Device {
    number: u64,
    limit: u32,
    in_flight: u32,
    /// It was busy, and has not ended a batch of requests since.
    is_busy: bool,
    /// How many requests it may have although it is busy.
    granted: u32,
    /// Requests held back from a busy device, by priority.
    waiting: Vec<VecDeque<Entry>>,
    /// How many those are.
    waiting_count: u32,
}

impl Default for Devices {
    fn default() -> Devices {
        let unlimited = Device {
            limit: u32::MAX,
            ..Device::default()
        };
        Devices {
            devices: vec![unlimited],
            of_file: Vec::new(),
            of_slot: Vec::new(),
            lookups: 0,
            waiting: 0,
            since_fetch: 0,
        }
    }
}

impl Devices {
    /// So many requests were submitted since the last fetch.
    pub(super) fn set_since_fetch(&mut self, count: u32) {
        self.since_fetch = count;
    }

    /// How many requests wait for a device.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The device of the file with that descriptor; negative for calls that no device limits.
    pub(super) fn of_file(&mut self, fd: RawFd) -> DeviceNumber {
        self.looked_up(fd, queue_of)
    }

    /// The same; `queue_of` tells the number of a file's device, and the length of its queue.
    fn looked_up(
        &mut self,
        fd: RawFd,
        queue_of: impl FnOnce(RawFd) -> Option<(u64, u32)>,
    ) -> DeviceNumber {
        let Some(file) = usize::try_from(fd).ok().filter(|fd| *fd < FILES_MAX) else {
            return NONE;
        };
        self.lookups += 1;
        if self.lookups >= LOOKUPS {
            self.lookups = 0;
            self.of_file.clear();
        }
        if let Some(Some(known)) = self.of_file.get(file) {
            return *known;
        }
        let device = queue_of(fd).map_or(NONE, |(number, limit)| self.numbered(number, limit));
        if self.of_file.len() <= file {
            self.of_file.resize(file + 1, None);
        }
        self.of_file[file] = Some(device);
        device
    }

    fn numbered(&mut self, number: u64, limit: u32) -> DeviceNumber {
        let known = |device: &Device| device.number == number;
        let found = self.devices.iter().skip(1).position(known);
        let at = found.map_or(self.devices.len(), |at| at + 1);
        // One of more devices than can be numbered has no limit.
        let Ok(device) = DeviceNumber::try_from(at) else {
            return NONE;
        };
        if found.is_none() {
            self.devices.push(Device::default());
        }
        let known = &mut self.devices[at];
        (known.number, known.limit) = (number, limit.max(1));
        known.is_busy = known.in_flight >= known.busy();
        device
    }

    /// Whether the kernel may have one more request of the device.
    pub(super) fn has_room(&self, device: DeviceNumber) -> bool {
        let known = &self.devices[usize::from(device)];
        !known.is_busy || known.granted > 0 || self.since_fetch > known.limit
    }

    /// A request waits until its device has room.
    pub(super) fn wait(&mut self, device: DeviceNumber, priority: usize, entry: Entry) {
        let known = &mut self.devices[usize::from(device)];
        if known.waiting.len() <= priority {
            known.waiting.resize_with(priority + 1, VecDeque::new);
        }
        known.waiting[priority].push_back(entry);
        known.waiting_count += 1;
        known.grant();
        self.waiting += 1;
    }

    /// The next request of the priority that waited and now has room, and its device.
    pub(super) fn next(&mut self, priority: usize) -> Option<(DeviceNumber, Entry)> {
        if self.waiting == 0 {
            return None;
        }
        (0..self.devices.len() as DeviceNumber).find_map(|device| {
            if !self.has_room(device) {
                return None;
            }
            let known = &mut self.devices[usize::from(device)];
            let entry = known.waiting.get_mut(priority)?.pop_front()?;
            known.waiting_count -= 1;
            self.waiting -= 1;
            Some((device, entry))
        })
    }

    /// A request goes to the kernel.
    pub(super) fn begin(&mut self, device: DeviceNumber, slot: u32) {
        let slot = slot as usize;
        if self.of_slot.len() <= slot {
            self.of_slot.resize(slot + 1, NONE);
        }
        self.of_slot[slot] = device;
        let known = &mut self.devices[usize::from(device)];
        known.in_flight += 1;
        known.granted = known.granted.saturating_sub(1);
        known.is_busy |= known.in_flight >= known.busy();
    }

    /// The kernel has ended a request.
    pub(super) fn end(&mut self, slot: u32) {
        let device = self.of_slot[slot as usize];
        let known = &mut self.devices[usize::from(device)];
        known.in_flight -= 1;
        known.is_busy &= known.in_flight + known.batch() > known.busy();
        known.grant();
    }
}

impl Device {
    fn batch(&self) -> u32 {
        (self.limit / BATCH_PART).clamp(1, BATCH_MAX)
    }

    /// From how many requests on it gets more only in batches.
    fn busy(&self) -> u32 {
        self.limit - self.limit / 5
    }

    /// Lets a batch go to the device if one waits and there is room for it.
    fn grant(&mut self) {
        let batch = self.batch();
        let fits = self.in_flight + batch <= self.limit;
        if self.is_busy && self.granted == 0 && self.waiting_count >= batch && fits {
            self.granted = batch;
        }
    }
}

/// How many requests the kernel may have of a device whose queue has room for so many. It tells of
/// an end before it frees the request's place, and others use the device as well.
fn limit_of(queue_requests: u32) -> u32 {
    queue_requests - queue_requests.div_ceil(16)
}

/// The number of the device that a file lies on, or is, and the length of its queue.
fn queue_of(fd: RawFd) -> Option<(u64, u32)> {
    let mut about = std::mem::MaybeUninit::<libc::stat64>::uninit();
    // SAFETY: the kernel fills the structure, ours; a descriptor that is not open is an error.
    let about = unsafe {
        if libc::fstat64(fd, about.as_mut_ptr()) != 0 {
            return None;
        }
        about.assume_init()
    };
    let number = match about.st_mode & libc::S_IFMT {
        libc::S_IFBLK => about.st_rdev,
        libc::S_IFREG => about.st_dev,
        _ => return None,
    };
    let requests = u32::try_from(block_device::queue_requests(number)?).ok()?;
    Some((number, limit_of(requests)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(slot: u32) -> Entry {
        Entry {
            slot,
            generation: 0,
        }
    }

    /// Descriptors 3 and 4 are on a device for two requests, 5 on one for one.
    fn devices() -> (Devices, [DeviceNumber; 4]) {
        let mut devices = Devices::default();
        let numbers = [3, 4, 5, 6].map(|fd| {
            devices.looked_up(fd, |fd| match fd {
                3 | 4 => Some((80, 2)),
                5 => Some((81, 1)),
                _ => None,
            })
        });
        (devices, numbers)
    }

    #[test]
    fn a_device_has_as_many_requests_as_its_queue_and_the_others_wait_in_order() {
        let (mut devices, [first, same, other, none]) = devices();
        assert_eq!(first, same);
        assert!(other != first && none == NONE && devices.of_file(-1) == NONE);
        devices.begin(first, 0);
        devices.begin(first, 1);
        devices.set_since_fetch(2);
        assert!(!devices.has_room(first) && devices.has_room(other) && devices.has_room(none));
        for (priority, slot) in [(1, 2), (0, 3), (1, 4), (0, 5)] {
            devices.wait(first, priority, entry(slot));
        }
        assert_eq!((devices.waiting(), devices.next(0)), (4, None));
        devices.end(0);
        devices.end(1);
        let mut order = Vec::new();
        for priority in [0, 1] {
            while let Some((device, entry)) = devices.next(priority) {
                assert_eq!(device, first);
                order.push(entry.slot);
            }
        }
        assert_eq!((order, devices.waiting()), (vec![3, 5, 2, 4], 0));
    }

    /// A device with a limit of 120: it is busy from 96 requests on, a batch is 12.
    fn busy_device() -> (Devices, DeviceNumber) {
        let mut devices = Devices::default();
        let device = devices.looked_up(3, |_| Some((80, 120)));
        for slot in 0..96 {
            assert!(devices.has_room(device));
            devices.begin(device, slot);
        }
        assert!(!devices.has_room(device));
        (devices, device)
    }

    #[test]
    fn a_busy_device_gets_more_when_it_has_ended_a_batch() {
        let (mut devices, device) = busy_device();
        for slot in 0..11 {
            devices.end(slot);
            assert!(!devices.has_room(device));
        }
        devices.end(11);
        for slot in 0..12 {
            assert!(devices.has_room(device));
            devices.begin(device, slot);
        }
        assert!(!devices.has_room(device));
    }

    #[test]
    fn a_busy_device_gets_a_batch_that_waits_up_to_its_limit() {
        let (mut devices, device) = busy_device();
        let mut waiting = 200..;
        for in_flight in [96, 108] {
            for slot in waiting.by_ref().take(11) {
                devices.wait(device, 0, entry(slot));
                assert_eq!(devices.next(0), None, "{in_flight} in flight");
            }
            devices.wait(device, 0, entry(waiting.next().unwrap()));
            for _ in 0..12 {
                let (device, entry) = devices.next(0).unwrap();
                devices.begin(device, entry.slot);
            }
        }
        for slot in waiting.take(50) {
            devices.wait(device, 0, entry(slot));
        }
        assert_eq!((devices.waiting(), devices.next(0)), (50, None));
    }

    #[test]
    fn without_a_fetch_the_kernel_gets_all() {
        let (mut devices, [device, ..]) = devices();
        devices.begin(device, 0);
        devices.begin(device, 1);
        devices.wait(device, 0, entry(2));
        assert_eq!(devices.next(0), None);
        devices.set_since_fetch(3);
        assert_eq!(devices.next(0), Some((device, entry(2))));
        assert!(devices.has_room(device));
        devices.set_since_fetch(0);
        assert!(!devices.has_room(device));
    }

    #[test]
    fn a_device_is_looked_up_again_after_some_thousand_requests() {
        let (mut devices, [before, ..]) = devices();
        let lookups = (0..2 * LOOKUPS).filter(|_| {
            let mut asked = false;
            let now = devices.looked_up(3, |_| {
                asked = true;
                Some((82, 9))
            });
            asked && now != before
        });
        assert_eq!(lookups.count(), 2);
    }
}
