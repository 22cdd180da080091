//! The commands: one file each, with its flags, its help and its work.

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
    /// What went wrong; `failure.rs` turns it into a message and an exit code.
    pub fn run(&self) -> Result<()> {
        match self {
            Self::Show(show) => show.run(),
            Self::Diskinfo(diskinfo) => diskinfo.run(),
            Self::Read(read) => read.run(),
            Self::Write(write) => write.run(),
            Self::Part(part) => part.run(),
            Self::Geli(geli) => geli.run(),
            Self::Raidtest(raidtest) => raidtest.run(),
            Self::Classes(classes) => classes.run(),
            Self::Run(run) => run.run(),
            Self::Serve(serve) => serve.run(),
            Self::Crash(crash) => crash.run(),
            Self::Stat(stat) => stat.run(),
            Self::Trace(trace) => trace.run(),
            Self::Iostat(iostat) => iostat.run(),
            Self::Lab(lab) => lab.run(),
            Self::Ab(ab) => ab.run(),
            Self::Compare(compare) => compare.run(),
            Self::History(history) => history.run(),
            Self::Ministat(ministat) => ministat.run(),
            Self::Report(report) => report.run(),
            Self::Completions(completions) => completions.run(),
            Self::Version(version) => version.run(),
            Self::Generate(generate) => generate.run(),
        }
    }
}
