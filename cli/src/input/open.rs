//! You have a file; here are its bytes, decompressed.
//!
//! The first bytes tell the compression, not the name: a renamed file still reads, and a pipe has no name.

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
            [0x28, 0xB5, 0x2F, 0xFD] => Packing::Zstd,
            // A skippable frame; writers that pack in parallel begin with one.
            [0x50..=0x5F, 0x2A, 0x4D, 0x18] => Packing::Zstd,
            _ => Packing::Plain,
        }
    }

    /// One line on why reading `file` failed.
    pub fn explain(self, file: &str, error: &io::Error) -> String {
        match self {
            Packing::Plain => format!("cannot read {file}: {error}"),
            _ => {
                format!("cannot unpack {file}: {error}; the {self} data is damaged or cut short, replace it")
            }
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
    /// Opens a place; `consumed` counts its bytes as they stand on disk. A place without a size is a stream, whose
    /// reading ends when `stop` is raised.
    pub(super) fn open(file: &InputFile, consumed: &Arc<AtomicU64>, stop: &Stop) -> io::Result<Opened> {
        match &file.place {
            Place::StandardInput => Opened::unpack(Stream::new(|| Ok(io::stdin()), stop.clone()), consumed),
            Place::Path(path) if file.size.is_none() => {
                let path = path.clone();
                Opened::unpack(Stream::new(|| File::open(path), stop.clone()), consumed)
            }
            Place::Path(path) => Opened::unpack(File::open(path)?, consumed),
        }
    }

    /// Recognises the compression of `raw` and takes it off.
    pub fn unpack(raw: impl Read + Send + 'static, consumed: &Arc<AtomicU64>) -> io::Result<Opened> {
        let mut raw = Counted { raw, consumed: Arc::clone(consumed) };
        let mut head = Vec::with_capacity(4);
        raw.by_ref().take(4).read_to_end(&mut head)?;
        let packing = Packing::of(&head);
        let whole = Cursor::new(head).chain(raw);
        let reader: Box<dyn Read + Send> = match packing {
            Packing::Plain => Box::new(whole),
            Packing::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(buffered(whole))),
            Packing::Zstd => Box::new(unpack_zstd(buffered(whole))?),
        };
        Ok(Opened { packing, reader })
    }
}

fn buffered<R: Read>(whole: Chain<Cursor<Vec<u8>>, R>) -> impl BufRead {
    BufReader::with_capacity(BUFFER_BYTES, whole)
}

fn unpack_zstd<R: BufRead>(packed: R) -> io::Result<zstd::Decoder<'static, R>> {
    let mut decoder = zstd::Decoder::with_buffer(packed)?;
    decoder.window_log_max(WINDOW_LOG_MAX)?;
    Ok(decoder)
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
        assert!(read(&zstd_long(&far, 28)).is_err());
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
