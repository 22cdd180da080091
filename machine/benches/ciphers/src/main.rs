//! `cargo run --release --manifest-path machine/benches/ciphers/Cargo.toml`: AES-256-XTS by sectors
//! and SHA-256 by AWS-LC, OpenSSL (`openssl speed`), the crates of RustCrypto and `ugeom-machine`.
//!
//! All in one run: each round measures every code once, in GB a second of CPU time. Figures are the
//! medians of nine rounds with the lowest and the highest.

use aws_lc_sys as aws_lc;
use std::process::Command;
use std::ptr;
use std::time::Duration;
use ugeom_classes::eli::crypt::{Backend, ByteOrder, Crypt};
use ugeom_classes::eli::keys::MasterKey;
use ugeom_format::eli::{Cipher, Metadata};
use ugeom_machine::aes::{Sectors, XtsKey};

const ROUNDS: usize = 9;
/// Length of one measurement.
const RUN: Duration = Duration::from_millis(200);
/// The size of one decrypting call, bytes.
const REQUEST_BYTES: usize = 128 << 10;
const MEDIA_BYTES: u64 = 1 << 30;

type Code = (&'static str, Box<dyn FnMut() -> Option<f64>>);

/// CPU time of this thread, as `openssl speed` counts.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

/// GB a second of calls that do `bytes` each.
fn throughput(bytes: usize, mut call: impl FnMut()) -> f64 {
    let (begin, mut calls) = (cpu_time(), 0_u64);
    while cpu_time() - begin < RUN {
        call();
        calls += 1;
    }
    (calls * bytes as u64) as f64 / (cpu_time() - begin).as_secs_f64() / 1e9
}

/// GB/s of the program `openssl`; `None` where there is none.
fn openssl_speed(algorithm: &str, bytes: usize) -> Option<f64> {
    let bytes = bytes.to_string();
    let arguments = [
        "speed", "-mr", "-seconds", "1", "-decrypt", "-bytes", &bytes, "-evp", algorithm,
    ];
    let output = Command::new("openssl").args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.starts_with("+F:"))?;
    let figure: f64 = line.rsplit(':').next()?.trim().parse().ok()?;
    Some(figure / 1e9)
}

/// The keys of a provider, in RustCrypto's code.
fn portable(sector_bytes: u32) -> Crypt {
    let metadata = Metadata::one_time(Cipher::AesXts.number(), 256, MEDIA_BYTES, sector_bytes);
    let master = MasterKey::random().expect("keys");
    let sizes = (MEDIA_BYTES, 512);
    Crypt::new(
        &metadata,
        sizes,
        &master,
        ByteOrder::Little,
        Backend::Portable,
    )
    .expect("keys")
}

/// AES-256-XTS of AWS-LC, for decryption.
struct AwsXts(*mut aws_lc::EVP_CIPHER_CTX);

impl AwsXts {
    fn new(key: &[u8; 64]) -> Self {
        // SAFETY: a new context, and a key of the length that the cipher has; there is no engine,
        // and the tweak comes with each sector.
        unsafe {
            let context = aws_lc::EVP_CIPHER_CTX_new();
            assert!(!context.is_null(), "no memory");
            let cipher = aws_lc::EVP_aes_256_xts();
            let (none, key) = (ptr::null_mut(), key.as_ptr());
            let begun = aws_lc::EVP_DecryptInit_ex(context, cipher, none, key, ptr::null());
            assert_eq!(begun, 1, "a key");
            Self(context)
        }
    }

    fn decrypt(&mut self, offset: u64, sector: &mut [u8]) {
        let mut tweak = [0; 16];
        tweak[..8].copy_from_slice(&offset.to_le_bytes());
        let (data, length) = (sector.as_mut_ptr(), sector.len() as i32);
        let mut written = 0;
        // SAFETY: the context has a key and lives; the tweak has 16 bytes, and data is decrypted in
        // place, which the library allows.
        let done = unsafe {
            let (cipher, none) = (ptr::null(), ptr::null_mut());
            let tweak = tweak.as_ptr();
            aws_lc::EVP_DecryptInit_ex(self.0, cipher, none, ptr::null(), tweak)
                & aws_lc::EVP_DecryptUpdate(self.0, data, &mut written, data, length)
        };
        assert_eq!((done, written), (1, length));
    }
}

impl Drop for AwsXts {
    fn drop(&mut self) {
        // SAFETY: made in `new`, and freed once.
        unsafe { aws_lc::EVP_CIPHER_CTX_free(self.0) };
    }
}

