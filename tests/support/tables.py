"""The generated tables of docs/: `python -m tests.support.tables` writes them into the pages."""

import io
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from itertools import chain

import pytest

import busenv
from busenv import cli
from busenv.cli.benchmark_command import COMMANDS as BENCH_COMMANDS
from busenv.observation import ObservationLayout
from busenv.train.config import PPOConfig, RunConfig
from busenv.train.expert_iteration.expert_config import ExpertConfig
from tests.support.pages import ROOT

MEANINGS = {
    "all_opponents_share": "share of the games with opponents in which they play all other seats",
    "batch_size": "decisions per minibatch",
    "board": "name or file of a board, `generated:SIZE:SEED`, or a set: `generated:SIZE:train`",
    "bot_share": "share of the games with a seat of one of `bots`",
    "bot_simulations": "simulations of the bot `uct`",
    "bots": "agents that play against the learner; PPO draws one for each seat that is not the "
    "learner's, expert iteration one for each game with a bot",
    "clip_range": "clip range of the policy ratio",
    "decisions": "length of the run in decisions learned from",
    "device": "`cuda`: PPO plays and learns on a GPU; `auto`: on a GPU if there is one and `bots` "
    "has no others than `random` and `greedy`",
    "entropy_coef": "weight of the entropy in the loss",
    "epochs": "passes over a rollout",
    "fast_simulations": "simulations of decisions that are not learned from",
    "full_search_share": "share of the decisions that use `num_simulations` and are learned from",
    "gae_lambda": "lambda of generalized advantage estimation",
    "games": "games per iteration; PPO: games side by side, which continue between iterations",
    "gamma": "discount per decision",
    "init_from": "model whose weights the run starts from; empty: random weights",
    "learning_rate": "learning rate at the start; falls linearly to a twentieth of it at the end",
    "max_grad_norm": "maximum norm of the gradient",
    "method": "training method",
    "network": "kind of network",
    "num_simulations": "simulations of decisions that are learned from",
    "offline_data": "replay folders of earlier runs to learn from first",
    "offline_epochs": "passes over the offline data",
    "opponent_share": "probability that a seat other than one of the learner's is an "
    "opponent's, in 60% of the games; in 40% "
    "copies of one opponent hold all seats but one; 0: no opponents",
    "past_share": "share of the games with a seat of a past self",
    "players": "numbers of players of the games",
    "pool_size": "maximum number of past selves",
    "precision": "precision of the layers during learning; `auto` (PPO): bfloat16 on a CPU with "
    "instructions for it",
    "rate_every": "seconds between ratings, or more where they would take over a tenth of the run",
    "rate_games": "games per rating and agent",
    "rated": "agents that the learner is rated against",
    "relative_types": "observations and actions count building types from the clock",
    "replay_size": "decisions stored to learn from",
    "reuse": "how often updates use a decision, on average",
    "reward": "reward by name",
    "reward_unit": "divisor of the reward",
    "rules": "edition, or file of rules",
    "score_weight": "weight of the final points in the loss",
    "seconds": "length of the run in seconds, ratings included",
    "seed": "seed of weights, games and minibatches",
    "snapshot_every": "iterations between past selves",
    "steps": "steps of a rollout in each game",
    "staleness": "iterations by which play runs ahead of learning",
    "teacher": "agent whose games are learned from first, such as `uct@4:150` on four threads; "
    "empty: none",
    "teacher_games": "games of the teacher, rounded up to a multiple of 64",
    "teacher_reuse": "how often updates use a decision of the teacher, on average",
    "teacher_sample_share": "share of the teacher's decisions that is learned from",
    "teacher_share": "maximum share of the run spent on the teacher",
    "temperature": "temperature of the agent in ratings and of `net:PATH`; 0: most likely action",
    "temperature_moves": "decisions of a game that are sampled from the search's policy",
    "threads": "threads of torch, of self-play and of the vector environment",
    "value_coef": "weight of the value loss",
    "value_target_mix": "share of the search's estimate in the value target",
    "value_weight": "weight of the winner in the loss",
    "width": "units per layer; of kind `board`, the length of an intersection's vector",
}
SUBCOMMANDS = {"bench": [("bench", command.name) for command in BENCH_COMMANDS]}
TABLE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def observation_table() -> str:
    """The parts of an observation of the city board."""
    layout = ObservationLayout(busenv.load_board("city"))
    lines = []
    for name, section in layout.sections.items():
        end = section.start + section.entries * section.width - 1
        order = "; all of one feature, then all of the next." if section.planes else "."
        lines += [
            f"### {name}",
            "",
            f"{section.entries} x {section.width} bytes, {section.start} to {end}{order}",
            "",
            "| part | shape | usual maximum | meaning |",
            "|---|---|---:|---|",
        ]
        lines += [
            f"| `{part.name}` | {part.shape} | {part.high} | {part.meaning} |"
            for part in layout.parts.values()
            if part.section == name
        ]
        lines.append("")
    return "\n".join(lines)


