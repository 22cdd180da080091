//! How a class reads its arguments: through a table of declared options, with errors that point at
//! the value.

use super::ast::Layer;
use super::declared::{OptionDefault, OptionTable, ValueError};
use super::error::{Spanned, SpecError, WORD_CHARS, quoted, shortened};

/// The arguments of one layer.
///
/// ```
/// # use ugeom_classes::set_field;
/// # use ugeom_classes::spec::{self, OptionDefault::*, OptionTable, option, values};
/// #[derive(Default)]
/// struct Disk {
///     size_bytes: u64,
///     sector_bytes: u64,
/// }
/// const OPTIONS: OptionTable<Disk> = OptionTable(&[
///     option("size", "SIZE", Required, "media size", set_field!(size_bytes = values::size)),
///     option("sector", "SIZE", Value("512"), "its size", set_field!(sector_bytes = values::size)),
/// ]);
///
/// let target = spec::parse("md:64m", &["md"])?;
/// let arguments = target.layers[0].arguments(&["size"])?;
/// let disk = arguments.read(&OPTIONS, Disk::default())?;
/// assert_eq!((disk.size_bytes, disk.sector_bytes), (64 << 20, 512));
/// # Ok::<(), spec::SpecError>(())
/// ```
#[derive(Debug)]
pub struct LayerArguments<'a> {
    layer: &'a Layer,
    given: Vec<Argument<'a>>,
}

#[derive(Debug)]
struct Argument<'a> {
    key: &'a str,
    /// Where to point when the class has no such option.
    name: &'a Spanned<String>,
    value: &'a Spanned<String>,
}

impl Layer {
    /// The arguments of this layer. The values without a name are called `positional`, in this
    /// order.
    ///
    /// # Errors
    /// More such values than names, or a name given in both ways.
    pub fn arguments(&self, positional: &[&'static str]) -> Result<LayerArguments<'_>, SpecError> {
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
        let mut given: Vec<Argument<'_>> = unnamed
            .map(|(key, value)| Argument {
                key,
                name: value,
                value,
            })
            .collect();
        for option in &self.options {
            let key = option.key.value.as_str();
            if let Some(first) = given.iter().find(|argument| argument.key == key) {
                let first = quoted(&first.value.value);
                let message = format!("`{key}` was already given, as {first}");
                return Err(self.origin.error(option.key.span, message));
            }
            given.push(Argument {
                key,
                name: &option.key,
                value: &option.value,
            });
        }
        Ok(LayerArguments { layer: self, given })
    }
}

impl LayerArguments<'_> {
    /// Sets every option of the table, in the table's order: to the given value, else to its
    /// default. An option without a default leaves `settings` as they are.
    ///
    /// # Errors
    /// An argument that is no option of the table, a value that is refused, or a required option
    /// that was not given.
    pub fn read<T>(&self, table: &OptionTable<T>, mut settings: T) -> Result<T, SpecError> {
        for argument in &self.given {
            if table.find(argument.key).is_none() {
                return Err(self.unknown(argument, &table.names()));
            }
        }
        for entry in table.0 {
            let doc = &entry.doc;
            match (self.argument(doc.name), doc.default) {
                (Some(argument), _) => {
                    let text = argument.value.value.as_str();
                    (entry.set)(&mut settings, text)
                        .map_err(|error| self.refused(argument, &error))?;
                }
                (None, OptionDefault::Value(text)) => {
                    let wrong = |error: ValueError| {
                        let message = format!("the default {}={text}: {error}", doc.name);
                        self.layer.error(message)
                    };
                    (entry.set)(&mut settings, text).map_err(wrong)?;
                }
                (None, OptionDefault::Required) => {
                    let class = &self.layer.class.value;
                    let error = self.layer.error(format!("{class} needs {}", doc.name));
                    let help = format!("write {class}:{}={}", doc.name, doc.value);
                    return Err(error.with_help(help));
                }
                (None, OptionDefault::Absent | OptionDefault::Depends(_)) => {}
            }
        }
        Ok(settings)
    }

    /// Whether the option was given.
    pub(crate) fn is_given(&self, key: &str) -> bool {
        self.argument(key).is_some()
    }

    /// An error about the value of `key`, or about the layer if that was not given.
    pub fn invalid(&self, key: &str, message: impl Into<String>) -> SpecError {
        match self.argument(key) {
            Some(argument) => self.layer.origin.error(argument.value.span, message),
            None => self.layer.error(message),
        }
    }

    fn argument(&self, key: &str) -> Option<&Argument<'_>> {
        self.given.iter().find(|argument| argument.key == key)
    }

    fn refused(&self, argument: &Argument<'_>, error: &ValueError) -> SpecError {
        let value = shortened(&argument.value.value, WORD_CHARS);
        let message = format!("{}={value}: {error}", argument.key);
        let shown = self.layer.origin.error(argument.value.span, message);
        match &error.help {
            Some(help) => shown.with_help(help.clone()),
            None => shown,
        }
    }

    fn unknown(&self, argument: &Argument<'_>, names: &[&str]) -> SpecError {
        let class = &self.layer.class.value;
        let message = format!("{class} has no option {}", quoted(argument.key));
        let error = self.layer.origin.error(argument.name.span, message);
        if names.is_empty() {
            return error.with_help(format!("{class} takes no options"));
        }
        error.with_nearest(argument.key, names)
    }
}
