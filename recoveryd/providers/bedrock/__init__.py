"""Amazon Bedrock: the sentences in which it refuses; it has no rules here yet."""
