//! The names of the cases: `GROUP/WHAT`, and with which settings. They stand in saved results, so
//! they do not change their meaning.

/// `lseek` and `read` of 512 bytes of `/dev/zero`, a system call without any disk: the control.
pub const ZERO: &str = "call/zero";
/// The same once more: the difference of two measurements of one thing.
pub const ZERO_AGAIN: &str = "call/zero again";
/// One read of the null device, one thread, statistics off.
pub const NULL_ONE: &str = "null/1 thread";
/// The same, shared by two threads.
pub const NULL_TWO: &str = "null/2 threads";
/// A thousand requests at once through a layer that delays each by 1 ms.
pub const DELAY: &str = "delay/1000 requests";
/// An empty loop: the cost of iterating.
pub const LOOP: &str = "floor/loop";
/// Reading the clock: the cost of timing.
pub const CLOCK: &str = "floor/clock";
/// Reading the processor's ticks.
pub const TICKS: &str = "floor/ticks";
/// The deepest provider, statistics off.
pub const STATISTICS_OFF: &str = "statistics/off";
/// The deepest provider, counts and sampled times.
pub const STATISTICS_TIME: &str = "statistics/time";
/// The bottom of a target, read directly (O_DIRECT): the disk itself.
pub const DISK: &str = "disk/direct";
/// Opening and tasting the large image.
pub const SHOW: &str = "show/1 TiB image";

/// Reading a provider through the stack: direct dispatch, counts on.
pub fn direct(provider: &str) -> String {
    format!("direct/{provider}")
}

/// The same once more, for the A/A noise.
pub fn direct_again(provider: &str) -> String {
    format!("direct/{provider} again")
}

/// The same bytes without a stack.
pub fn plain(provider: &str) -> String {
    format!("plain/{provider}")
}

/// Reading a provider through `g_down` and `g_up`.
pub fn queued(provider: &str) -> String {
    format!("queued/{provider}")
}

/// The same by two threads at once.
pub fn queued_two(provider: &str) -> String {
    format!("queued/{provider}, 2 threads")
}

/// Reading a provider through a server.
pub fn through(way: &str, provider: &str) -> String {
    format!("through {way}/{provider}")
}

/// Reading another size of a provider.
pub fn sized(provider: &str, read_bytes: u64) -> String {
    format!("size/{provider} {read_bytes}")
}

/// A stack of `depth` equal layers, with their kind and the level of statistics.
pub fn layered(kind: &str, level: &str, depth: usize) -> String {
    format!("{kind}/{level} {depth}")
}

/// A chain of bare indirect calls.
pub fn calls(depth: usize) -> String {
    format!("floor/calls {depth}")
}

/// The same bytes without a stack, in another size.
pub fn plain_sized(provider: &str, read_bytes: u64) -> String {
    format!("plain/{provider} {read_bytes}")
}
