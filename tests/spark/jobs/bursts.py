"""Runs two bursts of tasks with a shuffle each; waits after each for the file `go-1` or `go-2` in the directory given.

The tasks of a burst wait for the file `enough-1` or `enough-2`, so that they are there until executors have come.
"""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

directory = Path(sys.argv[1])


def wait_for(name: str) -> None:
    while not (directory / name).exists():
        time.sleep(0.1)


def waited(number: int, burst: int) -> tuple[int, int]:
    wait_for(f"enough-{burst}")
    return number % 3, number


spark = SparkSession.builder.getOrCreate()
results = []
for burst in (1, 2):
    pairs = spark.sparkContext.parallelize(range(30), 6).map(lambda number, burst=burst: waited(number, burst))
    results.append(sorted(pairs.reduceByKey(lambda one, other: one + other, 3).collect()))
    (directory / f"done-{burst}").touch()
    wait_for(f"go-{burst}")
spark.stop()
(directory / "result.json").write_text(json.dumps(results))
