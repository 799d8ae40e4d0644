"""The configuration keys that yarnling reads, each with its default, kind, bounds and meaning.

    from yarn.settings import nodemanager
    nodemanager.LOCAL_DIRS.of(conf)

Every value is read through its setting, so that its default is in one place and `yarnling config` can list what is
read. To add a key, add a setting to the module for its daemon.
"""

from yarn.settings.pace import FAST_TIME_FACTOR, scaled
from yarn.settings.registry import BY_KEY, check_settings, defaults, setting_of, with_further

__all__ = [
    "BY_KEY",
    "FAST_TIME_FACTOR",
    "check_settings",
    "defaults",
    "scaled",
    "setting_of",
    "with_further",
]
