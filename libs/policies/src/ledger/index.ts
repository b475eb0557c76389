export * from './ledger-summary';
export { lengthBin } from './length-bins';
