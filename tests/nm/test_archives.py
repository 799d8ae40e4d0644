"""Archives that are not trusted: what is unpacked, and that nothing is written outside the target."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nm.localizer.archives import DEPTH_MAX, NAME_BYTES_MAX, BadArchive, Limits, parts_of, unpack

LINK = stat.S_IFLNK | 0o777


def make_tar(members: list[tuple[str, bytes | tarfile.TarInfo]], *, zipped: bool = False) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz" if zipped else "w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in members:
            info = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)
    return out.getvalue()


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def make_zip(members: list[tuple[str, bytes]], modes: dict[str, int] | None = None) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = (modes or {}).get(name, 0) << 16
            archive.writestr(info, content)
    return out.getvalue()


def unpacked(content: bytes, name: str, directory: Path, limits: Limits | None = None) -> Path:
    target = directory / "target"
    unpack(io.BytesIO(content), name, str(target), limits)
    return target


def tree(directory: Path) -> dict[str, bytes | None]:
    """{path: content, None for a directory}. Fails for entries that are neither files nor directories."""
    found: dict[str, bytes | None] = {}
    for path in directory.rglob("*"):
        mode = path.lstat().st_mode
        assert stat.S_ISREG(mode) or stat.S_ISDIR(mode), path
        found[str(path.relative_to(directory))] = path.read_bytes() if stat.S_ISREG(mode) else None
    return found


FILES = {"a.txt": b"one", "d": None, "d/e": None, "d/e/b.bin": b"\0" * 70_000}


@pytest.mark.parametrize("name", ["x.tar", "x.tgz", "x.tar.gz", "X.TGZ"])
def test_a_tar_is_unpacked(name: str, tmp_path: Path) -> None:
    members: list[tuple[str, bytes | tarfile.TarInfo]] = [
        ("a.txt", b"one"),
        ("d/e", special("d/e", tarfile.DIRTYPE)),
        ("./d//e/b.bin", b"\0" * 70_000),
    ]
    content = make_tar(members, zipped=name.lower().endswith("gz"))
    assert tree(unpacked(content, name, tmp_path)) == FILES


@pytest.mark.parametrize("name", ["x.zip", "x.jar"])
def test_a_zip_is_unpacked(name: str, tmp_path: Path) -> None:
    content = make_zip([("a.txt", b"one"), ("d/e/", b""), ("d/e/b.bin", b"\0" * 70_000)])
    assert tree(unpacked(content, name, tmp_path)) == FILES


HOSTILE_NAMES = ["../out", "d/../../out", "/etc/out", "//out", "d/..", "x/" * 65 + "f", "n" * 256]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
@pytest.mark.parametrize("kind", ["x.tar", "x.zip"])
def test_an_archive_with_a_name_that_leads_outside_is_refused(name: str, kind: str, tmp_path: Path) -> None:
    content = make_tar([(name, b"evil")]) if kind == "x.tar" else make_zip([(name, b"evil")])
    with pytest.raises(BadArchive):
        unpacked(content, kind, tmp_path)
    assert list(tmp_path.iterdir()) == [tmp_path / "target"]


@pytest.mark.parametrize(
    "member",
    [
        special("l", tarfile.SYMTYPE, "/etc"),
        special("l", tarfile.SYMTYPE, "a.txt"),
        special("l", tarfile.LNKTYPE, "a.txt"),
        special("l", tarfile.CHRTYPE),
        special("l", tarfile.BLKTYPE),
        special("l", tarfile.FIFOTYPE),
    ],
    ids=lambda member: f"{member.type!r} {member.linkname}",
)
def test_an_archive_with_links_or_devices_is_refused(member: tarfile.TarInfo, tmp_path: Path) -> None:
    """Links inside the archive are refused too: a hard link to a link that leads outside has passed
    filters elsewhere.
    """
    with pytest.raises(BadArchive, match="neither a file nor a directory"):
        unpacked(make_tar([("a.txt", b"one"), ("l", member)]), "x.tar", tmp_path)


def test_a_zip_with_a_link_is_refused(tmp_path: Path) -> None:
    content = make_zip([("l", b"/etc"), ("l/passwd", b"evil")], {"l": LINK})
    with pytest.raises(BadArchive, match="neither a file nor a directory"):
        unpacked(content, "x.zip", tmp_path)


def test_an_archive_with_a_file_and_a_directory_of_one_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadArchive, match="is a file and a directory"):
        unpacked(make_tar([("a", b"one"), ("a/b", b"two")]), "x.tar", tmp_path)
    with pytest.raises(BadArchive, match="is a file and a directory"):
        unpacked(make_zip([("a/b", b"two"), ("a", b"one")]), "y.zip", tmp_path / "..")


def test_of_two_members_with_one_name_the_last_is_kept(tmp_path: Path) -> None:
    assert tree(unpacked(make_tar([("a", b"long one"), ("a", b"two")]), "x.tar", tmp_path)) == {"a": b"two"}


@pytest.mark.parametrize("kind", ["x.tar", "x.tgz", "x.zip"])
def test_too_large_an_archive_is_refused_before_the_excess_is_written(kind: str, tmp_path: Path) -> None:
    """The archive holds 100 MB of zeros in about a hundred kilobytes. What is written stays below the limit."""
    zeros = b"\0" * 100_000_000
    content = make_zip([("z", zeros)]) if kind == "x.zip" else make_tar([("z", zeros)], zipped=kind == "x.tgz")
    with pytest.raises(BadArchive, match=r"more than 1000000 bytes|ends at byte"):
        unpacked(content, kind, tmp_path, Limits(bytes_max=1_000_000))
    written = tmp_path / "target" / "z"
    assert not written.exists() or written.stat().st_size <= 1_000_000


@pytest.mark.parametrize("kind", ["x.tar", "x.zip"])
def test_an_archive_with_too_many_members_is_refused(kind: str, tmp_path: Path) -> None:
    names = [f"f{number}" for number in range(11)]
    content = make_tar([(n, b"") for n in names]) if kind == "x.tar" else make_zip([(n, b"") for n in names])
    with pytest.raises(BadArchive, match="more than 10 members"):
        unpacked(content, kind, tmp_path, Limits(entries_max=10))


def test_an_archive_whose_header_claims_gigabytes_is_refused(tmp_path: Path) -> None:
    """The tar reader reads a pax header in one piece, so a size that is too large is refused before memory is
    allocated.
    """
    info = special("pax", tarfile.XHDTYPE)
    info.size = 8 << 30
    content = info.tobuf(tarfile.GNU_FORMAT) + b"\0" * 10_240
    with pytest.raises(BadArchive):
        unpacked(content, "x.tar", tmp_path)


@pytest.mark.parametrize("kind", ["x.tar", "x.tgz", "x.zip", "x.jar"])
@pytest.mark.parametrize(
    "content", [b"", b"this is not an archive\n", b"PK\x03\x04" + b"\xff" * 60, gzip.compress(b"no tar", mtime=0)]
)
def test_a_file_that_is_not_an_archive_is_refused_or_empty(kind: str, content: bytes, tmp_path: Path) -> None:
    with pytest.raises(BadArchive):
        unpacked(content, kind, tmp_path)


def test_a_truncated_archive_is_refused(tmp_path: Path) -> None:
    content = make_tar([("a", os.urandom(50_000))], zipped=True)
    with pytest.raises(BadArchive):
        unpacked(content[: len(content) // 2], "x.tgz", tmp_path)


@given(st.text(st.sampled_from("ab./\\\0é\n"), max_size=40))
def test_the_parts_of_a_name_stay_below_the_target(name: str) -> None:
    try:
        parts = parts_of(name)
    except BadArchive:
        return
    assert ".." not in parts
    assert len(parts) <= DEPTH_MAX
    for part in parts:
        assert part not in ("", ".")
        assert "/" not in part
        assert "\0" not in part
        assert len(part.encode()) <= NAME_BYTES_MAX


NAMES = st.lists(st.sampled_from(["a", "b", "..", ".", "", "c"]), min_size=1, max_size=4).map("/".join)
KINDS = st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(members=st.lists(st.tuples(NAMES, KINDS, NAMES), max_size=6), zipped=st.booleans())
def test_no_combination_of_members_leaves_the_target(
    members: list[tuple[str, bytes, str]], zipped: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever an archive contains, only regular files and directories below the target are written."""
    directory = tmp_path_factory.mktemp("mixture")
    content = make_tar(
        [(name, b"x" if kind == tarfile.REGTYPE else special(name or "n", kind, link)) for name, kind, link in members],
        zipped=zipped,
    )
    with suppress(BadArchive):
        unpacked(content, "x.tgz" if zipped else "x.tar", directory)
    assert list(directory.iterdir()) == [directory / "target"]
    tree(directory / "target")


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(position=st.integers(0, 2000), value=st.integers(0, 255), kind=st.sampled_from(["x.tar", "x.tgz", "x.zip"]))
def test_a_damaged_archive_is_refused_or_unpacked_never_anything_else(
    position: int, value: int, kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("damaged")
    members = [("a.txt", b"hello"), ("d/b.txt", b"world" * 50)]
    content = bytearray(make_zip(members) if kind == "x.zip" else make_tar(list(members), zipped=kind == "x.tgz"))
    content[position % len(content)] = value
    with suppress(BadArchive):
        unpacked(bytes(content), kind, directory)
    assert list(directory.iterdir()) == [directory / "target"]
    tree(directory / "target")
