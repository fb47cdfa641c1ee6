"""Which kind of failure a text tells of: the matcher, and the grammar that providers share."""
