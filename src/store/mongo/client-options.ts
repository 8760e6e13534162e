import type { MongoClientOptions } from 'mongodb';
import { MongoRefusal } from './errors.ts';

/** The defaults of a server that must notice a dead database within seconds. What the URI sets is kept. */
export function clientOptions(uri: string): MongoClientOptions {
  return {
    appName: 'sluice',
    // With the driver's 30 s, a request would wait that long while the database is unavailable, and the driver would
    // not leave a member that hangs.
    ...(!names(uri, 'serverSelectionTimeoutMS') && { serverSelectionTimeoutMS: 3_000 }),
    ...(!names(uri, 'connectTimeoutMS') && { connectTimeoutMS: 2_000 }),
    // A member that hangs is noticed once it is silent for both times together: 3 s, instead of 12 s by default.
    ...(!names(uri, 'heartbeatFrequencyMS') && { heartbeatFrequencyMS: 1_000 }),
    // With `primaryPreferred` a dead primary costs 0.1 to 3 s, with `primary` an election of 10 s. Majority reads are
    // never rolled back on any member.
    ...(!names(uri, 'readPreference') && { readPreference: 'primaryPreferred' }),
  };
}

/** Throws MongoRefusal when the URI turns on compression. */
export function refuseCompression(uri: string): void {
  if (!names(uri, 'compressors') || /[?&]compressors=none(&|$)/i.test(uri)) return;
  throw new MongoRefusal(
    'The MongoDB URI turns on wire compression (compressors=...), which makes scans about 10 times slower. Remove this option.',
  );
}

/** Whether the URI sets an option. Option names are case-insensitive. */
function names(uri: string, option: string): boolean {
  return new RegExp(`[?&]${option}=`, 'i').test(uri);
}
