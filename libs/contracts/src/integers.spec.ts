import { getMetadataStorage } from 'class-validator';
import { expect, it } from 'vitest';
import * as contracts from './index';

it('bounds every integer of the protocol by the largest integer that Redis can write', () => {
  const classes = Object.values(contracts).filter((one) => typeof one === 'function') as (new () => object)[];
  const unbounded: string[] = [];
  for (const contract of classes) {
    // Stored as a text, which Redis does not read.
    if (contract === contracts.SamplingParameters) continue;
    const rules = getMetadataStorage().getTargetValidationMetadatas(contract, '', false, false);
    for (const { propertyName } of rules.filter(({ name }) => name === 'isInt')) {
      const most = rules.filter((rule) => rule.propertyName === propertyName && rule.name === 'max');
      const isBounded = most.some(({ constraints }) => constraints[0] <= contracts.LIMITS.integer);
      if (!isBounded) unbounded.push(`${contract.name}.${propertyName}`);
    }
  }
  expect(unbounded).toEqual([]);
});
