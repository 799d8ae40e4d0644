"""The rules of the house: scripts/tidy.py refuses what breaks them and passes what does not."""

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
    """Runs the script in a repository that holds the given files; returns what it refuses."""
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
    body = "    pass\n" * 69
    files = {"a.py": f"def f():\n{body}", "README.md": "[a](a.py), [out](https://x.org), [in](#part)\n"}
    assert tidy(files) == []


def test_sizes(tidy: Tidy) -> None:
    long_file, long_function = "x = 1\n" * 501, "async def f():\n" + "    pass\n" * 70
    assert tidy({"long.py": long_file, "deep/f.py": long_function}) == [
        "deep/f.py:1: f has 71 lines, at most 70 (the parent decides, the leaves compute)",
        "long.py:1: 501 lines, at most 500 (split it after a noun of the domain)",
    ]


def test_what_is_raised_within_a_handler_of_groups(tidy: Tidy) -> None:
    """Wherever in it; but a function that is defined there raises for itself, and a plain handler may."""
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
    assert [refusal.split(": some")[0] for refusal in refusals] == [
        f"a.py:{line}: raise within except*" for line in (5, 9, 12)
    ]
    assert "raise it after the try" in refusals[0]


def test_generated_files_may_be_of_any_size(tidy: Tidy) -> None:
    assert tidy({"protos/x_pb2.py": "x = 1\n" * 501}) == []


def test_words_and_paths(tidy: Tidy) -> None:
    word, path = "FIX" + "ME", "/ro" + "ot/x"
    refusals = tidy({"a.py": f"# {word}: later\n", "b.md": f"one\nsee {path}\n", "c.txt": "an /approot/ is fine\n"})
    assert [refusal.split(" is banned")[0] for refusal in refusals] == [
        f"a.py:1: '{word}'",
        "b.md:2: '/ro" + "ot/'",
    ]


def test_links(tidy: Tidy) -> None:
    refusals = tidy({"docs/a.md": "[up](../b.md)\n[gone](c.md#part)\n", "b.md": "\n"})
    assert refusals == ["docs/a.md:2: the link to c.md leads nowhere (links are relative to the file)"]


def test_paths_in_documents(tidy: Tidy) -> None:
    text = "`rm/core.py` and `rm/gone.py`, `rm/` and `am -list`, `scripts/x --check`\n"
    assert tidy({"rm/core.py": "", "a.md": text}) == ["a.md:1: there is no rm/gone.py (it moved, or never was)"]


def test_what_git_ignores_is_not_looked_at(tidy: Tidy) -> None:
    assert tidy({".gitignore": "build/\n", "build/long.py": "x = 1\n" * 501}) == []
