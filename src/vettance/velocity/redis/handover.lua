-- Notes that another server has been given the slot of a memory, with all that was in it.
--
-- KEYS[1] is a memory, and every other key begins with KEYS[2]. ARGV: the server that gave the slot away, the one that
-- was given it. The memory that is being filled was filled there as well. Answers 1 when the memory is of the latter.

for _, key in ipairs({ KEYS[1], KEYS[2] .. 'mnext' }) do
  local memory = redis.call('GET', key)
  if memory and string.sub(memory, DIGEST_END + 1, SERVER_END) == ARGV[1] then
    redis.call('SETRANGE', key, DIGEST_END, ARGV[2])
  end
end
local memory = redis.call('GET', KEYS[1])
return memory and string.sub(memory, DIGEST_END + 1, SERVER_END) == ARGV[2] and 1 or 0
