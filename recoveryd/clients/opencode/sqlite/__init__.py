"""The sessions of OpenCode 1.2 to 1.18: rows of a database that the client has open."""
