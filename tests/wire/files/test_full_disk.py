"""The errors of a full disk: the path, and what to do."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from wire.files.full_disk import DiskFull, full_disk_named


def error_of(number: int, *filename: str) -> OSError:
    with pytest.raises(OSError, match="text") as caught, full_disk_named("/outer"), full_disk_named(Path("/file")):
        raise OSError(number, "text", *filename)
    return caught.value


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_named_with_a_remedy(number: int) -> None:
    error = error_of(number)
    assert isinstance(error, DiskFull)
    assert str(error) == f"[Errno {number}] text (free some space there): '/file'"


def test_the_path_that_the_error_has_is_kept() -> None:
    assert error_of(errno.ENOSPC, "/file/below").filename == "/file/below"


@pytest.mark.parametrize("name", ["/proc/self/fd/9/words", "words"])
def test_a_path_relative_to_a_descriptor_is_not(name: str) -> None:
    assert error_of(errno.ENOSPC, name).filename == "/file"


def test_other_errors_stay_as_they_are() -> None:
    error = error_of(errno.EIO)
    assert not isinstance(error, DiskFull)
    assert (error.strerror, error.filename) == ("text", None)
