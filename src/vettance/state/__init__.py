"""Counters that live between events: velocity, throttle, quota."""
