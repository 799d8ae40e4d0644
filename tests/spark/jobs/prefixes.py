"""Writes the prefixes of the Pythons that run the driver and the tasks to result.json in the given directory."""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
prefixes = spark.sparkContext.parallelize(range(4), 4).map(lambda _: sys.prefix).collect()
spark.stop()
(Path(sys.argv[1]) / "result.json").write_text(json.dumps([sys.prefix, *prefixes]))
