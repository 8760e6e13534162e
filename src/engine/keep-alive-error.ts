/** An engine cannot keep an idle connection for as long as KEEP_ALIVE says. */
export class KeepAliveError extends Error {
  constructor(askedMs: number, mostMs: number) {
    super(`keeps idle connections for ${mostMs / 1000} s at most, and KEEP_ALIVE is ${askedMs / 1000} s`);
    this.name = 'KeepAliveError';
  }
}
