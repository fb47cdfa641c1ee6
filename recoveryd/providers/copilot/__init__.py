"""Claude behind GitHub Copilot's chat completions: Anthropic's rules, and how its endpoint is known."""
