//! Encrypted connections, and certificates that are checked or not.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use keyward_engine::{Error, ErrorKind, Store};
use keyward_postgres::{Options, Postgres, Tls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::child::{Child, Part, say};
use crate::own_server::OwnServer;
use crate::proxy::Proxy;
use crate::server::{key, put, runtime};

/// An authority that signs certificates.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A certificate for a host, and its key.
    fn certify(&self, host: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([host.to_owned()]).unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }
}

/// A server that encrypts, with a certificate for `localhost`, and files of two authorities: the one
/// that signed it and another one. The user `sealed` is let in with a password, encrypted only.
struct Sealed {
    server: OwnServer,
    scratch: TempDir,
}

impl Sealed {
    async fn start() -> Self {
        let (authority, other) = (Authority::new(), Authority::new());
        let (certificate, private_key) = authority.certify("localhost");
        let mut server = OwnServer::new().set("ssl=on");
        server.write("server.crt", &certificate);
        server.write("server.key", &private_key);
        server.write(
            "pg_hba.conf",
            "hostnossl all sealed 127.0.0.1/32 reject\n\
             hostssl all sealed 127.0.0.1/32 scram-sha-256\n\
             host all all 127.0.0.1/32 trust\n",
        );
        server.start().await;
        let create = "CREATE ROLE sealed SUPERUSER LOGIN PASSWORD 'wax'";
        server.administrator().await.batch_execute(create).await.unwrap();
        let scratch = tempfile::tempdir().unwrap();
        fs::write(scratch.path().join("right.pem"), authority.0.pem()).unwrap();
        // Of several authorities, one is enough.
        let both = format!("{}{}", other.0.pem(), authority.0.pem());
        fs::write(scratch.path().join("both.pem"), both).unwrap();
        fs::write(scratch.path().join("wrong.pem"), other.0.pem()).unwrap();
        fs::write(scratch.path().join("empty.pem"), "nothing\n").unwrap();
        Self { server, scratch }
    }

    fn address(&self, user: &str, host: &str) -> String {
        self.server.address().replace("keyward@127.0.0.1", &format!("{user}@{host}"))
    }

    fn roots(&self, name: &str) -> Option<PathBuf> {
        Some(self.scratch.path().join(name))
    }

    async fn open(&self, host: &str, tls: Tls, tls_roots: Option<PathBuf>) -> Result<Store, Error> {
        let address = self.address("sealed:wax", host);
        let connect_timeout = Duration::from_secs(60);
        let options = Options { tls, tls_roots, connect_timeout, ..Options::default() };
        Postgres::open(&address, options).await.map(Store::new)
    }
}

async fn works(store: &Store) {
    store.put(key("a"), put("1")).await.unwrap();
    assert!(store.get(&key("a")).await.unwrap().is_some());
}

#[test]
fn connections_are_encrypted_as_asked_for() {
    runtime().block_on(async {
        let sealed = Sealed::start().await;
        for (tls, roots) in [
            (Tls::Prefer, None),
            (Tls::Require, None),
            (Tls::VerifyFull, sealed.roots("right.pem")),
            (Tls::VerifyFull, sealed.roots("both.pem")),
        ] {
            // Not encrypted, this user would not be let in.
            works(&sealed.open("localhost", tls, roots).await.unwrap()).await;
        }
        // Who does not check does not care about the name, either.
        works(&sealed.open("127.0.0.1", Tls::Require, None).await.unwrap()).await;

        let plain = sealed.open("localhost", Tls::Disable, None).await.err().unwrap();
        assert_eq!(plain.kind(), ErrorKind::Misplaced, "{plain}");
        assert!(plain.message().contains("sslmode"), "{plain}");
    });
}

