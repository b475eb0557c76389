// class-validator-jsonschema reads nested types from here; class-transformer ships no types for it.
declare module 'class-transformer/cjs/storage' {
  export const defaultMetadataStorage: never;
}
