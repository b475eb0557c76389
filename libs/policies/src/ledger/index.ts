export * from './ledger-summary';
export { lengthBin, lengthRange } from './length-bins';
