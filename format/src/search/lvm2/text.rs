//! The text of LVM2's metadata: sections in braces, and values, which are numbers, quoted text or
//! lists of these. A comment reaches from `#` to the end of the line.

/// The deepest nesting that is followed; LVM2 writes four.
const MOST_DEPTH: usize = 8;

/// The value of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Number(u64),
    Text(&'a str),
    List(Vec<Value<'a>>),
    Section(Section<'a>),
    /// A word of another kind, as a fraction.
    Other,
}

impl<'a> Value<'a> {
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&'a str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Names with their values, in the order of the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Section<'a>(Vec<(&'a str, Value<'a>)>);

impl<'a> Section<'a> {
    fn value(&self, name: &str) -> Option<&Value<'a>> {
        let mut all = self.0.iter();
        all.find_map(|(one, value)| (*one == name).then_some(value))
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.value(name)?.number()
    }

    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.value(name)?.text()
    }

    pub(super) fn list(&self, name: &str) -> Option<&[Value<'a>]> {
        match self.value(name)? {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    pub(super) fn section(&self, name: &str) -> Option<&Section<'a>> {
        match self.value(name)? {
            Value::Section(section) => Some(section),
            _ => None,
        }
    }

    pub(super) fn sections(&self) -> impl Iterator<Item = (&'a str, &Section<'a>)> {
        self.0.iter().filter_map(|(name, value)| match value {
            Value::Section(section) => Some((*name, section)),
            _ => None,
        })
    }
}

/// The text as one section.
pub(super) fn parse(text: &str) -> Result<Section<'_>, String> {
    let mut words = Words {
        text: text.trim_end_matches('\0'),
        at: 0,
    };
    let root = words.section(0)?;
    match words.next() {
        None => Ok(root),
        Some(word) => Err(words.wrong(word)),
    }
}

/// The words of a text: names and numbers, quoted text with its quotes, and single signs.
struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    fn rest(&mut self) -> &'a str {
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.len() - rest.trim_start().len();
            self.at += blank;
            let rest = &rest[blank..];
            if !rest.starts_with('#') {
                return rest;
            }
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
    }

    fn peek(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let first = rest.chars().next()?;
        let length = match first {
            '"' => quoted_length(rest),
            '{' | '}' | '[' | ']' | ',' | '=' => 1,
            _ => {
                let ends = |one: char| one.is_whitespace() || "{}[],=#\"".contains(one);
                rest.find(ends).unwrap_or(rest.len())
            }
        };
        rest.get(..length)
    }

    fn next(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.at += word.len();
        Some(word)
    }

    fn wrong(&self, word: &str) -> String {
        let word: String = word.chars().take(20).collect();
        format!("its text is wrong before byte {}: {word:?}", self.at)
    }

    /// Up to the end of the text, or of the section.
    fn section(&mut self, depth: usize) -> Result<Section<'a>, String> {
        let mut section = Section::default();
        while let Some(name) = self.peek().filter(|word| *word != "}") {
            self.next();
            let value = match self.next() {
                Some("=") => self.value(depth)?,
                Some("{") if depth < MOST_DEPTH => {
                    let inner = self.section(depth + 1)?;
                    match self.next() {
                        Some("}") => Value::Section(inner),
                        _ => return Err(format!("its text ends within {name:?}")),
                    }
                }
                word => return Err(self.wrong(word.unwrap_or_default())),
            };
            section.0.push((name, value));
        }
        Ok(section)
    }

    fn value(&mut self, depth: usize) -> Result<Value<'a>, String> {
        match self.next() {
            Some("[") if depth < MOST_DEPTH => {
                let mut list = Vec::new();
                loop {
                    match self.peek() {
                        Some("]") => break,
                        Some(",") => {}
                        _ => {
                            list.push(self.value(depth + 1)?);
                            continue;
                        }
                    }
                    self.next();
                }
                self.next();
                Ok(Value::List(list))
            }
            Some(word) if word.starts_with('"') => {
                let inner = word
                    .strip_prefix('"')
                    .and_then(|word| word.strip_suffix('"'));
                inner.map(Value::Text).ok_or_else(|| self.wrong(word))
            }
            Some(word) if !"{}[],=".contains(word) => {
                Ok(word.parse().map_or(Value::Other, Value::Number))
            }
            word => Err(self.wrong(word.unwrap_or_default())),
        }
    }
}

/// Both quotes, and the text between them; a backslash keeps the next sign.
fn quoted_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, one) in text.char_indices().skip(1) {
        match one {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}
