export * from './choose-over-provision';
export * from './group-lengths';
export * from './round-time';
