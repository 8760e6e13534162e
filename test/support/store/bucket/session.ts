import aws4 from 'aws4';
import type { Seen } from './gateway.ts';
import { ADMIN } from './seaweed.ts';

const OF_SIGNATURES: ReadonlySet<string> = new Set(['authorization', 'x-amz-security-token']);

/** The session token of a request, or of the link that it follows. Undefined: it has none. */
export function tokenOf({ url, headers }: Seen): string | undefined {
  const linked = new URL(url, 'http://store').searchParams.get('X-Amz-Security-Token');
  return headers['x-amz-security-token']?.toString() ?? linked ?? undefined;
}

/**
 * A function that signs a request of temporary credentials anew by lasting ones: SeaweedFS knows no session tokens but its own.
 * `endpoint`: that of the store.
 */
export function withoutTokens(endpoint: string): (seen: Seen) => Seen {
  const { S3_ACCESS_KEY_ID: accessKeyId, S3_SECRET_ACCESS_KEY: secretAccessKey } = ADMIN;
  return ({ method, url, headers }) => {
    const { pathname, searchParams, host } = new URL(url, endpoint);
    for (const name of [...searchParams.keys()]) if (name.startsWith('X-Amz-')) searchParams.delete(name);
    const path = `${pathname}${searchParams.size > 0 ? `?${searchParams.toString()}` : ''}`;
    const own = Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_SIGNATURES.has(name)));
    const signed = aws4.sign(
      { service: 's3', region: 'eu-test-1', method, host, path, headers: { ...own, host } },
      { accessKeyId, secretAccessKey },
    );
    return { method, url: path, headers: signed.headers as Seen['headers'] };
  };
}
