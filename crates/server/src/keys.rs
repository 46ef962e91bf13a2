//! Keys of clients: a file has the name, the role and the SHA-256 of each key, never the key itself. It is
//! read again when the server is told to.
//!
//! A key is 16 random bytes or more, so a fast hash is enough: it cannot be guessed. Digests are compared in
//! constant time, all of them for each request.

use crate::api_error::{ApiError, ApiErrorKind};
use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use subtle::ConstantTimeEq;
use tierdex::{Error, Result};

/// Bytes of a file of keys, at most.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Bytes of a key that a client sends, at least: shorter ones could be guessed.
const KEY_BYTES_MIN: usize = 16;

/// Time after which a client with too many requests may try again.
const QUOTA_WAIT: Duration = Duration::from_secs(1);

/// The keys of a server.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// `None` if no request needs a key.
    file: Option<PathBuf>,
    keys: RwLock<Vec<Arc<Key>>>,
}

/// What the client of a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Search, read documents, and all that [`Role::Monitor`] may do.
    Read,
    /// Read metrics and statistics of the server.
    Monitor,
}

/// A key.
#[derive(Debug)]
struct Key {
    name: String,
    role: Role,
    digest: [u8; 32],
    /// Requests in progress, at most.
    requests_max: Option<usize>,
    /// Requests in progress. Kept when the file is read again.
    running: Arc<AtomicUsize>,
}

/// A request of the client of a key. It is in progress until its end, or until it is dropped.
#[derive(Debug)]
pub(crate) struct KeyUse {
    key: Arc<Key>,
    is_running: bool,
}

impl Drop for KeyUse {
    fn drop(&mut self) {
        self.end();
    }
}

impl KeyUse {
    pub(crate) fn name(&self) -> &str {
        &self.key.name
    }

    /// Ends the request.
    pub(crate) fn end(&mut self) {
        if std::mem::take(&mut self.is_running) {
            self.key.running.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Keys {
    /// Reads a file with a key in each line: its name, its role, the SHA-256 of the key in hexadecimal
    /// digits, and, if they are limited, its requests in progress at most. Empty lines and lines that begin
    /// with `#` are skipped.
    ///
    /// # Errors
    /// [`Error::Usage`] with the line that is wrong; [`Error::Storage`] if the file cannot be read.
    pub(crate) fn read(path: &Path) -> Result<Keys> {
        Ok(Keys { file: Some(path.to_path_buf()), keys: RwLock::new(read_keys(path)?) })
    }

    /// Reads the file again. Requests in progress of keys that it still has go on counting.
    ///
    /// # Errors
    /// As [`Keys::read`]; then the keys stay as they were.
    pub(crate) fn reload(&self) -> Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        let mut read = read_keys(path)?;
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        for key in &mut read {
            let before = keys.iter().find(|before| before.name == key.name);
            if let (Some(key), Some(before)) = (Arc::get_mut(key), before) {
                key.running = before.running.clone();
            }
        }
        *keys = read;
        Ok(())
    }

    /// Whether a request needs a key.
    pub(crate) fn are_required(&self) -> bool {
        self.file.is_some()
    }

    /// Checks the key of a request that needs a role; `None` if no key is needed.
    pub(crate) fn check(
        &self,
        headers: &HeaderMap,
        needed: Role,
    ) -> std::result::Result<Option<KeyUse>, ApiError> {
        if !self.are_required() {
            return Ok(None);
        }
        let missing =
            || ApiError::new(ApiErrorKind::Unauthorized, "the request has no key, or an unknown one");
        let key = key_of(headers).filter(|key| key.len() >= KEY_BYTES_MIN).ok_or_else(missing)?;
        let digest: [u8; 32] = Sha256::digest(&key).into();
        let found = self.find(&digest).ok_or_else(missing)?;
        if needed == Role::Read && found.role == Role::Monitor {
            let message = format!("the key `{}` has the role monitor, which reads metrics only", found.name);
            return Err(ApiError::new(ApiErrorKind::Forbidden, message));
        }
        let max = found.requests_max.unwrap_or(usize::MAX);
        let one_more = |running| (running < max).then_some(running + 1);
        match found.running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
            Ok(_) => Ok(Some(KeyUse { key: found, is_running: true })),
            Err(_) => {
                let message = format!("the key `{}` has {max} requests in progress, its limit", found.name);
                Err(ApiError::overloaded(message, QUOTA_WAIT))
            }
        }
    }

    fn find(&self, digest: &[u8; 32]) -> Option<Arc<Key>> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = None;
        for key in &*keys {
            if bool::from(key.digest.ct_eq(digest)) {
                found = Some(key);
            }
        }
        found.cloned()
    }
}

