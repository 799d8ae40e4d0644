"""Tests of a pyspark job on a YARN cluster of this machine.

    pip install pyspark pytest .             # in a checkout of yarnling
    pytest examples/spark

Spark is in client mode: the driver is in pytest's process, its executors are containers of the cluster. The JVM behind
pyspark reads HADOOP_CONF_DIR when it starts and then lives as long as pytest, so all tests share one cluster.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.importorskip("pyspark", reason="pyspark is not installed (pip install pyspark)")

import pyspark
from pyspark.sql import SparkSession
from word_count import hosts, word_counts

pytestmark = pytest.mark.yarn_cluster(nodes=3, hadoop=True, scope="session")

# Small, and without what a test does not need.
SETTINGS = {
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.instances": "2",
    # Otherwise a web server for each session, on all addresses of the machine.
    "spark.ui.enabled": "false",
    # Otherwise hundreds of MB are copied for each application.
    "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent}/jars/*",
}


@pytest.fixture
def spark(yarn_cluster, monkeypatch) -> Iterator[SparkSession]:
    """A session whose executors run on the cluster."""
    # Otherwise the driver listens on the machine's own address, not on loopback.
    variables = {**yarn_cluster.hadoop_environment, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    builder = SparkSession.builder.master("yarn").appName("test")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    # `word_count` is not installed where the executors run.
    session.sparkContext.addPyFile(str(Path(__file__).with_name("word_count.py")))
    yield session
    session.stop()


def test_words_are_counted(spark):
    assert word_counts(spark, ["to be or", "not to be"]) == {"to": 2, "be": 2, "or": 1, "not": 1}


def test_tasks_run_on_nodes_of_the_cluster(spark, yarn_cluster):
    assert hosts(spark) <= {node.place.host for node in yarn_cluster.nodes}
