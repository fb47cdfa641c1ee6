"""Amazon Bedrock: its sentences."""
