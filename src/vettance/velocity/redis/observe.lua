-- Answers what rules ask of one event and records it, in one step that nothing else interrupts.
--
-- This file decides whether the memory can be asked and when the event counts; then follow, joined to one script,
-- `window_totals.lua`, `busy_key.lua` and `answer_groups.lua`. Names in capitals are constants of
-- `script_constants.py`.
--
-- KEYS[1] is a memory, and every other key begins with KEYS[2]. ARGV: one text of the digest of the plan, the id of
-- the server it was filled on and, for a coming memory, its generation; the event's id ('' in a replay); its moment;
-- 1 when that is the moment of receipt. Then two texts for each group: its key and entry; and bytes of an entry,
-- milliseconds it is kept and, for busy keys, its lanes (MessagePack).
--
-- A memory is the string KEYS[1] (generation, digest, server, flags, high water, lag, reach, newest receipt) and,
-- under its generation, for each key of a group either one string of entries in the order of their moments or, once
-- there are more than ENTRIES_MAX of them, a mark and for each lane: its newest entries ('r'), the latest moment of
-- each value ('z'), and a ring of sub-buckets for each window ('w'). `redis_layout.py` says what an entry is.

local INF = 1 / 0
local call, pack, unpack_ = redis.call, struct.pack, struct.unpack
local floor, max, min, sub = math.floor, math.max, math.min, string.sub

local held = call('MGET', KEYS[1], KEYS[2] .. 'pause')
local meta = held[1]
if not meta then return 'L' end
local event, at = ARGV[2], tonumber(ARGV[3])
local generation = sub(meta, 1, GENERATION_END)
local root = KEYS[2] .. generation
local pending = root .. 'p'
local plan, server, coming = sub(ARGV[1], 1, 8), sub(ARGV[1], 9, 16), sub(ARGV[1], 17)
-- How much a server remembers after a restart is not known.
if sub(meta, DIGEST_END + 1, SERVER_END) ~= server then return 'L' end
-- A process that takes a lease over fills another memory than the process that had it before.
if coming ~= '' and generation ~= coming then return 'L' end
if sub(meta, GENERATION_END + 1, DIGEST_END) ~= plan then return 'S' end
if event ~= '' then
  local before = call('HGET', pending, event)
  if before then return before end
  if held[2] then return 'P' end
end
local flags, high, lag, reach, newest_live = unpack_('<Bdddd', meta, SERVER_END + 1)

local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local shifted = false
if high > now + AHEAD_MS then reach, high = max(reach, high), now + AHEAD_MS end
if at > now + AHEAD_MS then
  -- The clock of the process that received it is wrong. In the log it comes after the events before it.
  at, shifted = event == '' and high > -INF and high or now, true
end
lag = min(lag, now - at)
if ARGV[4] == '1' then
  -- Events that several processes receive at one moment count in the order in which they are asked about here.
  if at < newest_live and newest_live - at < ORDER_MS then at, shifted = newest_live, true end
  newest_live = max(newest_live, at)
end
high = max(high, at)
-- Keys live by the clock of this server: an entry may be gone once an event lags more than this behind it.
reach = max(reach, now - lag - EXPIRY_SLACK_MS)
call('SETRANGE', KEYS[1], SERVER_END, pack('<Bdddd', flags, high, lag, reach, newest_live))

local function moment_of(text, place)
  local low, upper = unpack_('<I4I4', text, place)
  return upper * MOMENTS_LOW + floor(low / LANES), low % LANES
end
