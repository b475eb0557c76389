-- Chooses the less loaded of two servers that are drawn as by `random`; the first of them when their loads are equal.
local PowerOfTwo = { branch = 'hash', score = LeastInflight.score }

function PowerOfTwo.candidates(tx, item)
  local one, other = unpack(Random.draw(tx, item, 2))
  return other and PowerOfTwo.score(tx, other) < PowerOfTwo.score(tx, one) and other or one
end

return PowerOfTwo
