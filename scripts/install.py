"""Make a virtual environment and install the checkout into it, editable. Does nothing if nothing has changed.

The script runs on a bare Python 3.11, before anything is installed. A stamp file in the environment records what was
installed: the hash of pyproject.toml, the checkout and the mode. A development environment also serves for running.

The generators of protos/ need an older protobuf than the tests, so they have an environment of their own,
.venv-generators, which --dev makes as well. With --floors the oldest versions of all dependencies that pyproject.toml
allows are installed into .venv-floors, with --docs what builds the site of the documentation into .venv-docs.

With --compiled a wheel whose core is compiled is installed into .venv-compiled, not editable; this environment
uses the libraries of the other one. It is built again when a source has changed (docs/design/compiled-core.md).
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SERVED_BY = {
    "run": ("run", "dev"),
    "dev": ("dev",),
    "generators": ("generators",),
    "floors": ("floors",),
    "docs": ("docs",),
}
"""{mode: the modes whose environment has all that this one needs}."""
STAMP = "yarnling-install.json"
COMPILED = "compiled"
COMPILED_VENV = ROOT / ".venv-compiled"
GENERATORS_VENV = ROOT / ".venv-generators"
FLOORS_VENV = ROOT / ".venv-floors"
DOCS_VENV = ROOT / ".venv-docs"

# pip ignores the caller's settings of where to install, and prints no advice on upgrading.
PIP_SILENCED = {
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
    "PIP_NO_WARN_SCRIPT_LOCATION": "1",
}
PIP_DISTURBING = ("PIP_TARGET", "PIP_USER", "PIP_PREFIX", "PYTHONHOME", "PYTHONPATH")


class InstallFailed(Exception):
    """The installation failed. The message is for the user; no traceback is printed."""


def main() -> int:
    arguments = parse_arguments()
    venv: Path = arguments.venv.absolute()
    try:
        venv.mkdir(parents=True, exist_ok=True)
        with locked(venv):
            if tools := tools_of(venv):
                install_compiled(venv, tools)
            elif arguments.mode == COMPILED:
                install(venv, "dev")
                install_compiled(COMPILED_VENV, venv)
            elif arguments.mode == "floors":
                install(FLOORS_VENV, "floors")
            elif arguments.mode == "docs":
                install(DOCS_VENV, "docs")
            else:
                install(venv, arguments.mode)
                if arguments.mode == "dev":
                    install(GENERATORS_VENV, "generators")
    except (InstallFailed, OSError) as failure:
        print(f"install: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/install", description="Install yarnling for this checkout.")
    parser.add_argument("--run", dest="mode", action="store_const", const="run", help="what running needs")
    parser.add_argument("--dev", dest="mode", action="store_const", const="dev", help="what tests need (default)")
    parser.add_argument(
        "--compiled",
        dest="mode",
        action="store_const",
        const=COMPILED,
        help=f"compile into {COMPILED_VENV.name} as well",
    )
    parser.add_argument(
        "--floors",
        dest="mode",
        action="store_const",
        const="floors",
        help=f"the oldest versions that are allowed, into {FLOORS_VENV.name}",
    )
    parser.add_argument(
        "--docs",
        dest="mode",
        action="store_const",
        const="docs",
        help=f"what the site of the documentation needs, into {DOCS_VENV.name}",
    )
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv", help=argparse.SUPPRESS)
    parser.set_defaults(mode="dev")
    return parser.parse_args()


def install(venv: Path, mode: str) -> None:
    """Install for the mode, unless the stamp says that this was already done."""
    stamp = venv / STAMP
    requested = requirements(mode)
    project = project_hash() if str(ROOT) in " ".join(requested) else " ".join(requested)
    wanted = {"project": project, "checkout": str(ROOT)}
    present = read_stamp(stamp)
    python = venv / "bin" / "python"
    # pip is installed last. An environment without pip comes from an interrupted installation.
    usable = python.exists() and (venv / "bin" / "pip").exists()
    current = usable and all(present.get(key) == value for key, value in wanted.items())
    if current and present["mode"] in SERVED_BY[mode]:
        return
    started = time.monotonic()
    stamp.unlink(missing_ok=True)
    if not usable:
        make_environment(venv)
    pip_install(python, requested, venv / "yarnling-install.log")
    compile_sources(python)
    stamp.write_text(json.dumps({**wanted, "mode": mode}) + "\n")
    say(f"installed yarnling ({mode}) into {venv} in {time.monotonic() - started:.1f} s\n")


def requirements(mode: str) -> list[str]:
    """The arguments of `pip install` for a mode."""
    if mode == "dev":
        return ["--editable", f"{ROOT}[dev]"]
    if mode == "run":
        return ["--editable", str(ROOT)]
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    group: list[str] = pyproject["dependency-groups"][mode]
    if mode == "floors":
        oldest = [floor(requirement) for requirement in pyproject["project"]["dependencies"]]
        return ["--editable", str(ROOT), *oldest, *group]
    return group


def floor(requirement: str) -> str:
    """The oldest version that a requirement allows: `protobuf==6.30.0` for `protobuf>=6.30.0,<8`."""
    name, _, versions = requirement.partition(">=")
    return f"{name}=={versions.partition(',')[0]}"


def install_compiled(venv: Path, tools: Path) -> None:
    """Build the wheel with the tools of one environment and install it into the other, unless no source has changed."""
    stamp = venv / STAMP
    wanted = {"mode": COMPILED, "sources": sources_hash(), "checkout": str(ROOT), "tools": str(tools)}
    if read_stamp(stamp) == wanted:
        return
    started = time.monotonic()
    stamp.unlink(missing_ok=True)
    python = tools / "bin" / "python"
    run([str(python), "-m", "venv", "--without-pip", str(venv)])
    site_packages = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own, shared = (run([str(each / "bin" / "python"), "-c", site_packages]).strip() for each in (venv, tools))
    # Packages of the wheel come first; then the libraries, then what is only in the checkout: tests and benchmarks.
    Path(own, "yarnling-shared.pth").write_text(f"{shared}\n{ROOT}\n")
    say("compiling the core ...\n")
    pip = [str(python), "-m", "pip", "--python", str(venv / "bin" / "python")]
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--force-reinstall", "--quiet"]
    run([*pip, "install", *options, str(ROOT)], {"HATCH_BUILD_HOOKS_ENABLE": "1"})
    stamp.write_text(json.dumps(wanted) + "\n")
    say(f"installed yarnling (compiled) into {venv} in {time.monotonic() - started:.1f} s\n")


def tools_of(venv: Path) -> Path | None:
    """The environment with the tools for a compiled one; None if `venv` is not compiled."""
    present = read_stamp(venv / STAMP)
    return Path(present["tools"]) if present.get("mode") == COMPILED else None


def run(command: list[str], settings: dict[str, str] = {}) -> str:  # noqa: B006  never changed
    """The output of a command. Raises InstallFailed with all that it printed if it fails."""
    environment = {key: value for key, value in os.environ.items() if key not in PIP_DISTURBING}
    done = subprocess.run(
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**environment, **PIP_SILENCED, **settings},
    )
    if done.returncode != 0:
        raise InstallFailed(f"{' '.join(command)} failed:\n{done.stdout}")
    return done.stdout


def project_hash() -> str:
    return hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()


def sources_hash() -> str:
    """The hash of all that goes into a wheel, and of how it is built."""
    packages = [init.parent for init in ROOT.glob("*/__init__.py")]
    files = [path for package in packages for path in package.rglob("*") if path.suffix != ".pyc" and path.is_file()]
    digest = hashlib.sha256()
    for path in sorted([*files, ROOT / "pyproject.toml", ROOT / "hatch_build.py"]):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def read_stamp(stamp: Path) -> dict[str, str]:
    """Read what was installed; empty if nothing was, or if the stamp cannot be read."""
    try:
        content = json.loads(stamp.read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) and content.get("mode") in (*SERVED_BY, COMPILED) else {}


def make_environment(venv: Path) -> None:
    say(f"making {venv} ...\n")
    made = subprocess.run(
        [sys.executable, "-m", "venv", str(venv)],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if made.returncode != 0:
        raise InstallFailed(
            f"{sys.executable} -m venv {venv} failed:\n{made.stdout}{made.stderr}"
            "(on Debian and Ubuntu the package python3-venv is needed)"
        )


def pip_install(python: Path, requested: list[str], log: Path) -> None:
    """Run pip with its output in a log file.

    A terminal shows the last line of the log; a failure prints the whole log.
    """
    command = [str(python), "-m", "pip", "install", "--progress-bar", "off", *requested]
    environment = {key: value for key, value in os.environ.items() if key not in PIP_DISTURBING}
    say("installing the dependencies ...\n")
    with log.open("wb") as output:
        pip = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**environment, **PIP_SILENCED},
        )
        try:
            watch(pip, log)
        except BaseException:
            pip.kill()
            pip.wait()
            raise
    if pip.returncode != 0:
        raise InstallFailed(f"{' '.join(command)} failed:\n{log.read_text(errors='replace')}")


def compile_sources(python: Path) -> None:
    """Compile the modules to bytecode, as pip normally does.

    With PYTHONDONTWRITEBYTECODE every start would compile them.
    """
    packages = sorted(str(init.parent) for init in ROOT.glob("*/__init__.py"))
    subprocess.run([str(python), "-m", "compileall", "-q", *packages], check=False, stdin=subprocess.DEVNULL)


def watch(pip: subprocess.Popen[bytes], log: Path) -> None:
    """Wait for pip. Meanwhile, on a terminal, show the last line of its log in place."""
    shown = sys.stderr.isatty()
    width = shutil.get_terminal_size().columns - 1
    while pip.poll() is None:
        if shown:
            lines = log.read_text(errors="replace").splitlines()
            say(f"\r\x1b[K{lines[-1].strip()[:width]}" if lines else "")
        with contextlib.suppress(subprocess.TimeoutExpired):
            pip.wait(timeout=0.2)
    if shown:
        say("\r\x1b[K")


@contextlib.contextmanager
def locked(venv: Path) -> Iterator[None]:
    """Allow one installation at a time, because the demo and the tests may be started together."""
    with (venv / "yarnling-install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def say(text: str) -> None:
    """Print progress to standard error, because standard output belongs to the script that called the installer."""
    sys.stderr.write(text)
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
