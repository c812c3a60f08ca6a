//! Names of policies.

use keyward_registry::{NameError, PolicyName};

#[test]
fn a_name_is_the_base_name_without_the_extension() {
    for (path, name) in [
        ("policies/성균관대학교_학칙.md", "성균관대학교_학칙"),
        ("a.MD", "a"),
        ("a/b.c/d.e.md", "d.e"),
        ("md", "md"),
        ("notes.txt", "notes.txt"),
        ("한.md.md", "한.md"),
        ("x/공백 있는 이름.Md", "공백 있는 이름"),
    ] {
        assert_eq!(PolicyName::from_path(path).unwrap().as_str(), name, "{path}");
        assert_eq!(PolicyName::from_path_bytes(path.as_bytes()).unwrap().as_str(), name);
    }
}

#[test]
fn a_name_is_the_same_however_its_letters_are_put_together() {
    let (composed, decomposed) = ("학칙.md", "\u{1112}\u{1161}\u{11a8}\u{110e}\u{1175}\u{11a8}.md");
    assert_ne!(composed, decomposed);
    let name = PolicyName::from_path(decomposed).unwrap();
    assert_eq!(name, PolicyName::from_path(composed).unwrap());
    assert_eq!(name.to_string(), "학칙");
}

#[test]
fn what_is_no_name_is_refused() {
    for (path, error) in [
        ("", NameError::Empty),
        (".md", NameError::Empty),
        ("a/.md", NameError::Empty),
        ("...md", NameError::Dots),
        ("a/.", NameError::Dots),
        ("a/..", NameError::Dots),
        ("a\u{7}.md", NameError::Control),
        ("a\n.md", NameError::Control),
        ("a\u{85}.md", NameError::Control),
        ("a\\b.md", NameError::Separator),
    ] {
        assert_eq!(PolicyName::from_path(path), Err(error), "{path:?}");
    }
    assert_eq!(PolicyName::new("a/b"), Err(NameError::Separator));
    assert_eq!(PolicyName::from_path_bytes(b"\xff.md"), Err(NameError::NotUnicode));
    let at_most = "가".repeat(66) + "ab";
    assert_eq!(at_most.len(), 200);
    assert!(PolicyName::new(&at_most).is_ok());
    assert_eq!(PolicyName::new(&(at_most + "c")), Err(NameError::TooLong(201)));
    assert!(PolicyName::new(&"x".repeat(1 << 20)).is_err());
}
