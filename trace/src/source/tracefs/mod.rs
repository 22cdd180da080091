//! Events of an own instance of tracefs: no BPF, no BTF. Events carry no addresses of bios, so
//! requests are told apart by their places.
//!
//! Where tracefs is not mounted, a mount is made that no directory shows, and that ends with this
//! process. The instance is removed at the end; one of a process that was killed is removed by the
//! next.
//!
//! Source: Documentation/trace/ftrace.rst.

pub mod format;
pub mod page;

use super::threads::Threads;
use super::{NEEDED, Source, Wish};
use crate::event::{Event, EventKind};
use format::Format;
use page::PageForm;
use rustix::fs::OFlags;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where it is mounted, if it is.
const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Devices that a filter compares with, at most; beyond, all devices are recorded.
const DEVICES_MAX: usize = 64;
/// A text of tracefs is read so far.
const TEXT_BYTES: usize = 64 << 10;
/// An instance that runs.
pub struct Instance {
    path: PathBuf,
    rings: Vec<Ring>,
    form: PageForm,
    formats: HashMap<u16, Format>,
    kinds: Vec<EventKind>,
    threads: Threads,
    buffer: Vec<u8>,
    /// Kept while it is used: it holds the mount.
    _mount: Option<OwnedFd>,
}

struct Ring {
    cpu: u16,
    pipe: Option<File>,
}

/// Makes an instance and starts it.
///
/// # Errors
/// In words: no tracefs, no right, an event that is missing.
pub fn open(wish: &Wish) -> Result<Instance, String> {
    let (root, mount) = root(true)?;
    let header = read(&root.join("events/header_page"))?;
    let form = PageForm::parse(&header).ok_or("events/header_page: not understood")?;
    let path = make(&root.join("instances"))?;
    let mut instance = Instance {
        path,
        rings: Vec::new(),
        form,
        formats: HashMap::new(),
        kinds: Vec::new(),
        threads: Threads::new(&wish.tops),
        buffer: vec![0; form.bytes],
        _mount: mount,
    };
    instance.start(wish)?;
    Ok(instance)
}

/// The directory of tracefs, and the mount that was made for it; one in which instances can be
/// made, or events read.
pub(super) fn root(instances: bool) -> Result<(PathBuf, Option<OwnedFd>), String> {
    let needed = if instances { "instances" } else { "events" };
    for path in MOUNTED.map(Path::new) {
        match fs::read_dir(path.join(needed)) {
            Ok(_) => return Ok((path.to_owned(), None)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(format!("{}: {error}; root may read it", path.display()));
            }
            Err(_) => {}
        }
    }
    let mounting = || {
        let context = rustix::mount::fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        rustix::mount::fsconfig_create(&context)?;
        let flags = FsMountFlags::FSMOUNT_CLOEXEC;
        rustix::mount::fsmount(&context, flags, MountAttrFlags::empty())
    };
    let mount: OwnedFd = mounting().map_err(|error| match error {
        rustix::io::Errno::PERM => {
            "tracefs is not mounted, and mounting it needs CAP_SYS_ADMIN".to_owned()
        }
        error => format!("mounting tracefs: {error}"),
    })?;
    let path = format!("/proc/self/fd/{}", mount.as_raw_fd());
    Ok((path.into(), Some(mount)))
}

/// Makes the directory of an instance; removes those of processes that have ended.
fn make(instances: &Path) -> Result<PathBuf, String> {
    let failed = |error: io::Error| format!("{}: making an instance: {error}", instances.display());
    for entry in fs::read_dir(instances).map_err(failed)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name
            .strip_prefix("ugeom-")
            .and_then(|rest| rest.split('-').next());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            // One that another PID namespace uses is busy.
            let _ = fs::remove_dir(entry.path());
        }
    }
    let mut number = 0;
    loop {
        let path = instances.join(format!("ugeom-{}-{number}", std::process::id()));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(failed(error)),
        }
    }
}

impl Instance {
    fn start(&mut self, wish: &Wish) -> Result<(), String> {
        self.set("tracing_on", "0")?;
        // The clock that programs read as CLOCK_MONOTONIC.
        self.set("trace_clock", "mono")?;
        self.set("buffer_size_kb", &(wish.ring_bytes >> 10).to_string())?;
        // A full ring drops what is new and counts it: what is read already is never torn.
        self.set("options/overwrite", "0")?;
        for kind in &wish.kinds {
            match self.enable(*kind, wish) {
                Ok(format) => {
                    self.formats.insert(format.id, format);
                    self.kinds.push(*kind);
                }
                Err(why) if NEEDED.contains(kind) => return Err(why),
                // An event that this kernel does not have: the linker does without.
                Err(_) => {}
            }
        }
        let entries = fs::read_dir(self.path.join("per_cpu"));
        for entry in entries
            .map_err(|error| format!("per_cpu: {error}"))?
            .flatten()
        {
            let name = entry.file_name().to_string_lossy().into_owned();
            let cpu = name
                .strip_prefix("cpu")
                .and_then(|number| number.parse().ok());
            let Some(cpu) = cpu else { continue };
            let pipe = File::options()
                .read(true)
                .custom_flags(OFlags::NONBLOCK.bits() as i32)
                .open(entry.path().join("trace_pipe_raw"));
            let pipe = pipe.map_err(|error| format!("{name}/trace_pipe_raw: {error}"))?;
            self.rings.push(Ring {
                cpu,
                pipe: Some(pipe),
            });
        }
        self.set("tracing_on", "1")
    }

    fn set(&self, name: &str, value: &str) -> Result<(), String> {
        fs::write(self.path.join(name), value).map_err(|error| format!("{name}: {error}"))
    }

