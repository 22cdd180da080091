//! Stack files: TOML that gives names to larger stacks.
//!
//! ```toml
//! [stack.slow]
//! layers = ["md:64m", "nop:delay=1ms"]
//!
//! [stack.slow-parts]
//! base = "slow"
//! layers = ["mbr"]
//! dispatch = "queued"
//! ```

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ast::{Layer, Target};
use super::error::{Origin, Span, SpecError, WORD_CHARS, quoted, shortened};
use super::parse::{self, Begin};
use super::settings::{SETTINGS, Settings};
use super::{BASES_MAX, FILE_BYTES_MAX, LAYERS_MAX};

/// How much is shown of a message that may quote the file.
const TOML_MESSAGE_CHARS: usize = 200;

/// A stack file that was read and found right in all its parts.
#[derive(Clone, Debug)]
pub struct StackFile {
    stacks: BTreeMap<String, Described>,
}

/// A complete stack: all its layers from the bottom up, and how it is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// The layers and the provider; never a reference to a stack file.
    pub target: Target,
    /// The settings in the stack file.
    pub settings: Settings,
}

/// One `[stack.NAME]` with its own layers only.
#[derive(Clone, Debug)]
struct Described {
    own: Target,
    base: Option<super::Spanned<String>>,
    settings: Settings,
}

impl StackFile {
    /// Reads a stack file; `file` is its path, for errors, and `classes` are as in
    /// [`super::parse`].
    ///
    /// # Errors
    /// The text is too long or no TOML, has a key that is not known, a layer that does not follow
    /// the grammar, a base that is not there, or bases that stand on themselves.
    pub fn parse(file: &str, text: &str, classes: &[&str]) -> Result<StackFile, SpecError> {
        if text.len() > FILE_BYTES_MAX {
            let message = format!("a stack file has at most {FILE_BYTES_MAX} bytes, this has more");
            return Err(Origin::file(file, "").error(Span::default(), message));
        }
        let origin = Origin::file(file, text);
        let raw = DeTable::parse(text).map_err(|error| {
            let span = error
                .span()
                .map_or_else(Span::default, |at| Span::new(at.start, at.end));
            origin.error(span, shortened(error.message(), TOML_MESSAGE_CHARS))
        })?;
        let reader = FileReader {
            origin: &origin,
            classes,
        };
        let raw = reader.stacks(raw.get_ref())?;
        let mut stacks = BTreeMap::new();
        for (name, table) in &raw {
            stacks.insert(name.get_ref().to_string(), reader.stack(name, table)?);
        }
        let file = StackFile { stacks };
        for described in file.stacks.values() {
            if let Some(base) = &described.base {
                file.check_bases(&origin, base, described.own.layers.len())?;
            }
        }
        Ok(file)
    }

