//! The command line: `--name=x --rw=read ...`, job files, and the options that are no job's.

use super::super::error::{JobError, Origin};
use super::{Environment, Loader, Section, Setting, parse_file};
use crate::options::{OPTIONS, refused_names};
use crate::value;

/// The parts of fio that `--debug` prints about. Those that ugeom lacks print nothing.
const DEBUG: [&str; 20] = [
    "process",
    "file",
    "io",
    "mem",
    "blktrace",
    "verify",
    "random",
    "parse",
    "diskutil",
    "job",
    "mutex",
    "profile",
    "time",
    "net",
    "rate",
    "compress",
    "steadystate",
    "helperthread",
    "zbd",
    "all",
];

/// fio's letters for options of the program. A letter alone behind one dash means that option, also
/// where names of jobs' options begin with it.
const LETTERS: &[(&str, &str)] = &[
    ("A", "merge-blktrace-only"),
    ("B", "trigger-timeout"),
    ("C", "client"),
    ("D", "daemonize"),
    ("E", "eta-newline"),
    ("F", "output-format"),
    ("G", "crctest"),
    ("H", "trigger"),
    ("I", "idle-prof"),
    ("J", "trigger-remote"),
    ("K", "aux-path"),
    ("L", "status-interval"),
    ("M", "memcpytest"),
    ("O", "eta-interval"),
    ("P", "parse-only"),
    ("R", "remote-config"),
    ("S", "server"),
    ("T", "cpuclock-test"),
    ("V", "terse-version"),
    ("W", "trigger-file"),
    ("X", "inflate-log"),
    ("a", "alloc-size"),
    ("b", "bandwidth-log"),
    ("c", "cmdhelp"),
    ("d", "debug"),
    ("e", "eta"),
    ("f", "append-terse"),
    ("h", "help"),
    ("i", "enghelp"),
    ("j", "max-jobs"),
    ("l", "latency-log"),
    ("m", "minimal"),
    ("o", "output"),
    ("p", "profile"),
    ("r", "readonly"),
    ("s", "showcmd"),
    ("v", "version"),
    ("w", "warnings-fatal"),
    ("x", "section"),
];

/// The shortest intervals that fio takes for `--status-interval` and `--eta-interval`, ns.
const STATUS_NS_MIN: u64 = 1_000_000;
const ETA_NS_MIN: u64 = 250_000_000;

/// The versions of the terse output.
const TERSE_VERSIONS: std::ops::RangeInclusive<u32> = 2..=5;

/// Options of the program, not of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// `--output=FILE`: write the result there.
    pub output: Option<String>,
    /// Formats of `--output-format`, in fio's order: `normal`, `terse`, `json`, `json+`.
    pub formats: Vec<String>,
    /// `--eta`: `auto`, `always` or `never` draw the line of progress.
    pub eta: Option<String>,
    /// `--status-interval=TIME`: print the figures so far this often, ns.
    pub status_interval_ns: Option<u64>,
    /// `--parse-only`: understand the jobs and run none.
    pub parse_only: bool,
    /// `--showcmd`: print each job file as a command line, and run nothing.
    pub show_command: bool,
    /// `--terse-version=N`: the version of terse lines, 2 to 5.
    pub terse_version: Option<u32>,
    /// `--eta-newline=TIME`: the line of progress stays, and a new one begins, so often, ns.
    pub eta_newline_ns: Option<u64>,
    /// `--eta-interval=TIME`: how often the line of progress is drawn, ns.
    pub eta_interval_ns: Option<u64>,
    /// `--append-terse`: terse lines behind the other output.
    pub append_terse: bool,
    /// `--warnings-fatal`: a setting without effect is an error.
    pub warnings_fatal: bool,
    /// `--debug=random`: print the seeds of the jobs.
    pub debug_random: bool,
    /// `--debug=parse`: print the settings as they are read.
    pub debug_parse: bool,
    /// `--aux-path=PATH`: where files with wrong blocks go.
    pub aux_path: Option<String>,
    /// `--bandwidth-log`: log the bandwidth of all jobs together.
    pub bandwidth_log: bool,
    /// `--trigger-file=PATH`: end all jobs when this file is there, which is then removed.
    pub trigger_file: Option<String>,
    /// `--trigger-timeout=TIME`: end all jobs after this time, ns.
    pub trigger_after_ns: Option<u64>,
    /// `--trigger=COMMAND`: a shell command for when a trigger has ended the jobs.
    pub trigger_command: Option<String>,
    /// `--idle-prof`: report how idle the processors were, together or (`true`) each of them, too.
    pub idle_of_cores: Option<bool>,
    /// `--inflate-log=FILE`: print a compressed log as text and run nothing.
    pub inflate: Option<String>,
    /// `--version`: print it and run nothing.
    pub version: bool,
    /// `--enghelp[=ENGINE[,OPTION]]`: print the engines, or the options of one.
    pub engines: Option<String>,
    /// `--section=NAME`: only these jobs of the job files.
    pub sections: Vec<String>,
    /// `--destroy`: write to targets that carry something.
    pub destroy: bool,
    /// `--readonly`: a job that writes or trims is an error.
    pub read_only: bool,
    /// `--help`, or a command line without anything.
    pub help: bool,
    /// `--cmdhelp[=NAME]`: describe an option, or all of them.
    pub describe: Option<String>,
}

