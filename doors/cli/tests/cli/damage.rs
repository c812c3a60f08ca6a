//! Commands on a store whose data file is damaged: exit code 8, and the rest is saved.

use serde_json::Value;

use crate::sandbox::{Sandbox, is_absent};
use crate::serving::serve;

const PAGE: usize = 4_096;
const COUNT: usize = 3_000;

/// Zeroes the leaf pages that hold a text.
fn zero_leaves(kw: &Sandbox, text: &[u8]) {
    let file = kw.path("data/data.mdb");
    let mut data = std::fs::read(&file).unwrap();
    let mut zeroed = 0;
    for page in data.chunks_mut(PAGE).skip(2) {
        if page[10] == 2 && page.windows(text.len()).any(|bytes| bytes == text) {
            page.fill(0);
            zeroed += 1;
        }
    }
    assert!(zeroed > 0, "no page holds it");
    std::fs::write(&file, data).unwrap();
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_damaged_store_is_refused_with_the_code_for_damage() {
    let kw = Sandbox::filled("item", COUNT);
    zero_leaves(&kw, b"item\x00000500");
    for command in [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["backup", "monday.keyward"],
        &["export"],
        &["export", "-o", "all.jsonl"],
        &["get", "item:000500"],
        &["put", "new", "1"],
        &["scan", "item"],
        &["compact"],
    ] {
        let told = kw.fails(8, command);
        for part in ["damaged: page ", "keyward -s embedded:NEW restore", "export --salvage"] {
            assert!(told.contains(part), "{command:?}: {told}");
        }
    }
    assert!(is_absent(&kw.path("monday.keyward")) && is_absent(&kw.path("all.jsonl")));
}

#[test]
fn salvage_exports_what_can_be_read_and_says_what_cannot() {
    let kw = Sandbox::filled("item", COUNT);
    let whole = kw.run(&["export", "--salvage"]).ok();
    assert_eq!(lines(&whole).len(), COUNT);
    zero_leaves(&kw, b"item\x00000500");

    let ran = kw.run(&["export", "--salvage"]);
    let told = ran.fails_after(8);
    for part in ["read 2,", " of 3,000 entries", "damaged: page ", "could not be read", "import"] {
        assert!(told.contains(part), "{told}");
    }
    let told = kw.run(&["export", "--salvage", "-o", "rest.jsonl"]).fails_after(8);
    assert!(told.contains("could not be read"), "{told}");
    let rest = kw.read("rest.jsonl");
    let saved = lines(&rest);
    assert!(saved.len() < COUNT && saved.len() > COUNT - 300, "{}", saved.len());
    let all: std::collections::HashSet<&str> = whole.lines().collect();
    assert!(rest.lines().all(|line| all.contains(line)));
    assert!(saved.iter().all(|line| line["key"] != "item:000500"));

    kw.ok(&["-s", "embedded:./new", "import", "rest.jsonl", "--raw"]);
    assert_eq!(lines(&kw.ok(&["-s", "embedded:./new", "export"])).len(), saved.len());
    let below = kw.run(&["export", "no:such", "--salvage"]).ended(8);
    assert_eq!(below, "");
}

#[test]
fn salvage_needs_an_embedded_store_that_nobody_has_open() {
    let kw = Sandbox::filled("item", 10);
    let told = kw.fails(4, &["-s", "memory:", "export", "--salvage"]);
    assert!(told.contains("only embedded stores"), "{told}");
    let served = serve(&kw, &[]);
    kw.fails(5, &["export", "--salvage"]);
    let server = format!("http://{}", served.address);
    let told = kw.fails(4, &["--server", &server, "export", "--salvage"]);
    assert!(told.contains("salvaging cannot be done through"), "{told}");
}

#[test]
fn no_damage_makes_an_export_of_anything_but_entries() {
    let kw = Sandbox::filled("item", COUNT);
    kw.ok(&["put", "large", &format!("\"{}\"", "x".repeat(20_000))]);
    let sound = std::fs::read(kw.path("data/data.mdb")).unwrap();
    for seed in 0..20_u64 {
        let mut data = sound.clone();
        // Knuth's generator: the same places every time.
        let mut state = seed;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let page = (2 + random(data.len() / PAGE - 2)) * PAGE;
        match seed % 4 {
            0 => data[page + random(32)] ^= 1 << random(8),
            1 => data[page..page + PAGE].fill(0),
            2 => data[page..page + PAGE].rotate_left(64),
            _ => data.truncate(page + 100),
        }
        std::fs::write(kw.path("data/data.mdb"), data).unwrap();
        let _ = std::fs::remove_file(kw.path("b.keyward"));
        let backup = kw.run(&["backup", "b.keyward"]).code();
        assert!(matches!(backup, Some(0 | 8)), "seed {seed}: {backup:?}");
        let exported = kw.run(&["export"]);
        match exported.code() {
            Some(0) => assert_eq!(lines(&exported.ok()).len(), COUNT + 1, "seed {seed}"),
            code => assert_eq!(code, Some(8), "seed {seed}"),
        }
        let salvaged = kw.run(&["export", "--salvage"]);
        let code = salvaged.code();
        assert!(matches!(code, Some(0 | 8)), "seed {seed}: {code:?}");
        lines(&salvaged.ended(code.unwrap()));
    }
}
