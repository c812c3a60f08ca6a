//! Encrypted connections, as PostgreSQL's `sslmode` means them.

use std::path::Path;
use std::sync::Arc;

use keyward_engine::{Error, ErrorKind, Result};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::config::{Config, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{Options, Tls};

/// Sets how a server is spoken to, and gives what speaks to it.
pub(crate) fn connector(options: &Options, config: &mut Config) -> Result<MakeRustlsConnect> {
    let Options { tls, tls_roots, .. } = options;
    if tls_roots.is_some() && *tls != Tls::VerifyFull {
        let message = "sslrootcert says whom to trust, and only sslmode=verify-full checks that; set \
                       both, or neither";
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    config.ssl_mode(match tls {
        Tls::Disable => SslMode::Disable,
        Tls::Prefer => SslMode::Prefer,
        Tls::Require | Tls::VerifyFull => SslMode::Require,
    });
    let failed = |error| Error::new(ErrorKind::Internal, "cannot set up TLS").caused_by(error);
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    let client = match tls {
        Tls::VerifyFull => builder.with_root_certificates(match tls_roots {
            Some(file) => trusted_by(file)?,
            None => trusted()?,
        }),
        Tls::Disable | Tls::Prefer | Tls::Require => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Unchecked(provider)))
        }
    };
    Ok(MakeRustlsConnect::new(client.with_no_client_auth()))
}

/// The authorities in a file.
fn trusted_by(file: &Path) -> Result<RootCertStore> {
    let misplaced = |reason: &dyn std::fmt::Display| {
        let message = format!("sslrootcert={}: {reason}", file.display());
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
        let message = "sslmode=verify-full needs certificates of authorities, and this machine has \
                       none; install them, or name a file of them with sslrootcert";
        return Err(Error::new(ErrorKind::Misplaced, message));
    }
    Ok(roots)
}

/// Takes any certificate: what `prefer` and `require` mean. The connection is still encrypted, and
/// the server must hold the certificate's key.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
