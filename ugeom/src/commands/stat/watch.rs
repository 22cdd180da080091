//! A thread that asks the server, so that keys are heard while it answers.

use anyhow::{Context, Result};
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use ugeom_serve::control::{Client, ControlError, Figures};

/// Looks that are taken elsewhere.
pub struct Looks {
    orders: SyncSender<()>,
    taken: Receiver<Result<Figures, ControlError>>,
    waiting: bool,
}

impl Looks {
    /// Starts the thread; it ends with this.
    pub fn start(mut client: Client, consumers: bool) -> Result<Self> {
        let (orders, inbox) = mpsc::sync_channel::<()>(1);
        let (tell, taken) = mpsc::channel();
        std::thread::Builder::new()
            .name("ugeom-look".to_owned())
            .spawn(move || {
                while inbox.recv().is_ok() {
                    if tell.send(client.figures(consumers)).is_err() {
                        return;
                    }
                }
            })
            .context("starting a thread")?;
        Ok(Self {
            orders,
            taken,
            waiting: false,
        })
    }

    /// Asks for a look, unless one is being taken.
    pub fn order(&mut self) {
        if !self.waiting {
            // A thread that is gone has sent its error.
            self.waiting = self.orders.try_send(()).is_ok();
        }
    }

    /// The look that was asked for, once it is there.
    ///
    /// # Errors
    /// The server has gone.
    pub fn take(&mut self) -> Result<Option<Figures>> {
        match self.taken.try_recv() {
            Ok(look) => {
                self.waiting = false;
                Ok(Some(look?))
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => Ok(None),
        }
    }
}
