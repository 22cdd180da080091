//! Opening a target: from a text of the stack language to a running stack.
//!
//! ```text
//! md:64m | nop:delay=1ms | mbr@s1
//!   spec::stack      text -> layers
//!   Build::Bottom    md0                    tasted when it arrives
//!   Build::Layer     md0.nop on md0         tasted, too
//!   Build::Table     MBR on md0.nop, unless tasting has made one already
//!   Address::find    md0.nops1, below which the rest of the stack stands
//! ```
//!
//! An address is looked up from the provider that the layer before it left off at, so that `@s1`
//! above means the slice that is read through the `nop`, and not the one of `md0` beside it.

use crate::build::{BuildContext, BuildError, FileAccess, KeyOptions};
use crate::entry::{self, Build, ClassEntry};
use crate::registry;
use crate::spec::{self, Address, DispatchMode, FILE_CLASS, Layer, SpecError, StatisticsMode};
use std::io::{self, Read};
use std::sync::Arc;
use ugeom_format::text::visible;
use ugeom_stack::{
    Class, Delta, Dispatch, Opened, ProviderId, ProviderView, Stack, StackError, StackKnobs,
    Statistics,
};

mod shown;

/// How long `g_down` and `g_up` spin before they park where a stack file asks for queued
/// dispatch, ns. Long enough to cover the gap between requests that follow each other.
pub const QUEUED_SPIN_NS: u64 = 20_000;
/// Of how many requests the time of one is taken where a stack file asks for `time`.
pub const TIME_ONE_IN: u32 = 64;

/// How many names an error lists.
const LISTED_NAMES: usize = 20;

/// How a target is opened. The settings of a stack file go before `knobs`, and `set` before those.
#[derive(Clone, Copy, Debug, Default)]
pub struct TargetOptions {
    /// Files may be written to.
    pub writable: bool,
    /// How the stack works where no setting says otherwise.
    pub knobs: StackKnobs,
    /// The user's settings, which override those of a stack file.
    pub set: spec::Settings,
    /// Files are opened for direct I/O.
    pub direct: bool,
    /// Files are not locked, and devices not opened exclusively: another process, which holds the
    /// target open, does that for this one.
    pub unlocked: bool,
    /// Partition tables of the target may be changed: refused while another process has it open.
    pub relayout: bool,
    /// How encrypted layers get their passphrases.
    pub keys: KeyOptions,
}

impl TargetOptions {
    /// The defaults, but no class tastes by itself: its reads would be counted, delayed or decided
    /// about like those that are measured or tested.
    pub fn untasted() -> Self {
        let mut options = Self::default();
        options.knobs.taste = false;
        options
    }

    /// The same, with files that may be written to.
    #[must_use]
    pub fn for_writing(mut self) -> Self {
        self.writable = true;
        self
    }

    fn files(&self) -> FileAccess {
        FileAccess {
            writable: self.writable,
            direct: self.direct,
            unlocked: self.unlocked,
            relayout: self.relayout,
        }
    }
}

/// A target that is open: its stack stands, and no provider is open yet.
pub struct Target {
    /// The stack that was made from the target.
    pub stack: Stack,
    /// The provider of the bottom layer.
    pub bottom: ProviderId,
    /// The provider that was addressed, else the one of the last layer. A table class does not
    /// count as such: without an address, the provider that the table lies on is meant.
    pub top: ProviderId,
    /// The name of [`Target::top`].
    pub name: String,
    /// The text that was opened ends with an address: only that provider is meant, and not all
    /// that there are.
    pub addressed: bool,
}

impl Target {
    /// Opens [`Target::top`].
    ///
    /// # Errors
    /// As [`Stack::open`].
    pub fn open(&self, delta: Delta) -> Result<Opened, StackError> {
        self.stack.open(self.top, delta)
    }
}

/// A target that was read, with the stack file that it may name, and is not opened yet.
#[derive(Clone, Debug)]
pub struct TargetText {
    stack: spec::Stack,
    addressed: bool,
}