    /// The names of the stacks, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.stacks.keys().map(String::as_str)
    }

    /// Replaces the reference to a stack of this file at the bottom of `target` by its layers. An
    /// address behind the reference takes the place of the stack's own. A target without a
    /// reference stays as it is.
    ///
    /// # Errors
    /// The file has no stack of that name, or the target has too many layers with it.
    pub fn expand(&self, mut target: Target) -> Result<Stack, SpecError> {
        let Some(reference) = target.stack.take() else {
            return Ok(Stack::from(target));
        };
        let name = reference.name.value.as_str();
        if !self.stacks.contains_key(name) {
            let names: Vec<&str> = self.names().collect();
            let message = format!("the file has no stack {}", quoted(name));
            let error = target.origin.error(reference.name.span, message);
            return Err(error.with_nearest(name, &names));
        }
        let chain = self.chain(name);
        let mut stack = Stack::empty(&target.origin);
        for described in chain.iter().rev() {
            stack.put(&described.own);
            stack.settings = described.settings.over(stack.settings);
        }
        stack.put(&target);
        if stack.target.layers.len() > LAYERS_MAX {
            let message = format!("a target has at most {LAYERS_MAX} layers");
            return Err(target.origin.error(reference.name.span, message));
        }
        stack.target.origin = target.origin;
        Ok(stack)
    }

    /// The stack and those below it, the lowest last. [`Self::check_bases`] has shown that it
    /// ends; the bound is there for its use before that.
    fn chain(&self, name: &str) -> Vec<&Described> {
        let first = self.stacks.get(name);
        let below =
            |described: &&Described| self.stacks.get(described.base.as_ref()?.value.as_str());
        std::iter::successors(first, below)
            .take(BASES_MAX + 1)
            .collect()
    }

    /// Checks that the stacks from `base` down are there, end, and are not too many.
    fn check_bases(
        &self,
        origin: &Origin,
        base: &super::Spanned<String>,
        own_layers: usize,
    ) -> Result<(), SpecError> {
        let name = base.value.as_str();
        let error = |message: String| origin.error(base.span, message);
        if !self.stacks.contains_key(name) {
            let names: Vec<&str> = self.names().collect();
            let message = format!("the file has no stack {}", quoted(name));
            return Err(error(message).with_nearest(name, &names));
        }
        let chain = self.chain(name);
        if chain.len() > BASES_MAX {
            let stands_below = |i: usize| chain[..i].iter().any(|it| std::ptr::eq(*it, chain[i]));
            return Err(error(if (1..chain.len()).any(stands_below) {
                format!("the bases of {} form a loop", quoted(name))
            } else {
                format!("a stack has more than {BASES_MAX} bases")
            }));
        }
        let below: usize = chain
            .iter()
            .map(|described| described.own.layers.len())
            .sum();
        if below + own_layers > LAYERS_MAX {
            return Err(error(format!(
                "with its base the stack has more than {LAYERS_MAX} layers"
            )));
        }
        Ok(())
    }
}

impl From<Target> for Stack {
    /// A stack with default settings, of a target without a reference to a stack file.
    fn from(target: Target) -> Stack {
        Stack {
            target,
            settings: Settings::default(),
        }
    }
}

impl Stack {
    fn empty(origin: &Origin) -> Stack {
        let origin = origin.clone();
        Stack::from(Target {
            stack: None,
            layers: Vec::new(),
            provider: None,
            origin,
        })
    }

    /// Puts the layers of `upper` on this stack, on the provider that it names.
    fn put(&mut self, upper: &Target) {
        let below = self.target.provider.take();
        let first_at = self.target.layers.len();
        self.target.layers.extend(upper.layers.iter().cloned());
        self.target.provider.clone_from(&upper.provider);
        match self.target.layers.get_mut(first_at) {
            Some(Layer { on: on @ None, .. }) => *on = below,
            Some(_) => {}
            None if self.target.provider.is_none() => self.target.provider = below,
            None => {}
        }
    }
}

/// Turns the tables of a stack file into stacks.
struct FileReader<'a> {
    origin: &'a Origin,
    classes: &'a [&'a str],
}

/// A key of a TOML file with its place.
type Key<'a> = Spanned<std::borrow::Cow<'a, str>>;

