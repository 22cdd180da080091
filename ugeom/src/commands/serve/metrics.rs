//! The option of `ugeom serve` that is about metrics over HTTP.

use crate::failure::Usage;
use crate::output;
use anyhow::Result;
use clap::Args;
use std::sync::Arc;
use ugeom_serve::control::{PROTOCOL, ServerFacts};
use ugeom_serve::metrics::Metrics;
use ugeom_serve::nbd::{Address, Log};
use ugeom_serve::shown::Shown;
use ugeom_stack::Stack;

#[derive(Args)]
pub struct MetricsArgs {
    /// Serve metrics for Prometheus over HTTP at /metrics: tcp:HOST:PORT (port 0: a free
    /// port) or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<String>,
}

impl MetricsArgs {
    /// Serves metrics, where that is asked for, until the result is dropped. It starts
    /// before the control socket: the first of both chooses which requests are timed.
    ///
    /// # Errors
    /// The address is none, or cannot be listened to.
    pub fn start(&self, (stack, shown): (&Stack, &Shown), target: &str) -> Result<Option<Metrics>> {
        let Some(text) = &self.metrics else { return Ok(None) };
        let address = text.parse::<Address>();
        let address = address.map_err(|error| Usage(error.to_string()))?;
        let facts = ServerFacts {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            target: target.to_owned(),
            connection: None,
        };
        let log: Log = Arc::new(|line| output::remark(&output::printable(line)));
        let metrics = Metrics::start(stack, shown, &address, facts, &log)?;
        output::remark(&format!("metrics: {}", output::printable(metrics.url())));
        Ok(Some(metrics))
    }
}
