#!lua flags=allow-oom
-- Puts another memory in the place of KEYS[1]: that of KEYS[3] if one is named and is of the generation ARGV[1] (with
-- ARGV[2] 'held' only while events are held back, and by whoever has the lease of that generation), else what
-- ARGV[1] says (empty: none), but with ARGV[2] 'unless' only where none of this server stands, and with 'left' only
-- while nobody has the lease. What paused the memory ends.
-- Notes under KEYS[2] .. 'gone' which generation nobody will ask any more, for the sweep. Answers 1 when done.

local before = redis.call('GET', KEYS[1])
if KEYS[3] then
  local coming = redis.call('GET', KEYS[3])
  if not coming or string.sub(coming, 1, 8) ~= ARGV[1] then return 0 end
  if ARGV[2] == 'held' then
    local pause, holder = unpack(redis.call('MGET', KEYS[2] .. 'pause', KEYS[2] .. 'lease'))
    if not pause or holder ~= ARGV[1] then return 0 end
  end
  redis.call('RENAME', KEYS[3], KEYS[1])
elseif ARGV[1] == '' then
  if not before or ARGV[2] == 'left' and redis.call('EXISTS', KEYS[2] .. 'lease') == 1 then return 0 end
  redis.call('DEL', KEYS[1])
else
  if ARGV[2] == 'unless' and before and string.sub(before, 17, 24) == string.sub(ARGV[1], 17, 24) then
    return 0
  end
  redis.call('SET', KEYS[1], ARGV[1])
end
if ARGV[2] ~= 'unless' then redis.call('DEL', KEYS[2] .. 'pause') end
if before then redis.call('SADD', KEYS[2] .. 'gone', string.sub(before, 1, 8)) end
return 1
