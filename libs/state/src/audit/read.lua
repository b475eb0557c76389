--[[ Reads the items that an audit compares, each at one moment.
ARGV[1] JSON: {items}: list, each a list of reads, see audit/views.lua
Reply: answers     list, for each item a list of its answers; of the first items only, when there is much to read
Flags: no-writes ]]
return function(tx, args)
  local answers = {}
  for index, reads in ipairs(args.items) do
    if Views.is_enough(tx) then break end
    answers[index] = Views.answers(tx, reads)
  end
  return cjson.encode({ answers = answers })
end
