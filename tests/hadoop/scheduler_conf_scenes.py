"""The scenes of tests.hadoop.scheduler_conf: configurations and what is asked under them."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec import Struct, field

PREFIX = "yarn.scheduler.capacity."
CONF = "/scheduler-conf"
JSON, XML, TEXT = "application/json", "application/xml", "text/plain"
QUEUES = {
    f"{PREFIX}maximum-am-resource-percent": "0.5",
    f"{PREFIX}root.queues": "default,dev,old",
    f"{PREFIX}root.acl_administer_queue": " ",
    f"{PREFIX}root.default.capacity": "50",
    f"{PREFIX}root.dev.capacity": "40",
    f"{PREFIX}root.dev.maximum-capacity": "80",
    f"{PREFIX}root.dev.acl_administer_queue": "dora",
    f"{PREFIX}root.dev.queues": "a,b",
    f"{PREFIX}root.dev.a.capacity": "60",
    f"{PREFIX}root.dev.b.capacity": "40",
    f"{PREFIX}root.old.capacity": "10",
    f"{PREFIX}root.old.state": "STOPPED",
}
STORE_CLASS = "yarn.scheduler.configuration.store.class"
POLICY = "yarn.scheduler.configuration.mutation.acl-policy.class"
QUEUE_ADMINS = (
    "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.conf.QueueAdminConfigurationMutationACLPolicy"
)


class Request(Struct, frozen=True):
    """A request below /ws/v1/cluster. `user` "": the query names none."""

    method: str
    path: str
    data: str | None = None
    sent_type: str = JSON
    accept: str = ""
    user: str = "admin"

    @property
    def target(self) -> str:
        return f"/ws/v1/cluster{self.path}" + (f"?user.name={self.user}" if self.user else "")

    @property
    def headers(self) -> dict[str, str]:
        accept = {"Accept": self.accept} if self.accept else {}
        kind = {"Content-Type": self.sent_type} if self.data is not None and self.sent_type else {}
        return {**accept, **kind}

    def __str__(self) -> str:
        accept = f" Accept: {self.accept}" if self.accept else ""
        kind = f" {self.sent_type or '(no type)'}" if self.data is not None else ""
        return f"{self.method} {self.target}{accept}{kind}"


class Command(Struct, frozen=True):
    """A command of Hadoop's."""

    words: tuple[str, ...]
    main: str = "SchedConfCLI"
    user: str = "admin"

    def __str__(self) -> str:
        return f"{self.main} {' '.join(self.words)}"


class Restart(Struct, frozen=True):
    """The ResourceManager ends and is started again."""


class Files(Struct, frozen=True):
    """A look at the directory of the store."""


Step = Request | Command | Restart | Files


class Scene(Struct, frozen=True):
    """A configuration and what is asked under it."""

    name: str
    settings: dict[str, str]
    steps: tuple[Step, ...]
    queues: dict[str, str] = field(default_factory=lambda: QUEUES)

    def site(self, store: Path) -> dict[str, str]:
        """The settings of yarn-site.xml, with the directory of the store."""
        return {**self.settings, "yarn.scheduler.configuration.fs.path": str(store)}


def put(body: object, **options: str) -> Request:
    """A change; `body` is JSON unless it is text."""
    return Request("PUT", CONF, body if isinstance(body, str) else json.dumps(body), **options)


def put_xml(inner: str, **options: str) -> Request:
    return put(f"<sched-conf>{inner}</sched-conf>", **{"sent_type": XML, **options})


def validate(body: object, **options: str) -> Request:
    return Request("POST", f"{CONF}/validate", json.dumps(body), **options)


def queue(name: str | None, **params: str | None) -> dict[str, object]:
    """An add-queue or update-queue; `_` in a parameter's name stands for `-`."""
    entries = [{"key": key.replace("_", "-"), "value": value} for key, value in params.items()]
    named = {} if name is None else {"queue-name": name}
    return {**named, "params": {"entry": entries}}


def xml_queue(kind: str, name: str, **params: str) -> str:
    entries = "".join(f"<entry><key>{key}</key><value>{value}</value></entry>" for key, value in params.items())
    return f"<{kind}><queue-name>{name}</queue-name><params>{entries}</params></{kind}>"


def glob(**values: str | None) -> dict[str, object]:
    return {
        "global-updates": {"entry": [{"key": PREFIX + key.replace("_", "-"), "value": values[key]} for key in values]}
    }


def update(*queues: dict[str, object]) -> dict[str, object]:
    return {"update-queue": list(queues)}


