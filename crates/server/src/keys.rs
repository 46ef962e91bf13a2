//! Keys of clients: a file has the name, the role and the SHA-256 of each key, never the key itself.
//!
//! A key is 32 random bytes or more, so a fast hash is enough: it cannot be guessed. Digests are compared in
//! constant time, all of them for each request.

use crate::api_error::{ApiError, ApiErrorKind};
use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::path::Path;
use subtle::ConstantTimeEq;
use tierdex::{Error, Result};

/// Bytes of a file of keys, at most.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Bytes of a key that a client sends, at least: shorter ones could be guessed.
const KEY_BYTES_MIN: usize = 16;

/// The keys of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys(Vec<Key>);

/// A key.
#[derive(Clone, Debug)]
struct Key {
    name: String,
    digest: [u8; 32],
}

impl Keys {
    /// Reads a file with a key in each line: its name, its role, and the SHA-256 of the key in hexadecimal
    /// digits. Empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// [`Error::Usage`] with the line that is wrong; [`Error::Storage`] if the file cannot be read.
    pub(crate) fn read(path: &Path) -> Result<Keys> {
        let shown = path.display();
        let failed = |error| tierdex::io::Error::from_os("read", shown.to_string(), &error);
        if std::fs::metadata(path).map_err(failed)?.len() > FILE_BYTES_MAX {
            return Err(Error::Usage(format!("{shown} is too large for a file of keys")));
        }
        let text = std::fs::read(path).map_err(failed)?;
        let text = String::from_utf8_lossy(&text);
        let mut keys: Vec<Key> = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |what: &str| Error::Usage(format!("{shown}, line {number}: {what}"));
            let parts: Vec<&str> = line.split_whitespace().collect();
            let [name, role, digest] = parts[..] else {
                return Err(wrong("expected a name, a role and the SHA-256 of the key"));
            };
            if role != "read" {
                return Err(wrong("the role must be read: the server does not write"));
            }
            let digest = digest_of_hex(digest).ok_or_else(|| wrong("a SHA-256 has 64 hexadecimal digits"))?;
            if keys.iter().any(|key| key.name == name) {
                return Err(wrong("another key has the same name"));
            }
            keys.push(Key { name: name.to_string(), digest });
        }
        if keys.is_empty() {
            return Err(Error::Usage(format!("{shown} has no key")));
        }
        Ok(Keys(keys))
    }

    /// Whether there are keys, so that a request needs one.
    pub(crate) fn are_required(&self) -> bool {
        !self.0.is_empty()
    }

    /// Checks the key of a request, and returns its name; an empty one if none is needed.
    pub(crate) fn check(&self, headers: &HeaderMap) -> std::result::Result<&str, ApiError> {
        if !self.are_required() {
            return Ok("");
        }
        let missing = || ApiError::new(ApiErrorKind::Unauthorized, "the request has no key that is known");
        let key = key_of(headers).filter(|key| key.len() >= KEY_BYTES_MIN).ok_or_else(missing)?;
        let digest: [u8; 32] = Sha256::digest(&key).into();
        let mut found = None;
        for key in &self.0 {
            if bool::from(key.digest.ct_eq(&digest)) {
                found = Some(&*key.name);
            }
        }
        found.ok_or_else(missing)
    }
}

/// The key of a request: of `Authorization: Bearer KEY`, of `Authorization: ApiKey` with `id:KEY` in Base64,
/// of `Authorization: Basic` as the password, or of `X-API-Key: KEY`.
fn key_of(headers: &HeaderMap) -> Option<Vec<u8>> {
    if let Some(key) = headers.get("x-api-key") {
        return Some(key.as_bytes().to_vec());
    }
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, value) = value.split_once(' ')?;
    let value = value.trim();
    match scheme.to_ascii_lowercase().as_str() {
        "bearer" => Some(value.as_bytes().to_vec()),
        "basic" | "apikey" => {
            let decoded = STANDARD.decode(value).ok()?;
            let colon = decoded.iter().position(|byte| *byte == b':')?;
            Some(decoded[colon + 1..].to_vec())
        }
        _ => None,
    }
}

fn digest_of_hex(text: &str) -> Option<[u8; 32]> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| digits.len() == 64)?;
    let mut digest = [0; 32];
    digest.iter_mut().zip(digits.chunks(2)).for_each(|(byte, pair)| *byte = pair[0] << 4 | pair[1]);
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    /// The SHA-256 of `0123456789abcdef`.
    const DIGEST: &str = "9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f";

    fn read(text: &str) -> Result<Keys> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Keys::read(file.path())
    }

    #[test]
    fn each_form_of_a_key_is_found_and_no_other() {
        let keys = read(&format!("# clients\n\nweb read {DIGEST}\n")).unwrap();
        let check = |name: &'static str, value: &str| {
            let headers = HeaderMap::from_iter([(
                header::HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            )]);
            keys.check(&headers).map(str::to_string).map_err(|error| error.kind)
        };
        let encoded = STANDARD.encode("user:0123456789abcdef");
        for (name, value) in [
            ("authorization", "Bearer 0123456789abcdef".to_string()),
            ("authorization", format!("Basic {encoded}")),
            ("authorization", format!("ApiKey {encoded}")),
            ("x-api-key", "0123456789abcdef".to_string()),
        ] {
            assert_eq!(check(name, &value), Ok("web".to_string()), "{value}");
        }
        for value in ["", "Bearer", "Bearer 0123456789abcdeF", "Basic !!!", "Digest x", DIGEST] {
            assert_eq!(check("authorization", value), Err(ApiErrorKind::Unauthorized), "{value}");
        }
        assert!(keys.check(&HeaderMap::new()).is_err());
        assert!(Keys::default().check(&HeaderMap::new()).is_ok());
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, message) in [
            ("", "has no key"),
            ("web read", "line 1: expected a name"),
            ("web admin 00", "line 1: the role"),
            ("\nweb read 00", "line 2: a SHA-256"),
            (&format!("web read {DIGEST}\nweb read {DIGEST}"), "line 2: another key"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        assert!(Keys::read(Path::new("/nonexistent/keys")).is_err());
    }
}
