"""Terms: the texts that decisions hold, numbered, so that a million decisions share one row of each."""
