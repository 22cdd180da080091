//! `ugeom stat --openmetrics` beside the parser of Prometheus.

use crate::disks;
use crate::run::{UGEOM, command, run};
use crate::serve::noise;
use ugeom_testkit::{program, skip};

/// Reads a page with the parser of Prometheus and prints what the test compares.
const PARSE: &str = "\
import sys
try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
except ImportError:
    sys.exit(77)
found = {family.name: family for family in parse(sys.stdin.read())}
def value(family, name, **wanted):
    return sum(s.value for s in found[family].samples
        if s.name == name and all(s.labels[k] == v for k, v in wanted.items()))
moved = value('ugeom_moved_bytes', 'ugeom_moved_bytes_total', provider='disk.img', command='read')
flight = value('ugeom_in_flight', 'ugeom_in_flight')
errors = value('ugeom_errors', 'ugeom_errors_total')
print(int(moved))
print(int(flight), int(errors))
print(found['ugeom_server'].samples[0].labels['target'])
for name in ('ugeom_requests', 'ugeom_latency_seconds', 'ugeom_exclusive_seconds',
        'ugeom_handle_moved_bytes', 'ugeom_media_bytes'):
    print(found[name].type)
";

#[test]
fn the_parser_of_prometheus_reads_what_was_moved() {
    let test = "the_parser_of_prometheus";
    let (Some(copy), Some(python)) = (program(test, "nbdcopy"), program(test, "python3")) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("disk.img");
    std::fs::write(&image, noise(1, 5 << 20)).expect("an image");
    let control = disks::text(&folder.path().join("control"));
    let script = format!(
        "{} \"$uri\" null: && {UGEOM} stat --openmetrics -I 50ms --socket {control}",
        disks::text(&copy)
    );
    let target = disks::text(&image);
    let all = [
        "serve",
        &target,
        "--no-taste",
        "--control",
        &control,
        "--run",
        &script,
    ];
    let page = run(command(UGEOM, &all), b"");
    assert_eq!(page.code, 0, "{}", page.stderr);
    assert!(page.text().ends_with("# EOF\n"));
    let mut parse = command(python, &["-c", PARSE]);
    parse.env("PATH", "/usr/bin:/bin");
    let parsed = run(parse, &page.stdout);
    if parsed.code == 77 {
        return skip(test, "python3-prometheus-client is not installed");
    }
    assert_eq!(parsed.code, 0, "{}", parsed.stderr);
    let expected = format!(
        "{}\n0 0\n{target}\ncounter\nhistogram\ncounter\ncounter\ngauge\n",
        5 << 20
    );
    assert_eq!(parsed.text(), expected);
}
