//! The options of `ugeom serve` that concern NBD clients only: threads, polling, limits.

use crate::commands::lab::duration_ns;
use crate::opening;
use clap::Args;
use std::time::Duration;
use ugeom_serve::nbd::Limits;

#[derive(Args)]
pub struct LimitArgs {
    /// Server threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,

    /// Poll up to this long before sleeping, while requests arrive faster than that; uses a core
    /// while polling, and saves synchronous clients one wake-up per request; 0us: never poll
    #[arg(long, value_name = "TIME", default_value = "50us", value_parser = spin_ns)]
    spin: u64,

    /// Maximum number of connections; one more closes the longest idle one
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections)]
    #[arg(value_parser = at_least_one)]
    max_connections: usize,

    /// Maximum number of connections of one peer (a user of this machine, or another host); one
    /// more closes the longest idle one of that peer
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections_per_peer)]
    #[arg(value_parser = at_least_one)]
    max_connections_per_peer: usize,

    /// Requests in flight of one connection
    #[arg(long, value_name = "N", default_value_t = Limits::default().requests)]
    #[arg(value_parser = at_least_one)]
    max_requests: usize,

    /// Bytes in flight of all connections; one connection gets at most a quarter
    #[arg(long, value_name = "SIZE", default_value = "256m", value_parser = bytes_in_flight)]
    max_bytes: u64,

    /// Time limit of each option of a handshake
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = limit_ns)]
    handshake_timeout: u64,

    /// Time limit for the rest of a message, and for a reply that the client does not read
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = limit_ns)]
    stall_timeout: u64,

    /// Time without a request after which a connection is closed
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = limit_ns)]
    idle_timeout: u64,
}

/// The default of `--spin`, ns.
const SPIN_NS: u64 = 50_000;

impl LimitArgs {
    /// The first option that differs from its default.
    pub fn first_given(&self) -> Option<&'static str> {
        let (limits, usual) = (self.limits(), Limits::default());
        let differ = [
            ("--threads", self.threads.is_some()),
            ("--spin", self.spin != SPIN_NS),
            ("--max-connections", limits.connections != usual.connections),
            (
                "--max-connections-per-peer",
                limits.connections_per_peer != usual.connections_per_peer,
            ),
            ("--max-requests", limits.requests != usual.requests),
            ("--max-bytes", limits.bytes != usual.bytes),
            ("--handshake-timeout", limits.handshake != usual.handshake),
            ("--stall-timeout", limits.stall != usual.stall),
            ("--idle-timeout", limits.idle != usual.idle),
        ];
        let mut given = differ.into_iter().filter(|(_, differs)| *differs);
        given.next().map(|(option, _)| option)
    }

    pub fn threads(&self) -> usize {
        self.threads.map_or_else(super::cores, usize::from)
    }

    pub fn spin(&self) -> Duration {
        Duration::from_nanos(self.spin)
    }

    pub fn limits(&self) -> Limits {
        let bytes = usize::try_from(self.max_bytes).unwrap_or(usize::MAX);
        Limits {
            connections: self.max_connections,
            connections_per_peer: self.max_connections_per_peer,
            requests: self.max_requests,
            bytes_per_connection: bytes / 4,
            bytes,
            handshake: Duration::from_nanos(self.handshake_timeout),
            stall: Duration::from_nanos(self.stall_timeout),
            idle: Duration::from_nanos(self.idle_timeout),
        }
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 is needed".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err("not a whole number".to_owned()),
    }
}

/// One connection gets a quarter, and at least 64 KiB.
fn bytes_in_flight(text: &str) -> Result<u64, String> {
    match opening::size(text)? {
        bytes if bytes < 256 << 10 => Err("at least 256k is needed".to_owned()),
        bytes => Ok(bytes),
    }
}

fn limit_ns(text: &str) -> Result<u64, String> {
    match duration_ns(text)? {
        0 => Err("a time limit is more than 0, such as 10s".to_owned()),
        limit_ns => Ok(limit_ns),
    }
}

fn spin_ns(text: &str) -> Result<u64, String> {
    match duration_ns(text)? {
        spin_ns if spin_ns > 1_000_000_000 => Err("at most 1s".to_owned()),
        spin_ns => Ok(spin_ns),
    }
}
