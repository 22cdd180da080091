//! A class as the stack sees it: the method table of its geoms, and its tasting.
//!
//! The words are those of `geom(4)` and `geom.h`. A geom's methods on the data path (`start`,
//! `done`, `resume`) decide, they do not call the next layer; everything else runs under the
//! topology lock and answers with plain values.

use crate::access::{Counts, Delta};
use crate::bio::{BioId, Next, Request};
use crate::cx::{Completions, Cx, LocalKey};
use crate::error::{Errno, IoError};
use crate::losses::{Losses, Unsaved};
use crate::lower::Lower;
use crate::taste::Taster;
use std::any::Any;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// A class: a kind of geom.
pub trait Class: Send + Sync {
    /// GEOM's name of the class, upper case (`MD`, `MBR`, `NOP`).
    fn name(&self) -> &'static str;

    /// Examines a provider and returns the geom that it would put on top. `Ok(None)`: nothing of
    /// ours.
    ///
    /// # Errors
    /// [`TasteError`] when there is something of ours, but too damaged to use. It is shown to the
    /// user and does not stop other classes.
    fn taste(&self, taster: &mut Taster<'_>) -> Result<Option<Plan>, TasteError> {
        let _ = taster;
        Ok(None)
    }
}

/// Metadata that a class recognised, but cannot use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{class} on {provider}: {problem}")]
pub struct TasteError {
    /// The class that says so.
    pub class: &'static str,
    /// The provider that was tasted.
    pub provider: String,
    /// The defect, its place, and the reason.
    pub problem: String,
}

/// What a class states about a geom or a provider: a name and a value.
pub type Fact = (&'static str, String);

/// The geom and the providers that a class wants the stack to make.
pub struct Plan {
    /// The name of the geom; by custom that of the provider below it.
    pub name: String,
    /// The object whose methods the stack calls for each request.
    pub geom: Arc<dyn Geom>,
    /// Its providers; their order gives the port that requests carry.
    pub providers: Vec<ProviderPlan>,
}

impl Plan {
    /// A geom with one provider, whose name it shares.
    pub fn of(provider: ProviderPlan, geom: Arc<dyn Geom>) -> Self {
        Self {
            name: provider.name.clone(),
            geom,
            providers: vec![provider],
        }
    }
}

/// A provider to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderPlan {
    /// Its name, unique in the stack.
    pub name: String,
    /// The size of its media in bytes.
    pub mediasize_bytes: u64,
    /// The size of its sectors in bytes, a power of two or not.
    pub sectorsize_bytes: u32,
    /// The size of the stripes it prefers in bytes, 0 for none.
    pub stripesize_bytes: u64,
    /// Where the first stripe boundary lies, bytes.
    pub stripeoffset_bytes: u64,
    /// Bytes at the end of the last sector that are no part of the image and read as zeroes: the
    /// image has no whole number of sectors. Less than a sector.
    pub padding_bytes: u32,
    /// A fault that a user must see (`reaches 4096 bytes past the end of md0`), if any.
    pub mark: Option<String>,
    /// Facts for `show` and confxml, in order: (`type`, `freebsd-ufs`), (`label`, ...), ...
    pub config: Vec<Fact>,
}

impl ProviderPlan {
    /// A provider without stripes, padding, a fault or facts.
    pub fn new(name: impl Into<String>, mediasize_bytes: u64, sectorsize_bytes: u32) -> Self {
        Self {
            name: name.into(),
            mediasize_bytes,
            sectorsize_bytes,
            ..Self::default()
        }
    }
}

