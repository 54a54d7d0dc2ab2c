-- The lanes of a busy key: the newest entries, the latest moment of each value, and a ring for each window.

local function place_after(text, from, step, at_ms, read)
  -- Where an entry of a moment belongs: after those of the same moment.
  local place = #text + 1
  while place > from and read(text, place - step) > at_ms do place = place - step end
  return place
end

local function read_double(text, place) return (unpack_('<d', text, place)) end

local function drop_raw(raw, step, until_ms)
  local place = LANE_HEAD + 1
  while place <= #raw and read_double(raw, place) <= until_ms do place = place + step end
  return sub(raw, place)
end

local function keep_value(key, lane, word, at_ms, forgotten, ttl)
  if call('ZADD', key, 'GT', at_ms, word) == 1 then
    local count = call('ZCARD', key)
    if count == 1 then
      call('PEXPIRE', key, ttl)
    elseif count > VALUES_MAX then
      local until_ms = tonumber(call('ZRANGE', key, FORGET_AT_ONCE - 1, FORGET_AT_ONCE - 1, 'WITHSCORES')[2])
      call('ZREMRANGEBYSCORE', key, '-inf', until_ms)
      return max(forgotten, until_ms)
    end
  end
  return forgotten
end

local function record_lane(key, lane, raw, step, word, ttl)
  -- `raw` is what stands under key .. 'r', or nil; bucketed is 1 when the windows have rings.
  local left, forgotten, bucketed = -INF, -INF, 0
  if raw then left, forgotten, bucketed = unpack_('<ddd', raw) end
  local with_value = lane[3] > 0
  local entry = pack('<d', at) .. (with_value and word or '')
  local newest = raw and #raw > LANE_HEAD and read_double(raw, #raw - step + 1) or -INF
  local value = with_value and lane[5] == 0 and (unpack_('<d', word)) or 0
  local late, body = at < newest, nil
  if lane[4] > 0 then forgotten = keep_value(key .. 'z', lane, word, at, forgotten, ttl) end
  if bucketed == 1 then
    for index, window in ipairs(lane[6]) do
      if window[4] > 0 then add_ring(key .. 'w' .. index, window, at, value, late) end
    end
  end
  if not raw then
    body = entry
  elseif not late then
    local count = (#raw - LANE_HEAD) / step + 1
    local stale = read_double(raw, LANE_HEAD + 1) or INF
    local full = count > RAW_MAX + bucketed * LEAVE_AT_ONCE
    if not full and #raw > LANE_HEAD and stale > high - lane[2] - lane[2] / STALE_PART then
      call('APPEND', key .. 'r', entry)
      if lane[4] > 0 then call('SETRANGE', key .. 'r', 8, pack('<d', forgotten)) end
      return
    end
    body = sub(raw, LANE_HEAD + 1) .. entry
  elseif at >= left then
    local place = place_after(raw, LANE_HEAD + 1, step, at, read_double)
    body = sub(raw, LANE_HEAD + 1, place - 1) .. entry .. sub(raw, place)
  else
    body = sub(raw, LANE_HEAD + 1)
  end
  if #body / step > RAW_MAX + bucketed * LEAVE_AT_ONCE then
    if bucketed == 0 then
      bucketed = 1
      local whole = string.rep('\0', LANE_HEAD) .. body
      for index, window in ipairs(lane[6]) do
        if window[4] > 0 then
          begin_ring(key .. 'w' .. index, window, whole, step, with_value and lane[5] == 0, ttl)
        end
      end
    else
      left = max(left, read_double(body, (LEAVE_AT_ONCE - 1) * step + 1))
      body = sub(body, LEAVE_AT_ONCE * step + 1)
    end
  end
  local gone_ms = high - lane[2]
  if #body > 0 and read_double(body, 1) <= gone_ms - lane[2] / STALE_PART then
    body = drop_raw(string.rep('\0', LANE_HEAD) .. body, step, gone_ms)
  end
  if bucketed == 1 and #body / step <= RAW_MAX and left <= gone_ms then
    bucketed, left = 0, -INF
    for index in ipairs(lane[6]) do call('DEL', key .. 'w' .. index) end
  end
  if lane[4] > 0 then call('ZREMRANGEBYSCORE', key .. 'z', '-inf', gone_ms) end
  call('SET', key .. 'r', pack('<ddd', left, forgotten, bucketed) .. body, 'PX', ttl)
end

local function ask_lane(key, lane, raw, step, word)
  if not raw then return '\0' end
  local left, forgotten = unpack_('<dd', raw)
  local newest, last = -INF, '\0\0\0\0\0\0\0\0'
  if #raw > LANE_HEAD then
    newest = read_double(raw, #raw - step + 1)
    if step > 8 then last = sub(raw, -8) end
  end
  local late = at < newest
  local whole = late
  local windows = {}
  for index, window in ipairs(lane[6]) do
    local start = at - window[1]
    if start >= left then
      whole = true
      windows[index] = string.rep('\0', WINDOW_BYTES)
    else
      local entries, first, total, least, greatest, exact, distinct, seen = 0, 0, 0, 0, 0, 3, 0, -INF
      if window[4] > 0 then
        entries, first, total, least, greatest, exact =
          ask_ring(key .. 'w' .. index, window, at, newest, left, raw, step)
      end
      if window[5] > 0 then
        distinct = call('ZCOUNT', key .. 'z', string.format('(%.0f', start), string.format('%.0f', at))
      end
      if window[6] > 0 then seen = tonumber(call('ZSCORE', key .. 'z', word) or -INF) end
      windows[index] = pack('<dddddddd', entries, first, total, least, greatest, exact, distinct, seen)
    end
  end
  local body = whole and sub(raw, LANE_HEAD + 1) or ''
  return pack('<Bddd', 1, left, forgotten, newest) .. last .. pack('<I4', #body) .. body .. table.concat(windows)
end

local function observe_busy(key, mark, group, recording)
  local lanes, entry = cmsgpack.unpack(sub(group[5], GROUP_BYTES + 1)), group[2]
  local bits = recording and select(2, moment_of(entry, 1)) or 0
  local ttl = group[4] + EXPIRY_SLACK_MS + REFRESH_MS
  local names, answers = {}, {}
  for index = 1, #lanes do names[index] = key .. index .. 'r' end
  local raws = call('MGET', unpack(names))
  for index, lane in ipairs(lanes) do
    local word = lane[3] > 0 and sub(entry, lane[3] + 1, lane[3] + 8) or ''
    local step, raw = lane[3] > 0 and 16 or 8, raws[index] or nil
    answers[index] = ask_lane(key .. index, lane, raw, step, word)
    if floor(bits / lane[1]) % 2 == 1 then record_lane(key .. index, lane, raw, step, word, ttl) end
  end
  if recording and now - (unpack_('<d', mark, 2)) > REFRESH_MS then
    call('SET', key, 'B' .. pack('<d', now), 'PX', ttl)
    for index, lane in ipairs(lanes) do
      call('PEXPIRE', key .. index .. 'r', ttl)
      if lane[4] > 0 then call('PEXPIRE', key .. index .. 'z', ttl) end
      for window in ipairs(lane[6]) do call('PEXPIRE', key .. index .. 'w' .. window, ttl) end
    end
  end
  return table.concat(answers)
end

local function promote(key, record, group)
  -- A key that has become busy: its entries again, lane by lane.
  local lanes, step, ttl = cmsgpack.unpack(sub(group[5], GROUP_BYTES + 1)), group[3], group[4] + EXPIRY_SLACK_MS + REFRESH_MS
  local bodies, values = {}, {}
  for index = 1, #lanes do bodies[index], values[index] = {}, {} end
  for place = 1, #record, step do
    local moment, bits = moment_of(record, place)
    local head = pack('<d', moment)
    for index, lane in ipairs(lanes) do
      if floor(bits / lane[1]) % 2 == 1 then
        local word = lane[3] > 0 and sub(record, place + lane[3], place + lane[3] + 7) or ''
        local body = bodies[index]
        body[#body + 1] = head .. word
        if lane[4] > 0 then values[index][word] = moment end
      end
    end
  end
  for index, lane in ipairs(lanes) do
    if #bodies[index] > 0 then
      local body = pack('<ddd', -INF, -INF, 0) .. table.concat(bodies[index])
      call('SET', key .. index .. 'r', body, 'PX', ttl)
    end
    local pairs_ = {}
    for word, moment in pairs(values[index]) do
      pairs_[#pairs_ + 1], pairs_[#pairs_ + 2] = moment, word
    end
    if #pairs_ > 0 then
      call('ZADD', key .. index .. 'z', unpack(pairs_))
      call('PEXPIRE', key .. index .. 'z', ttl)
    end
  end
  call('SET', key, 'B' .. pack('<d', now), 'PX', ttl)
end
