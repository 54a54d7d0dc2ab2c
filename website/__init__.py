"""The documentation as a site of static pages that works offline: `make site`."""