impl TargetText {
    /// Parses a target, and the stack file that it names.
    ///
    /// # Errors
    /// The text or the stack file is wrong, or the stack file cannot be read.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let names = registry::names();
        let mut written = spec::parse(text, &names)?;
        shown::addressed(&mut written);
        Ok(Self {
            addressed: written.provider.is_some(),
            stack: spec::expanded(written, &names, read_stack_file)?,
        })
    }

    /// The path of the file that the target stands on, if its bottom layer is one, also where a
    /// stack file names it.
    pub fn bottom_path(&self) -> Option<&str> {
        let bottom = self.stack.target.layers.first()?;
        let path = bottom.positional.first()?;
        (bottom.class.value == FILE_CLASS).then_some(path.value.as_str())
    }

    /// The path that the target is, if it is nothing else: no further layer and no address.
    pub fn single_path(&self) -> Option<&str> {
        let is_single = self.stack.target.layers.len() == 1 && !self.addressed;
        self.bottom_path().filter(|_| is_single)
    }

    /// The text ends with an address: a provider inside is meant.
    pub fn is_addressed(&self) -> bool {
        self.addressed
    }

    /// Puts the layers together.
    ///
    /// # Errors
    /// See [`TargetError`].
    pub fn open(&self, options: &TargetOptions) -> Result<Target, TargetError> {
        let knobs = self.knobs(options);
        self.open_in(Stack::new(knobs, registry::tasting())?, knobs, options)
    }

    /// The same in the stack of another target, for one server of both.
    ///
    /// # Errors
    /// See [`TargetError`]; also where a stack file wants the stack to work in another way.
    pub fn open_beside(
        &self,
        other: &Target,
        options: &TargetOptions,
    ) -> Result<Target, TargetError> {
        let (stack, knobs) = (other.stack.clone(), self.knobs(options));
        if knobs != stack.options() {
            let message = "the settings of its stack file differ from those of the other targets";
            return Err(StackError::Invalid(message.to_owned()).into());
        }
        self.open_in(stack, knobs, options)
    }

    fn knobs(&self, options: &TargetOptions) -> StackKnobs {
        settled(options.knobs, options.set.over(self.stack.settings))
    }

    fn open_in(
        &self,
        stack: Stack,
        knobs: StackKnobs,
        options: &TargetOptions,
    ) -> Result<Target, TargetError> {
        let options = TargetOptions { knobs, ..*options };
        let target = build_target(stack, &self.stack.target, &options)?;
        Ok(Target {
            addressed: self.addressed,
            ..target
        })
    }
}

/// Why a target cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The text, or an option, or an address is wrong; the error points at the column.
    #[error(transparent)]
    Spec(Box<SpecError>),
    /// A layer could not be built.
    #[error(transparent)]
    Build(BuildError),
    /// The stack refused a layer.
    #[error(transparent)]
    Stack(#[from] StackError),
}

impl From<SpecError> for TargetError {
    fn from(error: SpecError) -> Self {
        Self::Spec(Box::new(error))
    }
}

impl From<BuildError> for TargetError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Spec(error) => Self::from(error),
            other => Self::Build(other),
        }
    }
}

/// Reads a target, and the stack file that it may name, and puts its layers together.
///
/// # Errors
/// See [`TargetError`].
pub fn open_target(text: &str, options: &TargetOptions) -> Result<Target, TargetError> {
    TargetText::parse(text)?.open(options)
}

/// Knobs with settings over them.
fn settled(knobs: StackKnobs, settings: spec::Settings) -> StackKnobs {
    let spin_ns = settings.spin_ns;
    let dispatch = match (settings.dispatch, knobs.dispatch) {
        (Some(DispatchMode::Direct), _) | (None, Dispatch::Direct) => Dispatch::Direct,
        (Some(DispatchMode::Queued), _) => Dispatch::Queued {
            spin_ns: spin_ns.unwrap_or(QUEUED_SPIN_NS),
        },
        (None, Dispatch::Queued { spin_ns: given }) => Dispatch::Queued {
            spin_ns: spin_ns.unwrap_or(given),
        },
    };
    let one_in = settings.sample.unwrap_or(TIME_ONE_IN);
    let statistics = match settings.statistics {
        Some(StatisticsMode::Off) => Statistics::Off,
        Some(StatisticsMode::Counts) => Statistics::Counts,
        Some(StatisticsMode::Time) => Statistics::Time { one_in },
        None => knobs.statistics,
    };
    StackKnobs {
        taste: knobs.taste && settings.taste.unwrap_or(true),
        dispatch,
        statistics,
        registry: settings.registry.unwrap_or(knobs.registry),
        pools: settings.pools.unwrap_or(knobs.pools),
        slicers: settings.slicers.unwrap_or(knobs.slicers),
    }
}

