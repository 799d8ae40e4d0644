"""A job to test: counts words with Spark."""

from __future__ import annotations

from pyspark.sql import SparkSession


def word_counts(spark: SparkSession, lines: list[str], partitions: int = 4) -> dict[str, int]:
    """{word: how often it occurs in the lines}."""
    words = spark.sparkContext.parallelize(lines, partitions).flatMap(str.split)
    return dict(words.map(lambda word: (word, 1)).reduceByKey(lambda one, other: one + other).collect())


def hosts(spark: SparkSession, partitions: int = 4) -> set[str]:
    """The nodes on which tasks run."""

    def of_container(_: object) -> list[str]:
        # Within the function: it runs in an executor.
        import os

        return [os.environ["NM_HOST"]]

    return set(spark.sparkContext.parallelize(range(partitions), partitions).mapPartitions(of_container).collect())
