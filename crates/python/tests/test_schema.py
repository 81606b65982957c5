"""The JSON Schemas of scenario and policy files, by a validator of others."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from conftest import ROOT, Command

LINE = """
duration = "10 s"
[access]
down = { rate = "2 Mbit/s" }
up = { rate = "512 kbit/s" }
"""
DOWNLOAD = f"""{LINE}
[[traffic]]
kind = "bulk"
direction = "down"
"""
CLASS = """
[[class]]
name = "a"
rate = "20 %"
"""


Schema = dict[str, Any]


@pytest.fixture
def scenarios(lastmile: Command) -> Schema:
    schema: Schema = json.loads(lastmile("schema", "scenario").stdout)
    return schema


@pytest.fixture
def policies(lastmile: Command) -> Schema:
    schema: Schema = json.loads(lastmile("schema", "policy").stdout)
    return schema


def valid(schema: Schema, text: str) -> bool:
    return next(Draft202012Validator(schema).iter_errors(tomllib.loads(text)), None) is None


def faults(schema: Schema, path: Path) -> list[str]:
    file = tomllib.loads(path.read_text())
    return [f"{path}: {error.json_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(file)]


def files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.toml"))]


def tables(value: Any) -> Iterator[dict[str, Any]]:
    """Every table in a schema."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from tables(item)


def test_both_are_schemas_of_their_draft(scenarios: Schema, policies: Schema) -> None:
    for schema in [scenarios, policies]:
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        Draft202012Validator.check_schema(schema)


def test_every_shipped_scenario_is_valid(scenarios: Schema) -> None:
    paths = files("scenarios", "crates/published/scenarios")
    assert len(paths) > 60
    assert [fault for path in paths for fault in faults(scenarios, path)] == []


def test_every_built_in_policy_is_valid(policies: Schema) -> None:
    paths = files("policies")
    assert len(paths) >= 10
    assert [fault for path in paths for fault in faults(policies, path)] == []


def test_every_default_is_a_value_of_its_key(scenarios: Schema) -> None:
    seen = 0
    for table in tables(scenarios):
        if isinstance(table.get("default"), dict) or "default" not in table:
            continue
        key = Draft202012Validator({**table, "$defs": scenarios["$defs"]})
        assert key.is_valid(table["default"]), table
        seen += 1
    assert seen > 300


def test_usual_mistakes_are_found(scenarios: Schema) -> None:
    assert valid(scenarios, DOWNLOAD + 'start = "1.5 s"\ntcp = { variant = "reno" }')
    for wrong in ['strat = "1 s"', "start = 1", 'start = "1"', 'start = "1 kbit/s"', 'tcp = { variant = "rneo" }']:
        assert not valid(scenarios, DOWNLOAD + wrong), wrong
    assert not valid(scenarios, LINE.replace('rate = "2 Mbit/s"', 'rate = "2 mbps/s"'))
    assert not valid(scenarios, LINE.replace("access", "acces"))


def test_mistakes_in_queues_are_found(scenarios: Schema) -> None:
    def queue(text: str) -> str:
        return LINE.replace('512 kbit/s" }', f'512 kbit/s", queue = {text} }}')

    for right in [
        '{ limit = "100 packets" }',
        '{ limit = "100 ms" }',
        '{ kind = "fifo", limit = "64 KiB" }',
        '{ kind = "sad", queue = { kind = "tbf", rate = "500kbit", burst = "3000 wire bytes" } }',
        '{ kind = "priority", classes = [{ match = { dscp = [46, "af41"], port = "80-90" } }] }',
    ]:
        assert valid(scenarios, queue(right)), right
    for wrong in [
        '{ kind = "fifi" }',
        "{ limit = 100 }",
        '{ limit = "64 K" }',
        '{ kind = "codel", regulate = true }',
        '{ kind = "sad", queue = { kind = "fifo", rate = "1 Mbit/s" } }',
        '{ kind = "priority", classes = [{ match = { prot = "tcp" } }] }',
    ]:
        assert not valid(scenarios, queue(wrong)), wrong


def test_mistakes_in_a_policy_are_found(policies: Schema) -> None:
    assert valid(policies, CLASS + 'priority = 3\nqueue = { kind = "fq-codel" }')
    for wrong in ["prio = 3", "priority = 8", 'queue = "fq-codel"', 'ceil = "20"']:
        assert not valid(policies, CLASS + wrong), wrong
    assert not valid(policies, '[scheduler]\nkind = "hbt"')
