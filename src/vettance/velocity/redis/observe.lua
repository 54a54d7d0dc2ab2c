-- Answers what rules ask of one event and records it, in one step that nothing else gets into.
--
-- KEYS[1] is a memory, and every other key begins with KEYS[2]. ARGV: digest of the plan, id of the server
-- it was filled on and, of a coming memory, its generation, event id ('' for a replay), moment, 1 when that is the moment of receipt; then for each group
-- its key and entry as one text, and what is known of it: bytes of an entry, milliseconds it is kept, its lanes
-- (MessagePack, for busy keys).
--
-- A memory is the string KEYS[1] (generation, digest, server, flags, high water, lag, reach, newest
-- receipt) and, under its
-- generation, for each key of a group either one string of entries in the order of their moments or, once there are more
-- than ENTRIES_MAX of them, a mark and for each lane: its newest entries ('r'), the latest moment of each
-- value ('z'), and a ring of sub-buckets for each window ('w'). What an entry is says `redis_layout.py`.

local ENTRIES_MAX, RAW_MAX, LEAVE = 128, 256, 64
local VALUES_MAX, FORGET = 10000, 1000
local SLACK_MS, REFRESH_MS, ORDER_MS, PENDING_MAX = 3600000, 900000, 5000, 10000
local AHEAD_MS = 600000 -- the allowance of `layout.py`
local HEAD, RING = 24, 72 -- bytes before the entries of a lane, and before the cells of a ring
local KEY, KNOWN = 10, 12 -- bytes of a key, and of what stands before the lanes of a group
local INF = 1 / 0
local call, pack, unpack_ = redis.call, struct.pack, struct.unpack
local floor, max, min, sub = math.floor, math.max, math.min, string.sub

local held = call('MGET', KEYS[1], KEYS[2] .. 'pause')
local meta = held[1]
if not meta then return 'L' end
local event, at = ARGV[2], tonumber(ARGV[3])
local generation = sub(meta, 1, 8)
local root = KEYS[2] .. generation
local pending = root .. 'p'
-- Of a server that was started again it is not known how much it remembers.
if sub(meta, 17, 24) ~= sub(ARGV[1], 9, 16) then return 'L' end
-- Whoever took a lease over fills another memory than the one who had it before.
if #ARGV[1] > 16 and generation ~= sub(ARGV[1], 17) then return 'L' end
if sub(meta, 9, 16) ~= sub(ARGV[1], 1, 8) then return 'S' end
if event ~= '' then
  local before = call('HGET', pending, event)
  if before then return before end
  if held[2] then return 'P' end
end
local flags, high, lag, reach, newest_live = unpack_('<Bdddd', meta, 25)

local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local shifted = false
if high > now + AHEAD_MS then reach, high = max(reach, high), now + AHEAD_MS end
if at > now + AHEAD_MS then
  -- The clock of whoever received it is wrong. In the log it stands behind what came before it.
  at, shifted = event == '' and high > -INF and high or now, true
end
lag = min(lag, now - at)
if ARGV[4] == '1' then
  -- What is received at one moment by several processes comes in the order in which it is asked here.
  if at < newest_live and newest_live - at < ORDER_MS then at, shifted = newest_live, true end
  newest_live = max(newest_live, at)
end
high = max(high, at)
-- Keys live by the clock of this server: an entry may be gone once an event lags more than this behind it.
reach = max(reach, now - lag - SLACK_MS)
call('SETRANGE', KEYS[1], 24, pack('<Bdddd', flags, high, lag, reach, newest_live))

local function moment_of(text, place)
  local low, upper = unpack_('<I4I4', text, place)
  return upper * 4096 + floor(low / 1048576), low % 1048576
end

-- The totals of a window -------------------------------------------------------------------------------

local function cell_size(window) return window[4] == 2 and 48 or 24 end

