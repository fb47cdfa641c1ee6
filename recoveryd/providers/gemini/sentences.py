"""What Gemini says when it refuses a stored conversation, on Google's own API and on Vertex.

`rows` says how a sentence is written, `find` in which order they are asked.
"""

from __future__ import annotations

from recoveryd.providers.sentences.rows import read
from recoveryd.providers.sentences.sizes import compiled

SURE = read(
    """
thinking_signature_invalid
  Gemini: missing a thought_signature | missing thought_signature | thought_signature {is/field is} missing
  Gemini: corrupted thought signature
  Gemini: thought_signature (type_bytes), base64 decoding failed
  Gemini: thought signature is not valid | thought signature is invalid
tool_result_missing
  Gemini: number of function response parts
tool_result_orphan
  Gemini: function response turn comes immediately after a function call turn
tool_call_invalid
  Gemini [unless function_declarations]: function_call.name: | function_response.name:
  Gemini [unless function_declarations]: function_call.args: | function_response.response:
empty_content
  Gemini: must include at least one parts field | parts must not be empty | it must have a text parameter
  Gemini: required oneof field data must have one | contents is not specified
invalid_unicode
  Gemini: contains invalid utf-8
media_rejected of one
  Gemini: unable to process input image | provided image is not valid | document has no pages
  Gemini: unsupported mime type | unsupported image
media_rejected
  Vertex: has a mime_type parameter with value * which is not supported
  Vertex: mime_type * is not supported in function_response
media_rejected over request
  Gemini: payload size exceeds the
assistant_prefill
  Gemini: multiturn requests ends with a user | multiturn requests end with a user
role_order
  Gemini: function call turn comes immediately after a user turn
  Gemini: multiturn requests alternate between | single turn requests have a user | first content should be with role
context_overflow
  Gemini: input token count * exceeds the maximum number of tokens | input token count is * but model only supports
"""
)

LIKELY = read(
    """
thinking_signature_invalid
  Gemini, a cut path: parts[#].thought_signature | unknown name thought_signature
  Gemini: thought_signature * {invalid/not valid/malformed/corrupt/expired/required/not match/mismatch}
  Gemini: thought_signature * {be decoded/to decode/decoding}
  Gemini: {invalid/malformed/corrupt/unexpected/expired/cannot decode/could not decode} thought_signature
"""
)

SIZES = compiled(
    "input token count #asked exceeds the maximum number of tokens allowed #limit",
    "input token count is #asked but model only supports up to #limit",
)
