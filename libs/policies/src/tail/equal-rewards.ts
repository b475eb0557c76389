/**
 * Whether the rewards of a group do not show which of its samples is better. One sample alone has no other to be
 * compared with (PPO): it is trained.
 */
export function areEqual(rewards: readonly number[]): boolean {
  return rewards.length > 1 && rewards.every((reward) => reward === rewards[0]);
}
