--[[ The tokens of each recorded turn, prompt included. A later turn extends a turn if its prompt begins with these
tokens.
ARGV[1] JSON: {id}   string
Reply: sequences   list of texts `tokens|digest|generation` by turn; empty for a turn without a record
Flags: no-writes ]]
return function(tx, args)
  local sequences = Trajectories.each(tx, args.id, 'sequence', Trajectories.count(tx, args.id))
  for turn, sequence in ipairs(sequences) do sequences[turn] = sequence or '' end
  return Reply.object({ sequences = sequences })
end
