"""scripts/gen_protos --check finds every generated file that its source would not write today."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CARRIED = (
    "pyproject.toml",
    "scripts/gen_protos",
    "protos/security.proto",
    "wire/generated/security_pb2.py",
    "wire/generated/security_pb2.pyi",
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with one small source and what was generated from it."""
    for name in CARRIED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".venv-generators").symlink_to(ROOT / ".venv-generators")
    return tmp_path


def gen_protos(checkout: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(checkout / "scripts/gen_protos"), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_committed_code_is_current() -> None:
    done = gen_protos(ROOT, "--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_changed_source_is_reported_with_the_repair_and_repaired(checkout: Path) -> None:
    source = checkout / "protos/security.proto"
    source.write_text(source.read_text().replace("bytes secret = 3", "string secret = 3"))
    done = gen_protos(checkout, "--check")
    assert done.returncode == 1
    assert "wire/generated/security_pb2.py: stale\n" in done.stdout
    assert "repair: python scripts/gen_protos" in done.stdout

    assert gen_protos(checkout).returncode == 0
    assert gen_protos(checkout, "--check").returncode == 0


def test_missing_and_left_over_files_are_reported(checkout: Path) -> None:
    (checkout / "wire/generated/security_pb2.pyi").unlink()
    (checkout / "wire/generated/gone_pb2.py").touch()
    done = gen_protos(checkout, "--check")
    assert done.returncode == 1
    assert "wire/generated/security_pb2.pyi: missing\n" in done.stdout
    assert "wire/generated/gone_pb2.py: left over\n" in done.stdout


def test_another_generator_version_is_refused(checkout: Path) -> None:
    """Other versions write other bytes: every file would look stale."""
    pins = checkout / "pyproject.toml"
    pins.write_text(pins.read_text().replace('"grpcio-tools==', '"grpcio-tools==0.'))
    done = gen_protos(checkout, "--check")
    assert done.returncode == 2
    assert "must be 0." in done.stderr
    assert "(run scripts/install)" in done.stderr


def test_a_faulty_source_is_reported_in_protocs_words(checkout: Path) -> None:
    source = checkout / "protos/security.proto"
    source.write_text(source.read_text() + "message {")
    done = gen_protos(checkout)
    assert done.returncode == 1
    assert "protos/security.proto:" in done.stderr
