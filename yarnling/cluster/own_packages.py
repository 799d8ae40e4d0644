"""The installed packages: their version, and a check that none of another project is found instead of one of ours.

The entry points check this when yarnling is used, not when it is imported: pytest loads the plugin in every project.
"""

from __future__ import annotations

import importlib.util
import os.path

PACKAGES = ("yarn", "wire", "rm", "nm", "am")


class PackageShadowedError(ImportError):
    """A package of another project has the name of one of ours and comes first on sys.path."""


def version() -> str:
    """The version of the installed package; `0+unknown` if only its files are there."""
    from importlib import metadata

    try:
        return metadata.version("yarnling")
    except metadata.PackageNotFoundError:
        return "0+unknown"


def check_packages() -> None:
    """Raise PackageShadowedError, which names the path, if one of our packages is not ours."""
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    for name in PACKAGES:
        found = _location(name)
        if found and os.path.realpath(found) != os.path.join(home, name):
            raise PackageShadowedError(
                f"{found} is imported as `{name}` instead of yarnling's package in {home}: rename it, or take its "
                "directory off sys.path (`python -P` leaves out the current directory, pytest's "
                "`--import-mode=importlib` those of tests)",
                name=name,
                path=found,
            )


def _location(name: str) -> str | None:
    """The directory of a package, or the file of a module, that `import name` finds."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        return None
    return next(iter(spec.submodule_search_locations or ()), spec.origin)
