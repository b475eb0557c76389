--[[ Notes that an attempt runs on a server; with a segment, its tokens so far are saved.
ARGV[1] JSON: {requestId, attempt, workerId, workerEpoch, segment, tokens, serverId, waiting, generatedMs, run}:
  SaveArgs. A segment without more tokens than the partial save is an older message
Reply: SaveAnswer
Errors: FENCED, REQUEST_NOT_FOUND, ROUND_CLOSED.
Flags: allow-oom ]]
return function(tx, args) return Saves.save(tx, args) end