/// The methods of a geom.
pub trait Geom: Send + Sync + 'static {
    /// Decides on a request to one of its providers. Runs on the caller's thread
    /// (direct dispatch) or on `g_down` (queued); must not block for long.
    fn start(&self, request: Request<'_>, cx: &mut Cx) -> Next;

    /// Says that it does nothing with any request to this provider that names a range but pass it
    /// on to its only consumer, so many bytes further. The stack may then make that step itself,
    /// without asking [`Geom::start`], which must do the same.
    fn shift(&self, port: u16) -> Option<u64> {
        let _ = port;
        None
    }

    /// Where byte 0 of this provider lies in the provider of its only consumer, if its bytes lie
    /// there one after the other. `None`: they lie elsewhere, or in no order.
    fn position(&self, port: u16) -> Option<u64> {
        self.shift(port)
    }

    /// Answers a GETATTR, or decides about it as about any other request. A method of its own, so
    /// that `start` of a layer that passes everything else on need not look at the command.
    fn attribute(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        self.start(request, cx)
    }

    /// True when [`Geom::done`] wants to see requests that it forwarded when they come back.
    fn wants_done(&self) -> bool {
        false
    }

    /// Sees a request come back from the consumer that it was forwarded to. May let it go on
    /// ([`Request::finish`]), change the result, forward it again, park or delay it.
    fn done(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        let _ = cx;
        request.finish()
    }

    /// Decides again about a request that it delayed ([`Request::delay`]) or that was parked and
    /// then resumed.
    fn resume(&self, request: Request<'_>, cx: &mut Cx) -> Next {
        let _ = cx;
        request.finish()
    }

    /// State that each thread needs for itself, made when the thread first meets the geom (an
    /// I/O engine, say).
    /// [`Geom::local_key`] must name it.
    ///
    /// # Errors
    /// The errno that requests of this thread will then fail with.
    fn thread_state(&self) -> Result<Box<dyn ThreadState>, Errno> {
        Err(Errno::NXIO)
    }

    /// The key of its thread state, if it has any.
    fn local_key(&self) -> Option<LocalKey> {
        None
    }

    /// A client wants to cancel a bio that this geom may hold. If it does, it completes it with
    /// ECANCELED; otherwise it does nothing.
    fn cancel(&self, id: BioId) {
        let _ = id;
    }

    /// The largest number of clones that one request may become, 0 when it never clones.
    fn widest_fan_out(&self) -> usize {
        0
    }

    /// True when it does I/O of its own beside the requests that pass it; then
    /// [`Geom::attached`] shows it the way.
    fn does_own_io(&self) -> bool {
        false
    }

    /// It stands in its stack, with the way to the providers below it. Called once, before any
    /// client opens it, for geoms that do I/O of their own.
    fn attached(&self, lower: Lower) {
        let _ = lower;
    }

    /// The last writer of one of its providers is about to leave, or the geom is to be destroyed:
    /// brings to the media what was accepted for it, durably, and lets go of the channel that it
    /// used. The consumers are still open as they were. Runs in the thread that closes; it may do
    /// I/O and wait, but not for requests of that thread.
    ///
    /// # Errors
    /// The data that could not be written. Closing goes on; the geom keeps what it still has, and
    /// says so.
    fn settle(&self) -> Result<(), IoError> {
        Ok(())
    }

    /// Where it notes that it has lost what it had acknowledged. Asked once, when it is made. The
    /// core notes there, too, when a FLUSH fails in the geom.
    fn losses(&self) -> Arc<Losses> {
        Arc::default()
    }

    /// True when a FLUSH that the geom itself fails is no loss: it keeps what it could not write,
    /// or knows what it has acknowledged since the last FLUSH, and notes each loss itself.
    fn notes_each_loss(&self) -> bool {
        false
    }

    /// The accepted data that is not written, or could not be.
    fn unsaved(&self) -> Option<Unsaved> {
        None
    }

    /// Why all that it has written is lost once the process ends: its file was removed.
    fn ends_with_process(&self) -> Option<&'static str> {
        None
    }

    /// Answers a change of the access counts of one of its providers with the changes that it
    /// makes to those of its consumers. It may be asked about a change that is not made in the
    /// end, so asking has no effect.
    ///
    /// # Errors
    /// The errno that opening then fails with. Closing must not fail.
    fn access(&self, change: &AccessChange<'_>) -> Result<Vec<Delta>, Errno> {
        Ok(vec![change.delta; change.consumers.len()])
    }

    /// The provider below was opened for writing by another consumer. False (GEOM's standard): the
    /// geom withers; true: it can live with that.
    fn survives_spoil(&self) -> bool {
        false
    }

    /// The provider below has a new size. `None`: this geom cannot resize; it is orphaned when
    /// the provider shrinks and tasted anew otherwise. `Some`: new sizes of its own providers,
    /// in their order, each with its mark.
    fn resize(&self, mediasize_bytes: u64) -> Option<Vec<(u64, Option<String>)>> {
        let _ = mediasize_bytes;
        None
    }

    /// The size of its only provider's media, bytes, if that has grown since it was asked last.
    /// For geoms at the bottom, whose media something else may extend.
    fn media_bytes(&self) -> Option<u64> {
        None
    }

    /// Facts about the geom for `show` and confxml.
    fn config(&self) -> Vec<Fact> {
        Vec::new()
    }
}

/// The arguments of [`Geom::access`].
pub struct AccessChange<'a> {
    /// The port of its provider.
    pub port: u16,
    /// The changes of the provider's counts of readers, writers and exclusive users.
    pub delta: Delta,
    /// The counts of its providers before the change.
    pub providers: &'a [Counts],
    /// The counts of its consumers before the change.
    pub consumers: &'a [Counts],
}

impl AccessChange<'_> {
    /// The rule of slicers and other in-band classes (`g_slice_access`): pass the change on, and
    /// keep one more exclusive count below from the first open to the last close.
    pub fn exclusive_while_open(&self) -> Vec<Delta> {
        let pass = |counts: &Counts| {
            let mut delta = self.delta;
            if *counts == Counts::default() {
                delta.exclusive += 1;
            }
            let after = |count: u32, change: i32| i64::from(count) + i64::from(change);
            if after(counts.read, delta.read) == 0
                && after(counts.write, delta.write) == 0
                && after(counts.exclusive, delta.exclusive) == 1
            {
                delta.exclusive -= 1;
            }
            delta
        };
        self.consumers.iter().map(pass).collect()
    }
}

/// A thread's own state of a geom; the thread polls it and sleeps on its descriptor.
pub trait ThreadState: Send + Any {
    /// For downcasting by the geom that made it.
    fn as_any(&mut self) -> &mut dyn Any;

    /// Moves ready requests into `completions`, and starts waiting ones.
    fn poll(&mut self, completions: &mut Completions<'_>);

    /// How many bios it holds.
    fn in_flight(&self) -> usize;

    /// A descriptor that becomes readable when `poll` has something to do. `None`: poll again at
    /// once while anything is in flight.
    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// How long a thread that has nothing else to do should poll again and again before it sleeps,
    /// ns: where answers come sooner than a thread is woken.
    fn poll_ns(&self) -> u64 {
        0
    }

    /// Gives a bio that it holds back as cancelled, if it can.
    fn cancel(&mut self, id: BioId) {
        let _ = id;
    }
}
