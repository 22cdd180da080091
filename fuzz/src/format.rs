//! The fuzz targets of on-disk formats, one function for each: decode, use everything that was
//! decoded, encode, and compare.
//!
//! The functions panic when a promise is broken. `format/tests/hostile.rs` calls them with random
//! bytes, so that a machine without cargo-fuzz covers them too.

use ugeom_format::plan::{Backup, Change, Column, Create, Keep, NewPart, Scheme, Table};
use ugeom_format::verify_state::VerifyState;
use ugeom_format::{
    Media, amiga, apm, atari, bsd, bsd64, btf, crash_log, ddrescue, diskstats, dm_table, ebr, eli,
    gpt, ldm, mbr, pc98, raidtest, sgi, trace, vtoc8, wire,
};

/// An MBR decodes and encodes to the same bytes.
pub fn mbr(data: &[u8]) {
    let Ok(record) = mbr::Mbr::decode(data) else { return };
    assert_eq!(record.encode()[..], data[..mbr::SIZE_BYTES]);
    let most = match record.kind() {
        mbr::MbrKind::Partitioned | mbr::MbrKind::Hybrid => mbr::ENTRIES,
        _ => 0,
    };
    assert!(record.slices().count() <= most);
}

/// The map of a disk with faults.
pub fn ddrescue(data: &[u8]) {
    let Ok(map) = ddrescue::Map::parse(&String::from_utf8_lossy(data)) else { return };
    assert_eq!(ddrescue::Map::parse(&map.to_string()), Ok(map));
}

/// A verify state of fio, also with the right checksum, which a fuzzer does not find.
pub fn verify_state(data: &[u8]) {
    let mut file = data.to_vec();
    let length = file.get(8..16).and_then(|bytes| bytes.try_into().ok());
    let length = length.map_or(0, u64::from_le_bytes) as usize;
    if let Some(content) = file.get(24..).and_then(|rest| rest.get(..length)) {
        let sum = u64::from(!crc32c::crc32c(content));
        file[16..24].copy_from_slice(&sum.to_le_bytes());
    }
    let Ok(state) = VerifyState::decode(&file) else { return };
    if let Ok(again) = state.encode() {
        assert_eq!(VerifyState::decode(&again), Ok(state));
    }
}

/// The text of `/proc/diskstats`.
pub fn diskstats(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = diskstats::parse_stat(&text);
    let Ok(devices) = diskstats::parse(&text) else { return };
    let again: String = devices.iter().map(|device| format!("{device}\n")).collect();
    assert_eq!(diskstats::parse(&again).as_ref(), Ok(&devices));
}

/// The table of a mapped device: the number of its targets, then the answer of the ioctl.
pub fn dm_table(data: &[u8]) {
    let Some((count, table)) = data.split_first() else { return };
    if let Ok(targets) = dm_table::parse(table, u32::from(*count)) {
        assert_eq!(targets.len(), usize::from(*count));
    }
}

/// The types of a kernel.
pub fn btf(data: &[u8]) {
    if let Ok(types) = btf::Btf::parse(data) {
        assert!(types.types() <= data.len() / 12);
        let _ = types.member("bio", "bi_iter.bi_sector");
        let _ = types.argument("btf_trace_block_bio_queue", "bio");
    }
}

/// A crash log: its header, its records with their data, until the first that is refused.
pub fn crash_log(data: &[u8]) {
    let Ok(header) = crash_log::Header::decode(data) else { return };
    let mut rest = &data[crash_log::HEADER_BYTES..];
    for number in 0.. {
        let Ok(record) = crash_log::Record::decode(rest, number, &header) else { return };
        assert_eq!(record.encode()[..], rest[..crash_log::RECORD_BYTES]);
        if let Some((offset, length)) = record.range() {
            assert!(offset + length <= header.media_bytes);
        }
        rest = &rest[crash_log::RECORD_BYTES..];
        let Some((stored, after)) = rest.split_at_checked(record.stored_bytes as usize) else {
            return;
        };
        if record.check(stored).is_err() {
            return;
        }
        assert_eq!(crash_log::numbers(stored).count(), stored.len() / 8);
        rest = after;
    }
}

