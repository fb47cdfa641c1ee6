"""What is left of a cut sentence, and the grammar that providers share: asked only when no row of `SURE` speaks.

A row here says what is wrong with what (an image, too large), not how one provider puts it.
"""

from __future__ import annotations

from recoveryd.providers.sentences.rows import read

_LIKELY = """
none
  names of errors, which stand around any sentence: invalid_request_error | status: INVALID_ARGUMENT
  names of errors, which stand around any sentence: type: not_found_error | code: model_not_found | tool_use_failed
  status 415, of the form of a request [unless image, pdf, document, audio, video]: unsupported media type
  OpenAI, of what an answer is to include: encrypted content is not supported with this model
  LiteLLM, around errors of other kinds too: ContextWindowExceededError
  several, of the answer's length [unless prompt, input]: {max_completion_tokens/max_output_tokens} # exceed
  several, of the answer's length [unless prompt, input]: max_tokens {/parameter/value} # {/which} exceed
  several, of thinking [unless prompt, input]: {budget_tokens/thinking budget} # {/which} exceed
  several, of the system prompt: system prompt {/is} too {long/large}
  several, of a tool's definition [unless messages, conversation, prompt]: {tool/function} {definitions/schemas} exceed
  several, of a tool's definition: tool names must be unique | toolConfig.tools
  AI SDK, before it sends anything: {image/file} mime type: * expected one of
  AI SDK, before it sends anything: file part media type * functionality not supported
  AI SDK, before it sends anything: AI_UnsupportedFunctionalityError: media type: * functionality not supported
media_rejected of one
  OpenAI, Gemini, a cut path [unless download, fetch]: expected a base64-encoded data url | inline_data.data
media_rejected over number
  several, too many: too {many/much} {image_url/media/documents/pdf/attachments}
  several, too many [unless open]: too {many/much} {images/input images/url images/files}
  several, too many [unless generat]: {at most/maximum/maximum of/up to/limit of} # {image/document/pdf}
  several, too many [unless generat]: {contains/contain} # images which exceed | more than # images
  several, too many: too many {total images/pages} | image_urls are limited | image urls are limited
  several, too many [unless generat]: maximum number of images | limit on max images
  several, too many: image{/s} {count/number} # exceed | number of images * {exceed/more than/greater than/limit}
  several, too many: {images/media/document/pdf/attachment} count # exceed
  several, too many: exceeds {/the/max/the max} {allowed/supported} page limit | 图片数量{超过/超出}
media_rejected over size
  several, too large: {image/images/media/document/pdf/attachment/file size} {/size} # exceed
  several, too large: {image/image size/image file/image data/image payload/media/document/pdf} {/is/are/was} too large
  several, too large [unless token]: {image/pdf} * exceeds the maximum {size/file size}
  several, too large: image {/size/file} {/is/are} too big
  several, too large: exceeds {/the/max/the max} {allowed/supported} {file size/image size}
  several, in Chinese: 图片{/大小}{超过/超出} | 图片过大
media_rejected over bytes
  several, too large: referenced files bytes are too large
media_rejected over sides
  several, too large: {image/images/media/document/pdf/attachment/file size} dimensions # exceed
  several, too large [unless token]: {image/pdf} * exceeds the maximum resolution
  several, too large: image {/size/file/width/height/resolution} {/is/are} too {big/large/small/wide/tall/long}
  several, too large: image {dimension/resolution/width/height} * must be | 图片尺寸{超过/超出}
  several, too large: {dimension/dimensions/width/height} {/of the/of an/of} image * {exceed/must be/too}
media_rejected
  several, of a wrong type: only image types are supported
  several, of a wrong type: invalid value: {file/input_file/document} supported values are
media_rejected of one
  several, of a wrong type: {invalid/unsupported} {mime type/image media type}
  several, of a wrong type: {image/document/media/audio/video} {type/format/media type} * {unsupported/not supported}
  several, of a wrong type: unsupported {file type/file format/document type/image type}
  several, damaged [unless download, fetch, image_url]: {invalid/corrupt/malformed} {/png/jpeg/gif/webp} image
  several, damaged [unless download, fetch]: {invalid/corrupt/malformed/corrupted} {pdf/image/document}
  several, damaged [unless download, fetch]: {not/cannot/failed to/unable to} {process/decode/parse} {image/pdf}
  several, damaged [unless download, fetch]: {not/cannot/failed to/unable to} {process/decode/parse} {the/input} image
  several, damaged [unless download, fetch]: {cannot/unable to} {identify/open} {/the} image
  several, damaged: {image/pdf/document/audio/video} * {cannot/could not} be {decoded/parsed/processed/identified/read}
  several, damaged: {image/pdf/document} {/is/file/data/file is/data is} {corrupt/damaged/encrypted/not valid}
  several, damaged: {is not/not represent/not contain} a valid {image/pdf/jpg/png} | base64 decoding failed
  several, in Chinese: 图片 * {格式/解析} * 错误
thinking_signature_invalid
  several: signature in thinking block | thinking block * signature | thinking signature {/is} {invalid/not valid}
  several [unless internal, timeout]: thinking signature {/is/was} {rejected/malformed/corrupt/mismatch/missing}
  several [unless internal, timeout]: thinking signature {/verification/validation} failed
  several [unless internal, timeout]: thinking signature {/is/does/could/can} not {match/correct/found/be verified}
  several [unless internal, timeout]: {bad/malformed/corrupt/corrupted/missing} thinking signature
  several [unless internal, timeout]: {failed to/not/unable to} {verify/validate/decode} {/the} thinking signature
thinking_block_modified
  several: thinking block{/s} * {cannot/must not/may not} be {modified/changed/altered/edited}
  several: thinking blocks must * unchanged
thinking_disabled_violation
  several: thinking blocks * when thinking is {disabled/not enabled/off}
thinking_final_block
  several: {cannot/must not/may not} end with {/a} {thinking/redacted_thinking}
thinking_block_order
  several: must {start/begin} with {/a} {thinking/redacted_thinking/reasoning} | thinking * must {come/be} first
tool_result_missing
  several: {tool_use/function_call} * without * {tool_result/function_call_output} | tool_call * without * response
  several: {tool_use/tool_call/function_call} * {must be/not} followed by {/a/its/the} {tool/function/corresponding}
  several: {tool_use/tool_call/function_call} * {not have/has no/have no} {/a/corresponding} {result/response/tool}
  several: {missing/no matching/no corresponding} {tool_result/tool response/tool output/function response}
  several: {missing/no matching/no corresponding} {function_call_output/tool message}
  several: {tool_use/tool_call/function_call} * is missing {/a/its/the} {tool/result/response/output}
  several: unanswered tool | tool use concurrency | {no response/no result/no output} {found for/for} {tool/function}
tool_result_orphan
  several: {tool_result/function_call_output} * without * {tool_use/function_call} | orphaned tool_result
  several: {tool message/role tool/function response} * {must follow/must be preceded by/without preceding}
  several: {no corresponding/no matching/no preceding/no prior} {tool_use/tool_call/function_call} | orphan tool
  several: {tool_result/tool message/function_call_output} * {unknown/unmatched} {tool_use/tool_call/call_id}
  several: not match any {/preceding/previous} {tool_call/tool_use/function_call}
  several: {tool_call_id/tool_use_id/call_id} * not found
tool_call_invalid
  several [unless tool_use_failed]: arguments must be {/a/in} {valid json/json format/json object}
  several: tool call id{/s} {must be/should be/must match/must have} {/a/of} {alphanumeric/unique/length/pattern/string}
  several: duplicate {tool_use/tool_call/call_id/function_call} | invalid {tool_call_id/tool_use_id/call_id}
empty_content
  several: content {must not be/cannot be/can not be/should not be/may not be} {empty/blank/null}
  several: content must be {/a} non-empty | {message/text} content is {empty/blank} | content field * cannot be
  several: {message/content} {must be/should be/must have} at least # {token/character}
  several: {content/text}: {string/list/value} should have at least # {item/character/element}
  several: content {len/length} {must not/should not/cannot} be {0/zero}
  several: messages {must not/cannot} be empty | message {must not/cannot} be empty
  several: {messages/message/content/parts/contents} * at least one {part/content/non-empty/text part/element}
  several: {empty/blank} {content block/text block/assistant message/text content/text part} | with empty content
  several: non-empty content
invalid_unicode
  any JSON reader [unless reading from, session file]: surrogate
  any JSON reader [unless reading from, session file, response body]: not valid {utf-8/utf-16/unicode}
  any JSON reader [unless reading from, session file]: {body/json/request/messages} * invalid {utf-8/utf-16/unicode}
assistant_prefill
  several: last {message/turn/content} {cannot be/must not be/must be/should be/role must be/role should be}
  several: last {message/turn/content} * {must be/should be/must have role} {/a/an/from/from the} user
  several: {must/should} end with {/a/the} user | {cannot/must not/may not} end with {/a/an/the} assistant
  several: {not support/not allow/not accept} * prefill | prefill * {not support/unsupported/incompatible/not allowed}
trailing_whitespace
  several: {assistant/prefill} * {trailing/end with/ends with/end in} {whitespace/white space}
role_order
  several: {must/should} {start/begin} with {/a/the} user | first message * {must be/should be} {/a/from/from the} user
  several: {consecutive/successive} {user/assistant/messages} | alternate roles | alternating roles | must alternate
  several: roles * {alternate/alternating} | {messages/message} * {must be/should be} alternating
reasoning_item
  several: encrypted * content * {decrypt/verified/not issued to/is invalid/expired} | decrypt * encrypted_content
  several: invalid encrypted_content | {encrypted_content/reasoning item} * not found
reasoning_missing
  several: missing * {reasoning_content/reasoning_details} | reasoning_text * must be passed back
  several: must {include/contain/provide} {reasoning_content/reasoning_details}
  several: {reasoning_content/reasoning_details} {/field/is/field is} {required/missing/not provided}
context_overflow
  several [unless rate limit, per minute, quota, possible causes]: exceed * context {window/length/size/limit}
  several [unless rate limit, per minute, quota]: exceed * {max_model_len/maximum model length/prompt length}
  several [unless rate limit, per minute, quota]: exceed * {input length/maximum input tokens}
  several [unless rate limit, per minute, quota]: exceed {/the/the model's} {max/maximum} {context/sequence length}
  several [unless rate limit, per minute, quota]: {input tokens/prompt tokens} # exceed {/the} model
  several [unless rate limit, per minute, quota]: {longer/larger} than the {/model's/model's maximum/maximum} context
  several [unless rate limit, per minute, quota]: context {/length/window/size} {/is/was/has been} exceeded
  several [unless rate limit, per minute, quota]: {prompt/input/context/conversation} {/is/length is} too {long/large}
  several [unless rate limit, per minute, quota]: too long {for/to fit} * context | too many input tokens
  several [unless rate limit, per minute, quota]: {message history/token length} {/is} too long
  several [unless rate limit, per minute, quota]: tokens in request more than max | too large for * max size: # tokens
  several, by bytes [unless rate limit, per minute, quota]: {payload/content/request entity} too large
  several, by bytes [unless rate limit, per minute, quota]: request body {/is} too large
  several, by bytes [unless token, rate limit, per minute, quota]: {request body/payload} {/size} # exceed * {limit/max}
  several, by bytes [unless token, rate limit, per minute, quota]: {request/request body/payload} size limit exceeded
  several, by bytes: maximum request body size # exceeded
  several, in Chinese: {prompt/输入/上下文/对话/消息} {/内容/总}{/长度}超长
  several, in Chinese: {输入/上下文/对话/消息} {/内容/总/的总}长度 {/已}{超过/超出/超限}
  several, in Chinese: {超过/超出}{/了}{/模型}{/的}{/最大}{/输入/上下文} {上下文长度/输入长度/上下文窗口/上下文限制}
"""

LIKELY = read(_LIKELY)
