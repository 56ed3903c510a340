"""Models behind an endpoint: what is sent, what is recorded, and what no one must read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from endpoints import connect, question
from PIL import Image
from strange_server import StrangeServer, good_words, images_in
from worded import worded

from vrag_kit.benchmarks import ImageFile
from vrag_kit.benchmarks.images import pixel_hash
from vrag_kit.errors import VragError
from vrag_kit.generation import AnswerStore, Task, ask_prompts, load_generator
from vrag_kit.generation.remote.generator import data_url
from vrag_kit.generation.remote.providers import ENDPOINTS
from vrag_kit.types import Failure, Status

SECRET = "tk-Lorem1psum2dolor"
LOCAL = "m@http://localhost:1/v1"
pytestmark = pytest.mark.usefixtures("short_pauses")


def test_a_redirection_takes_the_key_to_no_other_host(
    server: StrangeServer, store: AnswerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY", SECRET)
    with StrangeServer() as other:
        server.plans = {"Reply with the word": [f"to {other.url}/chat/completions"]}
        with pytest.raises(VragError, match="HTTP 307: "):
            ask_prompts(connect(server, key="GATEWAY"), [question("what?")], store)
        assert other.requests == []


def test_what_only_sounds_like_a_secret_may_be_in_an_entry() -> None:
    body = {"thinking_tokens": 100, "eos_token": "</s>", "reasoning_effort": "medium"}
    body |= {"extra": {"prefix": "task-2-answer", "draft": "Qwen/Qwen2.5-VL-7B-Instruct-AWQ"}}
    entry = {"model": LOCAL, "body": {**body, "guide": "Use basic English. Name 123 things"}}
    assert load_generator(entry, decoding={"temperature": 0}).sent["body"] == entry["body"]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"x_token": SECRET}, "body.x_token"),
        ({"user": ["a", "q7Gh2Lk9Zx4Vb1Nm5Rt8Ws3"]}, "body.user"),
        ({"extra": "Bearer abcdefgh"}, "body.extra"),
    ],
)
def test_a_secret_in_an_entry_is_refused_and_not_shown(body: dict[str, Any], named: str) -> None:
    """More are in `bad_inputs.csv`."""
    with pytest.raises(VragError, match=f"{named}: .*`key`") as refused:
        load_generator({"model": LOCAL, "body": body})
    for secret in (SECRET, "q7Gh2", "abcdefgh"):
        assert secret not in str(refused.value)


@pytest.mark.parametrize("address", ["ann:pw-1@localhost:1/v1", "localhost:1/v1?key=pw-1"])
def test_an_address_with_a_password_is_refused_without_showing_it(address: str) -> None:
    alone, listed = f"m@http://{address}", f"m@[http://localhost:2/v1, http://{address}]"
    for entry in (alone, listed, {"model": alone, "timeout": "long"}):
        with pytest.raises(VragError, match="user name, a password or a query") as refused:
            load_generator(entry, decoding={"temperature": 0})
        assert "pw-1" not in str(refused.value)
        assert "localhost:1/v1" in str(refused.value)
        assert "`key`" in str(refused.value)


def test_images_arrive_in_order_with_the_same_pixels(server: StrangeServer, tmp_path: Path) -> None:
    noise, exif = Image.effect_noise((64, 48), 90).convert("RGB"), Image.Exif()
    exif[0x0112] = 6
    noise.save(tmp_path / "turned.jpg", exif=exif)
    noise.save(tmp_path / "plain.jpg")
    for name, mode in {"grey.png": "L", "clear.png": "RGBA", "palette.gif": "P"}.items():
        noise.convert(mode).save(tmp_path / name)
    images = [ImageFile(path) for path in tmp_path.iterdir()]
    prompt = worded("several_images", "What?", images)

    def sent(**options: Any) -> list[str]:
        """The kinds of a message's parts."""
        connect(server, **options).generate([prompt])
        return [part["type"] for part in server.requests[-1]["messages"][0]["content"]]

    assert sent() == ["text"] + ["image_url"] * 5
    pixels = [pixel_hash(image) for image in images_in(server.requests[-1])]
    assert pixels == [pixel_hash(image.open()) for image in images]
    assert sent(images_first=True, max_image_side=32) == ["image_url"] * 5 + ["text"]
    assert {max(image.size) for image in images_in(server.requests[-1])} == {32}
    assert data_url(ImageFile(tmp_path / "plain.jpg")).startswith("data:image/jpeg")  # as it is


