"""List changes of one operator in the scheduler that no recording of Hadoop notices.

A mutant replaces one comparison (`<` by `<=` or `>=`, `==` by `!=`, ...) or one sign (`+`, `-`). The core with it is
stepped through recordings until one differs: that one kills the mutant. Mutants that no recording kills are printed.
Each of them changes nothing that can be seen, or shows that a recording is missing.
"""

from __future__ import annotations

import argparse
import ast
import multiprocessing
import random
import resource
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

RECORDINGS = ROOT / "tests" / "conformance" / "recordings"
PACKAGES = tuple(f"rm/scheduler/{name}" for name in ("placement", "capacity", "preemption"))
COUNT, SEED = 150, 32
CPU_S_MAX = 60
"""CPU time for a mutant with all recordings, which takes a few seconds. With more it does not end, and is killed."""

Operator = ast.cmpop | ast.operator | ast.unaryop
Operation = ast.Compare | ast.BinOp | ast.AugAssign | ast.UnaryOp

REPLACEMENTS: dict[type[Operator], tuple[type[Operator], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.USub: (ast.UAdd,),
}


class Mutant(NamedTuple):
    """In the file at `path` (relative to the checkout) `becomes` replaces the operator with the number `position`."""

    path: str
    line: int
    position: int
    becomes: type[Operator]
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.old} -> {self.new}"

    def code(self) -> CodeType:
        """The compiled code of the module with the mutant."""
        tree = _parse(self.path)
        operation, index = list(_operators(tree))[self.position]
        _replace(operation, index, self.becomes)
        return compile(tree, self.path, "exec", dont_inherit=True)


class MutantLoader(SourceFileLoader):
    """Finds and loads the one module that has a mutant."""

    def __init__(self, mutant: Mutant) -> None:
        super().__init__(mutant.path.removesuffix(".py").replace("/", "."), str(ROOT / mutant.path))
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return spec_from_file_location(fullname, self.path, loader=self) if fullname == self.name else None

    def get_code(self, fullname: str) -> CodeType:
        return self._mutant.code()


def main() -> int:
    arguments = _arguments()
    recordings = [file for path in arguments.recordings for file in _files(path)]
    mutants = sample(arguments.count, arguments.seed)
    survivors = 0
    differing = _judge(None, recordings)
    if differing is not None:
        print(f"{differing}: differs without a mutant (scripts/conform shows where); it would kill every mutant")
        return 2
    for mutant, killer in judged(mutants, recordings):
        survivors += killer is None
        if killer is None or arguments.verbose:
            print(f"{mutant}   {f'({killer})' if killer else 'SURVIVES'}", flush=True)
    print(f"{len(mutants)} mutants: {len(mutants) - survivors} killed, {survivors} survive")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/mutants", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("recordings", nargs="*", type=Path, default=[RECORDINGS], help="default: the committed ones")
    parser.add_argument("--count", type=int, default=COUNT, help=f"size of the sample (default: {COUNT})")
    parser.add_argument("--seed", type=int, default=SEED, help=f"seed of the sample (default: {SEED})")
    parser.add_argument("--verbose", action="store_true", help="also print what was killed, and by which recording")
    return parser.parse_args()


def _files(path: Path) -> list[Path]:
    return sorted(path.glob("**/*.jsonl.gz")) if path.is_dir() else [path]


def sample(count: int, seed: int) -> list[Mutant]:
    """So many mutants of the scheduler, all if there are fewer, in the order of the files."""
    files = [file for package in PACKAGES for file in sorted((ROOT / package).glob("*.py"))]
    mutants = [mutant for file in files for mutant in mutants_of(str(file.relative_to(ROOT)))]
    chosen = random.Random(seed).sample(range(len(mutants)), min(count, len(mutants)))
    return [mutants[number] for number in sorted(chosen)]


def mutants_of(path: str) -> Iterator[Mutant]:
    for position, (operation, index) in enumerate(_operators(_parse(path))):
        old, operator = ast.unparse(operation), _operator(operation, index)
        for becomes in REPLACEMENTS.get(type(operator), ()):
            _replace(operation, index, becomes)
            yield Mutant(path, operation.lineno, position, becomes, old, ast.unparse(operation))
        _replace(operation, index, type(operator))


def judged(mutants: Sequence[Mutant], recordings: Sequence[Path]) -> Iterator[tuple[Mutant, str | None]]:
    """Each mutant with the recording that kills it, None if none does. Good killers are tried first."""
    order = list(recordings)
    for mutant in mutants:
        killer = _judge(mutant, order)
        for number, recording in enumerate(order):
            if recording.name == killer:
                order.insert(0, order.pop(number))
        yield mutant, killer


def _judge(mutant: Mutant | None, recordings: Sequence[Path]) -> str | None:
    """The name of the first recording that differs. The mutant, if any, is loaded in a new process."""
    spawn = multiprocessing.get_context("spawn")
    result, sender = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_step_through, args=(mutant, recordings, sender))
    process.start()
    sender.close()
    try:
        killer: str | None = result.recv()
    except EOFError:
        killer = "does not end"
    process.join()
    return killer


def _step_through(mutant: Mutant | None, recordings: Sequence[Path], result: Connection) -> None:
    """Send the name of the first recording that differs, None if all are the same."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S_MAX, CPU_S_MAX))
    if mutant is not None:
        sys.meta_path.insert(0, MutantLoader(mutant))
    try:
        from tests.conformance.comparison import compare_file
    except Exception as error:
        result.send(f"cannot be imported: {type(error).__name__}")
        return
    result.send(next((path.name for path in recordings if not compare_file(path).same), None))


def _parse(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text())


def _operators(tree: ast.Module) -> Iterator[tuple[Operation, int]]:
    """All operators, as the operation and, of a comparison, which of its operators."""
    for node in ast.walk(tree):
        if isinstance(node, Operation):
            yield from ((node, index) for index in range(len(node.ops) if isinstance(node, ast.Compare) else 1))


def _operator(operation: Operation, index: int) -> Operator:
    return operation.ops[index] if isinstance(operation, ast.Compare) else operation.op


def _replace(operation: Operation, index: int, becomes: type[Operator]) -> None:
    operator = becomes()
    if isinstance(operation, ast.Compare):
        assert isinstance(operator, ast.cmpop)
        operation.ops[index] = operator
    elif isinstance(operation, ast.UnaryOp):
        assert isinstance(operator, ast.unaryop)
        operation.op = operator
    else:
        assert isinstance(operator, ast.operator)
        operation.op = operator


if __name__ == "__main__":
    sys.exit(main())
