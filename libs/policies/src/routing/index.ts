export { type ChosenServer, chooseServer, namedChoice, replayDecision, type RoutingRequest } from './choose-server';
export { TOKENS_PER_LOAD } from './policies/by-load';
export { weighed } from './policies/policy';
export { fits, type Restrictions } from './restrictions';
