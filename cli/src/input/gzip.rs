//! Reads gzip files of several members, with the zero padding that tapes and block devices append.

use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, Read};

/// Decompresses all members in turn; `None` after the last.
pub(super) struct GzipReader<R>(Option<GzDecoder<R>>);

impl<R: BufRead> GzipReader<R> {
    pub fn new(packed: R) -> GzipReader<R> {
        GzipReader(Some(GzDecoder::new(packed)))
    }
}

impl<R: BufRead> Read for GzipReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let count = member.read(into)?;
            if count > 0 || into.is_empty() {
                return Ok(count);
            }
            let packed = self.0.take().map(GzDecoder::into_inner);
            self.0 = packed.map(open_next_member).transpose()?.flatten();
        }
        Ok(0)
    }
}

/// The decoder of the next member; `None` if only zeros follow, which gzip(1) accepts too.
fn open_next_member<R: BufRead>(mut packed: R) -> io::Result<Option<GzDecoder<R>>> {
    let mut padded = false;
    loop {
        let bytes = match packed.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        match (bytes.len(), zeros) {
            (0, _) => return Ok(None),
            (_, 0) if padded => return Err(io::Error::other("data after zero padding")),
            (_, 0) => return Ok(Some(GzDecoder::new(packed))),
            _ => packed.consume(zeros),
        }
        padded = true;
    }
}
