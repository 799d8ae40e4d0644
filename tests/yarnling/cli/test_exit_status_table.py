"""Exit statuses: the same kind of fault gives the same one in every verb (the table in docs/design/command-line.md)."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer.main

from yarnling.cli.app import app, main
from yarnling.cli.hadoop.verbs import ELSEWHERE
from yarnling.workload.formats import FORMATS

MISSING_FILE, MALFORMED_FILE, UNKNOWN_NAME = "missing file", "malformed file", "unknown name"
WRONG_VALUE, NOTHING_SELECTED, OTHER_FORMAT = "wrong value", "nothing selected", "other format"
NOT_WRITABLE, NOT_RUNNING, FAULT_OF_OURS = "not writable", "not running", "fault of ours"

STATUS = {
    **dict.fromkeys(
        (MISSING_FILE, MALFORMED_FILE, UNKNOWN_NAME, WRONG_VALUE, NOTHING_SELECTED, OTHER_FORMAT, NOT_WRITABLE), 2
    ),
    **dict.fromkeys((NOT_RUNNING,), 1),
    FAULT_OF_OURS: 3,
}
"""{kind of fault: exit status}"""

WORKLOAD = "--workload {workload} --nodes {nodes}"
SEARCH = f"{WORKLOAD} -o {{out}}"
LOTS = "-D yarn.scheduler.minimum-allocation-mb=lots"

CASES = {
    "up": {
        MISSING_FILE: [
            "--conf {missing}",
            "--conf {missing}.xml --detach",
            "--emulate {missing}.yaml",
            "--emulate {missing}.yaml --detach",
        ],
        MALFORMED_FILE: [
            "--conf {bad_conf}",
            "--conf {bad_conf} --detach",
            "--conf {bad_conf}/yarn-site.xml",
            "--emulate {bad}.yaml",
        ],
        WRONG_VALUE: [LOTS, f"{LOTS} --detach", "-D nonsense", "--racks 5", "--racks 5 --detach"],
        NOT_WRITABLE: ["--directory {file}/x", "--directory {file}/x --detach"],
        FAULT_OF_OURS: ["yarnling.cli.up.print_key_notices"],
    },
    "down": {NOT_RUNNING: [""], UNKNOWN_NAME: ["--name ../x"], FAULT_OF_OURS: ["yarnling.cli.down.stop_one"]},
    "env": {NOT_RUNNING: [""], FAULT_OF_OURS: ["yarnling.cli.env.find_cluster"]},
    "status": {NOT_RUNNING: [""], FAULT_OF_OURS: ["yarnling.cluster.state.read_state"]},
    "explain": {
        NOT_RUNNING: ["", "application_1_0001", "container_1_0001_01_000001"],
        WRONG_VALUE: ["x", "container_x"],
        FAULT_OF_OURS: ["yarnling.cli.explain.connect"],
    },
    "watch": {NOT_RUNNING: [""], WRONG_VALUE: ["--app x"], FAULT_OF_OURS: ["yarnling.cli.watch.find_cluster"]},
    "top": {NOT_RUNNING: ["--once"], FAULT_OF_OURS: ["yarnling.cli.top.connect --once"]},
    "chaos": {
        MISSING_FILE: ["{missing}.yaml", "./nosuch"],
        MALFORMED_FILE: ["{bad}.yaml"],
        UNKNOWN_NAME: ["kill-nod"],
        OTHER_FORMAT: ["kill-node --keep {missing}.zip", "kill-node --keep {missing}.html"],
        NOT_WRITABLE: ["kill-node --schedule --keep {file}/x", "kill-node --keep {file}/x", "kill-node --keep {file}"],
        FAULT_OF_OURS: ["yarnling.cli.chaos.list_plans --list"],
    },
    "config": {
        MISSING_FILE: ["--conf {missing}", "--conf {missing}.xml"],
        MALFORMED_FILE: ["--conf {bad_conf}", "--conf {bad_conf}/yarn-site.xml"],
        WRONG_VALUE: [LOTS, "-D nonsense"],
        NOT_RUNNING: ["--name nosuch"],
        FAULT_OF_OURS: ["yarnling.cli.config.compose"],
    },
    "logs": {
        NOT_RUNNING: ["application_1_0001"],
        WRONG_VALUE: ["x", "application_1_0001 --container x"],
        FAULT_OF_OURS: ["yarnling.cluster.state.read_state application_1_0001"],
    },
    "lesson": {
        UNKNOWN_NAME: ["nosuch", "99"],
        OTHER_FORMAT: ["1 -o {missing}.png"],
        WRONG_VALUE: ["6 --user-limit-factor x", "6 --nosuch 3"],
        NOT_WRITABLE: ["1 -o {file}/x.html"],
        FAULT_OF_OURS: ["yarnling.cli.lesson.show_list"],
    },
    "quiz": {
        UNKNOWN_NAME: ["nosuch"],
        MISSING_FILE: ["submit --paper 1 --seed 1 --check {missing}.csv"],
        MALFORMED_FILE: ["submit --paper 1 --seed 1 --check {bad}.yaml"],
        WRONG_VALUE: ["--answer x --seed x", "submit --paper 0", "submit --paper 1", "submit --check {bad}.yaml"],
        OTHER_FORMAT: ["submit --paper 1 -o {missing}.png"],
        NOT_WRITABLE: ["submit --paper 1 -o {file}/x.html"],
        FAULT_OF_OURS: ["yarnling.cli.quiz.show_topics --list"],
    },
    "lab master": {
        MISSING_FILE: ["{missing}.py"],
        MALFORMED_FILE: ["{bad}.yaml"],
        WRONG_VALUE: ["", "--seeds 0"],
        NOT_WRITABLE: ["--start {file}/x.py"],
        FAULT_OF_OURS: ["yarnling.cli.lab_master.write_start --start {out}.py"],
    },
    "lab policy": {
        MISSING_FILE: ["{missing}.py"],
        MALFORMED_FILE: ["{bad}.yaml"],
        WRONG_VALUE: ["", "--seeds 0", "--against lottery"],
        NOT_WRITABLE: ["--start {file}/x.py"],
        FAULT_OF_OURS: ["yarnling.cli.lab_policy.write_start --start {out}.py"],
    },
    "lab mistake": {
        MISSING_FILE: ["{missing}.yaml"],
        MALFORMED_FILE: ["{bad}.yaml"],
        WRONG_VALUE: ["", "--seed 0", "{bad}.yaml --seed 1", "--seed 1 --up --json"],
        NOT_WRITABLE: ["--seed 1 -o {file}/x"],
        FAULT_OF_OURS: ["yarnling.cli.lab_mistake.write_cases --seed 1"],
    },
    "run": {
        NOT_RUNNING: ["true"],
        WRONG_VALUE: ["--timeout -1 true"],
        FAULT_OF_OURS: ["yarnling.cli.run.connect true"],
    },
    "timeline": {
        MISSING_FILE: ["{missing} -o {missing}.html"],
        MALFORMED_FILE: ["{bad}.jsonl -o {missing}.html", "{empty} -o {missing}.html", "{bad_conf} -o {missing}.html"],
        UNKNOWN_NAME: [
            "{trace} -o {missing}.html --rpc nosuch",
            "{trace} -o {missing}.html --host nosuch",
            "{trace} -o {missing}.html --app 99",
        ],
        NOTHING_SELECTED: [
            "{trace} -o {missing}.html --from 50000 --to 50001",
            "{trace} -o {missing}.html --from 5 --to 3",
            "{trace}",
        ],
        OTHER_FORMAT: ["{trace} -o {missing}.png", "{trace} --svg {missing}.html"],
        NOT_WRITABLE: ["{trace} -o {file}/x.html"],
        FAULT_OF_OURS: ["yarnling.cli.timeline.read_run {trace} -o {missing}.html"],
    },
    "plot": {
        MISSING_FILE: ["{missing} -o {missing}.html"],
        MALFORMED_FILE: [
            "{bad}.jsonl -o {missing}.html",
            "{empty} -o {missing}.html",
            "{bad}.json -o {missing}.html",
            "{bad_conf} -o {missing}.html",
        ],
        OTHER_FORMAT: ["{trace} -o {missing}.png"],
        NOT_WRITABLE: ["{trace} -o {file}/x.html"],
        FAULT_OF_OURS: ["yarnling.cli.timeline.read_run {trace} -o {missing}.html"],
    },
    "traffic": {
        MISSING_FILE: ["{missing}"],
        MALFORMED_FILE: ["{bad}.jsonl", "{empty}", "{bad_conf}"],
        UNKNOWN_NAME: ["{trace} --app 99"],
        NOTHING_SELECTED: ["{trace} --from 50000 --to 50001", "{trace} --from 5 --to 3"],
        FAULT_OF_OURS: ["yarnling.cli.traffic.read_run {trace}"],
    },
    "version": {FAULT_OF_OURS: ["yarnling.cli.version.show"]},
    "submit": {
        UNKNOWN_NAME: ["nosuch"],
        WRONG_VALUE: ["distributed-shell", "distributed-shell -nosuch", "gang -num_containers x"],
        NOT_RUNNING: ["distributed-shell -shell_command true"],
        FAULT_OF_OURS: ["yarnling.cli.submit.connect distributed-shell -shell_command true"],
    },
    "record": {
        MISSING_FILE: [
            "http://127.0.0.1:1 -o {out} --authorization-file {missing}",
            "http://127.0.0.1:1 -o {out} --ca-file {missing}",
        ],
        MALFORMED_FILE: ["http://127.0.0.1:1 -o {out} --ca-file {text}.json"],
        WRONG_VALUE: [
            "ftp://rm -o {out}",
            "http://ann:secret@rm -o {out}",
            "http://rm -o {out} --every 10ms",
            "http://rm -o {out} --for soon",
        ],
        NOT_WRITABLE: ["http://127.0.0.1:1 -o {file}/x"],
        FAULT_OF_OURS: ["yarnling.cli.record.DayFiles http://127.0.0.1:1 -o {out}"],
    },
    "workload calibrate": {
        MISSING_FILE: ["{missing} -o {out}.jsonl", "{workload} -o {out}.jsonl --nodes {missing}"],
        MALFORMED_FILE: ["{workload} -o {out}.jsonl", "{empty} -o {out}.jsonl"],
        WRONG_VALUE: [
            "{workload} -o {out}.jsonl --seeds 0",
            "{workload} -o {out}.jsonl --task-seconds 0",
            "{workload} -o {out}.jsonl -D novalue",
        ],
        OTHER_FORMAT: ["{workload} -o {out}.csv", "{workload} -o {out}.jsonl --nodes-out {out}.csv"],
        NOT_WRITABLE: ["{workload} -o {file}/x.jsonl"],
        FAULT_OF_OURS: ["yarnling.cli.calibrate.read_recorded_times {workload} -o {out}.jsonl"],
    },
    "workload import": {
        MISSING_FILE: ["{missing} -o {out}.jsonl", "{workload} -o {out}.jsonl --nodes {missing}"],
        MALFORMED_FILE: [
            "{bad}.json -o {out}.jsonl",
            "{empty} -o {out}.jsonl",
            "{workload} -o {out}.jsonl --nodes {bad}.yaml --nodes-out {out}.yaml",
        ],
        UNKNOWN_NAME: ["{workload} -o {out}.jsonl --format nosuch"],
        NOTHING_SELECTED: ["{workload} -o {out}.jsonl --scale 0"],
        OTHER_FORMAT: [
            "{workload} -o {out}.csv",
            "{workload} -o {out}.xml",
            "{workload} -o {out}.jsonl --nodes-out {out}.csv",
        ],
        NOT_WRITABLE: ["{workload} -o {file}/x.jsonl"],
        FAULT_OF_OURS: ["yarnling.cli.workload.read_workload {workload} -o {out}.jsonl"],
    },
    "workload show": {
        MISSING_FILE: ["{missing}"],
        MALFORMED_FILE: [
            "{bad}.json",
            "{empty}",
            "{none}.json",
            *(f"{{none}}.json --format {name}" for name in FORMATS),
        ],
        UNKNOWN_NAME: ["{workload} --format nosuch"],
        FAULT_OF_OURS: ["yarnling.cli.workload.read_workload {workload}"],
    },
    "workload queues": {
        MISSING_FILE: ["{missing} -o {out}.xml"],
        MALFORMED_FILE: ["{bad}.json -o {out}.xml", "{empty} -o {out}.xml", "{none}.json -o {out}.xml"],
        OTHER_FORMAT: ["{queues} -o {out}.json", "{queues} -o {out}.yaml"],
        NOT_WRITABLE: ["{queues} -o {file}/x.xml"],
        FAULT_OF_OURS: ["yarnling.cli.workload.read_queues {queues} -o {out}.xml"],
    },
    "workload formats": {FAULT_OF_OURS: ["yarnling.cli.workload.list_formats"]},
    "simulate plan": {
        MISSING_FILE: ["{missing}.yaml"],
        MALFORMED_FILE: ["{bad}.yaml"],
        UNKNOWN_NAME: ["kill-nod"],
        WRONG_VALUE: ["kill-node --random", "kill-node --all-faults"],
        OTHER_FORMAT: ["kill-node --trace {out}.html", "kill-node --shrink -o {out}.py"],
        NOT_WRITABLE: ["kill-node --seed 1 --trace {file}/x.jsonl"],
        FAULT_OF_OURS: ["yarnling.cli.simulate.find_plan kill-node"],
    },
    "simulate workload": {
        MISSING_FILE: [
            "--workload {missing} --nodes {nodes}",
            "--workload {workload} --nodes {missing}",
            f"{WORKLOAD} --conf {{missing}}",
            f"{WORKLOAD} --expect {{missing}}",
        ],
        MALFORMED_FILE: [
            "--workload {bad}.json --nodes {nodes}",
            "--workload {workload} --nodes {bad}.yaml",
            "--workload {workload} --nodes {none}.json",
            f"{WORKLOAD} --conf {{bad_conf}}",
            f"{WORKLOAD} --expect {{bad}}.yaml",
        ],
        UNKNOWN_NAME: [f"{WORKLOAD} --queue-map nosuch=default", f"{WORKLOAD} --queue-map default=nosuch"],
        WRONG_VALUE: [f"{WORKLOAD} {LOTS}", f"{WORKLOAD} -D nonsense", f"{WORKLOAD} --until x"],
        OTHER_FORMAT: [
            f"{WORKLOAD} --trace {{out}}.html",
            f"{WORKLOAD} -o {{out}}.html",
            f"{WORKLOAD} -o {{out}}.json",
        ],
        NOT_WRITABLE: [f"{WORKLOAD} -o {{file}}/x", f"{WORKLOAD} --trace {{file}}/x.jsonl"],
        FAULT_OF_OURS: [f"yarnling.cli.simulate_workload.read_workload {WORKLOAD}"],
    },
    "simulate compare": {
        MISSING_FILE: [
            "{missing} {conf} " + WORKLOAD,
            "{conf} {conf} --workload {missing} --nodes {nodes}",
            "{missing}.json {missing}.json",
            "{conf} {conf} " + WORKLOAD + " --nodes-after {missing}",
            "{conf} {conf} " + WORKLOAD + " --expect {missing}",
        ],
        MALFORMED_FILE: [
            "{conf} {bad_conf} " + WORKLOAD,
            "{bad}.json {bad}.json",
            "{conf} {conf} --workload {bad}.json --nodes {nodes}",
        ],
        UNKNOWN_NAME: ["{conf} {conf} " + WORKLOAD + " --queue-map nosuch=default"],
        WRONG_VALUE: ["{conf} {conf} " + WORKLOAD + f" {LOTS}", "{conf} {conf} " + WORKLOAD + " --until x"],
        OTHER_FORMAT: ["{conf} {conf} " + WORKLOAD + " -o {out}.html"],
        NOT_WRITABLE: ["{conf} {conf} " + WORKLOAD + " -o {file}/x"],
        FAULT_OF_OURS: ["yarnling.cli.compare.read_workload {conf} {conf} " + WORKLOAD],
    },
    "simulate sweep": {
        MISSING_FILE: ["{missing}.yaml -o {out}.sqlite"],
        MALFORMED_FILE: ["{bad}.yaml -o {out}.sqlite", "{sweep} -o {text}.sqlite"],
        UNKNOWN_NAME: ["{unknown_sweep} -o {out}.sqlite"],
        OTHER_FORMAT: ["{sweep} -o {out}.csv", "{sweep} -o {out}.json"],
        NOT_WRITABLE: ["{sweep} -o {file}/x.sqlite"],
        FAULT_OF_OURS: ["yarnling.cli.sweep.read_sweep {sweep} -o {out}.sqlite"],
    },
    "simulate search": {
        MISSING_FILE: [
            f"{SEARCH} --conf {{missing}} --goals {{goals}}",
            f"{SEARCH} --conf {{conf}} --goals {{missing}}",
            "--workload {missing} --nodes {nodes} -o {out} --conf {conf} --goals {goals}",
        ],
        MALFORMED_FILE: [
            f"{SEARCH} --conf {{bad_conf}} --goals {{goals}}",
            f"{SEARCH} --conf {{conf}} --goals {{bad}}.yaml",
        ],
        UNKNOWN_NAME: [
            f"{SEARCH} --conf {{conf}} --goals {{unknown_goals}}",
            f"{SEARCH} --conf {{conf}} --goals {{goals}} --queue-map nosuch=default",
        ],
        WRONG_VALUE: [
            f"{SEARCH} --conf {{conf}} --goals {{goals}} {LOTS}",
            f"{SEARCH} --conf {{conf}} --goals {{goals}} --until x",
        ],
        OTHER_FORMAT: [f"{WORKLOAD} -o {{out}}.html --conf {{conf}} --goals {{goals}}"],
        NOT_WRITABLE: [f"{WORKLOAD} -o {{file}}/x --conf {{conf}} --goals {{goals}}"],
        FAULT_OF_OURS: [f"yarnling.cli.search.read_workload {SEARCH} --conf {{conf}} --goals {{goals}}"],
    },
    "simulate step": {
        MISSING_FILE: [
            "{missing}.yaml",
            "--workload {missing} --nodes {nodes} --print",
            f"{WORKLOAD} --conf {{missing}} --print",
        ],
        MALFORMED_FILE: [
            "{bad}.yaml --print",
            "--workload {bad}.json --nodes {nodes} --print",
            f"{WORKLOAD} --conf {{bad_conf}} --print",
        ],
        UNKNOWN_NAME: ["nosuch"],
        WRONG_VALUE: [f"{WORKLOAD} {LOTS} --print", "allocate --at x", "allocate --change x"],
        FAULT_OF_OURS: ["yarnling.cli.step.find_source"],
    },
    **{
        verb: {NOT_RUNNING: [argument], FAULT_OF_OURS: [f"yarnling.cluster.state.read_state {argument}"]}
        for verb, argument in {
            "add-node": "",
            "kill-rm": "",
            "restart-rm": "",
            "pause-rm": "",
            "resume-rm": "",
            "kill-master": "application_1_0001",
            "kill-container": "container_1_0001_01_000001",
            **dict.fromkeys(
                (
                    "remove-node",
                    "restart-node",
                    "kill-node",
                    "pause-node",
                    "resume-node",
                    "partition-node",
                    "heal-node",
                ),
                "1",
            ),
        }.items()
    },
}
COMMAND: Any = typer.main.get_command(app)
"""Built once; main() builds it in each call."""
AS_HADOOP = {"application", "applicationattempt", "container", "node", "queue", "cluster", "rmadmin"}
"""Verbs with Hadoop's exit statuses."""


