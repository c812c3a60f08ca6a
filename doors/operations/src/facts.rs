//! Facts of an operation: its route, tag, effect and kind of body.

/// Facts of an operation: its route, tag, effect and kind of body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Its name, unique and stable: `put_entry`.
    pub id: &'static str,
    /// The method and the path template of its route. A field of the request whose name stands in the
    /// template comes from the path.
    pub method: Method,
    /// See [`method`](Self::method).
    pub path: &'static str,
    /// What it is about.
    pub tag: Tag,
    /// What it does to data.
    pub effect: Effect,
    /// What the body of its request is.
    pub body: Body,
    /// The name of its tool, if agents have one.
    pub tool: Option<&'static str>,
    /// Whether it is done once however often it is sent with the same idempotency key.
    pub idempotent: bool,
    /// Whether the value can be sent or shown alone, without what is said about it.
    pub view: bool,
    /// Whether its response is a page, with a cursor to the next one.
    pub paged: bool,
}

/// The method of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads; parameters are in the query.
    Get,
    /// Does something; parameters are in the body.
    Post,
    /// Sets something; the body is what it becomes.
    Put,
    /// Changes a part of something.
    Patch,
    /// Deletes; parameters are in the query.
    Delete,
}

impl Method {
    /// Its name, as HTTP writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// What an operation does to data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It only reads.
    Reads,
    /// It adds; called again, it adds again.
    Adds,
    /// It changes data; called again with the same request, nothing more happens.
    Sets,
    /// It changes data; called again with the same request, it may do so again.
    Changes,
    /// It deletes; called again with the same request, nothing more happens.
    Removes,
}

/// What the body of a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// There is none.
    None,
    /// An object with the fields that are not in the path.
    Fields,
    /// The field of this name; the other fields are in the query.
    Whole(&'static str),
    /// The field of this name, a JSON Merge Patch; the other fields are in the query.
    MergePatch(&'static str),
}

/// What operations are about, in the order in which one learns them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// Keys and values.
    Entries,
    /// Records of declared spaces.
    Records,
}

impl Tag {
    /// All of them, in the order in which one learns them.
    pub const ALL: &'static [Self] = &[Self::Entries, Self::Records];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Entries => "entries",
            Self::Records => "records",
        }
    }

    /// What the operations with this tag are for.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Entries => "Keys and JSON values of a store: read, write, list, delete.",
            Self::Records => {
                "Records of declared spaces: checked against their schema, kept in indexes, with \
                 owners and history."
            }
        }
    }
}

impl Facts {
    const fn new(method: Method, path: &'static str, tag: Tag, id: &'static str) -> Self {
        let (effect, body) = match method {
            Method::Get => (Effect::Reads, Body::None),
            Method::Post => (Effect::Changes, Body::Fields),
            Method::Put => (Effect::Sets, Body::Fields),
            Method::Patch => (Effect::Sets, Body::Fields),
            Method::Delete => (Effect::Removes, Body::None),
        };
        Self {
            id,
            method,
            path,
            tag,
            effect,
            body,
            tool: None,
            idempotent: false,
            view: false,
            paged: false,
        }
    }

    /// An operation that reads.
    pub const fn get(path: &'static str, tag: Tag, id: &'static str) -> Self {
        Self::new(Method::Get, path, tag, id)
    }

    /// An operation that does something with what its body says.
    pub const fn post(path: &'static str, tag: Tag, id: &'static str) -> Self {
        Self::new(Method::Post, path, tag, id)
    }

    /// An operation that sets something.
    pub const fn put(path: &'static str, tag: Tag, id: &'static str) -> Self {
        Self::new(Method::Put, path, tag, id)
    }

    /// An operation that changes a part of something.
    pub const fn patch(path: &'static str, tag: Tag, id: &'static str) -> Self {
        Self::new(Method::Patch, path, tag, id)
    }

    /// An operation that deletes.
    pub const fn delete(path: &'static str, tag: Tag, id: &'static str) -> Self {
        Self::new(Method::Delete, path, tag, id)
    }

    /// The same with another effect.
    pub const fn effect(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }

    /// The same with another body.
    pub const fn body(self, body: Body) -> Self {
        Self { body, ..self }
    }

    /// The same, done once for each idempotency key.
    pub const fn idempotent(self) -> Self {
        Self { idempotent: true, ..self }
    }

    /// The same, whose value can be sent or shown alone.
    pub const fn view(self) -> Self {
        Self { view: true, ..self }
    }

    /// The same, whose response is a page.
    pub const fn paged(self) -> Self {
        Self { paged: true, ..self }
    }

    /// The same, offered to agents as a tool.
    pub const fn tool(self, name: &'static str) -> Self {
        Self { tool: Some(name), ..self }
    }

    /// Whether calls go into the audit log.
    pub const fn audited(&self) -> bool {
        !matches!(self.effect, Effect::Reads)
    }

    /// Whether a field comes from the path.
    pub fn is_in_path(&self, field: &str) -> bool {
        self.path_fields().any(|name| name == field)
    }

    /// The fields that come from the path, in their order.
    pub fn path_fields(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_path_are_those_in_braces() {
        let facts = Facts::get("/v1/stores/{store}/entries/{key}", Tag::Entries, "x");
        assert_eq!(facts.path_fields().collect::<Vec<_>>(), ["store", "key"]);
        assert!(facts.is_in_path("key") && !facts.is_in_path("entries"));
    }
}
