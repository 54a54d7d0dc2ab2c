"""How long a server takes to stop at most: its parts in their order, and the whole."""

from typing import Final

from vettance.exchange.worker import STOP_S_MAX as IMPORTS_S_MAX
from vettance.jobs.worker import STOP_S_MAX as JOBS_S_MAX

#: Requests in flight get this long after SIGTERM; webhooks drain meanwhile.
REQUESTS_S_MAX: Final = 10
#: Snapshots of the memory: what is not written by then is replayed from the log at the next start.
SNAPSHOT_S_MAX: Final = 4.0
#: From the signal to the end. A process that takes longer is killed.
STOP_S_MAX: Final = REQUESTS_S_MAX + max(JOBS_S_MAX, IMPORTS_S_MAX) + SNAPSHOT_S_MAX
