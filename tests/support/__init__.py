"""What tests share, one line each.

Sessions as values
- `parts`: the parts of a message as OpenCode writes them, without ids and times
- `build`: a whole session of them, turn by turn, with ids and times
- `planted`: what a builder comes to: the client's JSON, ready to be written
- `plant`: writes it into a tree of files or a database
- `values`: the same as the product's own values, without a store in between
- `generate`: sessions at random, healthy or with faults
- `mixed`: sessions with up to five faults at once
- `old_sessions`: sessions from before OpenCode's ids started again
- `long_sessions`: sessions too long for their model, with the usage that a truthful provider reports
- `examples`: how many examples a generated test tries

Stores
- `json_tree`: a JSON tree of OpenCode that a test fills file by file
- `database`: a database of OpenCode that a test fills row by row, with the tables of real versions
- `rollouts`, `transcript`: a rollout of Codex, a transcript of Claude Code, that a test writes line by line
- `stores`, `growing_stores`: every store of every client with the client at work in it, for `tests/contract`; those of
  files that only grow
- `kept`: what such a store is asked for
- `trees`: stuck sessions in a JSON tree, and a ledger and a recovery to heal them with

What stands around it
- `running`: a daemon in a thread of the test, and what is waited for of it
- `cases`: the case of a failure, and the notice of what came of it
- `unsent`: what is sent no more after a repair that does not tell so
- `judge`: what the strict provider says of a session as it would be sent
- `refused`: what the classifier says of an error as a test has it
- `usual_errors`: what providers and gateways usually answer, in the forms that clients keep it in, and what it is about
- `fake_client`: an HTTP server that answers as OpenCode does, or as nobody should
- `fake_api`: an API on loopback: it listens, reads a request, sends an answer
- `bus`: a D-Bus session with a notification service that answers, refuses or hangs
- `managers`: a `systemctl` and a `launchctl` that write down what they are asked
- `user_manager`: a real systemd user manager, in namespaces of its own
- `forked`: the program as a process of its own, forked from one that imported it
- `terminal`: the program in a terminal of its own
- `renaming_kills`: a program that renames ids and is killed before each step
"""
