"""OpenAI's APIs: the sentences in which they refuse; they have no rules here yet."""
