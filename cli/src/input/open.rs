//! Opens an input and decompresses it.
//!
//! The first bytes tell the compression, not the name: a renamed file still reads, and a pipe has no name.

use super::gzip::Gunzip;
use super::stream::Stream;
use super::walk::{InputFile, Place};
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tierdex::index::Stop;

/// Compressed bytes that are asked for at once.
const BUFFER_BYTES: usize = 256 << 10;

/// Largest window of a zstd frame, as a power of two: what `zstd --long` takes by itself. More would let a
/// small file claim gigabytes.
const WINDOW_LOG_MAX: u32 = 27;

/// Bytes of a file that tell how it is compressed.
const HEAD_BYTES: u64 = 6;

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    Plain,
    Gzip,
    Zstd,
}

impl Packing {
    fn of(head: &[u8]) -> Packing {
        match head {
            [0x1F, 0x8B, 0x08, ..] => Packing::Gzip,
            [0x28, 0xB5, 0x2F, 0xFD, ..] => Packing::Zstd,
            // A skippable frame; writers that pack in parallel begin with one.
            [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => Packing::Zstd,
            _ => Packing::Plain,
        }
    }

    /// One line on why reading failed.
    pub fn explain(self, error: &io::Error) -> String {
        match self {
            Packing::Plain => format!("cannot read: {error}"),
            Packing::Zstd if error.to_string().contains("too much memory") => {
                window_too_large("a larger window")
            }
            _ => format!("cannot unpack: {error}; the {self} data is damaged or cut short, replace it"),
        }
    }
}

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Packing::Plain => "plain",
            Packing::Gzip => "gzip",
            Packing::Zstd => "zstd",
        })
    }
}

/// An open file that yields uncompressed bytes.
pub struct Opened {
    pub packing: Packing,
    pub reader: Box<dyn Read + Send>,
}

impl Opened {
    /// Opens a place; `consumed` counts its bytes as they stand on disk. Reading fails once `stop` is raised.
    pub(super) fn open(file: &InputFile, consumed: &Arc<AtomicU64>, stop: &Stop) -> io::Result<Opened> {
        let raw: Box<dyn Read + Send> = match &file.place {
            Place::StandardInput => Box::new(Stream::new(|| Ok(io::stdin()), stop.clone())),
            Place::Path(path) if file.size.is_none() => {
                let path = path.clone();
                Box::new(Stream::new(|| File::open(path), stop.clone()))
            }
            Place::Path(path) => Box::new(File::open(path)?),
        };
        // Checked on both sides: a few packed bytes may yield gigabytes, and many may yield nothing.
        let Opened { packing, reader } =
            Opened::unpack(Stoppable { reader: raw, stop: stop.clone() }, consumed)?;
        Ok(Opened { packing, reader: Box::new(Stoppable { reader, stop: stop.clone() }) })
    }

    /// Peeks up to `bytes_max` bytes; they, and any error behind them, are read again by the reader.
    pub fn peek(mut self, bytes_max: u64) -> (Vec<u8>, Opened) {
        let mut head = Vec::new();
        let failed = Failing(self.reader.by_ref().take(bytes_max).read_to_end(&mut head).err());
        let reader = Cursor::new(head.clone()).chain(failed).chain(self.reader);
        (head, Opened { packing: self.packing, reader: Box::new(reader) })
    }

    /// Recognises the compression of `raw` and takes it off.
    pub fn unpack(raw: impl Read + Send + 'static, consumed: &Arc<AtomicU64>) -> io::Result<Opened> {
        let mut raw = Counted { raw, consumed: Arc::clone(consumed) };
        let mut head = Vec::with_capacity(HEAD_BYTES as usize);
        raw.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
        let packing = Packing::of(&head);
        if let Some(window) = zstd_window(&head).filter(|&window| window > 1 << WINDOW_LOG_MAX) {
            let window = format!("a window of {} MB", window >> 20);
            return Err(io::Error::other(window_too_large(&window)));
        }
        let whole = Cursor::new(head).chain(raw);
        let reader: Box<dyn Read + Send> = match packing {
            Packing::Plain => Box::new(whole),
            Packing::Gzip => Box::new(Gunzip::new(buffered(whole))),
            Packing::Zstd => Box::new(unpack_zstd(buffered(whole))?),
        };
        Ok(Opened { packing, reader })
    }
}

/// The window that a zstd frame asks for, where its header gives it.
fn zstd_window(head: &[u8]) -> Option<u64> {
    let &[0x28, 0xB5, 0x2F, 0xFD, descriptor, window, ..] = head else { return None };
    // A frame in a single segment has no window; it is as large as its content.
    if descriptor & 0x20 != 0 {
        return None;
    }
    let base = 1u64 << (10 + (window >> 3));
    Some(base + base / 8 * u64::from(window & 7))
}

