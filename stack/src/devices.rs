//! The locked registry: how many requests are inside each open device, under one lock that every
//! request takes when it enters and when it has completed.
//!
//! FreeBSD's `dev_refthread` and `dev_relthread` (`sys/kern/kern_conf.c`) do the same under
//! `devmtx`, so that a device does not go away under a request. Here generations see to that
//! without a lock; this is the other way, to be chosen and measured.

use crate::bio::{Bio, Flags};
use crate::cx::Cx;
use crate::snapshot::{Drive, Snapshot};
use crate::strategy::Mover;
use std::marker::PhantomData;
use ugeom_machine::mutex::Mutex;

/// The references of all open devices of a stack, indexed by `Opened::entry`.
#[derive(Default)]
pub(crate) struct Devices {
    references: Mutex<Vec<u64>>,
}

impl Devices {
    /// Makes room for so many devices, so that the data path never allocates.
    pub(crate) fn reserve(&self, devices: usize) {
        let mut references = self.references.lock();
        if references.len() < devices {
            references.resize(devices, 0);
        }
    }

    /// The request enters its device. A handle of another stack has none; it will be refused.
    fn take(&self, bio: &mut Bio) {
        let body = bio.body_mut();
        if let Some(count) = self.references.lock().get_mut(body.entry as usize) {
            *count += 1;
            body.flags = body.flags.with(Flags::REFERENCED);
        }
    }

    /// The request has completed.
    fn give_back(&self, bio: &mut Bio) {
        let body = bio.body_mut();
        if !body.flags.contains(Flags::REFERENCED) {
            return;
        }
        body.flags = body.flags.without(Flags::REFERENCED);
        if let Some(count) = self.references.lock().get_mut(body.entry as usize) {
            *count -= 1;
        }
    }
}

/// Another way to move bios, with a reference on the device around it.
pub(crate) struct Referenced<M>(PhantomData<M>);

impl<M: Mover> Mover for Referenced<M> {
    const ENTER: Drive = Self::enter;
    const GO_ON: Drive = Self::go_on;
}

impl<M: Mover> Referenced<M> {
    fn enter(snapshot: &Snapshot, cx: &mut Cx, mut bio: Bio) -> Option<Bio> {
        snapshot.devices.take(&mut bio);
        let mut home = M::ENTER(snapshot, cx, bio)?;
        snapshot.devices.give_back(&mut home);
        Some(home)
    }

    fn go_on(snapshot: &Snapshot, cx: &mut Cx, mut bio: Bio) -> Option<Bio> {
        // One that a barrier held back enters here. A clone is inside with its parent.
        let body = bio.body();
        if body.parent.is_none() && !body.flags.contains(Flags::REFERENCED) {
            snapshot.devices.take(&mut bio);
        }
        let mut home = M::GO_ON(snapshot, cx, bio)?;
        snapshot.devices.give_back(&mut home);
        Some(home)
    }
}
