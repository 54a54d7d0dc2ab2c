"""The console: the pages on which people look, decide and steer, in front of the API's edge."""
