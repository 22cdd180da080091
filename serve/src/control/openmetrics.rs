//! Figures as OpenMetrics text, which Prometheus and its relatives read, and in the format that was
//! before it, which all of them read.
//!
//! Sources: OpenMetrics 1.0 (<https://prometheus.io/docs/specs/om/open_metrics_spec/>); the text
//! format 0.0.4 (<https://prometheus.io/docs/instrumenting/exposition_formats/>).

use super::message::{Figures, Layer, OperationTotals, ServerFacts, Spread};
use std::collections::HashSet;
use std::fmt::{Display, Write};

/// Upper bounds of the buckets of latencies, ns: 250 ns to 16 s in steps of a factor of 4 and less.
const BOUNDS_NS: [u64; 16] = [
    250,
    1_000,
    4_000,
    16_000,
    32_000,
    64_000,
    128_000,
    256_000,
    1_000_000,
    4_000_000,
    16_000_000,
    64_000_000,
    256_000_000,
    1_000_000_000,
    4_000_000_000,
    16_000_000_000,
];

/// How figures are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' text format 0.0.4.
    Text,
}

/// All figures of a moment. Counters run from the start of the server; latencies are those of the
/// requests that were timed.
pub fn text(server: &ServerFacts, figures: &Figures, exposition: Exposition) -> String {
    let mut page = Page(String::new(), exposition);
    page.family("ugeom_server", "info", "", "The server.");
    let labels = [
        ("version", server.version.as_str()),
        ("target", &server.target),
    ];
    page.sample("ugeom_server_info", &labels, 1);
    // One that is gone may have a successor of the same name.
    let mut names = HashSet::new();
    let layers: Vec<&Layer> = figures
        .providers
        .iter()
        .filter(|layer| layer.error.is_none() && names.insert(layer.name.as_str()))
        .collect();
    page.exports(&layers);
    page.counts(&layers);
    page.times(&layers);
    page.connections(figures);
    if exposition == Exposition::OpenMetrics {
        page.0.push_str("# EOF\n");
    }
    page.0
}

struct Page(String, Exposition);

