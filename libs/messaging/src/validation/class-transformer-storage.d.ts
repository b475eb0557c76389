/** Class-transformer does not export its metadata, which tells whether a class can be compiled. */
declare module 'class-transformer/cjs/storage.js' {
  export { defaultMetadataStorage } from 'class-transformer/types/storage';
}
