/** Formats names and indexes as a JSON Pointer (RFC 6901). The pointer of the whole document is the empty text. */
export function pointer(path: readonly (string | number)[]): string {
  return path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}
