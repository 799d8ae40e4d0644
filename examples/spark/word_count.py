"""A job to test: counts words with Spark. As a program it prints the most frequent words of a file:

spark-submit --properties-file examples/spark/spark-defaults.conf --deploy-mode cluster word_count.py FILE
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

SHOWN = 5


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


def main(file: str) -> None:
    spark = SparkSession.builder.appName("word count").getOrCreate()
    counts = word_counts(spark, Path(file).read_text().splitlines())
    for word in sorted(counts, key=lambda word: (-counts[word], word))[:SHOWN]:
        print(counts[word], word)
    print("tasks ran on", *sorted(hosts(spark)))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
