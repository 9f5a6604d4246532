"""The soak's questions: right ones are valid for the server, wrong ones are counted as such."""

import random

from app.openai.types import Body, ChatBody, CompletionBody, EmbeddingBody
from bench.soak_requests import CHAT, COMPLETION, EMBEDDING, draw

BODIES: dict[str, type[Body]] = {CHAT: ChatBody, COMPLETION: CompletionBody, EMBEDDING: EmbeddingBody}


def test_every_right_question_is_one_that_the_server_takes() -> None:
    choose = random.Random(5)
    drawn = [draw(choose, ("quick", "seeing")) for _ in range(600)]
    for question in drawn:
        if question.statuses == (200,):
            BODIES[question.path].model_validate(question.body)
    kinds = {question.kind for question in drawn}
    assert {"chat", "completion", "picture", "embedding", "structure", "tools", "wrong"} <= kinds
    assert any(question.leaves_after is not None for question in drawn)
