import { BSON, EJSON } from '../store/bson.ts';
import { BSON_TYPE } from '../store/bson-types.ts';

/**
 * Converts a single BSON value (its type byte and its bytes) to what JSON.stringify turns into relaxed Extended JSON.
 * It is for the types that have no JSON form of their own. Throws BSON errors when the bytes are not sound.
 */
export function extendedJson(type: number, value: Uint8Array): unknown {
  if (type === BSON_TYPE.regularExpression) return regularExpression(value);
  const document = Buffer.alloc(value.length + 8);
  document.writeInt32LE(document.length, 0);
  document[4] = type;
  document.write('v', 5);
  document.set(value, 7);
  const sound = BSON.deserialize(document, { promoteValues: false, validation: { utf8: false } });
  return (EJSON.serialize(sound, { relaxed: true }) as { v: unknown }).v;
}

/** Written by hand: bson refuses unknown options, but a stream must not break on what a database has accepted. */
function regularExpression(value: Uint8Array): unknown {
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  const pattern = bytes.indexOf(0);
  const options = bytes.toString('utf8', pattern + 1, bytes.length - 1);
  return {
    $regularExpression: {
      pattern: bytes.toString('utf8', 0, pattern),
      options: Array.from(options).sort().join(''),
    },
  };
}
