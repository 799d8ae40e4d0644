"""Records true runs: Hadoop's own ResourceManager in one JVM, and the world around it in another, in real time.

    scripts/record-hadoop --truth --list            the runs, and which are recorded
    scripts/record-hadoop --truth                   records what is missing, two recordings of each run
    scripts/record-hadoop --truth --only steady     this run only
    scripts/record-hadoop --truth --only steady --thin 0.1 --out DIR      tries the harness: a tenth of the applications

A true run takes as long as its workload, and a quarter of a core. A busy machine makes it slower than Hadoop is, so
nothing else should run: run.json notes the load. A run that is interrupted leaves nothing behind, and the next call
goes on with it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from random import Random, sample
from statistics import fmean
from typing import Any

from tests.hadoop import toolchain
from tests.hadoop.truth.recording import directories, write_recording
from tests.hadoop.truth.runs import CONFIGURATIONS, CS, GPU, RECORDINGS, RUNS, TrueRun, workload_of
from yarn.java.versions import HADOOP_VERSION
from yarnling.simulation.engine import Engine
from yarnling.simulation.task_groups import request_keys
from yarnling.workload.model import TaskGroup, Workload, WorkloadApplication
from yarnling.workload.scaling import scaled
from yarnling.workload.start_times import drawn_ms

RECORDINGS_EACH = 2
TRUE_SEED = 1_000
"""Seeds of true runs begin here, so that no simulation has the same start times."""
STALL_MS = 1_000
STALLED_SHARE = 0.01
"""More tasks with a late start than this are no true run: of the first recordings none had one, half of them 20 ms."""
HOSTS_FILE = "hosts"
POLL_S = 2.0
PORTS = range(20_000, 30_000)
START_S = 120
HEAPS = {"rm": "1g", "world": "1500m"}
OPENED = tuple(
    f"--add-opens=java.base/java.{package}=ALL-UNNAMED"
    for package in ("lang", "util", "util.concurrent", "io", "net", "lang.reflect", "time")
)
RM_CLASS = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
SCHEDULER_CLASS = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler"
LOG4J = """\
log4j.rootLogger={level},file
log4j.appender.file=org.apache.log4j.FileAppender
log4j.appender.file.File={file}
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=%d %p %c{{2}}: %m%n
"""


class RunFailed(Exception):
    """A true run that is not valid, with the reason."""


def main() -> int:
    options = _options()
    runs = [run for run in RUNS if not options.only or run.name in options.only]
    if options.list:
        for run in runs:
            print(f"{run.name:16} {len(directories(run))} of {options.each} recorded, {run.minutes:g} min: {run.about}")
        return 0
    for run in runs:
        if options.out is not None:
            _record(run, options.out, TRUE_SEED, options.thin)
            continue
        for number in range(1, options.each + 1):
            directory = RECORDINGS / f"{run.name}-{number}"
            if options.again or not directory.exists():
                _record(run, directory, TRUE_SEED + number, 1.0)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/record-hadoop --truth", description="Record true runs of Hadoop.")
    parser.add_argument("--list", action="store_true", help="list the runs")
    parser.add_argument("--only", action="append", metavar="NAME", choices=[run.name for run in RUNS], help="this run")
    parser.add_argument("--each", type=int, default=RECORDINGS_EACH, metavar="N", help="recordings of each run")
    parser.add_argument("--again", action="store_true", help="also those that exist")
    parser.add_argument("--thin", type=float, default=1.0, metavar="FACTOR", help="only a part of the applications")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write one recording of each run there")
    options = parser.parse_args()
    if options.thin != 1.0 and options.out is None:
        parser.error("--thin needs --out DIR: a thinned run is no recording to keep")
    return options


def _record(run: TrueRun, directory: Path, seed: int, thin: float) -> None:
    print(f"{run.name}: about {run.minutes:g} minutes, into {directory}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="true-run-") as temporary:
        work = Path(temporary)
        try:
            events, loads = _play(run, scaled(workload_of(run), thin), work, seed)
        except RunFailed as failure:
            kept = Path(tempfile.mkdtemp(prefix=f"failed-{run.name}-"))
            shutil.copytree(work, kept, dirs_exist_ok=True)
            sys.exit(f"{run.name}: {failure} (its logs: {kept})")
        about = {
            "run": run.name,
            "hadoop": run.release,
            "seed": seed,
            "recorded": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
            "load_mean": round(fmean(loads), 1),
            "load_max": round(max(loads), 1),
        }
        write_recording(directory, events, about)


def _play(run: TrueRun, workload: Workload, work: Path, seed: int) -> tuple[list[dict[str, Any]], list[float]]:
    """Play a run in real time. Returns what happened, and the loads of the machine. Raises RunFailed."""
    jars = toolchain.jars("minicluster" if run.release == HADOOP_VERSION else f"minicluster-{run.release}")
    classes = work / "classes"
    toolchain.compiled("truth", classes, jars / "*")
    ports = _free_ports(6)
    _configure(run, work, ports)
    (work / HOSTS_FILE).write_text(hosts_file([node.host for node in run.nodes], socket.gethostname()))
    (work / "plan.json").write_text(json.dumps(plan_of(run, workload, seed, node_port=ports[5])))
    web = f"http://127.0.0.1:{ports[4]}/ws/v1/cluster"
    with _jvm("rm", work, classes, jars, RM_CLASS) as rm:
        _await_rm(web, rm)
        with _jvm("world", work, classes, jars, "truth.World", work / "plan.json", work / "journal.jsonl") as world:
            loads = list(_watch(web, world, rm))
            if world.wait() != 0:
                raise RunFailed(f"the world ended with {world.returncode}: {_tail(work / 'world.out')}")
    events = [json.loads(line) for line in (work / "journal.jsonl").read_text().splitlines()]
    if (share := stalled(events)) > STALLED_SHARE:
        raise RunFailed(
            f"{share:.1%} of the tasks started more than {STALL_MS} ms after their AM had got the container, where "
            f"{STALLED_SHARE:.0%} is the bound: the machine was too busy, or waited for something outside Hadoop"
        )
    return events, loads


def hosts_file(hosts: Sequence[str], own: str) -> str:
    """The names that both JVMs know, in the form of /etc/hosts: each address is its own name.

    Hadoop looks up the name of each peer. Without this file the lookup of a loopback address goes to a name server,
    and each answer that is lost stops a heartbeat for 5 s.
    """
    names = {"localhost": "127.0.0.1", own: "127.0.0.1", **{host: host for host in hosts}}
    return "".join(f"{address} {name}\n" for name, address in names.items())


def stalled(events: Iterable[Mapping[str, Any]]) -> float:
    """The share of tasks that started more than STALL_MS after their AM had got the container. 0 of none."""
    seen = {event["container"]: event["seen"] for event in events if event["event"] == "task"}
    started = {event["container"]: event["started"] for event in events if event["event"] == "end"}
    delays: list[int] = [
        started[container] - at for container, at in seen.items() if started.get(container) is not None
    ]
    return sum(delay > STALL_MS for delay in delays) / max(1, len(delays))


def _configure(run: TrueRun, work: Path, ports: Sequence[int]) -> None:
    """Write the configuration of the ResourceManager, which its clients share."""
    names = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
    own = {f"yarn.resourcemanager.{name}": f"127.0.0.1:{port}" for name, port in zip(names, ports, strict=False)}
    own |= {
        "yarn.resourcemanager.scheduler.class": SCHEDULER_CLASS,
        "yarn.resourcemanager.bind-host": "127.0.0.1",
        "yarn.resourcemanager.max-completed-applications": "10000",
        "yarn.resourcemanager.proxy-user-privileges.enabled": "false",
        "yarn.node-attribute.fs-store.root-dir": f"file://{work}/attributes",
        "yarn.node-labels.fs-store.root-dir": f"file://{work}/labels",
        "hadoop.tmp.dir": f"{work}/tmp",
    }
    source, conf = CONFIGURATIONS / run.configuration, work / "conf"
    conf.mkdir()
    of_scheduler = {key: value for key, value in run.settings.items() if key.startswith(CS)}
    site = source / "yarn-site.xml"
    for name, text, settings in (
        ("capacity-scheduler.xml", (source / "capacity-scheduler.xml").read_text(), of_scheduler),
        (
            "yarn-site.xml",
            site.read_text() if site.exists() else "<configuration></configuration>",
            {**own, **{key: value for key, value in run.settings.items() if key not in of_scheduler}},
        ),
        ("core-site.xml", "<configuration></configuration>", {"hadoop.tmp.dir": f"{work}/tmp"}),
    ):
        (conf / name).write_text(_with(text, settings))


def _with(text: str, settings: Mapping[str, str]) -> str:
    properties = "".join(
        f"<property><name>{key}</name><value>{value}</value></property>\n" for key, value in settings.items()
    )
    return text.replace("</configuration>", f"{properties}</configuration>")


def plan_of(run: TrueRun, workload: Workload, seed: int, *, node_port: int) -> dict[str, Any]:
    """The plan of java/truth/Plan.java: start times are drawn, so that Java has nothing to decide."""
    engine, phases = Engine(seed), Random(seed)
    applications = [_application(number, one, engine) for number, one in enumerate(workload.applications)]
    users = dict.fromkeys((one.user, one.queue) for one in workload.applications)
    return {
        "nodes": [
            {
                "host": node.host,
                "port": node_port,
                "memoryMb": node.resource.memory_mb,
                "vcores": node.resource.vcores,
                "label": node.label,
                "phaseMs": phases.randrange(1000),
            }
            for node in run.nodes
        ],
        "labels": [{"name": GPU, "exclusive": True}] if run.labelled else [],
        "warmUp": [_warm_up(user, queue) for user, queue in users],
        "applications": applications,
        "losses": [{"atMs": loss.time_ms, "host": loss.host} for loss in run.losses],
    }


def _application(number: int, work: WorkloadApplication, engine: Engine) -> dict[str, Any]:
    keys = request_keys(work.groups)

    def group_of(position: int, group: TaskGroup) -> dict[str, Any]:
        names = (f"start of task {number}/{position}/{task}" for task in range(len(group.durations_ms)))
        starts = (drawn_ms(work.task_start_ms, engine.number_for, name) for name in names)
        return {
            "memoryMb": group.resource.memory_mb,
            "vcores": group.resource.vcores,
            "priority": keys[position].priority,
            "requestId": keys[position].allocation_request_id,
            "after": -1 if group.after is None else group.after,
            "delayMs": group.delay_ms,
            "hosts": [] if group.label else list(group.hosts),
            "label": group.label or None,
            "taskMs": [max(1, start + lasts) for start, lasts in zip(starts, group.durations_ms, strict=True)],
        }

    return {
        "number": number,
        "name": work.name,
        "submitMs": work.submit_ms,
        "user": work.user,
        "queue": work.queue,
        "label": work.label,
        "priority": work.priority,
        "amMemoryMb": work.am_resource.memory_mb,
        "amVcores": work.am_resource.vcores,
        "amStartMs": drawn_ms(work.am_start_ms, engine.number_for, f"start of AM {number}"),
        "groups": [group_of(position, group) for position, group in enumerate(work.groups)],
    }


def _warm_up(user: str, queue: str) -> dict[str, Any]:
    tasks = {"memoryMb": 1024, "vcores": 1, "priority": 20, "requestId": 0, "after": -1, "delayMs": 0}
    small = {"submitMs": 0, "label": "", "priority": 0, "amMemoryMb": 1024, "amVcores": 1, "amStartMs": 200}
    groups = [{**tasks, "hosts": [], "label": None, "taskMs": [700] * 20}]
    return {"number": -1, "name": "warm-up", "user": user, "queue": queue, **small, "groups": groups}


@contextmanager
def _jvm(name: str, work: Path, classes: Path, jars: Path, *command: object) -> Iterator[subprocess.Popen[bytes]]:
    """A JVM with the options of a long run, that is ended with this context."""
    own = work / name
    own.mkdir()
    level = "INFO" if name == "rm" else "WARN"
    (own / "log4j.properties").write_text(LOG4J.format(level=level, file=work / f"{name}.log"))
    path = toolchain.class_path_of(work / "conf", own, classes, jars / "*")
    names = f"-Djdk.net.hosts.file={work / HOSTS_FILE}"
    line = [
        toolchain.java(),
        f"-Xmx{HEAPS[name]}",
        "-XX:+UseParallelGC",
        *OPENED,
        names,
        "-cp",
        path,
        *map(str, command),
    ]
    with (
        (work / f"{name}.out").open("wb") as out,
        subprocess.Popen(line, cwd=work, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def _await_rm(web: str, rm: subprocess.Popen[bytes]) -> None:
    until_s = time.monotonic() + START_S
    while time.monotonic() < until_s and rm.poll() is None:
        with suppress(OSError, HTTPException):
            _get(f"{web}/info")
            return
        time.sleep(0.5)
    raise RunFailed(f"the ResourceManager did not answer within {START_S} s")


def _watch(web: str, world: subprocess.Popen[bytes], rm: subprocess.Popen[bytes]) -> Iterator[float]:
    """The load of the machine every POLL_S until the world has ended; shows how far it is."""
    began_s = time.monotonic()
    while world.poll() is None:
        if rm.poll() is not None:
            raise RunFailed(f"the ResourceManager ended with {rm.returncode}")
        yield os.getloadavg()[0]
        with suppress(OSError, HTTPException):
            metrics = _get(f"{web}/metrics")["clusterMetrics"]
            counts = ", ".join(f"{metrics[f'apps{state}']} {state.lower()}" for state in ("Pending", "Running"))
            line = f"{time.monotonic() - began_s:4.0f} s: {counts}, {metrics['appsCompleted']} completed"
            print(f"\r{line:70}", end="", file=sys.stderr, flush=True)
        with suppress(subprocess.TimeoutExpired):
            world.wait(POLL_S)
    print(file=sys.stderr)


def _get(address: str) -> Any:
    request = urllib.request.Request(address, headers={"Accept": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def _free_ports(count: int) -> list[int]:
    """Free ports below those that the kernel gives to clients, so that nobody takes them until the servers start."""
    free: list[int] = []
    for port in sample(PORTS, len(PORTS)):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            free.append(port)
        if len(free) == count:
            return free
    raise RunFailed(f"fewer than {count} free ports from {PORTS.start} to {PORTS.stop - 1}")


def _tail(path: Path) -> str:
    return path.read_text(errors="replace")[-2000:]


if __name__ == "__main__":
    sys.exit(main())
