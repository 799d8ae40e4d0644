"""The three scripts between a NodeManager and a container's command, and the environment they set up.

    default_container_executor.sh           the NM's child: waits, writes the exit code to a file
      default_container_executor_session.sh   writes its process id to a file, becomes a session of its own
        launch_container.sh                     exports, links, debug copies, then becomes bash -c "<command>"

Nothing is escaped, on purpose: a value and the command stand between double quotes as they are, so `$X`, backticks and
quotes act when the script runs. AMs written for YARN count on it ("$PWD/lib", "{{JAVA_HOME}}/bin/java"). Whoever may
set a value may also set the command, so quoting would protect nobody. (ContainerLaunch, ContainerExecutor.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum

from yarn.ids import ContainerId, NodeId
from yarn.records import dataclass

SCRIPT = "launch_container.sh"
WRAPPER = "default_container_executor.sh"
SESSION = "default_container_executor_session.sh"
TOKENS = "container_tokens"
PRELAUNCH_OUT = "prelaunch.out"
PRELAUNCH_ERR = "prelaunch.err"
DIRECTORY_INFO = "directory.info"
LS_TITLE = "ls -l:"
TREE_TITLE = "find -L . -maxdepth 5 -ls:"
BROKEN_LINKS_TITLE = "broken symlinks(find -L . -maxdepth 5 -type l -ls):"
WRITE_CGROUP_FAILED = 27
"""What Hadoop's container-executor ends with."""

_ADMIN_VARIABLE = re.compile(r"(?:^|,)\s*([A-Za-z_][A-Za-z0-9_]*)=([^,]*)")
_REFERENCE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


class DebugFiles(Enum):
    """Who puts a copy of the script and a listing of the work directory beside the logs (nm.launcher.debug_files)."""

    NOBODY = 0
    SCRIPT = 1
    NODE_MANAGER = 2


@dataclass(frozen=True, slots=True)
class Directories:
    """Where one launch happens: the directories of all good disks, and the two that were chosen to work and log in.

    `application_dirs`, `user_dirs` (each with a slash at its end) and `log_dirs` are what the container is told.
    """

    work_dir: str
    log_dir: str
    application_dirs: tuple[str, ...]
    user_dirs: tuple[str, ...]
    log_dirs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeEnvironment:
    """What containers get of their node. `inherited` {variable: value}: the whitelisted ones that the NM has.

    `admin_env` is yarn.nodemanager.admin-env; `nm_variables` are the NM's own, for `$X` in it.
    """

    node_id: NodeId
    http_port: int
    home: str
    inherited: Mapping[str, str]
    admin_env: str
    nm_variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Environment:
    """A container's variables: `of_node` in the order in which they are exported, then the `other` ones."""

    of_node: dict[str, str]
    other: dict[str, str]

    def all(self) -> dict[str, str]:
        """What the wrapper runs in: values as written, nothing replaced."""
        return {**self.other, **self.of_node}


def expand(text: str, log_dir: str) -> str:
    """`<LOG_DIR>`, `<CPS>`, `<ADD_OPENS>` and `{{VAR}}` in a command or a value (ContainerLaunch.expandEnvironment)."""
    text = text.replace("<LOG_DIR>", log_dir).replace("<CPS>", ":").replace("<ADD_OPENS>", "")
    return text.replace("{{", "$").replace("}}", "")


def environment(
    container_id: ContainerId,
    user: str,
    given: Mapping[str, str],
    *,
    node: NodeEnvironment,
    directories: Directories,
    localization_counters: str,
) -> Environment:
    """The variables of a container: the AM's, over which the node's own ones cannot be changed."""
    other = dict(given)
    for name, value in _ADMIN_VARIABLE.findall(node.admin_env):
        text = _REFERENCE.sub(lambda match: other.get(match[1], node.nm_variables.get(match[1], "")), value)
        other[name] = f"{other[name]}:{text}" if name in other else text
    other = {name: expand(value, directories.log_dir) for name, value in other.items()}
    of_node = {
        "HADOOP_TOKEN_FILE_LOCATION": f"{directories.work_dir}/{TOKENS}",
        "CONTAINER_ID": str(container_id),
        "NM_PORT": str(node.node_id.port),
        "NM_HOST": node.node_id.host,
        "NM_HTTP_PORT": str(node.http_port),
        "LOCAL_DIRS": ",".join(directories.application_dirs),
        "LOCAL_USER_DIRS": ",".join(directories.user_dirs),
        "LOG_DIRS": ",".join(directories.log_dirs),
        "USER": user,
        "LOGNAME": user,
        "HOME": node.home,
        "PWD": directories.work_dir,
        "LOCALIZATION_COUNTERS": localization_counters,
        "JVM_PID": "$$",
    }
    return Environment(of_node, {name: value for name, value in other.items() if name not in of_node})


