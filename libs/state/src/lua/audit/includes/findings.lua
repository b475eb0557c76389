-- What an audit script found: {check, where, says, repaired}. `says` tells two findings of the same place apart.
local findings = {}
local function found(check, where, says, repaired)
  table.insert(findings, { check = check, where = where, says = says or '', repaired = repaired or false })
end
