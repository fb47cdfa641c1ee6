"""OpenAI's chat completions as other makers serve them: what Kimi, GLM and DeepSeek refuse of a conversation."""
