"""Amazon Bedrock: the sentences in which it refuses, and its own rules beside those of Anthropic."""
