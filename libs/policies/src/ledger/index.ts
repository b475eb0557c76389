export { ledgerAlarms } from './ledger-alarms';
export * from './ledger-summary';
export { lengthBin } from './length-bins';
