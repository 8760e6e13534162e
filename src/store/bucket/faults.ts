import { AppError } from '../../base/errors.ts';
import { FileGoneError } from '../files.ts';
import { BucketError } from './request.ts';

/** Answers that another attempt meets again until the operator has changed the bucket or its policy. */
const REFUSALS: ReadonlySet<string> = new Set([
  ...[
    'AccessDenied',
    'AllAccessDisabled',
    'NoSuchBucket',
    'PermanentRedirect',
    'AuthorizationHeaderMalformed',
  ],
  ...['EntityTooLarge', 'InvalidBucketState', 'QuotaExceeded', 'XMinioStorageFull'],
]);
const MISSING: ReadonlySet<string> = new Set(['NoSuchKey', 'InvalidRange']);

/** Translates errors of a bucket to AppErrors. `what`: what its files are, in the plural. */
export class BucketFaults {
  readonly #what: string;

  constructor(what: string) {
    this.#what = what;
  }

  /** Rejects with the AppError that an error of the bucket is, and with FileGoneError for a file of this name that is not there. */
  async told<T>(work: Promise<T>, name?: string): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (!(error instanceof BucketError)) throw error;
      throw name !== undefined && MISSING.has(error.code) ? new FileGoneError(name) : this.#of(error);
    }
  }

  unavailable(cause: unknown): AppError {
    const code = cause instanceof BucketError && cause.code !== '' ? ` (${cause.code})` : '';
    return new AppError('store-unavailable', `The bucket of ${this.#what} cannot be reached${code}.`, {
      cause,
    });
  }

  #of(error: BucketError): AppError {
    if (!REFUSALS.has(error.code)) return this.unavailable(error);
    return new AppError('insufficient-storage', `The bucket of ${this.#what} refuses it (${error.code}).`, {
      cause: error,
    });
  }
}
