"""Counts words with an RDD, and sums with SQL; both shuffle. The results go to result.json in the given directory."""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
lines = spark.sparkContext.parallelize(["to be or not", "to be", "that is"] * 100, 4)
words = lines.flatMap(str.split).map(lambda word: (word, 1)).reduceByKey(lambda one, other: one + other)
spark.range(1000).selectExpr("id % 3 AS bucket", "id").createOrReplaceTempView("numbers")
sums = spark.sql("SELECT bucket, SUM(id) AS total FROM numbers GROUP BY bucket ORDER BY bucket")
result = {"words": dict(words.collect()), "sums": [row.total for row in sums.collect()]}
spark.stop()
(Path(sys.argv[1]) / "result.json").write_text(json.dumps(result))