/// A byte for the sector size, then a file of requests.
pub fn raidtest(data: &[u8]) {
    let Some((choice, file)) = data.split_first() else { return };
    let Ok(requests) = raidtest::decode(file) else { return };
    for (request, record) in requests.iter().zip(file.chunks(raidtest::RECORD_BYTES)) {
        // The last three bytes mean nothing and are written as 0.
        assert_eq!(request.encode()[..13], record[..13]);
    }
    let totals = raidtest::Totals::of(&requests);
    assert_eq!(totals.reads + totals.writes, requests.len() as u64);
    let sector_bytes = 1 << (choice % 16);
    let media_bytes = requests
        .iter()
        .map(|request| request.offset_bytes)
        .max()
        .unwrap_or(0);
    if raidtest::check(&requests, media_bytes, sector_bytes).is_ok() {
        for request in &requests {
            let length = u64::from(request.length_bytes);
            assert!(length > 0 && request.offset_bytes + length <= media_bytes);
        }
    }
    let processes = 1 + usize::from(choice / 16);
    let shares = (0..processes).map(|index| raidtest::share(&requests, processes, index).len());
    assert_eq!(shares.sum::<usize>(), requests.len());
}

/// A trace as text.
pub fn trace(data: &[u8]) {
    let Ok(mut reader) = trace::Reader::new(data) else { return };
    while let Ok(Some(record)) = reader.next_record() {
        assert!((record.file as usize) < reader.files().len());
        let length = u64::from(record.length_bytes);
        assert!(record.offset_bytes.checked_add(length).is_some());
    }
}

/// Eight bytes of size, a byte for the sector size, then the metadata sector. libfuzzer does not
/// guess an MD5, so the bytes are used a second time with the right one.
pub fn eli(data: &[u8]) {
    let Some((size, rest)) = data.split_first_chunk::<8>() else { return };
    let Some((choice, sector)) = rest.split_first() else { return };
    let provider_bytes = u64::from_le_bytes(*size);
    let below_bytes = 1 << (choice % 16);
    if let Ok(metadata) = eli::Metadata::decode(sector) {
        use_eli(&metadata, provider_bytes, below_bytes);
    }
    let word = |at: usize| {
        let bytes = sector.get(at..at + 4).and_then(|b| b.try_into().ok());
        bytes.map_or(0, u32::from_le_bytes)
    };
    let mut metadata = eli::Metadata {
        version: word(16) % (eli::VERSION_MAX + 1),
        flags: eli::EliFlags(word(20)),
        cipher_number: word(24) as u16 % 24,
        key_bits: (word(26) as u16) << 6,
        authentication_number: word(28) as u16 % 24,
        provider_bytes,
        sector_bytes: word(38),
        keys: word(42) as u8,
        iterations: word(43).cast_signed(),
        salt: [*choice; eli::SALT_BYTES],
        master_keys: [0; eli::MASTER_KEYS_BYTES],
    };
    if metadata.version == 0 {
        metadata.authentication_number = 0;
    }
    use_eli(&metadata, provider_bytes, below_bytes);
}

fn use_eli(metadata: &eli::Metadata, provider_bytes: u64, below_bytes: u32) {
    let encoded = metadata.encode();
    assert_eq!(eli::Metadata::decode(&encoded).as_ref(), Ok(metadata));
    let Ok(layout) = metadata.layout(provider_bytes, below_bytes) else { return };
    assert!(metadata.cipher().is_ok() && metadata.authentication().is_ok());
    let sector = u64::from(layout.sector_bytes);
    assert!(layout.media_bytes >= sector && layout.media_bytes.is_multiple_of(sector));
    let (start, length) = layout.below(layout.media_bytes - sector, sector);
    assert!(start + length <= provider_bytes);
    if let Some(sub) = layout.sub_sectors {
        let carried: u32 = (0..sub.count).map(|number| sub.carried_bytes(number)).sum();
        assert_eq!(carried, layout.sector_bytes);
        assert!(sub.tag_bytes + sub.data_bytes <= below_bytes);
    }
}

