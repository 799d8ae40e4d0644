"""The options, the input and the splits of a map-reduce job."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from am.programs.mapreduce.client import find_inputs, parse, status_file
from am.programs.mapreduce.core.job import SplitPart
from am.programs.mapreduce.job_files import JobFiles
from tests.am.builders import APP
from yarn.errors import InvalidArgumentException
from yarn.resource import Resource


@pytest.fixture
def books(tmp_path: Path) -> Path:
    directory = tmp_path / "books"
    (directory / "below").mkdir(parents=True)
    for name, text in (("a.txt", "one\n"), ("b.txt", "two two\n"), ("_hidden", "x"), (".hidden", "x")):
        (directory / name).write_text(text)
    (directory / "below" / "c.txt").write_text("three\n")
    return directory


def names(inputs: dict[Path, int]) -> list[str]:
    return [path.name for path in inputs]


def test_a_directory_means_all_files_below_it_without_hidden_ones(books: Path) -> None:
    assert names(find_inputs([str(books)])) == ["a.txt", "b.txt", "c.txt"]


def test_a_file_that_several_patterns_match_is_taken_once(books: Path) -> None:
    found = find_inputs([f"{books}/b.*", f"{books}/a.txt", f"{books}/*.txt"])
    assert [(path.name, size) for path, size in found.items()] == [("b.txt", 8), ("a.txt", 4)]


def test_every_missing_input_is_reported(books: Path) -> None:
    with pytest.raises(InvalidArgumentException) as refused:
        find_inputs([str(books), "/no/1", "/no/2*"])
    assert refused.value.message == "Input path does not exist: /no/1\nInput path does not exist: /no/2*"


def test_an_input_that_is_not_a_file_is_refused(tmp_path: Path) -> None:
    """A pipe has no size and would count as empty."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidArgumentException, match=r"Input path is not a file or directory: .*/pipe"):
        find_inputs([str(tmp_path / "pipe")])


def test_the_options_become_a_job(books: Path, tmp_path: Path) -> None:
    script = tmp_path / "m.py"
    script.touch()
    submission = parse(
        f"-input {books} -output {tmp_path / 'out'} -mapper m -reducer r -files {script} -numReduceTasks 3 "
        "-map_memory 100 -reduce_memory 200 -queue q".split()
    )
    context = replace(submission, split_bytes=8).build(APP, tmp_path / "staging")
    job = JobFiles(tmp_path / "staging" / str(APP)).read_job()
    assert (context.queue, context.type) == ("q", "MAPREDUCE")
    assert (job.map_command, job.reduce_command, job.reduces) == ("m", "r", 3)
    a, b, c = (str((books / name).resolve()) for name in ("a.txt", "b.txt", "below/c.txt"))
    assert job.splits == (
        (SplitPart(a, 0, 4), SplitPart(b, 0, 4)),
        (SplitPart(b, 4, 4), SplitPart(c, 0, 4)),
        (SplitPart(c, 4, 2),),
    )
    assert (job.map_resource, job.reduce_resource) == (Resource(100, 1), Resource(200, 1))
    assert set(job.files) == {"m.py"}
    assert "--staging" in context.am_container.commands[0]
    assert status_file(APP, tmp_path / "staging").parent.is_dir()


def test_word_count_ships_its_own_script(books: Path, tmp_path: Path) -> None:
    submission = parse(["-input", str(books), "-output", str(tmp_path / "out"), "-wordcount"])
    assert submission.map_command.endswith("wordcount.py map")
    assert set(submission.files) == {"wordcount.py"}


def test_all_faults_are_reported_at_once(books: Path) -> None:
    with pytest.raises(InvalidArgumentException) as refused:
        parse(["-output", str(books), "-map_memory", "0", "-files", "/no/file"])
    for fault in ("no input", "no map command", "no reduce command", "already exists"):
        assert fault in refused.value.message
    for fault in ("-map_memory 0", "/no/file"):
        assert fault in refused.value.message


def test_output_that_appeared_meanwhile_is_not_touched(books: Path, tmp_path: Path) -> None:
    submission = parse(["-input", str(books), "-output", str(tmp_path / "out"), "-wordcount"])
    (tmp_path / "out").mkdir()
    with pytest.raises(InvalidArgumentException, match="already exists"):
        submission.build(APP, tmp_path / "staging")
    assert not (tmp_path / "staging").exists()
