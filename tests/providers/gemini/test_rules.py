"""The rules of Gemini on the turns of a request, and which signatures and images its errors mean."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from recoveryd.core import Block, Claims, Failure, Kind, RecordedError, Request, Turn, texts_of
from recoveryd.providers import classify, provider_of, why_unknown
from recoveryd.providers.gemini.provider import GEMINI
from tests.e2e.media import png

Body = dict[str, Any]
GOOD = base64.b64encode(b"\xff\xfe a signature").decode()
UNSIGNED = "skip_thought_signature_validator"
CORRUPTED = "Corrupted thought signature."
TORN = "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed for \"x%\""
STUDIO = "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse"
VERTEX = "https://us-central1-aiplatform.googleapis.com/v1beta1/projects/p/locations/l/publishers/google/models"


def request(*turns: list[Body]) -> Request:
    """Turns of the user and the model in turn, but what begins with a result is the user's; parts are counted."""
    made, number = [], 0
    for turn in turns:
        model = any(body["type"] in ("tool_use", "thinking") or "of_model" in body for body in turn)
        blocks = []
        for body in turn:
            blocks.append(Block({k: v for k, v in body.items() if k != "of_model"}, "m", str(number)))
            number += 1
        made.append(Turn("assistant" if model else "user", tuple(blocks), (("m", ""),)))
    return Request(tuple(made))


def words(text: str = "go", **fields: Any) -> Body:
    return {"type": "text", "text": text, **fields}


def call(name: str = "bash", given: object = None, **fields: Any) -> Body:
    return {"type": "tool_use", "id": "c", "name": name, "input": {} if given is None else given, **fields}


def result(content: object = "out") -> Body:
    return {"type": "tool_result", "tool_use_id": "c", "content": content}


def kinds(of: Request, claims: Claims | None = None) -> list[Kind]:
    return [violation.kind for violation in GEMINI.check(of, claims or Claims())]


def said(text: str, of: Request) -> Claims:
    refused = classify(RecordedError(texts_of({"message": text})))
    assert refused is not None
    return GEMINI.claims(refused, of, None)


def test_a_call_follows_the_user_or_results() -> None:
    assert kinds(request([words()], [call()], [result()], [call()], [result()], [words()])) == []
    assert kinds(request([call()], [result()], [words()])) == [Kind.ROLE_ORDER]
    assert kinds(request([words()], [words("so", of_model=1)], [call()], [result()])) == [Kind.ROLE_ORDER]
    assert kinds(request([words()], [words("so", of_model=1)], [words("and", of_model=1)], [words()])) == []


def test_a_call_has_its_result_in_the_next_turn() -> None:
    assert kinds(request([words()], [call()], [words()])) == [Kind.TOOL_RESULT_MISSING]


@pytest.mark.parametrize("name", ["my tool", "", "9lives", "x" * 129])
def test_an_illegal_name_is_found_and_what_mends_it_is_legal(name: str) -> None:
    assert kinds(request([words()], [call(name)], [result()])) == [Kind.TOOL_CALL_INVALID]
    mended = GEMINI.call_limits.illegal.sub("_", name)[:64] or "unknown"
    assert kinds(request([words()], [call(mended)], [result()])) == []


def test_inputs_empties_and_halves_are_found() -> None:
    assert kinds(request([words()], [call(given=["a"])], [result()])) == [Kind.TOOL_CALL_INVALID]
    assert kinds(request([words()], [words("", of_model=1)], [words(" ")])) == [Kind.EMPTY_CONTENT]
    assert kinds(request([words()], [], [words()])) == [Kind.EMPTY_CONTENT]
    assert kinds(request([words("\ud83d")])) == [Kind.INVALID_UNICODE]


def test_signatures_that_are_no_base64_go_alone_and_else_all_of_them() -> None:
    torn = request([words()], [call(signature=f"{GOOD}%")], [result()], [words("on", of_model=1, signature=GOOD)])
    assert said(CORRUPTED, torn).accused == said(TORN, torn).accused == {"1"}
    whole = request([words()], [call(signature=GOOD)], [result()], [words("on", of_model=1, signature=GOOD)])
    assert said(CORRUPTED, whole).accused == {"1", "3"}
    assert kinds(whole, said(CORRUPTED, whole)) == [Kind.THINKING_SIGNATURE_INVALID] * 2
    assert {v.field for v in GEMINI.check(whole, said(CORRUPTED, whole))} == {"signature"}