local function read_cells(key, window, from, to)
  -- The cells of the buckets from..to as text, in order; missing ones are zeros.
  local size, length = cell_size(window), window[3]
  local first, last = from % length, to % length
  local function range(a, b)
    local text = call('GETRANGE', key, RING + a * size, RING + (b + 1) * size - 1)
    return text .. string.rep('\0', (b - a + 1) * size - #text)
  end
  if first <= last and to - from < length then return range(first, last) end
  return range(first, length - 1) .. range(0, last)
end

local function sum_up(key, window, at_ms, head)
  -- Totals of (at - span, at]: entries, first, sum, least, greatest, exact, until; and the head's cell.
  local span, width = window[1], window[2]
  local start = at_ms - span
  local edge, top = floor(start / width), floor(at_ms / width)
  local size = cell_size(window)
  local text = read_cells(key, window, edge, top)
  local entries, first, total, least, greatest, ends, exact = 0, 0, 0, INF, -INF, -INF, 1
  local place, with_sums = 1, size == 48
  for bucket = edge, top do
    local a, b, n, s, l, g
    if with_sums then a, b, n, s, l, g = unpack_('<dddddd', text, place)
    else a, b, n = unpack_('<ddd', text, place) end
    place = place + size
    local low = bucket * width
    if n > 0 and a >= low and a < low + width and b > start and (bucket < top or a <= at_ms) then
      if entries == 0 then
        -- Where in the bucket the window begins is not known, so the whole of it counts.
        if a > start then first = a else first = b; exact = 0 end
        ends = first + span
      end
      if bucket == top and b > at_ms then head.b = b end
      entries = entries + n
      if with_sums then total, least, greatest = total + s, min(least, l), max(greatest, g) end
    end
  end
  return entries, first, total, least, greatest, exact, ends, edge
end

local function ask_ring(key, window, at_ms, newest, left, raw, step)
  -- Answer as of a moment; remember the totals as long as nothing leaves the window.
  local header = call('GETRANGE', key, 0, RING - 1)
  local lost, since, ends, entries, first, total, least, greatest, exact = unpack_('<ddddddddd', header)
  local start = at_ms - window[1]
  if at_ms >= newest then
    if start < since or at_ms >= ends then
      local edge
      entries, first, total, least, greatest, exact, ends, edge = sum_up(key, window, at_ms, {})
      if lost >= edge then exact = 0 end
      call('SETRANGE', key, 8, pack('<dddddddd', start, ends, entries, first, total, least, greatest, exact))
    end
    return entries, first, total, least, greatest, exact * 3
  end
  local head, edge, _ = {}, nil, nil
  entries, first, total, least, greatest, exact, _, edge = sum_up(key, window, at_ms, head)
  local least_exact = exact
  if lost >= edge then exact, least_exact = 0, 0 end
  if head.b then
    -- What is newer than the event is taken off again, as far as the raw entries tell.
    local until_ms = (floor(at_ms / window[2]) + 1) * window[2]
    for place = #raw - step + 1, HEAD + 1, -step do
      local moment, value = unpack_('<d', raw, place), 0
      if moment <= at_ms then break end
      if moment < until_ms then
        if window[4] == 2 then value = unpack_('<d', raw, place + 8) end
        entries, total = entries - 1, total - value
      end
    end
    if at_ms < left then exact = 0 end
    least_exact = 0
  end
  return entries, first, total, least, greatest, exact + 2 * least_exact
end

local function add_cell(known, bucket, width, at_ms, value)
  -- Count an observation in the cell of its bucket; nil when a newer bucket has taken the cell.
  local a, b, n, s, l, g = known[1], known[2], known[3], known[4], known[5], known[6]
  if n > 0 then
    local owner = floor(a / width)
    if owner > bucket then return nil, bucket end
    if owner == bucket then
      return { min(a, at_ms), max(b, at_ms), n + 1, s + value, min(l, value), max(g, value) }
    end
    return { at_ms, at_ms, 1, value, value, value }, owner
  end
  return { at_ms, at_ms, 1, value, value, value }
end

local function pack_cell(cell, size)
  if size == 48 then return pack('<dddddd', cell[1], cell[2], cell[3], cell[4], cell[5], cell[6]) end
  return pack('<ddd', cell[1], cell[2], cell[3])
end

local function unpack_cell(text, size)
  if #text < size then return { 0, 0, 0, 0, 0, 0 } end
  if size == 48 then return { unpack_('<dddddd', text) } end
  local a, b, n = unpack_('<ddd', text)
  return { a, b, n, 0, 0, 0 }
end

local function add_ring(key, window, at_ms, value, late)
  local width, size = window[2], cell_size(window)
  local bucket = floor(at_ms / width)
  local offset = RING + bucket % window[3] * size
  local known = unpack_cell(call('GETRANGE', key, offset, offset + size - 1), size)
  local cell, gone = add_cell(known, bucket, width, at_ms, value)
  if cell then call('SETRANGE', key, offset, pack_cell(cell, size)) end
  local lost, since, ends, entries, first, total, least, greatest, exact =
    unpack_('<ddddddddd', call('GETRANGE', key, 0, RING - 1))
  if gone then lost = max(lost, gone) end
  if late or at_ms >= ends then
    call('SETRANGE', key, 0, pack('<ddd', lost, since, -INF))
  else
    call('SETRANGE', key, 0, pack('<ddddddddd', lost, since, ends, entries + 1, first, total + value,
      min(least, value), max(greatest, value), exact))
  end
end

local function begin_ring(key, window, raw, step, with_value, ttl)
  local width, size, length = window[2], cell_size(window), window[3]
  local cells, lost = {}, -INF
  for place = HEAD + 1, #raw, step do
    local moment, value = unpack_('<d', raw, place), 0
    if with_value then value = unpack_('<d', raw, place + 8) end
    local bucket = floor(moment / width)
    local cell, gone = add_cell(cells[bucket % length] or { 0, 0, 0, 0, 0, 0 }, bucket, width, moment, value)
    if cell then cells[bucket % length] = cell end
    if gone then lost = max(lost, gone) end
  end
  local parts, empty = { pack('<ddddddddd', lost, 0, -INF, 0, 0, 0, 0, 0, 0) }, string.rep('\0', size)
  for place = 0, length - 1 do
    parts[#parts + 1] = cells[place] and pack_cell(cells[place], size) or empty
  end
  call('SET', key, table.concat(parts), 'PX', ttl)
end

-- The lanes of a busy key ------------------------------------------------------------------------------

local function place_after(text, from, step, at_ms, read)
  -- Where an entry of a moment belongs: after those of the same moment.
  local place = #text + 1
  while place > from and read(text, place - step) > at_ms do place = place - step end
  return place
end

local function read_double(text, place) return (unpack_('<d', text, place)) end

local function drop_raw(raw, step, until_ms)
  local place = HEAD + 1
  while place <= #raw and read_double(raw, place) <= until_ms do place = place + step end
  return sub(raw, place)
end

local function keep_value(key, lane, word, at_ms, forgotten, ttl)
  if call('ZADD', key, 'GT', at_ms, word) == 1 then
    local count = call('ZCARD', key)
    if count == 1 then
      call('PEXPIRE', key, ttl)
    elseif count > VALUES_MAX then
      local until_ms = tonumber(call('ZRANGE', key, FORGET - 1, FORGET - 1, 'WITHSCORES')[2])
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
  local newest = raw and #raw > HEAD and read_double(raw, #raw - step + 1) or -INF
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
    local count = (#raw - HEAD) / step + 1
    local stale = read_double(raw, HEAD + 1) or INF
    local full = count > RAW_MAX + bucketed * LEAVE
    if not full and #raw > HEAD and stale > high - lane[2] - lane[2] / 16 then
      call('APPEND', key .. 'r', entry)
      if lane[4] > 0 then call('SETRANGE', key .. 'r', 8, pack('<d', forgotten)) end
      return
    end
    body = sub(raw, HEAD + 1) .. entry
  elseif at >= left then
    local place = place_after(raw, HEAD + 1, step, at, read_double)
    body = sub(raw, HEAD + 1, place - 1) .. entry .. sub(raw, place)
  else
    body = sub(raw, HEAD + 1)
  end
  if #body / step > RAW_MAX + bucketed * LEAVE then
    if bucketed == 0 then
      bucketed = 1
      local whole = string.rep('\0', HEAD) .. body
      for index, window in ipairs(lane[6]) do
        if window[4] > 0 then
          begin_ring(key .. 'w' .. index, window, whole, step, with_value and lane[5] == 0, ttl)
        end
      end
    else
      left = max(left, read_double(body, (LEAVE - 1) * step + 1))
      body = sub(body, LEAVE * step + 1)
    end
  end
  local gone_ms = high - lane[2]
  if #body > 0 and read_double(body, 1) <= gone_ms - lane[2] / 16 then
    body = drop_raw(string.rep('\0', HEAD) .. body, step, gone_ms)
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
  if #raw > HEAD then
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
      windows[index] = string.rep('\0', 64)
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
  local body = whole and sub(raw, HEAD + 1) or ''
  return pack('<Bddd', 1, left, forgotten, newest) .. last .. pack('<I4', #body) .. body .. table.concat(windows)
end

local function observe_busy(key, mark, group, recording)
  local lanes, entry = cmsgpack.unpack(sub(group[5], KNOWN + 1)), group[2]
  local bits = recording and select(2, moment_of(entry, 1)) or 0
  local ttl = group[4] + SLACK_MS + REFRESH_MS
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
  local lanes, step, ttl = cmsgpack.unpack(sub(group[5], KNOWN + 1)), group[3], group[4] + SLACK_MS + REFRESH_MS
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

-- The key of a group -----------------------------------------------------------------------------------

local function record_plain(key, record, group)
  local entry, step, kept = group[2], group[3], group[4]
  local ttl = kept + SLACK_MS
  local inner = nil
  if at < moment_of(record, #record - step + 1) then
    local place = place_after(record, 1, step, at, moment_of)
    inner = sub(record, 1, place - 1) .. entry .. sub(record, place)
  end
  if moment_of(record, 1) <= high - kept - kept / 16 then
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
    keys[index] = root .. sub(ARGV[place], 1, KEY)
    local entry = sub(ARGV[place], KEY + 1)
    if shifted then
      local _, bits = moment_of(entry, 1)
      entry = pack('<I4I4', at % 4096 * 1048576 + bits, floor(at / 4096)) .. sub(entry, 9)
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
      if recording then call('SET', key, group[2], 'PX', group[4] + SLACK_MS) end
    elseif #record == 9 then
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
