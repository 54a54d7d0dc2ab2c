-- Puts another memory in the place of KEYS[1]: that of KEYS[3] if there is such a key, else the one that ARGV[1]
-- says (empty: none). Notes under KEYS[2] .. 'gone' which generation nobody will ask any more, for the sweep.
-- Answers whether there is a memory now, or none was wanted.

local before = redis.call('GET', KEYS[1])
if KEYS[3] then
  if redis.call('EXISTS', KEYS[3]) == 0 then return 0 end
  redis.call('RENAME', KEYS[3], KEYS[1])
elseif ARGV[1] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[1])
end
if before then redis.call('SADD', KEYS[2] .. 'gone', string.sub(before, 1, 8)) end
return 1
