//! What there is to serve: the providers of the stack as they are at the moment of the question.

use super::Settings;
use crate::ranges::Ranges;
use std::sync::Arc;
use ugeom_format::wire::nbd::{PAYLOAD_BYTES_MAX, export_flag, option_reply};
use ugeom_stack::{Delta, Opened, ProviderId, ProviderView, RangeLock, Stack, StackError};

/// Behind the name of an export: the client only reads, also from a server that lets others write.
const READ_ONLY_SUFFIX: &str = ":ro";

/// The least that clients are told to prefer, bytes: a page.
const PREFERRED_BYTES_MIN: u32 = 4096;

/// All exports.
pub(super) struct Exports {
    stack: Stack,
    top: String,
    only_top: bool,
    writable: bool,
    ranges: Ranges,
}

/// A provider as a client sees it.
#[derive(Clone, Debug)]
pub(super) struct Export {
    pub id: ProviderId,
    pub name: String,
    pub description: String,
    /// Whole sectors, but for what fills up the last sector of an image.
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
    /// One of [`option_reply`].
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
    pub fn new(stack: &Stack, top: &str, settings: &Settings) -> Self {
        Self {
            stack: stack.clone(),
            top: top.to_owned(),
            only_top: settings.only_top,
            writable: settings.writable,
            ranges: settings.ranges.clone(),
        }
    }

    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// All exports, the default one first.
    pub fn all(&self) -> Vec<Export> {
        let tree = self.stack.tree();
        let top = tree.provider(&self.top).map(|view| self.export(view));
        let others = tree
            .providers()
            .filter(|view| view.name != self.top && !self.only_top && view.error.is_none())
            .map(|view| self.export(view));
        top.into_iter().chain(others).collect()
    }

    /// The export of that name; the default one for an empty name. A name that ends with `:ro`, and
    /// is not itself that of a provider, is the export before it, for reading.
    pub fn find(&self, name: &str) -> Result<Export, Refusal> {
        let tree = self.stack.tree();
        let named = |name: &str| {
            let wanted = if name.is_empty() { &self.top } else { name };
            tree.provider(wanted)
                .filter(|view| view.error.is_none() && (!self.only_top || view.name == self.top))
        };
        if let Some(view) = named(name) {
            return Ok(self.export(view));
        }
        let read_only = name.strip_suffix(READ_ONLY_SUFFIX).and_then(named);
        if let Some(view) = read_only {
            return Ok(Export {
                name: name.to_owned(),
                writable: false,
                ..self.export(view)
            });
        }
        let names: Vec<String> = self.all().into_iter().map(|export| export.name).collect();
        Err(Refusal {
            reply: option_reply::ERR_UNKNOWN,
            message: format!(
                "there is no export `{name}`; there are: {}",
                names.join(", ")
            ),
        })
    }

    /// Opens an export.
    pub fn open(&self, name: &str) -> Result<Chosen, Refusal> {
        let export = self.find(name)?;
        let delta = if export.writable {
            Delta::READ_WRITE
        } else {
            Delta::READ
        };
        let opened = self.stack.open(export.id, delta).map_err(|error| Refusal {
            reply: match error {
                StackError::NoProvider { .. } => option_reply::ERR_UNKNOWN,
                _ => option_reply::ERR_POLICY,
            },
            message: error.to_string(),
        })?;
        let ranges = self.ranges.of(export.id);
        Ok(Chosen {
            export,
            opened,
            ranges,
        })
    }

    fn export(&self, view: &ProviderView) -> Export {
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
            writable: self.writable,
        }
    }
}

/// What people should know of a provider: type and label, and its fault if it has one.
fn describe(view: &ProviderView) -> String {
    let fact = |wanted: &str| {
        let found = view.config.iter().find(|(name, _)| name == wanted);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    };
    let parts = [fact("type"), fact("label"), view.mark.as_deref()];
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    parts.join(", ")
}
