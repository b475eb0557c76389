import type { CreateBalancer } from './balancer';
import { CacheAware } from './cache-aware';
import { createPrograms } from './programs';
import {
  BroomwagonDefault,
  ConsistentHash,
  createCapped,
  StickyLeastRequests,
  StickyLeastSessions,
} from './simple-balancers';
import { createThunderAgent } from './thunder-agent';

/** Live sessions of a server at most, in the sweep of caps. */
export const CAPS = [12, 16, 20, 28, 40];

/** All rules that are compared, by name. */
export const BALANCERS: Readonly<Record<string, CreateBalancer>> = {
  'sticky, fewest requests (verl)': (fleet) => new StickyLeastRequests(fleet),
  'sticky, fewest sessions (vllm-router)': (fleet) => new StickyLeastSessions(fleet),
  'consistent hash': (fleet) => new ConsistentHash(fleet),
  'cache_aware (SMG)': (fleet) => new CacheAware(fleet),
  ...Object.fromEntries(CAPS.map((cap) => [`cap of ${cap} sessions`, createCapped(cap)])),
  ThunderAgent: createThunderAgent(false),
  'ThunderAgent with decay': createThunderAgent(true),
  'Broomwagon, defaults': (fleet) => new BroomwagonDefault(fleet),
  'Broomwagon, kv': createPrograms(),
  'Broomwagon, kv and close_session': createPrograms({ closesSessions: true }),
};

export const STICKY = 'sticky, fewest requests (verl)';
export const PROGRAMS = 'Broomwagon, kv';
export const THUNDER_AGENTS = ['ThunderAgent', 'ThunderAgent with decay'];