/// Each message of the protocol in turn. A valid message is written again as it was.
pub fn wire_nbd(data: &[u8]) {
    use wire::nbd;
    if let Ok(header) = nbd::OptionHeader::decode(data) {
        assert_eq!(header.encode()[..], *data);
    }
    if let Ok(header) = nbd::OptionReplyHeader::decode(data) {
        assert_eq!(header.encode()[..], *data);
    }
    if let Ok(greeting) = nbd::Greeting::decode(data) {
        assert_eq!(greeting.encode()[..], *data);
    }
    if let Ok(request) = nbd::InfoRequest::decode(data) {
        assert_eq!(request.encode(), data);
    }
    if let Ok(request) = nbd::MetaRequest::decode(data) {
        assert_eq!(request.encode(), data);
    }
    if let Ok(listed) = nbd::Listed::decode(data) {
        assert_eq!(listed.encode(), data);
    }
    if let Ok(context) = nbd::MetaContext::decode(data) {
        assert_eq!(context.encode(), data);
    }
    match nbd::Info::decode(data) {
        Ok(nbd::Info::Other(_)) | Err(_) => {}
        Ok(info) => assert_eq!(info.encode(), data),
    }
    if let Some(Ok(request)) = data.first_chunk().map(nbd::Request::decode) {
        assert_eq!(request.encode(), data[..nbd::REQUEST_BYTES]);
    }
    if let Some(Ok(reply)) = data.first_chunk().map(nbd::SimpleReply::decode) {
        assert_eq!(reply.encode(), data[..nbd::SIMPLE_REPLY_BYTES]);
    }
    if let Some(Ok(header)) = data.first_chunk().map(nbd::ChunkHeader::decode) {
        assert_eq!(header.encode(), data[..nbd::CHUNK_HEADER_BYTES]);
    }
    if let Some(Ok(request)) = data.first_chunk().map(nbd::ExtendedRequest::decode) {
        assert_eq!(request.encode(), data[..nbd::EXTENDED_REQUEST_BYTES]);
    }
    if let Some(Ok(header)) = data.first_chunk().map(nbd::ExtendedChunkHeader::decode) {
        assert_eq!(header.encode(), data[..nbd::EXTENDED_CHUNK_HEADER_BYTES]);
    }
    if let Ok((context, stretches)) = nbd::decode_extended_status(data) {
        assert_eq!(nbd::encode_extended_status(context, &stretches), data);
    }
    if let Ok((context, stretches)) = nbd::decode_block_status(data) {
        assert_eq!(nbd::encode_block_status(context, &stretches), data);
    }
    if let Ok(reply) = nbd::ExportReply::decode(data) {
        assert!(data.starts_with(&reply.encode(true)));
    }
    let _ = nbd::ErrorChunk::decode(data);
    let _ = nbd::export_name(data);
}

/// A message of FUSE, and a request in the two places of a ring. A valid message is written again,
/// and read as the same.
pub fn wire_fuse(data: &[u8]) {
    use wire::fuse;
    let again = |code, request: fuse::Request<'_>| {
        let Some((opcode, argument, rest)) = request.encode() else { return };
        assert_eq!(opcode, code);
        let read = fuse::Request::decode(opcode, &argument, &rest);
        assert_eq!(read, Ok(request));
    };
    if let Ok((header, request)) = fuse::InHeader::message(data) {
        assert_eq!(header.length_bytes as usize, data.len());
        again(header.opcode, request);
    }
    if let Some((place, payload)) = data.split_first_chunk::<{ fuse::ring::PLACE_BYTES }>() {
        let rest = &payload[..payload.len().min(fuse::ring::payload_bytes(place) as usize)];
        if let Ok((header, request)) = fuse::ring::request(place, rest) {
            again(header.opcode, request);
        }
        let mut place = *place;
        let commit = fuse::ring::commit_number(&place);
        fuse::ring::put_reply(&mut place, commit, 0, payload.len() as u32);
        assert_eq!(fuse::ring::commit_number(&place), commit);
    }
    if let Ok(reply) = fuse::InitReply::decode(data) {
        assert_eq!(fuse::InitReply::decode(&reply.encode()), Ok(reply));
    }
    if let Ok(header) = fuse::OutHeader::decode(data) {
        assert_eq!(header.encode(), data[..fuse::OUT_HEADER_BYTES]);
    }
    // A listing never has more bytes than it may.
    let Some((&limit, names)) = data.split_first() else { return };
    let mut listing = fuse::Names::new(limit.into());
    for (at, name) in names.split(|&byte| byte == 0).enumerate() {
        if !listing.push(at as u64, at as u64 + 1, fuse::FileKind::File, name) {
            break;
        }
    }
    assert!(listing.encode().len() <= usize::from(limit));
}

