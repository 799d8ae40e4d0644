"""The auxiliary services of a node, which yarn.nodemanager.aux-services names; there is one kind (AuxServices)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

from nm.shell.host_environment import HostEnvironment
from yarn.ids import ApplicationId
from yarn.settings import nodemanager


class AuxiliaryService(Protocol):
    """A service that applications use on the node. `metadata` is what startContainers returns for it."""

    @property
    def metadata(self) -> bytes: ...

    def init_application(self, application_id: ApplicationId, user: str, data: bytes) -> None:
        """Serve an application; `data` is the service data of one of its containers."""

    def stop_application(self, application_id: ApplicationId) -> None:
        """Stop serving an application, which has ended on the node; it may not have used the service."""


class AuxiliaryServices:
    """The services of one node by their names."""

    def __init__(self, services: Mapping[str, AuxiliaryService]) -> None:
        self._services = services

    @staticmethod
    @asynccontextmanager
    async def opened(environment: HostEnvironment, host: str) -> AsyncIterator[AuxiliaryServices]:
        """The configured services of the node on `host`, while the context is open.

        Raises YarnException if a service cannot start. Unknown names were refused with the configuration.
        """
        if nodemanager.MAPREDUCE_SHUFFLE not in nodemanager.AUX_SERVICES.of(environment.conf):
            yield AuxiliaryServices({})
            return
        # Imported here: a NodeManager without the service is as small as before.
        from nm.shuffle.server import ShuffleHandler, ShuffleSettings

        handler = ShuffleHandler(environment.directories[host], ShuffleSettings.read(environment.conf))
        try:
            await handler.listen(environment.listening.host if host == environment.hosts[0] else host)
            yield AuxiliaryServices({nodemanager.MAPREDUCE_SHUFFLE: handler})
        finally:
            await handler.close()

    @property
    def metadata(self) -> dict[str, bytes]:
        """{name: what startContainers returns for the service}."""
        return {name: service.metadata for name, service in self._services.items()}

    def init_application(self, name: str, application_id: ApplicationId, user: str, data: bytes) -> None:
        """Pass an application's service data to a service."""
        self._services[name].init_application(application_id, user, data)

    def stop_application(self, application_id: ApplicationId) -> None:
        """Have all services forget an application."""
        for service in self._services.values():
            service.stop_application(application_id)
