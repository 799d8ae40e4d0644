"""The texts in a container's diagnostics, which AMs and people read. The texts equal those of Hadoop's NM.

Each text gets a time stamp and is appended to the earlier texts; above a size limit, the oldest characters are dropped.
The text of a failure appears twice, because ContainerImpl appends it when the event arrives and again in the transition
that ends the container. Tools read these diagnostics, so this is kept.
"""

from __future__ import annotations

from nm.core.events import ContainerExited, ErrorLogs
from yarn.ids import ContainerId

KILLED_EXTERNALLY = "Killed by external signal\n"
KILLED_BEFORE_LAUNCH = "Container is killed before being launched.\n"
ATTEMPT_MESSAGE = "Diagnostic message from attempt : \n"
TERMINATED_BEFORE_LAUNCH = "Container terminated before launch."
KILLED_BY_APPLICATION_MASTER = "Container killed by the ApplicationMaster."
KILLED_BY_RESOURCE_MANAGER = "Container Killed by ResourceManager"
APPLICATION_NOT_RUNNING = "Application no longer running.\n"
APPLICATION_FINISHED = "Application killed by ResourceManager"
APPLICATION_SHUT_DOWN = "Application killed on shutdown"
RECOVERED_AS_KILLED = "Container recovered as killed.\n"

_DAYS_OF_400_YEARS = 146_097
_DAYS_TO_EPOCH = 719_468


def time_stamp(wall_ms: int, utc_offset_ms: int = 0) -> str:
    """Format a wall-clock time as `[yyyy-MM-dd HH:mm:ss.SSS]`, in the time zone `utc_offset_ms` east of UTC."""
    days, ms_of_day = divmod(wall_ms + utc_offset_ms, 86_400_000)
    year, month, day = _civil(days)
    minutes, ms = divmod(ms_of_day, 60_000)
    hour, minute = divmod(minutes, 60)
    second, ms = divmod(ms, 1000)
    return f"[{year:04d}-{month:02d}-{day:02d} {hour:02d}:{minute:02d}:{second:02d}.{ms:03d}]"


def launch_exception(container_id: ContainerId, exited: ContainerExited) -> str:
    """The first text about a process that failed (DefaultContainerExecutor.launchContainer)."""
    text = f"Exception from container-launch.\nContainer id: {container_id}\nExit code: {exited.exit_code}\n"
    if exited.wrapper_error:
        text += f"Exception message: {exited.wrapper_error}\n"
    if exited.wrapper_output:
        text += f"Shell output: {exited.wrapper_output}\n"
    return text


def killed_on_request(exit_code: int) -> str:
    """The text about a process that was ended by SIGTERM or SIGKILL, or exited with code 143 or 137."""
    return f"Container killed on request. Exit code is {exit_code}"


def non_zero_exit(exit_code: int) -> str:
    """The first sentence of the second text about a process that failed; after SIGTERM or SIGKILL it
    is the whole text.
    """
    return f"Container exited with a non-zero exit code {exit_code}. "


def recovered_exit(exit_code: int) -> str:
    """The text about a process that an earlier NM had started, and that failed (RecoveredContainerLaunch)."""
    return f"Container exited with a non-zero exit code {exit_code}"


def failed_exit(exit_code: int, logs: ErrorLogs, tail_bytes: int) -> str:
    """The second text about a process that failed, with the last `tail_bytes` of its error logs (ContainerLaunch)."""
    text = non_zero_exit(exit_code)
    if logs.prelaunch_tail is not None:
        text += f"Error file: prelaunch.err.\nLast {tail_bytes} bytes of prelaunch.err :\n{logs.prelaunch_tail}"
    if logs.newest:
        if len(logs.names) > 1:
            text += f"Error files: {', '.join(logs.names)}.\n"
        text += f"Last {tail_bytes} bytes of {logs.newest} :\n{logs.newest_tail}\n"
    return text


def application_finished(reason: str) -> str:
    """The text about a container that was killed because its application ended."""
    return f"Container killed on application-finish event: {reason}"


def signal_sent(container_id: ContainerId, user: str, *, command: str, signal: str, pid: int, delivered: bool) -> str:
    """The text about a signal that a user requested."""
    result = "success" if delivered else "failed"
    return f"Sent signal {command} ({signal}) to pid {pid} as user {user} for container {container_id}, result={result}"


def _civil(days: int) -> tuple[int, int, int]:
    """(year, month, day) in the Gregorian calendar of the day `days` after 1970-01-01.

    The calculation uses eras of 400 years that start on 1 March, so that a leap day is the last day of its year.
    """
    era, day_of_era = divmod(days + _DAYS_TO_EPOCH, _DAYS_OF_400_YEARS)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    return era * 400 + year_of_era + (1 if month <= 2 else 0), month, day
