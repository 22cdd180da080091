//! The commands: one file each, with its flags, its help and its work.

/// Runs the variant of an enum of subcommands: those that are named have a method `run`, the
/// others have arms of their own.
macro_rules! run_each {
    ($held:expr, $of:ident: $($name:ident)* $(, $other:pat => $done:expr)*) => {
        match $held {
            $($of::$name(it) => it.run(),)*
            $($other => $done,)*
        }
    };
}

mod ab;
mod classes;
mod compare;
mod completions;
mod crash;
mod diskinfo;
mod files;
mod geli;
mod generate;
mod geom_list;
mod history;
mod iostat;
mod jobs;
mod lab;
mod ministat;
mod part;
mod raidtest;
mod read;
mod report;
mod results;
mod run;
mod serve;
mod show;
mod stat;
mod trace;
mod version;
mod write;

use anyhow::Result;
use clap::Subcommand;
pub use run::with_options as run_with_options;

#[derive(Subcommand)]
pub enum Command {
    Show(show::Show),
    Diskinfo(diskinfo::Diskinfo),
    Read(read::Read),
    Write(write::Write),
    Part(part::Part),
    Geli(geli::Geli),
    Raidtest(raidtest::Raidtest),
    Classes(classes::Classes),
    Run(run::Run),
    Serve(serve::Serve),
    Crash(crash::Crash),
    Stat(stat::Stat),
    Trace(trace::Trace),
    Iostat(iostat::Iostat),
    Lab(lab::Lab),
    Ab(ab::Ab),
    Compare(compare::Compare),
    History(history::HistoryCli),
    Ministat(ministat::Ministat),
    Report(report::Report),
    Completions(completions::Completions),
    Version(version::Version),
    Generate(generate::Generate),
}

impl Command {
    /// Whether `-v` is an option of the command, as of the tool that it stands for, and not the one
    /// of the program.
    pub fn has_own_verbose(&self) -> bool {
        matches!(self, Self::Show(_) | Self::Diskinfo(_) | Self::Geli(_))
    }

    /// Runs the command.
    ///
    /// # Errors
    /// The failure; `failure.rs` turns it into a message and an exit code.
    pub fn run(&self) -> Result<()> {
        run_each!(self, Self: Show Diskinfo Read Write Part Geli Raidtest Classes Run Serve Crash
            Stat Trace Iostat Lab Ab Compare History Ministat Report Completions Version Generate)
    }
}
