-- Charges one request to a caller's throttle and to its tenant's quota, or to neither.
--
-- KEYS: the throttle's log (a list of admitted moments, oldest first), the quota (hash: hour, used), the marks:
-- how often batches of browser signals and changes of what decides were announced.
-- ARGV: limit of the throttle, limit of the quota, 1 only to look, 2 to take back what was charged in the hour
-- that the next says (hours since 1970) and look. Moments are microseconds of this server.
-- Answers: what refuses (0 nothing, 1 throttle, 2 quota), requests in the window, microseconds until a slot is
-- free, requests of the hour, the second at which the hour ends, microseconds until it does, the marks.

local WINDOW, HOUR, HELD = 60000000, 3600, 1000000
local call, floor = redis.call, math.floor
local log, quota = KEYS[1], KEYS[2]
local limit, allowed, looking = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] ~= '0'
local refunding = ARGV[3] == '2'

local time = call('TIME')
local clock = time[1] * 1000000 + time[2]
local now = clock

if refunding then call('RPOP', log) end
local newest = tonumber(call('LINDEX', log, -1) or 0)
if newest > now + HELD then
  -- The clock was set back. What it admitted before counts as admitted now, so that nothing is given back.
  local count = call('LLEN', log)
  call('DEL', log)
  for _ = 1, count do call('RPUSH', log, now) end
elseif newest > now then
  now = newest
elseif newest + WINDOW <= now then
  call('DEL', log)
end
local oldest = tonumber(call('LINDEX', log, 0) or 0)
while oldest > 0 and oldest + WINDOW <= now do
  call('LPOP', log)
  oldest = tonumber(call('LINDEX', log, 0) or 0)
end
local used = call('LLEN', log)

local hour = floor(time[1] / HOUR)
local held = call('HMGET', quota, 'hour', 'used')
local counted, spent = tonumber(held[1] or -1), tonumber(held[2] or 0)
-- A clock set back across the hour goes on counting in the later one.
if hour > counted or hour < counted - 1 then counted, spent = hour, 0 end
if refunding and spent > 0 and counted == tonumber(ARGV[4]) then
  spent = spent - 1
  call('HSET', quota, 'used', spent)
end

local refused = 0
if used >= limit then refused = 1 elseif spent >= allowed then refused = 2 end
if refused == 0 and not looking then
  call('RPUSH', log, now)
  call('PEXPIRE', log, WINDOW / 1000 + 5000)
  call('HSET', quota, 'hour', counted, 'used', spent + 1)
  call('EXPIRE', quota, 2 * HOUR)
  used, spent = used + 1, spent + 1
  if oldest == 0 then oldest = now end
end
local free = 0
if refused == 1 then
  free = WINDOW
  if limit > 0 then free = tonumber(call('LINDEX', log, used - limit)) + WINDOW - now end
elseif oldest > 0 then
  free = oldest + WINDOW - now
end
local ends = (counted + 1) * HOUR
local marks = call('MGET', KEYS[3], KEYS[4])
return {
  refused, used, free, spent, ends, ends * 1000000 - clock, tonumber(marks[1] or 0), tonumber(marks[2] or 0)
}
