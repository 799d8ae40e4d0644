"""Build a wheel, install it into an empty environment outside the checkout, and test it there.

Without --compiled the wheel is the pure one, for all platforms. With it, modules are compiled (hatch_build.py names
them), and the wheel is for this Python and platform. The test compares the wheel's modules with the list, runs
`yarnling --version` and simulates a workload: the result and the hash of every step must be those of the checkout's
sources. Dependencies come from the package index. Exit with 1, and without a wheel in dist/, if the test fails.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from hatch_build import compiled_sources  # noqa: E402  hatch_build.py is not installed

EXAMPLE = ROOT / "examples" / "what-if" / "move-capacity"
SIMULATE = (
    *("simulate", "workload", "--conf", str(EXAMPLE / "before"), "--workload", str(EXAMPLE / "workload.yaml")),
    *("--nodes", str(EXAMPLE / "nodes.yaml"), "--json"),
)
RUNS = (("--until", "30m"), ("--until", "10m", "--hash"))
"""With a hash, no heartbeat is left out."""
COST = ("wall_s",)
"""Fields in which two equal runs of a simulation may differ."""

LOADED = """
import importlib, sys
print(*(importlib.import_module(name).__file__ for name in sys.argv[1:]), sep="\\n")
"""


class WheelFailed(Exception):
    """The wheel cannot be built, or is not as it should be."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/wheel", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--compiled", action="store_true", help="compile the core, for this Python and platform")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the wheel goes (default: dist)")
    arguments = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="yarnling-wheel-") as work:
            wheel = build(Path(work), compiled=arguments.compiled)
            check_modules(wheel, compiled=arguments.compiled)
            check_run(wheel, Path(work), compiled=arguments.compiled)
            arguments.out.mkdir(parents=True, exist_ok=True)
            print(f"built and tested {shutil.copy(wheel, arguments.out)}")
    except WheelFailed as failure:
        print(f"wheel: {failure}", file=sys.stderr)
        return 1
    return 0


def build(work: Path, *, compiled: bool) -> Path:
    """Build the wheel with the tools of this environment."""
    say("building the wheel ..." if not compiled else "compiling, and building the wheel ...")
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--wheel-dir", str(work))
    settings = {"HATCH_BUILD_HOOKS_ENABLE": "1"} if compiled else {}
    output(sys.executable, "-m", "pip", "wheel", *options, str(ROOT), settings=settings)
    return next(work.glob("*.whl"))


def check_modules(wheel: Path, *, compiled: bool) -> None:
    """Compare the extension modules of the wheel with the list. Raises WheelFailed."""
    expected = {module_name(source) for source in compiled_sources(ROOT)} if compiled else set()
    present = extension_modules(zipfile.ZipFile(wheel).namelist())
    if expected != present:
        raise WheelFailed(
            f"{wheel.name}: missing {sorted(expected - present)}, unexpected {sorted(present - expected)}"
        )
    if compiled == wheel.name.endswith("-any.whl"):
        raise WheelFailed(f"{wheel.name}: the name does not say for which platform it is")


def extension_modules(files: list[str]) -> set[str]:
    """The names of the extension modules among the files of a wheel, without the one that mypyc adds for all."""
    names = {module_name(file) for file in files if file.endswith(".so")}
    return {name for name in names if not name.endswith("__mypyc")}


def module_name(file: str) -> str:
    """`rm.scheduler.server` for the source or the extension module of a wheel with this path."""
    return file.partition(".")[0].replace("/", ".")


def check_run(wheel: Path, work: Path, *, compiled: bool) -> None:
    """Install the wheel into an empty environment, and simulate there. Raises WheelFailed."""
    say("installing it into an empty environment ...")
    output(sys.executable, "-m", "venv", str(work / "venv"))
    python = str(work / "venv" / "bin" / "python")
    output(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
    names = [module_name(source) for source in compiled_sources(ROOT)]
    suffix = ".so" if compiled else ".py"
    for loaded in output(python, "-P", "-c", LOADED, *names, directory=work).split():
        if not loaded.startswith(str(work)) or not loaded.endswith(suffix):
            raise WheelFailed(f"{loaded} is loaded, and not the wheel's {suffix} file")
    yarnling = str(work / "venv" / "bin" / "yarnling")
    version = output(yarnling, "--version", directory=work).strip()
    if ("is compiled" in version) != compiled:
        raise WheelFailed(f"yarnling --version says: {version}")
    say(f"{version}; simulating ...")
    for options in RUNS:
        ours = simulated(yarnling, *SIMULATE, *options, directory=work)
        reference = simulated(sys.executable, "-P", "-m", "yarnling", *SIMULATE, *options, directory=work)
        if ours != reference:
            raise WheelFailed(f"the wheel simulates {ours}, the sources {reference}")


def simulated(*command: str, directory: Path) -> dict[str, object]:
    """The summary of the simulation, with the hash of its steps if there is one, without what it cost."""
    summary: dict[str, object] = json.loads(output(*command, directory=directory))
    return {key: value for key, value in summary.items() if key not in COST}


def output(*command: str, directory: Path = ROOT, settings: dict[str, str] = {}) -> str:  # noqa: B006  never changed
    """The standard output of a command. Raises WheelFailed with all that it printed if it fails."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        command,
        check=False,
        cwd=directory,
        env={**environment, **settings},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise WheelFailed(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
