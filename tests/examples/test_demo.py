"""The demonstration verifies its result: it must notice a wrong count."""

from __future__ import annotations

from pathlib import Path

import pytest

from am.programs.mapreduce.wordcount import count_words, read_counts
from examples.demo.input_text import InputText, find_text
from examples.demo.observation import Observations
from examples.demo.outcome import check_counts, loss_lines, what_was_lost
from examples.demo.workload import Submitted, workload
from yarn.errors import InvalidArgumentException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId

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
    checked = check_counts(text, counts)
    assert checked.is_right
    assert "7 words, 4 kinds" in checked.text


@pytest.mark.parametrize(
    "wrong", ["be\t2\nto\t2\nnot\t1\nor\t1\n", "be\t3\nto\t2\nnot\t1\n", "be\t3\nto\t2\nnot\t1\nor\t1\nx\t1\n", ""]
)
def test_a_wrong_count_is_reported(text: InputText, tmp_path: Path, wrong: str) -> None:
    checked = check_counts(text, output(tmp_path, part_r_00000=wrong))
    assert not checked.is_right
    assert checked.text.startswith("WRONG")


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
    with pytest.raises(InvalidArgumentException, match="no text found"):
        find_text([str(tmp_path)])
    with pytest.raises(InvalidArgumentException, match="Input path does not exist"):
        find_text([str(tmp_path / "nowhere")])


def test_what_was_lost_is_listed_by_user(text: InputText, tmp_path: Path) -> None:
    works = workload(text, tmp_path / "output")
    submitted = [Submitted(work, app, None) for work, app in zip(works, APPS, strict=True)]  # type: ignore[arg-type]
    am, task, other = (
        ContainerId(ApplicationAttemptId(app, 1), number) for app, number in zip(APPS, (1, 2, 3), strict=True)
    )
    observed = Observations(ams={am})
    job: dict[str, object] = {"attempts": [{"task": "m0"}, {"task": "m0"}, {"task": "m1"}], "lost_outputs": 2}
    loss = what_was_lost(submitted, observed, [am, task, other], job)
    assert loss_lines(loss) == [
        "bob: 1 running container lost and started again elsewhere",
        "carol: 1 running container lost and started again elsewhere",
        "alice: the ApplicationMaster was lost, a second attempt took over",
        "alice: 2 finished maps run again, the output was lost",
        "alice: 1 task tried more than once",
    ]
