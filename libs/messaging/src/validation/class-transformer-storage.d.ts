/** Class-transformer does not export its metadata, which names the classes of nested objects. */
declare module 'class-transformer/cjs/storage.js' {
  export { defaultMetadataStorage } from 'class-transformer/types/storage';
}
