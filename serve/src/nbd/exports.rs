//! The present exports: the providers of the stack at the moment of the question, and those of them
//! that a client sees.

use super::Settings;
use super::allow::{Identity, Rule};
use crate::ranges::Ranges;
use crate::shown::{Seen, Shown};
use std::sync::Arc;
use ugeom_format::wire::nbd::{PAYLOAD_BYTES_MAX, export_flag, option_reply};
use ugeom_stack::{Delta, Opened, ProviderId, ProviderView, RangeLock, Stack, StackError};

/// Behind the name of an export: the client only reads, also from a server that lets others write.
const READ_ONLY_SUFFIX: &str = ":ro";

/// The least that clients are told to prefer, bytes: a page.
const PREFERRED_BYTES_MIN: u32 = 4096;

pub(super) struct Exports {
    stack: Stack,
    shown: Shown,
    writable: bool,
    allow: Vec<Rule>,
    ranges: Ranges,
}

/// The exports that a client sees. It learns nothing of others: they are as if they did not exist.
pub(super) struct Visible<'a> {
    exports: &'a Exports,
    client: &'a Identity,
}

/// A provider as a client sees it.
#[derive(Clone, Debug)]
pub(super) struct Export {
    pub id: ProviderId,
    pub name: String,
    pub description: String,
    /// Whole sectors, without the padding of an image's last sector.
    pub size_bytes: u64,
    pub sector_bytes: u32,
    pub preferred_bytes: u32,
    pub writable: bool,
}

/// An export that a client holds open.
pub(super) struct Chosen {
    pub export: Export,
    pub opened: Opened,
    pub ranges: Arc<RangeLock>,
}

/// Why an export cannot be had.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The type of the reply: an error of [`option_reply`].
    pub reply: u32,
    pub message: String,
}

impl Export {
    /// Flags for a client, with or without structured replies.
    pub fn flags(&self, structured: bool) -> u16 {
        let mut flags = export_flag::HAS_FLAGS
            | export_flag::SEND_FLUSH
            | export_flag::SEND_CACHE
            // A FLUSH covers every write that completed before, on any channel of the stack.
            | export_flag::CAN_MULTI_CONN;
        if self.writable {
            flags |= export_flag::SEND_FUA
                | export_flag::SEND_TRIM
                | export_flag::SEND_WRITE_ZEROES
                | export_flag::SEND_FAST_ZERO;
        } else {
            flags |= export_flag::READ_ONLY;
        }
        if structured {
            flags |= export_flag::SEND_DF;
        }
        flags
    }

    /// The longest READ and WRITE, bytes.
    pub fn maximum_bytes(&self) -> u32 {
        PAYLOAD_BYTES_MAX
    }
}

impl Exports {
    pub fn new(stack: &Stack, shown: &Shown, settings: &Settings) -> Self {
        Self {
            stack: stack.clone(),
            shown: shown.clone(),
            writable: settings.writable,
            allow: settings.allow.clone(),
            ranges: settings.ranges.clone(),
        }
    }

    /// The exports that a client sees.
    pub fn seen_by<'a>(&'a self, client: &'a Identity) -> Visible<'a> {
        let exports = self;
        Visible { exports, client }
    }

    /// Whether a rule asks for the names in certificates.
    pub fn ask_for_names(&self) -> bool {
        self.allow.iter().any(Rule::needs_certificate)
    }

    /// Names in rules that no export has now. It may come: classes taste again.
    pub fn missing(&self) -> Vec<&str> {
        let shown = self.shown.of_tree(&self.stack.tree());
        let default = self.shown.default_name();
        let names = self.allow.iter().filter_map(|rule| rule.export(default));
        let is_missing = |name: &&str| shown.iter().all(|it| it.view.name != *name);
        names.filter(is_missing).collect()
    }

    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    fn export(&self, Seen { view, read_only }: &Seen) -> Export {
        let sector_bytes = view.sectorsize_bytes.max(1);
        let stripe_bytes = u32::try_from(view.stripesize_bytes).unwrap_or(0);
        let preferred = PREFERRED_BYTES_MIN.max(sector_bytes).max(stripe_bytes);
        // The protocol wants a power of two there.
        let preferred = preferred
            .checked_next_power_of_two()
            .unwrap_or(PREFERRED_BYTES_MIN);
        Export {
            id: view.id,
            name: view.name.clone(),
            description: describe(view),
            size_bytes: view.content_bytes(),
            sector_bytes,
            preferred_bytes: preferred.min(PAYLOAD_BYTES_MAX),
            writable: self.writable && !read_only,
        }
    }
}

