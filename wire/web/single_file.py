"""A web page with all that it loads in one file, which needs neither a server nor a network.

Scripts are modules in `data:` URLs, named in an import map; data is compressed, in base64, so that no text in it can
end the element that it is in. The page's policy allows nothing but what is in the file.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable

STATIC = "/static/"
_IMPORT = re.compile(rf'(\bfrom ")({STATIC}[\w./-]+)(")')
_STYLE = re.compile(rf'<link rel="stylesheet" href="({STATIC}[\w./-]+)">')
_SCRIPT = re.compile(rf'<script type="module" src="({STATIC}[\w./-]+)"></script>')
_ICON = re.compile(r'<link rel="icon"[^>]*>\n?')
_TITLE = re.compile(r"<title>.*?</title>")
_NAMED = "yarnling"
"""Modules in `data:` URLs cannot import paths, so paths become names that begin so."""
POLICY = (
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    "script-src 'unsafe-inline' data:; style-src 'unsafe-inline'\">"
)


def page_in_a_file(name: str, title: str, data: object, replaced: Mapping[str, str]) -> str:
    """The page of the file `name` of the assets.

    `data`: JSON for its scripts, in the element `run`. `replaced`: {path of a script: path of the one in its place}.
    """
    assets = files("wire.web") / "assets"
    page = _ICON.sub("", (assets / name).read_text(encoding="utf-8"))
    page = _STYLE.sub(lambda found: f"<style>\n{_text(assets, found[1])}</style>", page)
    main = _SCRIPT.search(page)
    assert main is not None, f"{name} loads a module"
    packed = base64.b64encode(gzip.compress(json.dumps(data, separators=(",", ":")).encode(), mtime=0)).decode()
    imports = json.dumps({"imports": _modules(assets, main[1], replaced)}, separators=(",", ":"))
    scripts = (
        f'<script type="importmap">{imports}</script>\n'
        f'<script type="application/gzip" id="run">{packed}</script>\n'
        f'<script type="module">import "{_named(main[1])}";</script>'
    )
    page = _TITLE.sub(lambda _: f"{POLICY}\n<title>{html.escape(title)}</title>", page)
    return page.replace(main[0], scripts)


def _modules(assets: Traversable, main: str, replaced: Mapping[str, str]) -> dict[str, str]:
    """{name of a module: its URL} of the module and of all that it imports."""
    found: dict[str, str] = {}
    waiting = [main]
    while waiting:
        path = waiting.pop()
        if _named(path) in found:
            continue
        text = _text(assets, replaced.get(path, path))
        waiting += [match[2] for match in _IMPORT.finditer(text)]
        text = _IMPORT.sub(lambda match: f"{match[1]}{_named(match[2])}{match[3]}", text)
        found[_named(path)] = f"data:text/javascript;base64,{base64.b64encode(text.encode()).decode()}"
    return found


def _named(path: str) -> str:
    return f"{_NAMED}/{path.removeprefix(STATIC)}"


def _text(assets: Traversable, path: str) -> str:
    return assets.joinpath(*path.removeprefix(STATIC).split("/")).read_text(encoding="utf-8")
