/** The message of whatever was thrown. Logs show this where an error's other fields may hold a password. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The `code` of an error: a text for errors of the system (ENOENT) and of Node, a number for some libraries. */
export function codeOf(error: unknown): string | number | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' || typeof error.code === 'number' ? error.code : undefined;
}
