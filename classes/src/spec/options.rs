//! How a class reads its arguments: by name and type, with an error that points at the value.

use std::ops::RangeInclusive;

use super::ast::Layer;
use super::error::{Spanned, SpecError, WORD_CHARS, quoted, shortened};
use super::units::{self, UnitError};

/// The arguments of one layer, each to be taken once. A `take_` function answers nothing for an
/// option that was not given; the class puts its default there. [`Options::finish`] refuses what
/// nobody took.
///
/// ```
/// # use ugeom_classes::spec;
/// let target = spec::parse("md:64m,sectorsize=4k", &["md"])?;
/// let mut options = target.layers[0].options(&["size"])?;
/// let size_bytes = options.take_size("size")?.ok_or_else(|| options.missing("size"))?;
/// let sector_bytes = options.take_size("sectorsize")?.unwrap_or(512);
/// options.finish()?;
/// assert_eq!((size_bytes, sector_bytes), (64 << 20, 4096));
/// # Ok::<(), spec::SpecError>(())
/// ```
#[derive(Debug)]
pub struct Options<'a> {
    layer: &'a Layer,
    entries: Vec<Entry<'a>>,
    /// The names that the class knows, as far as it has asked.
    names: Vec<&'static str>,
}

#[derive(Debug)]
struct Entry<'a> {
    key: &'a str,
    /// Where to point when nobody knows the option.
    name: &'a Spanned<String>,
    value: &'a Spanned<String>,
    is_taken: bool,
}

