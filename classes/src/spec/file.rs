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

use serde::Deserialize;

use super::ast::{Layer, Target};
use super::error::{Origin, Span, SpecError, quoted, shortened};
use super::parse::{self, Begin};
use super::settings::{Dispatch, Pools, Registry, Settings, Slicers, Spin, Statistics};
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
    /// What the stack file says about running it.
    pub settings: Settings,
}

/// One `[stack.NAME]` with its own layers only.
#[derive(Clone, Debug)]
struct Described {
    own: Target,
    base: Option<String>,
    settings: Settings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    stack: BTreeMap<toml::Spanned<String>, RawStack>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStack {
    base: Option<toml::Spanned<String>>,
    #[serde(default)]
    layers: Vec<toml::Spanned<String>>,
    components: Option<toml::Spanned<toml::Value>>,
    dispatch: Option<Dispatch>,
    spin: Option<Spin>,
    statistics: Option<Statistics>,
    sample: Option<std::num::NonZeroU32>,
    taste: Option<bool>,
    registry: Option<Registry>,
    pools: Option<Pools>,
    slicers: Option<Slicers>,
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
        let raw: RawFile = toml::from_str(text).map_err(|error| {
            let span = error
                .span()
                .map_or_else(Span::default, |at| Span::new(at.start, at.end));
            origin.error(span, shortened(error.message(), TOML_MESSAGE_CHARS))
        })?;
        let mut stacks = BTreeMap::new();
        for (name, stack) in &raw.stack {
            let described = described(&origin, name, stack, classes)?;
            stacks.insert(name.get_ref().clone(), described);
        }
        let file = StackFile { stacks };
        for stack in raw.stack.values() {
            if let Some(base) = &stack.base {
                file.check_bases(&origin, base, stack.layers.len())?;
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
        let below = |described: &&Described| self.stacks.get(described.base.as_deref()?);
        std::iter::successors(first, below)
            .take(BASES_MAX + 1)
            .collect()
    }

    /// Checks that the stacks from `base` down are there, end, and are not too many.
    fn check_bases(
        &self,
        origin: &Origin,
        base: &toml::Spanned<String>,
        own_layers: usize,
    ) -> Result<(), SpecError> {
        let name = base.get_ref().as_str();
        let error = |message: String| origin.error(span_of(base), message);
        if !self.stacks.contains_key(name) {
            let names: Vec<&str> = self.names().collect();
            let message = format!("the file has no stack {}", quoted(name));
            return Err(error(message).with_nearest(name, &names));
        }
        let chain = self.chain(name);
        if chain.len() > BASES_MAX {
            let stands_below = |i: usize| chain[..i].iter().any(|it| std::ptr::eq(*it, chain[i]));
            return Err(error(if (1..chain.len()).any(stands_below) {
                format!("the bases of {} go in a circle", quoted(name))
            } else {
                format!("more than {BASES_MAX} stacks stand on one another")
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

fn described(
    origin: &Origin,
    name: &toml::Spanned<String>,
    raw: &RawStack,
    classes: &[&str],
) -> Result<Described, SpecError> {
    if !parse::is_stack_name(name.get_ref()) {
        let error = origin.error(span_of(name), "this is not the name of a stack");
        return Err(error.with_help("a stack's name has letters, digits, `_`, `-` and `.`"));
    }
    if let Some(components) = &raw.components {
        let message = "`components` is kept for mirrors and stripes, which are not there yet";
        return Err(origin.error(span_of(components), message));
    }
    if raw.base.is_none() && raw.layers.is_empty() {
        let message = format!("the stack {} has no layers", quoted(name.get_ref()));
        let error = origin.error(span_of(name), message);
        return Err(error.with_help("write layers = [\"md:64m\"], or base = \"NAME\""));
    }
    let mut own = Stack::empty(origin);
    for (i, text) in raw.layers.iter().enumerate() {
        let begin = if i == 0 && raw.base.is_none() {
            Begin::Bottom
        } else {
            Begin::Upper
        };
        let inside = origin.inside(span_of(text), text.get_ref());
        let part = parse::target(&inside, text.get_ref(), begin, classes)?;
        if let Some(reference) = &part.stack {
            let error = inside.error(reference.file.span, "a stack file names no other file");
            return Err(error.with_help("within one file a stack is named by base = \"NAME\""));
        }
        own.put(&part);
        if own.target.layers.len() > LAYERS_MAX {
            return Err(origin.error(
                span_of(text),
                format!("a target has at most {LAYERS_MAX} layers"),
            ));
        }
    }
    let settings = Settings {
        dispatch: raw.dispatch,
        spin_ns: raw.spin.map(|spin| spin.0),
        statistics: raw.statistics,
        sample: raw.sample.map(std::num::NonZeroU32::get),
        taste: raw.taste,
        registry: raw.registry,
        pools: raw.pools,
        slicers: raw.slicers,
    };
    let base = raw.base.as_ref().map(|base| base.get_ref().clone());
    Ok(Described {
        own: own.target,
        base,
        settings,
    })
}

fn span_of<T>(spanned: &toml::Spanned<T>) -> Span {
    let range = spanned.span();
    Span::new(range.start, range.end)
}
