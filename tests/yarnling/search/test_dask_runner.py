"""Runs of a search on a Dask cluster: the same outcomes as in this process."""

from __future__ import annotations

import pytest

pytest.importorskip("distributed")

from distributed import Client

from tests.yarnling.search.imagined import sides
from yarn.errors import InternalError
from yarnling.search.dask_runner import DaskRunner
from yarnling.search.run_cache import Refused
from yarnling.search.trials import RunnerInThisProcess, run_or_refuse
from yarnling.whatif.figures import Figures
from yarnling.whatif.run import Progress
from yarnling.whatif.sides import SideRun

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


def fails(run: SideRun, progress: Progress) -> Figures | Refused:
    raise RuntimeError("no such luck")


def test_the_outcomes_are_those_of_this_process_and_a_failure_is_named() -> None:
    runs = sides(2)
    with Client(processes=False, dashboard_address=None, n_workers=1, threads_per_worker=1) as client:
        found = dict(DaskRunner(client).outcomes(run_or_refuse, runs, lambda *_: None))
        assert found == dict(RunnerInThisProcess().outcomes(run_or_refuse, runs, lambda *_: None))
        with pytest.raises(InternalError, match="no such luck"):
            list(DaskRunner(client).outcomes(fails, runs[:1], lambda *_: None))
