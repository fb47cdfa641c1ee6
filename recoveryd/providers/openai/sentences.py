"""What OpenAI says when it refuses a stored conversation; Azure, DeepSeek, Qwen, Moonshot, xAI and vLLM say it too.

`rows` says how a sentence is written, `find` in which order they are asked.
"""

from __future__ import annotations

from recoveryd.providers.sentences.rows import read
from recoveryd.providers.sentences.sizes import compiled

SURE = read(
    """
none
  OpenAI, a tool definition: invalid tools[#].function.name
  gateways, of what Codex sends to compact: {invalid input type/unknown variant} compaction_trigger
  gateways, of what Codex sends to compact: invalid value: compaction_trigger supported values are
  gateways, of what Codex sends to compact: invalid value: compaction_trigger
  OpenAI, of what an answer is to include: invalid value: reasoning.encrypted_content supported values are
tool_result_missing
  OpenAI: tool_calls must be followed by tool messages | insufficient tool messages following
  OpenAI: tool_call_ids did not have response | no tool output found for | no output found for
tool_result_orphan
  OpenAI: role tool must be a response to | role tool must follow a prec | not found in tool_calls of previous message
  OpenAI: no tool call found for | no function call found for function call output
tool_call_invalid
  OpenAI [unless tool_use_failed]: tool_calls[#].id: string | tool_calls[#].function.name: string
  OpenAI [unless tool_use_failed]: tool_calls[#].function.name: empty | tool_calls[#].function.arguments
  OpenAI: duplicate value for tool_call_id | must have a tool_call_id | messages[#].tool_call_id | tool_calls: empty
  OpenAI: input[#].call_id: string | input[#].call_id: empty | input[#].name: string | input[#].name: empty
  OpenAI: input[#].arguments | supported values are: search, open_page
  OpenAI: input[#].namespace: string | input[#].namespace: empty | input[#].input: string too long
empty_content
  OpenAI: content: expected a string, got null | [#].content: expected * got null | messages[#].content: empty
  OpenAI: is too short - messages.#.content | content is a required property
media_rejected of one
  OpenAI: does not represent a valid image | invalid base64 image_url | invalid image data
  OpenAI: invalid image (based64) data
media_rejected
  OpenAI: input[#].content[#].image_url | input[#].output[#].image_url
  Codex, in OpenAI's place: invalid image in your last message | image poisoning
media_rejected over request
  OpenAI: total image size
  OpenAI, gateways: status 413 payload too large | status 413 request entity too large
  gateways: request body size exceeds | is too large for upstream websocket
  LiteLLM: request size is too large
reasoning_item
  OpenAI: of type reasoning was provided without | without its required reasoning item
  OpenAI: without its required following item | items are not persisted when store | item with id * not found
  OpenAI: invalid_encrypted_content | duplicate item found with id
  OpenAI [unless at this time, temporarily, try again later]: encrypted content * could not be
  OpenAI: missing required parameter: input[#].encrypted_content | input[#].encrypted_content: empty
  OpenAI: reasoning input items can only be | expected an id that begins with | input[#].encrypted_content
  OpenAI: input[#].summary | input[#].content: array too long | input item does not belong to this connection
  OpenAI: encrypted content organization_id did not match
  Copilot: input item id does not belong to this connection
foreign_item
  OpenAI: missing required parameter: input[#].id | input[#].id: string too long | unknown parameter: input[#]
  OpenAI: supported values are: output_text and refusal | supported values are: input_text, input_image
  OpenAI: supported values are: assistant, system, developer
  OpenAI: supported values are * {apply_patch_call/code_interpreter_call/computer_call/custom_tool_call/function_call}
  gateways: input.#.type: invalid input | input[#].type: invalid input
context_overflow
  OpenAI: maximum context length is | context_length_exceeded | exceeds the context window
  OpenAI: input tokens exceed the configured limit
  OpenAI: input[#].output: string too long | input[#].content[#].text: string too long
  Codex, in OpenAI's place: ran out of room in the model's context window
"""
)

LIKELY = read(
    """
tool_call_invalid
  OpenAI, a cut path [unless tool_use_failed]: messages[#].tool_calls[#].{function/id} | messages[#].function_call.
  OpenAI, a cut path: input[#].call_id
"""
)

SIZES = compiled(
    "maximum context length is #limit tokens * resulted in #asked tokens",
    "maximum context length is #limit tokens * requested #output output tokens and your prompt contains #asked input",
    # vLLM counts no further than that it is too long: what it says of the prompt (at least so many, characters) is less
    "maximum context length is #limit tokens * requested #output output tokens and your prompt contains",
    "is too large #output * maximum context length is #limit tokens and your request has #asked input tokens",
    "maximum context length is #limit tokens * your request has #asked input tokens",
    "maximum context length is #limit tokens * you requested * #asked in your prompt #output for the completion",
    "maximum context length is #limit tokens * #asked in the messages #output in the completion",
    "maximum context length is #limit tokens * you requested * #whole tokens * #output in the completion",
    "maximum context length is #limit tokens * you requested about #whole tokens * #output in the output",
    "maximum context length is #limit tokens * you requested about #asked tokens",
    "configured limit of #limit tokens * resulted in #asked tokens",
    "maximum context length is #limit",
)
