"""A planted bug: a safeguard of the product that is broken, in memory, for the length of a run.

    bug("kill-lost", "A kill of a container sends no signal.", drop(_kill, "end_processes"))

    with planted(that bug) as planting:
        run = simulate(plan, seed)
    planting.count                     how often the broken code ran

Each change names a function of the product, and what is done to it:

    drop(f, words)          a statement is left out
    never(f, words)         a condition (of an if, x if y, a filter, or a part of and/or) is never true
    always(f, words)        such a condition is always true
    skip_all(f, words)      a loop runs over nothing
    instead(f, mine)        mine(f, its arguments) is called instead

The words are names and comparison operators. The statement, condition or loop that is meant is the smallest with all of
them, and there must be one (or `places`). With `when`, an expression over the function's variables, it is changed only
if that holds.

The function object itself gets the changed code, so every reference to it is changed: bound methods, handlers, rows of
transition tables.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import CodeType, FunctionType
from typing import Any

from msgspec import Struct

from yarn.errors import YarnException

COUNT = "_planted"
"""The name by which changed code reports that it runs."""
OPERATORS = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
}


class Change(Struct, frozen=True):
    """`function`: as its module or class has it. `mine` or `rule` and the rest: see above."""

    function: Any
    rule: str
    words: tuple[str, ...] = ()
    when: str = ""
    places: int = 1
    mine: Callable[..., Any] | None = None


class PlantedBug(Struct, frozen=True):
    """`breaks`: what goes wrong, one sentence. `plans`: where it is looked for, ready-made plans or "random".

    `unseen`: why runs cannot show it, one sentence; "" if they can.
    """

    name: str
    breaks: str
    changes: tuple[Change, ...]
    plans: tuple[str, ...] = ("random",)
    unseen: str = ""


class CannotPlant(YarnException):
    """The code to change is not there, or is compiled."""


def bug(name: str, breaks: str, *changes: Change, plans: tuple[str, ...] = ("random",), unseen: str = "") -> PlantedBug:
    return PlantedBug(name, breaks, changes, plans, unseen)


def drop(function: Any, *words: str, when: str = "", places: int = 1) -> Change:
    return Change(function, "drop", words, when, places)


def never(function: Any, *words: str, when: str = "") -> Change:
    return Change(function, "never", words, when)


def always(function: Any, *words: str, when: str = "") -> Change:
    return Change(function, "always", words, when)


def skip_all(function: Any, *words: str, when: str = "") -> Change:
    return Change(function, "skip_all", words, when)


def instead(function: Any, mine: Callable[..., Any]) -> Change:
    return Change(function, "instead", mine=mine)


class Planting:
    """A bug that is planted now. `count`: how often its code has run."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> bool:
        self.count += 1
        return True


@contextmanager
def planted(bug: PlantedBug) -> Iterator[Planting]:
    """Run with the bug. Raises CannotPlant before anything is changed."""
    planting = Planting()
    codes: dict[FunctionType, CodeType] = {}
    names: dict[FunctionType, dict[str, object]] = {}
    trees: dict[FunctionType, ast.FunctionDef] = {}
    for change in bug.changes:
        function = _function(bug, change)
        if change.mine is not None:
            _check_arguments(bug, function, change.mine)
            codes[function], names[function] = _call_of_mine(function, change.mine, planting)
        else:
            tree = trees[function] = _changed(bug, change, function, trees.get(function) or _tree(bug, function))
            codes[function], names[function] = _code(function, tree, bug.name), {COUNT: planting}
    with ExitStack() as stack:
        for function, code in codes.items():
            stack.callback(setattr, function, "__code__", function.__code__)
            for name, value in names[function].items():
                stack.callback(function.__globals__.pop, name, None)
                function.__globals__[name] = value
            function.__code__ = code
        yield planting


def version_of(bug: PlantedBug) -> str:
    """A digest of what the bug changes. It stays the same if modules move or the changed functions are rewritten."""
    text = repr(
        [
            (
                _unwrapped(change.function).__qualname__,
                (change.rule, change.words, change.when, change.places),
                "" if change.mine is None else inspect.getsource(change.mine),
            )
            for change in bug.changes
        ]
    )
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _function(bug: PlantedBug, change: Change) -> FunctionType:
    found = _unwrapped(change.function)
    if not isinstance(found, FunctionType):
        raise CannotPlant(
            f"planted bug {bug.name}: {change.function!r} is not a Python function. If its module is compiled, run "
            "without the compiled build"
        )
    return found


def _unwrapped(found: Any) -> Any:
    if isinstance(found, property):
        return found.fget
    return getattr(found, "__func__", found)


def _tree(bug: PlantedBug, function: FunctionType) -> ast.FunctionDef:
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except OSError:
        raise CannotPlant(f"planted bug {bug.name}: the source of {function.__module__} cannot be read") from None
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.FunctionDef)
    # The function object keeps its defaults and what its decorators have made of it.
    tree.decorator_list, tree.args.defaults, tree.args.kw_defaults = [], [], [None for _ in tree.args.kwonlyargs]
    return tree


