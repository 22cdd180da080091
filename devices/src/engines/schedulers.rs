//! The device's I/O scheduler: listing, setting, and restoring the original one.
//!
//! The measurements of 2007 were made with the anticipatory scheduler, and "the relative
//! performance did not change" with three others.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use ugeom_harness::HarnessError;
use ugeom_machine::block_device::{self, BlockDevice};

/// The schedulers of a device. Dropping this puts back the one that was set.
pub(super) struct Schedulers {
    device: BlockDevice,
    before: String,
    /// The one that is set now.
    now: RefCell<String>,
    /// All that it can have; the one that was set comes first.
    pub all: Vec<String>,
}

impl Schedulers {
    /// Those of the device that a path ends at.
    ///
    /// # Errors
    /// [`HarnessError::Os`] when there is no device, when it has no choice of schedulers, or when
    /// this user may not choose.
    pub fn below(path: &Path) -> Result<Self, HarnessError> {
        let name = path.display().to_string();
        let refused = |path: &str, problem: String| {
            let source = io::Error::new(io::ErrorKind::Unsupported, problem);
            HarnessError::os(path, "trying its schedulers")(source)
        };
        let devices =
            block_device::below(path).map_err(HarnessError::os(&name, "asking for its device"))?;
        let device = devices.into_iter().next();
        let device = device.ok_or_else(|| {
            refused(
                &name,
                "it is not on a block device known to the kernel, so it has no scheduler"
                    .to_owned(),
            )
        })?;
        let queue = device.queue();
        let Some(before) = queue.scheduler.filter(|_| queue.schedulers.len() > 1) else {
            let problem = format!(
                "the device has no choice of schedulers (it has: {})",
                match queue.schedulers.as_slice() {
                    [] => "none",
                    [one, ..] => one,
                }
            );
            return Err(refused(&device.name, problem));
        };
        let mut all = queue.schedulers;
        all.sort_by_key(|one| *one != before);
        let schedulers = Self {
            now: RefCell::new(before.clone()),
            device,
            before,
            all,
        };
        // The one that is set already: whether this user may, without changing anything.
        schedulers.write(&schedulers.before)?;
        Ok(schedulers)
    }

    /// Makes it the scheduler of the device.
    ///
    /// # Errors
    /// [`HarnessError::Os`] when the kernel refuses it.
    pub fn set(&self, scheduler: &str) -> Result<(), HarnessError> {
        if *self.now.borrow() != scheduler {
            self.write(scheduler)?;
            scheduler.clone_into(&mut self.now.borrow_mut());
        }
        Ok(())
    }

    fn write(&self, scheduler: &str) -> Result<(), HarnessError> {
        self.device.set_scheduler(scheduler).map_err(|error| {
            let error = match error.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    io::Error::new(
                        error.kind(),
                        format!("only root may do that here ({error})"),
                    )
                }
                _ => error,
            };
            HarnessError::os(
                format!("{} (scheduler {scheduler})", self.device.name),
                "setting its I/O scheduler",
            )(error)
        })
    }
}

impl Drop for Schedulers {
    fn drop(&mut self) {
        // No one is left to tell; that it could be set was tried at the beginning.
        let _ = self.set(&self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_device_has_no_schedulers() {
        let error = Schedulers::below(Path::new("/proc/self/stat"));
        let error = error.err().map(|error| error.to_string());
        assert!(
            error
                .as_deref()
                .is_some_and(|text| text.contains("it is not on a block device")),
            "{error:?}"
        );
        assert!(Schedulers::below(Path::new("/no/such/path")).is_err());
    }
}