def editions_table() -> str:
    """The fields of every edition."""
    editions = busenv.EDITIONS
    lines = ["| field | " + " | ".join(f"`{name}`" for name in editions) + " |"]
    lines.append("|---|" + "---|" * len(editions))
    for field in [*next(iter(editions.values())).__dataclass_fields__]:
        values = [str(getattr(rules, field)) for rules in editions.values()]
        lines.append(f"| `{field}` | " + " | ".join(values) + " |")
    return "\n".join(lines) + "\n"


def settings_table(config: type[RunConfig]) -> str:
    """The settings of a training run: name, allowed values, default, meaning."""
    properties = config.model_json_schema()["properties"]
    lines = ["| setting | allowed | default | meaning |", "|---|---|---|---|"]
    for name, field in config.model_fields.items():
        default = field.default
        text = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
        schema = properties[name]
        columns = (f"`{name}`", _allowed(schema), f"`{text}`" if text else "empty", MEANINGS[name])
        lines.append(f"| {' | '.join(columns)} |")
    return "\n".join(lines) + "\n"


def _allowed(schema: dict) -> str:
    """The type and range of a setting, from its JSON schema."""
    schema = schema.get("anyOf", [schema])[0]
    if "const" in schema or "enum" in schema:
        values = schema.get("enum") or [schema["const"]]
        return ", ".join(f"`{value}`" for value in values)
    if schema["type"] == "array":
        return f"list of: {_allowed(schema['items'])}"
    if schema["type"] in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum"))
        above = "above " if "exclusiveMinimum" in schema else ""
        high = f"{schema['maximum']:,.16g}" if schema["maximum"] < 2**62 else "2**63 - 1"
        return f"{'int' if schema['type'] == 'integer' else 'float'}, {above}{low:g} to {high}"
    return {"string": "text", "boolean": "true, false"}[schema["type"]]


def commands_table() -> str:
    """The output of `busenv --help`, and the help of each command in it."""
    overview = f"```text\n{help_text()}```"
    names = re.findall(r"^ {2,4}([a-z]+)(?: {2,}|$)", overview, re.MULTILINE)
    parts = [overview]
    for words in chain.from_iterable([(name,), *SUBCOMMANDS.get(name, [])] for name in names):
        parts.append(f"## {' '.join(words)}\n\n```text\n{help_text(*words)}```")
    return "\n\n".join(parts) + "\n"


@cache
def help_text(*words: str) -> str:
    """The output of `busenv WORDS --help` at 80 columns."""
    output = io.StringIO()
    with redirect_stdout(output), pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        with pytest.raises(SystemExit, match="0"):
            cli.main([*words, "--help"])
    return output.getvalue()


TABLES: dict[str, Callable[[], str]] = {
    "commands": commands_table,
    "editions": editions_table,
    "observation": observation_table,
    "ppo_settings": lambda: settings_table(PPOConfig),
    "expert_settings": lambda: settings_table(ExpertConfig),
}


def with_tables(text: str) -> str:
    """A page with its generated tables replaced by current ones."""
    return TABLE.sub(lambda match: f"{match[1]}\n{TABLES[match[2]]()}\n{match[3]}", text)


def main() -> None:
    """Write the tables into the pages that have markers for them."""
    for path in sorted((ROOT / "docs").glob("*.md")):
        path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
