"""Text that goes into a container's launch script: what bash may replace in it, and what it must not.

Hadoop writes `export NAME="value"` with the value as it came. Programs rely on what bash then does with references
(`$HADOOP_HOME`, `{{PWD}}`) and with quotes, so both keep their meaning here. But bash also runs commands that it finds
in a value (backquotes, `$(...)`, what follows a `"` that ends the quotes), and values often come from somebody other
than the author of the command: a job's name, a setting. So a value is read here as bash reads a word that begins
between double quotes, and written again as literal text and references, with everything else escaped.

    value                   written                         in the container
    {{PWD}}/lib:$CP         "${PWD}/lib:${CP}"              /nm/c_1/lib:...
    it's "quoted"           "it's quoted"                   it's quoted
    `id` $(id) ";id;"       "\\`id\\` \\$(id) ;id;"        `id` $(id) ;id;

Refused: to single-quote every value (references would be lost), and to refuse values with commands in them (a value
that holds a backquote is usually text).
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
    # ${NAME}, ${#NAME}, and ${NAME:-default} or ${NAME+instead} where that is plain text. No other form is taken:
    # subscripts, ${NAME@P} and nested text can run commands.
    r"|\{\#?(?P<braced>[A-Za-z_][A-Za-z0-9_]*)(?:(?<!#):?[-+][^$`\"'\\{}]*)?\})"
)


class Reference(Struct, frozen=True):
    """A reference to a variable as bash writes it: `${HOME}`. `name` is empty for a special parameter (`$$`)."""

    text: str
    name: str


def quote(text: str) -> str:
    """`text` as one word between double quotes, in which bash replaces nothing."""
    return f'"{literal(text)}"'


def quote_value(value: str) -> str:
    """An environment value as one word between double quotes, in which bash replaces references and nothing else."""
    if _PLAIN.fullmatch(value):
        return f'"{value}"'
    return '"' + "".join(literal(part) if isinstance(part, str) else part.text for part in parts_of(value)) + '"'


def quote_in_command(path: str) -> str:
    """A path for a container's command, which bash reads twice: between double quotes, then as a command."""
    return literal(_UNSAFE_IN_WORD.sub(r"\\\g<0>", path))


def literal(text: str) -> str:
    """The environment value that stands for exactly this text; between double quotes bash reads it so as well."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def references(value: str) -> list[str]:
    """The names of the variables that an environment value refers to, each once."""
    if "$" not in value:
        return []
    return list(dict.fromkeys(part.name for part in parts_of(value) if isinstance(part, Reference) and part.name))


def parts_of(value: str) -> Iterator[str | Reference]:
    """An environment value as literal text and references, in order.

    A `"` ends the double quotes around the value, or begins new ones; outside of them a single-quoted part is literal;
    a backslash makes the next character literal (ContainerLaunch.getEnvDependencies reads values the same way).
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
            # From here to the next character that may mean something.
            end = _PLAIN.match(value, index + 1).end()  # type: ignore[union-attr]
            yield value[index:end]
            index = end


def _escaped(pair: str, *, quoted: bool) -> str:
    """What bash makes of a backslash and the character after it; at the end of a value there is none."""
    if len(pair) == 2 and pair[1] == "\n":
        return ""
    if len(pair) == 2 and (not quoted or pair[1] in _ESCAPED_IN_QUOTES):
        return pair[1]
    return pair


def _reference(match: re.Match[str]) -> Reference:
    """`$NAME` gets braces: text that a quote kept apart from it may follow."""
    name = match["plain"]
    return Reference(f"${{{name}}}", name) if name else Reference(match[0], match["braced"] or "")


def _end_of_literal(value: str, start: int) -> int:
    end = value.find("'", start)
    return len(value) if end < 0 else end
