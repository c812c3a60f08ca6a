//! Names of paths, as a schema declares them.

use keyward_engine::{Store, SystemClock};
use keyward_locks::{Error, LockPath, Locks, Mode, Options, Request, Root};
use keyward_memory::Memory;
use keyward_schema::{EXAMPLE, Schema};

use crate::fixture::{key, path};

/// A root of the example's locks, whose roots are the pages' own names here.
fn root(name: &str) -> Root {
    let text = EXAMPLE.replace("root = \"shared:agreement:{page}\"", "root = \"{page}\"");
    let schema =
        Schema::parse(&text, "schema.toml").unwrap_or_else(|problems| panic!("{problems}"));
    let options = Options { trees: schema.locks, ..Options::default() };
    let locks = Locks::new(Store::new(Memory::new()), SystemClock, options).unwrap();
    locks.root(key(name)).unwrap()
}

#[test]
fn the_names_of_a_pages_locks_are_read_and_shown() {
    let page = root("p1");
    for (name, means) in [
        ("p1", ""),
        ("policies", "policies"),
        ("issues", "issues"),
        ("policy:123", "policies:123"),
        ("policy:123:fr", "policies:123:fr"),
        ("issue:7", "issues:7"),
    ] {
        assert_eq!(page.path(name).unwrap(), path(means), "{name}");
        assert_eq!(page.name(&path(means)), name);
    }
    assert!(page.path("").unwrap().is_root());
    // A page that is called like one of its locks.
    let odd = root("policies");
    assert_eq!(odd.path("policies").unwrap(), path("policies"));
    assert_eq!(odd.name(&LockPath::root()), "");
    assert!(odd.path("").unwrap().is_root());
}

#[tokio::test]
async fn a_path_outside_the_tree_is_refused_with_what_there_is() {
    let page = root("p1");
    for (name, says) in
        [("issue:7:votes", "the lock tree agreement has"), ("policis:1", "did you mean policies")]
    {
        let refused = page.path(name).unwrap_err();
        assert!(matches!(refused, Error::OutsideTree(_)));
        assert!(refused.to_string().contains(says), "{refused}");
    }
    let asked = [path("policy:1")];
    let refused = page.acquire(&asked, Mode::Exclusive, &Request::default()).await.unwrap_err();
    assert!(matches!(refused, Error::OutsideTree(_)), "{refused}");
    let asked = [page.path("policy:1").unwrap()];
    assert!(page.acquire(&asked, Mode::Exclusive, &Request::default()).await.is_ok());
    // What belongs to no tree takes any path.
    let free = root("anything:else");
    assert_eq!(free.path("x:y").unwrap(), path("x:y"));
}
