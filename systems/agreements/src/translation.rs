//! A document in another language, part by part.

use keyward_extract::Language;
use keyward_models::{Models, Receipt, split_markdown};
use serde::Deserialize;

use crate::document::Made;
use crate::{Activity, Course, Document, Result, fidelity, prompts};

#[derive(Deserialize)]
struct Translation {
    title: String,
    markdown: String,
}

/// How often a model is asked again for a part whose translation cannot be used.
const RETRIES_MAX: u32 = 2;

/// Translates a document: long ones are split at headings, and joined again. A translation that is cut, or
/// lacks something of the original, is shown to the model with what is wrong; if that does not help, it is
/// an error.
pub(crate) async fn translate(
    models: &Models,
    original: &Document,
    language: Language,
    chars_max: usize,
    course: &Course,
) -> Result<Document> {
    let prompt = prompts::translate()?;
    course.enter(Activity::Prompting, &prompt.id()).await?;
    let parts = split_markdown(&original.content, chars_max);
    course.enter(Activity::Translating, language.as_str()).await?;
    let mut title = None;
    let mut content = String::with_capacity(original.content.len());
    let mut receipts = Vec::new();
    for (done, part) in parts.iter().enumerate() {
        course.progress(done, parts.len()).await?;
        let text = part.trim();
        if text.is_empty() {
            content.push_str(part);
            continue;
        }
        let mut request = prompt.render(&[
            ("language", language.name()),
            ("title", &original.title),
            ("text", text),
        ])?;
        request.schema = Some(prompts::translation_schema());
        // A part can be in another language than the rest of its document.
        let may_stay = [Language::of_text(text), original.language].contains(&Some(language));
        let check = |made: &Translation| fidelity::check(text, &made.markdown, may_stay);
        let (translation, receipt) = models.checked_json(&request, RETRIES_MAX, check).await?;
        // The white space around a part is what holds it apart from its neighbours.
        let before = part.len() - part.trim_start().len();
        content.push_str(&part[..before]);
        content.push_str(translation.markdown.trim());
        content.push_str(&part[part.trim_end().len().max(before)..]);
        title.get_or_insert(translation.title);
        receipts.push(receipt);
    }
    let made = joined(receipts).map(|receipt| Made { prompt: prompt.id(), receipt });
    Ok(Document {
        original: false,
        language: Some(language),
        source: original.source.clone(),
        created: original.created,
        title: title.filter(|title| !title.is_empty()).unwrap_or_else(|| original.title.clone()),
        content,
        modified: original.modified,
        made,
    })
}

/// What several answers took together.
pub(crate) fn joined(receipts: Vec<Receipt>) -> Option<Receipt> {
    receipts.into_iter().reduce(|sum, next| Receipt {
        input_tokens: sum.input_tokens + next.input_tokens,
        output_tokens: sum.output_tokens + next.output_tokens,
        cost: sum.cost.zip(next.cost).map(|(one, other)| one + other),
        attempts: sum.attempts + next.attempts,
        duration_ms: sum.duration_ms + next.duration_ms,
        ..sum
    })
}
