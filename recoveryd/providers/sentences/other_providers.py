"""What the providers, gateways and servers without a package of their own say when they refuse a stored conversation.

`rows` says how a sentence is written, `find` in which order they are asked. Sources are public threads; the texts are
in `tests/data`.
"""

from __future__ import annotations

from recoveryd.providers.sentences.rows import read
from recoveryd.providers.sentences.sizes import compiled

SURE = read(
    """
none
  AI SDK, before it sends anything: unsupported image mime type: * expected one of
  AI SDK, before it sends anything: unsupported file mime type: * expected one of
  templates, of the system prompt: system message must be at the beginning | system message must be the first
thinking_block_order
  a relay in Chinese: thinking 块格式无效
tool_result_missing
  Mistral: not the same number of function calls and responses
  MiniMax: tool call result does not follow tool call
  AI SDK: missingToolResultsError | tool result is missing for tool call | tool results are missing for tool calls
tool_result_orphan
  Mistral: unexpected tool call id | unexpected role tool | unexpected role RoleEnum.tool
  Moonshot, MiniMax: tool_call_id is not found | tool_call_id not found | tool result's tool id
  LiteLLM: missing corresponding tool call for tool response
tool_call_invalid
  Mistral: tool call id was * but must be | duplicate tool call id | function name was * but must be
  Mistral, of a long one: but must be a-z, a-z, 0-9, {with a length/or contain underscores and dashes}
  Moonshot, MiniMax, Qwen: function.arguments parameter * must be in json format
  Moonshot, MiniMax, Qwen: invalid function arguments json string | tool call id * is duplicated
  chat templates: can only get item pairs from a mapping
  llama.cpp [unless tool_use_failed]: failed to parse tool call arguments as json
empty_content
  Moonshot, MiniMax, Qwen: message at position * must not be empty | chat content is empty
  Moonshot, MiniMax, Qwen: content field is a required field
  Mistral, DeepSeek: must have either content or tool_calls | content or tool_calls must be
  xAI: must have at least one content element | at least one non-empty content element | an empty message was provided
  z.ai, of whatever it takes for empty: the messages parameter is illegal | messages 参数非法
  z.ai: content 和 tool_calls 字段不能同时为空
  servers in Rust: messages[#]: missing field content
invalid_unicode
  DeepSeek, Cerebras: lone leading surrogate | invalid unicode code point
  serde_json [unless reading from, session file]: unexpected end of hex escape | invalid unicode escape
media_rejected over size
  Copilot: image or document is too large
media_rejected over bytes
  Qwen: exceeded limit on max bytes per data-uri item | multimodal file size is too large
media_rejected over number
  Qwen: exceeded limit on max data-uri per request
media_rejected over sides
  Qwen: image length and width do not meet
  Volcengine: image exceeds the maximum allowed total pixels
media_rejected of one
  Mistral: has an invalid format. Allowed formats are | could not be loaded as a valid image
  Qwen: image format is illegal and cannot be opened
  llama.cpp: failed to load image or audio file
  Ollama: failed to process inputs: image: unknown format
assistant_prefill
  Mistral: expected last role user or tool
  DeepSeek, Perplexity: last message * must be a user | last message must have role user | last message must be
  vLLM: when the last message is from the assistant
  llama.cpp: assistant messages at the end of the list | assistant response prefill is incompatible
role_order
  Mistral: unexpected role user after role | unexpected role system after role | unexpected role assistant after role
  DeepSeek, Perplexity: successive user or assistant messages | should alternate with assistant message
  templates: no user query found in
reasoning_item
  xAI: could not decrypt the provided encrypted_content
  Moonshot: reasoning_details at position * must not contain | reasoning_details at position * has an invalid type
reasoning_missing
  DeepSeek, Xiaomi: in the thinking mode must be passed back | reasoning_content * must be passed back
  DeepSeek, Moonshot: missing reasoning_content | reasoning_content is missing | reasoning_content field is missing
  several: reasoning_content is required | must contain reasoning_content | must have reasoning_content
context_overflow
  xAI, Groq: maximum prompt length is | reduce the length of the messages | reduce the length of either one
  Copilot: prompt token count * exceeds the limit | model_max_prompt_tokens_exceeded
  Moonshot, z.ai: exceeded model token limit | context window exceeds limit | model_context_window_exceeded
  Moonshot, z.ai: prompt exceeds max length
  Qwen, SGLang: range of input length should be | input length * exceeds the maximum
  vLLM, TGI: model's context length is only | tokens + max_new_tokens must be | tokens and max_new_tokens must not
  vLLM: longer than the maximum model length
  TGI: inputs must have less than # tokens
  LM Studio: cannot truncate prompt with n_keep
  llama.cpp, LM Studio: available context size | greater than the context length | loaded with context length of only
  LM Studio, within an answer: reached context length of # tokens
  Ollama, Mistral: prompt too long; exceeded | too large for model with # maximum context length
  several: tokens, but the configured context size | must be less than max_seq_len
  Volcengine: tokens of image and text exceed max message tokens
  Qwen, Moonshot, by bytes: exceeded limit on max bytes to request body | total message size # exceeds limit
  servers in Rust, by bytes: request body: length limit exceeded
  clients: context exceeds model limit | too large to compact
"""
)

SIZES = compiled(
    "prompt token count of #asked exceeds the limit of #limit",
    "maximum prompt length is #limit but the request contains #asked tokens",
    "prompt contains #asked tokens too large for model with #limit maximum context length",
    "prompt contains #asked tokens and * draft tokens too large for model with #limit maximum context length",
    "too large for * model max size #limit tokens",
    "input #asked tokens is longer than the model's context length #limit tokens",
    "input length #asked exceeds the maximum allowed input length of #limit",
    "input length #asked tokens exceeds the maximum allowed length #limit tokens",
    "input length #asked exceeds context length #limit",
    "input length #asked exceeds * maximum context length #limit",
    "exceeded model token limit #limit requested #asked",
    "exceeded model token limit #limit",
    "prompt has #asked tokens but the configured context size is #limit",
    "prompt_tokens #asked must be less than max_seq_len #limit",
    "range of input length should be 1 #limit",
    "n_keep #asked >= n_ctx #limit",
    "prompt length #asked * longer than the maximum model length of #limit",
    "current length is #asked while limit is #limit",
    "requested tokens #asked exceed context window of #limit",
    "exceed context window of #limit",
    "number of tokens #asked exceeded maximum context length #limit",
    "you passed #asked input tokens and requested #output output tokens * context length is only #limit tokens",
    "must be <= #limit * given #asked inputs tokens and #output max_new_tokens",
    "context length of #limit tokens * #asked tokens from the input messages and #output tokens for the completion",
    "maximum context length of #limit tokens",
    "inputs` must have less than #limit tokens given #asked",
    "sum of inputs tokens and max_new_tokens must not exceed #limit",
    "request #asked tokens exceeds the available context size #limit tokens",
    "available context size #limit tokens",
    "loaded with context length of only #limit tokens",
    "reached context length of #limit tokens",
)
