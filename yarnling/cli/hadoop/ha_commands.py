"""The commands of `yarnling rmadmin` for several ResourceManagers (Hadoop's HAAdmin): the state of each."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from wire.files.hadoop_xml import load_configuration
from wire.protocols.ha import HAServiceProtocol
from yarn.configuration import Configuration
from yarn.errors import YarnException
from yarn.settings import high_availability, resourcemanager
from yarn.states import HAServiceState, RequestSource
from yarnling.cli.hadoop.verb import REFUSED
from yarnling.cli.shared.output import print_json
from yarnling.cluster.resource_managers import STATE_TIMEOUT_S, admin_of, ids_in
from yarnling.cluster.state import ClusterState
from yarnling.report.escapes import shown

USAGE = {
    "transitionToActive": "[--forceactive] <serviceId>",
    "transitionToStandby": "<serviceId>",
    "getServiceState": "<serviceId>",
    "getAllServiceState": "",
    "checkHealth": "<serviceId>",
}
"""{command: its arguments}, in the order of Hadoop's usage."""
FORCE_ACTIVE, FORCE_MANUAL = "forceactive", "forcemanual"
_OTHERS_TIMEOUT_S = 5.0
_CONFIRM = (
    "--forcemanual overrides automatic failover. The ResourceManagers elect the active one again a second later.\n"
    "Continue? (Y or N) "
)


class _Stop(Exception):
    """The command has failed and has said why."""


class HACommands:
    """The commands for one cluster, as `user`."""

    def __init__(self, state: ClusterState, conf: Configuration, user: str, *, as_json: bool) -> None:
        self._addresses = state.addresses
        self._conf = conf
        self._user = user
        self._as_json = as_json
        self._ids = ids_in(state.addresses)
        self._is_automatic = high_availability.AUTOMATIC_FAILOVER_ENABLED.of(conf)

    @staticmethod
    def of(state: ClusterState, user: str, *, as_json: bool) -> HACommands:
        return HACommands(state, load_configuration(Path(state.conf_dir)), user, as_json=as_json)

    async def run(self, name: str, words: Sequence[str]) -> int:
        """Run a command; returns the exit status. Messages and exit statuses are Hadoop's."""
        flags = [word.lstrip("-") for word in words if word.startswith("-")]
        ids = [word for word in words if not word.startswith("-")]
        known = {"transitionToActive": (FORCE_ACTIVE, FORCE_MANUAL), "transitionToStandby": (FORCE_MANUAL,)}
        strange = [flag for flag in flags if flag not in known.get(name, ())]
        try:
            if strange:
                self._fail(f"{name}: Unrecognized option: --{strange[0]}", name)
            if name == "getAllServiceState":
                await self._print_all()
                return 0
            if len(ids) != 1:
                self._fail(f"{name}: incorrect number of arguments", name)
            await self._run(name, ids[0], flags)
        except _Stop:
            return REFUSED
        except YarnException as error:
            sys.stderr.write(f"Operation failed: {shown(error.message)}\n")
            return REFUSED
        return 0

    async def _run(self, name: str, rm_id: str, flags: Sequence[str]) -> None:
        self._check_id(rm_id)
        if name == "getServiceState":
            state = await self._state(rm_id, STATE_TIMEOUT_S)
            self._show({"id": rm_id, "state": _said(state)}, _said(state))
        elif name == "checkHealth":
            async with self._rm(rm_id, STATE_TIMEOUT_S) as rm:
                await rm.monitor_health()
        else:
            await self._change(name, rm_id, flags)

    async def _change(self, name: str, rm_id: str, flags: Sequence[str]) -> None:
        source = RequestSource.REQUEST_BY_USER
        if FORCE_MANUAL in flags:
            _confirm()
            source = RequestSource.REQUEST_BY_USER_FORCED
        if name == "transitionToActive" and FORCE_ACTIVE not in flags:
            await self._check_no_other_is_active(rm_id, source)
        self._check_manual(rm_id, source)
        async with self._rm(rm_id) as rm:
            change = rm.transition_to_active if name == "transitionToActive" else rm.transition_to_standby
            await change(source)

    async def _print_all(self) -> None:
        found = {}
        for rm_id in self._ids:
            address = self._addresses[f"{resourcemanager.ADMIN_ADDRESS.key}.{rm_id}"]
            try:
                found[address] = _said(await self._state(rm_id, STATE_TIMEOUT_S))
            except YarnException as error:
                found[address] = f"Failed to connect: {error.message}"
        self._show(found, "\n".join(f"{address:<50} {state:<10}" for address, state in found.items()))

    async def _check_no_other_is_active(self, rm_id: str, source: RequestSource) -> None:
        for other in self._ids:
            if other == rm_id:
                continue
            self._check_manual(other, source)
            try:
                state = await self._state(other, _OTHERS_TIMEOUT_S)
            except YarnException as error:
                self._fail(f"Unexpected error occurred  {error.message}", "transitionToActive")
            if state is HAServiceState.ACTIVE:
                self._fail(f"transitionToActive: Node {other} is already active", "transitionToActive")

    def _check_manual(self, rm_id: str, source: RequestSource) -> None:
        if self._is_automatic and source is not RequestSource.REQUEST_BY_USER_FORCED:
            sys.stderr.write(
                f"Automatic failover is enabled for {rm_id}\n"
                "Refusing to manually manage HA state, since it may cause\n"
                "a split-brain scenario or other incorrect state.\n"
                "If you are very sure you know what you are doing, please \n"
                f"specify the --{FORCE_MANUAL} flag.\n"
            )
            raise _Stop

    def _check_id(self, rm_id: str) -> None:
        if rm_id not in self._ids:
            ids = "".join(f"{known} " for known in self._ids)
            sys.stderr.write(f"Illegal argument: {shown(rm_id)} is not a valid serviceId. It should be one of {ids}\n")
            raise _Stop

    def _fail(self, message: str, name: str) -> NoReturn:
        sys.stderr.write(f"{shown(message)}\nUsage: rmadmin [-{name}{f' {USAGE[name]}' if USAGE[name] else ''}]\n")
        raise _Stop

    async def _state(self, rm_id: str, timeout_s: float) -> HAServiceState:
        async with self._rm(rm_id, timeout_s) as rm:
            return (await rm.get_service_status()).state

    def _rm(self, rm_id: str, timeout_s: float | None = None) -> HAServiceProtocol:
        return admin_of(self._addresses, rm_id, self._conf, user=self._user, timeout_s=timeout_s)

    def _show(self, facts: object, text: str) -> None:
        if self._as_json:
            print_json(facts)
        else:
            sys.stdout.write(f"{text}\n")


def _said(state: HAServiceState) -> str:
    """The state as Hadoop prints it."""
    return state.name.lower()


def _confirm() -> None:
    """Ask on the terminal. Raises _Stop for any other answer than yes."""
    sys.stderr.write(_CONFIRM)
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        sys.stderr.write("Aborted\n")
        raise _Stop
