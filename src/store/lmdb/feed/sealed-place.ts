import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { AppError } from '../../../errors.ts';
import { placeOf, tokenOf, type LogPlace } from './place.ts';

/** The first byte of a sealed token tells its form. */
const VERSION = 0x53;
const CIPHER = 'aes-256-gcm';
const [NONCE_BYTES, TAG_BYTES] = [12, 16];

/**
 * The token of a place for the reader of a part: the form (1 byte), a nonce (12), the sealed token of the place, the tag
 * (16). The sequence number in it counts the changes of rows that are not the reader's, so it must not be seen, guessed
 * or compared.
 */
export function sealedTokenOf(place: LogPlace, secret: Uint8Array): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, secret, nonce);
  const sealed = Buffer.concat([cipher.update(tokenOf(place)), cipher.final()]);
  return Buffer.concat([Uint8Array.of(VERSION), nonce, sealed, cipher.getAuthTag()]);
}

/** The place of a sealed token. Throws AppError `invalid-cursor` for a token that was not made with this secret. */
export function placeOfSealed(token: Uint8Array, secret: Uint8Array): LogPlace {
  const sealedAt = 1 + NONCE_BYTES;
  if (token[0] !== VERSION || token.length < sealedAt + TAG_BYTES) throw notSealedHere();
  const options = { authTagLength: TAG_BYTES };
  const decipher = createDecipheriv(CIPHER, secret, token.subarray(1, sealedAt), options);
  decipher.setAuthTag(token.subarray(-TAG_BYTES));
  try {
    return placeOf(Buffer.concat([decipher.update(token.subarray(sealedAt, -TAG_BYTES)), decipher.final()]));
  } catch (error) {
    throw notSealedHere(error);
  }
}

function notSealedHere(cause?: unknown): AppError {
  return new AppError(
    'invalid-cursor',
    'The cursor is not one that this store gives to the readers of a part.',
    {
      cause,
    },
  );
}
