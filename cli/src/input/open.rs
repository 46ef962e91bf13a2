//! Opens an input and decompresses it. The compression is detected from the first bytes, not from the name,
//! as files can be renamed and pipes have no name.

use super::walk::{InputLocation, ListedFile};
use super::{background_reader::BackgroundReader, gzip::GzipReader};
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fmt, fs::File, sync::Arc};
use tierdex::StopSignal;

/// Size of a read of compressed data, in bytes.
const BUFFER_BYTES: usize = 256 << 10;

/// Base-2 logarithm of the maximum window of a zstd frame: the default of `zstd --long`. With a larger one,
/// a small file could make the decoder allocate gigabytes.
const WINDOW_LOG_MAX: u32 = 27;

/// Number of first bytes by which the compression is detected.
const MAGIC_BYTES: u64 = 6;

/// Compression of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    Plain,
    Gzip,
    Zstd,
}

impl Compression {
    fn detect(head: &[u8]) -> Compression {
        match head {
            [0x1F, 0x8B, 0x08, ..] => Compression::Gzip,
            [0x28, 0xB5, 0x2F, 0xFD, ..] => Compression::Zstd,
            // A skippable frame, with which parallel compressors begin.
            [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => Compression::Zstd,
            _ => Compression::Plain,
        }
    }

    /// Error message of a failed read, one line.
    pub fn explain_error(self, error: &io::Error) -> String {
        match self {
            Compression::Plain => format!("cannot read: {error}"),
            Compression::Zstd if error.to_string().contains("too much memory") => {
                window_too_large_message("a larger window")
            }
            _ => format!("cannot decompress: {error}; the {self} data is damaged or truncated, replace it"),
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::Plain => "plain",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        })
    }
}

/// An open file that yields uncompressed bytes.
pub struct OpenInput {
    pub compression: Compression,
    pub reader: Box<dyn Read + Send>,
}

impl OpenInput {
    /// Opens an input. `consumed` counts its compressed bytes. Reads fail once `stop` is raised.
    pub(super) fn open(
        file: &ListedFile,
        consumed: &Arc<AtomicU64>,
        stop: &StopSignal,
    ) -> io::Result<OpenInput> {
        let raw: Box<dyn Read + Send> = match &file.location {
            InputLocation::StandardInput => Box::new(BackgroundReader::new(|| Ok(io::stdin()), stop.clone())),
            InputLocation::Path(path) if file.size.is_none() => {
                let path = path.clone();
                Box::new(BackgroundReader::new(|| File::open(path), stop.clone()))
            }
            InputLocation::Path(path) => Box::new(File::open(path)?),
        };
        // Checked before and after decompression: few compressed bytes can expand to gigabytes, and many to
        // none.
        let OpenInput { compression, reader } =
            OpenInput::decompress(StoppableReader { reader: raw, stop: stop.clone() }, consumed)?;
        Ok(OpenInput { compression, reader: Box::new(StoppableReader { reader, stop: stop.clone() }) })
    }

    /// Peeks up to `bytes_max` bytes. The returned reader yields them again, and the error that followed
    /// them.
    pub fn peek(mut self, bytes_max: u64) -> (Vec<u8>, OpenInput) {
        let mut head = Vec::new();
        let failed = ErrorOnce(self.reader.by_ref().take(bytes_max).read_to_end(&mut head).err());
        let reader = Cursor::new(head.clone()).chain(failed).chain(self.reader);
        (head, OpenInput { compression: self.compression, reader: Box::new(reader) })
    }

    /// Detects the compression of `raw` and decompresses it.
    pub fn decompress(raw: impl Read + Send + 'static, consumed: &Arc<AtomicU64>) -> io::Result<OpenInput> {
        let mut raw = CountingReader { raw, consumed: Arc::clone(consumed) };
        let mut head = Vec::with_capacity(MAGIC_BYTES as usize);
        raw.by_ref().take(MAGIC_BYTES).read_to_end(&mut head)?;
        let compression = Compression::detect(&head);
        if let Some(window) = zstd_window_bytes(&head).filter(|&window| window > 1 << WINDOW_LOG_MAX) {
            let window = format!("a window of {} MiB", window >> 20);
            return Err(io::Error::other(window_too_large_message(&window)));
        }
        let whole = Cursor::new(head).chain(raw);
        let reader: Box<dyn Read + Send> = match compression {
            Compression::Plain => Box::new(whole),
            Compression::Gzip => Box::new(GzipReader::new(buffer_reads(whole))),
            Compression::Zstd => Box::new(decompress_zstd(buffer_reads(whole))?),
        };
        Ok(OpenInput { compression, reader })
    }
}

/// Window size in the header of a zstd frame, if it has one.
fn zstd_window_bytes(head: &[u8]) -> Option<u64> {
    let &[0x28, 0xB5, 0x2F, 0xFD, descriptor, window, ..] = head else { return None };
    // A single-segment frame has no window descriptor.
    if descriptor & 0x20 != 0 {
        return None;
    }
    let base = 1u64 << (10 + (window >> 3));
    Some(base + base / 8 * u64::from(window & 7))
}

fn window_too_large_message(window: &str) -> String {
    let megabytes_max = (1u64 << WINDOW_LOG_MAX) >> 20;
    format!(
        "the zstd data needs {window}; the maximum is {megabytes_max} MiB, compress it with a smaller window"
    )
}

