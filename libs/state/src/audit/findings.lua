-- What an audit script found: {check, where, says, repaired}. `says` tells two findings of the same place apart.
local Findings = {}

function Tx.fields.findings() return {} end
function Findings.add(tx, check, where, says, repaired)
  table.insert(tx.findings, { check = check, where = where, says = says or '', repaired = repaired or false })
end

return Findings
