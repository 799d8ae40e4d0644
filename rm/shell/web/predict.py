"""Predictions by REST: what a change of queues would mean for the recorded day.

    POST   /ws/yarnling/v1/predict        a change as for PUT scheduler-conf; the headline of the comparison; `?seeds=`
    GET    /ws/yarnling/v1/predict/{id}   the same, of one of the last predictions
    DELETE /ws/yarnling/v1/predict/{id}   stops it

An answer waits WAIT_S at most: then its status is 202, its Location is that of the prediction, and a GET waits again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from rm.core.administration import check_queues
from rm.core.resource_manager import ResourceManagerCore
from rm.scheduler.config.mutation import changed, values_of, with_values
from rm.shell.admin_service import AdminService
from rm.shell.predictions import KEPT_MAX, SEEDS_MAX, Prediction, PredictionRefused, Predictions
from rm.shell.web.live import BASE
from rm.shell.web.paths import asker_of
from rm.shell.web.scheduler_conf import read_change, refusal_text
from wire.web.application import JSON, JSON_UTF8, TextAnswer, WebRoute
from wire.web.errors import PlainRefusal
from wire.web.request import WebRequest
from yarn.errors import YarnException

PATH = f"{BASE}/predict"
WAIT_S = 45.0
"""Less than the time that an answer may take."""


class PredictService:
    """Answers the calls; only for administrators."""

    def __init__(self, core: ResourceManagerCore, admins: AdminService, predictions: Predictions) -> None:
        self._core = core
        self._admins = admins
        self._predictions = predictions

    def rows(self) -> Iterator[WebRoute]:
        """The routes."""
        yield WebRoute("POST", PATH, self._post, (JSON,))
        yield WebRoute("GET", f"{PATH}/{{number}}", self._get, (JSON,))
        yield WebRoute("DELETE", f"{PATH}/{{number}}", self._delete, (JSON,))

    async def _post(self, request: WebRequest) -> TextAnswer:
        self._check_admin(request)
        change, seeds = read_change(request.body()), _seeds(request)
        before = self._core.context.scheduler.context.settings.source
        try:
            self._predictions.check()
            after = with_values(before, changed(values_of(before), change))
            check_queues(self._core.context, after)
            prediction = self._predictions.start(request.user, before, after, seeds)
        except PredictionRefused as refusal:
            raise PlainRefusal(409, refusal.message) from None
        except YarnException as error:
            raise PlainRefusal(400, refusal_text(error)) from None
        return await self._answer(prediction, f"{request.url.rstrip('/')}/{prediction.number}")

    async def _get(self, request: WebRequest) -> TextAnswer:
        return await self._answer(self._found(request), request.url)

    async def _delete(self, request: WebRequest) -> TextAnswer:
        prediction = self._found(request)
        await self._predictions.stop(prediction)
        return await self._answer(prediction, request.url)

    async def _answer(self, prediction: Prediction, url: str) -> TextAnswer:
        await self._predictions.wait(prediction, WAIT_S)
        running = prediction.state == "RUNNING"
        return TextAnswer(json.dumps(prediction.plain()), JSON_UTF8, 202 if running else 200, url if running else None)

    def _found(self, request: WebRequest) -> Prediction:
        self._check_admin(request)
        text = request.path["number"]
        found = self._predictions.find(int(text)) if text.isascii() and text.isdigit() and len(text) < 10 else None
        if found is None:
            raise PlainRefusal(404, f"prediction {text[:100]!r} does not exist (the last {KEPT_MAX} are kept)")
        return found

    def _check_admin(self, request: WebRequest) -> None:
        if not self._admins.is_admin(asker_of(request)):
            raise PlainRefusal(403, f"user {request.user} is no administrator (yarn.admin.acl lists them)")


def _seeds(request: WebRequest) -> int:
    """The number of simulations of each side. Raises PlainRefusal."""
    text = request.first("seeds") or "1"
    if not (text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= SEEDS_MAX):
        raise PlainRefusal(400, f"seeds = {text[:100]!r}: must be a number from 1 to {SEEDS_MAX}")
    return int(text)
