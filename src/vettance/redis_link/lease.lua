-- Keeps (ARGV[2] milliseconds) or gives up (ARGV[2] 0) the lease KEYS[1] of holder ARGV[1]. Answers whether the
-- holder still had it.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then return redis.call('DEL', KEYS[1]) end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
