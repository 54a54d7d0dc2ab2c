"""The doctor's checks, one file for each thing that is checked."""
