"""The three scripts between a NodeManager and a container's command, and the environment that they set up.

    default_container_executor.sh           the NM's child: waits, writes the exit code to a file
      default_container_executor_session.sh   writes its process id to a file, becomes a session leader
        launch_container.sh                     exports variables, makes links, then becomes bash -c "<command>"

A container's command is shell text of the user and is not escaped. The script contains it unchanged between double
quotes: bash expands variables in it, and `bash -c` then runs the result. AMs written for YARN rely on that
("{{JAVA_HOME}}/bin/java"). Everything else is data and cannot run a command: paths, link names and the node's variables
are quoted, and values set by an AM can only refer to variables (nm.core.shell_text).

The rules are those of Hadoop's ContainerLaunch and ContainerExecutor.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from enum import Enum

from msgspec import Struct, field

from nm.core.shell_text import literal, quote, quote_in_command, quote_value, references
from yarn.ids import ContainerId, NodeId

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
AUXILIARY_SERVICE_PREFIX = "NM_AUX_SERVICE_"
"""With a service's name: the variable that has its data in base 64 (AuxiliaryServiceHelper)."""
JVM_PID = "JVM_PID"
"""The variable that contains the process id of the script. The container's command keeps this process id."""
JAVA_17_OPTIONS = (
    "--add-opens=java.base/java.lang=ALL-UNNAMED "
    "--add-exports=java.base/sun.net.dns=ALL-UNNAMED "
    "--add-exports=java.base/sun.net.util=ALL-UNNAMED"
)
"""The replacement for `<ADD_OPENS>` from Java 17 on: Java 17 closes these packages to reflection."""
WRITE_CGROUP_FAILED = 27
"""The exit code if the process cannot enter its cgroup, as in Hadoop's container-executor."""

_ADMIN_VARIABLE = re.compile(r"(?:^|,)\s*([A-Za-z_][A-Za-z0-9_]*)=([^,]*)")
_REFERENCE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


class DebugFiles(Enum):
    """The writer of the copy of the launch script and of the listing of the work directory (nm.launcher.files)."""

    NOBODY = 0
    SCRIPT = 1
    NODE_MANAGER = 2


class Directories(Struct, frozen=True):
    """The directories of one launch: its work and log directory, and the directories on all good disks.

    The container gets `application_dirs`, `user_dirs` (each ends in a slash) and `log_dirs` in its environment.
    """

    work_dir: str
    log_dir: str
    application_dirs: tuple[str, ...]
    user_dirs: tuple[str, ...]
    log_dirs: tuple[str, ...]


class NodeEnvironment(Struct, frozen=True):
    """A node's additions to the environment of its containers.

    `inherited` is {variable: value} of the NM's own variables that are whitelisted. `admin_env` is
    yarn.nodemanager.admin-env; `nm_variables` are all variables of the NM, which replace `$X` in it. `java_version` is
    the major version of the node's Java, 0 if the node has none. `auxiliary_services` is {name: data that
    startContainers returns for it}.
    """

    node_id: NodeId
    http_port: int
    home: str
    inherited: Mapping[str, str]
    admin_env: str
    nm_variables: Mapping[str, str]
    java_version: int = 0
    auxiliary_services: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


class Environment(Struct, frozen=True):
    """A container's variables, in the order of their exports: first `of_node`, then `other`.

    Values in `of_node` are literal; values in `other` may refer to variables. Until the script exports the variables,
    it runs with `of_node` alone, because bash acts on some variables (BASH_ENV).
    """

    of_node: dict[str, str]
    other: dict[str, str]


def expand_command(command: str, log_dir: str, java_version: int) -> str:
    """Replace `<LOG_DIR>`, `<CPS>`, `<ADD_OPENS>` and `{{VAR}}` in a command (ContainerLaunch.expandEnvironment)."""
    return _expand(command, quote_in_command(log_dir), java_version)


def expand_value(value: str, log_dir: str, java_version: int) -> str:
    """Replace `<LOG_DIR>`, `<CPS>`, `<ADD_OPENS>` and `{{VAR}}` in the value of an environment variable."""
    return _expand(value, literal(log_dir), java_version)


