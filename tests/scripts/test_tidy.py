"""scripts/tidy.py reports each fault that it checks for, and nothing in a tidy tree."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "tidy.py"

Tidy = Callable[[dict[str, str]], list[str]]


@pytest.fixture
def tidy(tmp_path: Path) -> Tidy:
    """Runs the script in a repository with the given files; returns its refusals."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts")
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)

    def run(files: dict[str, str]) -> list[str]:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        command = [sys.executable, str(tmp_path / "scripts" / "tidy.py")]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        refusals = done.stdout.splitlines()
        assert (done.returncode, done.stderr) == (1 if refusals else 0, "")
        return refusals

    return run


def test_a_tidy_tree_passes(tidy: Tidy) -> None:
    files = {"a.py": "x = 1\n" * 500, "README.md": "[a](a.py), [out](https://x.org), [in](#part)\n"}
    assert tidy(files) == []


def test_sizes(tidy: Tidy) -> None:
    assert tidy({"long.py": "x = 1\n" * 501}) == ["long.py:1: 501 lines, at most 500 (split it by concept)"]


def test_a_file_that_cannot_be_parsed_is_left_to_ruff(tidy: Tidy) -> None:
    assert tidy({"a.py": "def f(:\n"}) == []


def test_what_is_raised_within_a_handler_of_groups(tidy: Tidy) -> None:
    """At any depth, except in functions defined there; a plain handler may raise."""
    handler = (
        "try:\n    f()\nexcept* OSError as group:\n    if group:\n        raise\n"
        "    try:\n        g()\n    except KeyError as error:\n        raise ValueError from error\n"
        "    match group:\n        case _:\n            raise\n"
    )
    fine = (
        "try:\n    f()\nexcept* OSError as group:\n"
        "    def g():\n        raise KeyError\nelse:\n    raise KeyError\n"
        "try:\n    f()\nexcept OSError:\n    raise\n"
    )
    refusals = tidy({"a.py": handler, "b.py": fine})
    assert [refusal.split(": Python")[0] for refusal in refusals] == [
        f"a.py:{line}: raise within except*" for line in (5, 9, 12)
    ]
    assert "raise it after the try" in refusals[0]


def test_generated_files_may_be_of_any_size(tidy: Tidy) -> None:
    assert tidy({"wire/generated/x_pb2.py": "x = 1\n" * 501}) == []


def test_words_and_paths(tidy: Tidy) -> None:
    page, path = "protocol" + ".md", "/ro" + "ot/x"
    refusals = tidy({"a.py": f"# see {page}\n", "b.md": f"one\nsee {path}\n", "c.txt": "an /approot/ is fine\n"})
    assert [refusal.split(" is banned")[0] for refusal in refusals] == [
        f"a.py:1: '{page}'",
        "b.md:2: '/ro" + "ot/'",
    ]


def test_links(tidy: Tidy) -> None:
    refusals = tidy({"docs/a.md": "[up](../b.md)\n[gone](c.md#part)\n", "b.md": "\n"})
    assert refusals == ["docs/a.md:2: the link's target c.md does not exist (links are relative to the file)"]


def test_paths_in_documents(tidy: Tidy) -> None:
    text = "`rm/core/resource_manager.py` and `rm/gone.py`, `rm/` and `am -list`, `scripts/x --check`\n"
    assert tidy({"rm/core/resource_manager.py": "", "a.md": text}) == [
        "a.md:1: rm/gone.py does not exist (correct the path)"
    ]


def test_files_that_git_ignores_are_skipped(tidy: Tidy) -> None:
    assert tidy({".gitignore": "build/\n", "build/long.py": "x = 1\n" * 501}) == []
