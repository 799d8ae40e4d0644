"""Which rule a container gets, and the format of a file of rules."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from nm.core.emulation import Amount, Bounds, ContainerFacts, EmulationStage, EmulationTable, Match, Rule
from nm.emulation.table_file import parse_table, read_emulation
from yarn.configuration import Configuration
from yarn.faults import ConfigurationException
from yarn.resource import Resource

TASK = ContainerFacts(False, "alice", "java -Xmx1g Map", {"ROLE": "map"}, 20, Resource(1024, 2), "127.0.0.2:45454")
STAGES = (EmulationStage(5),)


def holds(match: Match) -> bool:
    table = EmulationTable((Rule("r", match, STAGES),))
    return table.rule_for(TASK) is not None


@pytest.mark.parametrize(
    ("yes", "no"),
    [
        (Match(is_master=False), Match(is_master=True)),
        (Match(user="^ali"), Match(user="^lice")),
        (Match(command="Map$"), Match(command="Reduce")),
        (Match(environment=(("ROLE", "m.p"),)), Match(environment=(("ROLE", "reduce"),))),
        (Match(environment=(("ROLE", ""),)), Match(environment=(("OTHER", ""),))),
        (Match(node=r"0\.2:"), Match(node=r"0\.3:")),
        (Match(priority=Bounds(20, 20)), Match(priority=Bounds(most=19))),
        (Match(memory_mb=Bounds(least=1024)), Match(memory_mb=Bounds(least=1025))),
        (Match(vcores=Bounds(1, 2)), Match(vcores=Bounds(3, None))),
        (Match(user="alice", command="Map"), Match(user="alice", command="Reduce")),
    ],
)
def test_a_rule_matches_if_all_its_conditions_are_met(yes: Match, no: Match) -> None:
    assert holds(yes)
    assert not holds(no)


def test_the_first_rule_that_matches_decides_and_without_one_a_container_is_real() -> None:
    first, second = Rule("first", Match(command="Map"), STAGES), Rule("second", Match(), STAGES)
    assert EmulationTable((first, second)).rule_for(TASK) is first
    assert EmulationTable((first, second)).rule_for(replace(TASK, command="sleep")) is second
    assert EmulationTable((Rule("real", Match(command="Map")), second)).rule_for(TASK) is None
    assert EmulationTable((first,)).rule_for(replace(TASK, command="sleep")) is None


def test_a_file_can_set_every_field_of_a_table() -> None:
    table = parse_table(
        """
        seed: 7
        rules:
          - name: masters
            match: {kind: master}
            run: real
          - match:
              kind: task
              user: alice|bob
              command: Map
              environment: {ROLE: map}
              node: ^127
              priority: 20
              memory_mb: {at_least: 512, at_most: 2048}
              vcores: {at_most: 4}
            stages:
              - {lasts: 1.5s, jitter: 10%, memory: [10%, 1.5 GB], cpu: 0.5, exit: {code: 3, probability: 5%}}
              - {lasts: 2 m, jitter: 250ms, memory: 300 MB, cpu: 80%, exit: 4}
          - {match: {command: A}, after_term: 1.5s, stages: [{lasts: 5ms}]}
          - {match: {command: B}, after_term: forever, stages: [{lasts: 5ms}]}
        """
    )
    match = Match(
        False,
        "alice|bob",
        "Map",
        (("ROLE", "map"),),
        "^127",
        Bounds(20, 20),
        Bounds(512, 2048),
        Bounds(None, 4),
    )
    stages = (
        EmulationStage(1500, 150, Amount(0.1, True), Amount(1536.0), Amount(0.5), 3, 0.05),
        EmulationStage(120_000, 250, Amount(300.0), Amount(300.0), Amount(0.8, True), 4, 1.0),
    )
    rules = (
        Rule("masters", Match(is_master=True)),
        Rule("rule 2", match, stages),
        Rule("rule 3", Match(command="A"), STAGES, after_term_ms=1500),
        Rule("rule 4", Match(command="B"), STAGES, after_term_ms=None),
    )
    assert table == EmulationTable(rules, 7)


def test_all_faults_are_reported_at_once_with_line_and_remedy() -> None:
    with pytest.raises(ConfigurationException) as refused:
        parse_table(
            """seed: x
rules:
  - match: {kind: slave, user: "(", colour: red}
    stages:
      - {lasts: 5, jitter: 3s, memory: 1kb}
      - {lasts: forever, exit: 3}
      - {lasts: 1s, lasts: 2s, jitter: 2s, exit: {code: 300, probability: 7}, memory: [1 MB], cpu: x}
  - {run: fake, stages: []}
  - {name: a}
  - {name: a, stages: []}
  - 5
  - {run: real, match: {kind: master}, registers: true}
  - {registers: true, stages: [{lasts: 1s}]}
  - {registers: maybe, match: {kind: master}, stages: [{lasts: 1s}]}
  - {after_term: 5, stages: [{lasts: 1s}]}
  - {after_term: 5s, run: real}
