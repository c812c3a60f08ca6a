use keyward_engine::{ErrorKind, StoreUrl};

#[test]
fn a_url_is_an_engine_a_place_and_options() {
    for (text, engine, place, options) in [
        ("memory:", "memory", "", &[][..]),
        ("memory:?tier=advisory", "memory", "", &[("tier", "advisory")]),
        ("embedded:./data", "embedded", "./data", &[]),
        ("embedded:/a b/학:c", "embedded", "/a b/학:c", &[]),
        ("embedded:C:\\data", "embedded", "C:\\data", &[]),
        ("embedded:d?x=1&y=2", "embedded", "d", &[("x", "1"), ("y", "2")]),
        ("embedded:d?x=a=b", "embedded", "d", &[("x", "a=b")]),
        ("embedded:d?x=", "embedded", "d", &[("x", "")]),
        ("embedded:d?", "embedded", "d", &[]),
        ("embedded:d?x=1&&y=2&", "embedded", "d", &[("x", "1"), ("y", "2")]),
        ("postgres://user@host:5432/db?x=?", "postgres", "//user@host:5432/db", &[("x", "?")]),
    ] {
        let mut url: StoreUrl = text.parse().unwrap();
        assert_eq!((url.engine(), url.place()), (engine, place), "{text}");
        let again: StoreUrl = url.to_string().parse().unwrap();
        assert_eq!(again, url, "{text} is shown as {url}");
        for (name, value) in options {
            assert_eq!(url.take(name).as_deref(), Some(*value), "{text}");
            assert_eq!(url.take(name), None, "an option is taken once");
        }
        url.finish(&[]).unwrap();
    }
}

#[test]
fn a_text_that_is_no_url_is_refused_with_an_example() {
    for (text, says) in [
        ("", "embedded:./data"),
        ("data", "embedded:./data"),
        ("./data", "embedded:./data"),
        ("memory:?tier", "tier=VALUE"),
        ("memory:?tier=atomic&tier=advisory", "\"tier\" stands twice"),
    ] {
        let error = text.parse::<StoreUrl>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains(says), "{text}: {error}");
    }
}

#[test]
fn an_option_that_nobody_took_is_refused_with_those_that_exist() {
    let url: StoreUrl = "memory:?teir=advisory".parse().unwrap();
    let error = url.clone().finish(&["tier", "history"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("\"teir\""), "{error}");
    assert!(error.message().contains("it takes tier, history"), "{error}");
    assert!(url.clone().finish(&[]).unwrap_err().message().contains("it takes none"));
    let mut url = url;
    url.also_takes(&["layout"]);
    assert!(url.finish(&["tier"]).unwrap_err().message().contains("it takes tier, layout"));
}

#[test]
fn a_password_is_never_shown() {
    for (text, shown) in [
        ("postgres://ada:s3cret@host:5432/db?store=x", "postgres://ada:…@host:5432/db?store=x"),
        ("postgres://ada:s3:cr@et@host/db", "postgres://ada:…@host/db"),
        ("postgres://host/db?sslpassword=s3cret", "postgres://host/db?sslpassword=…"),
        ("postgres://ada@host/a:b@c", "postgres://ada@host/a:b@c"),
        ("embedded:./a:b@c", "embedded:./a:b@c"),
        ("couchdb://ada:se/cr@et@host/db", "couchdb://ada:…@host/db"),
        (
            "forge-kvs://app?token=abc&token_file=/run/t",
            "forge-kvs://app?token=…&token_file=/run/t",
        ),
        ("dynamodb://eu/t?secret_access_key=abc", "dynamodb://eu/t?secret_access_key=…"),
        ("dynamodb://eu/t?endpoint=http://a:b@h:1", "dynamodb://eu/t?endpoint=http://a:…@h:1"),
        ("dynamodb://eu/t?endpoint=http://h:1", "dynamodb://eu/t?endpoint=http://h:1"),
        (
            "cloudflare-kv://a/n?coordinator=postgres%3A%2F%2Fme%3Ase%2540cret%40h%2Fd%3Fstore=x%26b=1",
            "cloudflare-kv://a/n?coordinator=postgres://me:…@h/d?b=1%26store=x",
        ),
        (
            "cloudflare-kv://a/n?coordinator=forge-kvs://app?token=abc",
            "cloudflare-kv://a/n?coordinator=forge-kvs://app?token=…",
        ),
        (
            "cloudflare-kv://a/n?coordinator=embedded:./50%25",
            "cloudflare-kv://a/n?coordinator=embedded:./50%25",
        ),
    ] {
        let url: StoreUrl = text.parse().unwrap();
        assert_eq!(url.to_string(), shown);
        assert_eq!(format!("{url:?}"), format!("StoreUrl({shown})"));
    }
}

#[test]
fn a_percent_encoded_option_is_decoded() {
    let taken = |text: &str| text.parse::<StoreUrl>().unwrap().take_decoded("at");
    for (text, value) in [
        ("x:?at=embedded:./coord", "embedded:./coord"),
        ("x:?at=postgres://h/d?a=1%26b=2", "postgres://h/d?a=1&b=2"),
        ("x:?at=%C3%A9%25", "é%"),
    ] {
        assert_eq!(taken(text).unwrap().as_deref(), Some(value));
    }
    assert_eq!(taken("x:?other=1").unwrap(), None);
    for text in ["x:?at=%", "x:?at=%4", "x:?at=%+4", "x:?at=%zz", "x:?at=%ff", "x:?at=%é"] {
        let error = taken(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{text}");
        assert!(error.message().contains("\"at\""), "{error}");
    }
}
