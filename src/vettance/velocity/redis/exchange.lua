#!lua flags=allow-oom
-- Replaces the memory KEYS[1], and ends its pause.
--
-- With KEYS[3] the new one is that memory, if it is of the generation ARGV[1]; with ARGV[2] 'held' only while events
-- are held back and that generation has the lease. Without KEYS[3] the new one is ARGV[1] itself (empty: none); with
-- ARGV[2] 'unless' only where there is no memory of this server, with 'left' only while no process has the lease.
-- Notes under KEYS[2] .. 'gone' the generation that is not asked any more, for the sweep. Answers 1 when done.

local before = redis.call('GET', KEYS[1])
if KEYS[3] then
  local coming = redis.call('GET', KEYS[3])
  if not coming or string.sub(coming, 1, GENERATION_END) ~= ARGV[1] then return 0 end
  if ARGV[2] == 'held' then
    local pause, holder = unpack(redis.call('MGET', KEYS[2] .. 'pause', KEYS[2] .. 'lease'))
    if not pause or holder ~= ARGV[1] then return 0 end
  end
  redis.call('RENAME', KEYS[3], KEYS[1])
elseif ARGV[1] == '' then
  if not before or ARGV[2] == 'left' and redis.call('EXISTS', KEYS[2] .. 'lease') == 1 then return 0 end
  redis.call('DEL', KEYS[1])
else
  local function server_of(memory) return string.sub(memory, DIGEST_END + 1, SERVER_END) end
  if ARGV[2] == 'unless' and before and server_of(before) == server_of(ARGV[1]) then return 0 end
  redis.call('SET', KEYS[1], ARGV[1])
end
if ARGV[2] ~= 'unless' then redis.call('DEL', KEYS[2] .. 'pause') end
if before then redis.call('SADD', KEYS[2] .. 'gone', string.sub(before, 1, GENERATION_END)) end
return 1
