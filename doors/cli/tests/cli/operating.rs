//! For operators: JSON logs, certificate errors, CORS origins.

use serde_json::Value;

use crate::sandbox::Sandbox;
use crate::serving::{send, serve};

#[test]
fn numbers_are_numbers_in_the_json_log() {
    let kw = Sandbox::new();
    let served = serve(&kw, &["--log", "json", "--log-level", "info"]);
    let put = "PUT /v1/stores/main/entries/a HTTP/1.1\r\n";
    assert_eq!(send(&served.address, put, "1").unwrap().0, 200);
    let missing = "GET /v1/stores/main/entries/none HTTP/1.1\r\n";
    assert_eq!(send(&served.address, missing, "").unwrap().0, 404);
    let mut statuses = Vec::new();
    while statuses.len() < 2 {
        let line = served.process.next_note();
        let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        let fields = line["fields"].as_object().unwrap();
        for (name, value) in fields {
            let text = value.as_str().unwrap_or_default();
            assert!(text.parse::<f64>().is_err(), "{name} is a number as text: {line}");
        }
        if line["fields"]["message"] == "answered" {
            assert!(line["fields"]["took_us"].is_u64(), "{line}");
            statuses.push(line["fields"]["status"].as_u64().unwrap());
        }
    }
    assert_eq!(statuses, [200, 404]);
}

#[test]
fn a_certificate_that_is_not_trusted_is_told_with_the_right_hint() {
    let kw = Sandbox::new();
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    kw.write("cert.pem", &pair.cert.pem());
    kw.write_secret("key.pem", &pair.signing_key.serialize_pem(), 0o600);
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    kw.write("other.pem", &other.cert.pem());
    let served = serve(&kw, &["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    let port = served.address.rsplit_once(':').unwrap().1;
    let run = |roots: &str, server: &str| {
        let mut command = kw.command(&["ls"]);
        command.env_remove("KEYWARD_STORE").env("KEYWARD_SERVER", server);
        command.env("SSL_CERT_FILE", kw.path(roots)).env_remove("SSL_CERT_DIR");
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let https = format!("https://localhost:{port}");
    assert_eq!(run("cert.pem", &https), (Some(0), String::new()));
    let (code, told) = run("other.pem", &https);
    assert_eq!(code, Some(5), "{told}");
    assert!(told.contains("not from an authority that this machine trusts"), "{told}");
    assert!(told.contains("hint: ") && told.contains("SSL_CERT_FILE="), "{told}");
    assert!(!told.contains("Try again"), "{told}");
    let (_, told) = run("cert.pem", &format!("https://127.0.0.1:{port}"));
    assert!(told.contains("is for localhost, not for 127.0.0.1"), "{told}");
    let (_, told) = run("cert.pem", &format!("http://localhost:{port}"));
    assert!(told.contains(&format!("Use https://localhost:{port}")), "{told}");
    served.process.terminate();
    assert_eq!(served.process.ended(), Some(0));
}

#[test]
fn origins_come_from_the_flag_the_variable_and_the_file() {
    let kw = Sandbox::new();
    kw.write("c.toml", "[server]\ncors_origins = [\"https://file.example\"]\n");
    let origins = |arguments: &[&str], variable: Option<&str>| {
        let arguments = [&["serve", "--check", "--json", "--config", "c.toml"], arguments].concat();
        let mut command = kw.command(&arguments);
        if let Some(variable) = variable {
            command.env("KEYWARD_CORS_ORIGINS", variable);
        }
        let output = command.output().unwrap();
        let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let told = told["server"]["cors_origins"].to_string();
        (told, String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(origins(&[], None).0, r#"["https://file.example"]"#);
    assert_eq!(origins(&[], Some("")).0, r#"["https://file.example"]"#);
    let both = Some("https://a.example,http://localhost:5173");
    assert_eq!(origins(&[], both).0, r#"["https://a.example","http://localhost:5173"]"#);
    assert_eq!(
        origins(&["--cors-origin", "https://b.example"], both).0,
        r#"["https://b.example"]"#
    );
    for wrong in ["*", "null", "https://a.example/"] {
        let (_, told) = origins(&["--cors-origin", wrong], None);
        assert!(told.contains("cannot be allowed as an origin"), "{told}");
        assert!(told.contains("--cors-origin"), "{told}");
    }
}
