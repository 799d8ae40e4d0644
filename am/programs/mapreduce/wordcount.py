"""A word count for map-reduce: the map and the reduce of Hadoop's example, as a script that is shipped.

    python wordcount.py map      lines -> `word<TAB>1` for each word
    python wordcount.py reduce   sorted `word<TAB>n` lines -> `word<TAB>sum`

Words are separated by white space. The script imports no module of yarnling, because it runs as a single file in a
container.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path


def words_of(lines: Iterable[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield from line.split()


def map_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    return (word + b"\t1\n" for word in words_of(lines))


def reduce_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    pairs = (line.rstrip(b"\n").rpartition(b"\t") for line in lines)
    for word, group in groupby(pairs, key=lambda pair: pair[0]):
        yield b"%s\t%d\n" % (word, sum(int(count) for _, _, count in group))


def count_words(files: Iterable[Path]) -> Counter[bytes]:
    """The counts that a job over these files must produce, counted here, one file after another."""
    counts: Counter[bytes] = Counter()
    for path in files:
        with path.open("rb") as lines:
            counts.update(words_of(lines))
    return counts


def read_counts(output: Path) -> Counter[bytes]:
    """The counts that a job wrote: the `word<TAB>count` lines of every part file."""
    counts: Counter[bytes] = Counter()
    for part in sorted(output.glob("part-*")):
        for line in part.read_bytes().splitlines():
            word, _, count = line.rpartition(b"\t")
            counts[word] += int(count)
    return counts


if __name__ == "__main__":
    step = {"map": map_lines, "reduce": reduce_lines}[sys.argv[1]]
    sys.stdout.buffer.writelines(step(sys.stdin.buffer))
