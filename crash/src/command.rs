//! Commands of the user: the set-up, the run and the check, with the device as a file, a URI or a
//! file system.

mod child;
mod leftovers;
mod mounted;
mod served;

pub use mounted::FileSystem;

use crate::check::Check;
use crate::disk::Disk;
use crate::error::{CrashError, open, os};
use crate::record::{Recording, stack_of};
use child::{Ended, Shell};
use leftovers::{MarkedFolder, Since, end_marked};
use mounted::Mounted;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use served::Served;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use ugeom_classes::crash::Promises;

/// How often promises are taken from a run that writes nothing.
const HEARING: Duration = Duration::from_millis(20);

/// How commands see the device.
#[derive(Clone, Debug)]
pub struct View {
    /// The file system in `$mnt`, if there is to be one.
    pub file_system: Option<FileSystem>,
    /// Options of its mount while the run is recorded, and while states are checked.
    pub mount_options: String,
    /// Check the file system after each check.
    pub fsck: bool,
    /// How long one command may take.
    pub timeout: Duration,
    /// Set by the caller to end the running command.
    pub stop: Arc<AtomicBool>,
}

/// Records a run: the set-up, if there is one, then the run, whose promises are lines `ack KEY` on
/// descriptor 3, or in the pipe `$ack`.
///
/// # Errors
/// The device cannot be served or mounted; a command fails or takes too long.
pub fn record(
    log: &Path,
    size_bytes: u64,
    setup: Option<&str>,
    run: &str,
    view: &View,
) -> Result<(), CrashError> {
    let recording = Recording::start(log, size_bytes)?;
    let since = Since::now();
    let folder = MarkedFolder::new()?;
    let (stack, name) = recording.stack()?;
    let served = Served::start(&stack, &name, folder.path())?;
    if let Some(file_system) = view.file_system {
        file_system.make(&served.device, folder.path())?;
    }
    let mounted = mount(view, &served, folder.path())?;
    let shell = Shell::new(&served, mounted.as_ref(), folder.path(), view);
    let must = |what, command: &str, shell: &Shell| match shell.run(command)? {
        Ended::Well => Ok(()),
        Ended::Badly(how) => Err(CrashError::Command {
            what,
            command: command.to_owned(),
            how,
        }),
    };
    if let Some(setup) = setup {
        must("the set-up", setup, &shell)?;
    }
    if let Some(mounted) = &mounted {
        mounted.sync()?;
    }
    let pipe = folder.path().join("ack");
    let made = rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0);
    made.map_err(|error| os("making", &pipe)(error.into()))?;
    recording.begin();
    recording.listen(Some(promises(&pipe)?));
    let over = AtomicBool::new(false);
    let ran = std::thread::scope(|scope| {
        let hearing = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                recording.hear()?;
                std::thread::sleep(HEARING);
            }
            Ok(())
        });
        let ran = must("the run", run, &shell.with_promises(&pipe, "ack"));
        over.store(true, Ordering::Relaxed);
        // A thread that panicked has said so.
        ran.and(hearing.join().unwrap_or(Ok(())))
    });
    recording.hear()?;
    recording.listen(None);
    end_marked(folder.path(), since);
    drop(mounted);
    drop(served);
    drop(stack);
    ran?;
    recording.finish()
}

/// Reads `ack KEY` lines from the pipe whenever it is asked.
fn promises(pipe: &Path) -> Result<Promises, CrashError> {
    // Open for both, so that it never ends and opening does not wait.
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::open(pipe, flags, Mode::empty());
    let mut input = fs::File::from(opened.map_err(|error| open(pipe)(error.into()))?);
    let mut text = Vec::new();
    Ok(Box::new(move |with: &mut dyn FnMut(&[u8])| {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = input.read(&mut piece) {
            text.extend_from_slice(&piece[..length]);
        }
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            if let Some(key) = line[..end].strip_prefix(b"ack ") {
                with(key.trim_ascii());
            }
        }
    }))
}

fn mount(view: &View, served: &Served, folder: &Path) -> Result<Option<Mounted>, CrashError> {
    let Some(file_system) = view.file_system else { return Ok(None) };
    let mut mounted = Mounted::new(file_system, &served.device, folder)?;
    mounted.mount(&view.mount_options)?;
    Ok(Some(mounted))
}

/// A check that is a command: it fails with a code other than 0, and reports keys as lines
/// `found KEY` on descriptor 3, or in the file `$found`.
pub struct CommandCheck {
    command: String,
    view: View,
}

impl CommandCheck {
    /// The shell command `command`.
    pub fn new(command: &str, view: &View) -> Self {
        Self {
            command: command.to_owned(),
            view: view.clone(),
        }
    }
}

/// The resources of a lane of commands. Its parts are dropped in this order.
pub struct CommandLane {
    mounted: Option<Mounted>,
    served: Served,
    found: PathBuf,
    folder: MarkedFolder,
}

impl Check for CommandCheck {
    type Lane = CommandLane;

    fn lane(&self, _number: usize, disk: &Disk) -> Result<CommandLane, CrashError> {
        let folder = MarkedFolder::new()?;
        let (stack, name) = stack_of(disk)?;
        let served = Served::start(&stack, &name, folder.path())?;
        let mounted = match self.view.file_system {
            Some(file_system) => Some(Mounted::new(file_system, &served.device, folder.path())?),
            None => None,
        };
        Ok(CommandLane {
            mounted,
            served,
            found: folder.path().join("found"),
            folder,
        })
    }

    fn check(
        &self,
        lane: &mut CommandLane,
        _disk: &Disk,
    ) -> Result<Result<Vec<String>, String>, CrashError> {
        if let Some(mounted) = &mut lane.mounted
            && let Err(why) = mounted.mount(&self.view.mount_options)
        {
            return Ok(Err(why.to_string()));
        }
        let path = &lane.found;
        fs::write(path, "").map_err(os("emptying", path))?;
        let folder = lane.folder.path();
        let shell = Shell::new(&lane.served, lane.mounted.as_ref(), folder, &self.view);
        let since = Since::now();
        let ended = shell.with_promises(path, "found").run(&self.command);
        end_marked(folder, since);
        if let Some(mounted) = &mut lane.mounted {
            mounted.unmount()?;
        }
        if let Ended::Badly(how) = ended? {
            return Ok(Err(how));
        }
        if self.view.fsck
            && let Some(mounted) = &mut lane.mounted
            && let Err(how) = mounted.fsck()?
        {
            return Ok(Err(how));
        }
        let text = fs::read(path).map_err(os("reading", path))?;
        let text = String::from_utf8_lossy(&text);
        let keys = text.lines().filter_map(|line| line.strip_prefix("found "));
        Ok(Ok(keys.map(|key| key.trim().to_owned()).collect()))
    }
}