/// Eight bytes of place and length, then the records, used in turn.
pub fn ebr(data: &[u8]) {
    let Some((place, records)) = data.split_first_chunk::<8>() else { return };
    let place = u64::from_le_bytes(*place);
    let (start, sectors) = (place >> 32, place & 0xffff_ffff);
    let records: Vec<&[u8]> = records.chunks(512).collect();
    if records.is_empty() {
        return;
    }
    let mut walk = ebr::EbrWalk::new(start, sectors);
    let mut steps = 0;
    while let Some(lba) = walk.next_lba() {
        let step = walk.feed(records[steps % records.len()]);
        assert!(step.error.is_none() || walk.next_lba().is_none());
        if let Some(logical) = step.logical {
            assert_eq!(logical.ebr_lba, lba);
        }
        steps += 1;
    }
    assert!(steps <= ebr::MAX_LOGICALS);
}

/// A byte for the sector size, then the first two sectors.
pub fn bsd(data: &[u8]) {
    let Some((choice, head)) = data.split_first() else { return };
    let size = if choice & 1 == 0 { 512 } else { 4096 };
    let Ok((location, label)) = bsd::find(head, size) else { return };
    let mut bytes = label.encode().expect("what was decoded fits");
    let offset = location.offset_bytes(size);
    let again = bsd::Label::decode(&bytes, offset, size).expect("what was encoded is right");
    assert_eq!(again.partitions, label.partitions);
    assert_eq!(again.base(), label.base());
    assert_eq!(label.verify(offset).is_ok(), label.wrong_checksum.is_none());
    for slice in label.slices() {
        assert!(slice.size_bytes > 0);
    }
    bytes.resize(size as usize, 0);
    bsd::put(&mut bytes, location, &label).expect("it fits where it was found");
}

/// The label of a Sun disk, as it is and with the right magic and checksum.
pub fn vtoc8(data: &[u8]) {
    sun_label(data);
    let mut data = data.to_vec();
    if data.len() < vtoc8::SIZE_BYTES {
        return;
    }
    data[508..510].copy_from_slice(&0xdabe_u16.to_be_bytes());
    let words = data[..510].chunks_exact(2);
    let sum = words.fold([0; 2], |sum, word| [sum[0] ^ word[0], sum[1] ^ word[1]]);
    data[510..512].copy_from_slice(&sum);
    sun_label(&data);
}

fn sun_label(data: &[u8]) {
    let Ok(label) = vtoc8::Label::decode(data) else { return };
    let again = vtoc8::Label::decode(&label.encode()).expect("what was encoded is right");
    assert_eq!(again.partitions, label.partitions);
    assert!(label.slices().count() <= vtoc8::ENTRIES);
}

/// Sectors 0 and 1 of a PC-98, as they are and with the right signature.
pub fn pc98(data: &[u8]) {
    pc98_table(data);
    let mut data = data.to_vec();
    if data.len() < 2 * pc98::SECTOR_BYTES {
        return;
    }
    data[510..512].copy_from_slice(&[0x55, 0xaa]);
    pc98_table(&data);
}

fn pc98_table(data: &[u8]) {
    let Ok(table) = pc98::Table::decode(data) else { return };
    assert_eq!(table.encode()[..], data[..1024]);
    for slice in table.slices(pc98::Geometry::DEFAULT) {
        assert!(slice.sectors > 0);
    }
}

