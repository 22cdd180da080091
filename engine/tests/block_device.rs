//! The engines on a block device: a loop device over a file, which needs root and losetup(8).

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use ugeom_engine::{Choice, Engine, Errno, FileId, Op, OpKind, open_engine};
use ugeom_machine::buffer::Buffer;
use ugeom_testkit::LoopDevice;

const LEN: u64 = 1 << 20;
const WRITE: OpKind = OpKind::Write { durable: false };

/// An engine, the device known to it, and the way through one operation.
struct Rig {
    engine: Box<dyn Engine<Buffer>>,
    file: FileId,
}

impl Rig {
    fn run(&mut self, kind: OpKind, offset: u64, data: Buffer) -> (Result<u64, Errno>, Buffer) {
        let length = data.len() as u64;
        self.run_length(kind, (offset, length), data)
    }

    fn run_length(
        &mut self,
        kind: OpKind,
        (offset, length): (u64, u64),
        data: Buffer,
    ) -> (Result<u64, Errno>, Buffer) {
        self.engine.submit(
            Op {
                kind,
                file: self.file,
                offset,
                length,
            },
            data,
        );
        let mut end = None;
        while self.engine.in_flight() > 0 {
            self.engine.wait(None).unwrap();
            self.engine
                .reap(&mut |completion| end = Some((completion.result, completion.memory)));
        }
        end.unwrap()
    }

    fn range(&mut self, kind: OpKind, offset: u64, length: u64) -> Result<u64, Errno> {
        self.run_length(kind, (offset, length), Buffer::new(0)).0
    }

    fn assert_bytes(&mut self, offset: u64, length: usize, byte: u8) {
        let (result, bytes) = self.run(
            OpKind::Read,
            offset,
            Buffer::from_slice(&vec![0xEE; length]),
        );
        assert_eq!(result, Ok(length as u64));
        let wrong = bytes.iter().position(|&other| other != byte);
        assert_eq!(wrong, None, "in {length} bytes at {offset}");
    }
}

fn check(rig: &mut Rig) {
    let all = Buffer::from_slice(&vec![7; LEN as usize]);
    assert_eq!(rig.run(WRITE, 0, all).0, Ok(LEN));
    assert_eq!(rig.range(OpKind::Flush, 0, 0), Ok(0));
    rig.assert_bytes(0, LEN as usize, 7);

    let durable = OpKind::Write { durable: true };
    assert_eq!(
        rig.run(durable, 4096, Buffer::from_slice(&[9; 4096])).0,
        Ok(4096)
    );
    rig.assert_bytes(4096, 4096, 9);

    // The end of the device, met half-way and from beyond.
    let (result, bytes) = rig.run(OpKind::Read, LEN - 8192, Buffer::new(65_536));
    assert_eq!(result, Ok(8192));
    assert!(bytes[..8192].iter().all(|&byte| byte == 7));
    assert_eq!(rig.run(OpKind::Read, LEN, Buffer::new(4096)).0, Ok(0));
    assert_eq!(rig.run(WRITE, LEN, Buffer::new(4096)).0, Err(Errno::NOSPC));

    // A hole in the image below reads as zero; a real disk promises less.
    assert_eq!(rig.range(OpKind::Discard, 65_536, 131_072), Ok(131_072));
    rig.assert_bytes(65_536 - 4096, 4096, 7);
    rig.assert_bytes(65_536, 131_072, 0);
    rig.assert_bytes(65_536 + 131_072, 4096, 7);
    assert_eq!(
        rig.range(OpKind::Zero { allocated: true }, 524_288, 200_704),
        Ok(200_704)
    );
    rig.assert_bytes(524_288 - 4096, 4096, 7);
    rig.assert_bytes(524_288, 200_704, 0);
    rig.assert_bytes(524_288 + 200_704, 4096, 7);

    assert_eq!(rig.range(OpKind::Discard, 100, 512), Err(Errno::INVAL));
    assert_eq!(
        rig.range(OpKind::Zero { allocated: true }, 512, 100),
        Err(Errno::INVAL)
    );
    assert_eq!(
        rig.range(OpKind::Zero { allocated: true }, LEN - 4096, 8192),
        Err(Errno::INVAL)
    );
}

/// Discards and zeroes directly after a write, whose pages are dirty, at any offset of sectors.
fn check_dirty(rig: &mut Rig) {
    let zeroes = [false, true].map(|allocated| OpKind::Zero { allocated });
    for kind in [OpKind::Discard, zeroes[0], zeroes[1]] {
        for (offset, length) in [(0, 65_536), (4096, 4096), (512, 1024), (3584, 9216)] {
            let all = Buffer::from_slice(&[7; 262_144]);
            assert_eq!(rig.run(WRITE, 0, all).0, Ok(262_144));
            let at = format!("{kind:?} of {length} at {offset}");
            assert_eq!(rig.range(kind, offset, length), Ok(length), "{at}");
            rig.assert_bytes(offset, length as usize, 0);
            rig.assert_bytes(offset + length, 8192, 7);
        }
    }
}

/// Linux zeroes dirty pages unless the device is open exclusively, as it is for the class `file`.
#[test]
fn dirty_pages_of_an_exclusive_device_are_discarded_and_zeroed() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    File::create(&image).unwrap().set_len(LEN).unwrap();
    let Some(device) = LoopDevice::over(&image, &[]) else { return };
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true);
    let mut exclusive = options.clone();
    let _holder = exclusive
        .custom_flags(libc::O_EXCL)
        .open(&device.path)
        .unwrap();
    for choice in Choice::ALL {
        let opened = ugeom_testkit::or_skip(open_engine(choice, 8));
        let Some((mut engine, _)) = opened else { continue };
        let file = Arc::new(options.open(&device.path).unwrap());
        let file = engine.register(file).unwrap();
        eprintln!("{choice}");
        check_dirty(&mut Rig { engine, file });
    }
}

#[test]
fn a_block_device_is_read_written_discarded_and_zeroed() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    File::create(&image).unwrap().set_len(LEN).unwrap();
    let Some(device) = LoopDevice::over(&image, &[]) else { return };
    for choice in Choice::ALL {
        for flags in [0, libc::O_DIRECT] {
            let opened = ugeom_testkit::or_skip(open_engine(choice, 8));
            let Some((mut engine, _)) = opened else { continue };
            let mut options = OpenOptions::new();
            let options = options.read(true).write(true).custom_flags(flags);
            let file = engine
                .register(Arc::new(options.open(&device.path).unwrap()))
                .unwrap();
            eprintln!("{choice}, flags {flags:#x}");
            check(&mut Rig { engine, file });
        }
    }
}
