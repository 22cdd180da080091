//! The terminal as a screen: its own page, keys without Return, and everything as it was in the
//! end: after a key, an error, a signal or a panic.

use super::keys::{Key, keys};
use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;
use ugeom_machine::interrupt;
use ugeom_machine::mutex::Mutex;

/// The other page, without a cursor (xterm's private modes 1049 and 25).
const ENTER: &str = "\x1b[?1049h\x1b[?25l";

/// The cursor, and the page that was there.
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";

/// How the terminal was set before; none while it is as it was.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    Plain,
    /// Bold (SGR 1).
    Heading,
    /// Dim (SGR 2).
    Faint,
    /// Inverse (SGR 7).
    Chosen,
}

/// A line of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its text, without control characters.
    pub text: String,
    pub look: Look,
}

/// The end of a wait for the keyboard.
#[derive(Debug, PartialEq, Eq)]
pub enum Happened {
    /// Keys that were pressed, perhaps none.
    Keys(Vec<Key>),
    /// A signal asks the program to end, or the terminal is gone.
    End,
}

/// The terminal while it is a screen.
pub struct Screen {
    signals: OwnedFd,
}

impl Screen {
    /// Makes the terminal a screen.
    ///
    /// # Errors
    /// Stdin or stdout is no terminal that can be set so.
    pub fn open() -> Result<Self> {
        let signals = interrupt::end_signals().context("listening for signals")?;
        let stdin = io::stdin();
        let before = tcgetattr(&stdin).context("reading the terminal settings")?;
        let mut raw = before.clone();
        raw.make_raw();
        *BEFORE.lock() = Some(before);
        let screen = Self { signals };
        // The message of a panic must not go to the page that is about to vanish.
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            usual(panic);
        }));
        tcsetattr(&stdin, OptionalActions::Flush, &raw).context("setting the terminal")?;
        let mut out = io::stdout();
        out.write_all(ENTER.as_bytes()).context("drawing")?;
        out.flush().context("drawing")?;
        Ok(screen)
    }

    /// Columns and lines of the terminal.
    pub fn size(&self) -> (usize, usize) {
        let size = tcgetwinsize(io::stdout()).ok();
        let size = size.map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)));
        // Some terminals do not know.
        size.filter(|(columns, lines)| *columns > 0 && *lines > 0)
            .unwrap_or((80, 24))
    }

    /// Draws a page, cut to the terminal.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn draw(&self, lines: &[Line]) -> Result<()> {
        let page = page(lines, self.size());
        let mut out = io::stdout().lock();
        out.write_all(page.as_bytes()).context("drawing")?;
        out.flush().context("drawing")
    }

    /// Waits for keys or a signal, for as long as `timeout` at most.
    pub fn wait(&self, timeout: Duration) -> Result<Happened> {
        let stdin = io::stdin();
        let mut watched = [
            PollFd::new(&stdin, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        let timeout = Timespec::try_from(timeout).context("a time-out")?;
        match poll(&mut watched, Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => return Ok(Happened::Keys(Vec::new())),
            Err(error) => return Err(error).context("waiting for keys"),
            Ok(_) => {}
        }
        let [typed, signalled] = watched.map(|fd| !fd.revents().is_empty());
        if signalled {
            return Ok(Happened::End);
        }
        if !typed {
            return Ok(Happened::Keys(Vec::new()));
        }
        let mut bytes = [0; 256];
        match rustix::io::read(&stdin, &mut bytes) {
            Ok(0) | Err(rustix::io::Errno::IO) => Ok(Happened::End),
            Ok(count) => Ok(Happened::Keys(keys(&bytes[..count]))),
            Err(rustix::io::Errno::INTR) => Ok(Happened::Keys(Vec::new())),
            Err(error) => Err(error).context("reading keys"),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Sets the terminal as it was; the second time nothing happens.
fn restore() {
    let before = BEFORE.lock().take();
    if let Some(before) = before {
        // A terminal that is gone needs nothing.
        let _ = io::stdout().write_all(LEAVE.as_bytes());
        let _ = io::stdout().flush();
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &before);
    }
}

/// The bytes that make the screen show `lines` and nothing else.
fn page(lines: &[Line], (columns, rows): (usize, usize)) -> String {
    let mut page = String::from("\x1b[H");
    for (number, line) in lines.iter().take(rows).enumerate() {
        if number > 0 {
            page.push_str("\r\n");
        }
        let text: String = line.text.chars().take(columns).collect();
        let (begin, end) = match line.look {
            Look::Plain => ("", ""),
            Look::Heading => ("\x1b[1m", "\x1b[0m"),
            Look::Faint => ("\x1b[2m", "\x1b[0m"),
            Look::Chosen => ("\x1b[7m", "\x1b[0m"),
        };
        page.push_str(begin);
        page.push_str(&text);
        page.push_str(end);
        // Behind a full line the cursor still stands on its last character.
        if text.chars().count() < columns {
            page.push_str("\x1b[K");
        }
    }
    page.push_str("\x1b[J");
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set in the process that opens a screen and panics.
    const PANICS: &str = "UGEOM_TEST_PANICS";

    #[test]
    fn a_panic_leaves_the_terminal_as_it_was() {
        let name = "a_panic_leaves_the_terminal_as_it_was";
        if std::env::var_os(PANICS).is_some() {
            let screen = Screen::open().expect("a screen");
            assert!(screen.size().0 == 0, "this is the panic");
        }
        let Some(script) = ugeom_testkit::program("script") else { return };
        let own = std::env::current_exe().expect("our own name");
        let command = format!(
            "stty -g; '{}' --nocapture commands::stat::terminal::tests::{name}; stty -g",
            own.display()
        );
        let ended = std::process::Command::new(script)
            .args(["-qec", &command, "/dev/null"])
            .env(PANICS, "1")
            .stdin(std::process::Stdio::null())
            .output()
            .expect("script");
        let text = String::from_utf8_lossy(&ended.stdout).into_owned();
        let (first, rest) = text.split_once("\r\n").expect("a line");
        assert!(
            first.contains(':') && rest.trim_end().ends_with(first),
            "{text}"
        );
        let entered = text.find(ENTER).expect("a page of its own");
        let left = text.find(LEAVE).expect("the page that was there");
        let said = text.find("this is the panic").expect("the panic");
        assert!(entered < left && left < said, "{text}");
        assert_eq!(text.matches(LEAVE).count(), 1, "{text}");
    }

    #[test]
    fn a_page_is_cut_to_the_screen_and_clears_what_was_there() {
        let line = |text: &str, look| Line {
            text: text.to_owned(),
            look,
        };
        let lines = [
            line("abcdef", Look::Heading),
            line("gh", Look::Plain),
            line("never", Look::Plain),
        ];
        assert_eq!(
            page(&lines, (4, 2)),
            "\x1b[H\x1b[1mabcd\x1b[0m\r\ngh\x1b[K\x1b[J"
        );
        assert_eq!(page(&[], (4, 2)), "\x1b[H\x1b[J");
    }
}