impl Layer {
    /// The arguments of this layer. The values without a name are called `positional`, in this
    /// order.
    ///
    /// # Errors
    /// More such values than names, or a name given in both ways.
    pub fn options(&self, positional: &[&'static str]) -> Result<Options<'_>, SpecError> {
        if let Some(value) = self.positional.get(positional.len()) {
            let class = &self.class.value;
            let message = format!("{} has no name", quoted(&value.value));
            let error = self.origin.error(value.span, message);
            return Err(error.with_help(match positional {
                [] => format!("{class} takes only key=value"),
                names => format!("without a name {class} takes only: {}", names.join(", ")),
            }));
        }
        let unnamed = positional.iter().zip(&self.positional);
        let mut entries: Vec<Entry<'_>> = unnamed
            .map(|(key, value)| Entry {
                key,
                name: value,
                value,
                is_taken: false,
            })
            .collect();
        for option in &self.options {
            let key = option.key.value.as_str();
            if let Some(first) = entries.iter().find(|entry| entry.key == key) {
                let first = quoted(&first.value.value);
                let message = format!("`{key}` was already given, as {first}");
                return Err(self.origin.error(option.key.span, message));
            }
            entries.push(Entry {
                key,
                name: &option.key,
                value: &option.value,
                is_taken: false,
            });
        }
        Ok(Options {
            layer: self,
            entries,
            names: positional.to_vec(),
        })
    }
}

impl<'a> Options<'a> {
    /// Bytes, as in `64m`; `s` counts sectors of 512 bytes. See [`units::size_bytes`].
    ///
    /// # Errors
    /// The value is no size.
    pub fn take_size(&mut self, key: &'static str) -> Result<Option<u64>, SpecError> {
        self.take_size_in_sectors_of(units::SECTOR_BYTES, key)
    }

    /// Bytes, where `s` counts sectors of `sector_bytes`.
    ///
    /// # Errors
    /// The value is no size.
    pub fn take_size_in_sectors_of(
        &mut self,
        sector_bytes: u64,
        key: &'static str,
    ) -> Result<Option<u64>, SpecError> {
        self.take(key, |text| units::size_bytes(text, sector_bytes))
    }

    /// Bytes a second, as in `57m/s`. See [`units::rate_bytes_per_second`].
    ///
    /// # Errors
    /// The value is no rate.
    pub fn take_rate_bytes_per_second(
        &mut self,
        key: &'static str,
    ) -> Result<Option<u64>, SpecError> {
        self.take(key, units::rate_bytes_per_second)
    }

    /// Nanoseconds, as in `1ms`. See [`units::duration_ns`].
    ///
    /// # Errors
    /// The value is no duration.
    pub fn take_duration_ns(&mut self, key: &'static str) -> Result<Option<u64>, SpecError> {
        self.take(key, units::duration_ns)
    }

    /// A number from 0 to 1, as in `5%` or `0.05`. See [`units::probability`].
    ///
    /// # Errors
    /// The value is no probability.
    pub fn take_probability(&mut self, key: &'static str) -> Result<Option<f64>, SpecError> {
        self.take(key, units::probability)
    }

    /// A whole number. See [`units::whole_number`].
    ///
    /// # Errors
    /// The value is no such number.
    pub fn take_u64(&mut self, key: &'static str) -> Result<Option<u64>, SpecError> {
        self.take(key, units::whole_number)
    }

    /// A whole number within `range`.
    ///
    /// # Errors
    /// The value is no such number.
    pub fn take_u64_in(
        &mut self,
        range: RangeInclusive<u64>,
        key: &'static str,
    ) -> Result<Option<u64>, SpecError> {
        match self.take_u64(key)? {
            Some(value) if !range.contains(&value) => {
                let (least, most) = (range.start(), range.end());
                Err(self.invalid(key, format!("{key} goes from {least} to {most}")))
            }
            value => Ok(value),
        }
    }

    /// Yes or no. See [`units::truth`].
    ///
    /// # Errors
    /// The value is neither.
    pub fn take_bool(&mut self, key: &'static str) -> Result<Option<bool>, SpecError> {
        self.take(key, units::truth)
    }

    /// The value as it is.
    pub fn take_str(&mut self, key: &'static str) -> Option<&'a str> {
        self.take_spanned(key).map(|value| value.value.as_str())
    }

    /// What one of the words in `choices` stands for.
    ///
    /// # Errors
    /// The value is none of the words.
    pub fn take_choice<T: Copy>(
        &mut self,
        choices: &[(&str, T)],
        key: &'static str,
    ) -> Result<Option<T>, SpecError> {
        let Some(value) = self.take_spanned(key) else {
            return Ok(None);
        };
        let word = value.value.as_str();
        if let Some((_, meaning)) = choices.iter().find(|(name, _)| *name == word) {
            return Ok(Some(*meaning));
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let message = format!("{key} cannot be {}", quoted(word));
        let error = self.layer.origin.error(value.span, message);
        Err(error.with_nearest(word, &names))
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// An option that was not taken: the class does not know it.
    pub fn finish(self) -> Result<(), SpecError> {
        let Some(unknown) = self.entries.iter().find(|entry| !entry.is_taken) else {
            return Ok(());
        };
        let class = &self.layer.class.value;
        let message = format!("{class} has no option {}", quoted(unknown.key));
        let error = self.layer.origin.error(unknown.name.span, message);
        if self.names.is_empty() {
            return Err(error.with_help(format!("{class} takes no options")));
        }
        Err(error.with_nearest(unknown.key, &self.names))
    }

    /// An error about the value of `key`, or about the layer if that was not given.
    pub fn invalid(&self, key: &str, message: impl Into<String>) -> SpecError {
        match self.entries.iter().find(|entry| entry.key == key) {
            Some(entry) => self.layer.origin.error(entry.value.span, message),
            None => self.layer.error(message),
        }
    }

    /// The error for an option that the class cannot do without.
    pub fn missing(&self, key: &str) -> SpecError {
        let class = &self.layer.class.value;
        self.layer
            .error(format!("{class} needs {key}"))
            .with_help(format!("write {class}:{key}=VALUE"))
    }

    fn take_spanned(&mut self, key: &'static str) -> Option<&'a Spanned<String>> {
        if !self.names.contains(&key) {
            self.names.push(key);
        }
        let entry = self.entries.iter_mut().find(|entry| entry.key == key)?;
        entry.is_taken = true;
        Some(entry.value)
    }

    fn take<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&str) -> Result<T, UnitError>,
    ) -> Result<Option<T>, SpecError> {
        let Some(value) = self.take_spanned(key) else {
            return Ok(None);
        };
        read(&value.value).map(Some).map_err(|unit| {
            let message = format!("{key}={}: {unit}", shortened(&value.value, WORD_CHARS));
            let error = self.layer.origin.error(value.span, message);
            match unit.help() {
                Some(help) => error.with_help(help),
                None => error,
            }
        })
    }
}
