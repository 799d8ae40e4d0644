"""Compiles the core to C with mypyc when a wheel is built with HATCH_BUILD_HOOKS_ENABLE=1; unused otherwise.

The sources stay in the wheel beside the extension modules, which Python prefers. docs/design/compiled-core.md says
what is compiled, what is not, and why.
"""

from __future__ import annotations

import ast
import os
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from mypy.nodes import ARG_NAMED, CallExpr, Expression, IntExpr, MemberExpr, NameExpr, TempNode
from mypy.plugin import ClassDefContext, Plugin
from mypy.types import AnyType, TypeOfAny
from mypyc.build import mypycify
from setuptools import Distribution
from setuptools.command.build_ext import build_ext

COMPILED = (
    "yarn/resource.py",
    "yarn/resource_calculator.py",
    "yarn/java/binary32.py",
    "yarn/machine/*.py",
    "rm/scheduler/*.py",
    *(f"rm/scheduler/{part}/*.py" for part in ("capacity", "events", "model", "placement", "preemption", "queues")),
    "rm/core/*.py",
    "nm/core/played_container.py",
    "am/core/am_rm_client_state.py",
    *(f"yarnling/simulation/{part}.py" for part in ("engine", "network_starts", "node_manager", "played_calls")),
    *(f"yarnling/simulation/{part}.py" for part in ("process", "quiet_*", "resource_manager", "task_groups")),
)
"""Not compiled: rm/scheduler/config and rm/core/reports, which run seldom, and modules with checks of invariants."""

OPT_LEVEL = "1"
TRUE = NameExpr("True")
TRUE.fullname = "builtins.True"
NATIVE = (
    *("rm.scheduler.", "rm.core.", "nm.core.", "am.core."),
    *("yarn.machine.", "yarn.resource_calculator.", "yarnling.simulation."),
)
"""The beginnings of the names of classes that become native."""
NATIVE_BASES = ("builtins.object", "abc.ABC", *NATIVE)
CLASS_ATTRIBUTES: dict[str, Expression] = {"serializable": TRUE, "allow_interpreted_subclasses": TRUE}
VALUE = "yarn.resource.Resource"
VALUE_ATTRIBUTES: dict[str, Expression] = {"acyclic": TRUE, "free_list_len": IntExpr(1)}
"""Two dozen Resources are made for each placement, and nearly all are dropped at once: the garbage collector does not
visit them, and the next one takes the memory of the last."""


def compiled_sources(root: Path) -> list[str]:
    """The modules that are compiled, as paths below the root."""
    found = sorted({path for pattern in COMPILED for path in root.glob(pattern)})
    return [
        str(path.relative_to(root))
        for path in found
        if not path.name.endswith(("__init__.py", "invariants.py")) and not _has_records(path)
    ]


def _has_records(path: Path) -> bool:
    """True if a class of the module has keyword arguments, as in Struct, frozen=True: mypyc would drop these."""
    tree = ast.parse(path.read_bytes(), str(path))
    return any(isinstance(node, ast.ClassDef) and node.keywords for node in ast.walk(tree))


class CompiledCore(BuildHookInterface[Any]):
    """Compiles the modules in a temporary folder and adds them to the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            raise RuntimeError(
                "An editable install is never compiled: its sources could change (scripts/install --compiled)."
            )
        self._folder = Path(tempfile.mkdtemp(prefix="yarnling-compiled-"))
        try:
            extensions = build(Path(self.root), self._folder)
        except BaseException:
            shutil.rmtree(self._folder)
            raise
        for built in extensions:
            build_data["force_include"][str(built)] = str(built.relative_to(self._folder / "lib"))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        shutil.rmtree(self._folder)


def build(root: Path, folder: Path) -> list[Path]:
    """Compile to `folder`/lib; the extension modules made."""
    config = folder / "mypy.ini"
    config.write_text(
        f"[mypy]\nplugins = {Path(__file__).resolve()}\nfollow_imports = silent\nexplicit_package_bases = True\n"
    )
    os.chdir(root)
    extensions = mypycify(
        [f"--config-file={config}", f"--cache-dir={folder / 'cache'}", *compiled_sources(root)],
        opt_level=OPT_LEVEL,
        debug_level="0",
        multi_file=True,
        target_dir=str(folder / "c"),
        group_name="yarnling",
    )
    command = _ParallelBuild(Distribution({"name": "yarnling", "ext_modules": extensions}))
    command.build_lib, command.build_temp = str(folder / "lib"), str(folder / "objects")
    command.ensure_finalized()
    command.run()
    return sorted((folder / "lib").rglob("*.so"))


class _ParallelBuild(build_ext):
    """Compiles one C file per core at a time: setuptools compiles the files of an extension one after another."""

    def build_extensions(self) -> None:
        compile_all = self.compiler.compile

        with ThreadPoolExecutor(os.cpu_count()) as pool:

            def compile_parallel(sources: list[str], **options: Any) -> list[str]:
                done = pool.map(lambda source: compile_all([source], **options), sources)
                return [each for objects in done for each in objects]

            self.compiler.compile = compile_parallel
            super().build_extensions()


class CopyableClasses(Plugin):
    """Adds `@mypyc_attr(serializable=True, allow_interpreted_subclasses=True)` to each class that becomes native, and
    `@mypyc_attr(acyclic=True, free_list_len=1)` to Resource.

    A compiled class can be copied only with `serializable`. Without `allow_interpreted_subclasses`, mypyc skips
    `__init__` when interpreted code calls such a class (mypyc's issue 1172). The sources do not have the decorator,
    because mypy_extensions would then be a dependency of every installation.
    """

    def get_customize_class_mro_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        if fullname == VALUE:
            return partial(_mark, VALUE_ATTRIBUTES)
        return partial(_mark, CLASS_ATTRIBUTES) if fullname.startswith(NATIVE) else None


def _mark(attributes: dict[str, Expression], context: ClassDefContext) -> None:
    """Mark a class that becomes native: not an Enum, a NamedTuple or a record."""
    decorators, names = context.cls.decorators, list[str | None](attributes)
    native = all(base.type.fullname.startswith(NATIVE_BASES) for base in context.cls.info.bases)
    marked = any(isinstance(each, CallExpr) and each.arg_names == names for each in decorators)
    if native and not marked:
        name = MemberExpr(TempNode(AnyType(TypeOfAny.special_form)), "mypyc_attr")
        name.fullname = "mypy_extensions.mypyc_attr"
        decorators.append(CallExpr(name, list(attributes.values()), [ARG_NAMED] * len(attributes), names))


def plugin(version: str) -> type[Plugin]:
    """What mypy calls when the build names this file as its plugin."""
    return CopyableClasses
