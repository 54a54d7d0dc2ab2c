"""The constants of the scripts that run in Redis: `LuaScript` puts them in front of the text.

What both engines share is taken from the memory engine, so that they answer alike.
"""

import struct
from typing import Final

from vettance.clock import CLOCKS_APART_MS, HOUR_MS, MINUTE_MS
from vettance.velocity.memory.last_seen import FORGET_AT_ONCE, VALUES_MAX
from vettance.velocity.memory.series import LEAVE_AT_ONCE, RAW_MAX
from vettance.velocity.plan_layout import AHEAD_MS, SERIES_BITS, SLACK

#: A memory: its generation, the digest of its plan, the server it was filled on, flags, high water, lag,
#: reach and the newest receipt.
MEMORY: Final = struct.Struct("<8s8s8sBdddd")
#: The key of a group below its memory: the group's number and a fingerprint.
KEY: Final = struct.Struct("<Hq")
#: What the script gets of a group before its lanes: bytes of an entry, milliseconds it is kept.
GROUP: Final = struct.Struct("<Id")
#: What the script answers of one window beyond the entries of a busy key.
WINDOW: Final = struct.Struct("<8d")

CONSTANTS: Final = {
    # Where the parts of a memory end; its flags follow the server.
    "GENERATION_END": 8,
    "DIGEST_END": 16,
    "SERVER_END": 24,
    "KEY_BYTES": KEY.size,
    "GROUP_BYTES": GROUP.size,
    "WINDOW_BYTES": WINDOW.size,
    # What is stored under a busy key: a letter, and when its expiry was last set.
    "MARK_BYTES": struct.calcsize("<cd"),
    # Bytes before the entries of a lane, and before the cells of a ring of sub-buckets.
    "LANE_HEAD": struct.calcsize("<ddd"),
    "RING_HEAD": struct.calcsize("<9d"),
    # The head of an entry is a moment above the bits of its lanes, read as two 32-bit words.
    "LANES": 1 << SERIES_BITS,
    "MOMENTS_LOW": 1 << (32 - SERIES_BITS),
    # Entries of an ordinary key: one string, of which an answer is worked out in one go.
    "ENTRIES_MAX": 128,
    "RAW_MAX": RAW_MAX,
    "LEAVE_AT_ONCE": LEAVE_AT_ONCE,
    "VALUES_MAX": VALUES_MAX,
    "FORGET_AT_ONCE": FORGET_AT_ONCE,
    "STALE_PART": SLACK,
    "AHEAD_MS": AHEAD_MS,
    # Keys are kept this much longer than their entries, for events that lag behind the clock of the server.
    "EXPIRY_SLACK_MS": HOUR_MS,
    # The expiry of a busy key is set again after so long: it costs a command for each of its parts.
    "REFRESH_MS": 15 * MINUTE_MS,
    # Events received within so long by several processes count in the order in which they are asked about.
    "ORDER_MS": CLOCKS_APART_MS,
    # Answers kept until their events are settled.
    "PENDING_MAX": 10_000,
}
