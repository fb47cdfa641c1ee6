"""recoveryd.ledger."""
