"""Where sessions are kept: one protocol (`base`), and a module for each way of keeping them."""
