"""Job words: how far a backtest or a search for suggestions is, in words."""

from typing import Final

from vettance.backtests.backtest_job import JobState
from vettance.console.words import Words

#: What the states of a job are called.
JOB_STATES: Final = {
    JobState.QUEUED.value: Words("Waits for its turn"),
    JobState.RUNNING.value: Words("Running"),
    JobState.COMPLETED.value: Words("Completed"),
    JobState.FAILED.value: Words("Failed"),
    JobState.CANCELLED.value: Words("Cancelled"),
}
