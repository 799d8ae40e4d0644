"""A node's two ways to run a container, as a process or emulated, behind one launcher: the core says which."""

from __future__ import annotations

from nm.core.effects import ChangeMonitoring, LaunchContainer, SignalContainer
from nm.core.memory_limits import ProcessSample
from nm.launcher.containers_launcher import ContainersLauncher
from nm.launcher.emulated_launcher import EmulatedLauncher
from yarn.ids import ContainerId


class Launchers:
    """Hands each container to the launcher that it belongs to."""

    def __init__(self, real: ContainersLauncher, emulated: EmulatedLauncher) -> None:
        self.real = real
        self.emulated = emulated

    @property
    def has_launched(self) -> bool:
        """True once a process was started."""
        return self.real.has_launched

    def launch(self, effect: LaunchContainer) -> None:
        if effect.emulation:
            self.emulated.launch(effect)
        else:
            self.real.launch(effect)

    def signal(self, effect: SignalContainer) -> None:
        if self.emulated.has(effect.container_id):
            self.emulated.signal(effect)
        else:
            self.real.signal(effect)

    def change_cpu(self, effect: ChangeMonitoring) -> None:
        self.real.change_cpu(effect)

    def is_running(self, container_id: ContainerId) -> bool:
        return self.real.is_running(container_id) or container_id in self.emulated.running

    def pid_of(self, container_id: ContainerId) -> int | None:
        """The session leader's process id, None while there is none (yet, any more)."""
        return self.real.pid_of(container_id)

    def emulated_sample(self, container_id: ContainerId) -> ProcessSample | None:
        """What an emulated container uses; None if it is none."""
        return self.emulated.sample(container_id)

    def kill_all(self) -> None:
        self.real.kill_all()
        self.emulated.kill_all()

    async def wait_idle(self) -> None:
        """Return once nothing runs."""
        await self.real.idle.wait()
        await self.emulated.idle.wait()
