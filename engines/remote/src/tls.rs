//! Connections that nobody reads along, to a server that proves to be the one.

use std::path::Path;
use std::sync::Arc;

use keyward_engine::{Error, ErrorKind, Result};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::Options;

/// Whom to trust. A server without TLS needs nobody, so that a machine without authorities can speak
/// to it.
pub(crate) fn config(options: &Options, is_needed: bool) -> Result<ClientConfig> {
    let roots = match &options.tls_roots {
        Some(file) => trusted_by(file)?,
        None if is_needed => trusted()?,
        None => RootCertStore::empty(),
    };
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::new(ErrorKind::Internal, "cannot set up TLS").caused_by(error))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// The authorities in a file.
fn trusted_by(file: &Path) -> Result<RootCertStore> {
    let misplaced = |reason: &dyn std::fmt::Display| {
        let message = format!("tls_roots={}: {reason}", file.display());
        Error::new(ErrorKind::Misplaced, message)
    };
    let mut roots = RootCertStore::empty();
    for found in CertificateDer::pem_file_iter(file).map_err(|error| misplaced(&error))? {
        let certificate = found.map_err(|error| misplaced(&error))?;
        roots.add(certificate).map_err(|error| misplaced(&error))?;
    }
    if roots.is_empty() {
        return Err(misplaced(&"there is no certificate in the file; it must be PEM"));
    }
    Ok(roots)
}

/// The authorities that this machine trusts.
fn trusted() -> Result<RootCertStore> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let message = "https needs certificates of authorities, and this machine has none; install \
                       them, or name a file of them with tls_roots or SSL_CERT_FILE";
        return Err(Error::new(ErrorKind::Misplaced, message));
    }
    Ok(roots)
}
