//! TLS: the certificate and its key are read from files, and again when the server is told to. New
//! connections use what was read last.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use tierdex::{Error, Result};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The files of a certificate, both PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate of the server, and then those of the authorities that signed it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// TLS of a server.
pub(crate) struct Tls {
    files: TlsFiles,
    config: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// [`Error::Usage`] if a file has no certificate or no key, or the key belongs to another certificate;
    /// [`Error::Storage`] if a file cannot be read.
    pub(crate) fn read(files: &TlsFiles) -> Result<Tls> {
        Ok(Tls { files: files.clone(), config: RwLock::new(read_config(files)?) })
    }

    /// Reads the files again.
    ///
    /// # Errors
    /// As [`Tls::read`]; then the certificate stays as it was.
    pub(crate) fn reload(&self) -> Result<()> {
        let config = read_config(&self.files)?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    /// What accepts the next connection.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone().into()
    }
}

fn read_config(files: &TlsFiles) -> Result<Arc<ServerConfig>> {
    let TlsFiles { certificate, key } = files;
    let chain = pem_of(certificate)?;
    let chain: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&chain).collect();
    let chain = chain.map_err(|error| wrong(certificate, "certificate", &error))?;
    if chain.is_empty() {
        return Err(wrong(certificate, "certificate", &pem::Error::NoItemsFound));
    }
    let private = PrivateKeyDer::from_pem_slice(&pem_of(key)?);
    let private = private.map_err(|error| wrong(key, "private key", &error))?;
    let failed = |error| {
        let (certificate, key) = (certificate.display(), key.display());
        Error::Usage(format!("the certificate {certificate} cannot be used with the key {key}: {error}"))
    };
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(failed)?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, private).map_err(failed)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn pem_of(path: &Path) -> Result<Vec<u8>> {
    let failed = |error| tierdex::io::Error::from_os("read", path.display().to_string(), &error);
    Ok(std::fs::read(path).map_err(failed)?)
}

fn wrong(path: &Path, what: &str, error: &pem::Error) -> Error {
    let path = path.display();
    match error {
        pem::Error::NoItemsFound => {
            Error::Usage(format!("{path} has no {what} in the format PEM; encrypted keys are not supported"))
        }
        error => Error::Usage(format!("{path} is no {what} in the format PEM: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertifiedKey, generate_simple_self_signed};

    /// A certificate and its key, as PEM.
    fn generated() -> (String, String) {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_string()]).unwrap();
        (cert.pem(), signing_key.serialize_pem())
    }

    #[test]
    fn wrong_files_are_named_and_a_failed_reload_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let files =
            TlsFiles { certificate: folder.path().join("cert.pem"), key: folder.path().join("key.pem") };
        let (cert, key) = generated();
        let (_, other) = generated();
        let broken = cert.replace("MII", "%%%");
        for (cert, key, message) in [
            ("", &*key, "cert.pem has no certificate"),
            (&*key, &*key, "cert.pem has no certificate"),
            (&*broken, &*key, "cert.pem is no certificate"),
            (&*cert, "", "key.pem has no private key"),
            (&*cert, &*other, "cannot be used with the key"),
        ] {
            std::fs::write(&files.certificate, cert).unwrap();
            std::fs::write(&files.key, key).unwrap();
            let error = Tls::read(&files).err().unwrap().to_string();
            assert!(error.contains(message), "{error}");
        }
        std::fs::write(&files.key, &key).unwrap();
        let tls = Tls::read(&files).unwrap();
        let before = tls.config.read().unwrap().clone();
        std::fs::write(&files.key, &other).unwrap();
        assert!(tls.reload().is_err());
        assert!(Arc::ptr_eq(&before, &tls.config.read().unwrap()));
        std::fs::remove_file(&files.key).unwrap();
        assert!(tls.reload().unwrap_err().to_string().contains("key.pem"));
        std::fs::write(&files.key, &key).unwrap();
        tls.reload().unwrap();
        assert!(!Arc::ptr_eq(&before, &tls.config.read().unwrap()));
    }
}