    fn enable(&self, kind: EventKind, wish: &Wish) -> Result<Format, String> {
        let (group, name) = kind.tracepoint();
        let event = format!("events/{group}/{name}");
        let text = read(&self.path.join(&event).join("format"))?;
        let format = Format::parse(kind, &text);
        let format = format.ok_or_else(|| format!("{event}/format: a field is missing"))?;
        let filter = filter(kind, wish);
        if !filter.is_empty() {
            self.set(&format!("{event}/filter"), &filter)?;
        }
        self.set(&format!("{event}/enable"), "1")?;
        Ok(format)
    }

    /// Reads pages of a processor until there are none, or so many events: then the time of the
    /// last one.
    fn drain(
        &mut self,
        at: usize,
        most: usize,
        events: &mut Vec<Event>,
    ) -> io::Result<Option<u64>> {
        let Ring {
            cpu,
            pipe: Some(pipe),
        } = &mut self.rings[at]
        else {
            return Ok(None);
        };
        let before = events.len();
        let mut last_ns = 0;
        while events.len() - before < most {
            let count = match pipe.read(&mut self.buffer) {
                Ok(0) => return Ok(None),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let formats = &self.formats;
            let mut each = |time_ns, data: &[u8]| {
                last_ns = time_ns;
                let id = data.first_chunk().map(|id| u16::from_le_bytes(*id));
                let format = id.and_then(|id| formats.get(&id));
                events.extend(format.and_then(|format| format.event(time_ns, *cpu, data)));
            };
            if !self.form.records(&self.buffer[..count], &mut each) {
                return Err(io::Error::other(format!(
                    "a page of processor {cpu} is damaged"
                )));
            }
        }
        Ok(Some(last_ns))
    }
}

/// The condition of a kind's events; empty for all.
pub(super) fn filter(kind: EventKind, wish: &Wish) -> String {
    let any = |field: &str, values: &mut dyn Iterator<Item = String>| {
        let terms: Vec<String> = values.map(|value| format!("{field}=={value}")).collect();
        terms.join("||")
    };
    match kind.tracepoint().0 {
        "block" if wish.devices.len() <= DEVICES_MAX => {
            any("dev", &mut wish.devices.iter().map(u32::to_string))
        }
        "workqueue" => any(
            "function",
            &mut wish
                .functions
                .iter()
                .map(|address| format!("0x{address:x}")),
        ),
        "fuse" if wish.connections.len() <= DEVICES_MAX => any(
            "connection",
            &mut wish.connections.iter().map(u32::to_string),
        ),
        "sched" => "next_pid!=0".to_owned(),
        _ => String::new(),
    }
}

/// The text of a file of tracefs. Some of them give their text to the first read only, whatever its
/// size, so that must be a large one.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let reading = || {
        let mut bytes = vec![0; TEXT_BYTES];
        let mut file = File::open(path)?;
        let mut length = 0;
        while length < TEXT_BYTES {
            match file.read(&mut bytes[length..]) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(length);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    reading().map_err(|error: io::Error| format!("{}: {error}", path.display()))
}

impl Source for Instance {
    fn name(&self) -> &'static str {
        "tracefs"
    }

    fn kinds(&self) -> &[EventKind] {
        &self.kinds
    }

    fn gate(&mut self, open: bool) {
        let _ = self.set("tracing_on", if open { "1" } else { "0" });
    }

    fn rest(&mut self, rests: bool) {
        for kind in &self.kinds {
            let (group, name) = kind.tracepoint();
            let state = if rests { "0" } else { "1" };
            let _ = self.set(&format!("events/{group}/{name}/enable"), state);
        }
    }

    fn read(&mut self, events: &mut Vec<Event>) -> io::Result<Option<u64>> {
        let before = events.len();
        let most = super::look_events(self.rings.len());
        let mut left_ns = None;
        for at in 0..self.rings.len() {
            let last_ns = self.drain(at, most, events)?;
            left_ns = left_ns.into_iter().chain(last_ns).min();
        }
        self.threads.complete(events, before);
        Ok(left_ns)
    }

    fn lost(&self) -> u64 {
        let of = |ring: &Ring| {
            let path = format!("per_cpu/cpu{}/stats", ring.cpu);
            lost_of(&read(&self.path.join(path)).unwrap_or_default())
        };
        self.rings.iter().map(of).sum()
    }
}

/// Lost events of a processor, from its `stats`.
fn lost_of(text: &str) -> u64 {
    let counts = text.lines().filter_map(|line| {
        let (name, count) = line.split_once(':')?;
        let lost = matches!(name, "overrun" | "commit overrun" | "dropped events");
        lost.then(|| count.trim().parse::<u64>().ok())?
    });
    counts.sum()
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.gate(false);
        for ring in &mut self.rings {
            ring.pipe = None;
        }
        let _ = fs::remove_dir(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_events_are_those_of_all_three_counters() {
        let text = "entries: 5\noverrun: 1\ncommit overrun: 2\nbytes: 9\n\
                    oldest event ts:  1.000000\ndropped events: 4\nread events: 8\n";
        assert_eq!((lost_of(text), lost_of("overrun: x\n")), (7, 0));
    }

    #[test]
    fn filters_name_devices_and_functions() {
        let wish = Wish {
            devices: vec![7 << 20, 8 << 20 | 1],
            connections: vec![42, 43],
            functions: vec![0xffff_0010],
            ..Wish::default()
        };
        assert_eq!(
            filter(EventKind::Queue, &wish),
            "dev==7340032||dev==8388609"
        );
        assert_eq!(filter(EventKind::WorkStart, &wish), "function==0xffff0010");
        assert_eq!(
            filter(EventKind::FuseSend, &wish),
            "connection==42||connection==43"
        );
        assert_eq!(filter(EventKind::Queue, &Wish::default()), "");
    }
}
