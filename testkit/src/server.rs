//! A program that runs beside a test.

use std::ops::{Deref, DerefMut};
use std::process::{Child, Command, ExitStatus};

/// A server of any program; killed when dropped.
#[derive(Debug)]
pub struct Server(pub Child);

impl Server {
    /// Sends a signal, such as `-TERM`, and waits for the end.
    ///
    /// # Panics
    /// There is no kill(1), or the process cannot be waited for.
    pub fn signal(&mut self, signal: &str) -> ExitStatus {
        let mut kill = Command::new("kill");
        let sent = kill.arg(signal).arg(self.id().to_string()).status();
        assert!(sent.expect("kill(1) runs").success());
        self.wait().expect("it ends")
    }
}

impl Deref for Server {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
