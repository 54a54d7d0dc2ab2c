-- The totals of a window of a busy key: a ring of sub-buckets, and running totals before its cells.

local function cell_size(window) return window[4] == 2 and 48 or 24 end

local function read_cells(key, window, from, to)
  -- The cells of the buckets from..to as text, in order; missing ones are zeros.
  local size, length = cell_size(window), window[3]
  local first, last = from % length, to % length
  local function range(a, b)
    local text = call('GETRANGE', key, RING_HEAD + a * size, RING_HEAD + (b + 1) * size - 1)
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
  local header = call('GETRANGE', key, 0, RING_HEAD - 1)
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
    for place = #raw - step + 1, LANE_HEAD + 1, -step do
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
  local offset = RING_HEAD + bucket % window[3] * size
  local known = unpack_cell(call('GETRANGE', key, offset, offset + size - 1), size)
  local cell, gone = add_cell(known, bucket, width, at_ms, value)
  if cell then call('SETRANGE', key, offset, pack_cell(cell, size)) end
  local lost, since, ends, entries, first, total, least, greatest, exact =
    unpack_('<ddddddddd', call('GETRANGE', key, 0, RING_HEAD - 1))
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
  for place = LANE_HEAD + 1, #raw, step do
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
