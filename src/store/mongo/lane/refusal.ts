import type { MongoOptions, ReadPreference } from 'mongodb';
import type { Credentials } from './scram.ts';

const MECHANISMS: ReadonlySet<string> = new Set(['DEFAULT', 'SCRAM-SHA-1', 'SCRAM-SHA-256']);

/** Why the driver reads alone with these options. Null when reads can use the lane. */
export function whyNoLane(options: MongoOptions): string | null {
  const { credentials, readPreference, hosts } = options;
  if (options.loadBalanced) return 'MongoDB is behind a load balancer';
  if (options.proxyHost) return 'MongoDB is behind a SOCKS proxy';
  if (hosts.some((host) => host.socketPath !== undefined)) return 'MongoDB is reached over a Unix socket';
  // The lane would have to choose members by these as the driver does.
  if (isChoosy(readPreference)) return 'the read preference has tags, hedged reads or maxStalenessSeconds';
  if (!credentials) return null;
  if (!MECHANISMS.has(credentials.mechanism))
    return `only the driver supports authentication by ${credentials.mechanism}`;
  if (!isPlain(credentials)) return 'the password is not ASCII and would require SASLprep';
  return null;
}

function isChoosy({ tags, maxStalenessSeconds, hedge }: ReadPreference): boolean {
  return (
    maxStalenessSeconds !== undefined ||
    hedge !== undefined ||
    (tags?.some((set) => Object.keys(set).length > 0) ?? false)
  );
}

function isPlain({ password }: Credentials): boolean {
  return /^[\x20-\x7e]*$/.test(password);
}
