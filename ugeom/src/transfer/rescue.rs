//! Reading a medium with faults: readable sectors go to their place in the output, and a map in GNU
//! ddrescue's format has the rest.
//!
//! | pass | blocks | size | after an error |
//! |---|---|---|---|
//! | 1, forward | `?` | 1 MiB | the block is `*`; as much again as was skipped before stays `?` |
//! | 2, backward | `?` | 64 KiB | the same |
//! | 3, forward | `?` | 64 KiB | the block is `*` |
//! | 4, forward | `*` and `/` | a sector | the sector is `-` |
//! | retries, forward and backward in turn | `-` | a sector | it stays `-` |

use super::Geometry;
use crate::failure::{Interrupted, Reported};
use crate::output;
use crate::progress::Progress;
use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use ugeom_format::ddrescue::{Map, Status};
use ugeom_machine::interrupt;
use ugeom_machine::result_file::refuse_disk;
use ugeom_machine::temporary::NewFile;
use ugeom_measure::units::grouped;
use ugeom_stack::{Channel, Errno, Opened};

const LARGE_BYTES: u64 = 1 << 20;
const SMALL_BYTES: u64 = 64 << 10;
/// How much is skipped after the first error, and at most, bytes.
const SKIP_BYTES: u64 = 64 << 10;
const SKIP_BYTES_MAX: u64 = 1 << 30;
/// The longest map that is read, bytes.
const MAP_BYTES_MAX: u64 = 64 << 20;
/// How often the map is written.
const SAVING: Duration = Duration::from_secs(10);

/// The user's options.
pub struct Wanted<'a> {
    pub map: Option<&'a Path>,
    pub retries: u32,
}

/// One pass over the blocks of a status.
#[derive(Clone, Copy)]
struct Pass {
    of: Status,
    size_bytes: u64,
    backward: bool,
    /// The status of an unreadable block.
    fails_as: Status,
    skips: bool,
}

struct Rescue<'a> {
    channel: Channel,
    opened: &'a Opened,
    sector_bytes: u64,
    /// The provider's bytes that are wanted, and those of its sectors.
    range: Range<u64>,
    sectors: Range<u64>,
    out: File,
    /// The provider's byte that is the first of the output.
    out_start: u64,
    map: Map,
    /// Bytes that the map lists as read outside of the range.
    done_elsewhere: u64,
    map_path: Option<PathBuf>,
    saved: Instant,
    signals: OwnedFd,
    progress: Progress,
    buffer: Vec<u8>,
}

/// Reads the readable sectors of a range.
///
/// # Errors
/// Stdout is no file, or the map is wrong; sectors could not be read; Ctrl-C.
pub fn copy(
    opened: &Opened,
    channel: Channel,
    range: Range<u64>,
    wanted: &Wanted<'_>,
) -> Result<()> {
    let Some(provider) = opened.view() else {
        bail!("the provider is destroyed");
    };
    let geometry = Geometry::of(&provider);
    let sectors = geometry.sectors(&range);
    let out = output_file()?;
    let map = match wanted.map {
        Some(path) => continued(path, &sectors, &out)?,
        None => Map::new(sectors.clone()),
    };
    let length = range.end - range.start;
    let done_elsewhere = map.with(Status::Done).into_iter().map(|it| {
        let inside = it.start.max(sectors.start)..it.end.min(sectors.end);
        (it.end - it.start) - inside.end.saturating_sub(inside.start)
    });
    let done_elsewhere = done_elsewhere.sum();
    // A map holds whole sectors at their offsets of the provider. With one, so does the output, as
    // ddrescue writes it, and another range goes beside what was read before.
    let (out_start, range) = match wanted.map {
        Some(_) => (0, sectors.clone()),
        None => (range.start, range),
    };
    let out_bytes = range.end - out_start;
    if out.metadata()?.len() < out_bytes {
        out.set_len(out_bytes)
            .context("setting the size of the output")?;
    }
    let mut rescue = Rescue {
        channel,
        opened,
        sector_bytes: geometry.sector_bytes,
        buffer: vec![0; LARGE_BYTES.max(geometry.sector_bytes) as usize],
        progress: Progress::from(map.bytes(Status::Done) - done_elsewhere, Some(length)),
        done_elsewhere,
        range,
        sectors,
        out,
        out_start,
        map,
        map_path: wanted.map.map(Path::to_owned),
        saved: Instant::now(),
        signals: interrupt::end_signals().context("listening for Ctrl-C")?,
    };
    let passed = rescue.passes(wanted.retries);
    let saved = rescue.save();
    if let (Err(_), Err(error)) = (&passed, &saved) {
        // The first reason decides about the exit code.
        output::complain(&format!("{error:#}"));
    }
    passed.and(saved)?;
    rescue.judge()
}

/// Stdout as a file in which every byte has its place.
fn output_file() -> Result<File> {
    let stdout = io::stdout();
    let fd = stdout.as_fd();
    let regular = FileType::from_raw_mode(fstat(fd)?.st_mode) == FileType::RegularFile;
    let appends = fcntl_getfl(fd)?.contains(OFlags::APPEND);
    if !regular || appends {
        bail!("--skip-errors needs a file as stdout, opened with > or 1<>");
    }
    Ok(File::from(fd.try_clone_to_owned()?))
}

