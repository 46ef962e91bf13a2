# %% [markdown]
# # An index that is larger than its memory
#
# Searches an index within a memory budget, and draws what the cache of the engine does.
#
# `python larger_than_memory.py [DOCUMENTS] [PLOT]`: the number of documents, which are made of random words;
# with 100,000, the default, the index is several times as large as the cache. It needs `matplotlib`.

# %%
from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import matplotlib

import tierdex

matplotlib.use("agg")
import matplotlib.pyplot as plt

work = Path(tempfile.mkdtemp(prefix="tierdex-notebook-"))
count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
plot = Path(sys.argv[2]) if len(sys.argv) > 2 else work / "cache.svg"

WORDS = [f"w{number}" for number in range(20_000)]
# Words by Zipf's law.
SUMS = [0.0]
for rank in range(len(WORDS)):
    SUMS.append(SUMS[-1] + 1 / (rank + 10))


# %%
def documents(count: int) -> Iterator[dict[str, str]]:
    """Documents of a hundred random words."""
    choose = random.Random(1)
    for number in range(count):
        yield {"id": str(number), "text": " ".join(choose.choices(WORDS, cum_weights=SUMS[1:], k=100))}


index = tierdex.Index.create(work / "index", tierdex.Schema(stored=False))
with index.writer(memory="256M") as writer:
    writer.add_many(documents(count), total=count, progress=sys.stderr.isatty())
index_bytes = index.stats()["bytes"]
print(f"{index_bytes / 1e6:.1f} MB on disk")
index.close()

# %% [markdown]
# ## The budget
#
# `dram` bounds all memory of the engine. A budget that is too small is an error that says what is needed: here
# the smallest one is asked for, in steps of 256 KiB, and one step more is for the cache. The dictionary is read
# through the cache then, as the postings are. `stats` shows the parts.

# %%
try:
    tierdex.Index.open(work / "index", dram="1M", threads=1, hits_max=10)
except tierdex.UsageError as error:
    print(error)
step = 256 << 10
budget = 4 * step
while True:
    try:
        tierdex.Index.open(work / "index", dram=budget, threads=1, hits_max=10).close()
        break
    except tierdex.UsageError:
        budget += step
budget += step
small = tierdex.Index.open(work / "index", dram=budget, threads=1, hits_max=10)
for part, size in small.stats()["memory"].items():
    print(f"{part:40} {size:12,} bytes")
print(f"budget {budget:,} bytes")

# %% [markdown]
# ## The cache under load
#
# Batches of queries, first over all words, then over 200 rare words, whose lists fit in the cache: its hit rate
# rises, and reads end. After each batch the counters of the cache are read. The cache also has what is reserved
# for requests, as long as none needs it.

# %%
choose = random.Random(2)
hit_rates, megabytes, capacity = [], [], 0
before = small.stats()["cache"]
for batch in range(40):
    words = WORDS if batch < 20 else WORDS[9_000:9_200]
    queries = [" ".join(choose.choices(words, k=2)) for _ in range(100)]
    small.search_batch(queries, k=10, syntax="terms")
    now = small.stats()["cache"]
    hits, misses = now["hits"] - before["hits"], now["misses"] - before["misses"]
    hit_rates.append(hits / max(1, hits + misses))
    megabytes.append((now["bytes_read"] - before["bytes_read"]) / 1e6)
    capacity = max(capacity, now["capacity"])
    before = now
print(f"the index is {index_bytes / capacity:.1f} times as large as the cache")
print(f"hit rate {sum(hit_rates[:20]) / 20:.2f} over all words, {hit_rates[-1]:.2f} over few")
print(f"MB read {sum(megabytes[:20]) / 20:.2f} over all words, {megabytes[-1]:.2f} over few, for each batch")

# %% [markdown]
# The hits do not depend on the budget.

# %%
large = tierdex.Index.open(work / "index")
queries = [" ".join(choose.choices(WORDS, cum_weights=SUMS[1:], k=3)) for _ in range(200)]
assert (
    small.search_batch(queries, k=10, syntax="terms").to_dict()
    == large.search_batch(queries, k=10, syntax="terms").to_dict()
)

# %% [markdown]
# ## Picture

# %%
figure, (above, below) = plt.subplots(2, sharex=True, figsize=(6, 5))
above.plot(hit_rates, marker=".")
above.set_ylabel("hit rate of the cache")
above.set_ylim(0, 1.05)
below.bar(range(len(megabytes)), megabytes)
below.set_ylabel("MB read")
below.set_xlabel("batch of 100 queries; from 20 on, over 200 words")
figure.tight_layout()
figure.savefig(plot)
print(f"plot: {plot}")
