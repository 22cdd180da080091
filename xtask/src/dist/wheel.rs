//! The Python wheel that holds the program as a script, for `pip install`, `pipx` and `uvx`
//! (<https://packaging.python.org/en/latest/specifications/binary-distribution-format/>).

use super::VERSION;
use super::binary::Built;
use crate::run;
use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// Makes the wheel in `out`. The same tree gives the same bytes.
pub fn make(built: &Built, out: &Path) -> Result<PathBuf> {
    let platform = platform(built.architecture.name);
    let path = out.join(format!("ugeom-{VERSION}-py3-none-{platform}.whl"));
    let file = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
    let mut zip = ZipWriter::new(file);
    let readme = fs::read_to_string(run::root().join("README.md")).context("README.md")?;
    let info = format!("ugeom-{VERSION}.dist-info");
    let mut files = vec![
        (
            format!("ugeom-{VERSION}.data/scripts/ugeom"),
            fs::read(&built.program).context("the program")?,
            0o755,
        ),
        (
            format!("{info}/METADATA"),
            metadata(&readme).into_bytes(),
            0o644,
        ),
        (format!("{info}/WHEEL"), tags(&platform).into_bytes(), 0o644),
    ];
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        let text = fs::read(run::root().join(licence)).context(licence)?;
        files.push((format!("{info}/licenses/{licence}"), text, 0o644));
    }
    let notices = built.notices.clone().into_bytes();
    files.push((format!("{info}/licenses/NOTICES"), notices, 0o644));
    let record = record(&files, &info);
    files.push((format!("{info}/RECORD"), record.into_bytes(), 0o644));
    for (name, content, mode) in files {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default())
            .unix_permissions(mode);
        zip.start_file(&name, options)
            .and_then(|()| Ok(zip.write_all(&content)?))
            .with_context(|| format!("{name} of {}", path.display()))?;
    }
    let finished = zip.finish();
    finished.with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// A static binary fits glibc and musl alike.
fn platform(architecture: &str) -> String {
    format!(
        "manylinux_2_17_{architecture}.manylinux2014_{architecture}.musllinux_1_1_{architecture}"
    )
}

fn metadata(readme: &str) -> String {
    format!(
        "Metadata-Version: 2.4\n\
         Name: ugeom\n\
         Version: {VERSION}\n\
         Summary: FreeBSD's GEOM as a Linux program: compose, read, serve and measure block \
         devices\n\
         License-Expression: MIT OR Apache-2.0\n\
         License-File: LICENSE-MIT\n\
         License-File: LICENSE-APACHE\n\
         License-File: NOTICES\n\
         Keywords: storage,benchmark,block device,nbd,fuse,geom\n\
         Classifier: Environment :: Console\n\
         Classifier: Operating System :: POSIX :: Linux\n\
         Classifier: Topic :: System :: Benchmark\n\
         Classifier: Topic :: System :: Filesystems\n\
         Requires-Python: >=3.7\n\
         Description-Content-Type: text/markdown\n\n{readme}"
    )
}

fn tags(platform: &str) -> String {
    let mut text =
        format!("Wheel-Version: 1.0\nGenerator: ugeom-xtask {VERSION}\nRoot-Is-Purelib: false\n");
    for platform in platform.split('.') {
        let _ = writeln!(text, "Tag: py3-none-{platform}");
    }
    text
}

fn record(files: &[(String, Vec<u8>, u32)], info: &str) -> String {
    let mut text = String::new();
    for (name, content, _) in files {
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(content));
        let _ = writeln!(text, "{name},sha256={digest},{}", content.len());
    }
    let _ = writeln!(text, "{info}/RECORD,,");
    text
}
