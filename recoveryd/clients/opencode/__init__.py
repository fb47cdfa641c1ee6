"""OpenCode: its stores, what it sends, how it records a failure, how its sessions are edited and prompted.

Behind the ports of `clients.store` and `clients.client`; only `clients.find` and the demo name it.
"""
