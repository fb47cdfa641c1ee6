"""Every step of a recovery as the last one, for both stores: what a start after it makes of the session."""
