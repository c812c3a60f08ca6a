//! TLS: the server's certificate, and its replacement while the server runs.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use keyward::read_secret_file;
use tokio::time::sleep;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{Error as TlsError, InconsistentKeys, ServerConfig};
use x509_cert::der::Decode;

use crate::app::App;
use crate::server::StartError;

/// The largest file that is taken for one with certificates or a private key.
const FILE_BYTES_MAX: usize = 1024 * 1024;
/// How often the files are looked at by default.
pub(crate) const RELOAD_INTERVAL_DEFAULT: Duration = Duration::from_secs(5);

/// The certificate of a server, and its private key. Files that change while the server runs are read
/// again within seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The file with its certificate and those above it, as PEM.
    pub cert: PathBuf,
    /// The file with the private key of the certificate, as PEM; refused if every account may access
    /// it.
    pub key: PathBuf,
}

/// A certificate with its key, as the files held them.
#[derive(Debug)]
struct Pair {
    shown: Arc<CertifiedKey>,
    /// From when and until when it is valid, if it can be read.
    validity: Option<(Timestamp, Timestamp)>,
}

/// What both files held: of files that cannot be read, why not.
type Contents = (Result<Vec<u8>, String>, Result<String, String>);

impl Tls {
    /// Refuses files that cannot be used.
    pub(crate) fn check(&self) -> Result<(), StartError> {
        Certificate::load(self).map(drop)
    }

    fn contents(&self) -> Contents {
        let cert = read(&self.cert).map_err(|error| unread(&error));
        let key = read_secret_file(&self.key, FILE_BYTES_MAX).map_err(|error| unread(&error));
        (cert, key)
    }

    fn pair(&self, contents: &Contents) -> Result<Pair, StartError> {
        let (cert, key) = contents;
        let cert = cert.as_ref().map_err(|reason| {
            let hint = "Check the path in tls.cert (--tls-cert), and that the server's account may \
                        read the file.";
            unusable(&self.cert, reason, hint)
        })?;
        let certificates = self.certificates(cert)?;
        let key = key.as_ref().map_err(|reason| {
            let hint = "Check the path in tls.key (--tls-key), and that the server's account may \
                        read the file, and others may not: chmod 600.";
            unusable(&self.key, reason, hint)
        })?;
        let key = self.private_key(key)?;
        let validity = certificates.first().and_then(validity);
        let provider = default_provider();
        let shown = CertifiedKey::from_der(certificates.clone(), key.clone_key(), &provider);
        match shown {
            Ok(shown) => Ok(Pair { shown: Arc::new(shown), validity }),
            Err(TlsError::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                Err(self.mismatch(&certificates, &key, &provider))
            }
            Err(TlsError::InvalidCertificate(_)) => Err(unusable(
                &self.cert,
                "its first certificate is damaged",
                "Give the PEM file as the authority issued it.",
            )),
            Err(_) => Err(unusable(
                &self.key,
                "this kind of private key is not supported",
                "Use an ECDSA (P-256, P-384), Ed25519 or RSA (2048 to 8192 bits) key.",
            )),
        }
    }

    fn certificates(&self, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, StartError> {
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let (reason, hint) = match found {
            Ok(found) if !found.is_empty() => return Ok(found),
            Ok(_) if contains(pem, "PRIVATE KEY-----") => {
                ("it holds a private key, and no certificate", "Are tls.cert and tls.key swapped?")
            }
            _ => (
                "it holds no certificate in PEM form",
                "A PEM certificate begins with -----BEGIN CERTIFICATE-----. Convert a DER file with: \
                 openssl x509 -inform der -in FILE -out NEW.",
            ),
        };
        Err(unusable(&self.cert, reason, hint))
    }

    fn private_key(&self, pem: &str) -> Result<PrivateKeyDer<'static>, StartError> {
        let (reason, hint) = match PrivateKeyDer::from_pem_slice(pem.as_bytes()) {
            Ok(key) => return Ok(key),
            Err(_) if pem.contains("ENCRYPTED") => (
                "the private key is encrypted with a passphrase",
                "Give it without one: openssl pkey -in FILE -out NEW, and chmod 600 NEW.",
            ),
            Err(_) if pem.contains("BEGIN CERTIFICATE") => {
                ("it holds a certificate, and no private key", "Are tls.cert and tls.key swapped?")
            }
            Err(_) => (
                "it holds no private key in PEM form",
                "A PEM private key begins with -----BEGIN PRIVATE KEY-----, or names its kind there.",
            ),
        };
        Err(unusable(&self.key, reason, hint))
    }