fn buffer_reads<R: Read>(whole: Chain<Cursor<Vec<u8>>, R>) -> impl BufRead {
    BufReader::with_capacity(BUFFER_BYTES, whole)
}

fn decompress_zstd<R: BufRead>(packed: R) -> io::Result<zstd::Decoder<'static, R>> {
    let mut decoder = zstd::Decoder::with_buffer(packed)?;
    decoder.window_log_max(WINDOW_LOG_MAX)?;
    Ok(decoder)
}

/// Returns an error on the first read, then the end of the stream.
struct ErrorOnce(Option<io::Error>);

impl Read for ErrorOnce {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Fails reads once the stop flag is raised, as a line may be endless.
struct StoppableReader<R> {
    reader: R,
    stop: StopSignal,
}

impl<R: Read> Read for StoppableReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stop.check().map_err(io::Error::other)?;
        self.reader.read(into)
    }
}

/// Counts the bytes that are read, for the progress bar.
struct CountingReader<R> {
    raw: R,
    consumed: Arc<AtomicU64>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.raw.read(into)?;
        self.consumed.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{SmallReads, gzip_member, zstd_frame, zstd_long_window};
    use super::*;

    fn decompress_all(packed: &[u8]) -> io::Result<(Compression, Vec<u8>)> {
        let consumed = Arc::new(AtomicU64::new(0));
        let mut opened = OpenInput::decompress(SmallReads::new(packed), &consumed)?;
        let mut out = Vec::new();
        opened.reader.read_to_end(&mut out)?;
        assert_eq!(consumed.load(Ordering::Relaxed), packed.len() as u64);
        Ok((opened.compression, out))
    }

    #[track_caller]
    fn check_decompression(packed: &[u8], compression: Compression, expected: &[u8]) {
        let (found, out) = decompress_all(packed).unwrap();
        assert_eq!(found, compression);
        assert!(out == expected, "{} bytes, {} expected", out.len(), expected.len());
    }

    #[test]
    fn compression_is_detected_from_the_first_bytes() {
        for plain in [&b""[..], b"a", b"\x1F\x8B", b"\x28\xB5\x2F", b"plain text"] {
            check_decompression(plain, Compression::Plain, plain);
        }
        check_decompression(&gzip_member(b"one"), Compression::Gzip, b"one");
        check_decompression(&gzip_member(b""), Compression::Gzip, b"");
        check_decompression(&zstd_frame(b"one"), Compression::Zstd, b"one");
        check_decompression(&zstd_frame(b""), Compression::Zstd, b"");
    }

    #[test]
    fn members_and_frames_are_concatenated() {
        check_decompression(
            &[gzip_member(b"one "), gzip_member(b""), gzip_member(b"two")].concat(),
            Compression::Gzip,
            b"one two",
        );
        check_decompression(
            &[zstd_frame(b"one "), zstd_frame(b""), zstd_frame(b"two")].concat(),
            Compression::Zstd,
            b"one two",
        );
        let skippable = b"\x53\x2A\x4D\x18\x03\0\0\0abc".to_vec();
        let joined = [&skippable[..], &zstd_frame(b"one"), &skippable, &zstd_frame(b" two")].concat();
        check_decompression(&joined, Compression::Zstd, b"one two");
    }

    #[test]
    fn zeros_after_gzip_data_are_padding() {
        for zeros in [1, 511, 3 * BUFFER_BYTES] {
            let padded = [gzip_member(b"one "), gzip_member(b"two"), vec![0; zeros]].concat();
            check_decompression(&padded, Compression::Gzip, b"one two");
            assert!(decompress_all(&[padded, gzip_member(b"three")].concat()).is_err());
        }
    }

    #[test]
    fn zstd_windows_are_limited() {
        let mut state = 1u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .take(3 << 20)
        .collect();
        let far = [&noise[..], &vec![b'x'; 9 << 20], &noise].concat();
        check_decompression(&zstd_long_window(&far, 27), Compression::Zstd, &far);
        // A window that is too large, in the first frame and in a later one.
        let wide = zstd_long_window(&far, 28);
        let error = decompress_all(&wide).unwrap_err();
        assert!(error.to_string().contains("window of 256 MiB; the maximum is 128 MiB"), "{error}");
        let error = decompress_all(&[zstd_frame(b"a"), wide].concat()).unwrap_err();
        let message = Compression::Zstd.explain_error(&error);
        assert!(message.contains("a larger window; the maximum is 128 MiB"), "{message}");
    }

    #[test]
    fn damage_at_any_byte_is_an_error() {
        let text = "some words to pack, and some more of them".repeat(5);
        for packed in [gzip_member(text.as_bytes()), zstd_frame(text.as_bytes())] {
            for end in 4..packed.len() {
                assert!(decompress_all(&packed[..end]).is_err(), "cut at {end}");
            }
            let twice = [&packed[..], &packed[..packed.len() / 2]].concat();
            assert!(decompress_all(&twice).is_err());
            let mut flipped = packed.clone();
            let last = flipped.len() - 1;
            flipped[last] ^= 0xFF;
            assert!(decompress_all(&flipped).is_err());
            assert!(decompress_all(&[&packed[..], b"trailing"].concat()).is_err());
        }
    }
}
