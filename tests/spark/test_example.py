"""The example of tests of a pyspark job passes, as its users run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.clients import TIMEOUT_S, home_of, package_of

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(2 * TIMEOUT_S)]

ROOT = Path(__file__).resolve().parents[2]


def test_the_tests_of_a_job_pass(tmp_path: Path) -> None:
    packages = package_of(home_of("pyspark-4.3.0"), "pyspark").parent
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-c", "pytest.ini"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(ROOT / "examples" / "spark")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{packages}"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
