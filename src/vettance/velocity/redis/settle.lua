-- Forgets the answers of events that are settled: they are in the log.
--
-- KEYS[1] is a memory, and every other key begins with KEYS[2]. ARGV: ids of events.
-- Answers how many of them a memory that counts as whole has never observed: the memory that had is gone, and
-- whether they were in the log when this one was filled is not known.

local meta = redis.call('GET', KEYS[1])
if not meta then return 0 end
local known = redis.call('HDEL', KEYS[2] .. string.sub(meta, 1, 8) .. 'p', unpack(ARGV))
-- One that is still to be filled will see them, unless the end of the log is being read already.
if string.byte(meta, 25) % 2 == 1 and redis.call('EXISTS', KEYS[2] .. 'pause') == 0 then return 0 end
return #ARGV - known
