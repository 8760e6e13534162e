import { PassThrough, type Transform } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip } from 'node:zlib';

/** What is asked for on the way; `none`: the bytes as they are. */
export const COMPRESSIONS = ['br', 'gzip', 'none'] as const;
export type Compression = (typeof COMPRESSIONS)[number];

/**
 * Undoes a content coding. Its end may be missing: the content of a stream that was cut comes as far as its bytes came.
 * null when the coding is none of ours.
 */
export function decoderOf(coding: string | undefined): Transform | null {
  switch (coding) {
    case 'br':
      return createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH });
    case 'gzip':
      return createGunzip({ finishFlush: constants.Z_SYNC_FLUSH });
    case undefined:
    case 'identity':
      return new PassThrough();
    default:
      return null;
  }
}