impl Page {
    fn family(&mut self, name: &str, kind: &str, unit: &str, help: &str) {
        // In the text format a family has the name of its samples, and there are fewer kinds.
        let (suffix, kind) = match (self.1, kind) {
            (Exposition::Text, "counter") => ("_total", kind),
            (Exposition::Text, "info") => ("_info", "gauge"),
            _ => ("", kind),
        };
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(self.0, "# TYPE {name}{suffix} {kind}");
        if !unit.is_empty() && self.1 == Exposition::OpenMetrics {
            let _ = writeln!(self.0, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.0, "# HELP {name}{suffix} {help}");
    }

    /// The names that targets were given.
    fn exports(&mut self, layers: &[&Layer]) {
        let named = |layer: &&Layer| layer.export.is_some();
        if !layers.iter().any(named) {
            return;
        }
        let help = "Exports with another name than their provider.";
        self.family("ugeom_export", "info", "", help);
        for layer in layers {
            if let Some(export) = &layer.export {
                let labels = [("export", export.as_str()), ("provider", &layer.name)];
                self.sample("ugeom_export_info", &labels, 1);
            }
        }
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        let mut between = '{';
        for (label, text) in labels {
            let _ = write!(self.0, "{between}{label}=\"{}\"", escaped(text));
            between = ',';
        }
        let _ = writeln!(self.0, "}} {value}");
    }

    fn counts(&mut self, layers: &[&Layer]) {
        let help = "Requests that have ended, by command.";
        self.family("ugeom_requests", "counter", "", help);
        self.of_kinds("ugeom_requests_total", layers, |kind| kind.operations);
        let help = "Bytes that requests moved, by command.";
        self.family("ugeom_moved_bytes", "counter", "bytes", help);
        self.of_kinds("ugeom_moved_bytes_total", layers, |kind| kind.bytes);
        self.family("ugeom_errors", "counter", "", "Requests that failed.");
        for layer in layers {
            let errors = layer.counted.errors;
            self.sample("ugeom_errors_total", &labels(layer), errors);
        }
        let help = "Requests that entered and have not ended.";
        self.family("ugeom_in_flight", "gauge", "", help);
        for layer in layers {
            self.sample("ugeom_in_flight", &labels(layer), layer.counted.in_flight);
        }
        self.family("ugeom_media_bytes", "gauge", "bytes", "Size of the media.");
        for layer in layers {
            self.sample("ugeom_media_bytes", &labels(layer), layer.media_bytes);
        }
    }

    fn of_kinds(&mut self, name: &str, layers: &[&Layer], value: impl Fn(OperationTotals) -> u64) {
        for layer in layers {
            let counted = &layer.counted;
            for (command, kind) in [
                ("read", counted.read),
                ("write", counted.write),
                ("delete", counted.delete),
                ("zero", counted.zero),
                ("flush", counted.flush),
                ("other", counted.other),
            ] {
                let [provider, class] = labels(layer);
                self.sample(name, &[provider, class, ("command", command)], value(kind));
            }
        }
    }

    fn times(&mut self, layers: &[&Layer]) {
        let help = "Time in this layer and not below it, of the requests that were timed.";
        self.family("ugeom_exclusive_seconds", "counter", "seconds", help);
        for layer in layers {
            let own = seconds(layer.times.exclusive_ns);
            self.sample("ugeom_exclusive_seconds_total", &labels(layer), own);
        }
        let help = "Time from entering to leaving the provider, of the requests that were timed.";
        self.family("ugeom_latency_seconds", "histogram", "seconds", help);
        for layer in layers {
            let times = &layer.times;
            for (command, spread) in [
                ("read", &times.read),
                ("write", &times.write),
                ("delete", &times.delete),
                ("other", &times.other),
            ] {
                self.histogram(layer, command, spread);
            }
        }
    }

    fn histogram(&mut self, layer: &Layer, command: &str, spread: &Spread) {
        let [provider, class] = labels(layer);
        let command = ("command", command);
        let name = "ugeom_latency_seconds";
        for bound in BOUNDS_NS {
            let below = spread.buckets.iter().filter(|(low, _)| *low < bound);
            let count: u64 = below.map(|(_, count)| count).sum();
            let le = seconds(bound);
            let labels = [provider, class, command, ("le", le.as_str())];
            self.sample(&format!("{name}_bucket"), &labels, count);
        }
        // The counts and their sum are read one after the other while requests go on.
        let all: u64 = spread.buckets.iter().map(|(_, count)| count).sum();
        let labels = [provider, class, command, ("le", "+Inf")];
        self.sample(&format!("{name}_bucket"), &labels, all);
        let labels = [provider, class, command];
        self.sample(&format!("{name}_count"), &labels, all);
        self.sample(&format!("{name}_sum"), &labels, seconds(spread.sum_ns));
    }

    fn connections(&mut self, figures: &Figures) {
        let help = "Bytes that an opened handle moved: a client's connection, or an open file.";
        self.family("ugeom_handle_moved_bytes", "counter", "bytes", help);
        for consumer in figures.consumers.iter().filter(|it| it.class == "DEV") {
            let id = consumer.id.to_string();
            let moved = &consumer.counted;
            for (command, kind) in [("read", moved.read), ("write", moved.write)] {
                let labels = [
                    ("handle", id.as_str()),
                    ("provider", &consumer.geom),
                    ("command", command),
                ];
                self.sample("ugeom_handle_moved_bytes_total", &labels, kind.bytes);
            }
        }
    }
}

fn labels(layer: &Layer) -> [(&'static str, &str); 2] {
    [("provider", &layer.name), ("class", &layer.class)]
}

/// Nanoseconds as seconds, exactly.
fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// The text of a label, with its end mark escaped.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_count_up_and_labels_cannot_end_early() {
        let layer = Layer {
            name: "a\"b\\c\nd".to_owned(),
            export: Some("root".to_owned()),
            class: "MD".to_owned(),
            times: super::super::message::Times {
                read: Spread {
                    samples: 6,
                    sum_ns: 1_500_000_010,
                    buckets: vec![(200, 1), (250, 2), (999_999, 3)],
                },
                ..Default::default()
            },
            ..Layer::default()
        };
        let gone = Layer {
            error: Some("ENXIO".to_owned()),
            ..layer.clone()
        };
        let figures = Figures {
            providers: vec![gone, layer.clone(), layer],
            ..Figures::default()
        };
        let server = ServerFacts {
            protocol: 1,
            version: "1".to_owned(),
            pid: 1,
            target: "md:1m".to_owned(),
            connection: None,
        };
        let classic = text(&server, &figures, Exposition::Text);
        let text = text(&server, &figures, Exposition::OpenMetrics);
        let at = |le: &str| {
            let start = format!(
                "ugeom_latency_seconds_bucket{{provider=\"a\\\"b\\\\c\\nd\",class=\"MD\",\
                 command=\"read\",le=\"{le}\"}} "
            );
            let mut lines = text.lines().filter_map(|line| line.strip_prefix(&start));
            let value = lines.next().expect(le).to_owned();
            assert_eq!(lines.next(), None, "one series for one name");
            value
        };
        let found = ["0.000000250", "0.000001000", "0.001000000", "+Inf"].map(at);
        assert_eq!(found, ["1", "3", "6", "6"]);
        assert!(text.contains("command=\"read\"} 1.500000010\n"), "{text}");
        assert!(text.ends_with("# EOF\n"));
        let samples = |text: &str| {
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(samples(&classic), samples(&text));
        assert!(text.contains("# TYPE ugeom_errors counter\n"), "{text}");
        let info = "# TYPE ugeom_server_info gauge\n";
        for line in [info, "# TYPE ugeom_errors_total counter\n"] {
            assert!(classic.contains(line), "{classic}");
        }
        let info = "ugeom_export_info{export=\"root\",provider=\"a\\\"b\\\\c\\nd\"} 1\n";
        assert!(text.contains(info), "{text}");
    }
}
