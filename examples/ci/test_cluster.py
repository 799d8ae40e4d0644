"""A test on a cluster of yarnling, as a project of your own would have it (docs/testing.md)."""

import pytest


@pytest.mark.yarn_cluster(nodes=3)
def test_three_containers_run(yarn_cluster):
    result = yarn_cluster.run("echo hello", containers=3)
    assert result.succeeded
    assert result.stdout.split() == ["hello", "hello", "hello"]
