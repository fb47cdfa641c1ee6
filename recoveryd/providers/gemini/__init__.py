"""Google's Gemini API, at Google AI Studio and on Vertex: its rules, and the sentences in which it refuses."""
