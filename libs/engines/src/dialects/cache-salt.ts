/**
 * The field of a request that keeps its cache entries apart from entries of other weights. A value that the caller has
 * given for the field follows the salt.
 * @param name `cache_salt`, or `extra_key` of SGLang
 */
export function saltedFields(
  name: 'cache_salt' | 'extra_key',
  salt: string | undefined,
  given: Record<string, unknown> = {},
): Record<string, string> {
  if (salt === undefined) return {};
  const own = [given.cache_salt, name === 'extra_key' ? given.extra_key : undefined];
  const texts = own.map((value) => (typeof value === 'string' ? value : JSON.stringify(value ?? undefined)));
  return { [name]: [salt, ...texts.filter((text) => text !== undefined)].join('.') };
}
