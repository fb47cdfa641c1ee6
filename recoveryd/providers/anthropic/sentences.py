"""What Anthropic says when it refuses a stored conversation; Bedrock, Vertex, Copilot and OpenRouter pass it on.

`rows` says how a sentence is written, `find` in which order they are asked. `none` holds the traps: they look like a
kind and are none. Sources are public threads; the texts are in `tests/data`.
"""

from __future__ import annotations

from recoveryd.providers.sentences.rows import read
from recoveryd.providers.sentences.sizes import compiled

SURE = read(
    """
none
  Anthropic's system: system#: text content blocks must be non-empty | system#text: cache_control cannot be set
  Anthropic's system: system#: text content blocks must contain non-whitespace text
  Anthropic's system: system#text: text content blocks must be non-empty | system#cache_control cannot be set
  Anthropic's system: system#text: text content blocks must contain non-whitespace text
  several, of the system prompt: system prompt is too long
  several, of the answer's length [unless prompt, input]: {max_tokens/budget_tokens/thinking budget} # {/which} exceeds
  Anthropic, of where a cache is wanted: cache_control * extra inputs are not permitted
  Anthropic, of what its search of the web gave: encrypted_content in {/web_}search_result
thinking_block_modified
  Anthropic: latest assistant message cannot be modified | remain as they were in the original
  Anthropic: thinking blocks * cannot be modified | message contains any thinking blocks
thinking_final_block
  Anthropic: final block in an assistant message cannot be thinking | assistant message cannot be redacted_thinking
thinking_disabled_violation
  Anthropic: final position cannot contain thinking | final position cannot contain redacted_thinking
  Anthropic: when thinking is disabled, an assistant | but found thinking | but found redacted_thinking
thinking_block_order
  Anthropic: expected thinking or redacted_thinking | expected thinking, but found
  Anthropic: expected redacted_thinking, but found | must start with a thinking block | the lastmost set of tool_use
thinking_signature_invalid
  Anthropic: invalid signature in thinking | invalid data in redacted_thinking
  Anthropic [unless signature input should be, signature expired]: content.#.thinking.signature:
  Anthropic: thinking.signature: field required
  Anthropic: block is bound to a different conversation | each thinking block must contain
  Anthropic: thinking.thinking: field required | redacted_thinking.data: field required | invalid thinking signature
  Anthropic: thinking block signature | signature of the thinking block
tool_result_missing
  Anthropic: tool_use ids were found without | each tool_use block must have a corresponding tool_result
tool_result_orphan
  Anthropic [unless corresponding server_tool_use]: unexpected tool_use_id
  Anthropic: each tool_result block must have a corresponding tool_use
  Anthropic: tool_result block(s) provided when previous message does not contain
tool_call_invalid
  Anthropic: tool_use ids must be unique | tool_use.id: string should | tool_use.id: field required
  Anthropic: tool_use.name: string should | tool_use.name: field required | tool_use.input: input should be
  Anthropic: tool_use.input: field required | tool_use_id: string should | tool_use_id: field required
  Anthropic: tool_use.id: input should | tool_use.name: input should | tool_use_id: input should
  Anthropic: tool_use must have a single result | multiple tool_result blocks with id
empty_content
  Anthropic: all messages must have non-empty content | text content blocks must be non-empty
  Anthropic: must contain non-whitespace text | cache_control cannot be set for empty text
  Anthropic: tool_result.content: field required | messages.#.content: field required | content.#.text: field required
  Anthropic: messages.#.content: list should have at least | text.text: field required
  Anthropic: text.text: string should have at least
invalid_unicode
  Anthropic, AWS: no low surrogate in string | surrogates not allowed
media_rejected over bytes
  Anthropic [unless pixel, dimension]: image exceeds * maximum
media_rejected over sides
  Anthropic: image dimensions exceed max allowed | limit for many-image requests | size for many-image requests
media_rejected over request
  Anthropic: request exceeds the maximum size | request too large (max #mb
media_rejected over number
  Anthropic: too many images
media_rejected of one
  Anthropic: media type, but the image appears to be | image does not match the provided media type
  Anthropic: could not process image | could not process pdf | image cannot be empty | pdf cannot be empty
  Anthropic: pdf specified was not valid | pdf specified is password protected | pdf is password protected
  Anthropic: maximum of # pdf pages
  Claude Code, in Anthropic's place: pdf file was not valid
media_rejected
  Anthropic: unable to download the file | file not found: file | file_id: file not found
foreign_item
  Anthropic: messages.# * input tag * found using type | messages.#.content * extra inputs are not permitted
  Anthropic: messages.#.content * citations * {input should be/field required}
  Anthropic: messages.#.content * input should be an object | messages.#.content.#.type: field required
  Anthropic: tool_result.is_error: input should be | tool_result.content: input should be
  Anthropic: messages.#.content * text.text: input should be | source: field required
  Anthropic: messages.#.content * signature: input should be | redacted_thinking.data: input should be
  Anthropic: must have a corresponding server_tool_use
tool_not_found
  Anthropic: tool reference * not found in available tools
assistant_prefill
  Anthropic: not support assistant message prefill | conversation must end with a user message
  Anthropic: pre-filling the assistant response is not | pre-fill the assistant | prefilling assistant messages
trailing_whitespace
  Anthropic: end with trailing whitespace
role_order
  Anthropic: first message must | roles must alternate
context_overflow
  Anthropic: prompt is too long | exceed context limit | too many total text bytes
"""
)

LIKELY = read(
    """
none
  Anthropic's system: system#text: cache_control cannot be set for empty text
  Anthropic's system: system#cache_control cannot be set for empty text
  Anthropic, of what its search of the web gave: encrypted_content in {/web_}search_result
media_rejected
  Anthropic, a cut path [unless download, fetch]: image.source | document.source | pdf.source
"""
)

SIZES = compiled(
    "prompt is too long #asked tokens #limit maximum",
    "exceed context limit #asked + #output > #limit",
)
