//! Keys typed by a user, from the bytes that a terminal sends (ECMA-48, xterm's control sequences).

/// A key of the terminal, as far as `stat` uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Enter,
    /// Backspace, as 0x7f or 0x08.
    Backspace,
    Escape,
    /// Control and C (0x03).
    Interrupt,
    /// Control and L (0x0c).
    Redraw,
    /// The cursor keys (`ESC [ A` to `ESC [ D`).
    Up,
    Down,
    PageUp,
    PageDown,
    /// To the first line.
    Home,
    /// To the last line.
    End,
}

/// The keys in what one read gave. A sequence is sent in one piece; what is none that we know, and
/// what is no UTF-8, is left out.
pub fn keys(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let key = match c {
            '\u{1b}' => match escape(&mut rest) {
                Some(key) => key,
                None => continue,
            },
            '\r' | '\n' => Key::Enter,
            '\u{7f}' | '\u{8}' => Key::Backspace,
            '\u{3}' => Key::Interrupt,
            '\u{c}' => Key::Redraw,
            '\u{fffd}' => continue,
            c if c.is_control() => continue,
            c => Key::Char(c),
        };
        keys.push(key);
    }
    keys
}

/// The text after an escape character: nothing (the key itself), or a control sequence.
fn escape(rest: &mut std::str::Chars<'_>) -> Option<Key> {
    let mut ahead = rest.clone();
    let Some('[' | 'O') = ahead.next() else {
        return Some(Key::Escape);
    };
    let mut parameter = String::new();
    let last = loop {
        match ahead.next() {
            Some(c @ '0'..='?') => parameter.push(c),
            Some(c @ '@'..='~') => break c,
            _ => return None,
        }
    };
    *rest = ahead;
    match (last, parameter.as_str()) {
        ('A', _) => Some(Key::Up),
        ('B', _) => Some(Key::Down),
        ('H', _) | ('~', "1" | "7") => Some(Key::Home),
        ('F', _) | ('~', "4" | "8") => Some(Key::End),
        ('~', "5") => Some(Key::PageUp),
        ('~', "6") => Some(Key::PageDown),
        ('~', "3") => Some(Key::Backspace),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_out_of_the_bytes_of_a_terminal() {
        let typed = "q\u{1b}[A\u{1b}OB\u{1b}[5~\u{1b}[6~\u{1b}[1~\u{1b}[F\u{7f}\r\u{3}\u{c}ß\u{1b}";
        let expected = [
            Key::Char('q'),
            Key::Up,
            Key::Down,
            Key::PageUp,
            Key::PageDown,
            Key::Home,
            Key::End,
            Key::Backspace,
            Key::Enter,
            Key::Interrupt,
            Key::Redraw,
            Key::Char('ß'),
            Key::Escape,
        ];
        assert_eq!(keys(typed.as_bytes()), expected);
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        assert_eq!(
            keys(b"\x1b[200~a\x1b[1;5Pb\xff\x01"),
            [Key::Char('a'), Key::Char('b')]
        );
        assert_eq!(
            keys(b"\x1b[12"),
            [Key::Char('['), Key::Char('1'), Key::Char('2')]
        );
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..2000 {
            let bytes: Vec<u8> = (0..random.usize(..20)).map(|_| random.u8(..)).collect();
            assert!(keys(&bytes).len() <= bytes.len(), "{bytes:?}");
        }
    }
}