more: 1
""",
            "t.yaml",
        )
    reported = [(fault.origin.line, fault.key, fault.problem) for fault in refused.value.faults]
    assert reported == [
        (1, "seed", "is not a whole number"),
        (3, "rules[1].match.kind", "is not a valid choice"),
        (
            3,
            "rules[1].match.user",
            "is not a valid regular expression: missing ), unterminated subpattern at position 0",
        ),
        (3, "rules[1].match.colour", "is not a valid key"),
        (5, "rules[1].stages[1].lasts", "is not a valid time"),
        (5, "rules[1].stages[1].memory", "is not a valid amount of memory"),
        (6, "rules[1].stages[2].lasts", "never ends, but another stage follows"),
        (6, "rules[1].stages[2].exit", "ends the container, but another stage follows"),
        (7, "rules[1].stages[3].lasts", "is written twice"),
        (7, "rules[1].stages[3].jitter", "is more than the 1000 ms that the stage lasts"),
        (7, "rules[1].stages[3].memory", "has 1 items"),
        (7, "rules[1].stages[3].cpu", "is not a valid number of vcores"),
        (7, "rules[1].stages[3].exit.code", "is more than 255"),
        (7, "rules[1].stages[3].exit.probability", "is more than 1"),
        (8, "rules[2].run", "is not a valid choice"),
        (8, "rules[2].stages", "has 0 items"),
        (9, "rules[3]", "has neither run nor stages"),
        (10, "rules[4].name", "has the same name as an earlier rule, a"),
        (10, "rules[4].stages", "has 0 items"),
        (11, "rules[5]", "is not a mapping"),
        (12, "rules[6].registers", "is not valid for a container that runs as a process"),
        (13, "rules[7].registers", "is only valid for ApplicationMasters"),
        (14, "rules[8].registers", "is not true or false"),
        (15, "rules[9].after_term", "is not a valid time"),
        (16, "rules[10].after_term", "is not valid for a container that runs as a process"),
        (17, "more", "is not a valid key"),
    ]
    assert (
        "t.yaml:5: rules[1].stages[1].lasts = '5': is not a valid time (write 250ms, 1.5s, 2m, 1h or forever)"
        in str(refused.value)
    )


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("", "is empty"),
        ("rules: []", r"rules: has 0 items \(write at least 1\)"),
        ("seed: 1", r"has no rules \(write rules: ...\)"),
        ("- 1", "is not a mapping"),
        ("rules: {", "table:1: is not valid YAML"),
        (
            "rules: [{run: real}, {name: rule 1, run: real}]",
            r"rules\[2\].name = 'rule 1': has the same name as an earlier",
        ),
        (
            "rules: [{name: rule 2, run: real}, {run: real}]",
            r"rules\[2\]: has the same name as an earlier rule, rule 2",
        ),
        ("rules: [{run: real, stages: [{lasts: 1s}]}]", r"stages: is not valid for a container that runs as a process"),
        ("rules: [{stages: [{lasts: forever, exit: 3}]}]", r"exit = '3': is not valid for a stage that never ends"),
        (
            "rules: [{stages: [{lasts: forever, jitter: 5%}]}]",
            r"jitter = '5%': is not valid for a stage that never ends",
        ),
        ("rules: [{stages: [{lasts: 1s, exit: 3}, {lasts: 0}]}]", r"stages\[1\].exit = '3': ends the container, but"),
        ("rules: [{run: real, match: {vcores: {at_least: 3, at_most: 2}}}]", "at_most = '2': is less than at_least, 3"),
        ("rules: [{run: real, match: {vcores: x}}]", r"vcores = 'x': is not a whole number \(write a whole number\)$"),
        ("rules: [{run: real, match: {user: ''}}]", "user = '': is empty"),
        ("rules: [{run: real, match: {user: 'a{9999999999}'}}]", "is not a valid regular expression: the repetition"),
        (f"rules: [{{stages: [{{lasts: {'9' * 400}h}}]}}]", "is not a valid time"),
    ],
)
def test_a_file_that_is_not_a_table_is_refused(text: str, reported: str) -> None:
    with pytest.raises(ConfigurationException, match=reported):
        parse_table(text)


def test_an_empty_pattern_matches_if_the_variable_is_set() -> None:
    (rule,) = parse_table("rules: [{run: real, match: {environment: {ROLE: ''}}}]").rules
    assert rule.match.environment == (("ROLE", ""),)


def test_the_setting_names_a_file_or_the_ready_made_table(tmp_path: Path) -> None:
    def read(name: str, **more: str) -> EmulationTable | None:
        return read_emulation(Configuration.of({"yarn.yarnling.emulation.table": name} | more))

    assert read_emulation(Configuration.of({})) is None
    ready_made = read("default")
    assert ready_made is not None
    assert ready_made.rule_for(TASK) is not None
    assert ready_made.rule_for(replace(TASK, is_master=True)) is None
    path = tmp_path / "t.yaml"
    path.write_text("seed: 3\nrules: [{stages: [{lasts: 1s}]}]")
    one = read(str(path))
    assert one == EmulationTable((Rule("rule 1", Match(), (EmulationStage(1000),)),), 3)
    seeded = read(str(path), **{"yarn.yarnling.emulation.seed": "4"})
    assert seeded is not None
    assert seeded.seed == 4
    path.write_text("seed: 5\nrules: [{stages: [{lasts: 1s}]}]")
    os.utime(path, ns=(1, 1))
    again = read(str(path))
    assert again is not None
    assert again.seed == 5
    with pytest.raises(ConfigurationException, match=r"none\.yaml: cannot be read: No such file"):
        read(str(tmp_path / "none.yaml"))
