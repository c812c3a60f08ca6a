//! A schema as a page for people.

mod entry;
mod markdown;
mod space;
mod value;

use crate::shape::Shape;
use crate::url::without_secrets;
use crate::{LockTree, Schema};
use markdown::{Page, code, row_text};

/// Writes a schema as a Markdown page: stores, keys, and for each space its values, indexes,
/// lifetime, owner and queries, with what answers them. The same schema always gives the same page.
pub fn docs_page(schema: &Schema) -> String {
    let mut page = Page::new("Key schema");
    page.line("What the stores hold. Written from the schema file: change that, not this page.");
    stores(schema, &mut page);
    keys(schema, &mut page);
    for space in &schema.spaces {
        space::write(space, &mut page);
    }
    if !schema.locks.is_empty() {
        page.heading(2, "Locks");
        page.line(
            "Whoever holds a path keeps others from that path, from every path above it and from \
             every path below it.",
        );
        for tree in &schema.locks {
            locks(tree, &mut page);
        }
    }
    page.finish()
}

fn stores(schema: &Schema, page: &mut Page) {
    page.heading(2, "Stores");
    let rows = schema.stores.iter().map(|store| {
        let place = store
            .url
            .as_deref()
            .map_or_else(|| "said when it is opened".to_owned(), |url| code(&without_secrets(url)));
        let place = match store.coordinator.as_deref() {
            Some(coordinator) => {
                format!("{place}, coordinated by {}", code(&without_secrets(coordinator)))
            }
            None => place,
        };
        let spaces = schema.spaces_of(&store.name).map(|space| space.name.as_str());
        vec![
            code(&store.name),
            place,
            spaces.collect::<Vec<_>>().join(", "),
            row_text(store.description.as_deref()),
        ]
    });
    page.table(&["store", "place", "spaces", "what for"], rows);
}

fn keys(schema: &Schema, page: &mut Page) {
    page.heading(2, "Keys");
    let rows = schema.spaces.iter().map(|space| {
        vec![
            code(space.key.as_str()),
            format!("[{0}](#{0})", space.name),
            code(&space.store),
            space::owner_word(space).to_owned(),
            row_text(space.description.as_deref()),
        ]
    });
    let locks = schema.locks.iter().map(|tree| {
        vec![
            code(tree.root.as_str()),
            format!("locks {}", tree.name),
            code(&tree.store),
            "Keyward".to_owned(),
            "Who holds which lock, and who waits".to_owned(),
        ]
    });
    page.table(&["key", "space", "store", "owner", "what"], rows.chain(locks));
    let indexed = schema.spaces.iter().any(|space| !space.indexes.is_empty());
    if indexed {
        page.line(
            "Index entries stand below `index:`, apart from all of these. They are written and \
             removed together with their records.",
        );
    }
}

fn locks(tree: &LockTree, page: &mut Page) {
    page.heading(3, &tree.name);
    page.line(&format!("In the store {}:", code(&tree.store)));
    let mut lines = vec![format!("- {}: everything on it", code(tree.root.as_str()))];
    let mut paths: Vec<(Vec<String>, usize)> = tree
        .paths
        .iter()
        .flat_map(|path| {
            let shape = Shape::of(path);
            shape.lengths.clone().into_iter().map(move |length| {
                let segments = shape.segments[..length].iter().map(|s| s.text.clone()).collect();
                (segments, length)
            })
        })
        .collect();
    // Each path below the one it is a part of.
    paths.sort();
    for (segments, depth) in paths {
        lines.push(format!("{}- {}", "  ".repeat(depth), code(&segments.join(":"))));
    }
    page.block(&lines.join("\n"));
    if !tree.aliases.is_empty() {
        let aliases = tree.aliases.iter();
        let aliases = aliases.map(|(alias, word)| {
            format!("{} for {}", code(&format!("{alias}:…")), code(&format!("{word}:…")))
        });
        page.line(&format!("Also called {}.", aliases.collect::<Vec<_>>().join(", ")));
    }
}
