"""Runs the simulations of a search on a Dask cluster, as a sweep does. Needs distributed (the extra `sweep`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from distributed import Client, as_completed

from yarn.errors import InternalError
from yarnling.search.run_cache import Refused
from yarnling.whatif.figures import Figures
from yarnling.whatif.parallel import Report, Work
from yarnling.whatif.sides import SideRun


class DaskRunner:
    """Runs simulations on the workers of a Dask cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def outcomes(
        self, work: Work[SideRun, Figures | Refused], runs: Sequence[SideRun], report: Report
    ) -> Iterator[tuple[int, Figures | Refused]]:
        """The number of each run, from 0, with the outcome of its work, in the order in which they end.

        Raises InternalError if a run fails, or its workers have died again and again.
        """
        numbers = {self._client.submit(run_alone, work, run, pure=False): number for number, run in enumerate(runs)}
        for future, outcome in as_completed(numbers, with_results=True, raise_errors=False):
            if future.status != "finished":
                raise InternalError(f"a run on the Dask cluster has failed: {future.exception()}")
            yield numbers[future], outcome


def run_alone(work: Work[SideRun, Figures | Refused], run: SideRun) -> Figures | Refused:
    """The outcome of the work, of which nobody follows the progress."""
    return work(run, lambda _: True)
