"""Claude Code: its transcripts, what it sends of them, how it records a refusal, how its lines are written over.

Behind the ports of `clients.store` and `clients.client`; only `clients.find` names it.
"""
