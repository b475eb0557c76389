-- Chooses among the servers that fit and have room by a hash of the acquireId: the policy needs no random numbers.
local Random = { branch = 'hash', score = LeastInflight.score }

-- Place of a server among `count`, from 0, by 32 bits of the hash, which Lua divides exactly.
local function place_of(item, draw, count)
  return tonumber(string.sub(redis.sha1hex(item.acquireId .. '#' .. draw), 1, 8), 16) % count
end

-- One or two different servers; fewer when fewer fit.
function Random.draw(tx, item, draws)
  Servers.write_scores(tx)
  local order = Restrictions.is_restricted(item) and Narrow.order(tx, item) or tx.key.eligible
  local count, drawn, first = redis.call('ZCARD', order), {}, nil
  for draw = 1, math.min(draws, count) do
    local place = place_of(item, draw, count - draw + 1)
    if first and place >= first then place = place + 1 end
    first = first or place
    local id = redis.call('ZRANGE', order, place, place)[1]
    local server = Servers.get(tx, id)
    if not server or not Servers.has_room(tx, server) then
      Scores.withdraw(tx, id)
      return Random.draw(tx, item, draws)
    elseif not Restrictions.fits(tx, server, item) then
      -- A replica of a version without index entries has changed the server.
      ServerHash.save_index_entries(tx, id)
      redis.call('ZREM', order, id)
      return Random.draw(tx, item, draws)
    end
    drawn[draw] = server
  end
  -- Servers without index entries are in no narrowed order.
  if count == 0 and not Narrow.are_all_indexed(tx) then
    Visit.fitting(tx, item, function(id)
      drawn[1] = Servers.get(tx, id)
      return true
    end)
  end
  return drawn
end

function Random.candidates(tx, item) return Random.draw(tx, item, 1)[1] end

return Random
