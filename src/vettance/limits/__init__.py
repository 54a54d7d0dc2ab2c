"""Limits: what is counted so that nobody asks too much, and what is divided so that nobody takes all.

Two limits are agreed with tenants, and a request that is refused by them costs nothing:

- the *throttle* (`throttle`) bounds the requests of one caller (a key, or a browser session) in any minute;
- the *quota* (`quota`) bounds those of a tenant in each hour of the clock.

`web/gate.py` asks both with one call. One process counts by itself (`own_limits`), and files keep its last
minute and its hour through a crash (`throttle_journal`, `quota_journal`); several processes count in Redis
(`redis_limits`). The use of a quota is written to the store every few seconds (`quota_usage`), so that no
restart gives it back.

Everything else is divided, not sold, and only matters when it is scarce (`shares`):

- *dynamic shares*: a holder may have as much as is still free. Bytes of bodies and of unread answers,
  connections by address and by tenant (`connection_shares`), deliveries under way;
- *equal shares*: beyond a bound nobody has more than an equal part. Requests in flight;
- *time of the event loop* (`loop_time`): large bodies get a twentieth of it, tenants in turn.
"""
