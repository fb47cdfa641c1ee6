"""OpenAI's APIs: what the Responses API refuses of a conversation, and in which sentences they say so."""
