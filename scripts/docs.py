"""Build the site of the documentation: MkDocs with the pages of docs/, README.md and its neighbours, and their files.

MkDocs takes pages from one directory, which must not contain its configuration. So pages and the files that they link
to are copied into build/pages, with the paths that they have in the repository.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "build" / "pages"
STEP_PAGES = ROOT / "build" / "step-pages"
"""The folder into which scripts/step_pages.py writes the pages of docs/lessons."""
COPIED = ("*.md", "LICENSE", "docs/**/*", "examples/**/*", "tests/conformance/README.md")
"""The files of the site, as patterns below the root. Pages among them must be in the navigation of mkdocs.yml."""


def main() -> int:
    shutil.rmtree(PAGES, ignore_errors=True)
    for pattern in COPIED:
        for path in ROOT.glob(pattern):
            if path.is_file() and "__pycache__" not in path.parts:
                copy = PAGES / path.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
    for path in STEP_PAGES.glob("*.html"):
        shutil.copyfile(path, PAGES / "docs" / "lessons" / path.name)
    # Material announces its end of life in each build (docs/design/packaging.md).
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    mkdocs = Path(sys.executable).with_name("mkdocs")
    command = (mkdocs, "build", "--strict", "--clean", "--config-file", ROOT / "mkdocs.yml")
    ended = subprocess.run([*map(str, command), *sys.argv[1:]], check=False, env=environment)
    if ended.returncode == 0:
        print(f"built {(ROOT / 'build' / 'site' / 'index.html').relative_to(ROOT)}")
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main())
