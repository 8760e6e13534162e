/** A percent-encoded text as it was. undefined: it is not percent-encoded UTF-8. */
export function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}
