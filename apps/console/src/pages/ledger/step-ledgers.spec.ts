import { expect, it } from 'vitest';
import { boundText } from './step-ledgers';

it('shows bounds in their units', () => {
  expect(boundText('offPolicyShare', 0.123)).toBe('12.3 %');
  expect(boundText('cutsPerGroup', 3)).toBe('3');
  expect(boundText('versionSpan', 12)).toBe('12');
});