/// The map of an earlier run, or a new one.
fn continued(path: &Path, sectors: &Range<u64>, out: &File) -> Result<Map> {
    let shown = path.display();
    refuse_disk(path).with_context(|| shown.to_string())?;
    let about = match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Map::new(sectors.clone()));
        }
        found => found.with_context(|| shown.to_string())?,
    };
    if !about.is_file() {
        bail!("{shown}: not a regular file");
    }
    if about.len() > MAP_BYTES_MAX {
        bail!("{shown}: {} bytes are too many for a map", about.len());
    }
    let text = std::fs::read_to_string(path).with_context(|| shown.to_string())?;
    let mut map = Map::parse(&text).with_context(|| format!("{shown}: not a map"))?;
    let done = map.bytes(Status::Done);
    if done > 0 && out.metadata()?.len() == 0 {
        bail!(
            "{shown} lists {done} bytes as read, but the output is empty: write to the file of \
             the earlier run with 1<> FILE, which does not truncate it"
        );
    }
    let (first, last) = (map.blocks().next(), map.blocks().next_back());
    match (first, last) {
        (Some((first, _)), Some((last, _))) => {
            map.set(sectors.start..first.start.min(sectors.end), Status::Untried);
            map.set(last.end.max(sectors.start)..sectors.end, Status::Untried);
        }
        _ => map = Map::new(sectors.clone()),
    }
    Ok(map)
}

impl Rescue<'_> {
    fn passes(&mut self, retries: u32) -> Result<()> {
        let sector = self.sector_bytes;
        let pass = |of, size_bytes: u64, backward, fails_as, skips| Pass {
            of,
            size_bytes: size_bytes.max(sector),
            backward,
            fails_as,
            skips,
        };
        use Status::{Bad, Failed, Trimmed, Untried};
        self.pass(pass(Untried, LARGE_BYTES, false, Failed, true))?;
        self.pass(pass(Untried, SMALL_BYTES, true, Failed, true))?;
        self.pass(pass(Untried, SMALL_BYTES, false, Failed, false))?;
        self.pass(pass(Failed, sector, false, Bad, false))?;
        self.pass(pass(Trimmed, sector, false, Bad, false))?;
        for number in 0..retries {
            self.pass(pass(Bad, sector, number % 2 == 1, Bad, false))?;
        }
        Ok(())
    }

    fn pass(&mut self, pass: Pass) -> Result<()> {
        let mut ranges = self.map.with(pass.of);
        if pass.backward {
            ranges.reverse();
        }
        let mut skip = 0;
        for range in ranges {
            let mut left = range.start.max(self.sectors.start)..range.end.min(self.sectors.end);
            while left.start < left.end {
                let length = pass.size_bytes.min(left.end - left.start);
                let piece = match pass.backward {
                    false => left.start..left.start + length,
                    true => left.end - length..left.end,
                };
                let read = self.read(&piece)?;
                let status = if read { Status::Done } else { pass.fails_as };
                self.map.set(piece, status);
                skip = match read {
                    true => 0,
                    false if pass.skips => (skip * 2).clamp(SKIP_BYTES, SKIP_BYTES_MAX),
                    false => 0,
                };
                let step = length
                    .saturating_add(skip)
                    .next_multiple_of(self.sector_bytes);
                match pass.backward {
                    false => left.start = left.start.saturating_add(step),
                    true => left.end = left.end.saturating_sub(step),
                }
                self.look_up()?;
            }
        }
        Ok(())
    }

    /// Reads whole sectors and puts them into their place; false when they cannot be read.
    fn read(&mut self, piece: &Range<u64>) -> Result<bool> {
        let length = (piece.end - piece.start) as usize;
        let into = &mut self.buffer[..length];
        match self.channel.read(self.opened, piece.start, into) {
            Ok(read) if read == length => {}
            Ok(_) => return Ok(false),
            Err(error) if error.errno == Errno::NXIO => return Err(error.into()),
            Err(_) => return Ok(false),
        }
        let wanted = piece.start.max(self.range.start)..piece.end.min(self.range.end);
        if wanted.start < wanted.end {
            let from = (wanted.start - piece.start) as usize..(wanted.end - piece.start) as usize;
            let at = wanted.start - self.out_start;
            let written = self.out.write_all_at(&self.buffer[from], at);
            written.context("writing to stdout")?;
        }
        Ok(true)
    }

    /// Between two reads: the bar, the map, Ctrl-C.
    fn look_up(&mut self) -> Result<()> {
        let done = self.map.bytes(Status::Done);
        self.progress.at(done - self.done_elsewhere);
        if self.saved.elapsed() > SAVING {
            self.save()?;
        }
        let mut fds = [PollFd::new(&self.signals, PollFlags::IN)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut fds, Some(&now))?;
        if fds[0].revents().is_empty() {
            return Ok(());
        }
        let done = grouped(self.map.bytes(Status::Done));
        let more = match self.map_path {
            Some(_) => "the same command with 1<> FILE continues",
            None => "without --map it cannot be continued",
        };
        Err(Interrupted(format!("interrupted: {done} bytes were read; {more}")).into())
    }

    /// Replaces the map, so that a crash leaves the old or the new one.
    fn save(&mut self) -> Result<()> {
        self.saved = Instant::now();
        let Some(path) = &self.map_path else { return Ok(()) };
        let saved = self.out.sync_data().and_then(|()| {
            let mut new = NewFile::create(path)?;
            new.file.write_all(self.map.to_string().as_bytes())?;
            new.keep()
        });
        saved.with_context(|| format!("{}: writing the map", path.display()))
    }

    fn judge(&self) -> Result<()> {
        let bad: Vec<_> = self.map.with(Status::Bad);
        if bad.is_empty() {
            return Ok(());
        }
        let bytes = grouped(self.map.bytes(Status::Bad));
        output::complain(&format!(
            "{bytes} bytes in {} {} could not be read and are zeroes in the output; the first \
             at {}",
            bad.len(),
            if bad.len() == 1 { "place" } else { "places" },
            bad[0].start
        ));
        Err(Reported.into())
    }
}
