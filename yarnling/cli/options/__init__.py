"""The options of commands: a record for each command with many, whose fields are its arguments and options.

    class StepOptions(Struct, frozen=True, kw_only=True):
        port: Annotated[int, typer.Option(metavar="PORT", help="Port of --web.", min=0)] = 0

    @simulate_app.command()
    @with_options
    def step(options: StepOptions) -> None:
        \"\"\"Step through a small run.\"\"\"

The modules here are imported for each command line, so they import only what is quick to import.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature
from typing import Any, TypeVar, get_type_hints

from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields

Options = TypeVar("Options", bound=Struct)


def with_options(command: Callable[[Options], None]) -> Callable[..., None]:
    """The command as Typer reads it: with a parameter for each field of the record that it takes."""
    record = get_type_hints(command)["options"]
    hints = get_type_hints(record, include_extras=True)

    @wraps(command)
    def with_parameters(**given: Any) -> None:
        command(record(**given))

    parameters = [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=_default(field), annotation=hints[field.name])
        for field in fields(record)
    ]
    with_parameters.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    with_parameters.__annotations__ = hints
    return with_parameters


def _default(field: FieldInfo) -> Any:
    if field.default_factory is not NODEFAULT:
        return field.default_factory()
    return Parameter.empty if field.default is NODEFAULT else field.default
