"""How a velocity memory is filled from the log, and kept equal to it."""