/// A byte for the sector size, then a disklabel64 whose CRC is put right.
pub fn bsd64(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else { return };
    let size = if choice & 1 == 0 { 512 } else { 4096 };
    let _ = bsd64::Label::decode(data, size);
    let mut data = data.to_vec();
    if data.len() < bsd64::SIZE_BYTES {
        return;
    }
    let count = u32::from(choice >> 1 & 15) + 1;
    data[524..528].copy_from_slice(&count.to_le_bytes());
    data[516..520].fill(0);
    let crc = crc32(&data[512..712 + 64 * count as usize]);
    data[516..520].copy_from_slice(&crc.to_le_bytes());
    if let Ok(label) = bsd64::Label::decode(&data, size) {
        let again = bsd64::Label::decode(&label.encode(), size);
        assert_eq!(
            again.expect("what was encoded is right").partitions,
            label.partitions
        );
    }
}

/// Block 0 of an SGI, whose checksum is put right.
pub fn sgi(data: &[u8]) {
    let _ = sgi::Header::decode(data);
    let mut data = data.to_vec();
    if data.len() < sgi::SIZE_BYTES {
        return;
    }
    data[504..508].fill(0);
    let words = data[..512].chunks_exact(4);
    let words = words.map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
    let sum = words.fold(0, u32::wrapping_add);
    data[504..508].copy_from_slice(&sum.wrapping_neg().to_be_bytes());
    if let Ok(header) = sgi::Header::decode(&data) {
        assert!(header.slices().count() <= sgi::ENTRIES);
    }
}

/// A disk of an Amiga, as it is and with checksums that are right.
pub fn amiga(data: &[u8]) {
    amiga_table(data);
    let mut data = data.to_vec();
    for block in data.as_chunks_mut::<512>().0 {
        if block.starts_with(b"RDSK") || block.starts_with(b"PART") {
            block[4..8].copy_from_slice(&64_u32.to_be_bytes());
            block[8..12].fill(0);
            let words = block[..256].as_chunks::<4>().0.iter();
            let sum = words.fold(0_u32, |sum, word| {
                sum.wrapping_add(u32::from_be_bytes(*word))
            });
            block[8..12].copy_from_slice(&sum.wrapping_neg().to_be_bytes());
        }
    }
    amiga_table(&data);
}

fn amiga_table(data: &[u8]) {
    let media = media_of(data, 512);
    if let Ok(table) = amiga::Table::read(media, &mut |lba, count| sectors(data, media, lba, count))
    {
        assert!(table.partitions.len() <= amiga::MAX_PARTITIONS);
    }
}

/// A disk of an Atari.
pub fn atari(data: &[u8]) {
    let media = media_of(data, 512);
    if let Ok(table) = atari::Table::read(media, &mut |lba, count| sectors(data, media, lba, count))
    {
        assert!(table.partitions.len() <= atari::MAX_PARTITIONS + 12);
    }
}

/// A byte for the place, then the database of the logical disk manager in an otherwise empty disk.
pub fn ldm(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else { return };
    let media = Media::of_512(8192);
    let database = 8192 - ldm::DATABASE_SECTORS;
    let place = match choice & 1 {
        0 => ldm::Place::Mbr,
        _ => ldm::Place::Gpt { database },
    };
    let read = &mut |lba: u64, count: u64| {
        // Sector 6 and the last one are the first two that there are, then those of the database.
        let at = |sector: u64| match sector {
            ldm::HEADER_SECTOR => 0,
            8191 => 1,
            _ => sector.saturating_sub(database) + 2,
        };
        let mut bytes = Vec::new();
        for sector in lba..lba + count {
            let end = bytes.len() + 512;
            let there = data.chunks(512).nth(at(sector) as usize);
            bytes.extend_from_slice(there.unwrap_or_default());
            bytes.resize(end, 0);
        }
        Ok(bytes)
    };
    if let Ok(found) = ldm::Database::read(media, place, read) {
        for extent in found
            .volumes
            .iter()
            .flat_map(|v| &v.components)
            .flat_map(|c| &c.extents)
        {
            assert!(extent.start.checked_add(extent.sectors).is_some());
        }
    }
}

