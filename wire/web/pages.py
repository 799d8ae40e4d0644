"""The web pages: an HTML file and what it loads, from the folder `assets`. They are read once, when a server starts.

The pages draw what the REST API answers. They work without a network, and a policy has browsers load nothing from
elsewhere and run no script but these files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template

from wire.web.application import HTML_UTF8, Handler, TextAnswer, WebRoute
from wire.web.request import WebRequest
from wire.web.site import ANYTHING

STATIC = "/static"
CONTENT_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
HEADERS = (
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-cache"),
)


def daemon_page_rows(
    daemon: str, folder: str, home: str, paths: Iterable[str], *, cluster: str = ""
) -> Iterator[WebRoute]:
    """The routes of a daemon's pages.

    `folder`: where the scripts of the daemon's views are. `home`: the path below which the REST API is listed.
    `cluster`: the cluster's name, which is on each page.
    """
    return page_rows(
        "daemon.html", {"daemon": daemon, "folder": folder, "home": home, "cluster": escape(cluster)}, paths
    )


def page_rows(name: str, values: Mapping[str, str], paths: Iterable[str]) -> Iterator[WebRoute]:
    """The routes of pages: the same HTML at each of `paths`, and all that it loads.

    `name`: the file of the HTML. `values`: {placeholder in it: value}.
    """
    root = files("wire.web") / "assets"
    page = Template((root / name).read_text(encoding="utf-8"))
    html = _answering(TextAnswer(page.substitute(values), HTML_UTF8, headers=HEADERS))
    for path in paths:
        yield WebRoute("GET", path, html, ANYTHING)
    for path, asset in _below(root, STATIC):
        kind = CONTENT_TYPES.get(path[path.rindex(".") :])
        if kind is not None:
            answer = TextAnswer(asset.read_bytes(), f"{kind};charset=utf-8", headers=HEADERS)
            yield WebRoute("GET", path, _answering(answer), (kind,))


def _below(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _below(entry, f"{path}/{entry.name}")
        elif "." in entry.name:
            yield f"{path}/{entry.name}", entry


def _answering(answer: TextAnswer) -> Handler:
    async def handle(request: WebRequest) -> TextAnswer:
        return answer

    return handle
