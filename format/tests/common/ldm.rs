//! A dynamic disk of Windows, made for tests: the database and the MBR in front of it.

/// A partition of a component: number of its disk, first sector counted from the first one for
/// volumes, offset in the volume, length.
pub type Piece = (u64, u64, u64, u64);

/// A volume: name, type, size, one list of partitions for each component with its layout.
pub type NewVolume<'a> = (&'a str, u8, u64, Vec<(u8, Vec<Piece>)>);

/// First sector for volumes on a disk with an MBR.
pub const START: u64 = 63;
const DATABASE_SECTORS: u64 = 2048;
const CONFIG: u64 = 17;
const CONFIG_SECTORS: u64 = 1481;
const LOG_SECTORS: u64 = 224;
const GROUP: &str = "12345678-1111-2222-3333-444455556666";

/// The GUID of disk 1 or 2 of the group.
pub fn guid(disk: u64) -> String {
    format!("aaaaaaaa-0000-0000-0000-{disk:012x}")
}

/// A simple volume, a spanned one, one of two copies of which the other is on disk 2, and `last`.
pub fn volumes(last: NewVolume<'static>) -> Vec<NewVolume<'static>> {
    let spanned = vec![(1, 3000, 300, 200), (1, 2000, 0, 300)];
    let copies = vec![(2, vec![(1, 5000, 0, 100)]), (2, vec![(2, 9, 0, 100)])];
    vec![
        ("Simple", 7, 1000, vec![(2, vec![(1, 0, 0, 1000)])]),
        ("Spanned", 7, 500, vec![(2, spanned)]),
        ("Mirror", 0x83, 100, copies),
        last,
    ]
}

/// The sectors of a disk of so many sectors with these volumes.
pub fn disk(sectors: u64, volumes: &[NewVolume<'_>]) -> Vec<(u64, Vec<u8>)> {
    let database = sectors - DATABASE_SECTORS;
    let mut mbr = vec![0; 512];
    mbr[446 + 4] = 0x42;
    mbr[446 + 8..446 + 12].copy_from_slice(&(START as u32).to_le_bytes());
    mbr[446 + 12..446 + 16].copy_from_slice(&((database - START) as u32).to_le_bytes());
    mbr[510..].copy_from_slice(&[0x55, 0xaa]);
    let header = header(database);
    let mut writes = vec![
        (0, mbr),
        (6, header.clone()),
        (database + 1856, header.clone()),
        (database + 2047, header),
    ];
    let contents = contents();
    writes.push((database + 2, contents.clone()));
    writes.push((database + 2045, contents));
    for (number, sector) in (0..).zip(config(volumes).chunks(512)) {
        writes.push((database + CONFIG + number, sector.to_vec()));
    }
    writes
}

fn put(sector: &mut [u8], at: usize, value: &[u8]) {
    sector[at..at + value.len()].copy_from_slice(value);
}

fn header(database: u64) -> Vec<u8> {
    let mut sector = vec![0; 512];
    put(&mut sector, 0, b"PRIVHEAD");
    put(&mut sector, 12, &0x2_000c_u32.to_be_bytes());
    put(&mut sector, 48, guid(1).as_bytes());
    put(&mut sector, 112, b"1b77da20-c717-11d0-a5be-00a0c91db73c");
    put(&mut sector, 176, GROUP.as_bytes());
    put(&mut sector, 240, b"Group0");
    for (at, value) in [
        (283, START),
        (291, database - START),
        (299, database),
        (307, DATABASE_SECTORS),
        (315, 2),
        (323, 2045),
        (331, 1),
        (339, CONFIG_SECTORS),
        (347, LOG_SECTORS),
    ] {
        put(&mut sector, at, &value.to_be_bytes());
    }
    sector
}

fn contents() -> Vec<u8> {
    let mut sector = vec![0; 512];
    put(&mut sector, 0, b"TOCBLOCK");
    put(&mut sector, 36, b"config");
    put(&mut sector, 46, &CONFIG.to_be_bytes());
    put(&mut sector, 54, &CONFIG_SECTORS.to_be_bytes());
    put(&mut sector, 70, b"log");
    put(&mut sector, 80, &(CONFIG + CONFIG_SECTORS).to_be_bytes());
    put(&mut sector, 88, &LOG_SECTORS.to_be_bytes());
    sector
}

fn config(volumes: &[NewVolume<'_>]) -> Vec<u8> {
    let mut objects = vec![
        object(0x35, 0, 1, "Group0", &[text(GROUP), vec![0; 12]].concat()),
        object(
            0x34,
            0,
            2,
            "Disk1",
            &[text(&guid(1)), text(""), vec![0; 8]].concat(),
        ),
        object(
            0x34,
            0,
            3,
            "Disk2",
            &[text(&guid(2)), text(""), vec![0; 8]].concat(),
        ),
    ];
    let mut next = 10;
    for (order, volume) in (1..).zip(volumes) {
        objects_of(order, volume, &mut next, &mut objects);
    }
    let count = |kind: u8| objects.iter().filter(|body| body[3] == kind).count() as u32;
    let mut config = vec![0; 512];
    put(&mut config, 0, b"VMDB");
    for (at, value) in [
        (4, objects.len() as u32 + 4),
        (8, 128),
        (12, 512),
        (18, 0x4_000a),
        (133, count(0x51)),
        (137, count(0x32)),
        (141, count(0x33)),
        (145, count(0x34)),
    ] {
        put(&mut config, at, &value.to_be_bytes());
    }
    put(&mut config, 16, &1_u16.to_be_bytes());
    put(&mut config, 22, b"Group0");
    put(&mut config, 53, GROUP.as_bytes());
    put(&mut config, 117, &1_u64.to_be_bytes());
    put(&mut config, 125, &1_u64.to_be_bytes());
    for (sequence, body) in (4_u32..).zip(&objects) {
        let mut record = vec![0; 128];
        put(&mut record, 0, b"VBLK");
        put(&mut record, 4, &sequence.to_be_bytes());
        put(&mut record, 8, &sequence.to_be_bytes());
        put(&mut record, 14, &1_u16.to_be_bytes());
        put(&mut record, 16, body);
        config.extend(record);
    }
    config.resize(config.len().next_multiple_of(512), 0);
    config
}

/// A volume, its components, and their partitions.
fn objects_of(order: u8, volume: &NewVolume<'_>, next: &mut u64, objects: &mut Vec<Vec<u8>>) {
    let (name, kind, sectors, components) = volume;
    let mut id = || {
        *next += 1;
        *next
    };
    let volume = id();
    let fields = [
        text("gen"),
        text(""),
        [&b"ACTIVE\0\0\0\0\0\0\0\0"[..], &[3, 0]].concat(),
        vec![order],
        vec![0; 4],
        number(components.len() as u64),
        vec![0; 16],
        number(*sectors),
        vec![0; 4],
        vec![*kind],
        vec![0; 16],
    ];
    objects.push(object(0x51, 0, volume, name, &fields.concat()));
    for (layout, pieces) in components {
        let component = id();
        let fields = [
            text("ACTIVE"),
            vec![*layout],
            vec![0; 4],
            number(pieces.len() as u64),
            vec![0; 16],
            number(volume),
            vec![0],
        ];
        objects.push(object(
            0x32,
            0,
            component,
            &format!("{name}-01"),
            &fields.concat(),
        ));
        for (index, (disk, start, offset, length)) in (0..).zip(pieces) {
            let fields = [
                vec![0; 12],
                start.to_be_bytes().to_vec(),
                offset.to_be_bytes().to_vec(),
                number(*length),
                number(component),
                number(disk + 1),
                vec![1, index],
            ];
            let name = format!("Disk{disk}-{component}");
            objects.push(object(0x33, 8, id(), &name, &fields.concat()));
        }
    }
}

/// The body of a record.
fn object(kind: u8, flags: u8, id: u64, name: &str, fields: &[u8]) -> Vec<u8> {
    let rest = [number(id), text(name), fields.to_vec()].concat();
    let mut body = vec![0, 0, flags, kind];
    body.extend((rest.len() as u32).to_be_bytes());
    body.extend(rest);
    body
}

fn text(text: &str) -> Vec<u8> {
    [&[text.len() as u8], text.as_bytes()].concat()
}

/// A number in as few bytes as it needs.
fn number(value: u64) -> Vec<u8> {
    let digits = value.to_be_bytes();
    let first = digits.iter().position(|digit| *digit != 0).unwrap_or(7);
    [&[8 - first as u8], &digits[first..]].concat()
}