FILES = {
    "bad.yaml": "{: [\n",
    "bad.json": "{: [\n",
    "bad.jsonl": "{: [\n",
    "bad_conf/yarn-site.xml": "<configuration><prop",
    "conf/yarn-site.xml": "<configuration/>",
    "empty": "",
    "none.json": "[]",
    "file": "a file",
    "text.sqlite": "a text and no database " * 100,
    "workload.yaml": """
applications:
- {name: a, submit_ms: 0, user: ann, queue: root.default, groups: [{memory_mb: 1024, vcores: 1, durations_ms: [9]}]}
""",
    "nodes.yaml": "nodes:\n- {memory_mb: 8192, vcores: 8, count: 2}\n",
    "sweep.yaml": "plans: [kill-node]\nseeds: 1\n",
    "unknown_sweep.yaml": "plans: [nosuch]\nseeds: 1\n",
    "goals.yaml": "goals: [every container is allocated]\nchange: [{queue: default, key: priority, from: 1, to: 2}]\n",
    "unknown_goals.yaml": "goals: [every container is allocated]\nchange: [{queue: no, key: state, values: [a, b]}]\n",
    "trace.jsonl": '{"run": 2, "title": "a run"}\n[1000, "rm", {}, []]\n',
    "queues.json": """
{"scheduler": {"schedulerInfo": {"type": "capacityScheduler", "capacity": 100.0, "maxCapacity": 100.0, "queueName":
"root", "queues": {"queue": [{"type": "capacitySchedulerLeafQueueInfo", "capacity": 100.0, "maxCapacity": 100.0,
"queueName": "default", "queuePath": "root.default", "state": "RUNNING"}]}}}}
""",
}
"""{name: content} of the files that the command lines name, as {name} without the suffix."""


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """{name in a command line: path}. `missing` and `out` do not exist."""
    home = tmp_path_factory.mktemp("files")
    for name, content in FILES.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(content)
    named = {
        name: home / name for name in ("missing", "out", "bad", "none", "text", "bad_conf", "conf", "empty", "file")
    }
    whole = (
        *("workload.yaml", "nodes.yaml", "sweep.yaml", "unknown_sweep.yaml", "trace.jsonl", "queues.json"),
        *("goals.yaml", "unknown_goals.yaml"),
    )
    return {name: str(path) for name, path in {**named, **{Path(name).stem: home / name for name in whole}}.items()}


