"""Claude behind OpenRouter's chat completions: Anthropic's rules, and how its endpoint is known."""
