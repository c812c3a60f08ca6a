//! The documents that were read last: a change that follows a read swaps the document it has seen, without reading it
//! again. A document that is out of date costs one swap that fails, and is then read.

use std::sync::{Mutex, PoisonError};

use keyward_engine::Document;

use super::bounded::Bounded;

const DOCUMENTS_MAX: usize = 256;
const BYTES_MAX: usize = 16 << 20;

pub(super) struct Recent(Mutex<Bounded<String, Document>>);

impl Default for Recent {
    fn default() -> Self {
        Self(Mutex::new(Bounded::new(DOCUMENTS_MAX, BYTES_MAX)))
    }
}

impl Recent {
    pub fn keep(&self, document: Document) {
        let bytes = document.id.len() + document.fields.len();
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.insert(document.id.clone(), document, bytes);
    }

    pub fn take(&self, id: &str) -> Option<Document> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
    }
}
