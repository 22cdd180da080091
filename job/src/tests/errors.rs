//! An error names its place, the reason, and the correct text.

use super::{arguments, of_file};
use crate::understand;
use ugeom_testkit::begins;

fn error_of(text: &str) -> String {
    let error = of_file(text).expect_err(text);
    assert!(error.is_usage());
    error.to_string()
}

#[test]
fn each_error_names_file_line_and_reason() {
    for (text, line, reason) in [
        ("[a]\niodpeth=3\n", 2, "did you mean `iodepth`?"),
        ("[a]\nbs=\n", 2, "bs needs a value: bs=SIZE"),
        ("[a]\n\nsize\n", 3, "size needs a value"),
        ("[a]\nbs=4q\n", 2, "bs=4q: this is not a size"),
        (
            "[a]\nfilesize=50%\n",
            2,
            "the only share is 100% (all of a device)",
        ),
        ("[a]\nrw=reed\n", 2, "`reed` is not one of read, write"),
        ("[a\n", 1, "has no ]"),
        ("[]\n", 1, "needs a name"),
        ("bs=4k\n", 1, "before the first [section]"),
        ("[a]\n=4k\n", 2, "needs a name"),
        ("[a]\nfilename=${NOPE}\n", 2, "variable `NOPE` is not set"),
        ("[a]\nbs=4q${NOPE}\n", 2, "variable `NOPE` is not set"),
        ("[a]\nfilename=${NOPE\n", 2, "not closed"),
        ("[a]\ninclude\n", 2, "needs the name of a file"),
        ("[a]\ninclude gone.fio\n", 2, "gone.fio: entity not found"),
        (
            "[a]\nbssplit=4k/50:8k/60:16k:32k\n",
            2,
            "add up to 110 percent",
        ),
        (
            "[a]\nverify=pattern\nrw=write\n",
            2,
            "needs a verify_pattern",
        ),
        ("[a]\nverify=crc32c\nbs=16\n", 2, "a header of 44 bytes"),
        ("[a]\niodepth=0\n", 2, "within 1 to 1048576"),
        ("[a]\nnumjobs=4097\n", 2, "at most 4096 jobs"),
        ("[a]\nnumjobs=4096\n[b]\n", 3, "at most 4096 jobs"),
        ("[a]\nfadvise_hint=2\n", 2, "expected one of 0, 1"),
        ("[a]\nioengine=naio\n", 2, "expected one of sync, psync"),
        ("[a]\nmem=bogus\n", 2, "expected one of malloc, mmap"),
        ("[a]\nnowait=maybe\n", 2, "nowait=maybe"),
        ("[a]\nforce_async=x\n", 2, "force_async=x"),
        ("[a]\nguasi_workers=9..8\n", 2, "`9..8` is not"),
        ("[a]\nguasi_backend=x\n", 2, "`x` is not one of"),
        ("[global]\nbs=4k\n", 1, "there is no job"),
        ("[a]\nzonemode=strided\n", 2, "needs the size of a zone"),
        ("[a]\nsteadystate=iops\n", 2, "CRITERION:LIMIT"),
        ("[a]\nrandom_distribution=zipf:1\n", 2, "theta"),
        ("[a]\nverify_pattern=%x\n", 2, "is no pattern"),
    ] {
        let (error, place) = (error_of(text), format!("jobs.fio:{line}: "));
        assert!(error.starts_with(&place), "{text:?}: {error}");
        assert!(error.contains(reason), "{text:?}: {error}");
    }
}

#[test]
fn values_that_depend_on_others_are_refused_with_the_way_out() {
    for (text, place, reason) in [
        (
            "[a]\nrandom_distribution=zipf:1.2:2\n",
            "jobs.fio:2: ",
            "the centre 2 is not from 0 to 1",
        ),
        ("[a]\nsize=4q:1\n", "jobs.fio:2: ", "this is not a size"),
    ] {
        let error = error_of(text);
        assert!(error.starts_with(place), "{text:?}: {error}");
        assert!(error.contains(reason), "{text:?}: {error}");
    }
}

#[test]
fn a_circle_of_includes_is_shown_whole() {
    let files = [
        ("a.fio", "[a]\ninclude b.fio\n"),
        ("b.fio", "bs=4k\ninclude a.fio\n"),
    ];
    let error = arguments(&["a.fio"], &files).unwrap_err().to_string();
    assert_eq!(
        error,
        "b.fio:2: includes form a loop: a.fio -> b.fio -> a.fio"
    );
}

#[test]
fn includes_that_multiply_are_stopped() {
    let files: Vec<(String, String)> = (0..15)
        .map(|n| {
            let line = format!("include f{}\n", n + 1);
            (format!("f{n}"), format!("[s]\n{}", line.repeat(4)))
        })
        .chain([("f15".to_owned(), "[z]\n".to_owned())])
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let error = arguments(&["f0"], &files).unwrap_err().to_string();
    assert!(error.contains("256 in all"), "{error}");
}

#[test]
fn an_argument_is_named_where_a_line_cannot_be() {
    let error = |line: &[&str]| {
        let read = arguments(line, &[]).and_then(|read| understand(&read.sections).map(drop));
        read.unwrap_err().to_string()
    };
    assert!(error(&["--name=a", "--blocksise=4k"]).contains("did you mean `blocksize`?"));
    assert!(error(&["--name=a", "--bs"]).starts_with("--bs: bs needs a value"));
    assert!(error(&["--name="]).contains("--name needs a name"));
    assert!(error(&["--output-format=yaml"]).contains("one of normal, json"));
    assert!(error(&["--name=a", "-iodpeth=3"]).contains("did you mean `iodepth`?"));
    assert!(error(&["--name=a", "--bs", "-rw=read"]).starts_with("--bs: bs needs a value"));
    assert!(error(&["missing.fio"]).starts_with("missing.fio: "));
    // As by fio; a switch takes no value, and `--section` holds for jobs of the command line.
    for (line, reason) in [
        ("--readonly=0 --name=a", "--readonly takes no value"),
        ("--bandwidth-log=x --name=a", "takes no value"),
        (
            "--status-interval=0 --name=a",
            "the shortest interval is 1ms",
        ),
        ("--eta-interval=100ms --name=a", "is 250ms"),
        ("--section=b --name=a", "--section=b: there is no job"),
        ("-D pid --name=a", "--daemonize is not supported"),
    ] {
        let message = error(&line.split(' ').collect::<Vec<_>>());
        assert!(message.contains(reason), "{line}: {message}");
    }
    for wrong in ["--bs=4q", "-bs=4q", "--bs=-4k"] {
        let message = error(&["--name=a", wrong]);
        begins(&message, &format!("{wrong}: this is not a size"));
    }
    let message = error(&["--name=a", "--iodepth=-1"]);
    assert!(message.contains("`-1` is not a whole number"), "{message}");
}
