"""OpenAI's chat completions as other makers serve them: what each refuses of a conversation."""
