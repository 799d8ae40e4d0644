"""Run the same simulations with Python 3.11, 3.12 and 3.13, and compare the hashes of their traces; run a cluster.

Exit with 1 if two interpreters disagree or a cluster fails. The hashes are compared within one run, because a change of
the code may change them. Each interpreter also has another PYTHONHASHSEED. A version that is not installed, or whose
environment cannot be made (no network), is left out, and the last line names it; with --require-all that is a failure.
The environments are .venv-3.12 and so on.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13")
SIMULATIONS = (("storm", 7), ("kill-rm", 3), ("partition-requests", 5))
"""Plans of `yarnling simulate`, each with its seed."""

PARALLEL_MAX = 2
"""The number of interpreters that run at the same time."""

VERSION_OF = "import sys; print('%d.%d' % sys.version_info[:2])"


def main() -> int:
    """Simulate with each interpreter and compare, and run clusters."""
    parser = argparse.ArgumentParser(prog="scripts/pythons", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--require-all", action="store_true", help="fail if a version is missing")
    requires_all = parser.parse_args().require_all
    with ThreadPoolExecutor(PARALLEL_MAX) as pool:
        made = dict(zip(VERSIONS, pool.map(environment, VERSIONS), strict=True))
        environments = {version: python for version, python in made.items() if python is not None}
        runs = [pool.map(partial(trace_hash, plan, seed), environments.items()) for plan, seed in SIMULATIONS]
        hashes = [list(found) for found in runs]
        faults = [fault for fault in pool.map(cluster_fault, *zip(*environments.items(), strict=True)) if fault]
        print(*faults, sep="\n", end="\n" if faults else "")
        return report(list(environments), hashes, requires_all=requires_all) or bool(faults)


def report(versions: list[str], runs: list[list[str]], *, requires_all: bool = False) -> int:
    """Print the hashes of all simulations, and what was not compared; the exit status."""
    different = 0
    for (plan, seed), found in zip(SIMULATIONS, runs, strict=True):
        hashes = dict(zip(versions, found, strict=True))
        if len(set(found)) == 1 and re.fullmatch("[0-9a-f]{64}", found[0]):
            print(f"same   {plan}, seed {seed}: {next(iter(hashes.values()))}")
        else:
            different += 1
            print(
                f"DIFFER {plan}, seed {seed}:", *(f"  Python {key}: {text}" for key, text in hashes.items()), sep="\n"
            )
    missing = [version for version in VERSIONS if version not in versions]
    not_compared = f"; NOT COMPARED: Python {', '.join(missing)}" if missing else ""
    print(f"{len(SIMULATIONS) - different} same, {different} differ, on Python {', '.join(versions)}{not_compared}")
    return 1 if different or (requires_all and missing) else 0


def environment(version: str) -> Path | None:
    """A Python of that version with yarnling installed: the running one, or one in an environment of its own."""
    if version == "{}.{}".format(*sys.version_info[:2]):
        return Path(sys.executable)
    interpreter = next((found for found in interpreters(version) if output(found, "-c", VERSION_OF) == version), None)
    if interpreter is None:
        print(f"Python {version} is not installed: not compared")
        return None
    venv = ROOT / f".venv-{version}"
    command = [interpreter, str(ROOT / "scripts" / "install.py"), "--run", "--venv", str(venv)]
    if subprocess.run(command, check=False, stdin=subprocess.DEVNULL).returncode != 0:
        print(f"Python {version}: yarnling could not be installed: not compared")
        return None
    return venv / "bin" / "python"


def interpreters(version: str) -> Iterator[str]:
    """Where a Python of that version may be: on the PATH, or among those of pyenv."""
    if found := shutil.which(f"python{version}"):
        yield found
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python"), reverse=True))


def trace_hash(plan: str, seed: int, python_of_version: tuple[str, Path]) -> str:
    """The hash of the trace; what was printed last instead if there is none."""
    version, python = python_of_version
    environment = {"PYTHONHASHSEED": version.partition(".")[2]}
    printed = output(
        str(python), "-P", "-m", "yarnling", "simulate", plan, "--seed", str(seed), "--hash", environment=environment
    )
    return printed.rpartition("\n")[2]


def cluster_fault(version: str, python: Path) -> str:
    """Why a cluster of the command line does not run; "" if it runs."""
    name = f"pythons-{version}-{os.getpid()}"
    verbs = ("up", "--nodes", "1", "--fast", "--detach"), ("run", "echo hello"), ("down",)
    command = (str(python), "-P", "-m", "yarnling")
    printed = [output(*command, *verb, environment={"YARNLING_NAME": name}) for verb in verbs]
    if "| hello" in printed[1] and printed[2] == f"Cluster {name} has stopped.":
        return ""
    return "\n".join([f"FAILED a cluster on Python {version}:", *printed])


def output(*command: str, environment: dict[str, str] = {}) -> str:  # noqa: B006  never changed
    """The output of a command, without the last line's end."""
    done = subprocess.run(
        command,
        check=False,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.stdout.rstrip("\n")


if __name__ == "__main__":
    sys.exit(main())
