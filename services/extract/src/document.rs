/// What a reader of one format has found.
pub(crate) struct Document {
    /// The title by its metadata.
    pub(crate) title: Option<String>,
    pub(crate) markdown: String,
    pub(crate) pages: Option<u32>,
}
