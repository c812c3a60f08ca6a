//! Lists of documents by the views of the layout.

use keyward_engine::{Cursor, DocumentList, DocumentPage, DocumentRow, Error, ErrorKind, Result};
use keyward_http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::client::{Client, read};
use crate::design::{BY_USER, BY_USER_NAMESPACE};
use crate::documents::{PREPARE, refused};
use crate::fields::document;
use crate::read::{DOCUMENTS_MAX, is_too_large};

/// How many rows a page has at most. One with documents has fewer.
pub(crate) const LIST_ROWS_MAX: usize = 1_000;

#[derive(Debug, Serialize)]
struct Query<'a> {
    startkey: &'a Value,
    endkey: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    startkey_docid: Option<&'a str>,
    limit: usize,
    include_docs: bool,
    reduce: bool,
}

#[derive(Debug, Deserialize)]
struct Rows<'a> {
    #[serde(borrow)]
    rows: Vec<ViewRow<'a>>,
}

#[derive(Debug, Deserialize)]
struct ViewRow<'a> {
    id: String,
    key: Value,
    #[serde(default)]
    value: Value,
    #[serde(borrow, default)]
    doc: Option<&'a RawValue>,
}

/// One page. The cursor is the id of the last row: the next page begins with it, and leaves it out.
pub(crate) async fn list(client: &Client, list: &DocumentList) -> Result<DocumentPage> {
    let (view, key) = match &list.group {
        Some(group) => (BY_USER_NAMESPACE, json!([list.owner, group])),
        None => (BY_USER, json!(list.owner)),
    };
    let after = list.after.as_ref().map(|cursor| std::str::from_utf8(cursor.as_bytes()));
    let after = after.transpose().map_err(|_| {
        Error::new(ErrorKind::Invalid, "the cursor is not of a list of CouchDB documents")
    })?;
    let most = if list.with_documents { DOCUMENTS_MAX } else { LIST_ROWS_MAX };
    let mut rows = list.limit.clamp(1, most);
    let (limit, response) = loop {
        // The last row of the page before comes again.
        let limit = rows + usize::from(after.is_some());
        let query = Query {
            startkey: &key,
            endkey: &key,
            startkey_docid: after,
            limit,
            include_docs: list.with_documents,
            reduce: false,
        };
        match client.ask(&view.path(), &query).await {
            Err(error) if is_too_large(&error) && rows > 1 => rows /= 2,
            response => break (limit, response?),
        }
    };
    match response.status {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND => {
            let message = format!(
                "the CouchDB database {} has no view {} in _design/data_store",
                client.shown(),
                view.name
            );
            return Err(Error::new(ErrorKind::Misplaced, message).advise(PREPARE));
        }
        _ => return Err(refused(client, &response)),
    }
    let found: Rows<'_> = read(view.name, &response)?;
    let mut page = DocumentPage::default();
    for row in &found.rows {
        // CouchDB takes texts for equal that are written alike, such as é in one character or in two.
        if row.key != key || Some(row.id.as_str()) == after {
            continue;
        }
        let group = match (&list.group, &row.value) {
            (Some(group), _) => group,
            (None, Value::String(group)) => group,
            // No entry of the layout.
            (None, _) => continue,
        };
        let document = match (list.with_documents, row.doc.map(RawValue::get)) {
            (false, _) => None,
            // It was deleted while it was listed.
            (true, None | Some("null")) => continue,
            (true, Some(text)) => Some(document(&row.id, text)?),
        };
        page.rows.push(DocumentRow { id: row.id.clone(), group: group.clone(), document });
    }
    page.next = match found.rows.last() {
        Some(last) if found.rows.len() == limit => Some(Cursor::new(last.id.clone().into_bytes())),
        _ => None,
    };
    Ok(page)
}
