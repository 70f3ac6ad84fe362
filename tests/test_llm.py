"""Language models as agents: their settings, requests, answers, failures, and ratings."""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from busenv import Game, cli
from busenv.agents import AgentError, make_agent
from busenv.agents.external import llm_agent
from busenv.agents.external.llm_agent import request_settings
from busenv.common.jsonl import read_lines
from busenv.errors import AgentUnavailableError
from tests.support.chat_server import KEY, chat, chat_server, first_legal, response
from tests.support.commands import refusal


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set environment variables; without any at first. Failed requests are repeated at once."""
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "BUSENV_LLM_SECONDS", "BUSENV_LLM_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0)
    llm_agent._client.cache_clear()

    def put(**values: str) -> None:
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    return put


def test_a_request_holds_the_prompts_and_the_answer_is_logged(
    variables: Callable[..., None], tmp_path: Path
) -> None:
    with chat_server() as (url, requests):
        variables(OPENAI_BASE_URL=url, OPENAI_API_KEY=KEY, BUSENV_LLM_OPTIONS='{"top_p": 0.5}')
        agent, game = make_agent("llm:a:b"), Game(4, seed=1)
        assert not requests  # nothing is sent before a decision
        agent.log_replies(tmp_path / "1.jsonl", 2)
        assert agent.act(game) == 8
        agent.log_replies(tmp_path / "1.jsonl", 2)
        assert agent.act(game) == 8
        request = requests.pop()
        assert not requests  # the second answer is in the log
        assert (request["model"], request["top_p"], request["max_tokens"]) == ("a:b", 0.5, 4096)
        assert request["path"] == "/v1/chat/completions"
        assert request["key"] == f"Bearer {KEY}"
        system, user = (message["content"] for message in request["messages"])
        assert "Its rules" in system
        assert user.startswith("You are seat ")
        for spec, listed, house in (
            ("llm@unlisted:m", False, True),
            ("llm@obfuscate=3:m", True, False),
            ("llm@unlisted,obfuscate=3:m", False, False),
        ):
            with suppress(AgentError):  # the stub answers with the first id of a list
                make_agent(spec).act(game)
            text = "".join(message["content"] for message in requests[-1]["messages"])
            assert ("legal actions:\n" in text, "house" in text) == (listed, house)
    (row,) = read_lines(tmp_path / "1.jsonl")
    assert (row["agent"], row["seat"], row["ply"]) == ("llm:a:b", 2, 0)
    assert (row["input_tokens"], row["output_tokens"]) == (1000, 20)


PARTS = [{"type": "text", "text": "I think\n"}, {"type": "text", "text": "8"}]


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (PARTS, 8),
        (None, "is empty"),
        (f"key {KEY}", r"key \[key\]"),
        ("\ud800", "is not an action"),
    ],
)
def test_answers_of_several_servers_are_read(
    content: object, seen: int | str, variables: Callable[..., None]
) -> None:
    with chat_server(lambda _: chat(content, usage=None)) as (url, requests):
        variables(OPENAI_BASE_URL=url, OPENAI_API_KEY=KEY)
        agent = make_agent("llm:m")
        if isinstance(seen, int):
            assert agent.act(Game(3, seed=0)) == seen
            return
        with pytest.raises(AgentError, match=f"3 invalid answers; .*{seen}") as caught:
            agent.act(Game(3, seed=0))
    assert not isinstance(caught.value, AgentUnavailableError)
    assert len(requests) == 3


CUT_OFF = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"
FAILURES = {
    "401": (response("401 No", f"bad key {KEY}"), 1, "answered 401; check OPENAI_API_KEY: bad key"),
    "404": (response("404 No", "no model"), 1, "check OPENAI_BASE_URL and the model"),
    "400": (response("400 Bad", "no top_q"), 1, "check BUSENV_LLM_OPTIONS: no top_q"),
    "late": (response("429 Later", "", "Retry-After: 0.01"), 3, "answered 429"),
    "cut off": (CUT_OFF, 3, "no connection to the server"),
    "login page": (response("200 OK", "<html>", "Content-Type: text/html"), 1, "other than a chat"),
    "other JSON": (b'{"choices": []}', 1, "other than a chat completion"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_whatever_is_not_the_model_s_own_text_makes_it_unavailable(
    name: str, variables: Callable[..., None], tmp_path: Path
) -> None:
    answer, times, words = FAILURES[name]
    with chat_server(lambda _: answer) as (url, requests):
        variables(OPENAI_BASE_URL=url, OPENAI_API_KEY=KEY)
        agent = make_agent("llm:m")
        agent.log_replies(tmp_path / "0.jsonl", 0)
        with pytest.raises(AgentUnavailableError) as caught:
            agent.act(Game(3, seed=0))
    assert words in str(caught.value)
    assert KEY not in str(caught.value)
    assert len(requests) == times
    assert not (tmp_path / "0.jsonl").exists()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ALL_PROXY", "http://127.0.0.1:9", "check OPENAI_BASE_URL and the proxy"),
        ("SSL_CERT_FILE", "/nowhere", "check OPENAI_BASE_URL and the proxy"),
        ("OPENAI_BASE_URL", "http://user:word@127.0.0.1:9/v1", "check OPENAI_BASE_URL"),
        ("BUSENV_LLM_SECONDS", "0.2", r"no answer within 0\.2 s \(BUSENV_LLM_SECONDS\)"),
    ],
)
def test_a_broken_network_makes_a_model_unavailable(
    name: str, value: str, words: str, variables: Callable[..., None]
) -> None:
    def answer_late(_: object) -> bytes:
        time.sleep(0.4)
        return chat("8")

    with chat_server(answer_late) as (url, _):
        variables(**{"OPENAI_BASE_URL": url, name: value})
        with pytest.raises(AgentUnavailableError, match=words) as caught:
            make_agent("llm:m").act(Game(3, seed=0))
    assert "user" not in str(caught.value)


def test_missing_and_wrong_settings_are_reported(variables: Callable[..., None]) -> None:
    with pytest.raises(ValueError, match="need OPENAI_API_KEY, or OPENAI_BASE_URL"):
        make_agent("llm:m")
    variables(OPENAI_API_KEY=KEY, BUSENV_LLM_SECONDS="")  # an empty variable counts as unset
    assert request_settings() == {"seconds": 60, "options": {"max_completion_tokens": 4096}}
    variables(OPENAI_BASE_URL="https://eu.api.openai.com/v1")
    assert request_settings()["options"] == {"max_completion_tokens": 4096}
    variables(OPENAI_BASE_URL="http://localhost:8080/v1")
    assert request_settings()["options"] == {"max_tokens": 4096}
    for name, value in (
        ("BUSENV_LLM_SECONDS", "soon"),
        ("BUSENV_LLM_SECONDS", "-1"),
        ("BUSENV_LLM_OPTIONS", "[1]"),
        ("BUSENV_LLM_OPTIONS", "{"),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(name, value)
            with pytest.raises(ValueError, match=name):
                make_agent("llm:m")


@pytest.mark.usefixtures("threads_as_workers", "few_resamples")
def test_a_rating_stops_without_a_server_and_resumes_without_repeated_requests(
    variables: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, wrong = tmp_path / "run", random.Random(1)
    command = ["rate", "llm:stub", "greedy", "random", "--players", "3", "--games", "1"]
    command += ["--workers", "1", "--out", str(folder)]
    calls = {"answers": 0, "left": 100}

    def answer(request: dict[str, Any]) -> bytes:
        if not calls["left"]:
            return response("503 Gone", "")
        calls["left"] -= 1
        calls["answers"] += 1
        return chat("no idea") if wrong.random() < 0.05 else first_legal(request)

    with chat_server(answer) as (url, _):
        variables(OPENAI_BASE_URL=url, OPENAI_API_KEY=KEY)
        error = refusal(capsys, *command)
        assert "answered 503" in error
        assert "resumes" in error
        calls["left"] = 10**6
        cli.main(command)
    output = capsys.readouterr().out
    games = [*read_lines(folder / "games.jsonl")]
    files = sorted((folder / "replies").glob("*.jsonl"))
    rows = [row for file in files for row in read_lines(file)]
    assert len(rows) == calls["answers"]  # no request was repeated
    assert sum(row["attempt"] == 0 for row in rows) == sum(
        game["decisions"][game["agents"].index("llm:stub")] for game in games
    )
    assert f"{1000 * len(rows):,}" in output
    assert "requests to language models" in (folder / "report.md").read_text().lower()
    assert KEY not in "".join(file.read_text() for file in [*files, *folder.glob("*.*s*")])
    error = refusal(capsys, *command, "--ray", "local")
    assert "language models play on this machine only" in error
