"""When a process tree exceeds its memory limits, and the diagnostics of the container then."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nm.core.container_limits import TREE_CHARS_MAX, MemoryLimits, ProcessSample, binary, check_memory
from nm.core.settings import CoreSettings
from tests.nm.nodes import container_id

MB = 1 << 20
PAGE = 4096
LIMITS = MemoryLimits(128 * MB, int(2.1 * 128 * MB))


def process(pid: int, resident_mb: int = 1, virtual_mb: int = 1, age: int = 2) -> ProcessSample:
    pages = resident_mb * MB // PAGE
    return ProcessSample(pid, 1, 10, 10, "work", 5, 7, virtual_mb * MB, pages, ("work", "-x"), age)


@pytest.mark.parametrize(
    ("tree", "status"),
    [
        ([process(10, 128)], None),
        ([process(10, 129)], -104),
        ([process(10, 129, age=1)], None),
        ([process(10, 256, age=1)], None),
        ([process(10, 257, age=1)], -104),
        ([process(10, 100), process(11, 100, age=1)], None),
        ([process(10, 100), process(11, 100)], -104),
        ([process(10, 1, 268)], None),
        ([process(10, 1, 269)], -103),
        ([process(10, 1000, 1000)], -103),
    ],
)
def test_a_tree_exceeds_the_limit_by_its_older_processes_or_twice_the_limit_by_all(
    tree: list[ProcessSample], status: int | None
) -> None:
    """A process that forks is counted twice for a moment; virtual memory is checked first."""
    excess = check_memory(container_id(1), tree, LIMITS, PAGE)
    assert (excess and excess.exit_status) == status


@pytest.mark.case("H4")
def test_the_message_has_the_numbers_and_the_processes() -> None:
    """The format is that of exit-memory-cases.json."""
    excess = check_memory(container_id(1), [process(10, 100, 150), process(11, 107, 60)], LIMITS, PAGE)
    assert excess is not None
    assert excess.diagnostics == (
        f"Container [pid=10,containerID={container_id(1)}] is running {79 * MB}B beyond the 'PHYSICAL' memory limit. "
        "Current usage: 207 MB of 128 MB physical memory used; 210 MB of 268.8 MB virtual memory used. "
        f"Killing container.\nDump of the process-tree for {container_id(1)} :\n"
        "\t|- PID PPID PGRPID SESSID CMD_NAME USER_MODE_TIME(MILLIS) SYSTEM_TIME(MILLIS) VMEM_USAGE(BYTES) "
        "RSSMEM_USAGE(PAGES) FULL_CMD_LINE\n"
        f"\t|- 10 1 10 10 (work) 5 7 {150 * MB} 25600 work -x \n"
        f"\t|- 11 1 10 10 (work) 5 7 {60 * MB} 27392 work -x \n"
    )


def test_a_long_list_of_processes_is_cut_so_that_the_reason_stays_in_the_diagnostics() -> None:
    """A fork bomb: of the diagnostics the NodeManager keeps the last 10,000 characters, so the first line would go."""
    tree = [process(10 + number) for number in range(300)]
    excess = check_memory(container_id(1), tree, LIMITS, PAGE)
    assert excess is not None
    assert len(excess.diagnostics) < TREE_CHARS_MAX + 1000 < CoreSettings().diagnostics_max_chars
    *_, last, rest = excess.diagnostics.splitlines()
    assert last.endswith(" work -x ")
    shown = excess.diagnostics.count(" work -x \n")
    assert shown > 100
    assert rest == f"\t|- and {300 - shown} more"


def test_a_long_command_line_is_cut() -> None:
    long = replace(process(10, 200), command_line=("work", "x" * 100_000))
    excess = check_memory(container_id(1), [long, process(11)], LIMITS, PAGE)
    assert excess is not None
    assert len(excess.diagnostics) < TREE_CHARS_MAX + 1000
    assert "(work) 5 7" in excess.diagnostics
    assert excess.diagnostics.endswith("xxx...\n\t|- 11 1 10 10 (work) 5 7 1048576 256 work -x \n")


def test_a_check_can_be_left_out() -> None:
    tree = [process(10, 1000, 1000)]
    only_physical = MemoryLimits(128 * MB, 128 * MB, check_virtual=False)
    excess = check_memory(container_id(1), tree, only_physical, PAGE)
    assert excess is not None
    assert excess.exit_status == -104
    nothing = MemoryLimits(1, 1, check_physical=False, check_virtual=False)
    assert check_memory(container_id(1), tree, nothing, PAGE) is None


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0"),
        (1023, "1023"),
        (1024, "1 K"),
        (1536, "1.5 K"),
        (128 * MB, "128 M"),
        (217_284_608, "207.2 M"),
        (281_857_229, "268.8 M"),
        ((1 << 30) - 1, "1.0 G"),
        (5 << 40, "5 T"),
    ],
)
def test_amounts_have_binary_prefixes(amount: int, text: str) -> None:
    """StringUtils.TraditionalBinaryPrefix.long2String with one decimal."""
    assert binary(amount) == text
