/** A JSON Pointer (RFC 6901) from names and indexes; of the whole document: the empty text. */
export function pointer(path: readonly (string | number)[]): string {
  return path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}
