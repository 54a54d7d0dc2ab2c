-- Answers and records the event under the key of each group, and keeps the reply until the event is settled.

local function record_plain(key, record, group)
  local entry, step, kept = group[2], group[3], group[4]
  local ttl = kept + EXPIRY_SLACK_MS
  local inner = nil
  if at < moment_of(record, #record - step + 1) then
    local place = place_after(record, 1, step, at, moment_of)
    inner = sub(record, 1, place - 1) .. entry .. sub(record, place)
  end
  if moment_of(record, 1) <= high - kept - kept / STALE_PART then
    inner = inner or record .. entry
    local place = 1
    while place <= #inner and moment_of(inner, place) <= high - kept do place = place + step end
    inner = sub(inner, place)
  end
  if #(inner or record) / step + (inner and 0 or 1) > ENTRIES_MAX then
    promote(key, inner or record .. entry, group)
  elseif inner then
    call('SET', key, inner, 'PX', ttl)
  else
    call('APPEND', key, entry)
    call('PEXPIRE', key, ttl)
  end
end

local parts = { pack('<Bddd', flags, high, reach, at) }
if #ARGV > 4 then
  local keys, groups = {}, {}
  for place = 5, #ARGV, 2 do
    local index, step, kept = #keys + 1, unpack_('<I4d', ARGV[place + 1])
    keys[index] = root .. sub(ARGV[place], 1, KEY_BYTES)
    local entry = sub(ARGV[place], KEY_BYTES + 1)
    if shifted then
      local _, bits = moment_of(entry, 1)
      entry = pack('<I4I4', at % MOMENTS_LOW * LANES + bits, floor(at / MOMENTS_LOW)) .. sub(entry, 9)
    end
    groups[index] = { 0, entry, step, kept, ARGV[place + 1] }
  end
  local records = call('MGET', unpack(keys))
  for index, group in ipairs(groups) do
    local key, record = keys[index], records[index]
    local _, bits = moment_of(group[2], 1)
    local recording = bits > 0 and at > high - group[4]
    if not record then
      parts[#parts + 1] = '\0\0\0\0\0'
      if recording then call('SET', key, group[2], 'PX', group[4] + EXPIRY_SLACK_MS) end
    elseif #record == MARK_BYTES then
      local answer = observe_busy(key, record, group, recording)
      parts[#parts + 1] = pack('<BI4', 1, #answer) .. answer
    else
      parts[#parts + 1] = pack('<BI4', 0, #record) .. record
      if recording then record_plain(key, record, group) end
    end
  end
end
if event == '' then return '' end
local reply = table.concat(parts)
if call('HSET', pending, event, reply) == 1 and call('HLEN', pending) > PENDING_MAX then
  call('DEL', pending)
end
return reply
