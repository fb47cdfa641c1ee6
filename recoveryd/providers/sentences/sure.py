"""What providers say when they refuse a stored conversation: sentences, each with its kind and who says it.

`classify_rows` says how they are written. `none` holds the traps: they look like a kind and are none. What an earlier
row matched, a later may not.

Sources are public threads; the texts are in `tests/data`. Anthropic's words also come from Bedrock, Vertex, Copilot and
OpenRouter, OpenAI's from Azure, DeepSeek, Qwen, Moonshot, xAI and vLLM.
"""

from __future__ import annotations

from recoveryd.providers.sentences.rows import read

_SURE = """
none
  Anthropic's system: system: text content blocks must be non-empty | system#text: cache_control cannot be set
  Anthropic's system: system: text content blocks must contain non-whitespace text
  Anthropic's system: system#text: text content blocks must be non-empty | system#cache_control cannot be set
  Anthropic's system: system#text: text content blocks must contain non-whitespace text
  OpenAI, a tool definition: invalid tools[#].function.name
thinking_block_modified
  Anthropic: latest assistant message cannot be modified | remain as they were in the original
  Anthropic: thinking blocks * cannot be modified
thinking_final_block
  Anthropic: final block in an assistant message cannot be thinking | assistant message cannot be redacted_thinking
thinking_disabled_violation
  Anthropic: final position cannot contain thinking | final position cannot contain redacted_thinking
  Anthropic: when thinking is disabled, an assistant | but found thinking | but found redacted_thinking
thinking_block_order
  Anthropic: expected thinking or redacted_thinking | expected thinking, but found
  Anthropic: expected redacted_thinking, but found | must start with a thinking block | the lastmost set of tool_use
  a relay in Chinese: thinking 块格式无效
thinking_signature_invalid
  Anthropic: invalid signature in thinking | invalid data in redacted_thinking
  Anthropic: block is bound to a different conversation | each thinking block must contain | thinking.signature:
  Anthropic: thinking.thinking: field required | redacted_thinking.data: field required | invalid thinking signature
  Anthropic: thinking block signature | signature of the thinking block
  Gemini: missing a thought_signature | missing thought_signature | corrupted thought signature
  Gemini: invalid thought signature | thought signature is not valid | thought signature is invalid
tool_result_missing
  Anthropic: tool_use ids were found without | each tool_use block must have a corresponding tool_result
  Bedrock: did not find * tool_result block(s) at the beginning | messages following tool_use blocks must begin with
  Bedrock: expected toolResult blocks | each toolUse block must be accompanied
  OpenAI: tool_calls must be followed by tool messages | insufficient tool messages following
  OpenAI: tool_call_ids did not have response | no tool output found for | no output found for
  Gemini: number of function response parts | function call turn comes immediately after a user turn
  Mistral: not the same number of function calls and responses
  MiniMax: tool call result does not follow tool call
  AI SDK: missingToolResultsError | tool result is missing for tool call | tool results are missing for tool calls
tool_result_orphan
  Anthropic: unexpected tool_use_id | each tool_result block must have a corresponding tool_use
  Anthropic: tool_result block(s) provided when previous message does not contain
  Bedrock: number of toolResult blocks * exceeds the number of toolUse blocks
  OpenAI: role tool must be a response to | role tool must follow a prec | not found in tool_calls of previous message
  OpenAI: no tool call found for | no function call found for function call output
  Gemini: function response turn comes immediately after a function call turn
  Mistral: unexpected tool call id | unexpected role tool | unexpected role RoleEnum.tool
  Moonshot, MiniMax: tool_call_id is not found | tool_call_id not found | tool result's tool id
  LiteLLM: missing corresponding tool call for tool response
tool_call_invalid
  Anthropic: tool_use ids must be unique | tool_use.id: string should | tool_use.id: field required
  Anthropic: tool_use.name: string should | tool_use.name: field required | tool_use.input: input should be
  Anthropic: tool_use.input: field required | tool_use_id: string should | tool_use_id: field required
  Anthropic: tool_use must have a single result | multiple tool_result blocks with id
  Bedrock: toolUse blocks * contain duplicate ids | toolResult blocks * contain duplicate ids
  Bedrock: toolUse.name failed to satisfy | toolUseId failed to satisfy | toolUse.input is invalid
  OpenAI [unless tool_use_failed]: tool_calls[#].id: string | tool_calls[#].function.name: string
  OpenAI [unless tool_use_failed]: tool_calls[#].function.name: empty | tool_calls[#].function.arguments
  OpenAI: duplicate value for tool_call_id | must have a tool_call_id | messages[#].tool_call_id | tool_calls: empty
  OpenAI: input[#].call_id: string | input[#].call_id: empty | input[#].name: string | input[#].name: empty
  OpenAI: input[#].arguments | supported values are: search, open_page
  Mistral: tool call id was * but must be | duplicate tool call id
  Moonshot, MiniMax, Qwen: function.arguments parameter * must be in json format
  Moonshot, MiniMax, Qwen: invalid function arguments json string | tool call id * is duplicated
  Gemini: function_call.name: | function_call.args: | function_response.name: | function_response.response:
  chat templates: can only get item pairs from a mapping
  llama.cpp [unless tool_use_failed]: failed to parse tool call arguments as json
empty_content
  Anthropic: all messages must have non-empty content | text content blocks must be non-empty
  Anthropic: must contain non-whitespace text | cache_control cannot be set for empty text
  Anthropic: tool_result.content: field required | messages.#.content: field required | content.#.text: field required
  Anthropic: messages.#.content: list should have at least | text.text: field required | text.text: string should have
  Bedrock: text field in the ContentBlock object * is blank | content field in the Message object * is empty
  Bedrock: toolResult cannot be empty when | ContentBlock object * must set one of the following keys
  Gemini: must include at least one parts field | parts must not be empty | it must have a text parameter
  Gemini: required oneof field data must have one | contents is not specified
  Moonshot, MiniMax, Qwen: message at position * must not be empty | chat content is empty
  Moonshot, MiniMax, Qwen: content field is a required field
  Mistral, DeepSeek: must have either content or tool_calls | content or tool_calls must be
  xAI: must have at least one content element | at least one non-empty content element | an empty message was provided
  OpenAI: content: expected a string, got null | [#].content: expected * got null | messages[#].content: empty
  OpenAI: is too short - messages.#.content | content is a required property
invalid_unicode
  Anthropic, AWS: no low surrogate in string | surrogates not allowed
  DeepSeek, Cerebras: lone leading surrogate | invalid unicode code point
  serde_json [unless reading from, session file]: unexpected end of hex escape | invalid unicode escape
  Gemini: contains invalid utf-8
media_rejected
  Anthropic: image exceeds * maximum | image dimensions exceed max allowed | limit for many-image requests
  Anthropic: media type, but the image appears to be | image does not match the provided media type
  Anthropic: could not process image | could not process pdf | image cannot be empty | pdf cannot be empty
  Anthropic: pdf specified was not valid | pdf specified is password protected | pdf is password protected
  Anthropic: maximum of # pdf pages | too many images | request exceeds the maximum size | request too large (max #mb
  OpenAI: does not represent a valid image | invalid base64 image_url | total image size | invalid image data
  OpenAI: invalid image (based64) data
  Copilot: image or document is too large
  Gemini: unable to process input image | provided image is not valid | document has no pages | payload size exceeds the
  Gemini: unsupported mime type | unsupported image
  Bedrock: text block must be included when using documents | document file name can only contain
  Bedrock: duplicate document names | image does not match the specified image format
  Qwen: image length and width do not meet
assistant_prefill
  Anthropic: not support assistant message prefill | conversation must end with a user message
  Anthropic: pre-filling the assistant response is not | pre-fill the assistant | prefilling assistant messages
  Mistral: expected last role user or tool
  Gemini: multiturn requests ends with a user | multiturn requests end with a user
  DeepSeek, Perplexity: last message * must be a user | last message must have role user | last message must be
  vLLM: when the last message is from the assistant
  llama.cpp: assistant messages at the end of the list | assistant response prefill is incompatible
trailing_whitespace
  Anthropic: end with trailing whitespace
role_order
  Anthropic: first message must | roles must alternate
  Bedrock: conversation must start with a user | conversation must alternate between
  Gemini: multiturn requests alternate between | single turn requests have a user | first content should be with role
  Mistral: unexpected role user after role | unexpected role system after role | unexpected role assistant after role
  DeepSeek, Perplexity: successive user or assistant messages | should alternate with assistant message
  templates: system message must be at the beginning | system message must be the first | no user query found in
reasoning_item
  OpenAI: of type reasoning was provided without | without its required reasoning item
  OpenAI: without its required following item | items are not persisted when store | item with id * not found
  OpenAI: invalid_encrypted_content | encrypted content * could not be | duplicate item found with id
  OpenAI: reasoning input items can only be | expected an id that begins with | input[#].encrypted_content
  OpenAI: input[#].summary | input[#].content: array too long | input item does not belong to this connection
  xAI: could not decrypt the provided encrypted_content
reasoning_missing
  DeepSeek, Xiaomi: in the thinking mode must be passed back | reasoning_content * must be passed back
  DeepSeek, Moonshot: missing reasoning_content | reasoning_content is missing | reasoning_content field is missing
  several: reasoning_content is required | must contain reasoning_content | must have reasoning_content
context_overflow
  Anthropic: prompt is too long | exceed context limit | too many total text bytes
  OpenAI: maximum context length is | context_length_exceeded | exceeds the context window
  OpenAI: input tokens exceed the configured limit
  Bedrock: input is too long for requested model | number of input tokens exceeds
  Gemini: input token count * exceeds the maximum number of tokens
  xAI, Groq: maximum prompt length is | reduce the length of the messages | reduce the length of either one
  Copilot: prompt token count * exceeds the limit | model_max_prompt_tokens_exceeded
  Moonshot, z.ai: exceeded model token limit | context window exceeds limit | model_context_window_exceeded
  Moonshot, z.ai: prompt exceeds max length
  Qwen, SGLang: range of input length should be | input length * exceeds the maximum
  vLLM, TGI: model's context length is only | tokens + max_new_tokens must be
  llama.cpp, LM Studio: available context size | greater than the context length | loaded with context length of only
  Ollama, Mistral: prompt too long; exceeded | too large for model with # maximum context length
  clients: context exceeds model limit | too large to compact
"""

SURE = read(_SURE)
