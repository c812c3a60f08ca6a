use serde::{Deserialize, Serialize};

use crate::Usage;

/// What tokens cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// A million tokens that the model reads.
    pub input_per_million: f64,
    /// A million tokens that it writes.
    pub output_per_million: f64,
    /// In which currency, by its code.
    #[serde(default = "dollars")]
    pub currency: String,
}

impl Price {
    /// What this many tokens cost.
    pub fn of(&self, usage: Usage) -> f64 {
        let part = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        part(usage.input_tokens, self.input_per_million)
            + part(usage.output_tokens, self.output_per_million)
    }
}

fn dollars() -> String {
    "USD".to_owned()
}

/// What a result took, kept with it by whoever asked.
///
/// Tokens and cost are those of all answers that were needed for the result, also of one that could
/// not be used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// The provider.
    pub provider: String,
    /// The model that answered, as the provider names it.
    pub model: String,
    /// Tokens that the model read.
    pub input_tokens: u64,
    /// Tokens that it wrote.
    pub output_tokens: u64,
    /// What they cost, if the settings have a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// In which currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// How often the provider was asked.
    pub attempts: u32,
    /// How long it took, with all waiting.
    pub duration_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_of_a_million_tokens() {
        let price: Price =
            serde_json::from_str(r#"{"input_per_million":3,"output_per_million":15}"#).unwrap();
        assert_eq!(price.currency, "USD");
        let cost = price.of(Usage { input_tokens: 1_000, output_tokens: 200 });
        assert!((cost - 0.006).abs() < 1e-12, "{cost}");
    }

    #[test]
    fn a_receipt_is_kept_as_json_and_comes_back() {
        let receipt = Receipt {
            provider: "openai".to_owned(),
            model: "m-1".to_owned(),
            input_tokens: 12,
            output_tokens: 3,
            cost: Some(0.5),
            currency: Some("EUR".to_owned()),
            attempts: 2,
            duration_ms: 40,
        };
        let kept = serde_json::to_value(&receipt).unwrap();
        assert_eq!((&kept["inputTokens"], &kept["durationMs"]), (&12.into(), &40.into()));
        assert_eq!(serde_json::from_value::<Receipt>(kept).unwrap(), receipt);
    }
}