#[test]
fn certificates_are_checked_by_verify_full() {
    runtime().block_on(async {
        let sealed = Sealed::start().await;
        for (host, roots, says) in [
            ("localhost", "wrong.pem", "invalid peer certificate"),
            ("127.0.0.1", "right.pem", "not valid for name"),
            ("localhost", "empty.pem", "no certificate"),
            ("localhost", "missing.pem", "missing.pem"),
        ] {
            let refused = sealed.open(host, Tls::VerifyFull, sealed.roots(roots)).await;
            let refused = refused.err().unwrap();
            assert_eq!(refused.kind(), ErrorKind::Misplaced, "{refused}");
            assert!(refused.message().contains(says), "{refused}");
        }
        // The authorities of this machine know nothing of ours.
        let unknown = sealed.open("localhost", Tls::VerifyFull, None).await.err().unwrap();
        assert_eq!(unknown.kind(), ErrorKind::Misplaced, "{unknown}");
        for tls in [Tls::Disable, Tls::Prefer, Tls::Require] {
            let roots = sealed.roots("right.pem");
            let unchecked = sealed.open("localhost", tls, roots).await.err().unwrap();
            assert_eq!(unchecked.kind(), ErrorKind::Invalid, "{unchecked}");
            assert!(unchecked.message().contains("verify-full"), "{unchecked}");
        }
    });
}

/// A whole certificate chain, but of a server that somebody else stands in for.
#[test]
fn a_store_that_is_open_does_not_follow_to_a_server_with_another_certificate() {
    runtime().block_on(async {
        let mut sealed = Sealed::start().await;
        let proxy = Proxy::before(&sealed.server).await;
        let address = proxy.address().replace("keyward:@127.0.0.1", "sealed:wax@localhost");
        let options = Options {
            tls: Tls::VerifyFull,
            tls_roots: sealed.roots("right.pem"),
            connect_timeout: Duration::from_secs(60),
            ..Options::default()
        };
        let store = Store::new(Postgres::open(&address, options).await.unwrap());
        works(&store).await;
        // The same one again is fine.
        sealed.server.stop().await;
        sealed.server.start().await;
        works(&store).await;
        let (certificate, private_key) = Authority::new().certify("localhost");
        sealed.server.stop().await;
        sealed.server.write("server.crt", &certificate);
        sealed.server.write("server.key", &private_key);
        sealed.server.start().await;
        let refused = store.put(key("a"), put("2")).await.err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::Misplaced, "{refused}");
        assert!(refused.message().contains("invalid peer certificate"), "{refused}");
    });
}

#[test]
fn authorities_can_be_named_in_the_environment() {
    const TEST: &str = "encryption::authorities_can_be_named_in_the_environment";
    if let Some(mut part) = Part::given() {
        part.options.tls = Tls::VerifyFull;
        return runtime().block_on(async {
            match Postgres::open(&part.address, part.options).await {
                Ok(_) => say("opened"),
                Err(error) => say(&format!("{:?}", error.kind())),
            }
        });
    }
    let runtime = runtime();
    let sealed = runtime.block_on(Sealed::start());
    let address = sealed.address("sealed:wax", "localhost");
    for (file, says) in [("right.pem", "opened"), ("wrong.pem", "Misplaced")] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env("SSL_CERT_FILE", sealed.scratch.path().join(file));
        let (said, _) = Child::start_by(&mut command, TEST, "open", &address, "default").finish();
        assert_eq!(said.first().map(String::as_str), Some(says));
    }
}

/// The network may fail at any moment, also at this one: nothing is wrong with the place.
#[test]
fn a_handshake_that_is_cut_off_can_be_tried_again() {
    runtime().block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                // Asked whether it encrypts, it says yes, and is gone in the middle of what follows.
                let mut bytes = [0; 64];
                client.read_exact(&mut bytes[..8]).await.unwrap();
                client.write_all(b"S").await.unwrap();
                client.read_exact(&mut bytes).await.unwrap();
            }
        });
        let address = format!("postgres://keyward@localhost:{port}/postgres");
        let options = Options { tls: Tls::Require, ..Options::default() };
        let cut = Postgres::open(&address, options).await.err().unwrap();
        assert_eq!(cut.kind(), ErrorKind::Unavailable, "{cut}");
        assert!(cut.message().contains("TLS"), "{cut}");
    });
}
