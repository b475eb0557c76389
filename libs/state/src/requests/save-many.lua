--[[ Takes the saves of many attempts of a worker, one page of at most 128. A segment has the tokens of its attempt
after the first `savedTokens`, which the partial save must have: otherwise it is not taken, and the reply has the
number.
ARGV[1] JSON: {workerId, workerEpoch, saves}: SaveManyArgs
Reply: results   list of SaveAnswer, or {error} of the save, in the order of the saves
An error of one save does not end the others; an error that is raised is answered with the code INTERNAL.
Flags: allow-oom ]]
return function(tx, args)
  local results, known = {}, {}
  for position, save in ipairs(args.saves) do
    save.workerId, save.workerEpoch = args.workerId, args.workerEpoch
    local is_well, answer = pcall(Saves.save, tx, save, known)
    if not is_well then
      known = {}
      answer = Reply.fail('INTERNAL', type(answer) == 'table' and answer.err or tostring(answer))
    end
    results[position] = answer
  end
  return '{"results":' .. Reply.joined(results) .. '}'
end