/// Puts the layers of a target into a stack that is there already, and works as it does: the knobs
/// in `options` are not used.
///
/// # Errors
/// See [`TargetError`]. Layers below the one that failed stay in the stack.
pub(crate) fn build_target(
    stack: Stack,
    target: &spec::Target,
    options: &TargetOptions,
) -> Result<Target, TargetError> {
    let mut builder = Builder {
        stack: &stack,
        options,
        bottom: None,
        at: None,
    };
    for layer in &target.layers {
        builder.add(layer)?;
    }
    let (bottom, at) = builder.ends(target)?;
    let top = match &target.provider {
        Some(address) => builder.resolve(address, at.provider)?,
        None => at.provider,
    };
    let name = builder.view(top)?.name;
    Ok(Target {
        stack,
        bottom,
        top,
        name,
        addressed: target.provider.is_some(),
    })
}

/// Reads at most one byte more than a stack file may have, which is enough to refuse it.
fn read_stack_file(path: &str) -> io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(spec::FILE_BYTES_MAX as u64 + 1)
        .read_to_string(&mut text)?;
    Ok(text)
}

/// Where the next layer goes.
#[derive(Clone, Copy)]
struct TopProvider {
    provider: ProviderId,
    /// The table that lies on it, if the layer before was one.
    table: Option<&'static ClassEntry>,
}

struct Builder<'a> {
    stack: &'a Stack,
    options: &'a TargetOptions,
    bottom: Option<ProviderId>,
    at: Option<TopProvider>,
}