def launch_script(
    variables: Environment,
    commands: Sequence[str],
    *,
    inherited: Mapping[str, str],
    links: Mapping[str, str],
    log_dir: str,
    debug: DebugFiles,
) -> str:
    """The text of launch_container.sh."""
    own = {**variables.other, **variables.of_node}
    lines = [
        "#!/bin/bash",
        "",
        "set -o pipefail -e",
        f'export PRELAUNCH_OUT="{log_dir}/{PRELAUNCH_OUT}"',
        'exec >"${PRELAUNCH_OUT}"',
        f'export PRELAUNCH_ERR="{log_dir}/{PRELAUNCH_ERR}"',
        'exec 2>"${PRELAUNCH_ERR}"',
        'echo "Setting up env variables"',
        *(f'export {name}=${{{name}:-"{value}"}}' for name, value in inherited.items() if name not in own),
        *(f'export {name}="{value}"' for name, value in variables.of_node.items()),
        *(f'export {name}="{variables.other[name]}"' for name in _in_order_of_reference(variables.other)),
        'echo "Setting up job resources"',
        *_link_lines(links),
        *(['echo "Copying debugging information"'] if debug is not DebugFiles.NOBODY else ()),
        *(_debug_lines(log_dir) if debug is DebugFiles.SCRIPT else ()),
        'echo "Launching container"',
        f'exec /bin/bash -c "{" ".join(expand(command, log_dir) for command in commands)}"',
    ]
    return "\n".join(lines) + "\n"


def wrapper_script(session: str, exit_code_file: str) -> str:
    """default_container_executor.sh: its second line is the one that bash names when a signal ends the container."""
    return f'#!/bin/bash\n/bin/bash "{session}"\nrc=$?\necho $rc > "{exit_code_file}"\nexit $rc\n'


def session_script(script: str, pid_file: str, cgroup_procs: str = "") -> str:
    """default_container_executor_session.sh: the pid file is whole once it ends in a line's end.

    Hadoop renames this file and that of the exit code into place, with a program each.
    `cgroup_procs`: the file by which it goes into its cgroup before anything of the container runs.
    """
    enter = f'echo $$ > "{cgroup_procs}" || exit {WRITE_CGROUP_FAILED}\n' if cgroup_procs else ""
    return f'#!/bin/bash\n\n{enter}echo $$ > "{pid_file}"\nexec setsid /bin/bash "{script}"\n'


def _link_lines(links: Mapping[str, str]) -> list[str]:
    lines = []
    for link, target in links.items():
        parent = link.rpartition("/")[0]
        if parent:
            lines.append(f"mkdir -p {parent}")
        lines.append(f'ln -sf -- "{target}" "{link}"')
    return lines


def _debug_lines(log_dir: str) -> list[str]:
    info = f'"{log_dir}/{DIRECTORY_INFO}"'
    lines = [
        f'cp "{SCRIPT}" "{log_dir}/{SCRIPT}"',
        f'chmod 640 "{log_dir}/{SCRIPT}"',
        f'echo "{LS_TITLE}" 1>{info}',
        f"ls -l 1>>{info}",
    ]
    for title, command in (
        (TREE_TITLE, "find -L . -maxdepth 5 -ls"),
        (BROKEN_LINKS_TITLE, "find -L . -maxdepth 5 -type l -ls"),
    ):
        lines += [f'echo "{title}" 1>>{info}', f"{command} 1>>{info}"]
    return lines


def _in_order_of_reference(variables: Mapping[str, str]) -> list[str]:
    """The names, each after those that its value refers to; where they refer in a circle, as they come."""
    ordered: dict[str, None] = {}
    resolved: set[str] = set()

    def resolve(name: str) -> None:
        resolved.add(name)
        for other in references(variables[name]):
            if other in variables and other not in resolved:
                resolve(other)
        ordered[name] = None

    for name in variables:
        if name not in resolved:
            resolve(name)
    return list(ordered)


def references(value: str) -> list[str]:
    """The variables that bash would replace in `value`, which stands between double quotes.

    (ContainerLaunch.getEnvDependencies.) A quote in the value ends the quotes around it, so that a single-quoted part
    after it is literal; a backslash hides what follows.
    """
    found: dict[str, None] = {}
    quoted, index = True, 0
    while index < len(value):
        letter = value[index]
        if letter == '"':
            quoted = not quoted
        elif letter == "'" and not quoted:
            index = _end_of_literal(value, index + 1)
        elif letter == "\\":
            index += 1
        elif letter == "$":
            match = re.compile(r"\$(?:\{#?)?([A-Za-z_][A-Za-z0-9_]*)?").match(value, index)
            if match is not None and match[1]:
                found[match[1]] = None
                index = match.end() - 1
        index += 1
    return list(found)


def _end_of_literal(value: str, start: int) -> int:
    end = value.find("'", start)
    return len(value) if end < 0 else end
