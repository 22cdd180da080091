//! Where passphrases come from: passfiles, a descriptor, or the terminal, without echo.

use super::keys::Passphrase;
use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Termios};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use ugeom_machine::secret::Secret;

/// Why a passphrase cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "messages name the fields")]
pub enum PassphraseError {
    /// A file cannot be read.
    #[error("reading {what}: {error}")]
    Read {
        what: String,
        #[source]
        error: io::Error,
    },
    #[error(
        "{what}: the passphrase is longer than {} bytes",
        super::keys::PASSPHRASE_BYTES_MAX
    )]
    TooLong {
        /// Where it comes from.
        what: String,
    },
    #[error(
        "{what} needs a passphrase, and there is no terminal to ask for it: give a passfile \
             (`passfile=` of a layer, -j or -J of geli) or --passphrase-fd ({error})"
    )]
    NoTerminal {
        /// The purpose of the passphrase.
        what: String,
        #[source]
        error: io::Error,
    },
    /// The user pressed Ctrl-C or Ctrl-D.
    #[error("interrupted")]
    Interrupted,
    /// There is no memory for it.
    #[error("keys: {0}")]
    Memory(#[from] io::Error),
}

/// An empty passphrase, to be filled.
///
/// # Errors
/// There is no memory for it.
pub fn empty() -> io::Result<Secret<Passphrase>> {
    Secret::new(Passphrase::default)
}

/// Adds the first line of a file, without its newline. One byte is read at a time: what follows
/// the line stays in a pipe, and no buffer holds a copy.
///
/// # Errors
/// `Read` or `TooLong`.
pub fn add_line(
    into: &mut Passphrase,
    mut file: impl Read,
    what: &str,
) -> Result<(), PassphraseError> {
    let mut byte = [0];
    loop {
        match file.read(&mut byte) {
            Ok(0) => return Ok(()),
            Ok(_) if byte[0] == b'\n' => return Ok(()),
            Ok(_) => {
                let fits = into.push(byte[0]);
                byte[0] = 0;
                if !fits {
                    return Err(PassphraseError::TooLong { what: what.into() });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                let what = what.to_owned();
                return Err(PassphraseError::Read { what, error });
            }
        }
    }
}

/// Reads the passphrase from an open descriptor of this process.
///
/// # Errors
/// As [`add_line`].
pub fn from_descriptor(number: u32) -> Result<Secret<Passphrase>, PassphraseError> {
    let what = format!("descriptor {number}");
    let mut passphrase = empty()?;
    let file = File::open(format!("/dev/fd/{number}"));
    let file = file.map_err(|error| PassphraseError::Read {
        what: what.clone(),
        // A descriptor that is not open has no name there.
        error: match error.kind() {
            io::ErrorKind::NotFound => rustix::io::Errno::BADF.into(),
            _ => error,
        },
    })?;
    add_line(&mut passphrase, file, &what)?;
    Ok(passphrase)
}

/// Gives the terminal back as it was.
struct Restore<'a> {
    terminal: &'a File,
    before: Termios,
}

impl Drop for Restore<'_> {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
        // The newline that was not echoed.
        let _ = writeln!(&*self.terminal);
    }
}

/// Asks on the terminal, without echo.
///
/// # Errors
/// `NoTerminal`, `Interrupted`, `TooLong`, `Read`.
pub fn ask(prompt: &str, what: &str) -> Result<Secret<Passphrase>, PassphraseError> {
    let no_terminal = |error: io::Error| PassphraseError::NoTerminal {
        what: what.to_owned(),
        error,
    };
    let terminal = File::options().read(true).write(true).open("/dev/tty");
    let terminal = terminal.map_err(no_terminal)?;
    let before = termios::tcgetattr(terminal.as_fd());
    let before = before.map_err(|errno| no_terminal(errno.into()))?;
    let mut quiet = before.clone();
    // Without signals, too: one that ends the process would leave the terminal without echo.
    let off = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
    quiet.local_modes.remove(off);
    let codes = before.special_codes.clone();
    let set = termios::tcsetattr(&terminal, OptionalActions::Flush, &quiet);
    set.map_err(|errno| no_terminal(errno.into()))?;
    let restore = Restore {
        terminal: &terminal,
        before,
    };
    let failed = |error| PassphraseError::Read {
        what: "the terminal".into(),
        error,
    };
    (&terminal).write_all(prompt.as_bytes()).map_err(failed)?;
    let mut passphrase = empty()?;
    let mut byte = [0];
    loop {
        let read = (&terminal).read(&mut byte).map_err(failed)?;
        let key = std::mem::take(&mut byte[0]);
        if read == 0 || key == codes[SpecialCodeIndex::VINTR] {
            return Err(PassphraseError::Interrupted);
        }
        match key {
            b'\n' | b'\r' => break,
            key if key == codes[SpecialCodeIndex::VEOF] => break,
            key if key == codes[SpecialCodeIndex::VERASE] || key == 8 => passphrase.pop(),
            key if key == codes[SpecialCodeIndex::VKILL] => passphrase.clear(),
            key if !passphrase.push(key) => {
                let what = what.to_owned();
                return Err(PassphraseError::TooLong { what });
            }
            _ => {}
        }
    }
    drop(restore);
    Ok(passphrase)
}