fn read_keys(path: &Path) -> Result<Vec<Arc<Key>>> {
    let shown = path.display();
    let failed = |error| tierdex::io::Error::from_os("read", shown.to_string(), &error);
    if std::fs::metadata(path).map_err(failed)?.len() > FILE_BYTES_MAX {
        return Err(Error::Usage(format!("{shown} is too large for a file of keys")));
    }
    let text = std::fs::read(path).map_err(failed)?;
    let text = String::from_utf8_lossy(&text);
    let mut keys: Vec<Arc<Key>> = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what: &str| Error::Usage(format!("{shown}, line {number}: {what}"));
        let key = parse_key(line).map_err(wrong)?;
        if keys.iter().any(|other| other.name == key.name) {
            return Err(wrong("another key has the same name"));
        }
        if keys.iter().any(|other| other.digest == key.digest) {
            return Err(wrong("another name has the same key"));
        }
        keys.push(Arc::new(key));
    }
    if keys.is_empty() {
        return Err(Error::Usage(format!("{shown} has no key")));
    }
    Ok(keys)
}

fn parse_key(line: &str) -> std::result::Result<Key, &'static str> {
    let mut parts = line.split_whitespace();
    let mut next = || parts.next().ok_or("expected a name, a role and the SHA-256 of the key");
    let name = next()?.to_string();
    let role = match next()? {
        "read" => Role::Read,
        "monitor" => Role::Monitor,
        _ => return Err("the role must be read or monitor"),
    };
    let digest = digest_of_hex(next()?).ok_or("a SHA-256 has 64 hexadecimal digits")?;
    let requests_max = parts.next().map(|count| count.parse().ok().filter(|count| *count > 0));
    if requests_max == Some(None) || parts.next().is_some() {
        return Err("after the SHA-256 only a number of requests, 1 or more, may follow");
    }
    Ok(Key { name, role, digest, requests_max: requests_max.flatten(), running: Arc::default() })
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
            let checked = keys.check(&headers, Role::Read).map_err(|error| error.kind);
            checked.map(|used| used.unwrap().name().to_string())
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
        assert!(keys.check(&HeaderMap::new(), Role::Monitor).is_err());
        assert!(Keys::default().check(&HeaderMap::new(), Role::Read).unwrap().is_none());
    }

    #[test]
    fn a_key_has_a_role_and_a_limit_and_both_change_with_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let write = |line: &str| std::fs::write(file.path(), format!("web {line}\n")).unwrap();
        let bearer = HeaderValue::from_static("Bearer 0123456789abcdef");
        let headers = HeaderMap::from_iter([(header::AUTHORIZATION, bearer)]);
        write(&format!("monitor {DIGEST}"));
        let keys = Keys::read(file.path()).unwrap();
        let check = |role| keys.check(&headers, role).map_err(|error| error.kind);
        assert!(check(Role::Monitor).is_ok());
        assert_eq!(check(Role::Read).unwrap_err(), ApiErrorKind::Forbidden);

        write(&format!("read {DIGEST} 2"));
        keys.reload().unwrap();
        let first = check(Role::Read).unwrap();
        write(&format!("read {DIGEST} 3"));
        keys.reload().unwrap();
        let others = [check(Role::Read).unwrap(), check(Role::Monitor).unwrap()];
        assert_eq!(check(Role::Read).unwrap_err(), ApiErrorKind::Overloaded);
        drop(first);
        drop(check(Role::Read).unwrap());

        write("read 00");
        assert!(keys.reload().is_err());
        assert!(check(Role::Read).is_ok());
        drop(others);
        assert_eq!(keys.keys.read().unwrap()[0].running.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, message) in [
            ("", "has no key"),
            ("web read", "line 1: expected a name"),
            ("web admin 00", "line 1: the role"),
            ("\nweb read 00", "line 2: a SHA-256"),
            (&format!("web read {DIGEST} 0"), "line 1: after the SHA-256"),
            (&format!("web read {DIGEST} 2 3"), "line 1: after the SHA-256"),
            (&format!("web read {DIGEST}\nother monitor {DIGEST}"), "line 2: another name"),
            (&format!("web read {DIGEST}\nweb read {DIGEST}"), "line 2: another key"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        assert!(Keys::read(Path::new("/nonexistent/keys")).is_err());
    }
}
