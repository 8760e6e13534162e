import { decoded } from '../base/decoded.ts';

/** What is wrong with REDIS_URL, without the URL, which may contain a password: an error of a client shows all of it. */
export function redisUrlFaults(text: string | undefined): readonly string[] {
  if (text === undefined || isRedisUrl(text)) return [];
  return [
    'REDIS_URL must begin with redis:// or rediss:// and name a host, such as redis://:password@localhost:6379/0',
  ];
}

function isRedisUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  return (
    ['redis:', 'rediss:'].includes(protocol) &&
    hostname !== '' &&
    [username, password].every((part) => decoded(part) !== undefined)
  );
}
