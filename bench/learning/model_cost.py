"""What features and trees add to a decision, on the events of a stream."""

import time
from collections.abc import Sequence

from bench.learning.labelled_stream import LabelledEvent, labels_of
from bench.learning.offline_stream import OfflineStream

_WARMED = 0.5


def measure_cost(events: Sequence[LabelledEvent]) -> None:
    """Print microseconds of processor time a decision, with and without features and a model.

    Both decide the same events, in turn; the second half of the stream counts.
    """
    labels = labels_of(events)
    alone, whole = OfflineStream(events), OfflineStream(events)
    took = {"rules": 0.0, "with features and model": 0.0}
    steps = zip(alone.steps(()), whole.steps(labels), strict=True)
    counted = int(_WARMED * len(events))
    for place, _ in enumerate(steps):
        if place == counted:
            before = alone.deciding_s, whole.deciding_s
    took["rules"], took["with features and model"] = (
        (one.deciding_s - spent) / (len(events) - counted) * 1e6
        for one, spent in zip((alone, whole), before, strict=True)
    )
    began_s = time.process_time()
    said = [whole.say(place) for place in range(counted, len(events))]
    trees = (time.process_time() - began_s) / len(said) * 1e6
    rules, both = took.values()
    print(f"by rules {rules:.0f} µs a decision, with features and model {both:.0f}: {both - rules:.0f} more")
    print(f"of these {trees:.0f} µs in {whole.trees} trees over {whole.width} features")