impl Builder<'_> {
    fn add(&mut self, layer: &Layer) -> Result<(), TargetError> {
        let name = layer.class.value.as_str();
        let Some(entry) = registry::find(name) else {
            return Err(layer
                .error(format!("there is no class `{name}` here"))
                .into());
        };
        let Some(at) = self.at else {
            return self.add_bottom(entry, layer);
        };
        let below = match &layer.on {
            Some(address) => self.resolve(address, at.provider)?,
            None => at.provider,
        };
        let addressed = layer.on.is_some();
        let table = match entry.build {
            Build::Bottom(_) => {
                let message = format!("{name} can only be the first layer");
                return Err(layer.error(message).into());
            }
            Build::Layer(_) if at.table.is_some() && !addressed => {
                return Err(self.ambiguous(at, layer).into());
            }
            Build::Layer(build) => {
                let arguments = layer.arguments(entry.positional)?;
                let view = self.view(below)?;
                let mut context =
                    BuildContext::new(self.stack, self.options.files(), self.options.keys);
                let plan = build(&mut context, arguments, &view)?;
                let provider = self.create(entry, plan, &[below])?;
                self.at = Some(TopProvider {
                    provider,
                    table: None,
                });
                return Ok(());
            }
            Build::Table => entry,
        };
        self.add_table(table, layer, below)?;
        self.at = Some(TopProvider {
            provider: below,
            table: Some(table),
        });
        Ok(())
    }

    fn add_bottom(&mut self, entry: &'static ClassEntry, layer: &Layer) -> Result<(), TargetError> {
        let Build::Bottom(build) = entry.build else {
            let message = format!("{} needs a device below it", entry.name);
            let error = layer.error(message);
            return Err(error
                .with_help(format!("write DEVICE | {}", entry.name))
                .into());
        };
        let arguments = layer.arguments(entry.positional)?;
        let mut context = BuildContext::new(self.stack, self.options.files(), self.options.keys);
        let plan = build(&mut context, arguments)?;
        let provider = self.create(entry, plan, &[])?;
        self.bottom = Some(provider);
        self.at = Some(TopProvider {
            provider,
            table: None,
        });
        Ok(())
    }

    fn create(
        &self,
        entry: &ClassEntry,
        plan: ugeom_stack::Plan,
        lower: &[ProviderId],
    ) -> Result<ProviderId, TargetError> {
        let made = self.stack.create(entry.class, plan, lower)?;
        made.first()
            .copied()
            .ok_or_else(|| StackError::Invalid(format!("{} made no provider", entry.name)).into())
    }

    /// Puts a table there, unless tasting has done so.
    fn add_table(
        &self,
        entry: &ClassEntry,
        layer: &Layer,
        below: ProviderId,
    ) -> Result<(), TargetError> {
        layer
            .arguments(entry.positional)?
            .read(&entry::NO_OPTIONS, ())?;
        let is_there = |tree: ugeom_stack::Tree| {
            tree.above(below)
                .any(|geom| geom.class == entry.class && !geom.wither)
        };
        if is_there(self.stack.tree()) {
            return Ok(());
        }
        let class: Arc<dyn Class> = Arc::new(*entry);
        let name = self.view(below)?.name;
        match self.stack.taste_with(below, &class) {
            Ok(Some(_)) => Ok(()),
            Ok(None) => {
                let message = format!("{} finds no table on {name}", entry.name);
                Err(layer.error(message).with_help(self.names_help()).into())
            }
            Err(StackError::Invalid(problem)) => {
                Err(layer.error(problem).with_help(self.names_help()).into())
            }
            Err(other) => Err(other.into()),
        }
    }

    fn ambiguous(&self, at: TopProvider, layer: &Layer) -> SpecError {
        let table = at.table.map_or("the table", |entry| entry.name);
        let message = format!(
            "{} can attach to any provider of {table}: name one",
            layer.class.value
        );
        let tree = self.stack.tree();
        let class = at.table.map_or("", |entry| entry.class);
        let first = tree
            .above(at.provider)
            .find(|geom| geom.class == class)
            .and_then(|geom| geom.providers.first());
        let error = layer.error(message);
        match first {
            Some(first) => error.with_help(format!(
                "as in {table}@{} | {}",
                first.name, layer.class.value
            )),
            None => error,
        }
    }

    /// The provider at an address, relative to `from`.
    fn resolve(&self, address: &Address, from: ProviderId) -> Result<ProviderId, TargetError> {
        let tree = self.stack.tree();
        let from = self.view(from)?.name;
        let names = tree.providers().map(|provider| provider.name.as_str());
        let found = address
            .find(&from, names)
            .and_then(|name| tree.provider(name));
        found.map(|provider| provider.id).ok_or_else(|| {
            let text = address.text.value.as_str();
            let message = match &address.missing_path {
                Some(path) => format!(
                    "{path}: no such file or directory, and {from} has no provider `{text}`"
                ),
                None => format!("there is no provider `{text}` or `{from}{text}`"),
            };
            address.error(message).with_help(self.names_help()).into()
        })
    }

    fn names_help(&self) -> String {
        let tree = self.stack.tree();
        let mut names: Vec<String> = tree
            .providers()
            .map(|provider| visible(&provider.name))
            .collect();
        let more = if names.len() > LISTED_NAMES {
            ", ..."
        } else {
            ""
        };
        names.truncate(LISTED_NAMES);
        let taste = if self.options.knobs.taste {
            ""
        } else {
            " (tasting is off)"
        };
        format!("the providers are: {}{more}{taste}", names.join(", "))
    }

    fn view(&self, provider: ProviderId) -> Result<ProviderView, StackError> {
        let tree = self.stack.tree();
        let view = tree.providers().find(|view| view.id == provider).cloned();
        view.ok_or_else(|| StackError::NoProvider {
            name: "one that was just made".into(),
            known: Vec::new(),
        })
    }

    fn ends(&self, target: &spec::Target) -> Result<(ProviderId, TopProvider), SpecError> {
        self.bottom.zip(self.at).ok_or_else(|| {
            let origin = &target.origin;
            origin.error(spec::Span::default(), "a target needs at least one layer")
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
