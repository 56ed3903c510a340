"""Models behind an endpoint, through the OpenAI client."""