    /// Why a key is not that of the first certificate.
    fn mismatch(
        &self,
        certificates: &[CertificateDer<'static>],
        key: &PrivateKeyDer<'static>,
        provider: &CryptoProvider,
    ) -> StartError {
        let fits = |one: &CertificateDer<'static>| {
            CertifiedKey::from_der(vec![one.clone()], key.clone_key(), provider).is_ok()
        };
        if certificates.iter().any(fits) {
            let reason = "the server's own certificate is not the first one in it";
            let hint = "Put the server's certificate first, then those above it in their order.";
            return unusable(&self.cert, reason, hint);
        }
        let reason = format!("it is not the key of the certificate in {}", self.cert.display());
        let hint = "Use the key that the certificate was requested with. A pair prints the same for: \
                    openssl x509 -noout -pubkey -in CERT, and openssl pkey -pubout -in KEY.";
        unusable(&self.key, reason, hint)
    }
}

/// The certificate that a server shows. Its files can change while the server runs.
#[derive(Debug)]
pub(crate) struct Certificate {
    files: Tls,
    pair: RwLock<Arc<Pair>>,
}

impl Certificate {
    pub fn load(files: &Tls) -> Result<Arc<Self>, StartError> {
        let pair = RwLock::new(Arc::new(files.pair(&files.contents())?));
        Ok(Arc::new(Self { files: files.clone(), pair }))
    }

    /// What connections are accepted with.
    pub fn config(self: &Arc<Self>) -> Result<Arc<ServerConfig>, StartError> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&self.files.cert, error.to_string(), "Please report this."))?
            .with_no_client_auth()
            .with_cert_resolver(self.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// Warns of a certificate that clients refuse, and tells the metrics when it expires.
    pub fn announce(&self, app: &App) {
        let file = self.files.cert.display();
        let Some((not_before, not_after)) = self.pair().validity else { return };
        app.metrics().certificate_expires(not_after.as_second());
        if not_after < app.now() {
            tracing::warn!(%file, %not_after, "the TLS certificate has expired: clients refuse it");
        }
        if app.now() < not_before {
            tracing::warn!(%file, %not_before, "the TLS certificate is not valid yet: clients refuse it");
        }
    }

    /// Shows new connections what the files hold, whenever they change. Files that cannot be used are
    /// logged and leave everything as it is. Never ends.
    pub async fn keep_fresh(&self, app: &App, interval: Duration) {
        let mut known = None;
        // What could not be used. A pair is often replaced one file after the other, so that what
        // does not fit is only an error if it stays like that.
        let mut unusable: Option<Contents> = None;
        loop {
            let files = self.files.clone();
            let Ok(contents) = tokio::task::spawn_blocking(move || files.contents()).await else {
                return std::future::pending().await;
            };
            // What was there at the start is looked at once more: it may have changed since.
            let is_new = known.as_ref() != Some(&contents);
            match self.files.pair(&contents) {
                _ if !is_new => {}
                Ok(pair) => {
                    let is_other = pair.shown.cert != self.pair().shown.cert;
                    *self.pair.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pair);
                    if is_other {
                        let file = self.files.cert.display();
                        tracing::info!(%file, "the TLS certificate was replaced");
                    }
                    self.announce(app);
                    (known, unusable) = (Some(contents), None);
                }
                Err(error) if unusable.as_ref() == Some(&contents) => {
                    tracing::error!(%error, "the TLS certificate was not replaced: the old one is kept");
                    known = Some(contents);
                }
                Err(_) => unusable = Some(contents),
            }
            sleep(interval).await;
        }
    }

    fn pair(&self) -> Arc<Pair> {
        self.pair.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.pair().shown.clone())
    }
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    File::open(file)?.take(most).read_to_end(&mut bytes)?;
    match bytes.len() > FILE_BYTES_MAX {
        true => Err(io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes"))),
        false => Ok(bytes),
    }
}

/// Why a file cannot be read, without the system's numbers.
fn unread(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "the file does not exist".to_owned(),
        // With a reason of our own, if the file may be read by too many.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_some() => {
            "this account may not read it".to_owned()
        }
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        _ => error.to_string(),
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    memchr::memmem::find(bytes, text.as_bytes()).is_some()
}

/// From when and until when a certificate is valid.
fn validity(certificate: &CertificateDer<'_>) -> Option<(Timestamp, Timestamp)> {
    let certificate = x509_cert::Certificate::from_der(certificate).ok()?;
    let validity = certificate.tbs_certificate.validity;
    let moment = |time: x509_cert::time::Time| {
        let seconds = i64::try_from(time.to_unix_duration().as_secs()).ok()?;
        Timestamp::from_second(seconds).ok()
    };
    Some((moment(validity.not_before)?, moment(validity.not_after)?))
}

fn unusable(file: &Path, reason: impl Into<String>, hint: &'static str) -> StartError {
    StartError::Tls { file: file.to_owned(), reason: reason.into(), hint }
}
