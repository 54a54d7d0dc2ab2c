"""Watching for money laundering: AML events, alerts and cases, in a pipeline apart from that of fraud."""
