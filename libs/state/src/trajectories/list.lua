--[[ One page of the recorded sessions; a scan (Pages.scan). Writes nothing.
ARGV[1] JSON: {tokenId?, cursor?}   strings; tokenId: only sessions of this token; absent: of any token
Reply: sessions   list of {about, turns, sampling}; about: the session; turns: number of started turns; sampling: its
                  sampling parameters, absent without any
       cursor     of the next page; absent: this is the last page
Flags: no-writes ]]
return function(tx, args)
  local PAGE = 128
  local page, cursor = Pages.scan('ZSCAN', tx.key.trajectories, args.cursor, PAGE)
  local sessions = {}
  -- Each second entry is a score.
  for position = 1, #page, 2 do
    local id = page[position]
    local held = redis.call('HMGET', tx.key:trajectory(id), 'about', 'sampling')
    local about, sampling = held[1], held[2] or nil
    if about and (not args.tokenId or cjson.decode(about).tokenId == args.tokenId) then
      table.insert(sessions, Reply.object({ turns = Trajectories.count(tx, id) },
        { about = about, sampling = sampling }))
    end
  end
  return Reply.object({ cursor = cursor }, { sessions = Reply.joined(sessions) })
end
