//! Traces of the kernel: recordings, and pages of tracefs.

use ugeom_trace::event::EventKind;
use ugeom_trace::link::Linker;
use ugeom_trace::link::parts::divide;
use ugeom_trace::record::{Reader, Writer};
use ugeom_trace::source::tracefs::format::Format;
use ugeom_trace::source::tracefs::page::PageForm;

/// A recording: what is read of it is written and read again, linked and divided.
pub fn recording(data: &[u8]) {
    let Ok((mut reader, scope)) = Reader::new(data) else { return };
    let mut linker = Linker::new(scope.topology.clone());
    while let Ok(Some(events)) = reader.events() {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, &scope).expect("memory");
        for event in &events {
            writer.event(event).expect("memory");
            linker.event(event);
        }
        writer.flush().expect("memory");
        let (mut again, _) = Reader::new(bytes.as_slice()).expect("what was written");
        let mut read = Vec::new();
        while let Some(more) = again.events().expect("what was written") {
            read.extend(more);
        }
        assert_eq!(read, events);
        check(linker.take());
    }
    check(linker.finish().0);
}

fn check(trees: Vec<ugeom_trace::link::Tree>) {
    for tree in trees {
        let root = &tree.spans[0];
        let sum: u64 = divide(&tree).iter().map(|part| part.ns).sum();
        assert_eq!(sum, root.end_ns - root.start_ns);
    }
}

/// The text of a `format` file and of `header_page`, then a page, split at zeros.
pub fn trace_page(data: &[u8]) {
    let mut pieces = data.splitn(3, |byte| *byte == 0);
    let mut text = || String::from_utf8_lossy(pieces.next().unwrap_or_default()).into_owned();
    let (format, header) = (text(), text());
    let page = pieces.next().unwrap_or_default();
    let Some(form) = PageForm::parse(&header) else { return };
    for kind in EventKind::ALL {
        let Some(format) = Format::parse(kind, &format) else { continue };
        form.records(page, &mut |time_ns, data| {
            let _ = format.event(time_ns, 0, data);
        });
    }
}