def listed_cases() -> Iterator[tuple[str, str, str]]:
    for verb, kinds in CASES.items():
        for kind, command_lines in kinds.items():
            yield from ((verb, kind, command_line) for command_line in command_lines)


@pytest.mark.parametrize(("verb", "kind", "command_line"), list(listed_cases()), ids=lambda text: text or "-")
def test_the_kind_of_a_fault_decides_the_exit_status(
    verb: str,
    kind: str,
    command_line: str,
    paths: Mapping[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("yarnling.cli.app.app", COMMAND)
    words = command_line.split()
    if kind == FAULT_OF_OURS:
        monkeypatch.setattr(words.pop(0), _fail)
    monkeypatch.setattr(sys, "argv", ["yarnling", *verb.split(), *(word.format(**paths) for word in words)])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert ended.value.code == STATUS[kind], printed.err
    assert ("Traceback" in printed.err) == (kind == FAULT_OF_OURS)
    assert not list(Path(paths["out"]).parent.glob("out*"))


def _fail(*_: object, **__: object) -> None:
    raise IndexError("a fault of ours")


def test_every_verb_is_in_the_table() -> None:
    assert set(CASES) == set(_verbs(COMMAND, ())) - AS_HADOOP - set(ELSEWHERE)


def _verbs(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    """The verbs that help lists; those of `submit` are its programs."""
    if not hasattr(command, "commands") or path == ("submit",):
        yield " ".join(path)
        return
    for name, each in command.commands.items():
        if not each.hidden:
            yield from _verbs(each, (*path, name))
