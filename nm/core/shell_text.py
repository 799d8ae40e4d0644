"""Quotes text for a container's launch script, so that bash expands variables in it and runs no commands.

Hadoop writes `export NAME="value"` with the value unchanged. Programs rely on how bash then expands references
(`$HADOOP_HOME`, `{{PWD}}`) and removes quotes, so both keep their meaning here. But bash also runs commands that it
finds in a value (backquotes, `$(...)`, text after a `"` that ends the quotes), and a value often does not come from the
author of the command: it may be a job's name or a setting. So this module parses a value as bash parses a word that
starts within double quotes, and writes it as literal text and references, with everything else escaped.

    value                   written                         in the container
    {{PWD}}/lib:$CP         "${PWD}/lib:${CP}"              /nm/c_1/lib:...
    it's "quoted"           "it's quoted"                   it's quoted
    `id` $(id) ";id;"       "\\`id\\` \\$(id) ;id;"        `id` $(id) ;id;

Two alternatives were rejected: single-quoting every value, which would lose the references, and refusing values with
commands in them, because a value with a backquote is usually text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

_SPECIAL = re.compile(r'["\\$`]')
_PLAIN = re.compile(r"""[^"'\\$`]*""")
_ESCAPED_IN_QUOTES = '"\\$`\n'
_UNSAFE_IN_WORD = re.compile(r"[^A-Za-z0-9_@%+=:,./-]")
_REFERENCE = re.compile(
    # $NAME, or one of the special parameters: $1, $$ and so on
    r"\$(?:(?P<plain>[A-Za-z_][A-Za-z0-9_]*)|[0-9$?#@*!-]"
    # ${NAME}, ${#NAME}, and ${NAME:-default} or ${NAME+instead} with plain text. No other form is accepted:
    # subscripts, ${NAME@P} and nested text can run commands.
    r"|\{\#?(?P<braced>[A-Za-z_][A-Za-z0-9_]*)(?:(?<!#):?[-+][^$`\"'\\{}]*)?\})"
)


class Reference(Struct, frozen=True):
    """A reference to a variable as bash writes it: `${HOME}`. `name` is empty for a special parameter (`$$`)."""

    text: str
    name: str


def quote(text: str) -> str:
    """Quote `text` as one double-quoted word, in which bash expands nothing."""
    return f'"{literal(text)}"'


def quote_value(value: str) -> str:
    """Quote an environment value as one double-quoted word, in which bash expands references and nothing else."""
    if _PLAIN.fullmatch(value):
        return f'"{value}"'
    return '"' + "".join(literal(part) if isinstance(part, str) else part.text for part in parts_of(value)) + '"'


def quote_in_command(path: str) -> str:
    """Quote a path for a container's command, which bash reads twice: between double quotes, then as a command."""
    return literal(_UNSAFE_IN_WORD.sub(r"\\\g<0>", path))


def literal(text: str) -> str:
    """The environment value that expands to exactly this text, also between double quotes."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def references(value: str) -> list[str]:
    """The names of the variables that an environment value refers to, each once."""
    if "$" not in value:
        return []
    return list(dict.fromkeys(part.name for part in parts_of(value) if isinstance(part, Reference) and part.name))


def parts_of(value: str) -> Iterator[str | Reference]:
    """Split an environment value into literal text and references, in order.

    A `"` ends the double quotes around the value, or starts new ones. Outside of double quotes, a single-quoted part is
    literal. A backslash makes the next character literal. ContainerLaunch.getEnvDependencies reads values the same way.
    """
    quoted, index = True, 0
    while index < len(value):
        letter = value[index]
        reference = _REFERENCE.match(value, index) if letter == "$" else None
        if letter == '"':
            quoted = not quoted
            index += 1
        elif letter == "'" and not quoted:
            end = _end_of_literal(value, index + 1)
            yield value[index + 1 : end]
            index = end + 1
        elif letter == "\\":
            yield _escaped(value[index : index + 2], quoted=quoted)
            index += 2
        elif reference is not None:
            yield _reference(reference)
            index = reference.end()
        else:
            # Literal text up to the next special character.
            plain = _PLAIN.match(value, index + 1)
            assert plain is not None, "the pattern matches the empty text"
            end = plain.end()
            yield value[index:end]
            index = end


def _escaped(pair: str, *, quoted: bool) -> str:
    """The text of a backslash and the character after it, which is missing at the end of a value."""
    if len(pair) == 2 and pair[1] == "\n":
        return ""
    if len(pair) == 2 and (not quoted or pair[1] in _ESCAPED_IN_QUOTES):
        return pair[1]
    return pair


def _reference(match: re.Match[str]) -> Reference:
    """Write the reference with braces, because text that was separated from it by a quote may follow."""
    name = match["plain"]
    return Reference(f"${{{name}}}", name) if name else Reference(match[0], match["braced"] or "")


def _end_of_literal(value: str, start: int) -> int:
    end = value.find("'", start)
    return len(value) if end < 0 else end