/// Decryption of 128 KiB in sectors of that size, each with a tweak of its own.
fn xts(sector_bytes: usize) -> Vec<Code> {
    let key: [u8; 64] = std::array::from_fn(|at| (7 * at + 3) as u8);
    let mut data = vec![7; REQUEST_BYTES];
    let ours = XtsKey::new(&key).map(|key| {
        let run = move || {
            let at = Sectors {
                offset: 0,
                sector_bytes,
            };
            Some(throughput(REQUEST_BYTES, || key.decrypt(at, &mut data)))
        };
        ("machine/src/aes (VAES)", Box::new(run) as Box<_>)
    });
    let mut data = vec![7; REQUEST_BYTES];
    let mut context = AwsXts::new(&key);
    let aws_lc = move || {
        Some(throughput(REQUEST_BYTES, || {
            for (number, sector) in (0_u64..).zip(data.chunks_mut(sector_bytes)) {
                context.decrypt(number * sector_bytes as u64, sector);
            }
        }))
    };
    let crypt = portable(sector_bytes as u32);
    let mut data = vec![7; REQUEST_BYTES];
    let rust_crypto = move || {
        Some(throughput(REQUEST_BYTES, || {
            crypt.decrypt(0, &mut data).expect("keys");
        }))
    };
    let mut codes: Vec<Code> = ours.into_iter().collect();
    codes.push(("AWS-LC", Box::new(aws_lc)));
    codes.push(("crate aes (eli:crypto=portable)", Box::new(rust_crypto)));
    let speed = move || openssl_speed("aes-256-xts", sector_bytes);
    codes.push(("openssl speed", Box::new(speed)));
    codes
}

fn sha256() -> Vec<Code> {
    let data = vec![7; 4096];
    let aws_lc = move || {
        Some(throughput(data.len(), || {
            let mut hash = [0; 32];
            // SAFETY: both are valid for their lengths, and a hash has 32 bytes.
            unsafe { aws_lc::SHA256(data.as_ptr(), data.len(), hash.as_mut_ptr()) };
            std::hint::black_box(hash);
        }))
    };
    // Sixteen keys and messages of the length that GELI has: 12 blocks of SHA-256 each.
    let messages = vec![[7_u8; 480]; ugeom_machine::sha256::LANES];
    let ours = move || {
        let messages: [&[u8]; ugeom_machine::sha256::LANES] =
            std::array::from_fn(|at| &messages[at][..]);
        let suffixes = [[1; 8]; ugeom_machine::sha256::LANES];
        let before = ugeom_machine::sha256::INITIAL;
        ugeom_machine::sha256::hmacs(&before, &suffixes, &messages)?;
        Some(throughput(messages.len() * 12 * 64, || {
            std::hint::black_box(ugeom_machine::sha256::hmacs(&before, &suffixes, &messages));
        }))
    };
    vec![
        ("machine/src/sha256, 16 HMACs", Box::new(ours)),
        ("AWS-LC, one message of 4096", Box::new(aws_lc)),
        (
            "openssl speed, one message of 4096",
            Box::new(|| openssl_speed("sha256", 4096)),
        ),
    ]
}

fn compare(title: &str, mut codes: Vec<Code>) {
    println!("{title}");
    let mut figures = vec![Vec::new(); codes.len()];
    for _ in 0..ROUNDS {
        for ((_, measure), figures) in codes.iter_mut().zip(&mut figures) {
            figures.extend(measure());
        }
    }
    for ((name, _), figures) in codes.iter().zip(&mut figures) {
        figures.sort_by(f64::total_cmp);
        match figures.as_slice() {
            [] => println!("  {name:36} not here"),
            [low, .., high] => {
                let middle = figures[figures.len() / 2];
                println!("  {name:36} {middle:6.2} GB/s ({low:.2} to {high:.2})");
            }
            [only] => println!("  {name:36} {only:6.2} GB/s"),
        }
    }
}

/// Both decrypt alike, or the comparison is of different things.
fn check() {
    let key: [u8; 64] = std::array::from_fn(|at| (5 * at + 1) as u8);
    let Some(ours) = XtsKey::new(&key) else { return };
    let mut both = [vec![9; 8192], vec![9; 8192]];
    let at = Sectors {
        offset: 0,
        sector_bytes: 4096,
    };
    ours.decrypt(at, &mut both[0]);
    let mut context = AwsXts::new(&key);
    for (number, sector) in (0_u64..).zip(both[1].chunks_mut(4096)) {
        context.decrypt(number * 4096, sector);
    }
    assert!(both[0] == both[1], "different results");
}

fn main() {
    check();
    compare(
        "AES-256-XTS, decryption of 128 KiB, sectors of 4096",
        xts(4096),
    );
    compare(
        "AES-256-XTS, decryption of 128 KiB, sectors of 512",
        xts(512),
    );
    compare("SHA-256, all bytes that are hashed", sha256());
}