impl FileReader<'_> {
    /// All tables `[stack.NAME]` of a file, checked.
    fn stacks<'a>(
        &self,
        file: &'a DeTable<'a>,
    ) -> Result<Vec<(&'a Key<'a>, &'a DeTable<'a>)>, SpecError> {
        let mut stacks = Vec::new();
        for (key, value) in file {
            if key.get_ref() != "stack" {
                return Err(self.unknown_key(key, &["stack"]));
            }
            for (name, value) in self.table(value)? {
                stacks.push((name, self.table(value)?));
            }
        }
        Ok(stacks)
    }

    fn stack(&self, name: &Key<'_>, table: &DeTable<'_>) -> Result<Described, SpecError> {
        let origin = self.origin;
        if !parse::is_stack_name(name.get_ref()) {
            let error = origin.error(span_of(name), "this is not the name of a stack");
            return Err(error.with_help("a stack's name has letters, digits, `_`, `-` and `.`"));
        }
        let mut base = None;
        let mut layers = Vec::new();
        let mut settings = Settings::default();
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "base" => {
                    let text = self.string(value)?;
                    base = Some(super::Spanned::new(text.to_owned(), span_of(value)));
                }
                "layers" => layers = self.strings(value)?,
                "components" => {
                    let message = "`components` is reserved for mirrors and stripes";
                    return Err(origin.error(span_of(value), message));
                }
                _ => self.setting(&mut settings, key, value)?,
            }
        }
        if base.is_none() && layers.is_empty() {
            let message = format!("the stack {} has no layers", quoted(name.get_ref()));
            let error = origin.error(span_of(name), message);
            return Err(error.with_help("write layers = [\"md:64m\"], or base = \"NAME\""));
        }
        let own = self.layers(&layers, base.is_none())?;
        Ok(Described {
            own,
            base,
            settings,
        })
    }

    fn layers(&self, layers: &[(&str, Span)], has_bottom: bool) -> Result<Target, SpecError> {
        let mut own = Stack::empty(self.origin);
        for (i, (text, span)) in layers.iter().enumerate() {
            let begin = if i == 0 && has_bottom {
                Begin::Bottom
            } else {
                Begin::Upper
            };
            let inside = self.origin.inside(*span, text);
            let part = parse::target(&inside, text, begin, self.classes)?;
            if let Some(reference) = &part.stack {
                let error = inside.error(reference.file.span, "a stack file names no other file");
                return Err(error.with_help("within one file a stack is named by base = \"NAME\""));
            }
            own.put(&part);
            if own.target.layers.len() > LAYERS_MAX {
                let message = format!("a target has at most {LAYERS_MAX} layers");
                return Err(self.origin.error(*span, message));
            }
        }
        Ok(own.target)
    }

    /// A key that is neither base nor layers: a setting, declared in [`SETTINGS`].
    fn setting(
        &self,
        settings: &mut Settings,
        key: &Key<'_>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), SpecError> {
        let name = key.get_ref();
        if SETTINGS.find(name).is_none() {
            let names = [vec!["base", "layers"], SETTINGS.names()].concat();
            return Err(self.unknown_key(key, &names));
        }
        let text = match value.get_ref() {
            DeValue::String(text) => text.as_ref(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Boolean(true) => "true",
            DeValue::Boolean(false) => "false",
            _ => return Err(self.wrong_type(value, "a string, a whole number, true or false")),
        };
        SETTINGS.set(settings, name, text).map_err(|wrong| {
            let message = format!("{name}={}: {wrong}", shortened(text, WORD_CHARS));
            let error = self.origin.error(span_of(value), message);
            match wrong.help {
                Some(help) => error.with_help(help),
                None => error,
            }
        })
    }

    fn table<'a>(&self, value: &'a Spanned<DeValue<'a>>) -> Result<&'a DeTable<'a>, SpecError> {
        let table = value.get_ref().as_table();
        table.ok_or_else(|| self.wrong_type(value, "a table, [stack.NAME]"))
    }

    fn string<'a>(&self, value: &'a Spanned<DeValue<'_>>) -> Result<&'a str, SpecError> {
        let text = value.get_ref().as_str();
        text.ok_or_else(|| self.wrong_type(value, "a string"))
    }

    fn strings<'a>(
        &self,
        value: &'a Spanned<DeValue<'_>>,
    ) -> Result<Vec<(&'a str, Span)>, SpecError> {
        let array = value.get_ref().as_array();
        let array = array.ok_or_else(|| self.wrong_type(value, "an array of strings"))?;
        let text = |value| Ok((self.string(value)?, span_of(value)));
        array.iter().map(text).collect()
    }

    fn wrong_type(&self, value: &Spanned<DeValue<'_>>, wanted: &str) -> SpecError {
        let found = value.get_ref().type_str();
        let message = format!("{wanted} is needed here, not a value of type {found}");
        self.origin.error(span_of(value), message)
    }

    fn unknown_key(&self, key: &Key<'_>, names: &[&str]) -> SpecError {
        let message = format!("there is no key {}", quoted(key.get_ref()));
        let error = self.origin.error(span_of(key), message);
        error.with_nearest(key.get_ref(), names)
    }
}

fn span_of<T>(spanned: &Spanned<T>) -> Span {
    let range = spanned.span();
    Span::new(range.start, range.end)
}
