/** The metadata of class-transformer, which has the classes of nested objects and is not exported. */
declare module 'class-transformer/cjs/storage.js' {
  export { defaultMetadataStorage } from 'class-transformer/types/storage';
}
