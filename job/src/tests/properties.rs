//! Any text gives jobs or an error with a place, soon.

use proptest::prelude::*;

use super::of_file;
use crate::options::OPTIONS;

/// Lines that are nearly right: known names with values of any kind.
fn line() -> impl Strategy<Value = String> {
    let names: Vec<&'static str> = OPTIONS.names();
    let name = proptest::sample::select(names);
    let value = prop_oneof![
        "[0-9]{1,6}[kmgtp]?i?b?",
        "[0-9]{1,3}%?",
        "[0-9,:/.-]{0,12}",
        "(rand)?(read|write|rw|trim)(:[0-9]{1,4}k?)?",
        "(zipf|pareto|normal|zoned|iops|bw_slope):[0-9./:%]{0,12}",
        "(0x[0-9a-f]{1,9}|%o|\"[a-z]{0,4}\"|-?[0-9]{1,12}){0,3}",
        "\\PC{0,20}",
    ];
    prop_oneof![
        8 => (name.clone(), value).prop_map(|(name, value)| format!("{name}={value}")),
        2 => name.prop_map(ToOwned::to_owned),
        1 => "\\PC{0,30}",
        1 => "\\[[a-z]{0,6}\\]?",
        1 => "include jobs.fio",
    ]
}

proptest! {
    #[test]
    fn any_text_is_jobs_or_an_error_with_a_line(lines in prop::collection::vec(line(), 0..20)) {
        let text = format!("[job]\n{}", lines.join("\n"));
        match of_file(&text) {
            Ok(understood) => {
                for job in &understood.jobs {
                    prop_assert!(job.smallest_bytes() <= job.largest_bytes().max(512));
                    prop_assert!(job.iodepth >= 1 && job.numjobs >= 1);
                }
            }
            Err(error) => {
                let error = error.to_string();
                prop_assert!(error.starts_with("jobs.fio:"), "{}", error);
            }
        }
    }

    #[test]
    fn one_setting_is_read_the_same_from_a_file_and_from_an_argument(line in line()) {
        // Options of the command line itself, and words that do not begin a setting, are no
        // settings.
        prop_assume!(!line.starts_with(['[', ';', '#']) && !line.starts_with("include"));
        prop_assume!(!line.starts_with("name") && !line.contains(['$', '\n', '\r']));
        let line = line.trim();
        // In a file a comment may follow.
        prop_assume!(!line.contains([';', '#']));
        prop_assume!(line.contains('=') && !line.starts_with('='));
        let from_file = of_file(&format!("[a]\n{line}\n"));
        let argument = format!("--{line}");
        let read = super::arguments(&["--name=a", &argument], &[]);
        let from_line = read.and_then(|read| crate::understand(&read.sections));
        prop_assert_eq!(from_file.is_ok(), from_line.is_ok(), "{}", line);
        if let (Ok(file), Ok(line)) = (from_file, from_line) {
            prop_assert_eq!(&file.jobs[0].sizes, &line.jobs[0].sizes);
            prop_assert_eq!(file.jobs[0].rw, line.jobs[0].rw);
        }
    }
}