@pytest.mark.parametrize(
    "text",
    [
        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
        "correctly. Additional data, function call `default_api:read` , position 2.",
        "Function call `default_api:read` in the 4. content block is missing a `thought_signature`.",
        "The thought_signature is missing.",
    ],
)
def test_a_signature_that_is_missing_accuses_none_that_is_there(text: str) -> None:
    of = request([words()], [call(signature=GOOD)], [result()], [call()], [result()], [words()])
    assert said(text, of).accused == frozenset()


def test_a_signature_in_the_alphabet_of_urls_is_whole_and_the_mark_of_none_is_no_signature() -> None:
    urlsafe = GOOD.replace("+", "-").replace("/", "_").rstrip("=")
    of = request([words()], [call(signature=UNSIGNED)], [result()], [words("on", of_model=1, signature=urlsafe)])
    assert urlsafe != GOOD
    assert said(CORRUPTED, of).accused == {"3"}


def test_an_image_is_looked_into_and_only_a_single_one_believed_to_be_damaged_further_in() -> None:
    def picture(data: bytes, mime: str = "image/png") -> Body:
        source = {"type": "base64", "media_type": mime, "data": base64.b64encode(data).decode()}
        return {"type": "image", "source": source}

    broken = "Unable to process input image. Please retry or report in https://developers.generativeai.google/guide"
    assert kinds(request([picture(b"GIF89a", "image/gif")])) == [Kind.MEDIA_REJECTED]
    assert kinds(request([picture(b"no image")])) == [Kind.MEDIA_REJECTED]
    one, two = request([words(), picture(png(4, 4))]), request([picture(png(4, 4)), picture(png(4, 5))])
    assert kinds(one) == []
    assert kinds(one, said(broken, one)) == [Kind.MEDIA_REJECTED]
    assert kinds(two, said(broken, two)) == []
    seen = ([words(), picture(png(4, 4)), picture(png(4, 5))], [words("seen", of_model=1)])
    later, last = request(*seen, [picture(png(4, 6))]), request(*seen, [words("go on")])
    assert said(broken, later).media and kinds(later, said(broken, later)) == [Kind.MEDIA_REJECTED]
    assert not said(broken, last).media, "an answer stands behind each"
    assert not said("Unable to process input image. This model only supports text.", one).media
    assert not said("Too many images: at most 16 images are allowed.", later).media, "there are no more"
    assert len(said("Too many images: at most 2 images are allowed.", later).media) == 1
    answered = request([words(), picture(png(4, 4))], [words("seen", of_model=1)], [words("go on")])
    assert said(broken, answered).media and not said(f"messages.9.content.0: {broken}", answered).media
    document = {**picture(b"%PDF-1.7"), "type": "document"}
    document["source"] = {**document["source"], "media_type": "application/pdf"}
    mixed = request([picture(png(4, 4)), document])
    assert {part for part, _ in said("The document has no pages.", mixed).media} == {"1"}
    for words_of_it, why in (
        (broken, "the provider can't read it"),
        ("too many images", "there were more than the pro"),
    ):
        assert GEMINI.check(one, said(words_of_it, one))[0].reason.startswith(why)


def test_no_image_is_at_fault_where_the_whole_request_has_too_many_bytes() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(png(4, 4)).decode()}
    one = request([words(), {"type": "image", "source": source}])
    assert not said("Request payload size exceeds the limit: 20971520 bytes.", one).media


@pytest.mark.parametrize(
    ("url", "provider"),
    [
        (STUDIO, "google"),
        (STUDIO, "my-proxy"),
        (f"{VERTEX}/gemini-3-pro-preview:streamGenerateContent", "google-vertex"),
        ("https://opencode.ai/zen/v1/models/gemini-3-pro:streamGenerateContent", "opencode"),
        ("", "google"),
        ("", "google-vertex"),
    ],
)
def test_it_is_known_by_its_address_else_by_its_names(url: str, provider: str) -> None:
    failure = Failure("st", "ses", "msg", 0, RecordedError(url=url), provider, "gemini-3-pro-preview")
    assert provider_of(failure) is GEMINI


def test_other_models_of_google_are_left_alone() -> None:
    url = STUDIO.replace("gemini-3-pro-preview", "gemma-3-27b-it")
    failure = Failure("st", "ses", "msg", 0, RecordedError(url=url), "google", "gemma-3-27b-it")
    assert provider_of(failure) is None
    assert "only the rules of Gemini" in why_unknown(failure)
