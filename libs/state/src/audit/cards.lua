--[[ One page of the cards of servers against their hashes. A card is what the plain scripts go by for up to ten
seconds, so one that says something else lets a server take leases that it has no room for, or none.
ARGV[1] JSON: {cursor: string, '0' to begin; repair: boolean}
Reply: cursor      string, '0' at the end
       findings    list of {check, where, says, repaired}
Errors: none. Facts: none.
Flags: allow-oom ]]
return function(tx, args)
  local PAGE = 128

  local function is_readable(card)
    local at = struct.size(PlainPool.CARD_NUMBERS) + 1
    return #card > at and string.find(card, '\0', at, true) ~= nil
  end

  local function in_words(card)
    if not card then return 'no server' end
    if not is_readable(card) then return 'unreadable' end
    local _, most, weight, version, started, epoch, at = struct.unpack(PlainPool.CARD, card)
    return string.format('epoch %s, %.0f leases at most, weight %s, version %.0f, started %.0f, %s', epoch, most,
      weight,
      version, started, string.sub(card, at))
  end

  -- Nobody believes one that is out of date.
  local function is_believed(card)
    if not is_readable(card) then return true end
    return struct.unpack(PlainPool.CARD, card) >= tx.now
  end

  local page = redis.call('HSCAN', tx.key.serverCards, args.cursor, 'COUNT', PAGE)
  for index = 1, #page[2], 2 do
    local id, card = page[2][index], page[2][index + 1]
    local true_card = PlainPool.make_card(tx, id)
    local said, is = in_words(card), in_words(true_card)
    local is_wrong = is_believed(card) and said ~= is
    if not (is_wrong and args.repair) then
      redis.call('HSET', tx.key.serverCards, id, card)
    elseif not true_card then
      redis.call('HDEL', tx.key.serverCards, id)
    end
    if is_wrong then Findings.add(tx, 'server-card', id, said .. '; the server: ' .. is, args.repair) end
  end
  return '{"cursor":' .. cjson.encode(page[1]) .. ',"findings":' .. Reply.list(tx.findings) .. '}'
end
