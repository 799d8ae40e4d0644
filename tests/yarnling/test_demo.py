"""The demonstration's own judgement: it must notice a wrong count."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarn.errors import InvalidArgumentException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId
from yarnling.demo.input_text import InputText, count_words, find_text, read_counts
from yarnling.demo.observation import Memory
from yarnling.demo.outcome import judge, loss_lines, what_was_lost
from yarnling.demo.workload import Submitted, workload

APPS = [ApplicationId(1_700_000_000_000, number) for number in (1, 2, 3)]
NODE = NodeId("127.0.0.2", 4711)


@pytest.fixture
def text(tmp_path: Path) -> InputText:
    (tmp_path / "one.txt").write_text("to be or not\nto be\n")
    (tmp_path / "two.txt").write_text("be\n")
    return find_text([str(tmp_path)])


def output(tmp_path: Path, **parts: str) -> Path:
    directory = tmp_path / "output"
    directory.mkdir()
    for name, content in parts.items():
        (directory / name.replace("_", "-")).write_text(content)
    return directory


def test_the_right_counts_are_verified(text: InputText, tmp_path: Path) -> None:
    counts = output(tmp_path, part_r_00000="be\t3\nto\t2\n", part_r_00001="not\t1\nor\t1\n", _SUCCESS="")
    verdict = judge(text, counts)
    assert verdict.is_right
    assert "7 words, 4 kinds" in verdict.text


@pytest.mark.parametrize(
    "wrong", ["be\t2\nto\t2\nnot\t1\nor\t1\n", "be\t3\nto\t2\nnot\t1\n", "be\t3\nto\t2\nnot\t1\nor\t1\nx\t1\n", ""]
)
def test_a_wrong_count_is_told(text: InputText, tmp_path: Path, wrong: str) -> None:
    verdict = judge(text, output(tmp_path, part_r_00000=wrong))
    assert not verdict.is_right
    assert verdict.text.startswith("WRONG")


def test_counts_of_one_word_in_two_parts_add_up(tmp_path: Path) -> None:
    assert read_counts(output(tmp_path, part_r_00000="a\t1\n", part_r_00001="a\t2\n")) == {b"a": 3}


def test_a_plain_count(text: InputText) -> None:
    assert count_words(text.files) == {b"be": 3, b"to": 2, b"not": 1, b"or": 1}


def test_pythons_own_text_is_bounded_and_has_no_other_packages() -> None:
    found = find_text([], bytes_max=100_000)
    assert 50_000 < found.size_bytes <= 100_000
    assert not any("site-packages" in path.parts for path in found.files)


def test_a_path_without_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(InvalidArgumentException, match="no text there"):
        find_text([str(tmp_path)])
    with pytest.raises(InvalidArgumentException, match="Input path does not exist"):
        find_text([str(tmp_path / "nowhere")])


def test_what_was_lost_is_told_by_user(text: InputText, tmp_path: Path) -> None:
    works = workload(text, tmp_path / "output")
    submitted = [Submitted(work, app, None) for work, app in zip(works, APPS, strict=True)]  # type: ignore[arg-type]
    master, task, other = (
        ContainerId(ApplicationAttemptId(app, 1), number) for app, number in zip(APPS, (1, 2, 3), strict=True)
    )
    memory = Memory(masters={master})
    job: dict[str, object] = {"attempts": [{"task": "m0"}, {"task": "m0"}, {"task": "m1"}], "lost_outputs": 2}
    loss = what_was_lost(submitted, memory, [master, task, other], job)
    assert loss_lines(loss) == [
        "bob: 1 running container lost, started again elsewhere",
        "carol: 1 running container lost, started again elsewhere",
        "alice: the master lost, another attempt took over",
        "alice: 2 finished maps done again, the output was gone",
        "alice: 1 task tried more than once",
    ]
