"""Files from people are read as plain YAML, whatever they hold; every fault has its line."""

from __future__ import annotations

import contextlib
import datetime
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wire.files.yaml_file import FILE_CHARACTERS_MAX, Probability, Section, parse_yaml, quantity, read_yaml
from yarn.faults import ConfigurationException


class Leaf(Section):
    number: int = 0
    text: str = ""
    chance: Probability = 0.0


class Tree(Section):
    leaf: Leaf = Leaf()
    moment: datetime.time | None = None
    leaves: list[Leaf] = []  # noqa: RUF012


def faults_of(text: str) -> list[str]:
    with pytest.raises(ConfigurationException) as refused:
        parse_yaml(text, "f.yaml", Tree)
    return refused.value.message.splitlines()


@pytest.mark.parametrize("text", ["on", "010", "1:30", "0x10", "~", "2001-01-01", "yes", "1_000"])
def test_a_scalar_is_the_text_that_is_written(text: str) -> None:
    assert parse_yaml(f"text: {text}", "f.yaml", Leaf).text == text


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "f.yaml: is empty (write one of `leaf: ...`, `moment: ...`, `leaves: ...` into the file)"),
        ("# nothing\n", "f.yaml: is empty (write one of `leaf: ...`, `moment: ...`, `leaves: ...` into the file)"),
        ("leaf: &a {}\nleaves: [*a]", "f.yaml:1: is not valid YAML: anchors (&name), aliases (*name) and tags"),
        (
            "\nleaf: !!python/object:os.system {}",
            "f.yaml:2: is not valid YAML: anchors (&name), aliases (*name) and tags",
        ),
        ("leaves: [*a]", "f.yaml:1: is not valid YAML: anchors (&name), aliases (*name) and tags"),
        ("leaf: {}\n---\nleaf: {}", "f.yaml:2: is not valid YAML: expected a single document in the stream, but found"),
        ("[" * 1000, "f.yaml:1: is not valid YAML: more than 32 levels"),
        ("leaf: \0", "f.yaml: is not valid YAML: unacceptable character"),
        ('text: "\\U00110000"', "f.yaml: is not valid YAML: chr() arg not in range"),
        ("x" * (FILE_CHARACTERS_MAX + 1), f"f.yaml: has more than {FILE_CHARACTERS_MAX} characters"),
        ("? [a]\n: b", "f.yaml:1: has a key that is not a text (write `key: value`)"),
        ("<<: {leaf: {}}", "f.yaml:1: <<: is not a valid key (valid are leaf, moment, leaves)"),
        (
            "leaf: {nubmer: 1}",
            "f.yaml:1: leaf.nubmer = '1': is not a valid key (did you mean number? valid are number, ",
        ),
        ("leaf: {number: 1,\n number: 2}", "f.yaml:2: leaf.number = '1': is written twice (remove one)"),
        ("leaf:\n  {number: " + "x" * 200 + "}", f"f.yaml:2: leaf.number = '{'x' * 100}...': is not a whole number"),
        ("leaf:\n  [1]", "f.yaml:1: leaf: is not a mapping (write `key: value`; valid are number, text, chance)"),
        ("moment: '{x}'", "f.yaml:1: moment = '{x}': is not valid (Input should be in a valid time format, "),
        ('"a\\nb": 1', "f.yaml:1: 'a\\nb' = '1': is not a valid key"),
    ],
)
def test_an_invalid_file_is_refused_with_its_fault(text: str, fault: str) -> None:
    first, *_ = faults_of(text)
    assert first.startswith(fault)


def test_all_faults_are_reported_by_line() -> None:
    text = "leaves:\n- {number: x}\n- {chance: 2, number: 1, number: 2}\nleaf: 5\nother: 1\n"
    assert [line.split(" (")[0] for line in faults_of(text)] == [
        "f.yaml:2: leaves[1].number = 'x': is not a whole number",
        "f.yaml:3: leaves[2].number = '1': is written twice",
        "f.yaml:3: leaves[2].chance = '2': is more than 1",
        "f.yaml:4: leaf = '5': is not a mapping",
        "f.yaml:5: other = '1': is not a valid key",
    ]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"text: \xe9")
    for name, reason in (("latin.yaml", "it is not UTF-8"), ("none.yaml", "No such file or directory")):
        with pytest.raises(ConfigurationException, match=rf"{name}: cannot be read: {reason} \(name another file\)"):
            read_yaml(tmp_path / name, Leaf)


@given(st.text() | st.text("{}[]:-,?&*!|>'\"\n \\#%@`ax0"))
@example("{? : }")
@example("leaf: {number: " + "9" * 5000 + "}")
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ConfigurationException):
        parse_yaml(text, "f.yaml", Tree)


@pytest.mark.parametrize(
    ("text", "number"),
    [("250ms", 250), ("1.5 s", 1500), ("0", 0), ("0s", 0), (".5s", 500), ("5", None), ("-1s", None), ("1e3s", None)],
)
def test_quantities(text: str, number: float | None) -> None:
    assert quantity(text, {"ms": 1, "s": 1000}) == number


def test_a_percentage_is_exact() -> None:
    assert [parse_yaml(f"chance: {n}%", "f", Leaf).chance for n in range(101)] == [n / 100 for n in range(101)]