def _code(function: FunctionType, tree: ast.FunctionDef, name: str) -> CodeType:
    flags = __future__.annotations.compiler_flag
    scope: dict[str, Any] = {}
    exec(compile(ast.Module([ast.fix_missing_locations(tree)], []), f"<planted bug {name}>", "exec", flags), scope)
    code: CodeType = scope[function.__name__].__code__
    return code


def _call_of_mine(
    function: FunctionType, mine: Callable[..., Any], planting: Planting
) -> tuple[CodeType, dict[str, object]]:
    original = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    original.__kwdefaults__ = function.__kwdefaults__

    def called(*arguments: Any, **named: Any) -> Any:
        planting()
        return mine(original, *arguments, **named)

    name = f"{COUNT}_{function.__qualname__.replace('.', '_')}"
    tree = ast.parse(f"def {function.__name__}(*arguments, **named):\n    return {name}(*arguments, **named)").body[0]
    assert isinstance(tree, ast.FunctionDef)
    return _code(function, tree, function.__name__), {name: called}


def _check_arguments(bug: PlantedBug, function: FunctionType, mine: Callable[..., Any]) -> None:
    """Raise CannotPlant if the function is not called as `mine` expects."""
    theirs, ours = inspect.signature(function).parameters, inspect.signature(mine).parameters.values()
    named = {one.name for one in ours if one.kind is one.KEYWORD_ONLY}
    in_order = sum(one.kind is one.POSITIONAL_OR_KEYWORD for one in ours) - 1
    theirs_in_order = sum(one.kind is one.POSITIONAL_OR_KEYWORD for one in theirs.values())
    takes_the_rest = any(one.kind is one.VAR_POSITIONAL for one in ours)
    if not named <= theirs.keys() or in_order > theirs_in_order or (in_order < theirs_in_order and not takes_the_rest):
        raise CannotPlant(
            f"planted bug {bug.name}: {function.__qualname__} has other arguments than {mine.__qualname__} expects; "
            "adapt the bug to the code (tests/mutants)"
        )


def _changed(bug: PlantedBug, change: Change, function: FunctionType, tree: ast.FunctionDef) -> ast.FunctionDef:
    _check_names(bug, change, function)
    found = [node for node in _candidates(change.rule, tree) if set(change.words) <= _words(node)]
    smallest = [node for node in found if not any(below in found for below in ast.walk(node) if below is not node)]
    if len(smallest) != change.places:
        raise CannotPlant(
            f"planted bug {bug.name}: {function.__qualname__} has {len(smallest)} places for {change.rule} with the "
            f"words {', '.join(change.words)}, and must have {change.places}; adapt the bug to the code (tests/mutants)"
        )
    changed = _Replace({id(node): _broken(change, node) for node in smallest}).visit(tree)
    assert isinstance(changed, ast.FunctionDef)
    return changed


def _check_names(bug: PlantedBug, change: Change, function: FunctionType) -> None:
    known = {*function.__code__.co_varnames, *function.__code__.co_cellvars, *function.__globals__, *dir(builtins)}
    if missing := {node.id for node in ast.walk(ast.parse(change.when)) if isinstance(node, ast.Name)} - known:
        raise CannotPlant(
            f"planted bug {bug.name}: {function.__qualname__} has no {', '.join(sorted(missing))}; adapt the bug to "
            "the code (tests/mutants)"
        )


def _candidates(rule: str, tree: ast.FunctionDef) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        match node:
            case ast.Expr() | ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Delete() if rule == "drop":
                yield node
            case ast.For(iter=loop) | ast.comprehension(iter=loop) if rule == "skip_all":
                yield loop
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test) if rule in ("never", "always"):
                yield test
            case ast.BoolOp(values=tests) | ast.comprehension(ifs=tests) if rule in ("never", "always"):
                yield from tests
            case _:
                pass


def _words(node: ast.AST) -> set[str]:
    words: set[str] = set()
    for each in ast.walk(node):
        match each:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.keyword(arg=str(word)):
                words.add(word)
            case ast.Compare(ops=operators):
                words |= {OPERATORS[type(one)] for one in operators if type(one) in OPERATORS}
            case _:
                pass
    return words


def _broken(change: Change, node: ast.AST) -> ast.AST:
    text, holds = ast.unparse(node), f"(({change.when}) and {COUNT}())" if change.when else f"{COUNT}()"
    match change.rule:
        case "drop":
            return ast.parse(f"if not {holds}:\n{textwrap.indent(text, '    ')}").body[0]
        case "never":
            text = f"({text}) and not {holds}"
        case "always":
            text = f"({text}) or {holds}"
        case _:
            text = f"[one for one in {text} if not {holds}]"
    return ast.parse(text, mode="eval").body


class _Replace(ast.NodeTransformer):
    """`by` {id of a node: the node in its place}"""

    def __init__(self, by: dict[int, ast.AST]) -> None:
        self._by = by

    def visit(self, node: ast.AST) -> Any:
        return self._by.get(id(node)) or self.generic_visit(node)
