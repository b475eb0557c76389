import { cutText, type TailPolicy } from '@broomwagon/contracts';

/** A fault of a policy: the wrong field, and the reason. */
export interface PolicyFault {
  field: keyof TailPolicy;
  reason: string;
}

const ONLY_WITH: Partial<Record<keyof TailPolicy, TailPolicy['name']>> = {
  dripGroups: 'drip',
  dripMode: 'drip',
  dripReserved: 'drip',
  concurrency: 'fixed-concurrency',
  maxLengthBias: 'auto',
  maxWaste: 'auto',
};
/** Fields that `auto` chooses. */
const NOT_WITH_AUTO = ['overProvision', 'overProvisionMode', 'sampleOverProvision', 'onCut'] as const;
/** Maximum domains in one policy. */
const MAX_DOMAINS = 64;
const DOMAIN = /^[A-Za-z0-9][A-Za-z0-9._:-]*$/;

/**
 * Checks rules that concern several fields: values that contradict each other, or that no whole step can meet. Returns
 * undefined for a valid policy.
 * @param groupsPerStep groups of a whole step; without this number, rules about whole steps are not checked
 */
export function findPolicyFault(policy: TailPolicy, groupsPerStep = Infinity): PolicyFault | undefined {
  for (const [field, name] of Object.entries(ONLY_WITH) as [keyof TailPolicy, TailPolicy['name']][]) {
    if (policy[field] !== undefined && policy.name !== name) return { field, reason: `is only for the policy ${name}` };
  }
  if (policy.name === 'fixed-concurrency' && policy.concurrency === undefined) {
    return { field: 'concurrency', reason: 'is needed by the policy fixed-concurrency' };
  }
  if (policy.maxReplacedGroups !== undefined && policy.equalRewards !== 'replace') {
    return { field: 'maxReplacedGroups', reason: 'is only for equalRewards replace' };
  }
  return (
    overProvisionFault(policy) ??
    waitFault(policy) ??
    dripFault(policy, groupsPerStep) ??
    boundFault(policy, groupsPerStep) ??
    quotaFault(policy, groupsPerStep)
  );
}

function overProvisionFault(policy: TailPolicy): PolicyFault | undefined {
  const { name, overProvision } = policy;
  if (name === 'auto') {
    const field = NOT_WITH_AUTO.find((one) => policy[one] !== undefined);
    return field && { field, reason: 'is chosen by the policy auto' };
  }
  if (overProvision === undefined && name !== 'wait') {
    return { field: 'overProvision', reason: `is needed by the policy ${name}` };
  }
  return undefined;
}

function waitFault(policy: TailPolicy): PolicyFault | undefined {
  if (policy.name !== 'wait') return undefined;
  if ((policy.sampleOverProvision ?? 1) > 1)
    return { field: 'sampleOverProvision', reason: 'wait launches nothing it does not need' };
  if (policy.overProvisionMode === 'adaptive')
    return { field: 'overProvisionMode', reason: 'wait launches nothing it does not need' };
  return undefined;
}

function dripFault(policy: TailPolicy, groupsPerStep: number): PolicyFault | undefined {
  if (policy.dripGroups !== undefined && policy.dripGroups > groupsPerStep) {
    return { field: 'dripGroups', reason: `a step has ${groupsPerStep} groups` };
  }
  if (policy.dripMode === 'adaptive' && policy.dripReserved === false) {
    return { field: 'dripReserved', reason: 'the pace of taken groups is known only if they are not cut again' };
  }
  return undefined;
}

function boundFault(policy: TailPolicy, groupsPerStep: number): PolicyFault | undefined {
  const { name, maxLongtailShare, maxOffPolicyShare, maxVersionSpan, onCut } = policy;
  if (maxLongtailShare !== undefined && name !== 'wait' && !(Math.floor(maxLongtailShare * groupsPerStep) >= 1)) {
    return {
      field: 'maxLongtailShare',
      reason: `no group of the long-tail queue could ever be trained with steps of ${groupsPerStep} groups`,
    };
  }
  const keeps = name !== 'regenerate' && onCut !== 'discard';
  if (keeps && onCut === 'keep' && (maxOffPolicyShare === 0 || maxVersionSpan === 0)) {
    const field = maxVersionSpan === 0 ? 'maxVersionSpan' : 'maxOffPolicyShare';
    return { field, reason: '0 throws away the tokens that onCut keeps' };
  }
  return undefined;
}

function quotaFault(policy: TailPolicy, groupsPerStep: number): PolicyFault | undefined {
  const field = 'domainQuotas';
  const { domainQuotas } = policy;
  if (domainQuotas === undefined) return undefined;
  const quotas = Object.entries(domainQuotas);
  if (quotas.length === 0 || quotas.length > MAX_DOMAINS) return { field, reason: `needs 1 to ${MAX_DOMAINS} domains` };
  for (const [domain, quota] of quotas) {
    if (!DOMAIN.test(domain)) return { field, reason: `${cutText(domain, 64)} is not a valid domain name` };
    if (!Number.isSafeInteger(quota) || quota < 1) return { field, reason: `${domain} must be a whole number from 1` };
  }
  const sum = quotas.reduce((total, [, quota]) => total + quota, 0);
  if (sum > groupsPerStep) return { field, reason: `they add up to ${sum}, and a step has ${groupsPerStep} groups` };
  return undefined;
}
