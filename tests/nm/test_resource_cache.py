"""Copies of files: which containers share a copy, and when a copy is deleted."""

from __future__ import annotations

import pytest

from nm.core.effects import DeleteResource, FetchResource, LaunchContainer, SendHeartbeat
from nm.core.events import (
    ContainerExited,
    ContainerLaunched,
    ResourceFetched,
    ResourceFetchFailed,
    StopContainers,
)
from nm.core.settings import CoreSettings
from tests.nm.nodes import APP, OTHER_ATTEMPT, Node, container_id, container_token, nm_token
from yarn.containers import ContainerLaunchContext, LocalResource
from yarn.machine import Tick
from yarn.states import LocalResourceType, LocalResourceVisibility

PUBLIC, PRIVATE, APPLICATION = (
    LocalResourceVisibility.PUBLIC,
    LocalResourceVisibility.PRIVATE,
    LocalResourceVisibility.APPLICATION,
)


@pytest.fixture
def node() -> Node:
    return Node().register()


def file(
    name: str = "words", visibility: LocalResourceVisibility = APPLICATION, timestamp_ms: int = 1
) -> LocalResource:
    return LocalResource(f"file:/{name}", 100, timestamp_ms, LocalResourceType.FILE, visibility)


def launch(**links: LocalResource) -> ContainerLaunchContext:
    return ContainerLaunchContext(("cat words",), local_resources=links)


def test_a_container_is_launched_when_its_last_file_was_fetched(node: Node) -> None:
    node.start(1, launch=launch(a=file("a"), b=file("b")))
    first, second = node.of(FetchResource)
    node.step(ResourceFetched(second.fetch_id, "/cache/11/b", 20))
    assert node.of(LaunchContainer) == []
    node.after(70, ResourceFetched(first.fetch_id, "/cache/10/a", 10))
    started = node.one(LaunchContainer)
    assert started.links == {"b": "/cache/11/b", "a": "/cache/10/a"}
    assert started.localization_counters == "30,0,2,0,70"


def test_two_containers_share_one_copy(node: Node) -> None:
    node.start(1, launch=launch(words=file()))
    fetch = node.one(FetchResource)
    node.start(2, launch=launch(words=file()))
    assert node.of(FetchResource) == []
    node.step(ResourceFetched(fetch.fetch_id, "/cache/10/words", 100))
    assert [effect.container_id for effect in node.of(LaunchContainer)] == [container_id(1), container_id(2)]
    node.start(3, launch=launch(words=file()))
    assert node.one(LaunchContainer).localization_counters == "0,100,0,1,0"


def test_a_changed_file_is_another_copy(node: Node) -> None:
    node.start(1, launch=launch(words=file()))
    node.start(2, launch=launch(words=file(timestamp_ms=2)))
    assert node.one(FetchResource).number == 11


@pytest.mark.parametrize(("visibility", "is_shared"), [(PUBLIC, True), (PRIVATE, True), (APPLICATION, False)], ids=str)
def test_which_containers_share_a_copy(node: Node, visibility: LocalResourceVisibility, is_shared: bool) -> None:
    """Applications of one user share PUBLIC and PRIVATE copies; each cache numbers its own directories."""
    node.start(1, launch=launch(words=file(visibility=visibility)))
    token = container_token(1, attempt=OTHER_ATTEMPT)
    node.start(tokens=(token,), caller=nm_token(OTHER_ATTEMPT), launch=launch(words=file(visibility=visibility)))
    assert [fetch.number for fetch in node.of(FetchResource)] == ([] if is_shared else [10])


def test_a_file_under_two_link_names_gets_the_last_one(node: Node) -> None:
    """ResourceSet is keyed by the file (golden case "one resource under two link names")."""
    node.start(1, launch=launch(a=file(), b=file()))
    node.step(ResourceFetched(node.one(FetchResource).fetch_id, "/cache/10/words", 1))
    assert node.one(LaunchContainer).links == {"b": "/cache/10/words"}


def test_a_file_that_cannot_be_fetched_fails_all_containers_that_wait_for_it(node: Node) -> None:
    node.start(1, launch=launch(words=file()))
    fetch = node.one(FetchResource)
    node.start(2, launch=launch(words=file()))
    node.step(ResourceFetchFailed(fetch.fetch_id, "File file:/words does not exist"))
    ends = node.one(SendHeartbeat).request.containers
    node.answer()
    ends = (*ends, *node.one(SendHeartbeat).request.containers)
    by_id = {end.container_id: end for end in ends if end.state.name == "COMPLETE"}
    assert set(by_id) == {container_id(1), container_id(2)}
    for end in by_id.values():
        assert end.exit_status == -1000
        assert end.diagnostics.endswith("File file:/words does not exist\n")


def test_a_file_that_could_not_be_fetched_is_fetched_again_for_the_next_container(node: Node) -> None:
    node.start(1, launch=launch(words=file()))
    node.step(ResourceFetchFailed(node.one(FetchResource).fetch_id, "no"))
    node.start(2, launch=launch(words=file()))
    assert node.one(FetchResource).number == 11


def test_a_container_that_is_killed_while_it_waits_for_files_is_never_launched(node: Node) -> None:
    node.start(1, launch=launch(words=file()))
    fetch = node.one(FetchResource)
    node.step(StopContainers(1, nm_token(), (container_id(1),)))
    (end,) = node.one(SendHeartbeat).request.containers
    assert end.exit_status == -105
    assert "Container is killed before being launched.\n" in end.diagnostics
    node.step(ResourceFetched(fetch.fetch_id, "/cache/10/words", 1))
    assert node.of(LaunchContainer) == []


def test_a_copy_that_is_fetched_after_its_applications_end_is_deleted(node: Node) -> None:
    node.start(1, launch=launch(words=file()))
    fetch = node.one(FetchResource)
    node.after(1000, Tick())
    node.answer(applications_to_clean_up=(APP,))
    node.step(ResourceFetched(fetch.fetch_id, "/cache/10/words", 1))
    assert node.one(DeleteResource).path == "/cache/10/words"


def test_unused_copies_are_deleted_when_the_caches_exceed_their_target() -> None:
    """The least recently used copies are deleted first.

    Copies in use count towards the size but stay (LocalCacheCleaner).
    """
    node = Node(CoreSettings(cache_target_bytes=250, cache_cleanup_interval_ms=60_000)).register()
    for number, name in enumerate(("old", "newer", "used"), 1):
        node.start(number, launch=launch(x=file(name, PUBLIC)))
        fetch = node.one(FetchResource)
        node.after(10, ResourceFetched(fetch.fetch_id, f"/cache/{number}/{name}", 100))
        node.step(ContainerLaunched(container_id(number), 1))
        if name != "used":
            node.step(ContainerExited(container_id(number), 1, 0))
    node.after(60_000, Tick())
    assert [effect.path for effect in node.of(DeleteResource)] == ["/cache/1/old"]
    node.start(4, launch=launch(x=file("old", PUBLIC)))
    assert node.one(FetchResource).resource.url == "file:/old"


def test_application_copies_are_not_counted_against_the_target() -> None:
    node = Node(CoreSettings(cache_target_bytes=50, cache_cleanup_interval_ms=60_000)).register()
    node.start(1, launch=launch(x=file()))
    node.step(ResourceFetched(node.one(FetchResource).fetch_id, "/cache/10/words", 100))
    node.step(ContainerLaunched(container_id(1), 1))
    node.step(ContainerExited(container_id(1), 1, 0))
    node.after(60_000, Tick())
    assert node.of(DeleteResource) == []