GET = Request("GET", CONF)
VERSION = Request("GET", f"{CONF}/version")
FORMAT = Request("GET", f"{CONF}/format")
SWAP = update(queue("root.default", capacity="40"), queue("root.dev", capacity="50"))
TOO_MUCH = update(queue("root.default", capacity="70"))
READS = (
    GET,
    Request("GET", CONF, accept=XML),
    Request("GET", CONF, user=""),
    VERSION,
    Request("GET", f"{CONF}/version", accept=XML),
)
CHANGES = (
    put(SWAP),
    GET,
    VERSION,
    put_xml(
        xml_queue("add-queue", "root.dev.c", capacity="20")
        + xml_queue("update-queue", "root.dev.a", capacity="40", **{"user-limit-factor": "2"}),
        accept=XML,
    ),
    put({"update-queue": queue("root.dev.a", user_limit_factor="3")}),
    put_xml(
        "<global-updates><entry><key>yarn.scheduler.capacity.maximum-applications</key><value>500</value></entry></global-updates>"
    ),
    put(glob(maximum_am_resource_percent="0.7")),
    put(update(queue("root.dev.a", user_limit_factor=""))),
    put(update(queue("root.dev.a", user_limit_factor=None))),
    put({"remove-queue": ["root.old"], **update(queue("root.default", capacity="50"))}),
    put_xml("<remove-queue>root.dev.c</remove-queue>" + xml_queue("update-queue", "root.dev.a", capacity="60")),
    put(update(queue("root.dev.c", state="STOPPED"))),
    put_xml("<remove-queue>root.dev.c</remove-queue>" + xml_queue("update-queue", "root.dev.a", capacity="60")),
    GET,
    VERSION,
)
REFUSALS = (
    put(TOO_MUCH),
    put_xml(xml_queue("update-queue", "root.default", capacity="70"), accept=XML),
    put(update(queue("root.default", capacity="abc"))),
    put(update(queue("root.default", capacity="-1"), queue("root.dev", capacity="91"))),
    put(update(queue("root.dev", maximum_capacity="20"))),
    put(update(queue("root.default", state="SLEEPING"))),
    put({"add-queue": [queue("root.default", capacity="10")]}),
    put({"add-queue": [queue("nodot", capacity="10")]}),
    put({"add-queue": [queue("root.default.x", capacity="100")]}),
    put({"remove-queue": ["root.nosuch"]}),
    put({"remove-queue": ["root"]}),
    put({"remove-queue": ["root.dev.a"], **update(queue("root.dev.b", capacity="100"))}),
    put({"add-queue": [queue(None, capacity="10")]}),
    put(glob(minimum_user_limit_percent="x")),
    put("not json"),
    put("<sched-conf><add-queue>", sent_type=XML),
    put("{}", sent_type=TEXT),
    put("{}", sent_type=""),
    put("[]"),
    GET,
    VERSION,
)
ODDITIES = (
    put({}),
    put_xml(""),
    put("", sent_type=JSON),
    put({"nosuch": 1}),
    put(update(queue("root.ghost", capacity="10"))),
    put(update(queue(None, capacity="10"))),
    put({"update-queue": {"queue-name": "root.default"}}),
    put({"add-queue": [queue("root.x.y", capacity="100")]}),
    put(glob(root_ghost_nothing="1")),
    GET,
    VERSION,
)
VALIDATIONS = (
    validate(SWAP),
    validate(SWAP, accept=XML),
    validate(TOO_MUCH),
    validate(TOO_MUCH, accept=XML),
    validate({"remove-queue": ["root.dev.a"]}),
    validate({"remove-queue": ["root.nosuch"]}),
    validate({"add-queue": [queue("root.default", capacity="10")]}),
    validate({}),
    VERSION,
    GET,
)
FORMATS = (FORMAT, VERSION, GET, put(SWAP), VERSION, Request("GET", f"{CONF}/format", accept=XML), VERSION)
REFRESH = Command(("-refreshQueues",), "RMAdminCLI")
COMMANDS = (
    Command(("-update", "root.default:capacity=40;root.dev:capacity=50")),
    Command(("-add", "root.dev.c:capacity=0,user-limit-factor=2")),
    Command(("-global", f"{PREFIX}maximum-applications=700")),
    Command(("-update", "root.default:capacity=70")),
    Command(("-remove", "root.dev.c")),
    Command(("-update", "root.dev.c:state=STOPPED")),
    Command(("-remove", "root.dev.c;root.old", "-update", "root.default:capacity=50")),
    Command(("-getconf",)),
    Command(("-update", "root.default")),
    REFRESH,
    Command(("-format",)),
    GET,
)
ASKERS = (
    Request("GET", CONF, user="alice"),
    Request("GET", f"{CONF}/version", user="alice"),
    Request("GET", f"{CONF}/format", user="alice"),
    Request("POST", f"{CONF}/validate", json.dumps(SWAP), user="alice"),
    put(SWAP, user="alice"),
    put(SWAP, user="alice", accept=XML),
    put(SWAP, user=""),
    put(update(queue("root.dev.a", user_limit_factor="2")), user="alice"),
    put(update(queue("root.dev.a", user_limit_factor="2")), user="dora"),
    put(update(queue("root.dev", user_limit_factor="2")), user="dora"),
    put({"add-queue": [queue("root.dev.new", capacity="0")]}, user="dora"),
    put({"add-queue": [queue("root.new", capacity="0")]}, user="dora"),
    put(update(queue("root.dev.a", user_limit_factor="2"), queue("root.default", user_limit_factor="2")), user="dora"),
    put(glob(maximum_applications="300"), user="dora"),
    put({}, user="dora"),
    put(glob(maximum_applications="400")),
    put(update(queue("root.dev.b", user_limit_factor="3"))),
    GET,
)
INTERFACE_CHANGE = {
    **update(queue("root.dev.b", capacity="100")),
    "add-queue": [queue("root.new", capacity="0", maximum_capacity="50")],
    "remove-queue": "root.dev.a",
    "global-updates": [glob(maximum_applications="900", user_metrics_enable="true")["global-updates"]],
}
"""As the Capacity Scheduler UI of Hadoop's trunk sends it: one removed queue is a text, global updates are a list."""
INTERFACES = (
    Request("GET", CONF, accept=JSON, user="yarn"),
    put(
        '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<sched-conf>\n'
        + "\n".join(
            xml_queue(
                "update-queue",
                f"root.{name}",
                **{"capacity": capacity, "state": "RUNNING", "ordering-policy": "fifo"},
                **{"leaf-queue-template.ordering-policy": "fifo"},
            )
            for name, capacity in (("default", "45.0"), ("old", "15.0"))
        )
        + "\n</sched-conf>",
        sent_type=XML,
        accept=XML,
        user="yarn",
    ),
    put(update(queue("root.dev.a", state="STOPPED")), accept=JSON, user="yarn"),
    validate(INTERFACE_CHANGE, accept=JSON, user="yarn"),
    put({**INTERFACE_CHANGE, "version": 3}, accept=JSON, user="yarn"),
    put(
        {"update-queue": {"queue-name": "root.new", "params": [{"entry": {"key": "user-limit-factor", "value": "2"}}]}}
    ),
    Request("GET", f"{CONF}/version", accept=JSON, user="yarn"),
    Request("GET", CONF, accept=JSON, user="yarn"),
)
"""Requests of web interfaces for queues: yarn-scheduler-ui (XML), and the one of Hadoop's trunk (JSON)."""
MEMORY = {STORE_CLASS: "memory"}
ADMINS = {"yarn.admin.acl": "admin"}
ACLS = {"yarn.acl.enable": "true", **ADMINS}
FS = {STORE_CLASS: "fs", "yarn.scheduler.configuration.max.version": "3"}
SCENES = (
    Scene("file", {}, (GET, Request("GET", CONF, accept=XML), VERSION, FORMAT, put(SWAP), validate(SWAP))),
    Scene("memory", MEMORY, (*READS, *CHANGES, FORMAT, *REFUSALS, *VALIDATIONS, *FORMATS, Restart(), GET, VERSION)),
    Scene("oddities", MEMORY, ODDITIES),
    Scene("interfaces", FS, INTERFACES),
    Scene(
        "fs",
        FS,
        (
            GET, VERSION, Files(), put(SWAP), VERSION, Files(), Restart(), GET, VERSION, Files(),
            put(TOO_MUCH), VERSION, Files(), put(glob(maximum_applications="100")),
            put(glob(maximum_applications="200")), put(glob(maximum_applications="300")), VERSION, Files(), GET,
            FORMAT, VERSION, Files(), GET,
        ),
    ),
    Scene("commands", MEMORY, COMMANDS),
    Scene("administrators", {**MEMORY, **ADMINS}, ASKERS),
    Scene("access lists", {**MEMORY, **ACLS}, ASKERS),
    Scene("queue administrators", {**MEMORY, **ADMINS, POLICY: QUEUE_ADMINS}, ASKERS),
    Scene("queue administrators, access lists", {**MEMORY, **ACLS, POLICY: QUEUE_ADMINS}, ASKERS),
)  # fmt: skip
