"""scripts/what-if-examples: what the commands print now replaces what the page says."""

from __future__ import annotations

import pytest

from scripts import what_if_examples

PAGE = """\
Before.

```
$ yarnling simulate compare before \\
    after --workload w.yaml

what was printed
```

Exit status 0.

After, with `code`.
"""


def test_output_and_exit_status_are_replaced_and_the_text_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = []

    def example(command: str) -> str:
        commands.append(command.split())
        return f"```\n$ yarnling {command}\n\nwhat is printed\n```\n\nExit status 1"

    monkeypatch.setattr(what_if_examples, "example", example)
    expected = PAGE.replace("what was printed", "what is printed").replace("status 0", "status 1")
    assert what_if_examples.rewritten(PAGE) == expected
    assert commands == [["simulate", "compare", "before", "\\", "after", "--workload", "w.yaml"]]


def test_a_command_that_cannot_be_carried_out_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="exit status 2"):
        what_if_examples.example("simulate compare nowhere nowhere --workload README.md --nodes README.md")


def test_the_commands_of_the_page_are_found() -> None:
    assert len(what_if_examples.EXAMPLE.findall(what_if_examples.PAGE.read_text())) == 7
