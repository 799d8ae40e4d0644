"""A process imports only the protocols that it uses: most of an AM's start is imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROTOCOLS = {"admin", "client", "client_cluster", "container_management", "inspection", "master", "pack", "tracker"}
HEAVY = {
    "argparse",
    "difflib",
    "email",
    "html",
    "http.client",
    "pydantic",
    "rich",
    "typer",
    "urllib.request",
    "xml.sax",
    "starlette",
    "uvicorn",
    "prometheus_client",
    "wire.web",
    "yaml",
}


def imported(module: str) -> set[str]:
    """The names of all that is there once a new process has imported the module."""
    command = [sys.executable, "-c", f"import sys, {module}; print(*sys.modules)"]
    return set(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split())


def spoken(modules: set[str]) -> set[str]:
    return {name for name in PROTOCOLS if f"wire.protocols.{name}" in modules}


@pytest.mark.slow
@pytest.mark.parametrize("program", ["distributed_shell", "elastic", "gang"])
def test_an_am_imports_its_two_protocols_and_nothing_heavy(program: str) -> None:
    modules = imported(f"am.programs.{program}.application_master")
    assert spoken(modules) == {"master", "container_management"}
    assert HEAVY & modules == set()
    assert {"yarn.applications", "yarn.queues", "yarn.protocols.client"} & modules == set()


def test_a_node_manager_imports_its_protocols_and_nothing_heavy() -> None:
    modules = imported("nm.daemon")
    assert spoken(modules) == {"container_management", "master", "tracker"}
    assert HEAVY & modules == set()


def test_a_resource_manager_without_web_services_does_not_import_them() -> None:
    assert {"starlette", "uvicorn", "prometheus_client", "wire.web"} & imported("rm.daemon") == set()


def test_a_node_manager_without_auxiliary_services_and_aggregation_imports_nothing_of_them() -> None:
    modules = imported("nm.daemon")
    assert {
        "h11",
        "nm.shuffle",
        "nm.launcher.log_aggregation",
        "wire.files.tfile",
        "wire.files.shuffle",
    } & modules == set()


def test_the_shuffle_service_imports_its_http_library_with_the_first_connection() -> None:
    modules = imported("nm.shuffle.server")
    assert "nm.shuffle.map_outputs" in modules
    assert {"h11", "nm.shuffle.connection"} & modules == set()
