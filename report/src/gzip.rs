//! Data as a gzip file (RFC 1952): results are long, and compress to a tenth.

/// How hard to try, of 10: more takes long and saves little.
const LEVEL: u8 = 6;

/// A gzip file without a name or a time, so that the same data give the same bytes.
pub(super) fn gzip(data: &[u8]) -> Vec<u8> {
    const DEFLATE: u8 = 8;
    const SYSTEM_UNKNOWN: u8 = 255;
    let mut file = vec![0x1f, 0x8b, DEFLATE, 0, 0, 0, 0, 0, 0, SYSTEM_UNKNOWN];
    file.extend(miniz_oxide::deflate::compress_to_vec(data, LEVEL));
    file.extend(crc32fast::hash(data).to_le_bytes());
    // The length modulo 2^32.
    file.extend((data.len() as u32).to_le_bytes());
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn gzip_reads_it_back() {
        let data = b"{\"wall_ns\": 12345}, ".repeat(10_000);
        let file = gzip(&data);
        assert!(file.len() < data.len() / 50, "{}", file.len());
        let mut child = Command::new("gzip")
            .args(["--decompress", "--stdout"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(&file));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(output.status.success() && output.stdout == data);
    }
}
