//! Connections that nobody reads along.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use keyward::read_secret_file;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::server::StartError;

/// The largest file that is taken for one with a private key.
const KEY_BYTES_MAX: usize = 1024 * 1024;

/// What a server shows to prove that it is the one. Read when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The file with its certificate and those above it, as PEM.
    pub cert: PathBuf,
    /// The file with the private key of the certificate, as PEM; refused if every account may access
    /// it.
    pub key: PathBuf,
}

impl Tls {
    pub(crate) fn load(&self) -> Result<Arc<ServerConfig>, StartError> {
        let certificates = CertificateDer::pem_file_iter(&self.cert)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| unusable(&self.cert, error))?;
        if certificates.is_empty() {
            return Err(unusable(&self.cert, "there is no certificate in it"));
        }
        let key = read_secret_file(&self.key, KEY_BYTES_MAX)
            .map_err(|error| unusable(&self.key, error))?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
            .map_err(|error| unusable(&self.key, error))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
            .map_err(|error| unusable(&self.cert, error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

fn unusable(file: &Path, error: impl Display) -> StartError {
    StartError::Tls { file: file.to_owned(), reason: error.to_string() }
}
