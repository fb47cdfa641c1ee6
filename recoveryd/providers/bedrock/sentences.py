"""What Amazon Bedrock's Converse API says when it refuses a stored conversation.

`rows` says how a sentence is written, `find` in which order they are asked.
"""

from __future__ import annotations

from recoveryd.providers.sentences.rows import read
from recoveryd.providers.sentences.sizes import compiled

SURE = read(
    """
tool_result_missing
  Bedrock: did not find * tool_result block(s) at the beginning | messages following tool_use blocks must begin with
  Bedrock: expected toolResult blocks | each toolUse block must be accompanied
tool_result_orphan
  Bedrock: number of toolResult blocks * exceeds the number of toolUse blocks
tool_call_invalid
  Bedrock: toolUse blocks * contain duplicate ids | toolResult blocks * contain duplicate ids
  Bedrock: toolUse.name failed to satisfy | toolUseId failed to satisfy | toolUse.input is invalid
empty_content
  Bedrock: text field in the ContentBlock object * is blank | content field in the Message object * is empty
  Bedrock: toolResult cannot be empty when | ContentBlock object * must set one of the following keys
media_rejected
  Bedrock: text block must be included when using documents | document file name can only contain
  Bedrock: duplicate document names
media_rejected of one
  Bedrock: image does not match the specified image format
media_rejected over number
  Bedrock: more than * documents in a request
role_order
  Bedrock: conversation must start with a user | conversation must alternate between
context_overflow
  Bedrock: input is too long for requested model | number of input tokens exceeds
"""
)

LIKELY = read(
    """
tool_call_invalid
  Bedrock Converse, a cut path: member.toolUse. | toolUse.input
"""
)

SIZES = compiled(
    "number of input tokens * exceeds * maximum * of #limit",
)