/// A command line that was understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// Words that do not belong to a job.
    pub report: Report,
    /// The sections of all job files, and those of the command line.
    pub sections: Vec<Section>,
}

/// Reads a command line: job files and options, in any order, with one dash or two. As with fio,
/// `--name=` begins a job, and what stands before the first is meant for all jobs of the command
/// line and of the first job file. The jobs of the command line come first, wherever they stand.
///
/// # Errors
/// The argument or the line that is wrong, and why.
pub fn parse_arguments(
    arguments: &[String],
    loader: &mut dyn Loader,
    environment: &dyn Environment,
) -> Result<Arguments, JobError> {
    let mut all = Arguments::default();
    let mut own: Vec<Section> = Vec::new();
    let mut from_files = Vec::new();
    let mut files = 0;
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        at += 1;
        let origin = Origin::Argument {
            text: argument.as_str().into(),
        };
        let Some(text) = option_text(argument) else {
            let sections = parse_file(argument, loader, environment)?;
            let of_this_file = |section| Section {
                file: files,
                ..section
            };
            from_files.extend(sections.into_iter().map(of_this_file));
            files += 1;
            continue;
        };
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        let letter = LETTERS.iter().find(|(letter, _)| *letter == name);
        let name = match letter.filter(|_| !argument.starts_with("--")) {
            Some((_, name)) => name,
            None => whole_name(name, &origin)?,
        };
        let entry = OPTIONS.find(name);
        let needs_value =
            Report::needs_value(name) || entry.is_some_and(|entry| entry.doc.bare.is_none());
        let is_switch = entry.is_some_and(|entry| entry.doc.value == "BOOL");
        let next = arguments
            .get(at)
            .filter(|next| option_text(next).is_none_or(|text| text.starts_with(char::is_numeric)));
        let value = match (value, next) {
            (None, Some(next)) if needs_value || (is_switch && is_truth(next)) => {
                at += 1;
                Some(next.clone())
            }
            (value, _) => value,
        };
        if all.report.take(name, value.as_deref(), &origin)? {
            continue;
        }
        own_setting(&mut own, &all.report.sections, name, value, origin)?;
    }
    from_files.retain(|section| is_wanted(section, &all.report.sections));
    all.sections = own;
    all.sections.extend(from_files);
    check_wanted(&all)?;
    Ok(all)
}

/// The name of a section for all later jobs.
const GLOBAL: &str = "global";

/// Whether one of `--section` names a job, or none is given.
fn is_wanted(section: &Section, wanted: &[String]) -> bool {
    wanted.is_empty() || section.is_global() || wanted.contains(&section.name)
}

/// # Errors
/// `--section` leaves no job.
fn check_wanted(all: &Arguments) -> Result<(), JobError> {
    let Some(first) = all.report.sections.first() else {
        return Ok(());
    };
    if all.sections.iter().all(Section::is_global) {
        let text = format!("--section={first}");
        let origin = Origin::Argument {
            text: text.as_str().into(),
        };
        return Err(JobError::language(&origin, "there is no job of that name"));
    }
    Ok(())
}

/// Whether an argument behind a switch is its value, as in `--direct 1`, and no job file.
fn is_truth(text: &str) -> bool {
    matches!(text, "true" | "false") || text.parse::<i64>().is_ok()
}

