//! The operations of the API, from its description.

use std::path::Path;

use serde_json::Value;

/// Beginnings of paths of entries and records.
const DATA: [&str; 5] = [
    "/v1/spaces/{space}/",
    "/v1/stores/{store}/entries",
    "/v1/stores/{store}/get",
    "/v1/stores/{store}/raw/",
    "/v1/stores/{store}/watch",
];

/// One method of one path.
pub struct Operation {
    pub method: String,
    pub path: String,
    /// Parameters of the path, the query and headers, as they are described.
    pub parameters: Vec<Value>,
    /// The content type of the body and its schema.
    pub body: Option<(String, Value)>,
    /// Whether it reads or writes entries or records, where most is to be found.
    pub is_data: bool,
}

/// The description of the API.
pub struct Api {
    pub operations: Vec<Operation>,
    schemas: Value,
}

impl Api {
    /// Reads `docs/openapi.json`, which is what `/openapi.json` of a server has.
    pub fn load() -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        let described: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let mut operations = Vec::new();
        for (path, methods) in described["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                if !operation.is_object() {
                    continue;
                }
                let contents = operation["requestBody"]["content"].as_object();
                let body = contents
                    .and_then(|contents| contents.iter().next())
                    .map(|(kind, content)| (kind.clone(), content["schema"].clone()));
                let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
                let (method, path) = (method.to_uppercase(), path.clone());
                let is_data = DATA.iter().any(|start| path.starts_with(start));
                operations.push(Operation { method, path, parameters, body, is_data });
            }
        }
        assert!(operations.len() > 100, "the description has {} operations", operations.len());
        Self { operations, schemas: described["components"]["schemas"].clone() }
    }

    /// A schema that may be a reference, followed.
    pub fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
        name.map_or(schema, |name| &self.schemas[name])
    }
}
