-- Takes up a count of KEYS[1] (hash: hour, used) from before a loss: ARGV: hour, used. The larger count stands.
local held = redis.call('HMGET', KEYS[1], 'hour', 'used')
local hour, used = tonumber(held[1] or -1), tonumber(held[2] or 0)
local was, count = tonumber(ARGV[1]), tonumber(ARGV[2])
if was > hour or (was == hour and count > used) then
  redis.call('HSET', KEYS[1], 'hour', was, 'used', count)
  redis.call('EXPIRE', KEYS[1], 7200)
end
return 1
