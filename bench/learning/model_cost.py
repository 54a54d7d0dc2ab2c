"""What features and trees add to a decision, on the events of a stream."""

import gc
import time
from collections.abc import Sequence

from bench.learning.labelled_stream import LabelledEvent, labels_of
from bench.learning.offline_stream import OfflineStream


def measure_cost(events: Sequence[LabelledEvent]) -> None:
    """Print microseconds of processor time a decision, with and without features and a model.

    Both decide the same events, in turn; those count that come when a model is in service.
    """
    alone, whole = OfflineStream(events), OfflineStream(events)
    since, before = 0, (0.0, 0.0)
    # What this process keeps of the stream for itself is not to be walked through again and again.
    gc.disable()
    for place, _ in enumerate(zip(alone.steps(()), whole.steps(labels_of(events)), strict=True), 1):
        if not since and whole.is_serving:
            since, before = place, (alone.deciding_s, whole.deciding_s)
    count = len(events) - since
    if not since or not count:
        raise SystemExit("no model came into service; take a longer stream")
    rules, both = (
        (one.deciding_s - spent) / count * 1e6 for one, spent in zip((alone, whole), before, strict=True)
    )
    began_s = time.process_time()
    for place in range(since, len(events)):
        whole.say(place)
    trees = (time.process_time() - began_s) / count * 1e6
    print(f"by rules {rules:.0f} µs a decision, with features and model {both:.0f}: {both - rules:.0f} more")
    print(f"of these {trees:.0f} µs in {whole.trees} trees over {whole.width} features; {count:,} decisions")