fn window_too_large(window: &str) -> String {
    let most = (1u64 << WINDOW_LOG_MAX) >> 20;
    format!("the zstd data needs {window}, and {most} MB is the most; pack it with a smaller one")
}

fn buffered<R: Read>(whole: Chain<Cursor<Vec<u8>>, R>) -> impl BufRead {
    BufReader::with_capacity(BUFFER_BYTES, whole)
}

fn unpack_zstd<R: BufRead>(packed: R) -> io::Result<zstd::Decoder<'static, R>> {
    let mut decoder = zstd::Decoder::with_buffer(packed)?;
    decoder.window_log_max(WINDOW_LOG_MAX)?;
    Ok(decoder)
}

/// An error in its turn, once.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Fails once the stop signal is raised: a line, or what follows a line that is too long, may have no end.
struct Stoppable<R> {
    reader: R,
    stop: Stop,
}

impl<R: Read> Read for Stoppable<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stop.check().map_err(io::Error::other)?;
        self.reader.read(into)
    }
}

/// Counts what passes.
struct Counted<R> {
    raw: R,
    consumed: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.raw.read(into)?;
        self.consumed.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Dribble, gzip, zstd_frame, zstd_long};
    use super::*;

    fn read(packed: &[u8]) -> io::Result<(Packing, Vec<u8>)> {
        let consumed = Arc::new(AtomicU64::new(0));
        let mut opened = Opened::unpack(Dribble::new(packed), &consumed)?;
        let mut out = Vec::new();
        opened.reader.read_to_end(&mut out)?;
        assert_eq!(consumed.load(Ordering::Relaxed), packed.len() as u64);
        Ok((opened.packing, out))
    }

    #[track_caller]
    fn check(packed: &[u8], packing: Packing, expected: &[u8]) {
        let (found, out) = read(packed).unwrap();
        assert_eq!(found, packing);
        assert!(out == expected, "{} bytes, {} expected", out.len(), expected.len());
    }

    #[test]
    fn contents_tell_the_packing() {
        for plain in [&b""[..], b"a", b"\x1F\x8B", b"\x28\xB5\x2F", b"plain text"] {
            check(plain, Packing::Plain, plain);
        }
        check(&gzip(b"one"), Packing::Gzip, b"one");
        check(&gzip(b""), Packing::Gzip, b"");
        check(&zstd_frame(b"one"), Packing::Zstd, b"one");
        check(&zstd_frame(b""), Packing::Zstd, b"");
    }

    #[test]
    fn members_and_frames_are_joined() {
        check(&[gzip(b"one "), gzip(b""), gzip(b"two")].concat(), Packing::Gzip, b"one two");
        check(
            &[zstd_frame(b"one "), zstd_frame(b""), zstd_frame(b"two")].concat(),
            Packing::Zstd,
            b"one two",
        );
        let skippable = b"\x53\x2A\x4D\x18\x03\0\0\0abc".to_vec();
        let joined = [&skippable[..], &zstd_frame(b"one"), &skippable, &zstd_frame(b" two")].concat();
        check(&joined, Packing::Zstd, b"one two");
    }

    #[test]
    fn zeros_behind_gzip_are_padding() {
        for zeros in [1, 511, 3 * BUFFER_BYTES] {
            let padded = [gzip(b"one "), gzip(b"two"), vec![0; zeros]].concat();
            check(&padded, Packing::Gzip, b"one two");
            assert!(read(&[padded, gzip(b"three")].concat()).is_err());
        }
    }

    #[test]
    fn wide_windows_are_read_up_to_the_limit() {
        let mut state = 1u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .take(3 << 20)
        .collect();
        let far = [&noise[..], &vec![b'x'; 9 << 20], &noise].concat();
        check(&zstd_long(&far, 27), Packing::Zstd, &far);
        // As the first frame and as a later one.
        let wide = zstd_long(&far, 28);
        let error = read(&wide).unwrap_err();
        assert!(error.to_string().contains("window of 256 MB, and 128 MB is the most"), "{error}");
        let error = read(&[zstd_frame(b"a"), wide].concat()).unwrap_err();
        let message = Packing::Zstd.explain(&error);
        assert!(message.contains("a larger window, and 128 MB is the most"), "{message}");
    }

    #[test]
    fn damage_is_an_error_everywhere() {
        let text = "some words to pack, and some more of them".repeat(5);
        for packed in [gzip(text.as_bytes()), zstd_frame(text.as_bytes())] {
            for end in 4..packed.len() {
                assert!(read(&packed[..end]).is_err(), "cut at {end}");
            }
            let twice = [&packed[..], &packed[..packed.len() / 2]].concat();
            assert!(read(&twice).is_err());
            let mut flipped = packed.clone();
            let last = flipped.len() - 1;
            flipped[last] ^= 0xFF;
            assert!(read(&flipped).is_err());
            assert!(read(&[&packed[..], b"trailing"].concat()).is_err());
        }
    }
}
