//! Faults of the original library, each as a test: `programs/faults.c` has the other half.

use std::path::PathBuf;
use std::process::Command;

mod common;

use common::Library;

/// Builds the program and runs one of its parts.
fn right(fault: &str) {
    let Some(gcc) = ugeom_testkit::program("gcc") else { return };
    let library = Library::new();
    let program: PathBuf = library.build(&gcc, &["-std=c99", "-pthread"], "faults.c");
    let output = Command::new(&program)
        .arg(fault)
        .env("LD_LIBRARY_PATH", library.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.code() == Some(77) {
        return ugeom_testkit::skip(said.trim());
    }
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {failed}", output.status);
    assert_eq!(said, "right\n");
}

/// Defines a test for each fault.
macro_rules! faults {
    ($($name:ident: $fault:literal,)*) => {
        $(#[test] fn $name() { right($fault); })*
    };
}

faults! {
    a_timeout_whose_nanoseconds_pass_a_second_ends_in_time: "timeout",
    an_idle_worker_is_used_before_another_thread_starts: "idle",
    submitters_in_several_threads_get_their_own_requests: "submitters",
    a_thread_that_cannot_start_is_eagain_and_leaves_no_request: "no_thread",
    the_least_number_of_threads_is_started: "least",
    threads_are_gone_when_the_context_is_freed: "joined",
    zero_is_as_many_threads_as_needed: "unlimited",
    stacks_are_as_long_as_the_environment_says: "stacks",
    a_request_allocates_no_memory: "memory",
    a_cancellation_never_interrupts_the_next_request: "next",
}
