"""Exchange: what was decided as files for other tools, and labelled events from files into the log."""
