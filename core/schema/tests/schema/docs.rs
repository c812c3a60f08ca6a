//! Schemas as pages.

use keyward_schema::{EXAMPLE, docs_page};

use crate::schema;

const SMALL: &str = r#"
[stores.app]
url = "postgres://ada:s3cret@db/app"
description = "The application's | data"

[spaces.posts]
key = "user:{user}:posts:{post}[:{language}]"
ownership = "hybrid"
share = ["title", "tags"]
ttl = "30d"
history = 3
value_bytes_max = 1000
write_roles = ["author"]
description = "What a user tells"

[spaces.posts.value]
type = "object"
required = ["title"]
additionalProperties = false
properties.title = { type = "string", maxLength = 80, description = "In *one* line" }
properties.tags = { type = "array", items = { type = "string" }, minItems = 1 }
properties.state = { enum = ["draft", "public"] }
properties.place = { type = "object", properties.lat = { type = "number" } }

[spaces.posts.indexes.by_tag]
fields = ["tags", "title"]
multi = "tags"
scope = "shared"

[spaces.posts.indexes.title]
field = "title"
unique = true

[[spaces.posts.queries]]
name = "by tag"
by = ["tags"]
scope = "shared"

[[spaces.posts.queries]]
name = "one"
by = ["post"]

[[spaces.posts.queries]]
name = "drafts"
by = ["state"]

[locks.page]
root = "{page}"
paths = ["issues:{id}", "issues", "policies", "policies:{source}[:{language}]"]
aliases = { policy = "policies" }
"#;

#[test]
fn a_page_names_the_coordinator_of_a_store_without_its_password() {
    let text =
        "[stores.kv]\nurl = 'cloudflare-kv://a/n'\ncoordinator = 'postgres://me:s3cret@db/c'\n";
    let page = docs_page(&schema(text));
    let row = "| `kv` | `cloudflare-kv://a/n`, coordinated by `postgres://me:…@db/c` |";
    assert!(page.contains(row), "{page}");
}

#[test]
fn a_page_tells_everything_about_a_schema() {
    let page = docs_page(&schema(SMALL));
    assert_eq!(
        page,
        r#"# Key schema

What the stores hold. Written from the schema file: change that, not this page.

## Stores

| store | place | spaces | what for |
|---|---|---|---|
| `app` | `postgres://ada:…@db/app` | posts | The application's \| data |

## Keys

| key | space | store | owner | what |
|---|---|---|---|---|
| `user:{user}:posts:{post}[:{language}]` | [posts](#posts) | `app` | a user, found by all | What a user tells |
| `{page}` | locks page | `app` | Keyward | Who holds which lock, and who waits |

Index entries stand below `index:`, apart from all of these. They are written and removed together with their records.

## posts

What a user tells

- Key: `user:{user}:posts:{post}[:{language}]`, for example `user:u1:posts:p1` or `user:u1:posts:p1:l1`
- Owner: the user `{user}`, who alone changes the records; others see `title`, `tags`
- Lifetime: 30 days from the last write
- History: the last 3 versions, the current one included
- Size: values of at most 1000 bytes
- Written by: `author`

### Values

| field | type |  | what |
|---|---|---|---|
| `place` | object |  |  |
| `place.lat` | number |  |  |
| `state` | one of `"draft"`, `"public"` |  |  |
| `tags` | array of string, at least 1 element |  |  |
| `title` | string, at most 80 characters | required | In \*one\* line |

There are no other fields.

### Indexes

| index | holds | entries | at |
|---|---|---|---|
| `by_tag` | each element of `tags` (text), then `title` (text) | everybody's together | `index:by_tag:{tags}:{title}:user:{user}:posts:{post}[:{language}]` |
| `title` | `title` (text); unique for each owner | each owner's apart | `index:title:{user}:{title}` |

### Queries

| query | by | answered by |
|---|---|---|
| by tag | `tags` | the index `by_tag` |
| one | `post` | the keys `user:{user}:posts:{post}` |
| drafts | `state` | nothing: every record would be read |

## Locks

Whoever holds a path keeps others from that path, from every path above it and from every path below it.

### page

In the store `app`:

- `{page}`: everything on it
  - `issues`
    - `issues:{id}`
  - `policies`
    - `policies:{source}`
      - `policies:{source}:{language}`

Also called `policy:…` for `policies:…`.
"#
    );
}

#[test]
fn the_same_schema_gives_the_same_page() {
    let pages: Vec<String> = (0..5).map(|_| docs_page(&schema(EXAMPLE))).collect();
    assert!(pages.iter().all(|page| *page == pages[0]));
    for part in
        ["until deleted", "30 days from the last write or read", "the geohash of `lat` and `lon`"]
    {
        assert!(pages[0].contains(part), "{part}");
    }
}

#[test]
fn a_value_schema_that_holds_itself_has_an_end_on_the_page() {
    let text = "[stores.a]\n[spaces.tree]\nkey = 'shared:tree:{t}'\nownership = 'shared'\n\
                value.properties.children = { type = 'array', items = { '$ref' = '#' } }\n";
    let page = docs_page(&schema(text));
    assert!(page.contains("`children[].children`"), "{page}");
    assert!(page.len() < 10_000);
}

#[test]
fn an_empty_schema_has_a_page() {
    assert!(docs_page(&schema("")).starts_with("# Key schema\n"));
}
