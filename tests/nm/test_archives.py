"""Archives that are not trusted: what is unpacked, and that nothing is written outside the target."""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import subprocess
import tarfile
import venv
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nm.localizer.archives import DEFAULT_LIMITS, DEPTH_MAX, NAME_BYTES_MAX, ArchiveLimits, BadArchive, parts_of, unpack
from yarn.configuration import Configuration

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


def unpacked(content: bytes, name: str, directory: Path, limits: ArchiveLimits = DEFAULT_LIMITS) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
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


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_an_archive_with_devices_is_refused(kind: bytes, tmp_path: Path) -> None:
    with pytest.raises(BadArchive, match="neither a file, a directory nor a link"):
        unpacked(make_tar([("a.txt", b"one"), ("l", special("l", kind))]), "x.tar", tmp_path)


def linked(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tuple[str, tarfile.TarInfo]:
    return name, special(name, kind, target)


def test_links_that_stay_in_the_archive_are_kept(tmp_path: Path) -> None:
    """Also before their targets, through one another, and out of a directory and into another one."""
    members = [linked("lib64", "lib"), ("lib/a.py", b"one"), linked("b", "lib64/a.py"), linked("bin/c", "../lib/a.py")]
    target = unpacked(
        make_tar([*members, linked("d", "lib/a.py", tarfile.LNKTYPE), linked("all", ".")]), "x.tar", tmp_path
    )
    assert [os.readlink(target / name) for name in ("lib64", "b", "bin/c")] == ["lib", "lib64/a.py", "../lib/a.py"]
    assert {(target / name).read_bytes() for name in ("lib64/a.py", "b", "bin/c", "d", "all/b")} == {b"one"}


def test_a_link_to_a_program_of_the_machine_is_kept(tmp_path: Path) -> None:
    """The interpreter of a packed virtual environment."""
    target = unpacked(make_tar([linked("bin/sh", "/bin/sh"), linked("bin/ash", "sh")]), "x.tar", tmp_path)
    assert os.readlink(target / "bin/sh") == "/bin/sh"


@pytest.mark.parametrize("to", ["/etc", "/etc/passwd", "../..", "../../nothing", "/no/such/python", "a/../../.."])
def test_a_link_that_leads_outside_is_refused_by_name(to: str, tmp_path: Path) -> None:
    with pytest.raises(BadArchive, match=f"'d/l' is a link to '{to}', which is neither in the archive nor a program"):
        unpacked(make_tar([("d/a/x", b""), linked("d/l", to)]), "x.tar", tmp_path)


def test_a_link_that_leads_outside_through_another_link_is_refused(tmp_path: Path) -> None:
    """`in/up` is inside by its words; where `in` leads, its `..` is the directory above the archive."""
    with pytest.raises(BadArchive, match=re.escape("'out' is a link to 'in/../x'")):
        unpacked(make_tar([("d/f", b""), linked("in", "."), linked("out", "in/../x")]), "x.tar", tmp_path)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("name", ["l", "l/passwd"])
def test_nothing_is_written_through_a_link(order: int, name: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "file").write_bytes(b"safe")
    for to in (outside, tmp_path / "file"):
        with pytest.raises(BadArchive, match="'l' is a link and another member"):
            unpacked(make_tar([linked("l", str(to)), (name, b"evil")][::order]), "x.tar", tmp_path / "in" / to.name)
    assert (list(outside.iterdir()), (tmp_path / "file").read_bytes()) == ([], b"safe")


@pytest.mark.parametrize("to", ["l", "missing", "/etc/passwd", "../a", "d"])
def test_a_hard_link_to_anything_but_an_unpacked_file_is_refused(to: str, tmp_path: Path) -> None:
    members = [("d/a", b""), linked("l", "/etc/passwd"), linked("h", to, tarfile.LNKTYPE)]
    with pytest.raises(BadArchive, match=r"hard link|relative|leads out"):
        unpacked(make_tar(members), "x.tar", tmp_path)


def test_writing_a_name_of_a_hard_link_again_leaves_the_other_file(tmp_path: Path) -> None:
    target = unpacked(make_tar([("a", b"one"), linked("b", "a", tarfile.LNKTYPE), ("b", b"two")]), "x.tar", tmp_path)
    assert tree(target) == {"a": b"one", "b": b"two"}


def test_a_link_in_a_zip_is_a_file_with_the_name_of_its_target(tmp_path: Path) -> None:
    """As FileUtil.unZip writes it."""
    assert tree(unpacked(make_zip([("l", b"/etc")], {"l": LINK}), "x.zip", tmp_path)) == {"l": b"/etc"}
    with pytest.raises(BadArchive, match="is a file and a directory"):
        unpacked(make_zip([("l", b"/etc"), ("l/passwd", b"evil")], {"l": LINK}), "x.zip", tmp_path / "b")


@pytest.mark.slow
def test_an_environment_as_large_as_airflows_fits(tmp_path: Path) -> None:
    content = make_tar([(f"lib/{number % 500}/{number}", b"") for number in range(20_264)])
    assert len(list(unpacked(content, "x.tar", tmp_path).rglob("*"))) == 20_264 + 501


def test_the_limits_are_settings() -> None:
    conf = {
        "yarn.yarnling.localizer.archive-entries-max": "7",
        "yarn.yarnling.localizer.archive-size-max-mb": "3",
    }
    assert ArchiveLimits.read(Configuration.of(conf)) == ArchiveLimits(7, 3 << 20)


def test_a_packed_virtual_environment_runs(tmp_path: Path) -> None:
    """A virtual environment as `venv-pack` packs it: its interpreter is a link to the machine's."""
    venv.create(tmp_path / "env", symlinks=True)
    with tarfile.open(tmp_path / "env.tgz", "w:gz") as packed:
        packed.add(tmp_path / "env", "")
    target = tmp_path / "target"
    with open(tmp_path / "env.tgz", "rb") as source:
        unpack(source, "env.tgz", str(target))
    shown = subprocess.run([target / "bin/python3", "-c", "import sys; print(sys.prefix)"], stdout=-1, check=True)
    assert Path(shown.stdout.decode().strip()).samefile(target)


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
        unpacked(content, kind, tmp_path, ArchiveLimits(bytes_max=1_000_000))
    written = tmp_path / "target" / "z"
    assert not written.exists() or written.stat().st_size <= 1_000_000


@pytest.mark.parametrize("kind", ["x.tar", "x.zip"])
def test_an_archive_with_too_many_members_is_refused(kind: str, tmp_path: Path) -> None:
    names = [f"f{number}" for number in range(11)]
    content = make_tar([(n, b"") for n in names]) if kind == "x.tar" else make_zip([(n, b"") for n in names])
    with pytest.raises(BadArchive, match="more than 10 members"):
        unpacked(content, kind, tmp_path, ArchiveLimits(entries_max=10))


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
    """Whatever an archive contains, only files, directories and links below the target are written."""
    directory = tmp_path_factory.mktemp("mixture")
    content = make_tar(
        [(name, b"x" if kind == tarfile.REGTYPE else special(name or "n", kind, link)) for name, kind, link in members],
        zipped=zipped,
    )
    with suppress(BadArchive):
        unpacked(content, "x.tgz" if zipped else "x.tar", directory)
    assert list(directory.iterdir()) == [directory / "target"]
    for path in (directory / "target").rglob("*"):
        assert path.is_symlink() or path.is_file() or path.is_dir()


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
