-- Forgets the answers of events that are settled: they are in the log.
--
-- KEYS[1] is a memory, and every other key begins with KEYS[2]. ARGV: ids of events.
-- Answers how many of them a complete memory has never observed: the memory that observed them is gone, and it is not
-- known whether they were in the log when this one was filled.

local meta = redis.call('GET', KEYS[1])
if not meta then return 0 end
local known = redis.call('HDEL', KEYS[2] .. string.sub(meta, 1, GENERATION_END) .. 'p', unpack(ARGV))
-- A memory that is still being filled will see them, unless the end of the log is being read already.
if string.byte(meta, SERVER_END + 1) % 2 == 1 and redis.call('EXISTS', KEYS[2] .. 'pause') == 0 then return 0 end
return #ARGV - known