impl Visible<'_> {
    fn sees(&self, name: &str) -> bool {
        let Exports { shown, allow, .. } = self.exports;
        self.client.sees(allow, name, shown.default_name())
    }

    /// The providers that it sees now, the default one first.
    fn seen(&self) -> Vec<Seen> {
        let Exports { shown, stack, .. } = self.exports;
        let mut seen = shown.of_tree(&stack.tree());
        seen.retain(|it| it.view.error.is_none() && self.sees(&it.view.name));
        seen
    }

    /// All exports, the default one first.
    pub fn all(&self) -> Vec<Export> {
        let exports = self.exports;
        self.seen().iter().map(|it| exports.export(it)).collect()
    }

    /// The export of that name; the default one for an empty name. A name that ends with `:ro`, and
    /// is not itself that of a provider, is the export before it, for reading.
    pub fn find(&self, name: &str) -> Result<Export, Refusal> {
        let exports = self.exports;
        let seen = self.seen();
        let named = |name: &str| {
            let wanted = match name {
                "" => exports.shown.default_name(),
                name => name,
            };
            seen.iter().find(|it| it.view.name == wanted)
        };
        if let Some(found) = named(name) {
            return Ok(exports.export(found));
        }
        let read_only = name.strip_suffix(READ_ONLY_SUFFIX).and_then(named);
        if let Some(found) = read_only {
            return Ok(Export {
                name: name.to_owned(),
                writable: false,
                ..exports.export(found)
            });
        }
        let missing = match name {
            // The client may not be one that learns its name.
            "" => "there is no default export".to_owned(),
            name => format!("there is no export `{name}`"),
        };
        let names: Vec<&str> = seen.iter().map(|it| it.view.name.as_str()).collect();
        Err(Refusal {
            reply: option_reply::ERR_UNKNOWN,
            message: format!("{missing}; there are: {}", names.join(", ")),
        })
    }

    /// Why an export is not opened for writing.
    fn kept(&self, export: &Export, lost: &str) -> Refusal {
        let name = &export.name;
        let sees = self.seen().iter().any(|it| it.view.name == lost);
        let above = if sees { lost } else { "a layer" };
        Refusal {
            reply: option_reply::ERR_POLICY,
            message: format!(
                "writing to {name} would destroy {above} above it; \
                 `{name}{READ_ONLY_SUFFIX}` opens it for reading"
            ),
        }
    }

    pub fn open(&self, name: &str) -> Result<Chosen, Refusal> {
        let export = self.find(name)?;
        let lost = export
            .writable
            .then(|| self.exports.stack.lost_to_writer(export.id));
        if let Some(lost) = lost.flatten() {
            return Err(self.kept(&export, &lost));
        }
        let delta = Delta::of_user(export.writable);
        let opened = self.exports.stack.open(export.id, delta);
        let opened = opened.map_err(|error| Refusal {
            reply: match error {
                StackError::NoProvider { .. } => option_reply::ERR_UNKNOWN,
                _ => option_reply::ERR_POLICY,
            },
            message: if self.exports.allow.is_empty() {
                error.to_string()
            } else {
                // The reason may name exports that this client does not see.
                "it cannot be opened now".to_owned()
            },
        })?;
        let ranges = self.exports.ranges.of(export.id);
        Ok(Chosen {
            export,
            opened,
            ranges,
        })
    }
}

/// The description of a provider for people: type and label, and its fault if it has one.
fn describe(view: &ProviderView) -> String {
    let fact = |name: &str| view.fact(name).filter(|value| !value.is_empty());
    let parts = [fact("type"), fact("label"), view.mark.as_deref()];
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    parts.join(", ")
}
