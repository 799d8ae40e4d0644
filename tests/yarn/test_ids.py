"""Ids are printed, parsed and ordered as Hadoop's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarn.errors import InvalidIdException
from yarn.ids import ApplicationAttemptId, ApplicationId, ContainerId, NodeId

application_ids = st.builds(ApplicationId, st.integers(0, (1 << 63) - 1), st.integers(0, (1 << 31) - 1))
attempt_ids = st.builds(ApplicationAttemptId, application_ids, st.integers(0, (1 << 31) - 1))
container_ids = st.builds(ContainerId, attempt_ids, st.integers(0, (1 << 50) - 1))


@given(application_ids)
def test_an_application_id_survives_print_and_parse(app_id: ApplicationId) -> None:
    assert ApplicationId.parse(str(app_id)) == app_id


@given(attempt_ids)
def test_an_attempt_id_survives_print_and_parse(attempt_id: ApplicationAttemptId) -> None:
    assert ApplicationAttemptId.parse(str(attempt_id)) == attempt_id


@given(container_ids)
def test_a_container_id_survives_print_and_parse(container_id: ContainerId) -> None:
    assert ContainerId.parse(str(container_id)) == container_id


def test_digits_are_padded_as_hadoop_pads_them() -> None:
    attempt = ApplicationAttemptId(ApplicationId(1700000000000, 7), 1)
    assert str(attempt.application_id) == "application_1700000000000_0007"
    assert str(attempt) == "appattempt_1700000000000_0007_000001"
    assert str(ContainerId(attempt, 12)) == "container_1700000000000_0007_01_000012"


def test_the_epoch_is_printed_only_after_a_restart() -> None:
    attempt = ApplicationAttemptId(ApplicationId(1, 1), 1)
    restarted = ContainerId(attempt, (3 << 40) | 5)
    assert (restarted.epoch, restarted.sequence) == (3, 5)
    assert str(restarted) == "container_e03_1_0001_01_000005"


def test_applications_are_ordered_by_time_stamp_then_number() -> None:
    assert ApplicationId(1, 9) < ApplicationId(1, 10) < ApplicationId(2, 1)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (ApplicationId.parse, "application_1"),
        (ApplicationId.parse, "application_x_0001"),
        (ApplicationAttemptId.parse, "application_1_0001"),
        (ContainerId.parse, "container_1_0001_01"),
        (NodeId.parse, "localhost"),
        (NodeId.parse, "localhost:port"),
    ],
)
def test_an_invalid_id_is_refused_with_a_valid_example(parse, text) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidIdException, match="an example of one"):
        parse(text)


def test_a_node_id_is_host_and_port() -> None:
    assert NodeId.parse("h1:45454") == NodeId("h1", 45454)
    assert str(NodeId("h1", 45454)) == "h1:45454"


def test_lists_of_nodes_are_in_the_order_of_the_numbers_in_them() -> None:
    hosts = ["127.0.0.2", "127.0.0.10", "127.0.1.1", "host", "host2", "host2b", "host10", "host" + "9" * 5000]
    nodes = [NodeId(host, port) for host in hosts for port in (80, 443)]
    backwards = nodes[::-1]
    assert sorted(backwards, key=lambda node: node.reading_order) == nodes