/// The name that begins like this, if there is just one, as for getopt_long(3).
fn whole_name<'a>(name: &'a str, origin: &Origin) -> Result<&'a str, JobError> {
    let docs = OPTIONS.0.iter().map(|entry| &entry.doc);
    let of_jobs = docs.flat_map(|doc| [doc.name].into_iter().chain(doc.aliases.iter().copied()));
    let of_program = PROGRAM.iter().map(|(name, _)| *name);
    let refused = REFUSED.iter().map(|(name, _)| *name);
    let all = of_program
        .chain(refused)
        .chain(of_jobs)
        .chain(refused_names());
    let found: Vec<&str> = all.filter(|known| known.starts_with(name)).collect();
    match found[..] {
        [one] => Ok(one),
        [] => Ok(name),
        _ if found.contains(&name) => Ok(name),
        _ => {
            let message = format!("`{name}` could be {}", found.join(", "));
            Err(JobError::language(origin, message))
        }
    }
}

/// An option without its dashes; `None` for a job file, of which `-` is standard input.
fn option_text(argument: &str) -> Option<&str> {
    let text = argument.strip_prefix('-')?;
    let text = text.strip_prefix('-').unwrap_or(text);
    (!text.is_empty()).then_some(text)
}

/// A setting of the command line. As in fio, `--section` counts for the jobs after it, and what
/// follows a job that is left out is for all later ones.
fn own_setting(
    own: &mut Vec<Section>,
    wanted: &[String],
    name: &str,
    value: Option<String>,
    origin: Origin,
) -> Result<(), JobError> {
    if name == "name" {
        let Some(name) = value.filter(|name| !name.is_empty()) else {
            return Err(JobError::language(&origin, "--name needs a name"));
        };
        let mut section = Section {
            name,
            origin,
            file: 0,
            settings: Vec::new(),
        };
        if !is_wanted(&section, wanted) {
            GLOBAL.clone_into(&mut section.name);
        } else if section.is_global() {
            // fio reports it with the other global options.
            let (name, origin) = (section.name.clone(), section.origin.clone());
            section
                .settings
                .push(Setting::new("name", Some(name), origin));
        }
        own.push(section);
        return Ok(());
    }
    if own.is_empty() {
        own.push(Section {
            name: GLOBAL.to_owned(),
            origin: origin.clone(),
            file: 0,
            settings: Vec::new(),
        });
    }
    if let Some(section) = own.last_mut() {
        section.settings.push(Setting::new(name, value, origin));
    }
    Ok(())
}

impl Report {
    /// True for an option of the program whose value may be the next argument.
    fn needs_value(name: &str) -> bool {
        PROGRAM.contains(&(name, true))
    }