/// The disk with the sector size, and with the CRCs put right, that the byte of choices asks for.
fn chosen(choice: u8, disk: &[u8]) -> (Vec<u8>, Media) {
    let size = if choice & 1 == 0 { 512 } else { 4096 };
    let mut disk = disk.to_vec();
    if choice & 2 != 0 {
        put_crcs_right(&mut disk, size);
    }
    let media = media_of(&disk, size);
    (disk, media)
}

/// A byte of choices, then a disk. libfuzzer does not guess a CRC, so half of
/// the inputs have theirs put right.
pub fn gpt(data: &[u8]) {
    let Some((choice, disk)) = data.split_first() else { return };
    let (disk, media) = chosen(*choice, disk);
    let mut sectors_read = 0;
    let found = gpt::Gpt::read(media, &mut |lba, count| {
        sectors_read += count;
        sectors(&disk, media, lba, count)
    });
    let bound = 3 + 2 * gpt::MAX_TABLE_SIZE_BYTES / u64::from(media.sector_size_bytes);
    assert!(sectors_read <= bound);
    let _ = found.findings();
    let _ = gpt::other_sector_size(media, &mut |lba, count| sectors(&disk, media, lba, count));
    if found.is_doubtful() {
        let (_, table) = found.listed().expect("a table in doubt is listed");
        assert!(table.entries.kept().count() <= gpt::MAX_KEPT_ENTRIES);
    }
    let Some((side, table)) = found.best() else { return };
    for (number, entry) in table.partitions() {
        assert!(number <= table.header.entry_count as usize);
        let _ = (entry.label(), entry.sectors(), gpt::types::name(entry.kind));
    }
    let mut again = table.clone();
    let bytes = again.encode_entries(media.sector_size_bytes);
    assert_eq!(again.header.table_crc, table.header.table_crc, "{side}");
    let header = again.header.encode(media.sector_size_bytes);
    let header = gpt::Header::decode(&header, table.header.my_lba).expect("a good header");
    let copy = gpt::Table::decode(header, &bytes).expect("a good table");
    assert_eq!(copy, *table);
}

fn put_crcs_right(disk: &mut [u8], size: usize) {
    let word = |disk: &[u8], at: usize| {
        let bytes = disk.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_le_bytes)
    };
    let Some(header) = disk.get(size..2 * size) else { return };
    let entries = word(header, 80) as usize * word(header, 84) as usize;
    let table = word(header, 72) as usize * size;
    let crc = disk.get(table..table.saturating_add(entries)).map(crc32);
    if let Some(crc) = crc {
        disk[size + 88..size + 92].copy_from_slice(&crc.to_le_bytes());
    }
    disk[size..size + 8].copy_from_slice(b"EFI PART");
    disk[size + 16..size + 20].fill(0);
    let length = (word(disk, size + 12) as usize).clamp(92, size);
    let crc = crc32(&disk[size..size + length]);
    disk[size + 16..size + 20].copy_from_slice(&crc.to_le_bytes());
}

/// CRC-32 as in UEFI 2.10, bit by bit: independent of the decoder's.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 * (crc & 1))
        })
    };
    !bytes.iter().fold(u32::MAX, step)
}

/// A byte for the sector size, then a disk.
pub fn apm(data: &[u8]) {
    let Some((choice, disk)) = data.split_first() else { return };
    let media = media_of(disk, if choice & 1 == 0 { 512 } else { 2048 });
    let read = &mut |lba, count| sectors(disk, media, lba, count);
    let Ok(map) = apm::Map::read(media, read) else { return };
    assert!(map.entries.len() <= apm::MAX_ENTRIES as usize);
    for (number, entry) in map.slices() {
        let _ = (entry.label(), entry.kind_name(), entry.alias());
        let again = apm::Entry::decode(&entry.encode(), u64::from(number));
        assert_eq!(again.as_ref(), Ok(entry));
    }
}

/// A byte of choices, four bytes for requests, then a disk with any table:
/// what is added and deleted never overlaps and survives writing.
pub fn plan(data: &[u8]) {
    let Some(([choice, requests @ ..], disk)) = data.split_first_chunk::<5>() else { return };
    let (disk, media) = chosen(*choice, disk);
    for scheme in Scheme::ALL {
        let read = &mut |lba, count| sectors(&disk, media, lba, count);
        if let Ok(table) = Table::load(scheme, media, read) {
            edit(table, requests);
        }
        if let Ok(table) = Table::create(scheme, media, &Create::default()) {
            edit(table, requests);
        }
    }
}

