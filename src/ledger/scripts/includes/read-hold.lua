--[[
  read_hold(hold): reads an open hold.

  A hold's text: 'v1', amount, free (0|1), admitted at (ms), instance, account, key, service, provider, method, path; tab separated.
  Then any number of fields name=value, which belong to the record of the call (ledger/usage-event.ts). Scripts read only claim=, in
  sweep.lua, and the last, budgets=, in give-back.lua.
  A tombstone's text: 'x', '', ms, instance.

  @return amount (text, micro-USD), free ('0' or '1'), instance, account, service, key; nil for a tombstone, and for a hold that
          is damaged or of another version
]]
local function read_hold(hold)
  local amount, free, instance, account, key, service =
    string.match(hold, '^v1\t(%d+)\t([01])\t%d+\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t')
  if amount and #amount <= 16 then return amount, free, instance, account, service, key end
end