    /// Takes an option of the program; `false` when it is none.
    fn take(&mut self, name: &str, value: Option<&str>, origin: &Origin) -> Result<bool, JobError> {
        let wrong = |message: String| JobError::language(origin, message);
        let needed = || {
            value
                .filter(|value| !value.is_empty())
                .map(ToOwned::to_owned)
                .ok_or_else(|| wrong(format!("--{name} needs a value")))
        };
        if let Some((_, reason)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
            return Err(wrong(format!("--{name} is not supported: {reason}")));
        }
        let takes_one = Self::needs_value(name) || ["cmdhelp", "enghelp"].contains(&name);
        if PROGRAM.contains(&(name, false)) && !takes_one && value.is_some() {
            return Err(wrong(format!("--{name} takes no value")));
        }
        if self.take_more(name, value, origin)? {
            return Ok(true);
        }
        match name {
            "help" => self.help = true,
            "minimal" => self.formats = vec!["terse".to_owned()],
            "readonly" => self.read_only = true,
            "destroy" => self.destroy = true,
            "parse-only" => self.parse_only = true,
            "cmdhelp" => self.describe = Some(value.unwrap_or("all").to_owned()),
            "output" => self.output = Some(needed()?),
            "section" => self.sections.push(needed()?),
            "status-interval" => {
                let ns = value::seconds(&needed()?).map_err(wrong)?;
                if ns < STATUS_NS_MIN {
                    return Err(wrong("the shortest interval is 1ms".to_owned()));
                }
                self.status_interval_ns = Some(ns.max(100_000_000));
            }
            // As by fio, any other value is `auto`.
            "eta" => {
                let value = needed()?;
                let known = ["always", "never"].contains(&value.as_str());
                self.eta = Some(if known { value } else { "auto".to_owned() });
            }
            "output-format" => {
                // As by fio, the last of several counts.
                self.formats.clear();
                for format in needed()?.split(',') {
                    let known = ["normal", "json", "json+", "terse", "minimal", "csv"];
                    let format = match one_of(format, &known, &wrong)?.as_str() {
                        "minimal" | "csv" => "terse".to_owned(),
                        other => other.to_owned(),
                    };
                    self.formats.push(format);
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The less usual ones.
    fn take_more(
        &mut self,
        name: &str,
        value: Option<&str>,
        origin: &Origin,
    ) -> Result<bool, JobError> {
        let wrong = |message: String| JobError::language(origin, message);
        let needed = || {
            let value = value.filter(|value| !value.is_empty());
            value.ok_or_else(|| wrong(format!("--{name} needs a value")))
        };
        match name {
            "version" => self.version = true,
            "enghelp" => self.engines = Some(value.unwrap_or_default().to_owned()),
            "showcmd" => self.show_command = true,
            "inflate-log" => self.inflate = Some(needed()?.to_owned()),
            "append-terse" => self.append_terse = true,
            "aux-path" => self.aux_path = Some(needed()?.to_owned()),
            "bandwidth-log" => self.bandwidth_log = true,
            "warnings-fatal" => self.warnings_fatal = true,
            "trigger" => self.trigger_command = Some(needed()?.to_owned()),
            "trigger-file" => self.trigger_file = Some(needed()?.to_owned()),
            "trigger-timeout" => {
                let ns = value::seconds(needed()?).map_err(wrong)?;
                self.trigger_after_ns = (ns > 0).then_some(ns);
            }
            "idle-prof" => {
                let known = ["system", "percpu"];
                self.idle_of_cores = Some(one_of(needed()?, &known, &wrong)? == "percpu");
            }
            "terse-version" => {
                let version = value::number32(needed()?).map_err(wrong)?;
                if !TERSE_VERSIONS.contains(&version) {
                    let message = format!("there is no terse version {version}: use 2 to 5");
                    return Err(wrong(message));
                }
                self.terse_version = Some(version);
            }
            "eta-newline" => {
                self.eta_newline_ns = Some(value::seconds(needed()?).map_err(wrong)?);
            }
            "eta-interval" => {
                let ns = value::seconds(needed()?).map_err(wrong)?;
                if ns < ETA_NS_MIN {
                    return Err(wrong("the shortest interval is 250ms".to_owned()));
                }
                self.eta_interval_ns = Some(ns);
            }
            // fio ignores it.
            "max-jobs" => drop(needed()?),
            // fio's pool of shared memory: jobs are threads here, which share all of it.
            "alloc-size" => drop(value::number(needed()?).map_err(wrong)?),
            "debug" => {
                for part in needed()?.split(',') {
                    match one_of(part, &DEBUG, &wrong)?.as_str() {
                        "parse" => self.debug_parse = true,
                        "random" => self.debug_random = true,
                        _ => {}
                    }
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Options of the program, and whether they need a value.
const PROGRAM: &[(&str, bool)] = &[
    ("alloc-size", true),
    ("append-terse", false),
    ("aux-path", true),
    ("bandwidth-log", false),
    ("cmdhelp", false),
    ("debug", true),
    ("destroy", false),
    ("enghelp", false),
    ("eta", true),
    ("eta-interval", true),
    ("eta-newline", true),
    ("help", false),
    ("idle-prof", true),
    ("inflate-log", true),
    ("max-jobs", true),
    ("minimal", false),
    ("output", true),
    ("output-format", true),
    ("parse-only", false),
    ("readonly", false),
    ("section", true),
    ("showcmd", false),
    ("status-interval", true),
    ("terse-version", true),
    ("trigger", true),
    ("trigger-file", true),
    ("trigger-timeout", true),
    ("version", false),
    ("warnings-fatal", false),
];

/// Options of fio's program that there are none of here, each with the reason or the way.
const REFUSED: &[(&str, &str)] = &[
    (
        "client",
        "start the jobs on the other machine, as with ssh(1)",
    ),
    (
        "remote-config",
        "start the jobs on the other machine, as with ssh(1)",
    ),
    (
        "server",
        "start the jobs on the other machine, as with ssh(1)",
    ),
    ("daemonize", "use systemd-run(1)"),
    (
        "trigger-remote",
        "use --trigger on the machine that runs the jobs",
    ),
    ("cpuclock-test", "`ugeom lab` measures the clock"),
    ("crctest", "use fio"),
    ("memcpytest", "use fio"),
    ("latency-log", "use write_lat_log"),
    (
        "merge-blktrace-only",
        "merge traces before, as with `sort -m`",
    ),
    ("lookup-json", "use fio"),
    ("profile", "write out the jobs of the profile"),
];

fn one_of(
    value: &str,
    known: &[&str],
    wrong: &impl Fn(String) -> JobError,
) -> Result<String, JobError> {
    if known.contains(&value) {
        return Ok(value.to_owned());
    }
    Err(wrong(format!(
        "`{value}` is not one of {}",
        known.join(", ")
    )))
}
