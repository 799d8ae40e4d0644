"""The outcomes of containers in columns, and result.json, which is written and read in parts."""

from __future__ import annotations

import json
import pickle
import tracemalloc
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.yarnling.whatif.outcomes import application, busy_day, container, gigabytes, result
from yarn.resource import Resource
from yarnling.whatif import result_file
from yarnling.whatif.containers import ContainerOutcome, ContainerOutcomes, End
from yarnling.whatif.result_file import decode_result, encode_result, read_result, write_result

TIMES = st.none() | st.integers(0, 1 << 40)
NAMES = st.text(max_size=5) | st.sampled_from(['"', '},{"application":', "\\"])
ROWS = st.lists(
    st.builds(
        ContainerOutcome,
        st.just(0),
        st.integers(0, 1 << 40),
        TIMES,
        TIMES,
        TIMES,
        st.none() | st.sampled_from(End),
        st.builds(Resource, st.integers(0, 1 << 40), st.integers(0, 99), st.sampled_from([(), (("gpu", 2),)])),
        st.booleans(),
        NAMES,
        NAMES,
    )
)


@given(ROWS)
def test_columns_give_back_their_rows(rows: list[ContainerOutcome]) -> None:
    outcomes = ContainerOutcomes.of(rows)
    assert list(outcomes) == rows == [outcomes[position] for position in range(len(outcomes))]
    assert outcomes == pickle.loads(pickle.dumps(outcomes))
    assert (outcomes == ContainerOutcomes.of(rows[1:])) == (not rows)


def test_a_container_is_followed_through_its_life() -> None:
    outcomes = ContainerOutcomes()
    assert outcomes.request(3, 100, gigabytes(4), is_am=True) == range(1)
    assert outcomes.request(3, 200, gigabytes(8), count=3) == range(1, 4)
    outcomes.allocate(1, 250, gigabytes(9), "h1")
    outcomes.locate(1, "NODE_LOCAL")
    outcomes.allocate(2, 300, gigabytes(8), "h2")
    outcomes.end(2, End.FAILED, 400)
    outcomes.end(2, End.PREEMPTED)
    outcomes.withdraw(3, 500)
    assert [outcomes.has_ended(position) for position in range(4)] == [False, False, True, False]
    assert list(outcomes) == [
        ContainerOutcome(3, 100, None, None, None, None, gigabytes(4), is_am=True),
        ContainerOutcome(3, 200, 250, None, None, End.RUNNING, gigabytes(9), locality="NODE_LOCAL", host="h1"),
        ContainerOutcome(3, 200, 300, None, 400, End.PREEMPTED, gigabytes(8), host="h2"),
        ContainerOutcome(3, 200, None, 500, None, None, gigabytes(8)),
    ]


def test_a_container_takes_sixty_bytes_at_most() -> None:
    count, outcomes = 20_000, ContainerOutcomes()
    tracemalloc.start()
    try:
        for number in range(count):
            (position,) = outcomes.request(number, 1_000_000 + number, gigabytes(4))
            outcomes.allocate(position, 2_000_000 + number, gigabytes(4), f"h{number % 10}")
            outcomes.end(position, End.COMPLETED, 3_000_000 + number)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 60 * count


@given(ROWS, st.integers(1, 500))
def test_a_result_in_parts_is_the_result(rows: list[ContainerOutcome], part_bytes: int) -> None:
    outcome = result([application()], rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result_file, "_PART_BYTES", part_bytes)
        patch.setattr(result_file, "_ROWS", 2)
        written = encode_result(outcome)
        assert decode_result(written) == outcome
        assert decode_result(json.dumps(json.loads(written), indent=1).encode()) == outcome
    assert encode_result(outcome) == written


def test_a_result_file_is_what_msgspec_would_write_at_once(tmp_path: Path) -> None:
    day, path = busy_day(), tmp_path / "result.json"
    write_result(day, path)
    whole = {name: getattr(day, name) for name in day.__struct_fields__}
    whole["containers"] = list(day.containers)
    assert path.read_bytes() == msgspec.json.encode(whole, enc_hook=Resource.amounts)
    assert read_result(path) == day


def test_a_number_of_more_than_64_bits_is_refused() -> None:
    written = encode_result(result([application()], [container(12_345, 1)]))
    with pytest.raises(msgspec.ValidationError, match="more than 64 bits"):
        decode_result(written.replace(b'"requested_ms":12345', b'"requested_ms":%d' % (1 << 70)))
