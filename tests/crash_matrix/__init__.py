"""Every step of a recovery as the last one, for each store: what a start after it makes of the session."""
