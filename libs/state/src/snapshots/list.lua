--[[ The complete snapshots of a job, oldest first. Writes nothing.
ARGV[1] JSON: {job}
Reply: ListSnapshotsReply; saving, restoring: tag of the snapshot that is being saved or restored, or absent
Errors: JOB_NOT_FOUND.
Flags: no-writes ]]
return function(tx, args)
  local known = Job.load(tx, args.job)
  if not known.trainerEpoch then return Trainer.no_job(args.job) end
  local snapshots = {}
  for _, tag in ipairs(redis.call('ZRANGE', tx.key:snapshots(args.job), 0, -1)) do
    table.insert(snapshots, Snapshots.header(tx, args.job, redis.call('ZSCORE', tx.key:snapshots(args.job), tag)))
  end
  local function tag_of(number) return number and Snapshots.header(tx, args.job, number).tag or nil end
  return Reply.object({ job = args.job, snapshots = snapshots, saving = tag_of(known.saving),
    restoring = tag_of(known.restoring) })
end