def environment(
    container_id: ContainerId,
    user: str,
    given: Mapping[str, str],
    *,
    node: NodeEnvironment,
    directories: Directories,
    localization_counters: str,
) -> Environment:
    """The variables of a container: those that the AM sets, and those of the node, which an AM cannot change."""
    other = dict(given)
    for name, value in _ADMIN_VARIABLE.findall(node.admin_env):
        text = _REFERENCE.sub(lambda match: other.get(match[1], node.nm_variables.get(match[1], "")), value)
        other[name] = f"{other[name]}:{text}" if name in other else text
    other = {name: expand_value(value, directories.log_dir, node.java_version) for name, value in other.items()}
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
        **{
            f"{AUXILIARY_SERVICE_PREFIX}{name}": base64.b64encode(data).decode()
            for name, data in node.auxiliary_services.items()
        },
    }
    of_others = {name: value for name, value in other.items() if name not in of_node and name != JVM_PID}
    return Environment(of_node, of_others)


def launch_script(
    variables: Environment,
    commands: Sequence[str],
    *,
    inherited: Mapping[str, str],
    links: Mapping[str, str],
    log_dir: str,
    debug: DebugFiles,
    java_version: int,
) -> str:
    """The text of launch_container.sh."""
    own = {**variables.other, **variables.of_node}
    command = " ".join(expand_command(command, log_dir, java_version) for command in commands)
    lines = [
        "#!/bin/bash",
        "",
        "set -o pipefail -e",
        f"export PRELAUNCH_OUT={quote(f'{log_dir}/{PRELAUNCH_OUT}')}",
        'exec >"${PRELAUNCH_OUT}"',
        f"export PRELAUNCH_ERR={quote(f'{log_dir}/{PRELAUNCH_ERR}')}",
        'exec 2>"${PRELAUNCH_ERR}"',
        'echo "Setting up env variables"',
        *(f"export {name}=${{{name}:-{quote(value)}}}" for name, value in inherited.items() if name not in own),
        *(f"export {name}={quote(value)}" for name, value in variables.of_node.items()),
        f'export {JVM_PID}="$$"',
        *(f"export {name}={quote_value(variables.other[name])}" for name in _in_order_of_reference(variables.other)),
        'echo "Setting up job resources"',
        *_link_lines(links),
        *(['echo "Copying debugging information"'] if debug is not DebugFiles.NOBODY else ()),
        *(_debug_lines(log_dir) if debug is DebugFiles.SCRIPT else ()),
        'echo "Launching container"',
        f'exec /bin/bash -c "{command}"',
    ]
    return "\n".join(lines) + "\n"


def wrapper_script(session: str, exit_code_file: str) -> str:
    """The text of default_container_executor.sh.

    If a signal ends the container, bash prints the script's second line.
    """
    return f"#!/bin/bash\n/bin/bash {quote(session)}\nrc=$?\necho $rc > {quote(exit_code_file)}\nexit $rc\n"


def session_script(script: str, pid_file: str, cgroup_procs: str = "") -> str:
    """The text of default_container_executor_session.sh. The pid file is complete once its line ends.

    Hadoop instead moves the finished pid file and exit code file into place, running `mv` for each. `cgroup_procs` is
    the cgroup file to which the script writes its process id before the container's command runs.
    """
    enter = f"echo $$ > {quote(cgroup_procs)} || exit {WRITE_CGROUP_FAILED}\n" if cgroup_procs else ""
    return f"#!/bin/bash\n\n{enter}echo $$ > {quote(pid_file)}\nexec setsid /bin/bash {quote(script)}\n"


def _expand(text: str, log_dir: str, java_version: int) -> str:
    text = text.replace("<CPS>", ":").replace("<ADD_OPENS>", JAVA_17_OPTIONS if java_version >= 17 else "")
    # Replace the log directory last, so that a placeholder in the directory's name is not expanded.
    return text.replace("{{", "$").replace("}}", "").replace("<LOG_DIR>", log_dir)


def _link_lines(links: Mapping[str, str]) -> list[str]:
    lines: list[str] = []
    for link, target in links.items():
        parent = link.rpartition("/")[0]
        if parent:
            lines.append(f"mkdir -p -- {quote(parent)}")
        lines.append(f"ln -sf -- {quote(target)} {quote(link)}")
    return lines


def _debug_lines(log_dir: str) -> list[str]:
    info, copy = quote(f"{log_dir}/{DIRECTORY_INFO}"), quote(f"{log_dir}/{SCRIPT}")
    lines = [
        f'cp "{SCRIPT}" {copy}',
        f"chmod 640 {copy}",
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
    """The variable names in an order in which each follows those that its value refers to.

    Within a cycle of references, the given order is kept.
    """
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
