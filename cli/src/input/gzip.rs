//! Reads gzip files of several members, with the zero padding that tapes and block devices append.

use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, Read};

/// Reads all members. `None` after the last.
pub(super) struct Gunzip<R>(Option<GzDecoder<R>>);

impl<R: BufRead> Gunzip<R> {
    pub fn new(packed: R) -> Gunzip<R> {
        Gunzip(Some(GzDecoder::new(packed)))
    }
}

impl<R: BufRead> Read for Gunzip<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.0 {
            let count = member.read(into)?;
            if count > 0 || into.is_empty() {
                return Ok(count);
            }
            let packed = self.0.take().map(GzDecoder::into_inner);
            self.0 = packed.map(next_member).transpose()?.flatten();
        }
        Ok(0)
    }
}

/// The decoder of the next member; `None` if only zeros follow, which gzip(1) accepts too.
fn next_member<R: BufRead>(mut packed: R) -> io::Result<Option<GzDecoder<R>>> {
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
