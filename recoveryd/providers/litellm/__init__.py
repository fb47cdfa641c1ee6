"""Claude behind LiteLLM: the words by which its errors say that Anthropic refused."""
