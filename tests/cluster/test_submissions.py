"""The benchmark of submissions, small: each submission is answered, each application succeeds, many run at once."""

from __future__ import annotations

import pytest

from benchmarks.submit import Sizes, run

pytestmark = pytest.mark.cluster

SMALL = Sizes(submitted=300, running=60, nodes=40, pack=20, window=32, hold_s=1.0)


async def test_concurrent_submissions_all_succeed() -> None:
    figures = await run(SMALL, lambda text: None)
    assert figures["submissions_per_s"] > 0
    assert figures["rm_pss_mb"] > 0
