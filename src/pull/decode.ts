import { PassThrough, type Transform } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip } from 'node:zlib';

/** The content codings of the transfer. `none` requests the bytes without a coding. */
export const COMPRESSIONS = ['br', 'gzip', 'none'] as const;
export type Compression = (typeof COMPRESSIONS)[number];

/**
 * A stream that undoes a content coding. The end of the input may be missing: a cut stream is decoded as far
 * as its bytes came. null when the coding is not supported.
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