def test_what_is_sent_is_recorded(
    server: StrangeServer, store: AnswerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`requests.json` of the goldens holds what every endpoint and server is sent."""
    monkeypatch.setitem(ENDPOINTS["openai"], "base_url", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    entry = {"model": "o4-mini@openai", "body": {"safety": "off"}}
    expected = {"max_completion_tokens": 64 + 8192, "reasoning_effort": "medium", "safety": "off"}
    model = load_generator(entry, decoding={"max_new_tokens": 64})
    task = Task(sample=3, samples=4)
    (answer,) = ask_prompts(model, [question("what?")], store, task=task)
    sent = {name: value for name, value in server.requests[-1].items() if name != "messages"}
    assert sent == {"model": "o4-mini", **expected}
    recorded = {**answer.sent, **answer.sent["body"]}
    assert {name: recorded[name] for name in expected} == expected
    assert answer.tokens == {"prompt": 100, "completion": 10}
    assert (answer.sample, answer.fields["served"]) == (3, "strange-2026")


def test_a_served_checkpoint_decodes_as_its_generation_config_says(tmp_path: Path) -> None:
    own = {"do_sample": True, "temperature": 0.6, "top_k": 20}
    (tmp_path / "generation_config.json").write_text(json.dumps(own))
    place = f"{tmp_path}@http://localhost:1/v1"
    entry = {"model": place, "server": "vllm", "name": "m"}
    served = load_generator(entry, decoding={"temperature": None})
    assert (served.decoding["temperature"], served.decoding["top_k"]) == (0.6, 20)
    (tmp_path / "generation_config.json").unlink()
    with pytest.raises(VragError, match=r"`decoding`.*temperature"):
        load_generator({"model": place}, decoding={"temperature": None})


def test_a_key_is_needed_only_to_ask_and_is_written_nowhere(
    server: StrangeServer,
    store: AnswerStore,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def ask() -> Any:
        model = load_generator({"model": "gpt-4o@openai", "retries": 0})
        return ask_prompts(model, [question("what?"), question("strange?")], store)

    server.plans = {"strange?": ["status 500 the key sk-secret-1 is odd"]}
    monkeypatch.setitem(ENDPOINTS["openai"], "base_url", server.url)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(VragError, match="export OPENAI_API_KEY=…"):
        ask()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-sëcret-1")
    with pytest.raises(VragError, match="invalid characters"):
        ask()
    assert server.requests == []
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1\r")
    answers = ask()
    assert answers[1].failure == Failure(Status.ERROR, "HTTP 500: the key … is odd")
    monkeypatch.delenv("OPENAI_API_KEY")
    assert ask() == answers
    assert b"sk-secret" not in store.path.read_bytes()
    assert "sk-secret" not in capsys.readouterr().out


def test_samples_are_seeded_apart(server: StrangeServer, store: AnswerStore) -> None:
    tasks = [Task(sample=n, samples=9) for n in (0, 1, 0)]
    prompts = [question("what?")]
    first, second, again = (
        ask_prompts(connect(server), prompts, store, task=task) for task in tasks
    )
    assert first == again != second
    words = {"messages": server.requests[1]["messages"], "seed": 0}
    assert first[0].raw == good_words(words)


def test_the_key_holds_what_determines_the_answer_and_a_given_name_but_no_port() -> None:
    def key(place: str = "http://localhost:1/v1", **options: Any) -> tuple[str, str]:
        entry = {"model": f"gpt-4o@{place}", "decoding": {"temperature": 0}, **options}
        model = load_generator(entry)
        return model.fingerprint, json.dumps(model.decoding)

    assert key() == key("http://localhost:2/v1") == key("[http://a:1/v1, http://b:2/v1/]")
    assert key(decoding={"temperature": 0.0}) == key()
    changes = [{"name": "other"}, {"body": {"top_k": 6}}, {"max_image_side": 32}]
    others = [key(**change) for change in changes]
    assert len({key(), key("openai"), *others}) == 5
