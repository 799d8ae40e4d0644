"""The settings of log aggregation. Defaults are those of yarn-default.xml of Hadoop 3.4.1."""

from __future__ import annotations

from yarn.configuration import Configuration
from yarn.settings.kinds import BoolSetting, ChoiceSetting, ListSetting, TextSetting, TimeSetting

TFILE = "TFile"
"""The file format of Hadoop's default, which all its clients read."""

AGGREGATION_ENABLED = BoolSetting(
    "yarn.log-aggregation-enable",
    "false",
    "whether logs of ended applications are collected in the remote log directory",
)
REMOTE_APP_LOG_DIR = TextSetting(
    "yarn.nodemanager.remote-app-log-dir", "/tmp/logs", "the remote log directory; a local one here"
)
TFILE_REMOTE_APP_LOG_DIR = TextSetting(
    "yarn.log-aggregation.TFile.remote-app-log-dir",
    None,
    "the same for the format TFile",
    fallback=REMOTE_APP_LOG_DIR,
)
REMOTE_APP_LOG_DIR_SUFFIX = TextSetting(
    "yarn.nodemanager.remote-app-log-dir-suffix", "logs", "part of the names of users' log directories"
)
TFILE_REMOTE_APP_LOG_DIR_SUFFIX = TextSetting(
    "yarn.log-aggregation.TFile.remote-app-log-dir-suffix", None, "the whole suffix for the format TFile"
)
STATUS_TIMEOUT = TimeSetting(
    "yarn.log-aggregation-status.time-out.ms",
    "600000",
    "how long after an application's end the RM waits for a node to report that its logs are aggregated",
    minimum=1,
    paced=False,
)
FILE_FORMATS = ListSetting(
    "yarn.log-aggregation.file-formats", TFILE, f"formats of aggregated logs; the first must be {TFILE}"
)
COMPRESSION_TYPE = ChoiceSetting(
    "yarn.nodemanager.log-aggregation.compression-type",
    "none",
    "how aggregated logs are compressed",
    choices=("none", "lzo", "gz"),
)


def remote_log_dir(conf: Configuration) -> str:
    """The remote log directory: a path, or the URI of another file system."""
    text = TFILE_REMOTE_APP_LOG_DIR.of(conf)
    return text.removeprefix("file:").removeprefix("//") if text.startswith("file:") else text


def log_dir_suffix(conf: Configuration) -> str:
    """The suffix of users' directories: Hadoop adds the format's name to the general one."""
    own = TFILE_REMOTE_APP_LOG_DIR_SUFFIX.maybe_of(conf)
    return own or f"{REMOTE_APP_LOG_DIR_SUFFIX.of(conf)}-{TFILE.lower()}"
