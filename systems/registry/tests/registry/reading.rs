//! Reading policies.

use keyward_registry::{Error, Policy};
use keyward_stores::{Place, on_every_engine};

use crate::fixture::{Fixture, counts};

on_every_engine!(
    policies_are_listed_in_pages_in_the_order_of_names,
    names_and_titles_are_searched_whatever_the_case,
    a_content_is_that_of_the_entry,
);

fn listed(policies: Vec<Policy>) -> Vec<String> {
    policies.into_iter().map(|policy| policy.policy_name).collect()
}

async fn policies_are_listed_in_pages_in_the_order_of_names(place: Place) {
    let f = Fixture::new(place).await;
    let mut names: Vec<String> = (0..25).map(|n| format!("규정 {n}")).collect();
    for name in &names {
        f.repository.write(&format!("{name}.md"), "# T\n");
    }
    f.push().await;
    names.sort();
    for limit in [1, 7, 25, 1_000_000] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = f.registry.policies(after.as_deref(), limit).await.unwrap();
            assert!(page.items.len() <= limit && !page.items.is_empty());
            seen.extend(listed(page.items));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, names, "{limit}");
    }
}

async fn names_and_titles_are_searched_whatever_the_case(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("학칙.md", "# 한국교원대학교 학칙\n").write("Travel.md", "# Reisekosten\n");
    f.repository.write("é.md", "# nothing\n").write("50%.md", "# Half\n");
    f.push().await;
    let search = async |text: &str, limit| {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = f.registry.search(text, after.as_deref(), limit).await.unwrap();
            seen.extend(listed(page.items));
            after = page.next;
            if after.is_none() {
                return seen;
            }
        }
    };
    for limit in [1, 100] {
        assert_eq!(search("교원", limit).await, ["학칙"]);
        assert_eq!(search("TRAVEL", limit).await, ["Travel"]);
        assert_eq!(search("reise", limit).await, ["Travel"]);
        assert_eq!(search("E\u{301}", limit).await, ["é"]);
        assert_eq!(search("%", limit).await, ["50%"]);
        assert_eq!(search("", limit).await.len(), 4);
        assert!(search("nowhere", limit).await.is_empty());
    }
    assert!(matches!(f.registry.search(&"x".repeat(2_000), None, 1).await, Err(Error::Invalid(_))));
}

async fn a_content_is_that_of_the_entry(place: Place) {
    let f = Fixture::new(place).await;
    f.repository.write("a.md", "# A\n");
    f.push().await;
    // The repository moves on; the registry has not yet.
    f.repository.write("a.md", "# A 2\n");
    f.repository.commit("second");
    let content = f.registry.content("a").await.unwrap().unwrap();
    assert_eq!((&content.bytes[..], &*content.policy.title), (&b"# A\n"[..], "A"));
    assert_eq!(f.registry.content("b").await.unwrap(), None);
    assert_eq!(counts(&crate::fixture::sync(&f.registry).await), (0, 1, 0));
    assert_eq!(&f.registry.content("a").await.unwrap().unwrap().bytes[..], b"# A 2\n");
}
