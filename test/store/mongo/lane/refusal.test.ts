import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MongoClient } from 'mongodb';
import { whyNoLane } from '../../../../src/store/mongo/lane/refusal.ts';

/** URIs, and the option in each that only the driver supports. null: none. */
const URIS: readonly (readonly [uri: string, why: RegExp | null])[] = [
  ['mongodb://a,b,c/?replicaSet=rs0', null],
  ['mongodb://a/?directConnection=true&tls=true&tlsInsecure=true', null],
  ['mongodb://ada:secret@a/', null],
  ['mongodb://ada:secret@a/?authMechanism=SCRAM-SHA-1', null],
  ['mongodb://a/?readPreference=nearest', null],
  ['mongodb://a/?compressors=none', null],
  ['mongodb://a/?loadBalanced=true', /load balancer/],
  ['mongodb://a/?proxyHost=b', /SOCKS/],
  ['mongodb://%2Ftmp%2Fmongodb-27017.sock/', /Unix socket/],
  ['mongodb://a/?readPreference=secondary&readPreferenceTags=dc:ny', /tags/],
  ['mongodb://a/?readPreference=secondary&maxStalenessSeconds=120', /maxStaleness/],
  ['mongodb://ada@a/?authMechanism=MONGODB-X509&tls=true', /MONGODB-X509/],
  ['mongodb://ada:secret@a/?authMechanism=PLAIN', /PLAIN/],
  ['mongodb://ada:p%C3%A4ss@a/', /ASCII/],
];

for (const [uri, why] of URIS)
  test(`${uri} is read ${why ? 'through the driver' : 'over the lane'}`, () => {
    const refusal = whyNoLane(new MongoClient(uri).options);
    if (why) assert.match(refusal ?? '', why);
    else assert.equal(refusal, null);
  });
