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


def test_docstrings_open_with_a_verb_or_a_noun(tidy: Tidy) -> None:
    """In the product: docstrings of functions, classes and constants, not other texts."""
    text = 'NAMES = ()\n"""What it is called."""\nx = "It works"\n\n\ndef f() -> None:\n    """Those of the node."""\n'
    remedy = "(begin with a verb, or with the name of the thing that it describes)"
    assert tidy({"rm/a.py": text, "tests/a.py": text, "rm/b.py": '"""Items, and whose they are."""\n'}) == [
        f"rm/a.py:2: a docstring opens with 'What' {remedy}",
        f"rm/a.py:7: a docstring opens with 'Those' {remedy}",
    ]


def test_a_function_is_at_most_70_lines_long(tidy: Tidy) -> None:
    text = "def f() -> None:\n" + "    g()\n" * 70
    assert tidy({"rm/a.py": text, "tests/a.py": f"{text}    g()\n"}) == []
    assert tidy({"rm/a.py": f"{text}    g()\n"}) == ["rm/a.py:1: f has 71 lines, at most 70 (split it)"]


def test_a_class_name_is_used_once_in_the_product(tidy: Tidy) -> None:
    """Except listed names, which are deleted from the list once they are used once."""
    files = {"rm/a.py": "class A: ...\nclass B: ...\n", "nm/b.py": "class A: ...\n", "tests/c.py": "class B: ...\n"}
    taken = "rm/a.py:1: the class name A is taken by nm/b.py (find a name that tells the two apart)"
    assert tidy(files) == [taken]
    listed = "scripts/shared_class_names.txt"
    assert tidy({listed: "A\n"}) == []
    assert tidy({listed: "A\nB\n"}) == [f"{listed}:1: B is one class now (delete it here)"]


def test_a_comment_between_empty_lines_is_a_sentence(tidy: Tidy) -> None:
    function = "def f() -> None:\n    # Twice\n    g()\n\n    # Sums are kept, as in Hadoop.\n\n    h()\n"
    text = f"x = 1\n\n# Booking\n\n\n{function}"
    remedy = "(delete it, cut the file, or write a sentence that says why the parts are there)"
    assert tidy({"rm/a.py": text, "tests/a.py": text}) == [f"rm/a.py:3: the banner 'Booking' {remedy}"]


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