fn edit(mut table: Table, requests: &[u8; 4]) {
    let _ = table.recover();
    let slices = matches!(table.scheme(), Scheme::Mbr | Scheme::Ebr | Scheme::Pc98);
    let kind = if slices { "freebsd" } else { "freebsd-ufs" };
    let _ = Backup::parse(&table.backup());
    for &request in requests {
        let new = NewPart {
            start: (request & 1 != 0).then_some(u64::from(request)),
            sectors: (request & 2 != 0).then_some(u64::from(request)),
            align_sectors: (request & 4 != 0).then_some(u64::from(request >> 4)),
            kind: kind.to_owned(),
            ..Default::default()
        };
        let before = table.parts();
        match table.add(&new) {
            Ok(index) => {
                let added = table.parts().into_iter().find(|part| part.index == index);
                let added = added.expect("what was added is there");
                let end = added.start + added.sectors;
                let apart = |part: &ugeom_format::plan::Part| {
                    part.start.saturating_add(part.sectors) <= added.start || part.start >= end
                };
                assert!(before.iter().filter(|part| part.sectors > 0).all(apart));
            }
            Err(_) => assert_eq!(table.parts(), before),
        }
        change(&mut table, request);
        let _ = table.delete(u32::from(request >> 5));
    }
    for column in [
        Column::Type,
        Column::Label,
        Column::RawType,
        Column::Provider,
    ] {
        let _ = table.show("md0", column);
    }
    for write in table.encode().into_iter().chain(table.destroy()) {
        assert!(!write.data.is_empty());
    }
}

/// Everything that a text has.
const KEEP: Keep = Keep {
    labels: true,
    ids: true,
};

/// The text of `gpart backup`: what it describes fits on a disk or is refused.
pub fn part_backup(data: &[u8]) {
    let Ok(backup) = Backup::parse(&String::from_utf8_lossy(data)) else { return };
    let media = Media::of_512(20_480);
    let Ok(table) = backup.table(media, &Create::default(), KEEP, &mut || [1; 16]) else {
        return;
    };
    assert_eq!(table.parts().len(), backup.parts.len());
    let again = Backup::parse(&table.backup()).expect("its own text");
    let again = again.table(media, &Create::default(), KEEP, &mut || [1; 16]);
    let again = again.expect("its own table");
    assert_eq!(again.parts(), table.parts());
    assert_eq!(again.ids(), table.ids());
}

/// A length and an attribute: starts stay, and a refusal changes nothing.
fn change(table: &mut Table, request: u8) {
    let (index, on) = (u32::from(request >> 5), request & 1 != 0);
    let starts =
        |table: &Table| -> Vec<u64> { table.parts().iter().map(|part| part.start).collect() };
    let (before, starts_before) = (table.parts(), starts(table));
    let sectors = on.then_some(u64::from(request));
    match table.resize(index, sectors, (request & 2 != 0).then_some(8)) {
        Ok(_) => assert_eq!(starts(table), starts_before),
        Err(_) => assert_eq!(table.parts(), before),
    }
    for name in table.attributes() {
        let name = (*name).to_owned();
        let _ = table.set_on_table(&name, on);
        let _ = table.change(index, &Change::Attribute { name, on });
    }
}

fn media_of(disk: &[u8], sector_size_bytes: usize) -> Media {
    let sector_size_bytes = sector_size_bytes as u32;
    Media::new(disk.len() as u64, sector_size_bytes).expect("512, 2048 or 4096")
}

fn sectors(disk: &[u8], media: Media, lba: u64, count: u64) -> Result<Vec<u8>, String> {
    let size = media.sector_size_bytes as usize;
    let (from, length) = (lba as usize * size, count as usize * size);
    let bytes = disk.get(from..from + length);
    bytes
        .map(<[u8]>::to_vec)
        .ok_or_else(|| "read past the end".to_owned())
}
