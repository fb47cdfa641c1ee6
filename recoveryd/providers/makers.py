"""Makers of models with rules of their own, whatever API of another they speak: told by a model's name, or the host."""

from __future__ import annotations

# Parts of names, in lower case.
MODELS = (
    r"deepseek|kimi|moonshot|minimax|abab|glm|z-?ai|zhipu|qwen|qwq|mimo|longcat|doubao|seed-|ernie|hunyuan|step-"
    r"|gemini|gemma|grok|llama|mistral|mixtral|magistral|devstral|codestral|ministral|nova-|nemotron|phi-|granite"
    r"|kat-coder|ling-|command-|cohere|jamba|arcee|hermes|exaone|internlm|baichuan|pangu"
)
# Who answers there answers itself, whatever the model is called: some take the names of others for theirs.
HOSTS = (
    "deepseek.com",
    "moonshot.cn",
    "moonshot.ai",
    "kimi.com",
    "minimax.io",
    "minimax.chat",
    "minimaxi.com",
    "z.ai",
    "bigmodel.cn",
    "aliyuncs.com",
    "volces.com",
    "bytepluses.com",
    "xiaomimimo.com",
    "longcat.chat",
    "siliconflow.cn",
    "siliconflow.com",
    "modelscope.cn",
    "baidubce.com",
    "tencent.com",
    "stepfun.com",
    "stepfun.ai",
    "x.ai",
    "mistral.ai",
)
